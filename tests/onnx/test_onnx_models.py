"""The networks of the courses, at other batch sizes than the one they were exported with."""

from __future__ import annotations

from typing import Any

import pytest
from onnx_running import assert_same, kinds

import chainrule
from chainrule import models, nn, onnx


def images(n: int, *sizes: int) -> Any:
    return chainrule.rand(n, *sizes)


MODELS: dict[str, tuple[Any, tuple[int, ...]]] = {
    "perceptron": (lambda: models.Perceptron(4), (4,)),
    "linear regression": (lambda: models.LinearRegression(4), (4,)),
    "logistic regression": (lambda: models.LogisticRegression(4), (4,)),
    "softmax regression": (lambda: models.SoftmaxRegression(4, 3), (4,)),
    "MLP": (lambda: models.MLP(4, [16, 16], 3), (4,)),
    "MLP, tanh, batch norm": (lambda: models.MLP(4, [16], 3, "tanh", norm="batch"), (4,)),
    "MLP, dropout": (lambda: models.MLP(4, [16], 3, dropout=0.5, norm="layer"), (4,)),
    "self-normalizing": (lambda: models.SelfNormalizingMLP(4, [16, 16], 3), (4,)),
    "LeNet": (lambda: models.LeNet(), (1, 32, 32)),
    "MnistConvNet": (lambda: models.MnistConvNet(), (1, 28, 28)),
    "CifarNet": (lambda: models.CifarNet(), (3, 32, 32)),
    "ResNet": (lambda: models.ResNet(8), (3, 32, 32)),
    "AlexNet": (lambda: models.AlexNet(10, shrink=16), (3, 227, 227)),
    "classifier head": (lambda: models.Classifier(nn.Linear(4, 6), 6, 3), (4,)),
    "autoencoder": (lambda: models.Autoencoder(12, [6], 2), (12,)),
    "denoising autoencoder": (lambda: models.DenoisingAutoencoder(12, [6], 2), (12,)),
    "convolutional autoencoder": (lambda: models.ConvAutoencoder(), (1, 28, 28)),
    "RBF network": (lambda: models.RBFNetwork(4, 5, 2), (4,)),
    "for tables": (
        lambda: models.TabularNetwork(3, 2, index_sizes=[10], pieces=[4, 0], clip=3.0),
        (3,),
    ),
}


@pytest.mark.parametrize(("make", "sizes"), MODELS.values(), ids=MODELS)
def test_networks_of_the_courses(make: Any, sizes: tuple[int, ...]) -> None:
    net = make().eval()
    program = onnx.export(net, images(2, *sizes), dynamic_axes={"input": {0: "batch"}})
    assert_same(program, net, [(images(n, *sizes),) for n in (2, 1, 3)])


@pytest.mark.parametrize("kind", ["rnn", "gru", "lstm"])
@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("each_step", [False, True])
def test_heads_on_recurrent_layers(kind: str, both: bool, each_step: bool) -> None:
    net = models.SequenceModel(
        3, 5, 2, kind=kind, num_layers=2, bidirectional=both, each_step=each_step
    ).eval()
    axes = {"input": {0: "batch", 1: "time"}}
    program = onnx.export(net, chainrule.randn(2, 6, 3), dynamic_axes=axes)
    sizes = ((2, 6), (1, 1), (3, 9))
    assert_same(program, net, [(chainrule.randn(*size, 3),) for size in sizes])
    assert kinds(program).count(kind.upper()) == (4 if both else 2)


def test_double_precision() -> None:
    net = models.MLP(4, [16], 3, "tanh").double().eval()
    x = chainrule.randn(2, 4, dtype=chainrule.float64)
    program = onnx.export(net, x, dynamic_axes={"input": {0: "batch"}})
    assert_same(program, net, [(x,)], tolerance=1e-12)
    assert program.outputs == {"output": "float64 (batch, 3)"}


def test_a_network_that_was_trained() -> None:
    """Running statistics and what dropout leaves out are those of evaluation."""
    net = nn.Sequential(
        nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(), nn.Linear(8, 2)
    )
    optimizer = chainrule.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(5):
        loss = net(chainrule.randn(16, 4) * 3 + 1).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with pytest.warns(UserWarning, match="in training mode; it is exported as eval"):
        program = onnx.export(net, chainrule.randn(2, 4), dynamic_axes={"input": [0]})
    assert net.training
    assert net[1].num_batches_tracked == 5
    assert_same(program, net.eval(), [(chainrule.randn(7, 4),)])

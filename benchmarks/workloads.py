"""The programs whose speed is compared: the same text for chainrule and for PyTorch.

Each function takes the library and returns a piece of work to be timed: one training step (zero
the gradients, forward, loss, backward, update), or one inference, or one Hessian. Data and first
weights are the same numbers in both libraries, all float32.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = [
    "MNIST_MLP",
    "WORKLOADS",
    "Work",
    "Workload",
    "mlp_weights",
    "of_mlp",
    "of_sequence",
    "same_weights",
    "samples",
    "training",
]

Work = Callable[[], object]
Pairs = list[tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True)
class Workload:
    """A row of the table. The ratio to PyTorch that is to be reached stands beside it."""

    name: str
    title: str
    make: Callable[[Any], Work]
    target: float
    seconds: float = 0.2


# --- data and weights -----------------------------------------------------------------------------


def samples(
    shape: Sequence[int],
    batch: int,
    classes: int | None = None,
    out: Sequence[int] = (),
    n: int = 8,
) -> Pairs:
    """Random batches: inputs of this shape, and labels or targets of the shape ``out``."""
    r = np.random.default_rng(0)
    pairs = []
    for _ in range(n):
        x = r.normal(size=(batch, *shape)).astype("float32")
        if classes is None:
            pairs.append((x, r.normal(size=(batch, *out)).astype("float32")))
        else:
            pairs.append((x, r.integers(0, classes, batch)))
    return pairs


def mlp_weights(widths: Sequence[int]) -> list[tuple[np.ndarray, np.ndarray]]:
    """First weights (out, in) and biases of a multi-layer perceptron."""
    r = np.random.default_rng(1)
    return [
        (_uniform(r, (out, into)), np.zeros(out, "float32"))
        for into, out in itertools.pairwise(widths)
    ]


def _uniform(r: np.random.Generator, shape: Sequence[int]) -> np.ndarray:
    bound = 1 / math.sqrt(math.prod(shape[1:]))
    return r.uniform(-bound, bound, size=tuple(shape)).astype("float32")


def same_weights(lib: Any, model: Any) -> Any:
    """The model with weights that do not depend on the library."""
    r = np.random.default_rng(1)
    with lib.no_grad():
        for name, p in model.named_parameters():
            if p.ndim > 1:
                p.copy_(lib.tensor(_uniform(r, p.shape)))
            elif "bias" in name:
                p.zero_()
    return model


def _feed(lib: Any, pairs: Pairs) -> Iterator[tuple[Any, Any]]:
    return itertools.cycle([(lib.tensor(x), lib.tensor(y)) for x, y in pairs])


# --- networks -------------------------------------------------------------------------------------


def _mlp(lib: Any, widths: Sequence[int], activation: str = "ReLU", dropout: float = 0.0) -> Any:
    nn = lib.nn
    layers: list[Any] = []
    for into, out in itertools.pairwise(widths):
        layers += [nn.Linear(into, out), getattr(nn, activation)()]
        if dropout:
            layers.append(nn.Dropout(dropout))
    return nn.Sequential(*layers[: -2 if dropout else -1])


def _lenet(lib: Any) -> Any:
    nn = lib.nn
    return nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2),
        nn.Tanh(),
        nn.AvgPool2d(2),
        nn.Conv2d(6, 16, 5),
        nn.Tanh(),
        nn.AvgPool2d(2),
        nn.Flatten(),
        nn.Linear(400, 120),
        nn.Tanh(),
        nn.Linear(120, 84),
        nn.Tanh(),
        nn.Linear(84, 10),
    )


def _cifar_cnn(lib: Any) -> Any:
    nn = lib.nn
    return nn.Sequential(
        nn.Conv2d(3, 6, 5),
        nn.ReLU(),
        nn.MaxPool2d(2, 2),
        nn.Conv2d(6, 16, 5),
        nn.ReLU(),
        nn.MaxPool2d(2, 2),
        nn.Flatten(),
        nn.Linear(400, 120),
        nn.ReLU(),
        nn.Linear(120, 84),
        nn.ReLU(),
        nn.Linear(84, 10),
    )


def _conv_bn_relu(lib: Any) -> Any:
    nn = lib.nn
    layers: list[Any] = []
    for i, (into, out) in enumerate(itertools.pairwise([3, 32, 32, 64, 64])):
        layers += [nn.Conv2d(into, out, 3, padding=1), nn.BatchNorm2d(out), nn.ReLU()]
        if i % 2:
            layers.append(nn.MaxPool2d(2))
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(64 * 8 * 8, 10))


def _sequence_model(lib: Any, kind: str, **options: Any) -> Any:
    nn = lib.nn

    class LastState(nn.Module):  # type: ignore[misc, name-defined]
        """A number from the last output of a recurrent layer."""

        def __init__(self) -> None:
            super().__init__()
            self.recurrent = getattr(nn, kind)(1, 64, batch_first=True, **options)
            self.head = nn.Linear(64 * (2 if options.get("bidirectional") else 1), 1)

        def forward(self, x: Any) -> Any:
            output, _ = self.recurrent(x)
            return self.head(output[:, -1])

    return LastState()


# --- work -----------------------------------------------------------------------------------------


def training(
    network: Callable[[Any], Any],
    pairs: Callable[[], Pairs],
    loss: str = "CrossEntropyLoss",
    optimizer: str = "Adam",
    **options: Any,
) -> Callable[[Any], Work]:
    """A training step."""

    def make(lib: Any) -> Work:
        model = same_weights(lib, network(lib))
        criterion = getattr(lib.nn, loss)()
        update = getattr(lib.optim, optimizer)(model.parameters(), **{"lr": 1e-3, **options})
        feed = _feed(lib, pairs())

        def step() -> None:
            x, y = next(feed)
            update.zero_grad()
            criterion(model(x), y).backward()
            update.step()

        return step

    return make


def _inference(
    network: Callable[[Any], Any], shape: Sequence[int], batch: int
) -> Callable[[Any], Work]:
    """The outputs of one batch."""

    def make(lib: Any) -> Work:
        model = same_weights(lib, network(lib)).eval()
        feed = _feed(lib, samples(shape, batch, 10))

        def infer() -> None:
            with lib.no_grad():
                model(next(feed)[0])

        return infer

    return make


def _xor(lib: Any) -> Work:
    """One full-batch epoch of gradient descent with momentum."""
    x = lib.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    y = lib.tensor([[0.0], [1.0], [1.0], [0.0]])
    nn = lib.nn
    model = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 1), nn.Sigmoid())
    model, criterion = same_weights(lib, model), nn.MSELoss()
    optimizer = lib.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    def epoch() -> None:
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        optimizer.step()

    return epoch


def _surface(lib: Any) -> Work:
    """A step of Adam on Rosenbrock's valley, over two parameters without dimensions."""
    x = lib.tensor(-1.5, requires_grad=True)
    y = lib.tensor(2.0, requires_grad=True)
    optimizer = lib.optim.Adam([x, y], lr=1e-3)

    def step() -> None:
        optimizer.zero_grad()
        ((1 - x) ** 2 + 100 * (y - x * x) ** 2).backward()
        optimizer.step()

    return step


def _hessian(lib: Any) -> Work:
    """All second derivatives of the loss of a 4-16-3 network, 131 by 131."""
    ((x, labels),) = samples((4,), 20, 3, n=1)
    x, labels = lib.tensor(x), lib.tensor(labels)
    flat = np.concatenate([part.ravel() for pair in mlp_weights([4, 16, 3]) for part in pair])
    weights = lib.tensor(flat)
    cross_entropy = lib.nn.functional.cross_entropy

    def loss(w: Any) -> Any:
        w1, b1, w2, b2 = w[:64].reshape(16, 4), w[64:80], w[80:128].reshape(3, 16), w[128:]
        return cross_entropy(lib.tanh(x @ w1.T + b1) @ w2.T + b2, labels)

    hessian = lib.func.hessian(loss)
    return lambda: hessian(weights)


def of_mlp(widths: Sequence[int], activation: str = "ReLU", dropout: float = 0.0) -> Any:
    """A multi-layer perceptron, once the library is known."""
    return lambda lib: _mlp(lib, widths, activation, dropout)


def of_sequence(kind: str, length: int = 100, **options: Any) -> Callable[[Any], Work]:
    """A training step on sequences of numbers of this length, 32 at once."""

    def network(lib: Any) -> Any:
        return _sequence_model(lib, kind, **options)

    return training(network, lambda: samples((length, 1), 32, out=(1,)), "MSELoss")


def _mnist(batch: int = 128) -> Pairs:
    return samples((784,), batch, 10)


MNIST_MLP = [784, 512, 512, 512, 10]
SGD: dict[str, Any] = {"optimizer": "SGD", "momentum": 0.9}
WORKLOADS = [
    Workload(
        "iris",
        "MLP 4-8-3, batch 5, Adam",
        training(of_mlp([4, 8, 3], "Tanh"), lambda: samples((4,), 5, 3, n=30)),
        6,
    ),
    Workload("xor", "XOR 2-4-1, an epoch of 1000", _xor, 6),
    Workload(
        "deep10",
        "ten hidden layers of 5, batch 5, SGD",
        training(
            of_mlp([4, *[5] * 10, 3], "Tanh"), lambda: samples((4,), 5, 3, n=30), optimizer="SGD"
        ),
        6,
    ),
    Workload("surface", "two-parameter surface, Adam, a step of 10,000", _surface, 8),
    Workload(
        "radial",
        "regression 2-100-100-1, batch 100, AdamW",
        training(
            of_mlp([2, 100, 100, 1]), lambda: samples((2,), 100, out=(1,)), "MSELoss", "AdamW"
        ),
        2,
    ),
    Workload(
        "wide",
        "regression 2-10000-1, batch 100, AdamW",
        training(of_mlp([2, 10000, 1]), lambda: samples((2,), 100, out=(1,)), "MSELoss", "AdamW"),
        1.3,
    ),
    Workload(
        "mnist", "MLP 784-512-512-512-10, batch 128, Adam", training(of_mlp(MNIST_MLP), _mnist), 1.3
    ),
    Workload(
        "dropout",
        "MLP 784-512-512-512-10 with dropout",
        training(of_mlp(MNIST_MLP, dropout=0.5), _mnist),
        1.3,
    ),
    Workload(
        "autoencoder",
        "autoencoder 784-256-50-256-784, batch 128, Adam",
        training(
            of_mlp([784, 256, 50, 256, 784]), lambda: samples((784,), 128, out=(784,)), "MSELoss"
        ),
        1.3,
    ),
    Workload(
        "lenet",
        "LeNet, batch 64, Adam",
        training(_lenet, lambda: samples((1, 28, 28), 64, 10)),
        1.5,
    ),
    Workload(
        "cifar4",
        "CNN 3-6-16 5x5, 120-84-10, batch 4, SGD",
        training(_cifar_cnn, lambda: samples((3, 32, 32), 4, 10), **SGD),
        3,
    ),
    Workload(
        "cifar64",
        "CNN 3-6-16 5x5, 120-84-10, batch 64, SGD",
        training(_cifar_cnn, lambda: samples((3, 32, 32), 64, 10), **SGD),
        1.5,
    ),
    Workload(
        "convbn",
        "conv-BN-ReLU 32, 32, 64, 64 on 3x32x32, batch 64",
        training(_conv_bn_relu, lambda: samples((3, 32, 32), 64, 10, n=2), **SGD),
        1.15,
        0.4,
    ),
    Workload("rnn", "RNN 1-64, 100 steps, batch 32, Adam", of_sequence("RNN"), 1.3),
    Workload("gru", "GRU 1-64, 100 steps, batch 32, Adam", of_sequence("GRU"), 1.3),
    Workload("lstm", "LSTM 1-64, 100 steps, batch 32, Adam", of_sequence("LSTM"), 1.3),
    Workload(
        "bilstm",
        "LSTM, two layers, both directions",
        of_sequence("LSTM", num_layers=2, bidirectional=True),
        1.3,
        0.4,
    ),
    Workload("hessian", "Hessian of a 4-16-3 MLP", _hessian, 3),
    Workload(
        "mlp1",
        "inference of the MNIST MLP, one sample",
        _inference(of_mlp(MNIST_MLP), (784,), 1),
        3,
    ),
    Workload(
        "mlp256",
        "inference of the MNIST MLP, batch 256",
        _inference(of_mlp(MNIST_MLP), (784,), 256),
        1.1,
    ),
    Workload("lenet1", "inference of LeNet, one sample", _inference(_lenet, (1, 28, 28), 1), 3),
    Workload(
        "lenet256", "inference of LeNet, batch 256", _inference(_lenet, (1, 28, 28), 256), 1.1
    ),
]

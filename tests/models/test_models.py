"""Ready networks: shapes, parameter counts and the behavior the syllabus states."""

from __future__ import annotations

import ast
import math
import re

import numpy as np
import pytest
from sklearn.linear_model import Lasso

import chainrule
from chainrule import data, models, nn, optim, problems, train
from chainrule.func import functional_call, grad


def count(module: nn.Module) -> int:
    return sum(p.numel() for p in module.parameters())


def test_lenet_counts_and_maps() -> None:
    net = models.LeNet()
    layers = [net.c1, net.c3, net.c5, net.f6, net.output]
    assert [count(m) for m in layers] == [156, 2416, 48120, 10164, 850]
    assert count(net) == 61706
    seen: list[tuple[int, ...]] = []
    for m in (net.c1, net.s2, net.c3, net.s4):
        m.register_forward_hook(lambda _m, _a, out: seen.append(tuple(out.shape[1:])))
    assert net(chainrule.zeros(2, 1, 32, 32)).shape == (2, 10)
    assert seen == [(6, 28, 28), (6, 14, 14), (16, 10, 10), (16, 5, 5)]


def test_cifar_network_has_62006_parameters() -> None:
    net = models.CifarNet()
    assert count(net) == 62006
    assert net(chainrule.zeros(2, 3, 32, 32)).shape == (2, 10)


def test_alexnet_has_about_61_million_parameters() -> None:
    sizes = {
        "features.0.weight": 96 * 3 * 121,
        "features.0.bias": 96,
        "features.4.weight": 256 * 48 * 25,
        "features.4.bias": 256,
    }
    net = models.AlexNet()
    assert count(net) == 60_965_224
    for name, size in sizes.items():
        assert net.get_parameter(name).numel() == size
    with chainrule.no_grad():
        assert net.eval().features(chainrule.zeros(1, 3, 227, 227)).shape == (1, 256, 6, 6)


def test_a_narrow_alexnet_has_the_same_layers() -> None:
    wide, narrow = models.AlexNet(num_classes=2), models.AlexNet(num_classes=2, shrink=16)
    kinds = [[type(m).__name__ for m in net.modules()] for net in (wide, narrow)]
    assert kinds[0] == kinds[1]
    for one, other in zip(wide.parameters(), narrow.parameters(), strict=True):
        ratios = {a // b for a, b in zip(one.shape, other.shape, strict=True)}
        assert ratios <= {1, 16}
        assert 16 in ratios or one.shape[0] == 2
    assert narrow(chainrule.zeros(2, 3, 227, 227)).shape == (2, 2)
    with pytest.raises(ValueError, match="shrink must be a divisor of 16, got 3"):
        models.AlexNet(shrink=3)


def test_two_layers_of_100_beat_a_wide_one_on_the_radial_target() -> None:
    """M20: with AdamW, from every one of four seeds, and on the training points, too."""
    problem = problems.radial_bessel(400, generator=chainrule.Generator().manual_seed(0))
    (x, y), held = problem.split(0.7)
    fits = [
        train.fit_many(
            lambda hidden=hidden: models.MLP(2, hidden, 1, "relu"),  # type: ignore[misc]
            (x, y / y.std()),
            "mse",
            lambda params: optim.AdamW(params, lr=2e-3),
            seeds=range(4),
            validation=(held[0], held[1] / y.std()),
            epochs=200,
            batch_size=400,
        )
        for hidden in ([400], [100, 100])
    ]
    assert [many.jobs for many in fits] == [1, 1]
    for column in ("loss", "val_loss"):
        wide, deep = (many.last(column) for many in fits)
        assert all(a > 2 * b for a, b in zip(wide, deep, strict=True)), (column, wide, deep)
    assert count(models.MLP(2, [10_000], 1)) > 3 * count(models.MLP(2, [100, 100], 1))


def test_mnist_convnet_shape() -> None:
    assert models.MnistConvNet()(chainrule.zeros(3, 1, 28, 28)).shape == (3, 10)


def test_mlp_is_the_formula() -> None:
    chainrule.manual_seed(0)
    net = models.MLP(3, [5, 4], 2, "tanh").double()
    x = chainrule.randn(6, 3, dtype=chainrule.float64)
    w = [p.detach().numpy() for p in net.parameters()]
    expected = np.tanh(np.tanh(x.numpy() @ w[0].T + w[1]) @ w[2].T + w[3]) @ w[4].T + w[5]
    np.testing.assert_allclose(net(x).detach().numpy(), expected, rtol=1e-12)


def test_mlp_options() -> None:
    net = models.MLP(3, [5], 2, nn.Tanh, dropout=0.5, norm="batch", output_activation="sigmoid")
    kinds = [type(m).__name__ for m in net]
    assert kinds == ["Linear", "BatchNorm1d", "Tanh", "Dropout", "Linear", "Sigmoid"]
    out = net(chainrule.randn(4, 3))
    assert ((out > 0) & (out < 1)).all()
    assert models.MLP(3, [], 2)(chainrule.ones(4, 3)).shape == (4, 2)
    both = models.MLP(3, [5, 4], 2, ["tanh", nn.ELU()])
    assert [type(layer).__name__ for layer in both][1::2] == ["Tanh", "ELU"]
    with pytest.raises(ValueError, match="one activation for each of 1 hidden layers, got 2"):
        models.MLP(3, [5], 2, ["tanh", "relu"])
    assert models.MLP(3, [4], 2, chainrule.sin)(chainrule.ones(4, 3)).shape == (4, 2)
    with pytest.raises(ValueError, match="norm must be.*'group'"):
        models.MLP(3, [5], 2, norm="group")
    with pytest.raises(ValueError, match="'reluu' is not the name"):
        models.MLP(3, [5], 2, "reluu")
    with pytest.raises(TypeError, match="int"):
        models.MLP(3, [5], 2, 7)


def test_activations_by_name() -> None:
    x = chainrule.linspace(-2, 2, 9).reshape(3, 3)
    for name, expected in (
        ("linear", x),
        ("identity", x),
        ("leaky_relu", nn.LeakyReLU()(x)),
        ("LeakyReLU", nn.LeakyReLU()(x)),
        ("swish", nn.SiLU()(x)),
        ("softmax", x.softmax(-1)),
        ("logistic", x.sigmoid()),
    ):
        assert chainrule.equal(models.activation_module(name)(x), expected), name
    net = models.MLP(2, [3], 1, "linear")
    assert isinstance(net[1], nn.Identity)
    weight, bias = (
        net[2].weight @ net[0].weight,
        net[2].weight @ net[0].bias + net[2].bias,
    )
    points = chainrule.randn(4, 2)
    assert chainrule.allclose(net(points), points @ weight.mT + bias, atol=1e-6)
    for name in ("flatten", "dropout", "mse_loss", "sequential", "module", "threshold", "maxout"):
        with pytest.raises(ValueError, match=f"'{name}' is not the name .*select from .*'relu'"):
            models.MLP(2, [3], 1, name)


def test_every_listed_activation_can_be_made() -> None:
    with pytest.raises(ValueError, match="select from") as caught:
        models.activation_module("none")
    (listed,) = re.findall(r"\[.*\]", str(caught.value))
    names = ast.literal_eval(listed)
    assert len(names) > 30
    for name in names:
        assert isinstance(models.activation_module(name), nn.Module)


def test_hand_set_network_computes_xor() -> None:
    x = chainrule.tensor([[0.0, 0], [0, 1], [1, 0], [1, 1]])
    assert models.xor_network()(x).flatten().tolist() == [0, 1, 1, 0]


def test_self_normalizing_network_keeps_mean_and_variance() -> None:
    chainrule.manual_seed(0)
    net = models.SelfNormalizingMLP(256, [256] * 8, 256)
    hidden = net[:-1](chainrule.randn(512, 256))
    assert abs(hidden.mean().item()) < 0.1
    assert abs(hidden.var().item() - 1) < 0.25
    plain = models.MLP(256, [256] * 8, 256, "tanh")
    assert plain[:-1](chainrule.randn(512, 256)).var().item() < 0.2


def test_autoencoders() -> None:
    chainrule.manual_seed(0)
    model = models.Autoencoder(20, [10], 3)
    assert model.encode(chainrule.ones(2, 20)).shape == (2, 3)
    assert model.decode(chainrule.ones(2, 3)).shape == (2, 20)
    noisy = models.DenoisingAutoencoder(20, [10], 3, noise=0.5)
    x = chainrule.ones(2, 20)
    assert not chainrule.allclose(noisy(x), noisy(x))
    noisy.eval()
    assert chainrule.equal(noisy(x), noisy(x))
    with pytest.raises(ValueError, match="at least 0, got -1"):
        models.DenoisingAutoencoder(20, [10], 3, noise=-1)
    conv = models.ConvAutoencoder(1, (4, 8))
    images = chainrule.rand(2, 1, 16, 16)
    assert conv.encode(images).shape == (2, 8, 4, 4)
    assert conv(images).shape == images.shape


def test_linear_autoencoder_finds_the_principal_subspace() -> None:
    """Without activations the best code spans the first principal directions (M19, M27)."""
    chainrule.manual_seed(0)
    rng = np.random.default_rng(0)
    samples = rng.normal(size=(200, 2)) @ rng.normal(size=(2, 5)) + 0.01 * rng.normal(size=(200, 5))
    samples -= samples.mean(0)
    x = chainrule.tensor(samples)
    model = models.Autoencoder(5, [], 2, nn.Identity()).double()
    for _ in range(2000):
        loss = nn.functional.mse_loss(model(x), x)
        model.zero_grad()
        loss.backward()
        with chainrule.no_grad():
            for p in model.parameters():
                p -= 0.05 * p.grad
    singular = np.linalg.svd(samples, compute_uv=False)
    best = (singular[2:] ** 2).sum() / samples.size
    assert loss.item() < 1.5 * best


def test_an_autoencoder_of_few_images_overfits() -> None:
    """A bottleneck of 10 for images of 64 pixels: from all digits, new ones come back as well as
    those that it learned from; from a tenth of them, they do not."""
    x, _ = data.embedded("digits").tensors()
    x = x[chainrule.randperm(len(x), generator=chainrule.Generator().manual_seed(0))] / 16
    test = x[1200:]
    ratios = {}
    for count in (1200, 60):
        fits = train.fit_many(
            lambda: models.Autoencoder(64, [48], 10),
            (x[:count], x[:count]),
            "mse",
            "adam",
            lr=3e-3,
            seeds=range(3),
            validation=(test, test),
            epochs=24_000 // count,
            batch_size=60,
        )
        net = fits.models[0]
        assert net.encode(test).shape == (len(test), 10)
        assert chainrule.equal(net.decode(net.encode(test)), net(test))
        learned, new = fits.last("loss"), fits.last("val_loss")
        ratios[count] = [b / a for a, b in zip(learned, new, strict=True)]
        guess = test.var(0).mean().item()
        assert max(new) < (0.45 if count == 1200 else 1.0) * guess
    assert max(ratios[1200]) < 1.2
    assert min(ratios[60]) > 1.5


@pytest.mark.parametrize("kind", ["rnn", "lstm", "gru"])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_sequence_models(kind: str, bidirectional: bool) -> None:
    x = chainrule.randn(4, 6, 3)
    settings = {"kind": kind, "num_layers": 2, "bidirectional": bidirectional}
    assert models.SequenceModel(3, 5, 2, **settings)(x).shape == (4, 6, 2)
    assert models.SequenceModel(3, 5, 2, each_step=False, **settings)(x).shape == (4, 2)


def test_last_output_of_a_bidirectional_model_has_read_everything() -> None:
    chainrule.manual_seed(0)
    model = models.SequenceModel(1, 4, 1, bidirectional=True, each_step=False)
    x = chainrule.randn(1, 5, 1, requires_grad=True)
    for half in (slice(0, 4), slice(4, 8)):
        with chainrule.no_grad():
            model.readout.weight.zero_()
            model.readout.weight[:, half] = 1.0
        (g,) = chainrule.autograd.grad(model(x).sum(), x)
        assert (g != 0).all()


def test_additive_model_has_no_mixed_derivatives() -> None:
    chainrule.manual_seed(0)
    model = models.AdditiveModel([[0], [1, 2]], [6]).double()
    hessian = chainrule.func.hessian(lambda v: model(v).sum())(
        chainrule.randn(3, dtype=chainrule.float64)
    )
    assert hessian[0, 1].item() == hessian[0, 2].item() == 0
    assert hessian[1, 2].item() != 0
    with pytest.raises(ValueError, match="at least one input"):
        models.AdditiveModel([[0], []], [6])


def test_dictionary_model_recovers_its_coefficients() -> None:
    x = chainrule.linspace(-1, 1, 50)
    model = models.DictionaryModel([chainrule.ones_like, lambda t: t, chainrule.square])
    target = 2 - 3 * x**2
    features = model.features(x)
    theta = chainrule.linalg.lstsq(features, target.unsqueeze(1)).solution.flatten()
    model.load_state_dict({"theta": theta})
    np.testing.assert_allclose(theta.numpy(), [2, 0, -3], atol=1e-5)
    assert chainrule.allclose(model(x), target, atol=1e-5)
    assert abs(model.penalty().item() - 5) < 1e-4


def test_dictionary_model_finds_the_few_functions_that_are_needed() -> None:
    """M18: of a dictionary of 30, by an L1 penalty; the error falls as more may be used."""
    chainrule.manual_seed(0)
    x = chainrule.linspace(0, 6.283, 200)
    functions = [lambda t, k=k: (k * t).sin() for k in range(1, 16)]
    functions += [lambda t, k=k: (k * t).cos() for k in range(1, 16)]
    noise = 0.01 * chainrule.randn(200)
    target = 2 * (3 * x).sin() - (7 * x).sin() + 0.5 * (11 * x).cos() + noise
    model = models.DictionaryModel(functions)
    report = model.fit(x, target, l1=0.05)
    assert report.converged
    assert model.used == [2, 6, 25]
    sizes = model.theta.detach()[[2, 6, 25]].tolist()
    assert sizes == pytest.approx([1.9, -0.9, 0.4], abs=0.02)  # each less by the penalty, 2 l1
    theirs = Lasso(alpha=0.05, fit_intercept=False, tol=1e-12).fit(model.features(x), target)
    np.testing.assert_allclose(model.theta.detach().numpy(), theirs.coef_, atol=1e-5)
    losses = []
    for terms, used in ((1, [2]), (2, [2, 6]), (3, [2, 6, 25])):
        losses.append(model.fit(x, target, terms=terms).loss)
        assert model.used == used
        residual = (model(x) - target).detach()
        assert float(residual.square().mean()) == pytest.approx(losses[-1], rel=1e-5)
    assert losses[0] > 2 * losses[1] > 4 * losses[2]
    assert losses[2] == pytest.approx(1e-4, rel=0.3)
    assert model.theta.detach()[model.used].tolist() == pytest.approx([2, -1, 0.5], abs=0.01)
    assert model.fit(x, 0 * x, terms=2).loss == 0
    assert model.used == []
    with pytest.raises(ValueError, match="terms must be positive and without l1"):
        model.fit(x, target, 0.1, terms=2)
    with pytest.raises(ValueError, match=r"targets of shape \(200,\), got \(3,\)"):
        model.fit(x, target[:3])


def test_multi_task_trunk_gets_the_weighted_sum_of_gradients() -> None:
    chainrule.manual_seed(0)
    heads = {"a": nn.Linear(4, 1), "b": nn.Linear(4, 1)}
    net = models.MultiTaskNet(nn.Linear(3, 4), heads).double()
    x = chainrule.randn(5, 3, dtype=chainrule.float64)
    params = dict(net.named_parameters())

    def risk(p: dict[str, chainrule.Tensor], a: float, b: float) -> chainrule.Tensor:
        out = functional_call(net, p, (x,))
        return a * out["a"].square().mean() + b * out["b"].square().mean()

    both = grad(risk)(params, 0.3, 0.7)["trunk.weight"]
    only = [grad(risk)(params, *w)["trunk.weight"] for w in ((1.0, 0.0), (0.0, 1.0))]
    assert chainrule.allclose(both, 0.3 * only[0] + 0.7 * only[1])


def test_capacity() -> None:
    ratio = models.capacity(0.001, 5, 2) / models.capacity(0.01, 5, 2)
    assert math.isclose(ratio, 10 ** ((5 - 1) / 2))
    with pytest.raises(ValueError, match="between 0 and 1, got 2"):
        models.capacity(2, 3, 1)
    with pytest.raises(ValueError, match="smoothness positive"):
        models.capacity(0.1, 3, 0)


def test_residual_networks() -> None:
    net = models.ResNet(8, width=4)
    assert net(chainrule.randn(2, 3, 16, 16)).shape == (2, 10)
    # He et al. 2016, table 6: 0.27 million parameters for 20 layers, with identity shortcuts; the
    # two projections here add 16 * 32 + 2 * 32 + 32 * 64 + 2 * 64.
    assert count(models.ResNet(20)) == 269_722 + 16 * 32 + 2 * 32 + 32 * 64 + 2 * 64
    with pytest.raises(ValueError, match="6 n \\+ 2.*got 10"):
        models.ResNet(10)


def test_two_hundred_layers_take_a_training_step() -> None:
    chainrule.manual_seed(0)
    net = models.ResNet(200, width=2)
    x, y = chainrule.randn(2, 3, 8, 8), chainrule.tensor([0, 1])
    loss = nn.functional.cross_entropy(net(x), y)
    loss.backward()
    for p in net.parameters():
        assert p.grad.isfinite().all()
    with chainrule.no_grad():
        for p in net.parameters():
            p -= 1e-6 * p.grad
    assert nn.functional.cross_entropy(net(x), y).item() < loss.item()

"""Attributions that add up, filters, feature maps, pictures that drive units."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from looking.nets import NETS

import chainrule
from chainrule import Tensor, data, inspect, nn, optim, tensor
from chainrule.inspect.attribution.rules import points_between
from chainrule.nn import functional as F

COMPLETE = ("integrated_gradients", "deeplift")


def made(name: str) -> Any:
    chainrule.manual_seed(0)
    return NETS[name]()


def changes(net: Any, result: Any) -> np.ndarray:
    """f(x) - f(0) of the explained outputs, by calling the model."""
    net.model.eval()
    inputs = net.inputs if isinstance(net.inputs, tuple) else (net.inputs,)

    def output(given: Any) -> np.ndarray:
        out = net.model(*given)
        out = out["logits"] if isinstance(out, dict) else out[0] if isinstance(out, tuple) else out
        rows = range(len(out))
        return out.detach().numpy()[rows, result.target.numpy()]

    return output(inputs) - output([x * 0 for x in inputs])


# --- adding up ------------------------------------------------------------------------------------


@pytest.mark.parametrize("net", NETS)
@pytest.mark.parametrize("method", COMPLETE)
def test_contributions_add_up_on_every_network(net: str, method: str) -> None:
    """Reused modules, recurrent layers, functional code and several inputs included."""
    case = made(net)
    settings = {"steps": 400} if method == "integrated_gradients" else {}
    result = inspect.attribute(case.model, case.inputs, method=method, **settings)
    expected = changes(case, result)
    np.testing.assert_allclose(result.change.numpy(), expected, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(result.sums.numpy(), expected, rtol=5e-3, atol=5e-4)
    assert "they add up" in str(result)


class Reused(nn.Module):
    """One rectifier used twice, and in place."""

    def __init__(self, inplace: bool) -> None:
        super().__init__()
        self.a, self.b, self.c = nn.Linear(3, 4), nn.Linear(4, 4), nn.Linear(4, 2)
        self.act = nn.ReLU(inplace=inplace)

    def forward(self, x: Tensor) -> Tensor:
        return self.c(self.act(self.b(self.act(self.a(x)))))


@pytest.mark.parametrize("inplace", [False, True])
def test_a_rectifier_that_is_used_twice_has_two_rules(inplace: bool) -> None:
    chainrule.manual_seed(0)
    net = Reused(inplace).double()
    x, x0 = chainrule.randn(5, 3, dtype="float64"), chainrule.randn(5, 3, dtype="float64")
    got = inspect.attribute(net, x, 1, method="deeplift", baseline=x0).values[0].numpy()

    def layer(linear: nn.Linear, a: np.ndarray) -> np.ndarray:
        return a @ linear.weight.detach().numpy().T + linear.bias.detach().numpy()

    z1, z10 = layer(net.a, x.numpy()), layer(net.a, x0.numpy())
    h1, h10 = np.maximum(z1, 0), np.maximum(z10, 0)
    z2, z20 = layer(net.b, h1), layer(net.b, h10)
    h2, h20 = np.maximum(z2, 0), np.maximum(z20, 0)
    m = net.c.weight.detach().numpy()[1] * (h2 - h20) / (z2 - z20)
    m = m @ net.b.weight.detach().numpy() * (h1 - h10) / (z1 - z10)
    expected = m @ net.a.weight.detach().numpy() * (x - x0).numpy()
    np.testing.assert_allclose(got, expected, rtol=1e-10, atol=1e-12)


def test_products_share_their_change_equally() -> None:
    """x y: the change of x times the mean of y, and the other way around."""
    x, y = tensor([[3.0]], dtype="float64"), tensor([[5.0]], dtype="float64")
    x0, y0 = tensor([[1.0]], dtype="float64"), tensor([[2.0]], dtype="float64")
    seen = inspect.attribute(lambda a, b: a * b, (x, y), method="deeplift", baseline=(x0, y0))
    assert seen.values[0].item() == pytest.approx(2 * 3.5)
    assert seen.values[1].item() == pytest.approx(3 * 2.0)
    assert seen.gap < 1e-12


def test_a_rise_of_a_maximum_is_due_to_where_it_is_and_a_fall_to_where_it_was() -> None:
    net = nn.Sequential(nn.MaxPool1d(2), nn.Flatten())
    for x, x0, expected in (([1, 4], [3, 2], [0, 1]), ([1, 2], [3, 0.5], [-1, 0])):
        given, start = (tensor([[[float(v) for v in row]]]) for row in (x, x0))
        seen = inspect.attribute(net, given, method="deeplift", baseline=start)
        assert seen.values[0].reshape(-1).tolist() == pytest.approx(expected)


def test_sensitivity_is_the_size_of_the_slope() -> None:
    case = made("mlp")
    seen = inspect.attribute(case.model, case.inputs, 2, method="sensitivity")
    step = 1e-3
    base = case.model(case.inputs)[:, 2].detach()
    for k in range(4):
        moved = case.inputs.clone()
        moved[:, k] += step
        slope = (case.model(moved)[:, 2].detach() - base) / step
        np.testing.assert_allclose(seen.values[0][:, k], slope.abs(), rtol=0.02, atol=1e-3)
    assert "do not add up" in str(seen)


def test_what_does_not_add_up_is_said() -> None:
    net = nn.Sequential(nn.Linear(2, 1), nn.Sigmoid())
    with chainrule.no_grad():
        net[0].weight.fill_(8.0)
        net[0].bias.fill_(-12.0)
    seen = inspect.attribute(net, chainrule.ones(1, 2), method="gradient_x_input")
    assert seen.gap > 0.5
    assert "use integrated_gradients or deeplift" in str(seen)
    assert "raise steps" in str(inspect.attribute(net, chainrule.ones(1, 2), steps=1))


def test_gauss_legendre_integrates_polynomials() -> None:
    for degree in range(10):
        total = sum(w * t**degree for t, w in points_between(5))
        assert total == pytest.approx(1 / (degree + 1), rel=1e-12)
    nodes, weights = np.polynomial.legendre.leggauss(7)
    np.testing.assert_allclose([t for t, _ in points_between(7)], (nodes + 1) / 2, rtol=1e-12)
    np.testing.assert_allclose([w for _, w in points_between(7)], weights / 2, rtol=1e-12)


class Choosing(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.sum(1).exp() if float(x.sum()) > 0 else x.sum(1)


MLP = nn.Linear(3, 2)
X = chainrule.ones(2, 3)
WRONG: list[tuple[Any, str]] = [
    (lambda: inspect.attribute(MLP, X, method="magic"), "select from"),
    (lambda: inspect.attribute(MLP, X, 5), "not one of the 2"),
    (lambda: inspect.attribute(MLP, X, [0, 1, 1]), "3 targets for 2"),
    (lambda: inspect.attribute(MLP, X, steps=0), "steps must be"),
    (lambda: inspect.attribute(MLP, X, window=2), "belong to 'occlusion'"),
    (lambda: inspect.attribute(MLP, X, method="occlusion", window=(9,)), "window must have"),
    (lambda: inspect.attribute(MLP, X, baseline=chainrule.ones(7)), "does not fit"),
    (lambda: inspect.attribute(MLP, X, baseline=(X, X)), "2 baselines for 1"),
    (lambda: inspect.attribute(MLP, X * float("nan")), "not finite"),
    (lambda: inspect.attribute(MLP, X.long()), "int64"),
    (lambda: inspect.attribute(lambda x: x.sum(), X), "a row for each sample"),
    (lambda: inspect.attribute(Choosing(), X, method="deeplift"), "depends on the data"),
    (lambda: inspect.filters(nn.Linear(4, 2), shape=(3, 3)), "has not the 4 inputs"),
    (lambda: inspect.filters(nn.Linear(4, 2), layer="x"), "'x'"),
    (
        lambda: inspect.feature_maps(nn.Conv2d(1, 2, 3), chainrule.ones(1, 1, 5, 5), layer="q"),
        "'q'",
    ),
    (lambda: inspect.deconvnet(MLP, X, unit=9), "no unit 9"),
    (lambda: inspect.deconvnet(MLP, X, rule="x"), "'deconvnet' or 'guided'"),
    (lambda: inspect.maximize(MLP, X, 9), "there are 2"),
    (lambda: inspect.maximize(MLP, X, layer="z"), "'z'"),
    (lambda: inspect.maximize(MLP, X, steps=0), "must be positive"),
    (lambda: inspect.deep_dream(MLP, X, rate=-1), "must be positive"),
]


@pytest.mark.parametrize(("call", "text"), WRONG)
def test_what_cannot_be_explained(call: Any, text: str) -> None:
    with pytest.raises((TypeError, ValueError), match=text):
        call()


# --- features -------------------------------------------------------------------------------------


def digits() -> tuple[nn.Sequential, Tensor]:
    """A convnet of two layers on the embedded digits."""
    chainrule.manual_seed(0)
    x, y = data.embedded("digits").tensors()
    x = x.float().reshape(-1, 1, 8, 8) / 16
    net = nn.Sequential(
        nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(72, 10)
    )
    optimizer = optim.Adam(net.parameters(), lr=0.01)
    for i in [*range(0, 1500, 50)] * 3:
        optimizer.zero_grad()
        F.cross_entropy(net(x[i : i + 50]), y[i : i + 50].long()).backward()
        optimizer.step()
    return net, x[:100]


def test_pictures_of_classes_are_seen_as_these_classes() -> None:
    net, x = digits()
    seen = inspect.maximize(net, x)
    assert seen.probabilities is not None
    assert min(seen.probabilities) > 0.99
    assert net.eval()(seen.pictures).argmax(1).tolist() == list(range(10))
    assert float(seen.pictures.min()) >= 0
    assert float(seen.pictures.max()) <= 1
    assert seen.dead == []


def test_a_dead_unit_is_said_to_be_dead() -> None:
    net, x = digits()
    with chainrule.no_grad():
        net[0].weight[3] = 0.0
        net[0].bias[3] = -1.0
    seen = inspect.maximize(net, x, layer="1", steps=5)
    assert seen.dead == [3]
    assert "3" in str(seen)
    assert "dead: nothing drives it" in str(seen)
    assert inspect.feature_maps(net, x, layer="1").dead == [3]


def test_a_linear_unit_is_driven_most_by_the_signs_of_its_weights() -> None:
    net = nn.Linear(4, 1)
    with chainrule.no_grad():
        net.weight.copy_(tensor([[1.0, -2.0, 3.0, -4.0]]))
    inputs = tensor([[-1.0, 1.0, -1.0, 1.0], [1.0, -1.0, 1.0, -1.0]])
    seen = inspect.maximize(net, inputs, 0, steps=200)
    assert seen.pictures.reshape(-1).tolist() == pytest.approx([1, -1, 1, -1])


def test_filters_are_the_weights() -> None:
    net, _ = digits()
    assert chainrule.equal(inspect.filters(net).weights, net[0].weight.detach())
    rows = inspect.filters(net, layer="4", shape=(8, 3, 3))
    assert chainrule.equal(rows.weights.reshape(10, 72), net[4].weight.detach())


def test_feature_maps_are_the_outputs_of_the_layer() -> None:
    net, x = digits()
    seen = inspect.feature_maps(net, x[:3], layer="2")
    assert chainrule.equal(seen.maps, net[:3](x[:3]).detach())
    assert "8 maps of 3 x 3" in str(seen)


def test_a_deconvnet_sends_back_only_what_is_positive() -> None:
    """One convolution of one pixel: w where the rectified output is largest."""
    net = nn.Sequential(nn.Conv2d(1, 1, 1, bias=False), nn.ReLU(), nn.Conv2d(1, 1, 1, bias=False))
    with chainrule.no_grad():
        net[0].weight.fill_(2.0)
        net[2].weight.fill_(-3.0)
    x = tensor([[[[1.0, 2.0], [0.5, -1.0]]]])
    seen = inspect.deconvnet(net, x, layer="0")
    expected = [[0.0, 2.0], [0.0, 0.0]]
    assert seen.pictures[0, 0].tolist() == expected
    assert float(inspect.deconvnet(net, x).pictures.abs().max()) == 0  # -3 is rectified away
    assert "sends nothing back" in str(inspect.deconvnet(net, x))


def test_a_dream_raises_what_the_layer_sees() -> None:
    net, x = digits()
    seen = inspect.deep_dream(net, x[:4], steps=10)
    assert seen.layer == "2"
    before = float(net[:3](seen.before).square().mean().detach())
    after = float(net[:3](seen.after).square().mean().detach())
    assert seen.activity == pytest.approx((before, after), rel=1e-5)
    assert after > 1.2 * before

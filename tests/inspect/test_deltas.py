"""Delta errors of the textbooks, against ``backward()``, and derivatives of formulas."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from helpers import assert_close

import chainrule
from chainrule import Tensor, models, nn, tensor
from chainrule.inspect import textbook


def normal(*shape: int, seed: int = 0) -> Tensor:
    return tensor(np.random.default_rng(seed).normal(size=shape))


# --- matrices (O28) -------------------------------------------------------------------------------


@pytest.mark.parametrize("activation", ["tanh", "sigmoid", "relu", "selu"])
def test_deltas_of_layers_are_what_backward_finds(activation: str) -> None:
    chainrule.manual_seed(0)
    net = models.MLP(3, [5, 4], 2, activation, output_activation="sigmoid").double()
    x, y = normal(7, 3), normal(7, 2, seed=1)
    loss = lambda a: ((a - y) ** 2).sum() / 14  # noqa: E731
    found = textbook.layer_deltas(net, x, loss)
    loss(net(x)).backward()
    linear = [m for m in net if isinstance(m, nn.Linear)]
    for layer, weight, bias in zip(linear, found.weights, found.biases, strict=True):
        assert_close(weight, layer.weight.grad, rtol=1e-12, atol=1e-15)
        assert_close(bias, layer.bias.grad, rtol=1e-12, atol=1e-15)


def test_deltas_of_layers_are_the_slopes_by_the_sums() -> None:
    """delta = dL/ds, and the recursion is delta[l - 1] = delta[l] W[l] diag f'(s[l - 1])."""
    net = nn.Sequential(nn.Linear(2, 3, bias=False), nn.Tanh(), nn.Linear(3, 2)).double()
    x = normal(4, 2)
    found = textbook.layer_deltas(net, x, lambda a: (a**3).sum())
    assert found.biases[0] is None
    s = net[0](x).detach().requires_grad_()
    (by_sums,) = chainrule.autograd.grad((net[2](s.tanh()) ** 3).sum(), s)
    assert_close(found.deltas[0], by_sums, rtol=1e-12)
    slopes = 1 - np.tanh(s.detach().numpy()) ** 2
    expected = found.deltas[1].numpy() @ net[2].weight.detach().numpy() * slopes
    assert_close(found.deltas[0], expected, rtol=1e-12)


def test_the_error_of_a_canonical_output_is_prediction_minus_target() -> None:
    net = nn.Sequential(nn.Linear(3, 1), nn.Sigmoid()).double()
    x, y = normal(6, 3), (normal(6, 1, seed=1) > 0).double()
    loss = lambda a: nn.functional.binary_cross_entropy(a, y, reduction="sum")  # noqa: E731
    (delta,) = textbook.layer_deltas(net, x, loss).deltas
    assert_close(delta, (net(x) - y).detach(), rtol=1e-10)


@pytest.mark.parametrize(
    "layers", [[nn.Conv1d(1, 1, 1)], [nn.Tanh()], [nn.Linear(2, 2), nn.Tanh(), nn.Tanh()], []]
)
def test_other_networks_are_refused(layers: list[nn.Module]) -> None:
    with pytest.raises(TypeError, match="layer_deltas: expected a Sequential"):
        textbook.layer_deltas(nn.Sequential(*layers), normal(1, 2), lambda a: a.sum())


# --- units (O27) ----------------------------------------------------------------------------------


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shortcuts", [True, False])
def test_deltas_of_units_are_what_backward_finds(shortcuts: bool, bias: bool) -> None:
    chainrule.manual_seed(1)
    net = nn.UnitGraph.from_layers(
        [2, 3, 2, 2], shortcuts=shortcuts, bias=bias, output_activation=chainrule.sigmoid
    ).double()
    x, y = normal(5, 2), normal(5, 2, seed=1)
    loss = lambda a: ((a - y) ** 2).sum() / 2  # noqa: E731
    found = textbook.unit_deltas(net, x, loss)
    loss(net(x)).backward()
    weights = chainrule.stack([found.weights[link] for link in net.links])
    assert_close(weights, net.weight.grad, rtol=1e-12, atol=1e-15)
    if bias:
        biases = chainrule.stack([found.biases[unit] for unit in net.computed])
        assert_close(biases, net.bias.grad, rtol=1e-12, atol=1e-15)
    else:
        assert found.biases == {}


def test_both_forms_are_one() -> None:
    net = nn.UnitGraph.from_layers([2, 3, 1]).double()
    layers = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1)).double()
    for k, place in ((1, 0), (2, 2)):
        layers[place].weight.data = net.matrix(k, k - 1).detach()
    layers[0].bias.data, layers[2].bias.data = net.bias.detach()[:3], net.bias.detach()[3:]
    x = normal(4, 2)
    units = textbook.unit_deltas(net, x, lambda a: (a**2).sum())
    matrices = textbook.layer_deltas(layers, x, lambda a: (a**2).sum())
    assert_close(chainrule.stack([units.deltas[u] for u in (2, 3, 4)], 1), matrices.deltas[0])
    assert_close(units.deltas[5][:, None], matrices.deltas[1])


# --- formulas (D05) -------------------------------------------------------------------------------

FORMULAS: list[tuple[str, Callable[[Any], Any]]] = [
    ("x", lambda x: x),
    ("3", lambda x: 0 * x + 3),
    ("2 * x - x / 4 + 1", lambda x: 2 * x - x / 4 + 1),
    ("x ** 3", lambda x: x**3),
    ("x ** -2", lambda x: x**-2),
    ("x * sin(x) * cos(x)", lambda x: x * x.sin() * x.cos()),
    ("sin(x) / (1 + x ** 2)", lambda x: x.sin() / (1 + x**2)),
    ("exp(-x ** 2 / 2)", lambda x: (-(x**2) / 2).exp()),
    ("log(sqrt(1 + x ** 2))", lambda x: (1 + x**2).sqrt().log()),
    ("tanh(3 * sigmoid(x))", lambda x: (3 * x.sigmoid()).tanh()),
    ("-(x - 1) * -exp(x)", lambda x: (x - 1) * x.exp()),
    ("1 / x", lambda x: 1 / x),
]


@pytest.mark.parametrize(("text", "function"), FORMULAS, ids=[text for text, _ in FORMULAS])
def test_the_formula_of_a_derivative_is_the_derivative(
    text: str, function: Callable[[Any], Any]
) -> None:
    x = tensor([-1.3, -0.7, 0.6, 2.1], dtype=chainrule.float64)
    formula = textbook.symbolic_derivative(text)
    table = textbook.compare(lambda t: function(t).sum(), x, formula)
    assert table.deviation("symbolic") < 1e-12
    assert 0 <= table.deviation("numerical") < 1e-7
    again = textbook.symbolic_derivative(formula)  # the second derivative
    second = chainrule.func.grad(
        lambda t: chainrule.func.grad(lambda s: function(s).sum())(t).sum()
    )
    assert_close(again(x), second(x), rtol=1e-9, atol=1e-12)


def test_formulas_grow() -> None:
    """The derivative of a product of n factors has n terms; each further one makes more."""
    sizes = []
    formula: Any = textbook.Formula("x * sin(x) * exp(x) * cos(x) * tanh(x)")
    for _ in range(3):
        sizes.append(formula.operations)
        formula = textbook.symbolic_derivative(formula)
    assert sizes[1] > 3 * sizes[0]
    assert sizes[2] > 3 * sizes[1]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x +", "is no formula"),
        ("y * 2", "'y' in 'y \\* 2' is neither 'x'"),
        ("__import__('os')", "is neither 'x'"),
        ("x ** x", "the exponent in 'x \\*\\* x' must be a number"),
        ("sin(x, 2)", "sin takes one argument"),
        ("x.real", "is neither 'x'"),
        ("True", "is neither 'x'"),
    ],
)
def test_what_is_no_formula_is_refused(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        textbook.symbolic_derivative(text)

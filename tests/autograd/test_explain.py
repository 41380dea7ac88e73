"""The account of a backward pass, on the softmax classifier of the syllabus (D21)."""

from __future__ import annotations

from typing import Any

import numpy as np
from helpers import case, outputs
from layer_helpers import LayerCase, each, inner
from layers import ALL
from layers.record import Layer
from samples import ALL as SAMPLES

import chainrule
from chainrule import Tensor, autograd, nn

RNG = np.random.default_rng(3)
X = RNG.normal(size=4)
CLASS = 2


def parameters() -> dict[str, Tensor]:
    shapes = {"W1": (5, 4), "b1": (5,), "W2": (3, 5), "b2": (3,)}
    # Small weights: 1 - tanh^2 of a saturated unit keeps few digits, whoever computes it.
    return {
        n: chainrule.tensor(0.4 * RNG.normal(size=s), requires_grad=True) for n, s in shapes.items()
    }


def classifier(p: dict[str, Tensor]) -> Tensor:
    """The negative log-likelihood of one class: -ln softmax(tanh(W2 tanh(W1 x + b1) + b2))_y."""
    h1 = (p["W1"] @ chainrule.tensor(X) + p["b1"]).tanh()
    h2 = (p["W2"] @ h1 + p["b2"]).tanh()
    sigma = h2.softmax(0)
    return -sigma.log()[CLASS]


def test_the_thirteen_steps_in_numbers() -> None:
    p = parameters()
    account = autograd.explain(classifier(p), names=p)
    names = [step.name for step in account]
    w1, b1, w2, b2 = (p[n].detach().numpy() for n in ("W1", "b1", "W2", "b2"))
    a1 = w1 @ X + b1
    h1 = np.tanh(a1)
    a2 = w2 @ h1 + b2
    h2 = np.tanh(a2)
    sigma = np.exp(h2) / np.exp(h2).sum()
    e_y = np.eye(3)[CLASS]

    log, softmax = account[names.index("log")], account[names.index("softmax")]
    outer, inner = (account[i] for i, n in enumerate(names) if n == "tanh")
    add2, add1 = (account[i] for i, n in enumerate(names) if n == "add")
    product2, product1 = (account[i] for i, n in enumerate(names) if n.startswith("matmul"))
    close = lambda a, b: np.testing.assert_allclose(np.asarray(a), b, rtol=1e-12)  # noqa: E731

    # 1, 2: derivative and gradient at the output activation: -e_y / sigma_y
    close(log.inputs[0].gradient, -e_y / sigma)
    close(log.value, np.log(sigma))
    # 3: the softmax's Jacobian sigma_c' (chi(c' = c) - sigma_c); 4: gradient -(e_y - sigma)
    close(softmax.inputs[0].local, np.diag(sigma) - np.outer(sigma, sigma))
    close(softmax.inputs[0].gradient, sigma - e_y)
    # 5, 6: derivative and gradient at the pre-activation: times g'(a)
    close(outer.inputs[0].local, 1 - h2**2)
    delta2 = (sigma - e_y) * (1 - h2**2)
    close(outer.inputs[0].gradient, delta2)
    # 7, 9: gradient at the weight: outer product with h1; 8, 10: at the bias
    (to_w2,) = [i for i in product2.inputs if i.source == "W2"]
    close(to_w2.gradient, np.outer(delta2, h1))
    close(to_w2.local, h1)
    (to_b2,) = [i for i in add2.inputs if i.source == "b2"]
    close(to_b2.gradient, delta2)
    close(to_b2.local, np.ones(3))
    # 11, 12: derivative and gradient at the hidden activation: W2^T delta
    (to_h1,) = [i for i in product2.inputs if i.source == "tanh"]
    close(to_h1.gradient, w2.T @ delta2)
    close(to_h1.local, w2)
    # 13: again for the layer below
    delta1 = (w2.T @ delta2) * (1 - h1**2)
    close(inner.inputs[0].gradient, delta1)
    close(add1.inputs[-1].gradient, delta1)
    close(product1.inputs[0].gradient, np.outer(delta1, X))


def test_values_are_known_although_few_are_saved() -> None:
    p = parameters()
    account = autograd.explain(classifier(p), names=p)
    assert all(step.value is not None for step in account)


def test_it_changes_nothing_and_prints_a_table() -> None:
    p = parameters()
    loss = classifier(p)
    account = autograd.explain(loss, names=p)
    assert all(t.grad is None for t in p.values())
    loss.backward()
    assert p["W1"].grad is not None
    lines = str(account).splitlines()
    assert lines[0].split()[:4] == ["step", "operation", "value", "gradient"]
    assert len(lines) == 2 + sum(len(step.inputs) for step in account)
    assert "W2 (3, 5)" in str(account)
    assert len({line.index("handed on") for line in lines[:1]}) == 1


def test_lines_are_shown_when_recorded() -> None:
    p = parameters()
    with autograd.record_lines():
        loss = classifier(p)
    account = autograd.explain(loss)
    assert "softmax(0)" in account[[s.name for s in account].index("softmax")].line


# --- every layer ----------------------------------------------------------------------------------


@each([layer for layer in ALL if layer.differentiable])
def test_every_layer_can_be_explained(layer: Layer) -> None:
    case = LayerCase(layer, training=False)
    variables = [v.detach().requires_grad_() for v in case.variables()]
    total = inner(outputs := [y for y in case(*variables) if y.requires_grad], outputs)
    account = autograd.explain(total)
    reached: dict[int, Any] = {}
    for step in account:
        for part in step.inputs:
            if isinstance(part.edge, Tensor):
                g = np.asarray(part.gradient)
                reached[id(part.edge)] = reached.get(id(part.edge), 0.0) + g
    expected = autograd.grad(total, variables, allow_unused=True)
    for v, g in zip(variables, expected, strict=True):
        if g is not None:
            np.testing.assert_allclose(reached[id(v)], g.numpy(), rtol=1e-9, atol=1e-12)
    assert str(account)


def test_a_layer_and_its_activation_are_two_steps() -> None:
    chainrule.manual_seed(0)
    for kind in (nn.ReLU, nn.Sigmoid, nn.Tanh):
        net = nn.Sequential(nn.Linear(3, 4), kind()).double()
        x = chainrule.randn(2, 3, dtype="float64")
        y = net(x)
        assert y.grad_fn.name().startswith("Linear")
        account = autograd.explain(y.sum(), names=dict(net.named_parameters()))
        outer, linear = account[-2], account[-1]
        assert (outer.name, linear.name) == (kind.__name__.lower(), "linear")
        a = net[0](x).detach().requires_grad_()
        (slope,) = autograd.grad(net[1](a).sum(), a)
        np.testing.assert_allclose(outer.inputs[0].local, slope.numpy(), rtol=1e-12)
        np.testing.assert_allclose(linear.value, a.detach().numpy(), rtol=1e-12)
        assert [i.source for i in linear.inputs] == ["0.weight", "0.bias"]


def test_large_layers_are_told_in_lines_that_can_be_read() -> None:
    chainrule.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 16, 30))
    seen = chainrule.autograd.explain(net(chainrule.randn(2, 1, 6, 6)).sum())
    assert max(map(len, str(seen).splitlines())) < 300
    layer = next(step for step in seen if step.name == "linear")
    kinds = {(x.kind, tuple(x.local.shape)) for x in layer.inputs if x.local is not None}
    assert kinds == {("factor", (30, 64)), ("factor", (2, 64))}
    x, weight, _ = layer.inputs
    np.testing.assert_allclose(x.gradient, layer.gradient @ x.local, rtol=1e-5)
    np.testing.assert_allclose(weight.gradient, layer.gradient.T @ weight.local, rtol=1e-5)


def test_every_operation_can_be_explained() -> None:
    for sample in [s for s in SAMPLES if s.differentiable]:
        c = case(sample)
        variables = [v.detach().requires_grad_() for v in c.variables()]
        ys = [y for y in outputs(c(*variables)) if y.requires_grad and not y.dtype.is_complex]
        if not ys:
            continue
        total = inner(ys, ys)
        found = [p.edge for step in autograd.explain(total) for p in step.inputs]
        reached = [
            v
            for v, g in zip(
                variables, autograd.grad(total, variables, allow_unused=True), strict=True
            )
            if g is not None
        ]
        assert all(any(v is edge for edge in found) for v in reached), sample.label

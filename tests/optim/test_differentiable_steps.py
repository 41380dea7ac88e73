"""Rates for each weight, and steps that can be differentiated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from helpers import assert_close
from optim.weights import with_gradient

import chainrule
from chainrule import Tensor, optim
from chainrule.tensor import of_array


def weight(*values: float) -> Tensor:
    return chainrule.tensor(values, dtype=chainrule.float64, requires_grad=True)


# --- rates for each weight ------------------------------------------------------------------------


def bowl(w: Tensor) -> Tensor:
    """f = w1^2 + 5 w2^2 (O11)."""
    return w[0] ** 2 + 5 * w[1] ** 2


def test_a_rate_for_each_weight_reaches_the_minimum_in_one_step() -> None:
    """O11: with 1 / 2 and 1 / 10, the inverse curvatures; no common rate does that."""
    rates = chainrule.tensor([1 / 2, 1 / 10], dtype=chainrule.float64)
    w, v = weight(3.0, -2.0), weight(3.0, -2.0)
    for p in (w, v):
        bowl(p).backward()
    optim.SGD([w], lr=rates).step()
    assert w.tolist() == pytest.approx([0.0, 0.0], abs=1e-15)
    optim.SGD([v], lr=0.1).step()
    assert v.tolist() == pytest.approx([2.4, 0.0])


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "NAdam", "Rprop"])
def test_rates_in_a_list_are_those_of_optimizers_for_each(name: str) -> None:
    kind, values = getattr(optim, name), [(1.0, -2.0), (3.0,), (0.5, 4.0)]
    rates = [0.1, chainrule.tensor(0.2, dtype=chainrule.float64), chainrule.tensor([0.3, 0.4])]
    together, alone = [weight(*v) for v in values], [weight(*v) for v in values]
    optimizers = [kind(together, lr=rates)]
    optimizers += [
        kind([alone[0]], lr=0.1),
        kind([alone[1]], lr=0.2),
        kind([alone[2]], lr=rates[2]),
    ]
    for _ in range(4):
        for p in [*together, *alone]:
            p.grad = chainrule.cos(p.detach())
        for optimizer in optimizers:
            optimizer.step()
    assert_close([p.detach() for p in together], [p.detach() for p in alone], rtol=1e-14)


def test_a_rate_for_each_weight_is_its_own_weights_rate() -> None:
    """A tensor of rates does to each weight what its number does to one alone, in Adam too."""
    rates = [0.1, 0.2, 0.05]
    w = weight(1.0, 2.0, 3.0)
    single = [weight(x) for x in (1.0, 2.0, 3.0)]
    many = optim.Adam([w], lr=chainrule.tensor(rates, dtype=chainrule.float64))
    ones = [optim.Adam([p], lr=r) for p, r in zip(single, rates, strict=True)]
    for _ in range(5):
        for p in [w, *single]:
            p.grad = chainrule.cos(p.detach())
        for optimizer in [many, *ones]:
            optimizer.step()
    assert w.tolist() == pytest.approx([p.item() for p in single], rel=1e-14)


def test_rates_of_complex_weights() -> None:
    """They hold for the real and for the imaginary part."""
    values = np.array([1 + 2j, -1 + 0.5j])
    w, v = (chainrule.tensor(values).requires_grad_() for _ in range(2))
    for p in (w, v):
        p.grad = p.detach() * 0.5
    optim.Adam([w], lr=[chainrule.tensor([0.1, 0.1], dtype=chainrule.float64)]).step()
    optim.Adam([v], lr=0.1).step()
    assert_close(w.detach(), v.detach(), rtol=1e-14)


def test_a_rate_can_be_changed_between_steps() -> None:
    w = with_gradient(1.0)
    optimizer = optim.SGD([w], lr=chainrule.tensor(0.5, dtype=chainrule.float64))
    optimizer.step()
    optimizer.param_groups[0]["lr"].fill_(0.25)
    optimizer.step()
    assert w.item() == 0.25


# --- a step that can be differentiated ------------------------------------------------------------


DIFFERENTIABLE = {
    "SGD": {"momentum": 0.9, "weight_decay": 0.1},
    "Adam": {"weight_decay": 0.1},
    "AdamW": {"amsgrad": True},
    "Adamax": {},
    "NAdam": {},
    "RAdam": {"betas": (0.9, 0.5)},
    "Adagrad": {"lr_decay": 0.1},
    "Adadelta": {"eps": 1e-2},
    "RMSprop": {"centered": True, "momentum": 0.5},
    "Rprop": {},
}


def loss_after(name: str, start: Tensor, lr: Any, steps: int = 3) -> Tensor:
    """The loss after some steps, as a function of the first weights and the learning rate."""
    w = start * 1.0
    optimizer = getattr(optim, name)([w], lr=lr, differentiable=True, **DIFFERENTIABLE[name])
    for _ in range(steps):
        x = w.clone()
        (w.grad,) = chainrule.autograd.grad((x.sin() + x**4 / 8).sum(), [x], create_graph=True)
        optimizer.step()
    return (w**2 + w).sum()


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_derivative_of_the_loss_after_steps(name: str) -> None:
    """With respect to the first weights and the learning rate, against finite differences."""
    start, lr, h = weight(1.0, -0.6, 2.0), weight(0.1)[0].detach().requires_grad_(), 1e-6
    got = chainrule.autograd.grad(loss_after(name, start, lr), [start, lr])
    values, rate = start.detach(), 0.1

    def moved(by: Any) -> Tensor:
        return (values + by).requires_grad_()

    def slope(move: Callable[[float], Tensor]) -> float:
        return (move(h).item() - move(-h).item()) / (2 * h)

    for i in range(3):
        unit = chainrule.eye(3, dtype=chainrule.float64)[i]
        expected = slope(lambda t, unit=unit: loss_after(name, moved(t * unit), rate))
        assert got[0][i].item() == pytest.approx(expected, rel=2e-6, abs=1e-8)
    expected = slope(lambda t: loss_after(name, moved(0.0), rate + t))
    assert got[1].item() == pytest.approx(expected, rel=2e-6, abs=1e-8)
    assert abs(expected) > 1e-3


@pytest.mark.parametrize("name", [*DIFFERENTIABLE, "ASGD"])
def test_a_recorded_step_is_the_same_step(name: str) -> None:
    options = DIFFERENTIABLE.get(name, {})
    values, kind = np.random.default_rng(1).normal(size=(2, 3)), getattr(optim, name)
    w = of_array(values.copy()).requires_grad_() * 1.0
    v = of_array(values.copy()).requires_grad_()
    optimizers = kind([w], differentiable=True, **options), kind([v], **options)
    for _ in range(4):
        for p, optimizer in zip((w, v), optimizers, strict=True):
            p.grad = chainrule.cos(p.detach())
            with chainrule.no_grad():
                optimizer.step()
    assert w.requires_grad
    assert_close(w.detach(), v.detach(), rtol=1e-13)


@pytest.mark.parametrize("name", ["SGD", "Adam", "Rprop", "RMSprop"])
def test_a_recorded_step_of_complex_weights(name: str) -> None:
    r, kind = np.random.default_rng(1), getattr(optim, name)
    values = r.normal(size=(2, 3)) + 1j * r.normal(size=(2, 3))
    w, v = chainrule.tensor(values).requires_grad_() * 1.0, chainrule.tensor(values)
    rate = chainrule.tensor(0.1, dtype=chainrule.float64)
    optimizers = kind([w], lr=rate, differentiable=True), kind([v], lr=0.1)
    for step in range(4):
        for p, optimizer in zip((w, v), optimizers, strict=True):
            p.grad = p.detach() * (0.5 - step)
            optimizer.step()
    assert_close(w.detach(), v.detach(), rtol=1e-13)


def test_the_decay_and_betas_can_be_learned() -> None:
    """Settings in tensors take part in the derivative of a step, too."""

    def loss(decay: Tensor, beta: Tensor) -> Tensor:
        w = weight(1.0, -2.0) + 0 * decay
        betas = (beta, chainrule.tensor(0.99, dtype=chainrule.float64))
        optimizer = optim.Adam(
            [w],
            lr=0.1,
            betas=betas,
            weight_decay=decay,
            decoupled_weight_decay=True,
            differentiable=True,
        )
        for _ in range(2):
            w.grad = chainrule.cos(w.clone())
            optimizer.step()
        return (w * w).sum()

    settings = [weight(0.3)[0].detach().requires_grad_(), weight(0.8)[0].detach().requires_grad_()]
    assert chainrule.autograd.gradcheck(loss, settings)


def test_leaves_cannot_be_stepped_recorded() -> None:
    w = with_gradient(1.0)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        optim.SGD([w], differentiable=True).step()

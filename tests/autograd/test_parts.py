"""Gradients of parts of a tensor are added up in place: as many as there are, in any order."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import assert_close

import chainrule
from chainrule import Tensor, autograd, nn

ARRAY = np.random.default_rng(0).normal(size=(3, 4, 5))


def of_parts(x: Tensor) -> Tensor:
    left, right = x.chunk(2, 1)
    steps = [(x[:, t] ** 3).sum() for t in range(4)]
    others = (x[:, 0] ** 2).sum() + x[1:, 2:3].exp().sum() + (x[0] * x[-1, ::2, None].sum()).sum()
    return (left * right).sum() + others + sum(steps) + (x * x).sum()


def of_masks(x: Tensor) -> Tensor:
    """The same, parts taken by products with zeros and ones instead of views."""

    ones = chainrule.eye(4, dtype=chainrule.float64)
    at = [chainrule.einsum("nld,l->nd", x, ones[t]) for t in range(4)]
    left, right = chainrule.stack(at[:2], 1), chainrule.stack(at[2:], 1)
    rows = chainrule.eye(3, dtype=chainrule.float64)
    row = [chainrule.einsum("nld,n->ld", x, rows[i]) for i in range(3)]
    last = row[2].index_select(0, chainrule.tensor([0, 2]))
    others = (at[0] ** 2).sum() + sum(
        chainrule.einsum("nd,n->nd", at[2], r).exp().sum() for r in rows[1:]
    )
    others = others - 2 * 2 * 5  # exp(0) of the rows that are not there
    others = others + (row[0] * last.sum()).sum()
    return (left * right).sum() + others + sum((a**3).sum() for a in at) + (x * x).sum()


@pytest.mark.parametrize("leaf", [True, False])
def test_the_sum_of_the_gradients_of_all_parts(leaf: bool) -> None:
    found = []
    for f in (of_parts, of_masks):
        x = chainrule.tensor(ARRAY, requires_grad=True)
        f(x if leaf else 1.5 * x).backward()
        found.append(x.grad)
    assert_close(found[0], found[1])


def test_second_order() -> None:
    x = chainrule.tensor(ARRAY, requires_grad=True)
    assert autograd.gradgradcheck(of_parts, (x,))


def test_a_gradient_that_somebody_else_has_is_not_changed() -> None:
    x = chainrule.tensor(ARRAY, requires_grad=True)
    h = 2 * x
    parts = h[:, :2].sum() + h[:, 1:].sum()
    whole = h + 0.0  # its gradient goes on to h as it is
    seen: list[Tensor] = []
    whole.register_hook(seen.append)
    whole.retain_grad()
    (parts + (whole * whole).sum()).backward()
    assert_close(seen[0], (4 * x).detach())
    assert_close(whole.grad, (4 * x).detach())
    counts = chainrule.tensor([1.0, 2.0, 1.0, 1.0], dtype=chainrule.float64)[:, None]
    assert_close(x.grad, (2 * (4 * x + counts)).detach())


def test_a_graph_that_is_used_twice() -> None:
    x = chainrule.tensor(ARRAY, requires_grad=True)
    y = of_parts(x)
    (first,) = autograd.grad(y, x, retain_graph=True)
    kept = first.clone()
    (second,) = autograd.grad(y, x)
    assert_close(first, kept)
    assert_close(first, second)


def test_compiled_steps_have_the_same_bits() -> None:
    def steps(compiled: bool) -> list[bytes]:
        chainrule.manual_seed(0)
        model = nn.Linear(6, 8)
        optimizer = chainrule.optim.SGD(model.parameters(), lr=0.1)

        def step(x: Tensor) -> Tensor:
            optimizer.zero_grad()
            h = model(x).relu()
            left, right = h.chunk(2, 1)
            loss = (left * right).sum() + h[:, 0].sum() + (h[:, 3] ** 2).sum()
            loss.backward()
            optimizer.step()
            return loss

        run = chainrule.compile(step) if compiled else step
        x = chainrule.randn(5, 6)
        for _ in range(4):
            run(x)
        return [p.detach().numpy().tobytes() for p in model.parameters()]

    assert steps(True) == steps(False)

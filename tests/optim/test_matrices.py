"""Adafactor and Muon: PyTorch's steps, descent, files, what they refuse."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from helpers import assert_close

import chainrule
from chainrule import optim

SHAPES = [(4, 3), (3, 5), (6, 6)]
MAKERS: dict[str, Callable[[Any, Any], Any]] = {
    "adafactor": lambda o, params: o.Adafactor(params, lr=0.05),
    "adafactor, options": lambda o, params: o.Adafactor(
        params, lr=0.05, beta2_decay=-0.5, eps=(1e-3, 1e-2), d=1.5, weight_decay=0.1
    ),
    "adafactor up": lambda o, params: o.Adafactor(params, lr=0.02, maximize=True),
    "muon": lambda o, params: o.Muon(params, lr=0.05),
    "muon, options": lambda o, params: o.Muon(
        params, lr=0.05, momentum=0.5, nesterov=False, adjust_lr_fn="match_rms_adamw"
    ),
}
each = pytest.mark.parametrize("name", MAKERS)


def started(library: Any, name: str, more: tuple[tuple[int, ...], ...] = ()) -> tuple[Any, Any]:
    """Parameters and their optimizer, in either library."""
    r = np.random.default_rng(0)
    shapes = [*SHAPES, *more]
    params = [library.tensor(r.normal(size=s).tolist(), dtype=library.float64) for s in shapes]
    params = [p.requires_grad_() for p in params]
    return params, MAKERS[name](library.optim, params)


def steps(library: Any, params: Any, optimizer: Any, first: int, last: int) -> None:
    for step in range(first, last):
        r = np.random.default_rng(step)
        optimizer.zero_grad()
        for number, p in enumerate(params):
            if number != 1 or step % 3:
                noise = library.tensor(
                    r.normal(size=tuple(p.shape)).tolist(), dtype=library.float64
                )
                (p * p / 2 + p * noise).sum().backward()
        optimizer.step()


def as_array(tensor: Any) -> np.ndarray:
    return tensor.detach().numpy()


def assert_same(library: Any, a: Any, b: Any, rtol: float, atol: float) -> None:
    """Parameters, states and settings of pairs of parameters and optimizer."""
    for mine, other in zip(a[0], b[0], strict=True):
        assert_close(mine.detach(), as_array(other), rtol, atol)
    ours, theirs = a[1].state_dict(), b[1].state_dict()
    assert ours["param_groups"] == theirs["param_groups"]
    for number, state in theirs["state"].items():
        assert set(ours["state"][number]) == set(state)
        for key, value in state.items():
            assert_close(ours["state"][number][key], as_array(value), rtol, atol)


@each
def test_twenty_steps_as_in_pytorch(name: str) -> None:
    """Muon's directions are rounded to bfloat16 there."""
    torch = pytest.importorskip("torch")
    more: tuple[tuple[int, ...], ...] = () if "muon" in name else ((), (7,), (2, 3, 4))
    ours, theirs = started(chainrule, name, more), started(torch, name, more)
    for library, run in ((chainrule, ours), (torch, theirs)):
        steps(library, *run, 0, 20)
    rtol, atol = (0.0, 0.02) if "muon" in name else (1e-9, 1e-11)
    assert_same(torch, ours, theirs, rtol, atol)
    moved = [
        abs(as_array(p) - as_array(q)).max()
        for p, q in zip(ours[0], started(chainrule, name, more)[0], strict=True)
    ]
    assert min(moved) > 0.05


@each
def test_state_of_pytorch_is_continued(name: str) -> None:
    torch = pytest.importorskip("torch")
    params, optimizer = started(torch, name)
    steps(torch, params, optimizer, 0, 5)
    ours = started(chainrule, name)
    ours[1].load_state_dict(optimizer.state_dict())
    for p, q in zip(ours[0], params, strict=True):
        p.data = chainrule.from_numpy(as_array(q).copy())
    assert_same(torch, ours, (params, optimizer), 1e-12, 0)


@each
def test_the_loss_falls_or_grows(name: str) -> None:
    params, optimizer = started(chainrule, name)
    sizes = []
    for _ in range(2):
        sizes.append(sum(float((p * p).sum()) for p in params))
        for _ in range(40):
            optimizer.zero_grad()
            chainrule.stack([(p * p).sum() for p in params]).sum().backward()
            optimizer.step()
    assert sizes[1] > 1.2 * sizes[0] if "up" in name else sizes[1] < 0.5 * sizes[0]


@each
def test_a_saved_run_goes_on(name: str) -> None:
    params, optimizer = started(chainrule, name)
    steps(chainrule, params, optimizer, 0, 4)
    state, values = copy.deepcopy(optimizer.state_dict()), [p.detach().clone() for p in params]
    steps(chainrule, params, optimizer, 4, 8)
    again = started(chainrule, name)
    for p, value in zip(again[0], values, strict=True):
        p.data = value
    again[1].load_state_dict(state)
    steps(chainrule, *again, 4, 8)
    for p, q in zip(params, again[0], strict=True):
        assert p.tolist() == q.tolist()


def test_muon_steps_alike_in_all_directions() -> None:
    """The singular values of a step are near 1, whatever those of the gradient are."""
    chainrule.manual_seed(0)
    w = chainrule.zeros(6, 4, dtype=chainrule.float64).requires_grad_()
    w.grad = chainrule.randn(6, 4, dtype=chainrule.float64)
    optim.Muon([w], lr=1.0, weight_decay=0.0, ns_steps=8).step()
    values = np.linalg.svd(w.detach().numpy())[1] / np.sqrt(6 / 4)
    assert values.min() > 0.6
    assert values.max() < 1.3


def test_empty_matrices_are_left_alone() -> None:
    for make in (optim.Adafactor, optim.Muon):
        w = chainrule.zeros(0, 3, requires_grad=True)
        w.grad = chainrule.zeros(0, 3)
        make([w]).step()
        assert w.shape == (0, 3)


W = chainrule.zeros(2, 2, requires_grad=True)
REFUSED: list[tuple[Callable[[], Any], str]] = [
    (lambda: optim.Muon([chainrule.zeros(2, requires_grad=True)]), "only supports 2D parameters"),
    (lambda: optim.Muon([W], adjust_lr_fn="none"), "function none is not supported"),
    (lambda: optim.Muon([W], ns_steps=100), "less than 100"),
    (lambda: optim.Muon([W], ns_coefficients=(1.0, 2.0)), "exactly 3 values"),
    (lambda: optim.Muon([W], momentum=-1), "invalid momentum: -1"),
    (lambda: optim.Adafactor([W], beta2_decay=0.1), "invalid beta2_decay: 0.1"),
    (lambda: optim.Adafactor([W], d=0.5), "invalid d: 0.5"),
    (lambda: optim.Adafactor([W], eps=(-1, 1)), "invalid eps: -1"),
]


@pytest.mark.parametrize(("call", "match"), REFUSED)
def test_refused(call: Callable[[], Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        call()


@pytest.mark.parametrize("make", [optim.Adafactor, optim.Muon])
def test_complex_numbers_are_refused(make: Any) -> None:
    w = chainrule.zeros(2, 2, dtype=chainrule.complex64).requires_grad_()
    w.grad = chainrule.ones(2, 2, dtype=chainrule.complex64)
    with pytest.raises(RuntimeError, match="does not support complex parameters"):
        make([w]).step()

"""Changes in place of large tensors: the memory is moved where nobody can tell, else written."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from helpers import assert_close

import chainrule
from chainrule import Tensor, nn
from chainrule.nn import functional as F
from chainrule.ops.core import inplace

SIZE = 1 << 16  # float64: above the size from which memory is moved
CHANGES: dict[str, Callable[[Tensor], Any]] = {
    "relu": lambda x: F.relu(x, inplace=True),
    "leaky_relu": lambda x: F.leaky_relu(x, 0.1, inplace=True),
    "hardtanh": lambda x: F.hardtanh(x, inplace=True),
    "silu": lambda x: F.silu(x, inplace=True),
    "elu": lambda x: F.elu(x, inplace=True),
    "sigmoid_": lambda x: x.sigmoid_(),
    "mul_": lambda x: x.mul_(x),
    "exp_ twice": lambda x: x.clamp_(-1, 1).exp_().exp_(),
}


def numbers(size: int = SIZE) -> Tensor:
    return chainrule.tensor(np.random.default_rng(0).normal(size=size), requires_grad=True)


def gradient(change: Callable[[Tensor], Any]) -> tuple[Tensor, Tensor]:
    x = numbers()
    h = x * 1.5
    change(h)
    out = (h * h).sum()
    (g,) = chainrule.autograd.grad(out, x)
    return h.detach(), g


@pytest.mark.parametrize("name", CHANGES)
def test_values_and_gradients_as_where_it_is_written(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved = gradient(CHANGES[name])
    monkeypatch.setattr(inplace, "LARGE", 1 << 60)
    written = gradient(CHANGES[name])
    for a, b in zip(moved, written, strict=True):
        assert_close(a, b)


@pytest.mark.parametrize("grad", [True, False])
def test_memory_is_moved_where_it_is_seen_by_nobody(grad: bool) -> None:
    with chainrule.set_grad_enabled(grad):
        h = numbers() * 1.5
        before = h.data_ptr()
        other = chainrule.empty(SIZE)  # nothing else takes the place of the result
        F.relu(h, inplace=True)
        assert h.data_ptr() != before
        del other


ALIASES: dict[str, Callable[[Tensor], Any]] = {
    "view": lambda h: h[1:],
    "view of a view": lambda h: h.view(2, -1)[1][3:],
    "detached": lambda h: h.detach(),
    "data": lambda h: h.data,
    "array": lambda h: h.detach().numpy(),
    "part of an array": lambda h: h.detach().numpy()[5:],
}


@pytest.mark.parametrize("name", ALIASES)
def test_who_shares_the_memory_sees_the_change(name: str) -> None:
    h = numbers() * 1.5
    shared = ALIASES[name](h)
    before = h.data_ptr()
    F.relu(h, inplace=True)
    assert h.data_ptr() == before
    values = shared.detach().numpy() if isinstance(shared, Tensor) else shared
    assert values.min() == 0
    assert h.min() == 0


def test_a_value_that_others_have_is_copied() -> None:
    h, other = numbers() * 1.5, numbers() * 2.0
    h.copy_(other)
    assert h.data_ptr() != other.data_ptr()
    with chainrule.no_grad():
        h.zero_()
    assert other.detach().abs().max() > 0


def test_what_was_saved_before_is_known_to_be_changed() -> None:
    x = numbers()
    h = x * 1.5
    y = h * h
    F.relu(h, inplace=True)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_memory_that_belongs_to_somebody_else_is_written() -> None:
    array = np.random.default_rng(0).normal(size=SIZE)
    x = chainrule.from_numpy(array)
    F.relu(x, inplace=True)
    assert array.min() == 0
    x = chainrule.from_numpy(np.frombuffer(bytearray(8 * SIZE)))
    before = x.data_ptr()
    F.elu(x, inplace=True)
    assert x.data_ptr() == before


def test_versions_grow() -> None:
    h = numbers() * 1.5
    seen = [h._version]
    for _ in range(3):
        F.relu(h, inplace=True)
        seen.append(h._version)
    assert seen == sorted(set(seen))


def test_a_network_with_changes_in_place_holds_no_more_than_without() -> None:
    def held(inplace: bool) -> int:
        layers = nn.Sequential(nn.BatchNorm1d(64), nn.ReLU(inplace), nn.Linear(64, 1))
        x = chainrule.randn(4096, 64, requires_grad=True)
        layers(x * 1)
        tracemalloc.start()
        out = layers(x * 1)
        found = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        assert out.requires_grad
        return found

    assert held(True) < 1.02 * held(False)

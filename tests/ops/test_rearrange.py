"""Rearranging beyond the records: views, writing through them, wrong calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from helpers import assert_close

import chainrule
from chainrule import Tensor


def base() -> Tensor:
    return chainrule.arange(24.0).reshape(2, 3, 4)


VIEWS: dict[str, Callable[[Tensor], Any]] = {
    "split": lambda x: x.split(2, 2)[1],
    "chunk": lambda x: x.chunk(2, -1)[0],
    "tensor_split": lambda x: x.tensor_split(3, 2)[1],
    "unbind": lambda x: x.unbind(1)[2],
    "diagonal": lambda x: x.diagonal(1, 1, 2),
    "unfold": lambda x: x.unfold(2, 2, 2),
    "unflatten": lambda x: x.unflatten(2, (2, 2)),
    "T": lambda x: x[0].T,
    "mT": lambda x: x.mT,
    "moveaxis": lambda x: x.moveaxis(0, 2),
    "view_as": lambda x: x.view_as(chainrule.ones(6, 4)),
    "ravel": lambda x: x.ravel(),
}
COPIES: dict[str, Callable[[Tensor], Any]] = {
    "flip": lambda x: x.flip(0),
    "roll": lambda x: x.roll(0, 1),
    "rot90": lambda x: x.rot90(4),
    "repeat": lambda x: x.repeat(1, 1, 1),
    "tile": lambda x: x.tile(1),
    "diag": lambda x: x[0].diag(),
    "tril": lambda x: x.tril(5),
    "pad": lambda x: chainrule.pad(x, (0, 0)),
    "block_diag": lambda x: chainrule.block_diag(x[0]),
}


@pytest.mark.parametrize("name", VIEWS)
def test_views_share_memory_and_history(name: str) -> None:
    """Writing into a view changes its base, and the gradient knows."""
    x = base()
    view = VIEWS[name](x)
    assert np.shares_memory(view.numpy(), x.numpy())

    leaf = chainrule.ones(2, 3, 4, requires_grad=True)
    y = leaf * 2
    VIEWS[name](y).mul_(5)
    y.sum().backward()
    shown = chainrule.zeros(2, 3, 4)
    VIEWS[name](shown).fill_(1)
    assert_close(leaf.grad, 2 + 8 * shown.numpy())


@pytest.mark.parametrize("name", COPIES)
def test_copies_do_not_share_memory(name: str) -> None:
    x = base()
    assert not np.shares_memory(COPIES[name](x).numpy(), x.numpy())


def test_triangles_in_place() -> None:
    x = chainrule.ones(2, 2)
    assert x.tril_() is x
    assert x.tolist() == [[1, 0], [1, 1]]
    assert x.triu_().tolist() == [[1, 0], [0, 1]]


def test_types_are_kept() -> None:
    for dtype in (chainrule.bool, chainrule.int32, chainrule.float16):
        x = chainrule.ones(2, 3, dtype=dtype)
        for out in (
            x.tril(),
            x.flip(0),
            x.repeat(2, 1),
            x.roll(1),
            x.diagonal(),
            chainrule.diag_embed(x),
            chainrule.pad(x, (1, 1)),
            chainrule.pad(x, (1, 1), value=1),
            chainrule.pad(x, (1, 1), mode="reflect"),
            chainrule.block_diag(x, x),
        ):
            assert out.dtype is dtype
    assert chainrule.pad(chainrule.ones(2, dtype=chainrule.int64), (1, 1), value=3).tolist() == [
        3,
        1,
        1,
        3,
    ]
    mixed = chainrule.block_diag(chainrule.tensor([[1]]), chainrule.tensor([[2.5]]))
    assert mixed.dtype is chainrule.float32


def test_transposes_as_properties() -> None:
    x = base()
    matrix = x[0]
    assert_close(matrix.T, matrix.numpy().T)
    assert_close(x.T, x.numpy().T)
    assert_close(x.mT, np.swapaxes(x.numpy(), 1, 2))
    assert chainrule.ones(3).T.shape == (3,)
    z = chainrule.tensor([[1 + 1j, 2]])
    assert z.H.tolist() == z.mH.tolist() == [[1 - 1j], [2 + 0j]]
    with pytest.raises(RuntimeError, match="mH"):
        _ = x.H
    with pytest.raises(RuntimeError, match="1-D"):
        _ = chainrule.ones(3).mT


def test_infinities_survive() -> None:
    """Compositions must not multiply what they leave out by zero."""
    x = chainrule.full((2, 2), float("inf"))
    assert x.tril().tolist() == [[float("inf"), 0], [float("inf"), float("inf")]]
    assert chainrule.diagonal_scatter(x, chainrule.ones(2)).tolist() == [
        [1, float("inf")],
        [float("inf"), 1],
    ]
    assert chainrule.pad(x, (1, 0), value=2.0)[0].tolist() == [2, float("inf"), float("inf")]


x, v, s = base(), chainrule.arange(4.0), chainrule.tensor(1.0)
m = x[0]
REFUSED: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: m.unflatten(1, (3, 2)), RuntimeError, "multiply up to the size of dim 1"),
    (lambda: m.unflatten(1, (-1, -1)), RuntimeError, "unflatten"),
    (lambda: m.unflatten(3, (2, 2)), IndexError, "out of range"),
    (lambda: m.unflatten(1, ()), RuntimeError, "non-empty"),
    (lambda: m.repeat(2), RuntimeError, "smaller than number of dimensions"),
    (lambda: m.repeat(-1, 2), RuntimeError, "negative"),
    (lambda: m.repeat(), TypeError, "repeats"),
    (lambda: m.repeat_interleave(chainrule.tensor([1, 2]), 0), RuntimeError, "same size as input"),
    (lambda: m.repeat_interleave(chainrule.tensor([1, -2, 1]), 0), RuntimeError, "negative"),
    (lambda: m.repeat_interleave(chainrule.ones(3), 0), NotImplementedError, "int64"),
    (
        lambda: m.repeat_interleave(chainrule.tensor([1, 2, 1]), 0, output_size=5),
        RuntimeError,
        "sum to 4",
    ),
    (lambda: m.repeat_interleave(-1), RuntimeError, "non-negative"),
    (lambda: chainrule.hstack(()), RuntimeError, "non-empty"),
    (lambda: m.split([1, 1], 1), RuntimeError, "sum exactly to 4"),
    (lambda: m.split(-1), RuntimeError, "positive"),
    (lambda: m.split(0), RuntimeError, "positive"),
    (lambda: s.split(1), RuntimeError, "1-dimensional"),
    (lambda: v.chunk(0), RuntimeError, "greater than 0"),
    (lambda: v.tensor_split(0), RuntimeError, "larger than 0"),
    (lambda: m.hsplit(3), RuntimeError, "not divisible by 3"),
    (lambda: v.vsplit(2), RuntimeError, "at least 2"),
    (lambda: m.dsplit(2), RuntimeError, "at least 3"),
    (lambda: s.unbind(), IndexError, "no dimensions"),
    (lambda: m.flip(0, 0), RuntimeError, "multiple times"),
    (lambda: m.flip(2), IndexError, "out of range"),
    (lambda: v.fliplr(), RuntimeError, "2-d"),
    (lambda: s.flipud(), RuntimeError, "1-d"),
    (lambda: m.roll((1, 2), (0,)), RuntimeError, "align"),
    (lambda: m.roll((1, 2)), RuntimeError, "align"),
    (lambda: s.roll(1, 0), IndexError, "no dimensions"),
    (lambda: m.rot90(1, (0, 0)), RuntimeError, "different"),
    (lambda: m.rot90(1, (0,)), RuntimeError, "== 2"),
    (lambda: v.rot90(), RuntimeError, ">= 2"),
    (lambda: x.diag(), RuntimeError, "1D or 2D"),
    (lambda: x.diagonal(0, 1, 1), RuntimeError, "identical"),
    (lambda: v.diagonal(), IndexError, "out of range"),
    (lambda: s.diag_embed(), IndexError, "out of range"),
    (lambda: m.diagonal_scatter(chainrule.ones(2)), RuntimeError, "size of the diagonal"),
    (lambda: v.tril(), RuntimeError, "at least 2 dimensions"),
    (lambda: chainrule.block_diag(x), RuntimeError, "2 or fewer"),
    (lambda: chainrule.meshgrid(v, m), RuntimeError, "0D or 1D"),
    (lambda: chainrule.meshgrid(v, v, indexing="zz"), RuntimeError, "indexing"),
    (lambda: chainrule.meshgrid(v, v.double()), RuntimeError, "same dtype"),
    (lambda: chainrule.meshgrid(), RuntimeError, "non-empty"),
    (lambda: m.unfold(0, 5, 1), RuntimeError, "maximum size"),
    (lambda: m.unfold(0, 2, 0), RuntimeError, "step > 0"),
    (lambda: x.t(), RuntimeError, "<= 2 dimensions"),
    (lambda: chainrule.broadcast_to(v, (2, 3)), RuntimeError, "expanded size"),
    (lambda: chainrule.cartesian_prod(m), RuntimeError, "1D"),
    (lambda: chainrule.combinations(m), RuntimeError, "1D"),
    (lambda: chainrule.combinations(v, -1), RuntimeError, "non-negative"),
    (lambda: chainrule.pad(m, (1,)), RuntimeError, "divisible by 2"),
    (lambda: chainrule.pad(m, (1,) * 6), RuntimeError, "two times the input dimension"),
    (lambda: chainrule.pad(m, (-3, -3)), RuntimeError, "negative size"),
    (lambda: chainrule.pad(m, (4, 0), mode="reflect"), RuntimeError, "less than"),
    (lambda: chainrule.pad(m, (5, 0), mode="circular"), RuntimeError, "more than once"),
    (lambda: chainrule.pad(v, (1, 1), mode="reflect"), NotImplementedError, "1D tensor"),
    (lambda: chainrule.pad(m, (1, 1), mode="mirror"), NotImplementedError, "mode 'mirror'"),
    (lambda: chainrule.pad(m, (1, 1), mode="reflect", value=1.0), RuntimeError, "value"),
]


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_refusals(number: int) -> None:
    call, error, message = REFUSED[number]
    with pytest.raises(error, match=message):
        call()

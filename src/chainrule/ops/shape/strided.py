"""The memory of a tensor under other strides, and complex numbers as pairs of real ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from chainrule.backend import K
from chainrule.graph import Box
from chainrule.ops.core.synonyms import numpy_names, takes_out
from chainrule.ops.core.arguments import checked_size, placed_like, tensor_argument
from chainrule.ops.core.primitive import Linear, Op
from chainrule.ops.elementwise.complex_numbers import complex
from chainrule.ops.elementwise.functions import cos, sin
from chainrule.ops.index.reading import select
from chainrule.ops.index.replacing import index_put
from chainrule.ops.shape.views import movedim, reshape
from chainrule.tensor import Tensor, of_array
from chainrule.typing import Shape, V

__all__ = [
    "as_strided",
    "as_strided_scatter",
    "polar",
    "select_scatter",
    "slice_scatter",
    "view_as_complex",
    "view_as_real",
]
METHODS = ("as_strided", "as_strided_scatter", "select_scatter", "slice_scatter")
INPLACE: tuple[str, ...] = ()
INPLACE_VIEWS = ("as_strided",)


def _in_batch(
    op: Op, size: int, values: Sequence[Tensor], mapped: Sequence[bool], params: dict[str, Any]
) -> Tensor:
    """vmap: the members of the batch lie one after the other."""
    p = dict(params)
    if "shape" in p:
        p["shape"] = (size, *p["shape"])
        member = math.prod(params["shape"])
    else:
        member = math.prod(values[0].shape[1:])
    return op(values[0], **p | {"size": (size, *p["size"]), "stride": (member, *p["stride"])})


_as_strided = Linear(
    "as_strided",
    lambda g, shape_in, **places: _as_strided_place(g, shape=tuple(shape_in), **places),
    batch=_in_batch,
    is_view=True,
    may_copy=True,
)
_as_strided_place = Linear(
    "as_strided_place",
    lambda g, shape_in, shape, **places: _as_strided(g, **places),
    batch=_in_batch,
)


def as_strided(
    input: Tensor, size: Shape, stride: Shape, storage_offset: int | None = None
) -> Tensor:
    """A view of the memory of ``input`` in which element (i, j, ...) of the given size lies at
    storage_offset + i stride[0] + j stride[1] + ...

    >>> import chainrule
    >>> chainrule.arange(5).as_strided((3, 3), (1, 1))
    tensor([[0, 1, 2],
            [1, 2, 3],
            [2, 3, 4]])
    """
    sizes, steps = checked_size("as_strided", size), checked_size("as_strided", stride)
    if len(sizes) != len(steps):
        raise RuntimeError(
            f"as_strided: mismatch in length of strides and shape: {steps} and {sizes}"
        )
    memory, start = _memory_of(input)
    offset = start if storage_offset is None else int(storage_offset)
    last = offset + sum((n - 1) * s for n, s in zip(sizes, steps, strict=True))
    if 0 not in sizes and not 0 <= last < memory.numel():
        raise RuntimeError(
            f"as_strided: setStorage: sizes {sizes}, strides {steps}, storage offset {offset} are "
            f"out of bounds for storage of {memory.numel()} elements"
        )
    return _as_strided(memory, size=sizes, stride=steps, offset=offset)


def _memory_of(input: Tensor) -> tuple[Tensor, int]:
    """The tensor whose elements lie one after the other where those of ``input`` are, and where
    its own begin there."""
    if input._view is None or isinstance(input.array, Box):
        return input, 0
    base = input._view.base
    if not K.is_contiguous(base.array) or base.array.dtype != input.array.dtype:
        return input, 0
    return base, K.offset_between(base.array, input.array)


def _replaced(op: str, input: Tensor, shown: Tensor, src: Tensor) -> Tensor:
    """``input`` with ``src`` in place of the elements of which these are the numbers."""
    if tuple(src.shape) != tuple(shown.shape):
        raise RuntimeError(
            f"{op}: expected src to have a size equal to the slice of self, {tuple(shown.shape)}; "
            f"it has {tuple(src.shape)}"
        )
    flat = index_put(reshape(input, (-1,)), (reshape(shown, (-1,)),), reshape(src, (-1,)))
    return reshape(flat, tuple(input.shape))


def _numbers(input: Tensor) -> Tensor:
    return placed_like(
        input, of_array(K.arange(0, input.numel(), 1, "int64").reshape(tuple(input.shape)))
    )


def as_strided_scatter(
    input: Tensor, src: Tensor, size: Shape, stride: Shape, storage_offset: int | None = None
) -> Tensor:
    """A copy of ``input`` with ``src`` where :func:`as_strided` of these arguments looks."""
    shown = as_strided(_numbers(input), size, stride, storage_offset)
    return _replaced("as_strided_scatter", input, shown, src)


@numpy_names
def select_scatter(input: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    """A copy of ``input`` with ``src`` as its slice ``index`` along a dimension.

    >>> import chainrule
    >>> chainrule.zeros(2, 2).select_scatter(chainrule.ones(2), 0, 1)
    tensor([[0., 0.],
            [1., 1.]])
    """
    shown = select(_numbers(input), dim, index)
    return _replaced("select_scatter", input, shown, src)


@numpy_names
def slice_scatter(
    input: Tensor,
    src: Tensor,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> Tensor:
    """A copy of ``input`` with ``src`` in ``start:end:step`` along a dimension."""
    shown = slice_view_of(_numbers(input), dim, start, end, step)
    return _replaced("slice_scatter", input, shown, src)


@numpy_names
def slice_view_of(
    input: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """A view of ``start:end:step`` along a dimension."""
    return movedim(movedim(input, dim, 0)[start:end:step], 0, dim)


# --- complex numbers as pairs ---------------------------------------------------------------------


class Pairs(Linear):
    """Linear over the real numbers: its transpose needs no conjugation around it."""

    def on_complex_numbers(self) -> Op:
        return self


_view_as_real = Pairs("view_as_real", lambda g, shape_in: _view_as_complex(g), is_view=True)
_view_as_complex = Pairs(
    "view_as_complex", lambda g, shape_in: _view_as_real(g), is_view=True, may_copy=True
)


def view_as_real(input: V) -> V:
    """Complex numbers as pairs of real ones, in a new last dimension of size 2.

    >>> import chainrule
    >>> chainrule.view_as_real(chainrule.tensor([1 + 2j]))
    tensor([[1., 2.]])
    """
    if not isinstance(input, Tensor) or not input.is_complex():
        raise RuntimeError(
            f"view_as_real: is only supported for complex tensors, got {input.dtype}"
        )
    return _view_as_real(input)


def view_as_complex(input: V) -> V:
    """Pairs of real numbers, in a last dimension of size 2, as complex ones.

    >>> import chainrule
    >>> chainrule.view_as_complex(chainrule.tensor([[1.0, 2.0]]))
    tensor([1.+2.j])
    """
    if not isinstance(input, Tensor) or input.array.dtype.kind != "f" or input.itemsize < 4:
        raise RuntimeError(
            f"view_as_complex: is only supported for float32 and float64 tensors, got {input.dtype}"
        )
    if not input.ndim or input.shape[-1] != 2:
        raise RuntimeError(
            f"view_as_complex: tensor must have a last dimension of size 2, got shape "
            f"{tuple(input.shape)}"
        )
    if not isinstance(input.array, Box) and input.numel() and input.stride()[-1] != 1:
        raise RuntimeError(
            "view_as_complex: tensor must have a last dimension with stride 1, got "
            f"{input.stride()}; use .contiguous() first"
        )
    return _view_as_complex(input)


@takes_out()
def polar(abs: Tensor, angle: Tensor) -> Tensor:
    """Complex numbers by their absolute values and angles.

    >>> import chainrule
    >>> chainrule.polar(chainrule.tensor([2.0]), chainrule.tensor([0.0]))
    tensor([2.+0.j])
    """
    abs, angle = tensor_argument("polar", abs), tensor_argument("polar", angle)
    return complex(abs * cos(angle), abs * sin(angle))

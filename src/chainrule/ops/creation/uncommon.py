"""Tensors that few programs make: with strides of their own, over memory of others, of powers."""

from __future__ import annotations

import builtins
import warnings
from collections.abc import Sequence

from chainrule.ops.core.synonyms import takes_out
from chainrule.backend import K, dtypes
from chainrule.ops.core.arguments import (
    placed_like,
    check_device,
    checked_size,
    float_type,
    made,
    number,
    placed,
    tensor_argument,
    whole,
)
from chainrule.ops.core.promotion import cast
from chainrule.ops.elementwise.logic import where
from chainrule.ops.elementwise.options import sub
from chainrule.ops.index.assignment import as_number
from chainrule.ops.index.reading import nonzero
from chainrule.ops.reduce.scan import cumprod
from chainrule.ops.shape.padding import pad as padded
from chainrule.ops.shape.rearrange import flip
from chainrule.ops.shape.stacking import cat
from chainrule.ops.shape.views import expand, unsqueeze
from chainrule.tensor import Tensor, of_array
from chainrule.typing import Device, DType, Number, Real, Shape

__all__ = [
    "constant_pad_nd", "empty_permuted", "empty_strided", "fill", "frombuffer", "nonzero_static",
    "range", "rsub", "vander",
]  # fmt: skip
METHODS = ("new_empty_strided", "nonzero_static")
INPLACE: tuple[str, ...] = ()

# --- memory ---------------------------------------------------------------------------------------


@placed
def empty_strided(
    size: Shape,
    stride: Shape,
    *,
    dtype: DType | None = None,
    device: Device | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """An uninitialized tensor whose elements lie ``stride`` apart along each dimension.

    >>> import chainrule
    >>> chainrule.empty_strided((2, 3), (1, 2)).stride()
    (1, 2)
    """
    check_device("empty_strided", device)
    sizes, steps = checked_size("empty_strided", size), checked_size("empty_strided", stride)
    if len(sizes) != len(steps):
        raise RuntimeError(
            f"empty_strided: dimensionality of sizes {sizes} must match that of strides {steps}"
        )
    last = sum((n - 1) * s for n, s in zip(sizes, steps, strict=True))
    memory = K.empty((0 if 0 in sizes else last + 1,), float_type(dtype))
    return made(K.as_strided(memory, sizes, steps, 0), requires_grad)


@placed
def new_empty_strided(
    input: Tensor,
    size: Shape,
    stride: Shape,
    *,
    dtype: DType | None = None,
    device: Device | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """:func:`empty_strided` in the type of this tensor."""
    d = input.dtype if dtype is None else dtype
    return empty_strided(size, stride, dtype=d, device=device, requires_grad=requires_grad)


@placed
def empty_permuted(
    size: Shape,
    physical_layout: Sequence[int],
    *,
    dtype: DType | None = None,
    device: Device | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """An uninitialized tensor whose dimensions lie in memory in the order ``physical_layout``.

    >>> import chainrule
    >>> chainrule.empty_permuted((2, 3, 4), (0, 2, 1)).stride()
    (12, 1, 3)
    """
    sizes, order = checked_size("empty_permuted", size), tuple(physical_layout)
    if sorted(order) != list(builtins.range(len(sizes))):
        raise RuntimeError(
            f"empty_permuted: physical_layout {order} must name each dimension of {sizes} once"
        )
    steps, step = [0] * len(sizes), 1
    for d in reversed(order):
        steps[d], step = step, step * sizes[d]
    return empty_strided(sizes, steps, dtype=dtype, device=device, requires_grad=requires_grad)


def frombuffer(
    buffer: object, *, dtype: DType, count: int = -1, offset: int = 0, requires_grad: bool = False
) -> Tensor:
    """A vector over the memory of a buffer, from byte ``offset`` on; a copy, if that may not be
    written.

    >>> import chainrule
    >>> chainrule.frombuffer(bytearray([1, 0, 2, 0]), dtype=chainrule.int16)
    tensor([1, 2], dtype=chainrule.int16)
    """
    return made(K.from_buffer(buffer, dtypes.to_array_dtype(dtype), count, offset), requires_grad)


# --- numbers --------------------------------------------------------------------------------------


@placed
@takes_out(typed=True)
def range(
    start: Real,
    end: Real | None = None,
    step: Real = 1,
    *,
    dtype: DType | None = None,
    device: Device | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """The numbers from ``start`` (0) up to, with, ``end``: deprecated, as in PyTorch."""
    warnings.warn(
        "range is deprecated, because its behavior is inconsistent with Python's range builtin: "
        "it includes the end; use arange",
        stacklevel=2,
    )
    check_device("range", device)
    first, last = (0, start) if end is None else (start, end)
    a, b, by = [number("range", "bound", v) for v in (first, last, step)]
    if by == 0:
        raise RuntimeError("range: step must be nonzero")
    if (b - a) * by < 0:
        raise RuntimeError(
            f"range: upper bound and lower bound inconsistent with step sign: {a} to {b} by {by}"
        )
    d = float_type(dtype)
    if d.kind in "iu":
        count, a, by = int((int(b) - int(a)) / by) + 1, int(a), int(by)
    else:
        count = int((b - a) / by) + 1
    return made((K.arange(0, count, 1, "int64") * by + a).astype(d), requires_grad)


def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:
    """The powers of a vector as columns, from x^(N-1) down to x^0, or upwards if ``increasing``.

    >>> import chainrule
    >>> chainrule.vander(chainrule.tensor([2, 3]))
    tensor([[2, 1],
            [3, 1]])
    """
    if tensor_argument("vander", x).ndim != 1:
        raise RuntimeError(
            f"vander: x must be a one-dimensional tensor, got shape {tuple(x.shape)}"
        )
    n = x.shape[0] if N is None else whole("vander", "N", N)
    if n < 0:
        raise RuntimeError(f"vander: N must be non-negative, got {n}")
    kind = dtypes.int64 if x.dtype.category <= dtypes.INTEGER else x.dtype
    ones = placed_like(x, of_array(K.ones((x.shape[0], min(n, 1)), kind.array_dtype)))
    rows = expand(unsqueeze(cast(x, kind), -1), (x.shape[0], max(n - 1, 0)))
    out = cat([ones, cumprod(rows, -1)], -1)
    return out if increasing else flip(out, 1)


# --- other names ----------------------------------------------------------------------------------


def rsub(input: Tensor, other: Tensor | Number, *, alpha: Number = 1) -> Tensor:
    """other - alpha * input"""
    return sub(other, input, alpha=alpha)


def fill(input: Tensor, value: Number | Tensor) -> Tensor:
    """One number everywhere, in the shape and type of ``input``."""
    everywhere = placed_like(input, of_array(K.ones(tuple(input.shape), "bool")))
    return where(everywhere, as_number("fill", input, value), input)


def constant_pad_nd(input: Tensor, pad: Shape, value: float = 0) -> Tensor:
    """:func:`pad` with one number."""
    return padded(input, pad, value=value)


def nonzero_static(input: Tensor, *, size: int, fill_value: int = -1) -> Tensor:
    """:func:`nonzero` in ``size`` rows: the first ones, or filled up with ``fill_value``.

    >>> import chainrule
    >>> chainrule.nonzero_static(chainrule.tensor([0, 5]), size=2)
    tensor([[ 1],
            [-1]])
    """
    rows = whole("nonzero_static", "size", size)
    if rows < 0:
        raise RuntimeError(f"nonzero_static: size must be non-negative, got {rows}")
    found = nonzero(input)[:rows]
    return padded(found, (0, 0, 0, rows - found.shape[0]), value=fill_value)

"""Creation: tensors of a given size, filled with one value or by a pattern."""

from __future__ import annotations

import math
from typing import Any, Unpack

from chainrule.ops.core.synonyms import takes_out
from chainrule.backend import K, dtypes
from chainrule.ops.core.arguments import (
    arranged,
    check_device,
    checked_size,
    float_type,
    made,
    number,
    placed,
    placed_like,
    size_argument,
    tensor_argument,
    type_of_number,
    whole,
)
from chainrule.graph import Box
from chainrule.tensor import Tensor, of_array
from chainrule.typing import Array, DType, Device, LikeMemory, Memory, Number, Real, Shape

__all__ = [
    "arange", "empty", "empty_like", "eye", "full", "full_like", "linspace", "logspace", "ones",
    "ones_like", "scalar_tensor", "tril_indices", "triu_indices", "zeros", "zeros_like",
]  # fmt: skip
METHODS: tuple[str, ...] = ()
INPLACE: tuple[str, ...] = ()

# --- filled ---------------------------------------------------------------------------------------


@placed
@takes_out(typed=True)
def zeros(
    *sizes: int | Shape,
    size: Shape | None = None,
    dtype: DType | None = None,
    device: Device | None = None,
    requires_grad: bool = False,
    **memory: Unpack[Memory],
) -> Tensor:
    """A tensor of zeros.

    >>> import chainrule
    >>> chainrule.zeros(2, 3)
    tensor([[0., 0., 0.],
            [0., 0., 0.]])
    """
    if device is not None or memory:
        check_device("zeros", device, memory)
    return made(K.zeros(size_argument("zeros", sizes, size), float_type(dtype)), requires_grad)


@placed
@takes_out(typed=True)
def ones(
    *sizes: int | Shape,
    size: Shape | None = None,
    dtype: DType | None = None,
    device: Device | None = None,
    requires_grad: bool = False,
    **memory: Unpack[Memory],
) -> Tensor:
    """A tensor of ones."""
    if device is not None or memory:
        check_device("ones", device, memory)
    return made(K.ones(size_argument("ones", sizes, size), float_type(dtype)), requires_grad)


@placed
@takes_out(typed=True)
def empty(
    *sizes: int | Shape,
    size: Shape | None = None,
    dtype: DType | None = None,
    device: Device | None = None,
    requires_grad: bool = False,
    **memory: Unpack[LikeMemory],
) -> Tensor:
    """A tensor whose elements are whatever its memory held before."""
    if device is not None or memory:
        check_device("empty", device, memory, has_format=True)
    out = made(K.empty(size_argument("empty", sizes, size), float_type(dtype)), requires_grad)
    return arranged("empty", out, out, memory) if memory else out


@placed
@takes_out(typed=True)
def full(
    size: Shape,
    fill_value: Number | Tensor,
    *,
    dtype: DType | None = None,
    device: Device | None = None,
    requires_grad: bool = False,
    **memory: Unpack[Memory],
) -> Tensor:
    """A tensor of one value everywhere; its type is the value's unless given."""
    check_device("full", device, memory)
    shape, value = checked_size("full", size), number("full", "fill_value", fill_value)
    if dtype is None:
        dtype = fill_value.dtype if isinstance(fill_value, Tensor) else type_of_number(value)
    return made(filled(shape, value, dtypes.as_dtype(dtype)), requires_grad)


def filled(shape: tuple[int, ...], value: Number, d: dtypes.dtype) -> Array:
    """An array of one number."""
    if d.category < dtypes.category(value):
        # A float fill of an integer tensor is truncated, as a conversion would.
        value = {dtypes.BOOL: bool, dtypes.INTEGER: int, dtypes.FLOATING: float}[d.category](value)
    return K.full(shape, value, d.array_dtype)


def zeros_like(
    input: Tensor,
    *,
    dtype: DType | None = None,
    device: Device | None = None,
    requires_grad: bool = False,
    **memory: Unpack[LikeMemory],
) -> Tensor:
    """Zeros in the shape and type of ``input``."""
    shape, d = _like("zeros_like", input, dtype, device, memory)
    return beside("zeros_like", input, made(K.zeros(shape, d), requires_grad), memory, device)


def ones_like(
    input: Tensor,
    *,
    dtype: DType | None = None,
    device: Device | None = None,
    requires_grad: bool = False,
    **memory: Unpack[LikeMemory],
) -> Tensor:
    """Ones in the shape and type of ``input``."""
    shape, d = _like("ones_like", input, dtype, device, memory)
    return beside("ones_like", input, made(K.ones(shape, d), requires_grad), memory, device)


def empty_like(
    input: Tensor,
    *,
    dtype: DType | None = None,
    device: Device | None = None,
    requires_grad: bool = False,
    **memory: Unpack[LikeMemory],
) -> Tensor:
    """An uninitialized tensor in the shape and type of ``input``."""
    shape, d = _like("empty_like", input, dtype, device, memory)
    return beside("empty_like", input, made(K.empty(shape, d), requires_grad), memory, device)


def full_like(
    input: Tensor,
    fill_value: Number | Tensor,
    *,
    dtype: DType | None = None,
    device: Device | None = None,
    requires_grad: bool = False,
    **memory: Unpack[LikeMemory],
) -> Tensor:
    """One value everywhere, in the shape and type of ``input``."""
    shape, d = _like("full_like", input, dtype, device, memory)
    value = number("full_like", "fill_value", fill_value)
    out = made(filled(shape, value, dtypes.from_array_dtype(d)), requires_grad)
    return beside("full_like", input, out, memory, device)


def beside(
    op: str,
    input: Tensor,
    out: Tensor,
    memory: LikeMemory | None = None,
    device: Device | None = None,
) -> Tensor:
    """A new tensor lies where its model does, and belongs to the same transformation, to be
    changed in place there."""
    placed_like(input, out, device)
    if memory:
        arranged(op, out, input, memory)
    if isinstance(input.array, Box) and not out.needs_grad:
        return of_array(input.array.constant(out))
    return out


def _like(
    op: str, input: Tensor, dtype: DType | None, device: Device | None, memory: LikeMemory
) -> tuple[tuple[int, ...], Any]:
    """The shape and array type that a ``..._like`` function makes."""
    if device is not None or memory:
        check_device(op, device, memory, has_format=True)
    array = tensor_argument(op, input).array
    return tuple(array.shape), array.dtype if dtype is None else dtypes.to_array_dtype(dtype)


@placed
def scalar_tensor(
    s: Number | Tensor,
    *,
    dtype: DType | None = None,
    device: Device | None = None,
    requires_grad: bool = False,
    **memory: Unpack[Memory],
) -> Tensor:
    """A zero-dimensional tensor of the default floating type."""
    return full(
        (), s, dtype=float_type(dtype), device=device, requires_grad=requires_grad, **memory
    )


# --- patterns -------------------------------------------------------------------------------------


@placed
@takes_out(typed=True)
def arange(
    *bounds: Real | Tensor,
    start: Real | Tensor | None = None,
    end: Real | Tensor | None = None,
    step: Real | Tensor | None = None,
    dtype: DType | None = None,
    device: Device | None = None,
    requires_grad: bool = False,
    **memory: Unpack[Memory],
) -> Tensor:
    """The numbers from ``start`` (0) up to, without, ``end``, by ``step`` (1).

    As in Python's ``range``: ``arange(end)``, ``arange(start, end)``, ``arange(start, end, step)``.

    >>> import chainrule
    >>> chainrule.arange(1, 7, 2)
    tensor([1, 3, 5])
    """
    check_device("arange", device, memory)
    first, last, by = _range_argument(bounds, start, end, step)
    if dtype is None:
        dtype = dtypes.int64
        for value in (first, last, by):
            dtype = dtypes.promote_types(dtype, type_of_number(value))
    d = dtypes.as_dtype(dtype)
    if d is dtypes.bool_ or d.is_complex:
        raise NotImplementedError(f"arange: not implemented for {d}; use an integer or float dtype")
    if not (math.isfinite(first) and math.isfinite(last)):
        raise RuntimeError(f"arange: unsupported range: {first} -> {last}")
    if by == 0 or by != by:
        raise RuntimeError(f"arange: step must be nonzero, got {by}")
    if d is dtypes.int64 and math.isfinite(by):
        if not int(by):
            raise ValueError(f"arange: step must be nonzero, got {by}, which is 0 in {d}")
        first, last, by = int(first), int(last), int(by)
    if (last - first) * by < 0:
        raise RuntimeError(
            "arange: upper bound and lower bound inconsistent with step sign: from "
            f"{first} to {last} by {by}"
        )
    if d.category == dtypes.INTEGER and float in map(type, (first, last, by)):
        count = math.ceil((last - first) / by)  # of the numbers as given; they themselves are cut
        first, by = int(first), int(by)
        return made(first + by * K.arange(0, count, 1, d.array_dtype), requires_grad)
    return made(K.arange(first, last, by, d.array_dtype), requires_grad)


def _range_argument(
    bounds: tuple[Real | Tensor, ...],
    start: Real | Tensor | None,
    end: Real | Tensor | None,
    step: Real | Tensor | None,
) -> tuple[Any, ...]:
    given = list(bounds)
    if len(given) > 3 or (not given and end is None):
        raise TypeError(
            f"arange(): expected (end), (start, end) or (start, end, step), got {len(given)} bounds"
        )
    if len(given) == 1 and end is None:
        start, end = 0 if start is None else start, given[0]
    elif given:
        names = iter(given)
        start = next(names) if start is None else start
        end = next(names, end) if end is None else end
        step = next(names, step)
    start, step = 0 if start is None else start, 1 if step is None else step
    return tuple(
        number("arange", name, v) for name, v in (("start", start), ("end", end), ("step", step))
    )


@placed
@takes_out(typed=True)
def linspace(
    start: Number | Tensor,
    end: Number | Tensor,
    steps: int,
    *,
    dtype: DType | None = None,
    device: Device | None = None,
    requires_grad: bool = False,
    **memory: Unpack[Memory],
) -> Tensor:
    """``steps`` numbers evenly spaced from ``start`` to ``end``, both included."""
    first, last, count, d = _spaced("linspace", start, end, steps, dtype, device, memory)
    return made(K.linspace(first, last, count, d), requires_grad)


@placed
@takes_out(typed=True)
def logspace(
    start: Number | Tensor,
    end: Number | Tensor,
    steps: int,
    base: float = 10.0,
    *,
    dtype: DType | None = None,
    device: Device | None = None,
    requires_grad: bool = False,
    **memory: Unpack[Memory],
) -> Tensor:
    """``steps`` numbers from ``base**start`` to ``base**end``, their logarithms evenly spaced."""
    first, last, count, d = _spaced("logspace", start, end, steps, dtype, device, memory)
    return made(K.logspace(first, last, count, base, d), requires_grad)


def _spaced(
    op: str,
    start: Number | Tensor,
    end: Number | Tensor,
    steps: int,
    dtype: DType | None,
    device: Device | None,
    memory: Memory,
) -> tuple[Number, Number, int, Any]:
    """Both ends, the number of steps and the type; for integers the ends are cut to integers."""
    check_device(op, device, memory)
    count = whole(op, "steps", steps)
    if count < 0:
        raise RuntimeError(f"{op}: number of steps must be non-negative, got {count}")
    first, last = number(op, "start", start), number(op, "end", end)
    is_complex = isinstance(first, complex) or isinstance(last, complex)
    d = type_of_number(1j).array_dtype if dtype is None and is_complex else float_type(dtype)
    if d.kind in "iu":
        first, last = _cut(op, first), _cut(op, last)
    return first, last, count, d


def _cut(op: str, value: Number) -> int:
    if isinstance(value, complex) or not math.isfinite(value):
        raise RuntimeError(f"{op}: {value} cannot be converted to an integer without overflow")
    return int(value)


@placed
@takes_out(typed=True)
def eye(
    n: int,
    m: int | None = None,
    *,
    dtype: DType | None = None,
    device: Device | None = None,
    requires_grad: bool = False,
    **memory: Unpack[Memory],
) -> Tensor:
    """A matrix of n rows (and m columns) with ones on the diagonal and zeros elsewhere."""
    check_device("eye", device, memory)
    rows = whole("eye", "n", n)
    columns = rows if m is None else whole("eye", "m", m)
    for name, value in (("n", rows), ("m", columns)):
        if value < 0:
            raise RuntimeError(f"eye: {name} must be greater or equal to 0, got {value}")
    return made(K.eye(rows, columns, dtype=float_type(dtype)), requires_grad)


@placed
def tril_indices(
    row: int,
    col: int,
    offset: int = 0,
    *,
    dtype: DType = dtypes.int64,
    device: Device | None = None,
    **memory: Unpack[Memory],
) -> Tensor:
    """The row and column indices of the lower triangle of a matrix, as a tensor of shape (2, N)."""
    return made(_triangle("tril_indices", row, col, offset, device, dtype, memory))


@placed
def triu_indices(
    row: int,
    col: int,
    offset: int = 0,
    *,
    dtype: DType = dtypes.int64,
    device: Device | None = None,
    **memory: Unpack[Memory],
) -> Tensor:
    """The row and column indices of the upper triangle of a matrix, as a tensor of shape (2, N)."""
    return made(_triangle("triu_indices", row, col, offset, device, dtype, memory))


def _triangle(
    op: str,
    row: int,
    col: int,
    offset: int,
    device: Device | None,
    dtype: DType,
    memory: Memory,
) -> Array:
    check_device(op, device, memory)
    for name, value in (("row", row), ("col", col)):
        if whole(op, name, value) < 0:
            raise RuntimeError(f"{op}: {name} must be non-negative, got {value}")
    return getattr(K, op)(int(row), int(col), int(offset), dtypes.to_array_dtype(dtype))

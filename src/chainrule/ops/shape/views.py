"""Shape: the same elements in another arrangement. Views where memory allows it."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

from chainrule.backend import K, dtypes
from chainrule.ops.core.synonyms import numpy_names
from chainrule.ops.core.primitive import Linear, Nondifferentiable, broadcast_to
from chainrule.tensor import Tensor
from chainrule.typing import DType, Dims, Shape, Sizes, V, Value

__all__ = [
    "expand", "flatten", "movedim", "permute", "reshape", "squeeze", "swapaxes", "transpose",
    "unsqueeze", "view",
]  # fmt: skip

METHODS = (
    "expand", "flatten", "movedim", "permute", "reshape", "squeeze", "swapaxes", "transpose",
    "unsqueeze", "view",
)  # fmt: skip
INPLACE: tuple[str, ...] = ()
INPLACE_VIEWS = ("squeeze", "swapaxes", "transpose", "unsqueeze")


def shape_of(input: Value) -> tuple[int, ...]:
    """The sizes of a tensor or an array, without making a :class:`Size` of them."""
    return input.array.shape if isinstance(input, Tensor) else input.shape


def canonical_dim(op: str, dim: int, ndim: int) -> int:
    """A dimension counted from the end, as primitives name it."""
    limit = max(ndim, 1)
    if not isinstance(dim, int):
        dim = _as_int(op, dim)
    if not -limit <= dim < limit:
        raise IndexError(
            f"{op}: dimension out of range (expected to be in range of [{-limit}, {limit - 1}], "
            f"but got {dim})"
        )
    return dim if dim < 0 else dim - limit


def _as_int(op: str, dim: Any) -> int:
    try:
        return dim.__index__()
    except AttributeError:
        raise TypeError(f"{op}(): a dimension must be an int, not {type(dim).__name__}") from None


@functools.cache
def _all_dims(ndim: int) -> tuple[int, ...]:
    return tuple(range(-ndim, 0))


def canonical_dims(op: str, dim: Dims, ndim: int) -> tuple[int, ...]:
    """One dimension, several or all (None), counted from the end."""
    if dim.__class__ is int and ndim:
        return (canonical_dim(op, dim, ndim),)
    if dim is None or (isinstance(dim, (tuple, list)) and not dim):
        return _all_dims(ndim)
    named: Sequence[Any] = dim if isinstance(dim, (tuple, list)) else (dim,)
    dims = tuple(canonical_dim(op, d, ndim) for d in named)
    if len(set(dims)) != len(dims):
        raise RuntimeError(
            f"{op}: dimension appears multiple times in the list of dims {tuple(named)}"
        )
    return dims if ndim else ()


# --- primitives -----------------------------------------------------------------------------------

_reshape = Linear(
    "reshape",
    lambda g, shape_in, shape: _reshape(g, shape=tuple(shape_in)),
    batch="shape",
    is_view=True,
    may_copy=True,
)


@functools.cache
def _inverse(dims: tuple[int, ...]) -> tuple[int, ...]:
    n = len(dims)
    inverse = [0] * n
    for position, d in enumerate(dims):
        inverse[d + n] = position - n
    return tuple(inverse)


_permute = Linear(
    "permute", lambda g, shape_in, dims: _permute(g, dims=_inverse(dims)), is_view=True
)


# --- functions ------------------------------------------------------------------------------------


def shape_argument(
    shape: tuple[int | Shape, ...], named: int | Shape | None = None
) -> tuple[int, ...]:
    """``f(2, 3)`` and ``f((2, 3))`` mean the same, and so does ``f(name=(2, 3))``."""
    sizes: Sequence[Any] = shape
    if named is not None:
        if shape:
            raise TypeError(
                f"the numbers were given twice, as {shape} and by keyword as {named}; give one"
            )
        sizes = shape = (named,)
    if len(shape) == 1 and isinstance(shape[0], (tuple, list)):
        sizes = shape[0]
    return tuple(map(int, sizes))


def tensors_argument(tensors: tuple[Tensor | Sequence[Tensor], ...]) -> Sequence[Tensor]:
    """``f(x, y)`` and ``f([x, y])`` mean the same."""
    several: Sequence[Any] = tensors
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        several = tensors[0]
    return several


def reshape(input: V, *sizes: int | Shape, shape: Shape | None = None) -> V:
    """The same elements in another shape; one entry may be -1, to be worked out.

    >>> import chainrule
    >>> chainrule.arange(6).reshape(2, -1).shape
    chainrule.Size([2, 3])
    """
    return _reshape(input, shape=_complete("reshape", input, shape_argument(sizes, shape)))


def _complete(op: str, input: Value, shape: tuple[int, ...]) -> tuple[int, ...]:
    """``shape`` with -1 worked out, checked against the number of elements."""
    total = math.prod(shape_of(input))
    if math.prod(shape) == total and min(shape, default=0) >= 0:
        return shape
    known = 1
    for n in shape:
        if n < -1:
            raise RuntimeError(f"{op}: invalid shape dimension {n} in {shape}")
        if n != -1:
            known *= n
    if shape.count(-1) > 1:
        raise RuntimeError(f"{op}: only one dimension can be inferred, got {shape}")
    if -1 in shape:
        if known == 0:
            raise RuntimeError(
                f"{op}: cannot reshape tensor of shape {tuple(input.shape)} into shape {shape} "
                "because the unspecified dimension size -1 can be any value and is ambiguous"
            )
        if total % known == 0:
            i = shape.index(-1)
            return (*shape[:i], total // known, *shape[i + 1 :])
    raise RuntimeError(
        f"{op}: shape {shape} is invalid for input of size {total} (its shape is "
        f"{tuple(input.shape)}); the products of the sizes must be equal, one entry may be -1"
    )


class Bits(Nondifferentiable):
    """The same memory read as another type."""

    is_view = True


_bits = Bits("view_bits", batch="carry")


def _as_type(input: Tensor, dtype: dtypes.dtype) -> Tensor:
    """The memory of ``input`` read as another type."""
    old, new = input.array.dtype.itemsize, dtype.itemsize
    if old != new and (not input.ndim or input.shape[-1] * old % new):
        raise RuntimeError(
            f"view: the last dimension of shape {tuple(input.shape)}, {old} bytes for each element "
            f"of {input.dtype}, cannot be read as {dtype} of {new} bytes"
        )
    if old != new and input.stride()[-1] != 1:
        raise RuntimeError(
            f"view: self.stride(-1) must be 1 to view {input.dtype} as {dtype} (different element "
            f"sizes), but got {input.stride()[-1]}; use .contiguous() first"
        )
    return _bits(input, dtype=dtype.array_dtype)


def view(
    input: Tensor,
    *sizes: int | Shape | dtypes.dtype,
    size: Shape | None = None,
    dtype: DType | None = None,
) -> Tensor:
    """Like :func:`reshape`, but never copies: the memory must allow it.

    ``x.view(dtype)`` reads the same memory as another type.

    >>> import chainrule
    >>> chainrule.tensor([1.0]).view(chainrule.int32)
    tensor([1065353216], dtype=chainrule.int32)
    """
    given: tuple[Any, ...] = sizes
    if given and isinstance(given[0], dtypes.dtype):
        dtype = given[0]
    if dtype is not None:
        return _as_type(input, dtypes.as_dtype(dtype))
    out = reshape(input, *given, shape=size)
    if not K.may_share_memory(out.array, input.array) and input.numel():
        raise RuntimeError(
            f"view: size {tuple(out.shape)} is not compatible with the memory layout of a tensor "
            f"of shape {tuple(input.shape)} and stride {input.stride()}; use .reshape(...) instead"
        )
    return out


def permute(input: V, *order: int | Shape, dims: Shape | None = None) -> V:
    """The dimensions in another order: ``x.permute(2, 0, 1)``."""
    named = shape_argument(order, dims)
    ndim = input.ndim
    if len(named) != ndim:
        raise RuntimeError(
            f"permute: number of dimensions in the tensor input ({ndim}, shape "
            f"{tuple(input.shape)}) does not match the length of the desired ordering {named}"
        )
    return _permute(input, dims=canonical_dims("permute", named, ndim) if ndim else ())


def transpose(input: V, dim0: int, dim1: int) -> V:
    """Two dimensions exchanged."""
    ndim = input.ndim
    d0, d1 = canonical_dim("transpose", dim0, ndim), canonical_dim("transpose", dim1, ndim)
    dims = list(range(-ndim, 0))
    if ndim:
        dims[d0], dims[d1] = dims[d1], dims[d0]
    return _permute(input, dims=tuple(dims))


def movedim(input: V, source: Sizes, destination: Sizes) -> V:
    """Dimensions moved to new places, the others keeping their order."""
    ndim = input.ndim
    sources = [d + ndim for d in canonical_dims("movedim", source, ndim)]
    targets = [d + ndim for d in canonical_dims("movedim", destination, ndim)]
    if len(sources) != len(targets):
        raise RuntimeError(
            f"movedim: invalid source or destination dims: source {source} should have as many "
            f"elements as destination {destination}"
        )
    order = [d for d in range(ndim) if d not in sources]
    for target, source_dim in sorted(zip(targets, sources, strict=True)):
        order.insert(target, source_dim)
    return permute(input, order)


@numpy_names
def squeeze(input: V, dim: Dims = None) -> V:
    """Without the dimensions of size 1 (all, or those named)."""
    shape = shape_of(input)
    if dim is None:
        return _reshape(input, shape=tuple([n for n in shape if n != 1]))
    dims = canonical_dims("squeeze", dim, len(shape)) if dim != () else ()
    keep = [i for i in range(-len(shape), 0) if not (i in dims and shape[i] == 1)]
    return _reshape(input, shape=tuple([shape[i] for i in keep]))


@numpy_names
def unsqueeze(input: V, dim: int) -> V:
    """A dimension of size 1 inserted at ``dim``."""
    shape = shape_of(input)
    d = canonical_dim("unsqueeze", dim, len(shape) + 1) + len(shape) + 1
    return _reshape(input, shape=(*shape[:d], 1, *shape[d:]))


def flatten(input: V, start_dim: int = 0, end_dim: int = -1) -> V:
    """The dimensions from ``start_dim`` to ``end_dim`` as one."""
    ndim = input.ndim
    if ndim == 0:
        return _reshape(input, shape=(1,))
    start = canonical_dim("flatten", start_dim, ndim) + ndim
    end = canonical_dim("flatten", end_dim, ndim) + ndim
    if start > end:
        raise RuntimeError("flatten: start_dim cannot come after end_dim")
    shape, merged = tuple(input.shape), 1
    for n in shape[start : end + 1]:
        merged *= n
    return _reshape(input, shape=(*shape[:start], merged, *shape[end + 1 :]))


def expand(input: V, *sizes: int | Shape, size: Shape | None = None) -> V:
    """Dimensions of size 1 repeated to the given sizes without copying; -1 keeps a size."""
    target, shape = shape_argument(sizes, size), tuple(input.shape)
    extra = len(target) - len(shape)
    if extra < 0:
        raise RuntimeError(
            f"expand: the number of sizes provided ({len(target)}) must be greater or equal to the "
            f"number of dimensions in the tensor ({len(shape)})"
        )
    full = []
    for i, n in enumerate(target):
        old = shape[i - extra] if i >= extra else None
        if n == -1 and old is None:
            raise RuntimeError(
                f"expand: -1 is not allowed in a leading, non-existing dimension {i}"
            )
        if n not in (-1, old) and old not in (None, 1):
            raise RuntimeError(
                f"expand: the expanded size of the tensor ({n}) must match the existing size "
                f"({old}) at non-singleton dimension {i}. Target sizes: {target}. Tensor sizes: "
                f"{shape}"
            )
        full.append(old if n == -1 else n)
    return broadcast_to(input, shape=tuple(full))


def swapaxes(input: V, axis0: int, axis1: int) -> V:
    """Two dimensions exchanged: NumPy's name of :func:`transpose`."""
    return transpose(input, axis0, axis1)

"""Reading parts of a tensor: subscripts, slices, and choices by integer tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, overload

from chainrule.ops.core.arguments import placed_like, same_place
from chainrule.backend import K, dtypes
from chainrule.backend.placed import Placed
from chainrule.ops.core.synonyms import numpy_names, takes_out
from chainrule.ops.index.choice import (
    FULL,
    gather_along,
    mask_select,
    nonzero_indices,
    read,
    slice_view,
)
from chainrule.ops.elementwise.logic import where
from chainrule.ops.core.promotion import broadcast_shapes, cast
from chainrule.ops.core.apply import apply
from chainrule.ops.core.primitive import broadcast_to
from chainrule.ops.shape.views import canonical_dim, reshape, shape_of
from chainrule.ops.shape.stacking import stack
from chainrule.ops.index.subscript import (
    Item,
    at_places,
    basic_entries,
    items_of,
    numbers_of,
    out_of_bounds,
    parse,
)
from chainrule.tensor import Tensor, of_array
from chainrule.typing import Array, Index, V, Value

__all__ = [
    "argwhere",
    "gather",
    "index_select",
    "masked_select",
    "narrow",
    "nonzero",
    "one_hot",
    "select",
    "take",
    "take_along_dim",
]
METHODS = (
    "argwhere",
    "gather",
    "index_select",
    "masked_select",
    "narrow",
    "nonzero",
    "select",
    "take",
    "take_along_dim",
)
INPLACE: tuple[str, ...] = ()


# --- subscripts -----------------------------------------------------------------------------------


def getitem(input: V, index: Index) -> V:
    """``input[index]``, with everything NumPy allows between the brackets.

    Numbers, slices, ``...`` and None give a view; integer tensors and masks give a copy.

    >>> import chainrule
    >>> x = chainrule.arange(6).reshape(2, 3)
    >>> x[1, ::-1], x[x > 3], x[[0, 1], [2, 0]]
    (tensor([5, 4, 3]), tensor([4, 5]), tensor([2, 3]))
    """
    entries = basic_entries(input.ndim, index)
    try:
        if entries is not None:
            if isinstance(input, Tensor):
                return apply(slice_view, (input,), {"entries": entries})
            return slice_view.raw(input, entries=entries)
        if index.__class__ is Tensor and index.ndim and isinstance(input, Tensor) and input.ndim:
            kind = index.array.dtype.kind
            if kind == "i":
                return rows(input, -input.ndim, cast(index, dtypes.int64))
            if kind == "b" and index.array.shape == input.array.shape:
                return mask_select(input, index)
        elif isinstance(input, Tensor) and (at := at_places(input.array.shape, index)) is not None:
            return read(input, *at.indices, **at.params)
    except IndexError:
        pass  # what is wrong is found below
    return _read("getitem", *items_of("getitem", input, index))


def rows(input: V, dim: int, index: V) -> V:
    """``input`` with ``dim`` (from the end) replaced by the choices of an integer tensor."""
    return read(input, index, entries=(..., *[FULL] * (-dim - 1)), tail=-dim - 1)


def _read(op: str, input: V, items: Sequence[Item]) -> V:
    at = parse(op, input.shape, items)
    if not at.indices:
        return slice_view(input, entries=at.entries)
    try:
        return read(input, *_like(input, at.indices), **at.params)
    except IndexError:
        raise out_of_bounds(op, tuple(input.shape), at) from None


def _like(input: V, indices: Sequence[Tensor]) -> Sequence[V]:
    """Index tensors as bare arrays where the input is one."""
    return indices if isinstance(input, Tensor) else [t.array for t in indices]


# --- along one dimension --------------------------------------------------------------------------


@numpy_names
def select(input: V, dim: int, index: int) -> V:
    """``input[:, ..., index]`` with the index at ``dim``; a view.

    >>> import chainrule
    >>> chainrule.select(chainrule.arange(6).reshape(2, 3), 1, 2)
    tensor([2, 5])
    """
    shape = tuple(input.shape)
    if not shape:
        raise IndexError("select: cannot be applied to a tensor without dimensions")
    d = canonical_dim("select", dim, len(shape))
    n = shape[d]
    if not -n <= index < n:
        raise IndexError(
            f"select: index {index} out of range for tensor of size {list(shape)} at dimension "
            f"{d + len(shape)}"
        )
    return _along(input, d, int(index) % n)


def _along(input: V, dim: int, entry: int | slice) -> V:
    return slice_view(input, entries=(entry, *[FULL] * (-dim - 1)))


@numpy_names
def narrow(input: V, dim: int, start: int | Tensor, length: int) -> V:
    """``length`` elements from ``start`` on along ``dim``; a view.

    >>> import chainrule
    >>> chainrule.narrow(chainrule.arange(5), 0, 1, 3)
    tensor([1, 2, 3])
    """
    shape = tuple(input.shape)
    if not shape:
        raise RuntimeError("narrow: cannot be applied to a tensor without dimensions")
    d = canonical_dim("narrow", dim, len(shape))
    if isinstance(start, Tensor) and (start.ndim or start.dtype.category != dtypes.INTEGER):
        raise RuntimeError(
            "narrow: start must be an 0-dim integral Tensor, got "
            f"{start.dtype} of shape {tuple(start.shape)}"
        )
    n, start = shape[d], int(start)
    if length < 0:
        raise RuntimeError(f"narrow: length must be non-negative, got {length}")
    if not -n <= start <= n:
        raise IndexError(
            f"narrow: start out of range (expected to be in range of [{-n}, {n}], but got {start})"
        )
    start += n if start < 0 else 0
    if start + length > n:
        raise RuntimeError(
            f"narrow: start ({start}) + length ({length}) exceeds dimension size ({n})"
        )
    return _along(input, d, slice(start, start + length, 1))


def integer_index(
    op: str, index: V, error: type[Exception] = RuntimeError, among: Value | None = None
) -> V:
    """An index (tensor or bare array) as int64, refused if it does not hold integers, or is not on
    the device of the tensor ``among`` whose elements it names."""
    same_place(op, among, index)
    kind = (index.array if isinstance(index, Tensor) else index).dtype.kind
    if kind not in "iu":
        raise error(
            f"{op}: expected dtype int32 or int64 for index, got {index.dtype}; use .long()"
        )
    return cast(index, dtypes.int64)


@takes_out(apart=True)
@numpy_names
def index_select(input: V, dim: int, index: V) -> V:
    """The slices of ``input`` along ``dim`` that a vector of integers names.

    >>> import chainrule
    >>> chainrule.index_select(chainrule.arange(6).reshape(2, 3), 1, chainrule.tensor([2, 0]))
    tensor([[2, 0],
            [5, 3]])
    """
    index = integer_index("index_select", index, among=input)
    ndim, n = input.ndim, index.ndim
    d = canonical_dim("index_select", dim, ndim)
    if n > 1:
        raise IndexError(
            f"index_select: index is supposed to be a vector, got shape {tuple(index.shape)}"
        )
    index = reshape(index, (1,)) if n == 0 else index
    if ndim == 0:
        if index.shape[0] != 1:
            raise RuntimeError(
                f"index_select: index to a tensor without dimensions can have only 1 value, got "
                f"{index.shape[0]}"
            )
        return reshape(choose(reshape(input, (1,)), -1, index, "index_select"), ())
    return choose(input, d, index, "index_select")


def choose(input: V, dim: int, index: V, op: str) -> V:
    """``input`` with ``dim`` (from the end) replaced by the choices of an integer tensor; negative
    numbers are out of range here."""
    check_range(op, index, input.shape[dim], dim + input.ndim)
    try:
        return rows(input, dim, index)
    except IndexError as error:
        raise IndexError(f"{op}: {error}") from None


def check_range(
    op: str, index: Value, n: int, dim: int, low: int = 0, error: type[Exception] = IndexError
) -> None:
    """Refuses numbers outside [low, n) where they can be seen (not inside a transformation)."""
    array: Any = numbers_of(index)
    if array is None or not array.size:
        return
    if array.__class__ is Placed:  # one answer of the device, which a program can ask for, too
        if K.all_in_range(array, low, n - 1):
            return
        array = K.to_numpy(array)
    elif array.min() >= low and array.max() < n:
        return
    bad = array[(array < low) | (array >= n)].flat[0]
    raise error(f"{op}: index {bad} is out of bounds for dimension {dim} with size {n}")


# --- gather ---------------------------------------------------------------------------------------


@takes_out(apart=True)
@numpy_names
def gather(input: V, dim: int, index: V) -> V:
    """Elements chosen along ``dim``: ``out[i][j] = input[index[i][j]][j]`` for ``dim=0``.

    >>> import chainrule
    >>> x = chainrule.tensor([[1, 2], [3, 4]])
    >>> chainrule.gather(x, 1, chainrule.tensor([[0, 0], [1, 0]]))
    tensor([[1, 1],
            [4, 3]])
    """
    index = integer_index("gather", index)
    d = canonical_dim("gather", dim, input.ndim)
    if 0 in index.shape and index.ndim != input.ndim:  # nothing is chosen: any shape will do
        return reshape(slice_view(reshape(input, (-1,)), entries=(slice(0, 0, 1),)), index.shape)
    input, index, shape = with_dimensions(input, index)
    check_index_shape("gather", input, d, index)
    try:
        out = gather_along(input, index, dim=d)
    except IndexError as error:
        raise RuntimeError(f"gather: {error}") from None
    return out if shape_of(out) == shape else reshape(out, shape)


def with_dimensions(input: V, index: V) -> tuple[V, V, tuple[int, ...]]:
    """Both with at least one dimension, and the shape the index had."""
    shape = shape_of(index)
    if not shape_of(input):
        input = reshape(input, (1,))
    if not shape:
        index = reshape(index, (1,))
    return input, index, shape


def check_index_shape(op: str, input: Value, dim: int, index: Value) -> None:
    """The index has as many dimensions as the input, and apart from ``dim`` no larger ones."""
    shape, own = shape_of(input), shape_of(index)
    if 0 in own and len(own) == 1:
        return
    if len(own) != len(shape):
        raise RuntimeError(
            f"{op}: index tensor must have the same number of dimensions as input tensor, got "
            f"{own} and {shape}; use take_along_dim to broadcast"
        )
    for d in range(-len(shape), 0):
        if d != dim and own[d] > shape[d]:
            raise RuntimeError(
                f"{op}: size does not match at dimension {d + len(shape)}: expected index {own} to "
                f"be no larger than self {shape} apart from dimension {dim + len(shape)}"
            )


@takes_out()
@numpy_names
def take_along_dim(input: V, indices: V, dim: int | None = None) -> V:
    """Elements chosen along ``dim`` with broadcasting: what ``argsort`` and ``argmax`` return fits.

    >>> import chainrule
    >>> x = chainrule.tensor([[3, 1, 2], [4, 6, 5]])
    >>> chainrule.take_along_dim(x, chainrule.tensor([[0], [1]]), dim=1)
    tensor([[3],
            [6]])
    """
    indices = integer_index("take_along_dim", indices)
    if dim is None:
        return gather(reshape(input, (-1,)), 0, _wrapped(reshape(indices, (-1,)), _numel(input)))
    if input.ndim != indices.ndim:
        raise RuntimeError(
            f"take_along_dim: input and indices should have the same number of dimensions, but got "
            f"{input.ndim} dimensions for input, and {indices.ndim} dimensions for indices"
        )
    if input.ndim == 0:
        return gather(input, 0, indices)
    d = canonical_dim("take_along_dim", dim, input.ndim)
    n, m = input.shape[d], indices.shape[d]
    shape, own = list(input.shape), list(indices.shape)
    shape[d] = own[d] = 1
    common = list(broadcast_shapes(shape, own, op="take_along_dim"))
    sized = [(*common[:d], k, *common[d:][1:]) for k in (n, m)]
    input = input if tuple(input.shape) == sized[0] else broadcast_to(input, shape=sized[0])
    indices = indices if tuple(indices.shape) == sized[1] else broadcast_to(indices, shape=sized[1])
    return gather(input, d, _wrapped(indices, n))


def _wrapped(index: V, n: int) -> V:
    """Negative numbers count from the end."""
    array: Any = numbers_of(index)
    if array is not None and array.__class__ is not Placed and (not array.size or array.min() >= 0):
        return index
    return where(index < 0, index + n, index)


def _numel(input: Value) -> int:
    n = 1
    for size in input.shape:
        n *= size
    return n


@takes_out(apart=True)
def take(input: V, index: V) -> V:
    """Elements of the flattened input, in the shape of ``index``.

    >>> import chainrule
    >>> chainrule.take(chainrule.arange(6).reshape(2, 3), chainrule.tensor([[0, 5]]))
    tensor([[0, 5]])
    """
    index = integer_index("take", index, among=input)
    n = _numel(input)
    check_range("take", index, n, 0, -n)
    return read(reshape(input, (n,)), index, entries=(...,), tail=0)


# --- where something holds ------------------------------------------------------------------------


@overload
def nonzero(input: Tensor, *, as_tuple: Literal[False] = False) -> Tensor: ...
@overload
def nonzero(input: Tensor, *, as_tuple: Literal[True]) -> tuple[Tensor, ...]: ...
@takes_out()
def nonzero(input: Tensor, *, as_tuple: bool = False) -> Tensor | tuple[Tensor, ...]:
    """Where the elements are not zero: a row for each, or with ``as_tuple`` a vector per dimension.

    >>> import chainrule
    >>> chainrule.nonzero(chainrule.tensor([[0, 1], [2, 0]]))
    tensor([[0, 1],
            [1, 0]])
    """
    indices = nonzero_indices(input)
    if as_tuple:
        return indices
    if input.ndim == 0:
        return reshape(indices[0], (-1, 1))[:, :0]
    return stack(indices, dim=1)


def argwhere(input: Tensor) -> Tensor:
    """Where the elements are not zero: one row for each."""
    return nonzero(input)


@takes_out(apart=True)
def masked_select(input: V, mask: V) -> V:
    """The elements where the mask holds, as a vector; both are broadcast.

    >>> import chainrule
    >>> x = chainrule.tensor([1.0, -2.0, 3.0])
    >>> chainrule.masked_select(x, x > 0)
    tensor([1., 3.])
    """
    check_mask("masked_select", mask)
    shape = tuple(broadcast_shapes(input.shape, mask.shape, op="masked_select"))
    both = [x if tuple(x.shape) == shape else broadcast_to(x, shape=shape) for x in (input, mask)]
    return mask_select(*both)


def check_mask(op: str, mask: Value) -> None:
    """Refuses a mask that does not hold truth values."""
    if (mask.array if isinstance(mask, Tensor) else mask).dtype.kind != "b":
        raise RuntimeError(
            f"{op}: only supports boolean masks, but got mask with dtype {mask.dtype}; compare "
            "first, for example x != 0"
        )


def one_hot(input: Tensor, num_classes: int = -1) -> Tensor:
    """Rows with a one at the place that each integer names, zeros elsewhere.

    >>> import chainrule
    >>> chainrule.one_hot(chainrule.tensor([0, 2]), 3)
    tensor([[1, 0, 0],
            [0, 0, 1]])
    """
    if input.dtype is not dtypes.int64:
        raise RuntimeError(
            f"one_hot: is only applicable to an index tensor of type int64, got {input.dtype}; use "
            ".long()"
        )
    numbers = numbers_of(input)
    if num_classes == -1:
        num_classes = _count_classes(input, numbers)
    if numbers is not None and numbers.size and (numbers.min() < 0 or numbers.max() >= num_classes):
        bad = numbers[(numbers < 0) | (numbers >= num_classes)][0].item()
        raise RuntimeError(
            "one_hot: class values must be non-negative and smaller than num_classes "
            f"({num_classes}), got {bad}"
        )
    classes = placed_like(input, of_array(K.arange(0, num_classes, 1, "int64")))
    return cast(reshape(input, (*input.shape, 1)) == classes, dtypes.int64)


def _count_classes(input: Tensor, numbers: Array | None) -> int:
    if numbers is None:
        raise RuntimeError(
            f"one_hot: the number of classes cannot be found inside {input.array.transformation}; "
            "pass num_classes"
        )
    if not numbers.size:
        raise RuntimeError(
            "one_hot: can not infer total number of classes from empty tensor; pass num_classes"
        )
    return int(numbers.max()) + 1

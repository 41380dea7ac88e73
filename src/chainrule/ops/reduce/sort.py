"""Sorting, searching and counting.

What is chosen is found by integers (``argsort`` and its like, which have no derivative); values are
then gathered, so gradients flow to the chosen elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, overload

from chainrule.backend import K, dtypes
from chainrule.ops.core.synonyms import also_named, numpy_names, takes_out
from chainrule.ops.index.choice import data_dependent, gather_along
from chainrule.ops.elementwise.logic import logical_not
from chainrule.ops.index.reading import gather, integer_index
from chainrule.ops.reduce.order import ValuesIndices
from chainrule.ops.core.promotion import NUMBERS
from chainrule.ops.core.primitive import Nondifferentiable, Op
from chainrule.ops.reduce.reductions import any as any_along
from chainrule.ops.shape.views import canonical_dim, reshape, squeeze
from chainrule.ops.index.subscript import numbers_of
from chainrule.tensor import Tensor, of_array
from chainrule.typing import Number, Value

__all__ = [
    "argsort",
    "bincount",
    "bucketize",
    "histc",
    "isin",
    "kthvalue",
    "msort",
    "searchsorted",
    "sort",
    "topk",
    "unique",
    "unique_consecutive",
]
METHODS = (
    "argsort",
    "bincount",
    "histc",
    "kthvalue",
    "msort",
    "sort",
    "topk",
    "unique",
    "unique_consecutive",
)
INPLACE: tuple[str, ...] = ()


def _batch_isin(
    op: Op, size: int, values: Sequence[Tensor], mapped: Sequence[bool], params: dict[str, Any]
) -> Tensor:
    elements, test = values
    if not mapped[1]:
        return op(elements, test)
    # Each member of the batch has its own set: every element is compared with every one of the set.
    ndim = elements.ndim - mapped[0]
    elements = reshape(elements, (*elements.shape, 1))
    test = reshape(test, (size, *[1] * ndim, -1))
    return any_along(elements == test, -1)


_argsort = Nondifferentiable("argsort", "carry")
_topk = Nondifferentiable("topk", "carry", kernel="topk_indices")
_kth = Nondifferentiable("kthvalue", "carry", kernel="kth_index")
_unique = Nondifferentiable("unique", data_dependent)
_unique_consecutive = Nondifferentiable("unique_consecutive", data_dependent)
_bincount = Nondifferentiable("bincount", data_dependent)
_bincount.rounds = False  # sums of float16 and bfloat16 are float64
_searchsorted = Nondifferentiable("searchsorted", "carry")
_histc = Nondifferentiable("histc", "carry")
_isin = Nondifferentiable("isin", _batch_isin)

# --- order ----------------------------------------------------------------------------------------


def _check_order(op: str, input: Value) -> None:
    if (input.array if isinstance(input, Tensor) else input).dtype.kind == "c":
        raise RuntimeError(f"{op}: complex numbers have no order, got {input.dtype}; sort abs(x)")


def _chosen(input: Tensor, index_of: Op, dim: int, **params: Any) -> ValuesIndices:
    """The elements of ``input`` at the places that ``index_of`` finds along ``dim``."""
    if input.ndim == 0:
        values, indices = _chosen(reshape(input, (1,)), index_of, dim, **params)
        return ValuesIndices(reshape(values, ()), reshape(indices, ()))
    indices = index_of(input, dim=dim, **params)
    return ValuesIndices(gather_along(input, indices, dim=dim), indices)


@takes_out()
@numpy_names
def sort(
    input: Tensor, dim: int = -1, descending: bool = False, *, stable: bool | None = None
) -> ValuesIndices:
    """The elements in order along ``dim``, and where each came from; always stable.

    >>> import chainrule
    >>> values, indices = chainrule.sort(chainrule.tensor([3.0, 1.0, 2.0]))
    >>> values, indices
    (tensor([1., 2., 3.]), tensor([1, 2, 0]))
    """
    _check_order("sort", input)
    d = canonical_dim("sort", dim, input.ndim)
    return _chosen(input, _argsort, d, descending=descending)


@takes_out()
@numpy_names
def argsort(
    input: Tensor, dim: int = -1, descending: bool = False, *, stable: bool = False
) -> Tensor:
    """Where the elements in order along ``dim`` are; always stable."""
    _check_order("argsort", input)
    d = canonical_dim("argsort", dim, input.ndim)
    if input.ndim == 0:
        return reshape(_argsort(reshape(input, (1,)), dim=-1, descending=False), ())
    return _argsort(input, dim=d, descending=descending)


@takes_out()
def msort(input: Tensor) -> Tensor:
    """The elements in order along the first dimension."""
    return sort(input, dim=0)[0]


@takes_out()
@numpy_names
def topk(
    input: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True
) -> ValuesIndices:
    """The ``k`` largest (or smallest) elements along ``dim``, in order, and where they are.

    >>> import chainrule
    >>> chainrule.topk(chainrule.tensor([1.0, 4.0, 2.0, 3.0]), 2).values
    tensor([4., 3.])
    """
    _check_order("topk", input)
    d = canonical_dim("topk", dim, input.ndim)
    n = input.shape[d] if input.ndim else 1
    if not 0 <= k <= n:
        raise RuntimeError(
            f"topk: selected index k out of range: k is {k}, dimension {d + max(input.ndim, 1)} of "
            f"shape {tuple(input.shape)} has size {n}"
        )
    if input.ndim == 0 and k == 0:
        raise RuntimeError("topk: k must be 1 for a tensor without dimensions")
    return _chosen(input, _topk, d, k=int(k), largest=largest)


@takes_out()
@numpy_names
def kthvalue(input: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> ValuesIndices:
    """The ``k``-th smallest element along ``dim`` (``k=1`` is the smallest), and where it is.

    >>> import chainrule
    >>> chainrule.kthvalue(chainrule.tensor([5.0, 1.0, 3.0]), 2).values
    tensor(3.)
    """
    _check_order("kthvalue", input)
    d = canonical_dim("kthvalue", dim, input.ndim)
    n = input.shape[d] if input.ndim else 1
    if n == 0:
        raise IndexError(
            f"kthvalue: expected reduction dim {d + input.ndim} to have non-zero size, got shape "
            f"{tuple(input.shape)}"
        )
    if not 1 <= k <= n:
        raise RuntimeError(
            f"kthvalue: selected number k out of range for dimension {d + max(input.ndim, 1)}: k "
            f"is {k}, the size {n}"
        )
    out = _chosen(input, _kth, d, k=int(k))
    if keepdim or input.ndim == 0:
        return out
    return ValuesIndices(squeeze(out.values, d), squeeze(out.indices, d))


# --- different values -----------------------------------------------------------------------------


@overload
def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: Literal[False] = False,
    return_counts: Literal[False] = False,
    dim: int | None = None,
) -> Tensor: ...
@overload
def unique(
    input: Tensor,
    sorted: bool = True,
    *,
    return_inverse: Literal[True],
    return_counts: bool = False,
    dim: int | None = None,
) -> tuple[Tensor, ...]: ...
@overload
def unique(
    input: Tensor,
    sorted: bool = True,
    *,
    return_inverse: bool = False,
    return_counts: Literal[True],
    dim: int | None = None,
) -> tuple[Tensor, ...]: ...
@numpy_names
def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Tensor | tuple[Tensor, ...]:
    """The different elements (or slices along ``dim``), in order.

    >>> import chainrule
    >>> chainrule.unique(chainrule.tensor([3, 1, 1]), return_counts=True)
    (tensor([1, 3]), tensor([2, 1]))
    """
    return _distinct("unique", _unique, input, return_inverse, return_counts, dim)


@overload
def unique_consecutive(
    input: Tensor,
    return_inverse: Literal[False] = False,
    return_counts: Literal[False] = False,
    dim: int | None = None,
) -> Tensor: ...
@overload
def unique_consecutive(
    input: Tensor,
    *,
    return_inverse: Literal[True],
    return_counts: bool = False,
    dim: int | None = None,
) -> tuple[Tensor, ...]: ...
@overload
def unique_consecutive(
    input: Tensor,
    *,
    return_inverse: bool = False,
    return_counts: Literal[True],
    dim: int | None = None,
) -> tuple[Tensor, ...]: ...
@numpy_names
def unique_consecutive(
    input: Tensor,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Tensor | tuple[Tensor, ...]:
    """The elements (or slices along ``dim``) without repetitions of their left neighbour.

    >>> import chainrule
    >>> chainrule.unique_consecutive(chainrule.tensor([1, 1, 2, 1]))
    tensor([1, 2, 1])
    """
    return _distinct(
        "unique_consecutive", _unique_consecutive, input, return_inverse, return_counts, dim
    )


def _distinct(
    op: str,
    primitive: Op,
    input: Tensor,
    return_inverse: bool,
    return_counts: bool,
    dim: int | None,
) -> Tensor | tuple[Tensor, ...]:
    if dim is not None:
        dim = canonical_dim(op, dim, input.ndim)
        shape = tuple(input.shape)
        if not shape:
            dim = None
        elif shape[dim] and 0 in shape:
            raise RuntimeError(
                f"{op}: there are 0 sized dimensions in shape {shape}, and they aren't selected, "
                "so unique cannot be applied"
            )
    values, inverse, counts = primitive(input, dim=dim)
    out = (values, *[inverse] * return_inverse, *[counts] * return_counts)
    return out if len(out) > 1 else values


# --- counting and searching -----------------------------------------------------------------------


def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """How often each of the numbers 0, 1, 2, ... occurs (or the sum of its weights).

    >>> import chainrule
    >>> chainrule.bincount(chainrule.tensor([0, 2, 2]))
    tensor([1, 0, 2])
    """
    if input.dtype.category != dtypes.INTEGER:
        raise NotImplementedError(f"bincount: not implemented for {input.dtype}; use .long()")
    numbers = numbers_of(input)
    if input.ndim != 1 or (numbers is not None and numbers.size and numbers.min() < 0):
        raise RuntimeError(
            "bincount: only supports 1-d non-negative integral inputs, got shape "
            f"{tuple(input.shape)}"
        )
    if minlength < 0:
        raise RuntimeError(f"bincount: minlength should be >= 0, got {minlength}")
    if weights is None:
        return _bincount(input, minlength=minlength)
    if weights.shape != input.shape:
        raise RuntimeError(
            "bincount: weights should be 1-d and have the same length as input, got shapes "
            f"{tuple(weights.shape)} and {tuple(input.shape)}"
        )
    return _bincount(input, weights, minlength=minlength)


@takes_out()
def searchsorted(
    sorted_sequence: Tensor,
    input: Tensor | Number,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
) -> Tensor:
    """Where each value would be inserted in the last dimension of ``sorted_sequence`` to keep the
    order: before equal elements, or with ``right`` behind them.

    >>> import chainrule
    >>> chainrule.searchsorted(chainrule.tensor([1, 3, 5]), chainrule.tensor([3, 6]))
    tensor([1, 3])
    """
    op = "searchsorted"
    if side not in (None, "left", "right"):
        raise RuntimeError(f"{op}: side can only be 'left' or 'right' but got {side!r}")
    if side == "left" and right:
        raise RuntimeError(f"{op}: side and right can't be set to opposites, got side 'left'")
    values = of_array(K.asarray(input)) if isinstance(input, NUMBERS) else input
    shape, own = tuple(sorted_sequence.shape), tuple(values.shape)
    if not shape:
        raise RuntimeError(f"{op}: boundaries tensor should have positive dimension, but got none")
    if len(shape) > 1 and shape[:-1] != own[:-1]:
        raise RuntimeError(
            f"{op}: boundaries tensor should be 1 dimension or the first N-1 dimensions of "
            f"boundaries tensor and input value tensor must match, but we got boundaries {shape} "
            f"and values {own}"
        )
    if sorter is not None:
        sorted_sequence = _in_order(sorted_sequence, sorter)
    flat = values if len(shape) > 1 else reshape(values, (-1,))
    dtype = (dtypes.int32 if out_int32 else dtypes.int64).array_dtype
    return reshape(
        _searchsorted(sorted_sequence, flat, right=right or side == "right", dtype=dtype), own
    )


def _in_order(sequence: Tensor, sorter: Tensor) -> Tensor:
    if sorter.shape != sequence.shape:
        raise RuntimeError(
            f"searchsorted: boundary and sorter must have the same size, but got "
            f"{tuple(sequence.shape)} and {tuple(sorter.shape)}"
        )
    return gather(sequence, -1, integer_index("searchsorted: sorter", sorter))


@takes_out()
def bucketize(
    input: Tensor | Number, boundaries: Tensor, *, out_int32: bool = False, right: bool = False
) -> Tensor:
    """The number of the interval between ``boundaries`` in which each value lies.

    >>> import chainrule
    >>> chainrule.bucketize(chainrule.tensor([0.5, 2.0]), chainrule.tensor([1.0, 2.0, 3.0]))
    tensor([0, 1])
    """
    if boundaries.ndim != 1:
        raise RuntimeError(
            "bucketize: boundaries tensor must be 1 dimension, but got shape "
            f"{tuple(boundaries.shape)}"
        )
    return searchsorted(boundaries, input, out_int32=out_int32, right=right)


@takes_out()
def histc(input: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """How many elements lie in each of ``bins`` equal intervals between ``min`` and ``max`` (the
    smallest and the largest element, if both are equal); elements outside do not count.

    >>> import chainrule
    >>> chainrule.histc(chainrule.tensor([1.0, 2.0, 1.0]), bins=4, min=0, max=3)
    tensor([0., 2., 1., 0.])
    """
    if not input.is_floating_point():
        raise NotImplementedError(f"histc: not implemented for {input.dtype}; use .float()")
    if bins <= 0:
        raise RuntimeError(f"histc: bins must be > 0, but got {bins}")
    numbers = numbers_of(input)
    if min == max:
        if numbers is None:
            raise RuntimeError(
                f"histc: the range cannot be found inside {input.array.transformation}; pass min "
                "and max"
            )
        if numbers.size:
            min, max = float(numbers.min()), float(numbers.max())
    if min == max:
        min, max = min - 1, max + 1
    if not (abs(min) < float("inf") and abs(max) < float("inf")):
        raise RuntimeError(f"histc: range of [{min}, {max}] is not finite")
    if max < min:
        raise RuntimeError(f"histc: max must be larger than min, got [{min}, {max}]")
    return _histc(reshape(input, (-1,)), bins=int(bins), low=min, high=max)


@also_named(element="elements", test_element="test_elements")
def isin(
    elements: Tensor | Number,
    test_elements: Tensor | Number,
    *,
    assume_unique: bool = False,
    invert: bool = False,
) -> Tensor:
    """Whether each element is one of ``test_elements``.

    >>> import chainrule
    >>> chainrule.isin(chainrule.tensor([1, 2, 3]), chainrule.tensor([3, 1]))
    tensor([ True, False,  True])
    """
    operands = []
    for x in (elements, test_elements):
        if not isinstance(x, (Tensor, *NUMBERS)):
            raise TypeError(f"isin: expected Tensors or numbers, got {type(x).__name__}")
        operands.append(of_array(K.asarray(x)) if isinstance(x, NUMBERS) else x)
    found = _isin(*operands)
    return logical_not(found) if invert else found

"""Order statistics: the largest, the smallest, the middle, the most frequent.

Those that choose one element (``max(dim)``, ``median(dim)``, ``mode``) give it the whole gradient;
those that name a value (``amax``, ``max()``, ``median()``) share it evenly among the elements equal
to that value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, overload

from chainrule.backend import K, dtypes
from chainrule.ops.core.synonyms import numpy_names, takes_out
from chainrule.ops.index.choice import gather_along, gather_place
from chainrule.ops.elementwise.functions import maximum, minimum
from chainrule.ops.elementwise.logic import isnan
from chainrule.ops.core.promotion import cast
from chainrule.ops.core.primitive import Nondifferentiable, Op
from chainrule.ops.reduce.reductions import _sum, array_of, reduction
from chainrule.ops.shape.views import (
    canonical_dim,
    canonical_dims,
    reshape,
    squeeze,
    unsqueeze,
)
from chainrule.graph import Edges, Node, Saved
from chainrule.tensor import Tensor, of_array
from chainrule.typing import Dims, Gradients, Tangents, V, Value

__all__ = [
    "amax",
    "amin",
    "aminmax",
    "argmax",
    "argmin",
    "max",
    "median",
    "min",
    "mode",
    "nanmedian",
]
METHODS = tuple(__all__)
INPLACE: tuple[str, ...] = ()


class ValuesIndices(NamedTuple):
    """Chosen elements and their places along the dimension."""

    values: Tensor
    indices: Tensor


class MinMax(NamedTuple):
    """The smallest and the largest elements."""

    min: Tensor
    max: Tensor


# --- primitives -----------------------------------------------------------------------------------


def _shared(d: Value, x: Value, out: Value, dim: tuple[int, ...]) -> Value:
    """``d`` divided among the elements that equal the output (NaN equals NaN here)."""
    chosen = cast((x == out) | (isnan(x) & isnan(out)), x.dtype)
    return d / _sum(chosen, dim=dim, keepdim=True) * chosen


_amax = reduction("amax", _shared)
_amin = reduction("amin", _shared)
_median = reduction("median", lambda d, x, out, dim, skip_nan: _shared(d, x, out, dim))
_argmax = Nondifferentiable("argmax", "carry")
_argmin = Nondifferentiable("argmin", "carry")


class Selection(Op):
    """One element along ``dim`` (for each place of the output), which gets the whole gradient.

    The kernel ``(a, dim, keepdim, **params)`` returns values and indices. Nothing but the indices
    is saved.
    """

    saves_out = True

    def __init__(self, name: str):
        super().__init__(name, "carry")

    def save(self, inputs: tuple[Tensor, ...], edges: Edges) -> Saved:
        return None

    def vjp(self, node: Node, g: Any, tensors: bool) -> Gradients:
        indices = of_array(node.out[1]) if tensors else node.out[1]
        shape, dim, keepdim = node.shapes[0], node.params["dim"], node.params["keepdim"]
        g, indices = (v if keepdim else unsqueeze(v, dim) for v in (g[0], indices))
        return (gather_place(g, indices, dim=dim, shape=tuple(shape)),)

    def jvp(
        self, tangents: Tangents, out: Any, inputs: Sequence[Value], params: dict[str, Any]
    ) -> tuple[Value, None]:
        dim, keepdim = params["dim"], params["keepdim"]
        indices = out[1] if keepdim else unsqueeze(out[1], dim)
        t = gather_along(tangents[0], indices, dim=dim)
        return t if keepdim else squeeze(t, dim), None


_max_along, _min_along = Selection("max_along"), Selection("min_along")
_median_along, _mode_along = Selection("median_along"), Selection("mode_along")


def select(
    name: str, op: Selection, input: Tensor, dim: int, keepdim: bool = True, **params: Any
) -> ValuesIndices:
    """Applies a selection; a tensor without dimensions is its own."""
    d = canonical_dim(name, dim, input.ndim)
    if input.ndim == 0:
        values, indices = op(reshape(input, (1,)), dim=-1, keepdim=True, **params)
        return ValuesIndices(reshape(values, ()), reshape(indices, ()))
    return ValuesIndices(*op(input, dim=d, keepdim=keepdim, **params))


# --- arguments ------------------------------------------------------------------------------------


def need_dim(op: str, keepdim: bool) -> None:
    """Refuses ``keepdim`` without ``dim`` where PyTorch does."""
    if keepdim:
        raise TypeError(f"{op}(): keepdim={keepdim} is given without dim; give the dim to keep")


def _need_elements(op: str, input: Value, dim: Dims) -> None:
    """Refuses to choose among nothing."""
    for d in canonical_dims(op, dim, input.ndim):
        if input.shape[d] == 0:
            raise IndexError(
                f"{op}: expected reduction dim {d + input.ndim} to have non-zero size, got a "
                f"tensor of shape {tuple(input.shape)}"
            )


def _need_order(op: str, input: Value, refused: str = "c") -> None:
    """Refuses types that cannot be compared."""
    d = array_of(op, input).dtype
    if d.kind in refused:
        raise NotImplementedError(f"{op}: not implemented for {dtypes.from_array_dtype(d)}")


def _all_dims(
    op: str, input: Value, dim: Dims, keepdim: bool = False, error: type[Exception] = RuntimeError
) -> tuple[int, ...]:
    """The dimensions to reduce, none of which may be empty."""
    need_dim(op, keepdim)
    if (dim is None or dim == ()) and 0 in input.shape:
        raise error(
            f"{op}: expected reduction dim to be specified for input.numel() == 0 (shape "
            f"{tuple(input.shape)}). Specify the reduction dim with the 'dim' argument."
        )
    _need_elements(op, input, dim)
    return canonical_dims(op, dim, input.ndim)


# --- extremes -------------------------------------------------------------------------------------


@takes_out()
@numpy_names
def amax(input: V, dim: Dims = None, keepdim: bool = False) -> V:
    """The largest element (along some dimensions); ties share the gradient evenly.

    >>> import chainrule
    >>> chainrule.tensor([[1.0, 5.0], [7.0, 3.0]]).amax(dim=1)
    tensor([5., 7.])
    """
    _need_order("amax", input)
    return _amax(input, dim=_all_dims("amax", input, dim), keepdim=keepdim)


@takes_out()
@numpy_names
def amin(input: V, dim: Dims = None, keepdim: bool = False) -> V:
    """The smallest element (along some dimensions); ties share the gradient evenly."""
    _need_order("amin", input)
    return _amin(input, dim=_all_dims("amin", input, dim), keepdim=keepdim)


@takes_out()
@numpy_names
def aminmax(input: Tensor, *, dim: int | None = None, keepdim: bool = False) -> MinMax:
    """The smallest and the largest element (along one dimension), as ``(min, max)``."""
    _need_order("aminmax", input)
    if dim is not None:
        dim = canonical_dim("aminmax", dim, input.ndim)
    dims = _all_dims("aminmax", input, dim)
    return MinMax(_amin(input, dim=dims, keepdim=keepdim), _amax(input, dim=dims, keepdim=keepdim))


@overload
def max(input: Tensor) -> Tensor: ...
@overload
def max(input: Tensor, dim: int, keepdim: bool = False) -> ValuesIndices: ...
@overload
def max(input: Tensor, other: Tensor, /) -> Tensor: ...
@overload
def max(input: Tensor, *, other: Tensor) -> Tensor: ...
@takes_out()
@numpy_names
def max(
    input: Tensor,
    dim: int | Tensor | None = None,
    keepdim: bool = False,
    *,
    other: Tensor | None = None,
) -> Tensor | ValuesIndices:
    """The largest of all elements; with ``dim``, the largest along it and their indices.

    ``max(input, other)`` is :func:`maximum`. Over all elements, ties share the gradient; along a
    dimension, the element at the returned index (the first) gets it.

    >>> import chainrule
    >>> values, indices = chainrule.tensor([[1.0, 5.0], [7.0, 3.0]]).max(dim=1)
    >>> indices
    tensor([1, 0])
    """
    _need_order("max", input)
    if isinstance(dim, Tensor):
        return maximum(input, dim)
    if other is not None:
        return maximum(input, other)
    if dim is None:
        return _amax(input, dim=_all_dims("max", input, None, keepdim), keepdim=False)
    _need_elements("max", input, dim)
    return select("max", _max_along, input, dim, keepdim)


@overload
def min(input: Tensor) -> Tensor: ...
@overload
def min(input: Tensor, dim: int, keepdim: bool = False) -> ValuesIndices: ...
@overload
def min(input: Tensor, other: Tensor, /) -> Tensor: ...
@overload
def min(input: Tensor, *, other: Tensor) -> Tensor: ...
@takes_out()
@numpy_names
def min(
    input: Tensor,
    dim: int | Tensor | None = None,
    keepdim: bool = False,
    *,
    other: Tensor | None = None,
) -> Tensor | ValuesIndices:
    """The smallest of all elements; with ``dim``, the smallest along it and their indices.

    ``min(input, other)`` is :func:`minimum`. Ties are treated as by :func:`max`.
    """
    _need_order("min", input)
    if isinstance(dim, Tensor):
        return minimum(input, dim)
    if other is not None:
        return minimum(input, other)
    if dim is None:
        return _amin(input, dim=_all_dims("min", input, None, keepdim), keepdim=False)
    _need_elements("min", input, dim)
    return select("min", _min_along, input, dim, keepdim)


@takes_out()
@numpy_names
def argmax(input: V, dim: int | None = None, keepdim: bool = False) -> V:
    """The index of the largest element (the first), in the flattened tensor or along ``dim``."""
    return _place("argmax", _argmax, input, dim, keepdim)


@takes_out()
@numpy_names
def argmin(input: V, dim: int | None = None, keepdim: bool = False) -> V:
    """The index of the smallest element (the first), in the flattened tensor or along ``dim``."""
    return _place("argmin", _argmin, input, dim, keepdim)


def _place(op: str, index_of: Nondifferentiable, input: V, dim: int | None, keepdim: bool) -> V:
    if array_of(op, input).dtype.kind == "b":
        raise RuntimeError(f"{op}: does not support bool input; convert it with .int() first")
    _need_order(op, input)
    if dim is None or input.ndim == 0:
        _all_dims(op, input, None, error=IndexError)
        if dim is not None:
            canonical_dim(op, dim, input.ndim)
        out = index_of(reshape(input, (-1,)), dim=-1, keepdim=False)
        return reshape(out, (1,) * input.ndim) if keepdim else out
    d = canonical_dim(op, dim, input.ndim)
    _need_elements(op, input, d)
    return index_of(input, dim=d, keepdim=keepdim)


# --- the middle -----------------------------------------------------------------------------------


@overload
def median(input: Tensor) -> Tensor: ...
@overload
def median(input: Tensor, dim: int, keepdim: bool = False) -> ValuesIndices: ...
@takes_out()
@numpy_names
def median(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor | ValuesIndices:
    """The median of all elements; with ``dim``, the medians along it and their indices.

    Of an even number of elements it is the lower of the two in the middle. NaN if there is a NaN.
    """
    return _middle("median", input, dim, keepdim, skip_nan=False)


@overload
def nanmedian(input: Tensor) -> Tensor: ...
@overload
def nanmedian(input: Tensor, dim: int, keepdim: bool = False) -> ValuesIndices: ...
@takes_out()
@numpy_names
def nanmedian(
    input: Tensor, dim: int | None = None, keepdim: bool = False
) -> Tensor | ValuesIndices:
    """Like :func:`median`, of the elements that are not NaN."""
    return _middle("nanmedian", input, dim, keepdim, skip_nan=True)


def _middle(
    op: str, input: Tensor, dim: int | None, keepdim: bool, skip_nan: bool
) -> Tensor | ValuesIndices:
    _need_order(op, input, "bc")
    if dim is not None:
        _need_elements(op, input, dim)
        return select(op, _median_along, input, dim, keepdim, skip_nan=skip_nan)
    need_dim(op, keepdim)
    if 0 in input.shape:
        return cast(of_array(K.asarray(float("nan"))), input.dtype)
    return _median(reshape(input, (-1,)), dim=(-1,), keepdim=False, skip_nan=skip_nan)


@takes_out()
@numpy_names
def mode(input: Tensor, dim: int = -1, keepdim: bool = False) -> ValuesIndices:
    """The most frequent element along ``dim`` (the smallest of several) and its last index."""
    _need_order("mode", input)
    _need_elements("mode", input, dim)
    return select("mode", _mode_along, input, dim, keepdim)

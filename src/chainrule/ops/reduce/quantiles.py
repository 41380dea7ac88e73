"""Quantiles: the elements between which a given share of all others lies."""

from __future__ import annotations


from chainrule.ops.core.arguments import placed_like
from chainrule.backend import ARRAYS, K, dtypes
from chainrule.ops.core.synonyms import numpy_names, takes_out
from chainrule.ops.core.promotion import cast
from chainrule.ops.elementwise.functions import ceil, floor
from chainrule.ops.elementwise.logic import isnan, where
from chainrule.ops.elementwise.options import round
from chainrule.ops.index.choice import gather_along
from chainrule.ops.reduce.reductions import _any, _sum, array_of
from chainrule.ops.reduce.sort import sort
from chainrule.ops.shape.views import canonical_dim, movedim, reshape, squeeze, unsqueeze
from chainrule.tensor import Tensor, of_array

__all__ = ["nanquantile", "quantile"]
METHODS = tuple(__all__)
INPLACE: tuple[str, ...] = ()


@takes_out()
@numpy_names
def quantile(
    input: Tensor,
    q: float | Tensor,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
) -> Tensor:
    """The q-th quantiles of all elements or along ``dim``; several q give a dimension in front.

    ``interpolation`` says what to do between two elements: ``"linear"``, ``"lower"``,
    ``"higher"``, ``"midpoint"`` or ``"nearest"``. NaN if there is a NaN.

    >>> import chainrule
    >>> chainrule.tensor([1.0, 2.0, 4.0]).quantile(0.75)
    tensor(3.)
    """
    return _quantile("quantile", input, q, dim, keepdim, interpolation, skip_nan=False)


@takes_out()
@numpy_names
def nanquantile(
    input: Tensor,
    q: float | Tensor,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
) -> Tensor:
    """Like :func:`quantile`, of the elements that are not NaN."""
    return _quantile("nanquantile", input, q, dim, keepdim, interpolation, skip_nan=True)


def _quantile(
    op: str,
    input: Tensor,
    q: float | Tensor,
    dim: int | None,
    keepdim: bool,
    interpolation: str,
    skip_nan: bool,
) -> Tensor:
    q = _checked_q(op, input, q, interpolation)
    d = -1 if dim is None else canonical_dim(op, dim, input.ndim)
    if dim is None or input.ndim == 0:
        rows = reshape(input, (-1,))
    else:
        rows = movedim(input, d, -1)
    ranks = _ranks(rows, reshape(q, (-1,)), skip_nan)
    out = movedim(_between(sort(rows, -1)[0], ranks, interpolation), -1, 0)
    if keepdim:
        single = dim is None or input.ndim == 0
        out = reshape(out, (-1,) + (1,) * input.ndim) if single else unsqueeze(out, d)
    return out if q.ndim else squeeze(out, 0)


def _checked_q(op: str, input: Tensor, q: float | Tensor, interpolation: str) -> Tensor:
    d = array_of(op, input).dtype
    if d not in (dtypes.float32.array_dtype, dtypes.float64.array_dtype):
        raise RuntimeError(f"{op}: input must be either float or double dtype, got {input.dtype}")
    if 0 in input.shape:
        raise RuntimeError(f"{op}: input tensor must be non-empty, got shape {tuple(input.shape)}")
    if interpolation not in ("linear", "lower", "higher", "midpoint", "nearest"):
        raise RuntimeError(
            f"{op}: interpolation must be one of linear, lower, higher, midpoint or nearest, but "
            f"got {interpolation}"
        )
    if isinstance(q, (int, float)):
        if not 0 <= q <= 1:
            raise RuntimeError(f"{op}: q must be in the range [0, 1] but got {q}")
        return placed_like(input, of_array(K.asarray(q, dtype=d)))
    if not isinstance(q, Tensor):
        raise TypeError(f"{op}(): argument 'q' must be a float or a Tensor, not {type(q).__name__}")
    if q.ndim > 1:
        raise RuntimeError(f"{op}: q must be a scalar or 1D tensor, got shape {tuple(q.shape)}")
    if q.array.dtype != d:
        raise RuntimeError(
            f"{op}: q tensor must be same dtype as the input tensor, got {q.dtype} and "
            f"{input.dtype}"
        )
    array = q.array
    if isinstance(array, ARRAYS) and not ((array >= 0) & (array <= 1)).all():
        raise RuntimeError(f"{op}: q values must be in the range [0, 1], got {q.tolist()}")
    return q


def _ranks(rows: Tensor, q: Tensor, skip_nan: bool) -> Tensor:
    """Where the quantiles lie in each sorted row, between 0 and its length - 1."""
    last = rows.shape[-1] - 1
    bad = isnan(rows)
    if skip_nan:
        count = cast(_sum(cast(~bad, rows.dtype), dim=(-1,), keepdim=True), rows.dtype)
        return q * where(count > 0, count - 1, 0.0)
    # NaN sorts to the end, so that the last element is one if any is.
    return where(_any(bad, dim=(-1,), keepdim=True), float(last), q * last)


def _between(ordered: Tensor, ranks: Tensor, interpolation: str) -> Tensor:
    """The elements of sorted rows at fractional ranks."""

    def at(places: Tensor) -> Tensor:
        return gather_along(ordered, cast(places, dtypes.int64), dim=-1)

    if interpolation == "nearest":
        return at(round(ranks))
    if interpolation == "higher":
        return at(ceil(ranks))
    below = at(floor(ranks))
    if interpolation == "lower":
        return below
    weight = 0.5 if interpolation == "midpoint" else ranks - floor(ranks)
    above = at(ceil(ranks))
    # Where the rank is whole the element itself is meant, also if it is infinite.
    return where(ranks == floor(ranks), below, below + weight * (above - below))

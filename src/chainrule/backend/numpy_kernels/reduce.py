"""Reductions and scans.

``dim`` is counted from the end: a tuple for reductions, one number for scans and choices. Half
precision is accumulated in single precision.
"""

from __future__ import annotations

import math
from itertools import accumulate
from typing import Any

import numpy as np

from chainrule.backend.numpy_kernels.complex_numbers import complex_logcumsumexp
from chainrule.backend.numpy_kernels.operands import Result

__all__ = [
    "all",
    "amax",
    "amin",
    "any",
    "argmax",
    "argmin",
    "count_nonzero",
    "cummax",
    "cummin",
    "cumprod",
    "cumsum",
    "linear_scan",
    "logcumsumexp",
    "logsumexp",
    "max_along",
    "mean",
    "median",
    "median_along",
    "min_along",
    "mode_along",
    "pnorm",
    "prod",
    "shift_along",
    "spread",
    "std",
    "sum",
    "sum_to",
    "var",
]

F16, F32, F64 = np.dtype(np.float16), np.dtype(np.float32), np.dtype(np.float64)
Dims = tuple[int, ...]

# (array, dimensions, dtype, out, keepdims), by position: NumPy reads names more slowly.
_add: Any = np.add.reduce
_multiply: Any = np.multiply.reduce
_maximum: Any = np.maximum.reduce
_minimum: Any = np.minimum.reduce
_and: Any = np.logical_and.reduce
_or: Any = np.logical_or.reduce


# --- sums -----------------------------------------------------------------------------------------


def sum(a: np.ndarray, dim: Dims, keepdim: bool) -> Result:
    """The sum over the dimensions."""
    if a.dtype is F16:
        return _add(a, dim, F32, None, keepdim).astype(F16)
    return _add(a, dim, a.dtype, None, keepdim)


def mean(a: np.ndarray, dim: Dims, keepdim: bool) -> Result:
    """The sum over the dimensions by the number of elements."""
    if a.dtype is F16:
        return (_add(a, dim, F32, None, keepdim) / _count(a, dim)).astype(F16)
    n = a.size if len(dim) == a.ndim else _count(a, dim)
    return _add(a, dim, None, None, keepdim) / n


def _count(a: np.ndarray, dim: Dims) -> int:
    return math.prod([a.shape[d] for d in dim])


def spread(a: Result, shape: tuple[int, ...], dim: Dims, keepdim: bool) -> np.ndarray:
    """The transpose of a sum: ``a`` repeated along the summed dimensions."""
    n = len(shape)
    if not keepdim and len(dim) < n:
        a = a.reshape([1 if i in dim else s for i, s in enumerate(shape, -n)])
    if math.prod(shape) > 4096:
        return np.broadcast_to(a, shape)
    # A small array is made faster than a view of it (and used faster, and owned by its receiver).
    out = np.empty(shape, a.dtype)
    out[...] = a
    return out


def sum_to(a: np.ndarray, shape: tuple[int, ...]) -> Result:
    """The transpose of broadcasting ``shape`` to ``a.shape``."""
    extra = a.ndim - len(shape)
    if shape == a.shape[extra:]:
        # Leading dimensions only: one reduction without reshaping.
        return _add(a, axis=0 if extra == 1 else tuple(range(extra)))
    axes = tuple([i for i in range(a.ndim) if i < extra or shape[i - extra] != a.shape[i]])
    if len(axes) == 1 and 0 < axes[0] < a.ndim - 1 and a.dtype in (F32, F64):
        return _sum_of_rows(a, axes[0]).reshape(shape)
    return _add(a, axis=axes, keepdims=True).reshape(shape)


def _sum_of_rows(a: np.ndarray, axis: int) -> np.ndarray:
    """The sum over a dimension in the middle, as products with ones: NumPy's takes much longer."""
    shape = a.shape
    rows = a.reshape(math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :]))
    return np.matmul(np.ones((1, shape[axis]), a.dtype), rows)


def prod(a: np.ndarray, dim: Dims, keepdim: bool) -> Result:
    """The product over the dimensions."""
    if a.dtype is F16:
        return _multiply(a, dim, F32, None, keepdim).astype(F16)
    return _multiply(a, dim, a.dtype, None, keepdim)


def var(a: np.ndarray, dim: Dims, keepdim: bool, correction: float) -> Result:
    """The squares of the deviations from the mean, over the count less the correction."""
    if a.dtype is F16:
        return var(a.astype(F32), dim, keepdim, correction).astype(F16)
    n = _count(a, dim)
    d = a - _add(a, dim, None, None, True) / n
    squares = np.square(d) if a.dtype.kind == "f" else d.real**2 + d.imag**2
    return _add(squares, dim, None, None, keepdim) / max(n - correction, 0)


def std(a: np.ndarray, dim: Dims, keepdim: bool, correction: float) -> Result:
    """sqrt(var)"""
    return np.sqrt(var(a, dim, keepdim, correction))


def pnorm(a: np.ndarray, dim: Dims, keepdim: bool, p: float) -> Result:
    """(sum |a|^p)^(1/p); the number of nonzero elements for p = 0."""
    if a.dtype is F16:
        return pnorm(a.astype(F32), dim, keepdim, p).astype(F16)
    size = np.abs(a)
    if p == 0:
        return _add(a != 0, dim, size.dtype, None, keepdim)
    if p == 1:
        return _add(size, dim, None, None, keepdim)
    if p == 2:
        return np.sqrt(_add(np.square(size), dim, None, None, keepdim))
    return _add(np.power(size, p), dim, None, None, keepdim) ** (1 / p)


def logsumexp(a: np.ndarray, dim: Dims, keepdim: bool) -> Result:
    """log(sum(exp(a))) about the largest (real part), so that nothing overflows."""
    if a.dtype is F16:
        return logsumexp(a.astype(F32), dim, keepdim).astype(F16)
    top = _maximum(a.real, dim, None, None, True, initial=-np.inf)
    shift = np.where(np.isfinite(top), top, top.dtype.type(0))
    total = _add(np.exp(a - shift), dim, None, None, True)
    out = np.log(total) + shift
    return out if keepdim else np.squeeze(out, dim)


def all(a: np.ndarray, dim: Dims, keepdim: bool) -> Result:
    """Whether no element is 0."""
    return _and(a, dim, None, None, keepdim)


def any(a: np.ndarray, dim: Dims, keepdim: bool) -> Result:
    """Whether some element is not 0."""
    return _or(a, dim, None, None, keepdim)


def count_nonzero(a: np.ndarray, dim: Dims, keepdim: bool) -> Result:
    """How many elements are not 0, as int64."""
    return _add(a != 0, dim, np.int64, None, keepdim)


# --- choices --------------------------------------------------------------------------------------

# An element along one dimension: the kernel returns its value and its index.
Chosen = tuple[np.ndarray, np.ndarray]


def amax(a: np.ndarray, dim: Dims, keepdim: bool) -> Result:
    """The largest element; NaN if there is one."""
    return _maximum(a, dim, None, None, keepdim)


def amin(a: np.ndarray, dim: Dims, keepdim: bool) -> Result:
    """The smallest element; NaN if there is one."""
    return _minimum(a, dim, None, None, keepdim)


def argmax(a: np.ndarray, dim: int, keepdim: bool) -> Result:
    """The first place of the largest element (or of NaN)."""
    return a.argmax(dim, keepdims=keepdim)


def argmin(a: np.ndarray, dim: int, keepdim: bool) -> Result:
    """The first place of the smallest element (or of NaN)."""
    return a.argmin(dim, keepdims=keepdim)


def max_along(a: np.ndarray, dim: int, keepdim: bool) -> Chosen:
    """The largest element (or NaN) and its first place."""
    values = _maximum(a, dim, None, None, keepdim)
    return np.asarray(values), np.asarray(a.argmax(dim, keepdims=keepdim))


def min_along(a: np.ndarray, dim: int, keepdim: bool) -> Chosen:
    """The smallest element (or NaN) and its first place."""
    values = _minimum(a, dim, None, None, keepdim)
    return np.asarray(values), np.asarray(a.argmin(dim, keepdims=keepdim))


def _take(a: np.ndarray, index: np.ndarray, dim: int, keepdim: bool) -> Chosen:
    values = np.take_along_axis(a, index, dim)
    return (values, index) if keepdim else (np.squeeze(values, dim), np.squeeze(index, dim))


def median_along(a: np.ndarray, dim: int, keepdim: bool, skip_nan: bool) -> Chosen:
    """The lower median (the first of equal elements).

    NaN is the median of a row with NaN, unless those are skipped.
    """
    ordered, isnan = np.sort(a, axis=dim), a != a
    count = _add(~isnan, dim, np.int64, None, True)
    # NaN is sorted to the end.
    place = np.where((count == a.shape[dim]) | skip_nan, (count - 1) // 2, a.shape[dim] - 1)
    middle = np.take_along_axis(ordered, np.maximum(place, 0), dim)
    chosen = (a == middle) | (isnan & (middle != middle))
    return _take(a, chosen.argmax(dim, keepdims=True), dim, keepdim)


def median(a: np.ndarray, dim: Dims, keepdim: bool, skip_nan: bool) -> np.ndarray:
    """The value of ``median_along`` over the one dimension of ``dim``."""
    return median_along(a, dim[0], keepdim, skip_nan)[0]


def mode_along(a: np.ndarray, dim: int, keepdim: bool) -> Chosen:
    """The most frequent element (the smallest of several), where it stands last."""
    rows = np.moveaxis(a, dim, -1)
    order = np.argsort(rows, axis=-1, kind="stable")
    ordered = np.take_along_axis(rows, order, -1)
    places = np.arange(a.shape[dim])
    begins = np.ones(rows.shape, bool)
    begins[..., 1:] = ordered[..., 1:] != ordered[..., :-1]
    length = places - np.maximum.accumulate(np.where(begins, places, 0), axis=-1)
    longest = np.take_along_axis(order, length.argmax(-1, keepdims=True), -1)
    return _take(a, np.moveaxis(longest, -1, dim), dim, keepdim)


# --- scans ----------------------------------------------------------------------------------------


def _accumulate(ufunc: np.ufunc, a: np.ndarray, dim: int, reverse: bool) -> np.ndarray:
    if a.dtype is F16:
        return _accumulate(ufunc, a.astype(F32), dim, reverse).astype(F16)
    if reverse:
        return np.flip(ufunc.accumulate(np.flip(a, dim), dim, a.dtype), dim)
    return ufunc.accumulate(a, dim, a.dtype)


def cumsum(a: np.ndarray, dim: int, reverse: bool) -> np.ndarray:
    """out[i] = a[0] + ... + a[i] along ``dim``, a[i] + ... + a[n-1] if ``reverse``."""
    return _accumulate(np.add, a, dim, reverse)


def cumprod(a: np.ndarray, dim: int, reverse: bool) -> np.ndarray:
    """out[i] = a[0] * ... * a[i] along ``dim``, a[i] * ... * a[n-1] if ``reverse``."""
    return _accumulate(np.multiply, a, dim, reverse)


def logcumsumexp(a: np.ndarray, dim: int) -> np.ndarray:
    """out[i] = log(exp(a[0]) + ... + exp(a[i])) along ``dim``, without overflow."""
    if a.dtype.kind == "c":
        return complex_logcumsumexp(a, dim)
    return _accumulate(np.logaddexp, a, dim, False)


def cummax(a: np.ndarray, dim: int, keepdim: bool) -> Chosen:
    """The largest element (or NaN) so far, where it stands latest."""
    return _latest(a, np.maximum.accumulate(a, dim), dim)


def cummin(a: np.ndarray, dim: int, keepdim: bool) -> Chosen:
    """The smallest element (or NaN) so far, where it stands latest."""
    return _latest(a, np.minimum.accumulate(a, dim), dim)


def _latest(a: np.ndarray, best: np.ndarray, dim: int) -> Chosen:
    places = np.arange(a.shape[dim]).reshape([-1] + [1] * (-dim - 1))
    return best, np.maximum.accumulate(np.where((a == best) | (a != a), places, 0), dim)


def shift_along(a: np.ndarray, dim: int, by: int, fill: float) -> np.ndarray:
    """``a`` moved by one place along ``dim`` (``by`` is 1 or -1); ``fill`` takes the empty one."""
    out = np.empty_like(a)
    source, target = np.moveaxis(a, dim, 0), np.moveaxis(out, dim, 0)
    if by > 0:
        target[1:], target[:1] = source[:-1], fill
    else:
        target[:-1], target[-1:] = source[1:], fill
    return out


def linear_scan(a: np.ndarray, b: np.ndarray, dim: int, reverse: bool) -> np.ndarray:
    """h[i] = a[i] h[i-1] + b[i] along ``dim``, from the other end if ``reverse``."""
    out = np.empty_like(b)
    if out.size == 0:
        return out
    order = slice(None, None, -1 if reverse else 1)
    a, b, h = (np.moveaxis(v, dim, 0)[order] for v in (a, b, out))
    if b[0].size <= 4:
        # Few long rows: Python numbers are faster than short arrays.
        for row in np.ndindex(b.shape[1:]):
            column = (slice(None), *row)
            pairs = zip(a[column].tolist(), b[column].tolist(), strict=True)
            steps = accumulate(pairs, lambda last, ab: (0, ab[0] * last[1] + ab[1]))
            h[column] = [value for _, value in steps]
        return out
    h[0] = b[0]
    for i in range(1, len(h)):
        np.multiply(a[i], h[i - 1], out=h[i])
        h[i] += b[i]
    return out

"""The p-norm of elements, over all of them or along some dimensions."""

from __future__ import annotations

import math

from chainrule.backend import dtypes
from chainrule.ops.core.promotion import cast
from chainrule.ops.elementwise.complex_numbers import abs, sgn
from chainrule.ops.elementwise.functions import pow, zeros_like_of
from chainrule.ops.elementwise.logic import where
from chainrule.ops.reduce.order import amax, amin
from chainrule.ops.reduce.reductions import _count, _over, need_floating, reduction
from chainrule.ops.shape.views import canonical_dims
from chainrule.typing import Dims, DType, V, Value

__all__ = ["p_norm"]

_norm = reduction("pnorm", lambda d, x, out, dim, p: _norm_change(d, x, out, p))


def _norm_change(d: Value, x: Value, out: Value, p: float) -> Value:
    """d sgn(x) |x|^(p-1) / out^(p-1), and 0 at 0."""
    if p == 0:
        return d * zeros_like_of(x)
    if p == 1:
        return d * sgn(x)
    if p == 2:
        return _over(d, out) * x
    zero = x == 0
    power = where(zero, 0.0, pow(where(zero, 1.0, abs(x)), p - 1))
    if p < 1:
        return d * pow(out, 1 - p) * (sgn(x) * power)
    return _over(d, pow(out, p - 1)) * (sgn(x) * power)


def _rest(input: Value, dims: tuple[int, ...]) -> list[int]:
    """The sizes of the dimensions that stay."""
    return [n for i, n in enumerate(input.shape, -input.ndim) if i not in dims]


def _wider(op: str, input: Value, dtype: DType) -> dtypes.dtype:
    d = dtypes.as_dtype(dtype)
    if d.category <= dtypes.INTEGER:
        raise RuntimeError(f"{op}: dtype should be floating point or complex, but got {d}")
    if dtypes.promote_types(dtypes.as_dtype(input.dtype), d) is not d:
        raise RuntimeError(
            f"{op}: the dtype of the input ({input.dtype}) should be convertible without narrowing "
            f"to the specified dtype ({d})"
        )
    return d


def p_norm(input: V, p: float, dim: Dims, keepdim: bool, dtype: DType | None = None) -> V:
    """(sum |x|^p)^(1/p); the largest |x| for p = inf, the smallest for -inf, nonzeros for 0."""
    need_floating("norm", input)
    if dtype is not None:
        input = cast(input, _wider("norm", input, dtype))
    dims = canonical_dims("norm", dim, input.ndim)
    if (p < 0 or p == math.inf) and _count(input.shape, dims) == 0 and 0 not in _rest(input, dims):
        raise RuntimeError(
            f"norm: cannot compute the {p} norm of a tensor of shape {tuple(input.shape)}, because "
            "there is no element to reduce and the operation has no identity"
        )
    if math.isinf(p):
        return (amax if p > 0 else amin)(abs(input), dims, keepdim)
    return _norm(input, dim=dims, keepdim=keepdim, p=p)

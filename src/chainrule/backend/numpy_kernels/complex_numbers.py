"""What kernels do with complex numbers where NumPy has nothing, or loses digits."""

from __future__ import annotations

import numpy as np

from chainrule.backend.numpy_kernels.operands import Operand

__all__ = ["complex_log1p", "complex_logaddexp", "complex_logcumsumexp", "complex_sigmoid"]


def complex_sigmoid(a: np.ndarray) -> np.ndarray:
    """1 / (1 + exp(-a)), by the exponential that cannot overflow."""
    left = a.real < 0
    e = np.exp(np.where(left, a, -a))
    return np.where(left, e, a.dtype.type(1)) / (1 + e)


def complex_log1p(a: np.ndarray) -> np.ndarray:
    """log(1 + a), exact for small a, where NumPy takes the logarithm of a rounded 1 + a."""
    x, y = a.real, a.imag
    near = np.abs(x) + np.abs(y) < 0.5
    square = np.where(near, x * (2 + x) + y * y, 0)  # |1 + a|^2 - 1
    size = np.where(near, 0.5 * np.log1p(square), np.log(np.hypot(1 + x, y)))
    out = np.empty_like(a)
    out.real, out.imag = size, np.arctan2(y, 1 + x)
    return out


def complex_logaddexp(a: Operand, b: Operand) -> np.ndarray:
    """log(exp(a) + exp(b)) about the one with the larger real part, whose branch it keeps."""
    dtype = np.result_type(a, b)
    x, y = np.broadcast_arrays(np.asarray(a, dtype), np.asarray(b, dtype))
    first = x.real >= y.real
    high, low = np.where(first, x, y), np.where(first, y, x)
    difference = low - high
    share = np.where(difference.real == -np.inf, dtype.type(0), np.exp(difference))
    out = np.asarray(high + complex_log1p(share))
    same = ~np.isfinite(low.real) & (low.real == high.real)
    if same.any():  # both are infinite, and their difference has no value
        infinite = np.where(low.real < 0, low, np.log(np.exp(low) + np.exp(high)))
        out = np.where(same, infinite, out)
    nan = np.isnan(x) | np.isnan(y)
    return np.where(nan, dtype.type(complex(np.nan, np.nan)), out) if nan.any() else out


def complex_logcumsumexp(a: np.ndarray, dim: int) -> np.ndarray:
    """out[i] = log(exp(out[i-1]) + exp(a[i])) along ``dim``."""
    out = a.copy()
    steps = np.moveaxis(out, dim, 0)
    for i in range(1, len(steps)):
        steps[i] = complex_logaddexp(steps[i - 1], steps[i])
    return out

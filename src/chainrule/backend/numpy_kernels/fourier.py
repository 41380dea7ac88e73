"""Fourier transforms: NumPy's, in the precision of their input."""

from __future__ import annotations

from typing import Literal

import numpy as np

__all__ = ["fft_c2c", "fft_c2r", "fft_r2c", "half_spectrum_weights"]

Norm = Literal["backward", "ortho", "forward"]


def _complex_of(a: np.ndarray) -> np.dtype:
    return np.result_type(a.dtype, np.complex64)


def fft_c2c(a: np.ndarray, dims: tuple[int, ...], inverse: bool, norm: Norm) -> np.ndarray:
    """sum_j a[j] exp(-2 pi i j k / n) along these dimensions; with +i if ``inverse``."""
    transform = np.fft.ifftn if inverse else np.fft.fftn
    return transform(a, axes=dims, norm=norm).astype(_complex_of(a), copy=False)


def fft_r2c(a: np.ndarray, dim: int, norm: Norm) -> np.ndarray:
    """The first n // 2 + 1 terms of the transform of real numbers: the others are conjugates."""
    return np.fft.rfft(a, axis=dim, norm=norm).astype(_complex_of(a), copy=False)


def fft_c2r(a: np.ndarray, n: int, dim: int, norm: Norm) -> np.ndarray:
    """The n real numbers whose transform begins with these terms."""
    return np.fft.irfft(a, n, axis=dim, norm=norm).astype(a.real.dtype, copy=False)


def half_spectrum_weights(n: int, dtype: np.dtype) -> np.ndarray:
    """For how many of n terms each of the first n // 2 + 1 stands: itself, and its conjugate."""
    out = np.full(n // 2 + 1, 2, dtype)
    out[0] = 1
    if n % 2 == 0:
        out[-1] = 1
    return out

"""What the tests of compiled kernels share: the two kinds of kernels, and how to compare them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from chainrule import backend

if backend.why_not_native:
    pytest.skip(f"no compiled kernels: {backend.why_not_native}", allow_module_level=True)
from chainrule.backend import _native as native

__all__ = ["FLOATS", "SETTINGS", "agree", "in_setting", "native", "numbers", "reference"]

FLOATS = (np.float32, np.float64)
SETTINGS = [
    ("baseline", 1),
    ("baseline", 3),
    ("avx2", 2),
    ("avx512", 1),
    ("avx512", 2),
    ("avx512", 3),
]
_FAMILIES = backend._IMPLEMENTATIONS["numpy"]
_REFERENCE = {name: getattr(f, name) for f in _FAMILIES for name in f.__all__}
# In units of the largest number that goes in or comes out.
TOLERANCE = {"f": 3e-6, "d": 2e-14}


def reference(name: str) -> Any:
    """The NumPy kernel of this name."""
    return _REFERENCE[name]


def in_setting(setting: tuple[str, int]) -> Iterator[None]:
    """Uses an instruction set and a number of threads for the length of a test."""
    isa, threads = setting
    before = native.get_isa(), native.get_num_threads()
    if not native.set_isa(isa):
        pytest.skip(f"this processor has no {isa}")
    native.set_num_threads(threads)
    yield
    native.set_isa(before[0])
    native.set_num_threads(before[1])


def numbers(seed: int, shape: Any, dtype: Any, scale: float = 3.0) -> np.ndarray:
    return (np.random.default_rng(seed).normal(size=shape) * scale).astype(dtype)


def agree(ours: Any, theirs: Any, tolerance: float = 1.0, scale: float | None = None) -> None:
    """Same shape and dtype, and numbers that differ by rounding; NaN and infinities alike."""
    if isinstance(theirs, tuple):
        assert isinstance(ours, tuple)
        for a, b in zip(ours, theirs, strict=True):
            agree(a, b, tolerance, scale)
        return
    if theirs is None:
        assert ours is None
        return
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    assert ours.shape == theirs.shape
    assert ours.dtype == theirs.dtype
    if scale is None:
        finite = np.abs(theirs[np.isfinite(theirs)])
        scale = max(1.0, float(finite.max(initial=0.0)))
    atol = TOLERANCE[theirs.dtype.char] * tolerance * scale
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=atol)

"""Copies of arrays in any order of memory."""

from __future__ import annotations

import numpy as np
import pytest

from chainrule.backend.numpy_kernels import memory

SHAPES = [(), (0, 3), (130, 140), (3, 70, 100), (1, 20000), (20000, 1), (5, 4, 33, 40)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "int64", "complex128", "bool"])
def test_copies_are_in_row_major_order(shape: tuple[int, ...], dtype: str) -> None:
    """Small ones and those that are copied in bands."""
    a = np.random.default_rng(0).normal(size=shape).astype(dtype)
    views = [a, a.T, a[::-1].T] if a.ndim else [a]
    views += [np.moveaxis(a, 0, -1), np.broadcast_to(a[..., :1], a.shape)] if a.ndim else []
    for view in views:
        for made in (memory.copy(view), memory.owned(view, True), memory.to_contiguous(view)):
            assert made.flags.c_contiguous
            assert made.dtype == view.dtype
            np.testing.assert_array_equal(made, view)
        assert not np.shares_memory(memory.copy(view), view)

"""How two results differ, in a few words: kind, shape, dtype, numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from parity.database.translate import to_array

import chainrule

__all__ = ["RTOL", "difference", "difference_of_arrays", "not_near"]

RTOL = {"float64": 1e-7, "complex128": 1e-7, "float32": 3e-5, "complex64": 3e-5}


def difference(
    ours: Any, theirs: Any, elementwise: bool, values: bool = True, atol: float = 0.0
) -> str:
    """In a few words, how two results differ; empty if they agree."""
    if isinstance(theirs, (list, tuple)) and not isinstance(theirs, torch.Size):
        if not isinstance(ours, (list, tuple)) or len(ours) != len(theirs):
            return f"{type(ours).__name__} for {type(theirs).__name__} of {len(theirs)}"
        found = (
            difference(a, b, elementwise, values, atol) for a, b in zip(ours, theirs, strict=True)
        )
        return next((d for d in found if d), "")
    if not isinstance(theirs, torch.Tensor):
        if isinstance(theirs, torch.dtype | torch.Size | type(None) | str):
            same = str(ours).rpartition(".")[2] == str(theirs).rpartition(".")[2]
            return "" if same else f"{ours} for {theirs}"
        if type(ours) is not type(theirs):
            return f"{type(ours).__name__} for {type(theirs).__name__}"
        return difference_of_arrays(np.asarray(ours), np.asarray(theirs), True) if values else ""
    if isinstance(ours, np.ndarray | np.generic):
        # Given numbers alone, chainrule computes with NumPy: its result is one of NumPy's.
        ours = chainrule.as_tensor(np.asarray(ours, dtype=to_array(theirs).dtype))
    if not isinstance(ours, chainrule.Tensor):
        return f"{type(ours).__name__} for a tensor"
    if tuple(ours.shape) != tuple(theirs.shape):
        return f"shape {tuple(ours.shape)} for {tuple(theirs.shape)}"
    if str(ours.dtype).rpartition(".")[2] != str(theirs.dtype).rpartition(".")[2]:
        return f"{ours.dtype} for {theirs.dtype}"
    if not values:
        return ""
    return difference_of_arrays(ours.detach().array, to_array(theirs), elementwise, atol)


def difference_of_arrays(
    ours: np.ndarray, theirs: np.ndarray, elementwise: bool, atol: float = 0.0
) -> str:
    """The first place where two arrays are not equal to within rounding."""
    wrong = not_near(ours, theirs, elementwise, atol)
    if not np.any(wrong):
        return ""
    at = tuple(int(i) for i in np.argwhere(wrong)[0]) if theirs.ndim else ()
    return f"{ours[at]} for {theirs[at]} at {at}, {int(np.sum(wrong))} of {theirs.size}"


def not_near(
    ours: np.ndarray, theirs: np.ndarray, elementwise: bool, atol: float = 0.0
) -> np.ndarray:
    """Where two arrays are not equal to within rounding."""
    rtol = RTOL.get(theirs.dtype.name, 1e-2)
    if theirs.dtype.name == "bfloat16":
        ours, theirs = ours.astype(np.float32), theirs.astype(np.float32)
    if theirs.dtype.kind not in "fc":
        return np.asarray(ours != theirs)
    size = np.abs(theirs[np.isfinite(theirs)])
    with np.errstate(all="ignore"):
        least = 3e-2 if rtol > 1e-6 else 1e-3
        scale = least if elementwise or not size.size else max(float(size.max()), least)
        near = np.abs(ours - theirs) <= atol + rtol * (scale + np.abs(theirs))
        return np.asarray(
            ~((near & np.isfinite(theirs)) | (ours == theirs) | _same_nan(ours, theirs))
        )


def _same_nan(ours: np.ndarray, theirs: np.ndarray) -> Any:
    if theirs.dtype.kind == "c":  # which part is inf and which NaN is left open by the arithmetic
        return ~np.isfinite(ours) & ~np.isfinite(theirs)
    return np.isnan(ours) & np.isnan(theirs)

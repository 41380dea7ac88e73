"""Conformal intervals: how far predictions were off on rows that were not learned from."""

from __future__ import annotations

import math
from typing import Any

from chainrule.data.preprocess import saved
from chainrule.ops.elementwise.complex_numbers import abs
from chainrule.ops.reduce.sort import sort
from chainrule.tensor import Tensor

__all__ = ["check_errors", "half_width", "kept_errors"]

KEPT = 1000  # errors that are kept for each target, at most


def kept_errors(output: Tensor, truth: Tensor) -> list[list[float]]:
    """The sizes of errors of each target, sorted; of many, so many that lie evenly among them."""
    errors = sort(abs(output - truth), 0)[0]
    n = len(errors)
    if n > KEPT:  # rounded up: intervals may become wider by that, not narrower
        errors = errors[[math.ceil((i + 1) * n / KEPT) - 1 for i in range(KEPT)]]
    return errors.mT.tolist()


def half_width(errors: list[float], rows: int, level: float) -> float:
    """The ceil((n + 1) level)-th smallest of n errors, which holds for another row with probability
    ``level`` at least; infinite where n is too small for that.

    Args:
        errors: as :func:`kept_errors` keeps them.
        rows: n, how many there were.
        level: between 0 and 1.
    """
    share = math.ceil((rows + 1) * level) / rows
    return math.inf if share > 1 else errors[max(0, math.ceil(share * len(errors)) - 1)]


def check_errors(calibration: Any, targets: int) -> None:
    """Raises ValueError where what a file holds is not what :func:`half_width` can take."""
    if calibration is None:
        return
    (rows,) = saved("calibration", calibration, rows="count")
    errors = calibration.get("errors", [])
    if not isinstance(errors, list) or (errors and len(errors) != targets):
        raise ValueError(f"calibration: expected errors of {targets} targets, got {errors!r:.60}")
    for column in errors:
        if not isinstance(column, list) or not 0 < len(column) <= rows:
            raise ValueError(f"calibration: expected 1 to {rows} errors, got {column!r:.60}")
        for e in column:
            if not isinstance(e, float) or not 0 <= e < math.inf:
                raise ValueError(f"calibration: an error is a number of at least 0, got {e!r:.60}")

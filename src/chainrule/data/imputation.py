"""Filling in missing values."""

from __future__ import annotations

import math
from typing import Self

from chainrule.backend import dtypes
from chainrule.data.preprocess import Transform, across, floating
from chainrule.ops.creation.patterns import full_like
from chainrule.ops.elementwise.logic import isinf, isnan, where
from chainrule.ops.reduce.quantiles import nanquantile
from chainrule.ops.core.promotion import cast
from chainrule.ops.reduce.reductions import all as all_of
from chainrule.ops.reduce.reductions import any as any_of
from chainrule.ops.reduce.reductions import nanmean
from chainrule.ops.shape.views import movedim, reshape
from chainrule.ops.shape.stacking import cat
from chainrule.ops.index.subscript import numbers_of
from chainrule.tensor import Tensor
from chainrule.typing import ArrayLike

__all__ = ["Imputer"]

STRATEGIES = ("mean", "median", "constant")


class Imputer(Transform):
    """Replaces NaN by a value for each column (or channel) that it learned from the others there.

    With ``indicators``, columns of zeros and ones are added behind the others, one for each column
    that had gaps in the training part: 1 says that the value was missing. ``inverse`` takes them
    away and puts NaN back where they say so; without them it returns the filled values.

    Args:
        strategy: "mean" or "median" of the column, or "constant" for ``fill_value``.
        fill_value: what to fill in with "constant".
        indicators: whether to add columns that say what was missing; for inputs (N, D).

    >>> import chainrule
    >>> imputer = Imputer(indicators=True).fit(chainrule.tensor([[1.0, 5.0], [3.0, float("nan")]]))
    >>> imputer(chainrule.tensor([[float("nan"), float("nan")]]))
    tensor([[2., 5., 1.]])
    """

    fitted_names = ("fill", "had_gaps")

    def __init__(
        self, strategy: str = "mean", *, fill_value: float | None = None, indicators: bool = False
    ):
        super().__init__()
        if strategy not in STRATEGIES:
            raise ValueError(f"Imputer: strategy must be one of {STRATEGIES}, got {strategy!r}")
        if (strategy == "constant") != (fill_value is not None):
            raise ValueError("Imputer: give fill_value with strategy='constant', and only then")
        if fill_value is not None and not math.isfinite(fill_value):
            raise ValueError(f"Imputer: fill_value must be finite, got {fill_value}")
        self.strategy, self.fill_value, self.indicators = strategy, fill_value, indicators

    def fit(self, x: ArrayLike) -> Self:
        """Learns what to fill in, and which columns have gaps."""
        x = self._accepted(floating(self, x).detach())
        if 0 in x.shape:
            raise ValueError(f"Imputer.fit: the training part is empty, got {tuple(x.shape)}")
        values = cast(x, dtypes.float64)
        if x.ndim > 2:
            values = reshape(movedim(values, 1, -1), (-1, x.shape[1]))
        gaps = isnan(values)
        if self.fill_value is not None:
            fill = full_like(values[0], self.fill_value)
        else:
            empty = [i for i, e in enumerate(all_of(gaps, 0).tolist()) if e]
            if empty:
                raise ValueError(
                    f"Imputer: column {empty[0]}, counted from 0, has no values at all, so it has "
                    f"no {self.strategy}; drop it, or use strategy='constant'"
                )
            mean = self.strategy == "mean"
            fill = nanmean(values, 0) if mean else nanquantile(values, 0.5, 0)
        return self.keep(fill=fill, had_gaps=any_of(gaps, 0))

    def _accepted(self, x: Tensor) -> Tensor:
        if self.indicators and x.ndim != 2:
            raise ValueError(f"Imputer: indicators need an input (N, D), got {tuple(x.shape)}")
        infinite = isinf(x.detach())
        found = any_of(infinite)
        if numbers_of(found) is not None and bool(found):
            columns = any_of(infinite, (0, *range(2, x.ndim))).tolist()
            raise ValueError(
                f"Imputer: column {columns.index(True)}, counted from 0, has infinite values; "
                "replace them by numbers or NaN first"
            )
        return x

    def forward(self, x: ArrayLike) -> Tensor:
        """The input with its gaps filled; its gradient is zero there."""
        x = self._accepted(self.shaped(x, "fill"))
        gaps = isnan(x)
        filled = where(gaps, across(cast(self.fill, x.dtype), x.ndim), x)
        if not self.indicators:
            return filled
        return cat([filled, cast(gaps[:, self._marked()], x.dtype)], 1)

    def _marked(self) -> list[int]:
        """The columns that have an indicator."""
        return [i for i, g in enumerate(self.had_gaps.tolist()) if g]

    def inverse(self, x: ArrayLike) -> Tensor:
        """The input, with NaN where the indicators say that a value was missing."""
        self.need_fit()
        if not self.indicators:
            return self.shaped(x, "fill")
        marked, d = self._marked(), int(self.fill.shape[0])
        x = floating(self, x, d + len(marked))
        columns = list(x[:, :d].unbind(1))
        for place, column in enumerate(marked):
            missing = x[:, d + place] > 0.5
            columns[column] = where(missing, math.nan, columns[column])
        return cat([reshape(c, (-1, 1)) for c in columns], 1)

    def extra_repr(self) -> str:
        told = [repr(self.strategy)]
        if self.fill_value is not None:
            told.append(f"fill_value={self.fill_value:g}")
        return ", ".join(told + ["indicators=True"] * self.indicators)

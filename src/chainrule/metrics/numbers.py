"""Measures of predicted numbers: errors and explained variance."""

from __future__ import annotations

from chainrule.ops.elementwise.logic import where
from chainrule.ops.reduce.reductions import mean, sum
from chainrule.tensor import Tensor
from chainrule.metrics.labels import values_of
from chainrule.typing import ArrayLike

__all__ = [
    "explained_sum_of_squares",
    "mae",
    "max_error",
    "mse",
    "r2",
    "residual_sum_of_squares",
    "rmse",
]


def _numbers(name: str, output: ArrayLike, target: ArrayLike) -> tuple[Tensor, Tensor]:
    predicted = values_of(name, "output", output).double()
    true = values_of(name, "target", target).double()
    if predicted.shape != true.shape or true.numel() == 0:
        raise ValueError(
            f"{name}: expected predictions and targets of one shape, at least one, got "
            f"{tuple(predicted.shape)} and {tuple(true.shape)}"
        )
    return predicted, true


def mse(output: ArrayLike, target: ArrayLike) -> float:
    """The mean squared error."""
    predicted, true = _numbers("mse", output, target)
    return float(mean((predicted - true) ** 2))


def rmse(output: ArrayLike, target: ArrayLike) -> float:
    """The root of the mean squared error, averaged over several outputs."""
    predicted, true = _numbers("rmse", output, target)
    return float(mean((predicted - true) ** 2, 0).sqrt().mean())


def mae(output: ArrayLike, target: ArrayLike) -> float:
    """The mean absolute error."""
    predicted, true = _numbers("mae", output, target)
    return float((predicted - true).abs().mean())


def max_error(output: ArrayLike, target: ArrayLike) -> float:
    """The largest absolute error."""
    predicted, true = _numbers("max_error", output, target)
    return float((predicted - true).abs().max())


def residual_sum_of_squares(output: ArrayLike, target: ArrayLike) -> float:
    """RSS: the sum of (target - output)^2."""
    predicted, true = _numbers("residual_sum_of_squares", output, target)
    return float(sum((true - predicted) ** 2))


def explained_sum_of_squares(output: ArrayLike, target: ArrayLike) -> float:
    """ESS: the sum of (output - mean target)^2."""
    predicted, true = _numbers("explained_sum_of_squares", output, target)
    return float(sum((predicted - mean(true, 0, keepdim=True)) ** 2))


def r2(output: ArrayLike, target: ArrayLike) -> float:
    """1 - RSS / the sum of (target - mean target)^2, averaged over several outputs."""
    predicted, true = _numbers("r2", output, target)
    predicted, true = (t.reshape(t.shape[0] if t.ndim else 1, -1) for t in (predicted, true))
    rss = sum((true - predicted) ** 2, 0)
    total = sum((true - mean(true, 0, keepdim=True)) ** 2, 0)
    perfect = where(rss == 0, 1.0, 0.0)  # of a constant target: 1 if hit, else 0
    return float(where(total > 0, 1 - rss / where(total > 0, total, 1.0), perfect).mean())

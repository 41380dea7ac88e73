"""How much of the targets the inputs tell, by small closed-form fits."""

from __future__ import annotations

import math

from chainrule.backend import dtypes
from chainrule.linalg import solve
from chainrule.ops.creation.patterns import eye, ones
from chainrule.ops.creation.sampling import randn
from chainrule.ops.elementwise.functions import tanh
from chainrule.ops.linalg.matmul import matmul
from chainrule.ops.shape.stacking import cat
from chainrule.nn import functional as F
from chainrule.random import fork_rng, manual_seed
from chainrule.tensor import Tensor

__all__ = ["as_numbers", "correlations", "explained_after_shifts", "standardized"]

RANDOM_FEATURES, DIRECTIONS = 64, 32


def as_numbers(y: Tensor) -> Tensor:
    """Targets as columns of numbers: classes become indicators. Shape: (n, k)."""
    if y.dtype.is_floating_point:
        return y.reshape(y.shape[0], -1).to(dtypes.float64)
    if y.ndim == 1:
        low, high = int(y.min()), int(y.max())
        if high - low < 200:
            return F.one_hot((y - low).long(), high - low + 1).to(dtypes.float64)
    return y.reshape(y.shape[0], -1).to(dtypes.float64)


def standardized(x: Tensor) -> Tensor:
    """Columns with mean 0 and variance 1; constant ones become 0."""
    centered = x - x.mean(0)
    scale = centered.square().mean(0).sqrt()
    return centered / scale.masked_fill(scale < 1e-12 * (1 + x.abs().amax(0)), math.inf)


def correlations(x: Tensor, y: Tensor) -> Tensor:
    """The correlation of each column of x with each of y. Shape: (d, k)."""
    return matmul(standardized(x).mT, standardized(y)) / x.shape[0]


def explained_after_shifts(x: Tensor, y: Tensor, shifts: list[int]) -> dict[int, float]:
    """The share of the targets' variance that the inputs explain when row i is paired with the
    target of row i + shift.

    A ridge regression on the inputs and some random tanh features of them, each row predicted from
    the others: with the hat matrix H the error of row i is (y_i - (H y)_i) / (1 - H_ii).
    """
    n = x.shape[0]
    with fork_rng():
        manual_seed(0)
        if x.shape[1] > DIRECTIONS:
            mixing = randn(x.shape[1], DIRECTIONS, dtype=dtypes.float64)
            x = matmul(standardized(x), mixing)
        x = standardized(x)
        weights = randn(x.shape[1], RANDOM_FEATURES, dtype=dtypes.float64)
        offsets = randn(RANDOM_FEATURES, dtype=dtypes.float64)
    hidden = tanh(matmul(x, weights) / math.sqrt(x.shape[1]) + offsets)
    features = cat([ones(n, 1, dtype=dtypes.float64), x, standardized(hidden)], 1)
    gram = matmul(features.mT, features) + n * 0.01 * eye(features.shape[1], dtype=dtypes.float64)
    hat = matmul(features, solve(gram, features.mT))
    leverage = (1 - hat.diagonal()).clamp(min=1e-6).unsqueeze(1)
    centered = y - y.mean(0)
    total = float(centered.square().sum())
    found = {}
    for shift in shifts:
        moved = centered.roll(-shift, 0)
        errors = (moved - matmul(hat, moved)) / leverage
        found[shift] = 1 - float(errors.square().sum()) / total if total > 0 else 0.0
    return found

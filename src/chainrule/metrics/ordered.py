"""Measures of predicted counts, quantiles and ranks."""

from __future__ import annotations

from collections.abc import Sequence

from chainrule.backend import dtypes
from chainrule.metrics.labels import nan_of_nan, values_of
from chainrule.nn.functional import pinball_loss
from chainrule.ops.core.promotion import cast
from chainrule.ops.creation.patterns import arange
from chainrule.ops.elementwise.functions import exp, xlogy
from chainrule.ops.elementwise.logic import where
from chainrule.ops.reduce.order import amax, amin
from chainrule.tensor import Tensor
from chainrule.typing import ArrayLike

__all__ = [
    "cohen_kappa",
    "coverage",
    "d2_poisson",
    "d2_poisson_log",
    "ordinal_accuracy",
    "ordinal_mae",
    "pinball",
    "poisson_deviance",
    "predicted_ranks",
]

# --- counts ---------------------------------------------------------------------------------------


@nan_of_nan
def poisson_deviance(output: ArrayLike, target: ArrayLike, *, log_input: bool = False) -> float:
    """The mean of 2 (y log(y / m) - y + m) for predicted means m, or their logarithms.

    >>> from chainrule import tensor
    >>> round(poisson_deviance(tensor([1.0, 2.0]), tensor([0.0, 2.0])), 6)
    1.0
    """
    rate, true = _counts("poisson_deviance", output, target, log_input)
    return float(deviances(rate, true).mean())


@nan_of_nan
def d2_poisson(output: ArrayLike, target: ArrayLike, *, log_input: bool = False) -> float:
    """1 - the deviance of the predicted means / that of the mean of the targets.

    What R2 is for squares, this is for counts: 1 for a perfect prediction, 0 for the mean. Of
    constant targets it is 1 if they are hit, else 0.
    """
    rate, true = _counts("d2_poisson", output, target, log_input)
    found = float(deviances(rate, true).mean())
    constant = float(deviances(true.mean().expand(true.shape), true).mean())
    return 1 - found / constant if constant > 0 else float(found == 0)


@nan_of_nan
def d2_poisson_log(output: ArrayLike, target: ArrayLike) -> float:
    """The same of the logarithms of means, which a network for counts puts out."""
    return d2_poisson(output, target, log_input=True)


def deviances(rate: Tensor, true: Tensor) -> Tensor:
    """The Poisson deviance of each prediction."""
    return 2 * (xlogy(true, where(true > 0, true / rate, 1.0)) - true + rate)


def _counts(
    name: str, output: ArrayLike, target: ArrayLike, log_input: bool
) -> tuple[Tensor, Tensor]:
    rate = values_of(name, "output", output).double()
    true = values_of(name, "target", target).double()
    if rate.shape != true.shape or true.numel() == 0:
        raise ValueError(
            f"{name}: expected predictions and targets of one shape, at least one, got "
            f"{tuple(rate.shape)} and {tuple(true.shape)}"
        )
    rate = exp(rate) if log_input else rate
    if not bool((rate > 0).all()):
        raise ValueError(
            f"{name}: predicted means are positive, got {float(amin(rate)):.4g}; for their "
            "logarithms say log_input=True"
        )
    if bool((true < 0).any()):
        raise ValueError(f"{name}: counts are not negative, got {float(amin(true)):.4g}")
    return rate, true


# --- quantiles ------------------------------------------------------------------------------------


@nan_of_nan
def pinball(output: ArrayLike, target: ArrayLike, quantiles: Sequence[float]) -> float:
    """The mean pinball loss of predicted quantiles (N, K) of targets (N,) or (N, 1)."""
    values = values_of("pinball", "output", output).double()
    true = values_of("pinball", "target", target).double()
    return float(pinball_loss(values, true, quantiles))


@nan_of_nan
def coverage(output: ArrayLike, target: ArrayLike) -> float:
    """The fraction of targets between the least and the largest output of their row (N, K).

    Of one quantile: the fraction of targets that lie not above it.

    >>> from chainrule import tensor
    >>> coverage(tensor([[0.0, 1.0], [0.0, 1.0]]), tensor([0.5, 2.0]))
    0.5
    """
    values = values_of("coverage", "output", output)
    true = values_of("coverage", "target", target)
    if values.ndim != 2 or true.numel() != values.shape[0] or true.numel() == 0:
        raise ValueError(
            f"coverage: expected outputs (N, K) and a target for each row, got "
            f"{tuple(values.shape)} and {tuple(true.shape)}"
        )
    y = true.reshape(-1)
    inside = y <= amax(values, 1)
    if values.shape[1] > 1:
        inside = inside & (y >= amin(values, 1))
    return float(inside.double().mean())


# --- ranks ----------------------------------------------------------------------------------------


def predicted_ranks(output: ArrayLike) -> Tensor:
    """The median rank that cumulative logits (N, K) of P(y > k) name, 0 to K.

    P(y > k) counts as the least of the thresholds up to k, so that it never rises.

    >>> from chainrule import tensor
    >>> predicted_ranks(tensor([[3.0, 1.0, -2.0], [-1.0, 2.0, -1.0]]))
    tensor([2, 0])
    """
    values = values_of("predicted_ranks", "output", output)
    if values.ndim != 2:
        raise ValueError(
            f"predicted_ranks: expected cumulative logits (N, K), got shape {tuple(values.shape)}"
        )
    return cast(values > 0, dtypes.int64).cumprod(1).sum(1)


@nan_of_nan
def ordinal_mae(output: ArrayLike, target: ArrayLike) -> float:
    """The mean distance in ranks, of cumulative logits (N, K) or predicted ranks (N,)."""
    predicted, true = _ranks("ordinal_mae", output, target)
    return float((predicted - true).abs().double().mean())


@nan_of_nan
def ordinal_accuracy(output: ArrayLike, target: ArrayLike) -> float:
    """The fraction of ranks that are right, of cumulative logits (N, K) or predicted ranks (N,)."""
    predicted, true = _ranks("ordinal_accuracy", output, target)
    return float((predicted == true).double().mean())


@nan_of_nan
def cohen_kappa(output: ArrayLike, target: ArrayLike, weights: str | None = None) -> float:
    """The agreement of classes beyond chance: 1 - sum w O / sum w E.

    O counts pairs of a predicted and a true class, E what independent ones would give; w is 1 off
    the diagonal, or the distance |i - j| ("linear"), or its square ("quadratic").

    Args:
        output: predicted classes or ranks (N,), or cumulative logits (N, K).
        target: true ones (N,).
    """
    if weights not in (None, "linear", "quadratic"):
        raise ValueError(
            f"cohen_kappa: weights must be None, 'linear' or 'quadratic', got {weights!r}"
        )
    predicted, true = _ranks("cohen_kappa", output, target)
    k = int(max(int(predicted.max()), int(true.max()))) + 1
    counts = (true * k + predicted).bincount(minlength=k * k).reshape(k, k).double()
    expected = counts.sum(1).reshape(-1, 1) * counts.sum(0) / counts.sum()
    distance = (arange(k).reshape(-1, 1) - arange(k)).abs().double()
    power = {None: (distance > 0).double(), "linear": distance, "quadratic": distance**2}[weights]
    by_chance = float((power * expected).sum())
    missed = float((power * counts).sum())
    return 1 - missed / by_chance if by_chance > 0 else 1.0


def _ranks(name: str, output: ArrayLike, target: ArrayLike) -> tuple[Tensor, Tensor]:
    values = values_of(name, "output", output)
    true = cast(values_of(name, "target", target).reshape(-1), dtypes.int64)
    predicted = predicted_ranks(values) if values.ndim == 2 else cast(values, dtypes.int64)
    if predicted.shape != true.shape or true.numel() == 0:
        raise ValueError(
            f"{name}: expected predictions and targets of one length, at least one, got "
            f"{tuple(values.shape)} and {tuple(true.shape)}"
        )
    if int(true.min()) < 0 or int(predicted.min()) < 0:
        raise ValueError(f"{name}: ranks are numbered from 0, got {int(true.min())}")
    return predicted, true

"""The risk of predicting noisy targets: what a better model can remove, and what none can."""

from __future__ import annotations

from typing import Any, NamedTuple

from chainrule.ops.reduce.reductions import mean
from chainrule.tensor import Tensor

__all__ = ["NoisyRisk", "bias_variance", "noisy_target_risk"]


class NoisyRisk(NamedTuple):
    """The parts of the expected squared error, which add up to ``total``."""

    total: Tensor
    bias: Tensor  # of the mean prediction, squared
    variance: Tensor  # of the predictions around their mean
    noise: Tensor | float


def noisy_target_risk(
    prediction: Tensor, truth: Tensor, noise_variance: Tensor | float
) -> NoisyRisk:
    """The risk E[(y - g(x))^2] for targets y = f(x) + noise: mean (f - g)^2 + noise variance.

    With p(y|x) = p_noise(y - f(x)) and noise of mean zero, the smallest risk is the variance of
    the noise, and f itself has it. ``truth`` are the values f(x), ``prediction`` those of the
    model.

    >>> from chainrule import information, tensor
    >>> parts = information.noisy_target_risk(tensor([1.0, 3.0]), tensor([1.0, 2.0]), 0.25)
    >>> parts.total, parts.bias
    (tensor(0.7500), tensor(0.5000))
    """
    return bias_variance(prediction.unsqueeze(0), truth, noise_variance)


def bias_variance(
    predictions: Tensor, truth: Tensor, noise_variance: Tensor | float = 0.0
) -> NoisyRisk:
    """The parts of the risk of models that were fitted to different samples of noisy data.

    E[(y - g(x))^2] = mean (f - E g)^2 + mean Var g + noise variance: a simple model has much of
    the first, a complex one of the second.

    Shape: ``predictions`` (M, N, *), of M models; ``truth`` (N, *).
    """
    if tuple(predictions.shape[1:]) != tuple(truth.shape):
        raise RuntimeError(
            f"bias_variance: expected predictions (M, *) for a truth of shape (*), got "
            f"{tuple(predictions.shape)} and {tuple(truth.shape)}"
        )
    noise: Any = noise_variance if not isinstance(noise_variance, Tensor) else mean(noise_variance)
    if not float(noise) >= 0:
        raise ValueError(f"bias_variance: the noise variance must be >= 0, got {noise_variance}")
    center = mean(predictions, 0)
    bias, variance = mean((truth - center) ** 2), mean((predictions - center) ** 2)
    return NoisyRisk(bias + variance + noise, bias, variance, noise)

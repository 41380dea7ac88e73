"""Noise in training: on activations, on weights; and prediction by many noisy passes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from chainrule.autograd.modes import no_grad
from chainrule.autograd.overlay import Place, replaced
from chainrule.nn.layers.dropout import DropoutLayer
from chainrule.nn.module.base import Module
from chainrule.nn.module.evaluation import Prediction, modes_restored
from chainrule.ops.creation.sampling import randn_like
from chainrule.tensor import Tensor

__all__ = [
    "GaussianNoise",
    "WeightNoise",
    "gaussian_noise",
    "monte_carlo_predict",
    "weight_noise",
]


def gaussian_noise(input: Tensor, std: float = 0.1, training: bool = True) -> Tensor:
    """x + std * n with n standard normal; x itself if not in training.

    >>> from chainrule import nn, zeros
    >>> nn.functional.gaussian_noise(zeros(2), std=0.5, training=False)
    tensor([0., 0.])
    """
    _check_std("gaussian_noise", std)
    if not training or std == 0:
        return input
    return input + std * randn_like(input.detach())


def _check_std(op: str, std: float) -> None:
    if not std >= 0:
        raise ValueError(f"{op}: std must be non-negative, but got {std}")


class GaussianNoise(Module):
    """Noise on activations: y = x + std * n in training, n standard normal; y = x in evaluation.

    In front of the first layer this is noise on the inputs, behind an activation on the neurons.

    Shape: (*), the same out.

    Args:
        std: standard deviation of the noise.

    >>> from chainrule import nn, ones
    >>> nn.GaussianNoise(0.1).eval()(ones(2))
    tensor([1., 1.])
    """

    def __init__(self, std: float = 0.1):
        super().__init__()
        _check_std("GaussianNoise", std)
        self.std = std

    def forward(self, input: Tensor) -> Tensor:
        return gaussian_noise(input, self.std, self.training)

    def extra_repr(self) -> str:
        return f"std={self.std}"


# --- on weights -----------------------------------------------------------------------------------


@contextmanager
def weight_noise(module: Module, std: float = 0.1) -> Iterator[Module]:
    """Inside the context every parameter p of the module is p + std * n, n standard normal.

    The noise is a constant: gradients flow to the parameters, taken where the noise put them.
    Other threads find the parameters as they are.

    >>> from chainrule import nn, ones
    >>> layer = nn.Linear(2, 1)
    >>> with nn.functional.weight_noise(layer, 0.1):
    ...     layer(ones(2)).backward()
    >>> layer.weight.grad
    tensor([[1., 1.]])
    """
    _check_std("weight_noise", std)
    noisy: dict[int, Any] = {}  # one noise for a parameter that stands in several places
    values: list[tuple[Place, Any]] = []
    for owner in module.modules():
        for name, p in owner._parameters.items():
            if p is None:
                continue
            if id(p) not in noisy:
                noisy[id(p)] = gaussian_noise(p, std) if p.is_floating_point() else p
            values.append((Place(owner, "_parameters", name), noisy[id(p)]))
    with replaced(values):
        yield module


class WeightNoise(Module):
    """A module whose parameters are moved by noise: y = module(x) with w + std * n for each w.

    n is standard normal, drawn in each pass of training; in evaluation it is 0.

    Shape: that of the module.

    Args:
        module: what is computed.
        std: standard deviation of the noise.

    >>> from chainrule import nn, ones
    >>> nn.WeightNoise(nn.Linear(3, 2), std=0.1)(ones(5, 3)).shape
    chainrule.Size([5, 2])
    """

    def __init__(self, module: Module, std: float = 0.1):
        super().__init__()
        _check_std("WeightNoise", std)
        self.module = module
        self.std = std

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        if not self.training:
            return self.module(*args, **kwargs)
        with weight_noise(self.module, self.std):
            return self.module(*args, **kwargs)

    def extra_repr(self) -> str:
        return f"std={self.std}"


# --- prediction by many passes --------------------------------------------------------------------


def monte_carlo_predict(model: Module, input: Tensor, samples: int = 100) -> Prediction:
    """The mean and the standard deviation of ``samples`` passes with dropout and noise active.

    mean = (1 / samples) sum over s of y_s, std^2 = (1 / samples) sum over s of (y_s - mean)^2

    Everything else, batch normalization above all, is in evaluation; the modes are put back
    afterwards, and nothing is recorded. ``curvature.Laplace`` finds error bars from curvature.

    >>> from chainrule import nn, ones
    >>> model = nn.Sequential(nn.Dropout(0.5), nn.Linear(4, 2))
    >>> mean, std = nn.functional.monte_carlo_predict(model, ones(3, 4), samples=20)
    >>> mean.shape, std.shape
    (chainrule.Size([3, 2]), chainrule.Size([3, 2]))
    """
    if samples < 1:
        raise ValueError(f"monte_carlo_predict: samples must be at least 1, got {samples}")
    with modes_restored(model), no_grad():
        for m in model.modules():
            m.training = _is_random(m)
        return _moments(model(input) for _ in range(samples))


def _is_random(module: Module) -> bool:
    """Whether a module draws numbers in training (an LSTM or attention has dropout as a number)."""
    rate = getattr(module, "dropout", 0.0)
    return isinstance(module, (DropoutLayer, GaussianNoise, WeightNoise)) or (
        isinstance(rate, float) and rate > 0
    )


def _moments(outputs: Iterator[Tensor]) -> Prediction:
    """Mean and standard deviation in one run (Welford's), without keeping all outputs."""
    center = squares = next(outputs) * 1.0
    squares = squares * 0.0
    count = 1
    for out in outputs:
        count += 1
        step = out - center
        center = center + step / count
        squares = squares + step * (out - center)
    return Prediction(center, (squares / count).sqrt())

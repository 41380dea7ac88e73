"""Which initializer a weight came from, recognized by its numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator

from chainrule.nn.module.base import Module
from chainrule.nn.parameter import is_lazy
from chainrule.tensor import Tensor

__all__ = ["initializer_of"]

ENOUGH, SAMPLE = 64, 2**16  # numbers, to tell one distribution from another


def initializer_of(module: Module) -> str:
    """The initializer of a module's weight where its numbers tell, "" where they do not.

    Named are constants, uniform distributions by their bound and normal ones by their deviation;
    after training none of them fits. Laws that agree for these sizes are named together.

    >>> from chainrule import nn
    >>> initializer_of(nn.Linear(50, 40))
    'default'
    >>> initializer_of(nn.LayerNorm(4))
    'ones'
    """
    weight = module._parameters.get("weight")
    if weight is None or is_lazy(weight) or not weight.is_floating_point() or not weight.numel():
        return ""
    values = weight.detach()
    low, high = float(values.min()), float(values.max())
    if low == high:
        return {0.0: "zeros", 1.0: "ones"}.get(low, f"constant {low:g}")
    if values.numel() < ENOUGH or values.ndim < 2 or not math.isfinite(low + high):
        return ""
    named = [name for name, fits in _laws(values) if fits]
    return " or ".join(named)


def _laws(values: Tensor) -> Iterator[tuple[str, bool]]:
    places = math.prod(values.shape[2:])
    fan_in, fan_out = values.shape[1] * places, values.shape[0] * places
    some = values.flatten()[:: -(-values.numel() // SAMPLE)].double()
    largest, n = float(some.abs().max()), some.numel()
    deviation, mean = float(some.std()), float(some.mean())
    tail = float((some.abs() > 2 * deviation).double().mean())

    def uniform(bound: float) -> bool:
        """None is larger, and of n draws the largest comes near it."""
        near = bound * (1 - 12 / n) <= largest <= bound * (1 + 1e-6)
        return near and abs(deviation / (bound / math.sqrt(3)) - 1) < 4 / math.sqrt(n)

    def normal(sigma: float) -> bool:
        """Within four standard errors, and with the tails of a normal distribution."""
        centered = abs(mean) < 4 * sigma / math.sqrt(n)
        tails = abs(tail - 0.0455) < 4 * math.sqrt(0.0455 / n)
        return centered and tails and abs(deviation / sigma - 1) < 4 / math.sqrt(2 * n)

    yield "default", uniform(math.sqrt(1 / fan_in))
    yield "xavier_uniform", uniform(math.sqrt(6 / (fan_in + fan_out)))
    yield "kaiming_uniform", uniform(math.sqrt(6 / fan_in))
    yield "lecun_uniform", uniform(math.sqrt(3 / fan_in))
    yield "xavier_normal", normal(math.sqrt(2 / (fan_in + fan_out)))
    yield "kaiming_normal", normal(math.sqrt(2 / fan_in))
    yield "lecun_normal", normal(math.sqrt(1 / fan_in))
    yield "standard normal", normal(1.0)

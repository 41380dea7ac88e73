"""How many bits it takes to write weights down."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from chainrule.information.discrete import log_base
from chainrule.ops.elementwise.functions import log, relu
from chainrule.ops.creation.from_data import as_tensor
from chainrule.ops.reduce.reductions import sum
from chainrule.tensor import Tensor

__all__ = ["description_length"]


def description_length(
    weights: Tensor,
    precision: Tensor | float,
    prior: float | Callable[[Tensor], Tensor] = 1.0,
    base: float = 2.0,
) -> Tensor:
    """-sum_i log_b (p(w_i) dw_i): bits for weights that must be known to within dw_i.

    A sender and a receiver who agree on the prior density p and on steps of dw need so many digits
    to base b. Each weight whose step may be wider than the prior needs none. In a flat minimum the
    steps can be wide (``regularize.flat_box``): the weights are cheap, the model is simple. With
    the bits of the data given the weights, their negative log-likelihood, it is the length that
    the principle of minimum description length makes as small as possible.

    Args:
        weights: all weights.
        precision: the steps dw: a number, or one for each weight.
        prior: the standard deviation of a normal density, or the logarithm of a density.
        base: of the digits.

    >>> from chainrule import information, tensor
    >>> uniform = lambda w: 0 * w - 0.6931472  # on [-1, 1], 256 steps of 1/128
    >>> information.description_length(tensor([0.3, -0.9]), 1 / 128, prior=uniform)
    tensor(16.)
    """
    scale = log_base("description_length", base)
    steps: Any = precision if isinstance(precision, Tensor) else as_tensor(float(precision))
    if not bool((steps.detach() > 0).all()):
        raise ValueError("description_length: the precision must be positive")
    if callable(prior):
        log_density = prior(weights)
    elif prior > 0:
        log_density = -0.5 * (weights / prior) ** 2 - math.log(prior * math.sqrt(2 * math.pi))
    else:
        raise ValueError(f"description_length: the prior's deviation must be positive, got {prior}")
    return sum(relu(-log_density - log(steps))) / scale

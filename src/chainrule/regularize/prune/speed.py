"""How much faster a smaller network is: measured."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from chainrule.autograd.modes import inference_mode
from chainrule.nn.module.base import Module
from chainrule.nn.module.evaluation import evaluating
from chainrule.ops.reduce.reductions import count_nonzero
from chainrule.regularize.prune.masks import weights_of
from chainrule.tensor import Tensor
from chainrule.typing import Inputs

__all__ = ["Speedup", "speedup"]


@dataclass(frozen=True)
class Speedup:
    """Two networks compared: seconds of a call (the best of several), parameters, outputs."""

    seconds: tuple[float, float]
    parameters: tuple[int, int]
    nonzero: tuple[int, int]
    difference: float

    @property
    def factor(self) -> float:
        """How many times faster the second is."""
        return self.seconds[0] / self.seconds[1]

    def __str__(self) -> str:
        (a, b), (p, q), (m, n) = self.seconds, self.parameters, self.nonzero
        return (
            f"{1e3 * a:.3g} ms -> {1e3 * b:.3g} ms ({self.factor:.2f} times faster), {p} -> {q} "
            f"parameters ({m} -> {n} not zero), outputs differ by {self.difference:.2g} at most"
        )


def speedup(model: Module, smaller: Module, example_input: Inputs, *, repeats: int = 20) -> Speedup:
    """Calls two networks in turn on an input, in evaluation mode, and compares them.

    >>> from chainrule import nn, ones
    >>> from chainrule.regularize import prune
    >>> net = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1))
    >>> _ = prune.remove_units(net, {"0": [0, 1, 2]})
    >>> prune.speedup(net, prune.compact(net), ones(2, 3)).parameters
    (41, 26)
    """
    if repeats < 1:
        raise ValueError(f"speedup: repeats must be positive, got {repeats}")
    inputs = example_input if isinstance(example_input, tuple) else (example_input,)
    best = [float("inf")] * 2
    outputs: list[Any] = [None, None]
    with evaluating(model), evaluating(smaller), inference_mode():
        for _ in range(repeats):
            for i, net in enumerate((model, smaller)):
                began = time.perf_counter()
                outputs[i] = net(*inputs)
                best[i] = min(best[i], time.perf_counter() - began)
    first, second = [o if isinstance(o, Tensor) else o[0] for o in outputs]
    return Speedup(
        (best[0], best[1]),
        (_parameters(model), _parameters(smaller)),
        (_nonzero(model), _nonzero(smaller)),
        float(abs(first - second).amax()),
    )


def _parameters(model: Module) -> int:
    return sum(p.numel() for p in model.parameters())


def _nonzero(model: Module) -> int:
    return sum(int(count_nonzero(w.value)) for w in weights_of("speedup", model, "*"))

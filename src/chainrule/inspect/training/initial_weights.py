"""What initializers draw: the weights of a layer under each of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from chainrule.autograd.modes import no_grad
from chainrule.charts import COLORS, grid_of_axes
from chainrule.inspect.core.registry import instrument
from chainrule.inspect.core.results import Result
from chainrule.inspect.training.choosing import check_patterns, chosen
from chainrule.inspect.training.pictures import stairs
from chainrule.inspect.training.statistics import Statistics, statistics
from chainrule.nn import init
from chainrule.nn.init.tensors import fan_in_and_fan_out
from chainrule.nn.module.base import Module
from chainrule.ops.creation.conversion import clone
from chainrule.ops.shape.views import reshape
from chainrule.printing import text_table

__all__ = ["INITIALIZERS", "DrawnWeights", "WeightHistograms", "weight_histograms"]

INITIALIZERS = (
    "uniform",
    "normal",
    "xavier_uniform",
    "xavier_normal",
    "kaiming_uniform",
    "kaiming_normal",
)


@dataclass
class DrawnWeights:
    """The weights that one initializer drew; ``scale`` is J E[w^2], which decides whether signals
    keep their size: 1 for linear layers, 2 for ReLU."""

    initializer: str
    statistics: Statistics
    scale: float


@dataclass(repr=False, eq=False)
class WeightHistograms(Result):
    """The weights of one layer under each initializer."""

    layer: str
    shape: tuple[int, ...]
    drawn: list[DrawnWeights]

    def __str__(self) -> str:
        rows = [
            [d.initializer]
            + [f"{v:.3g}" for v in (d.statistics.mean, d.statistics.std, d.statistics.min)]
            + [f"{d.statistics.max:.3g}", f"{d.scale:.3g}"]
            for d in self.drawn
        ]
        header = ["initializer", "mean", "std", "min", "max", "J E[w^2]"]
        table = text_table(header, rows, left=1, rule=True)
        return f"{self.layer}, shape {self.shape}\n{table}"

    def plot(self, *, axes: Any = None, **style: Any) -> list[Any]:
        """Draws a panel with the weights of each initializer."""
        made = grid_of_axes(axes, len(self.drawn), 3, (3.2, 2.5))
        for i, (ax, one) in enumerate(zip(made, self.drawn, strict=True)):
            stairs(ax, one.statistics, COLORS[i % len(COLORS)], **style)
            ax.set_title(one.initializer, fontsize=10)
            ax.set_xlabel(f"weight (std {one.statistics.std:.2g})", fontsize=8)
            if i % 3 == 0:
                ax.set_ylabel("density", fontsize=8)
        return made


@instrument("V22", needs=("model",))
def weight_histograms(
    model: Module, initializers: Sequence[str] = INITIALIZERS, layer: str | None = None
) -> WeightHistograms:
    """The distribution of a layer's weights under each of some initializers, on copies.

    Args:
        model: whose layer is drawn anew.
        initializers: names from ``nn.init`` without the underscore, or "now" for the weights as
            they are.
        layer: the name of a weight; the largest unless given.

    >>> import chainrule
    >>> from chainrule import inspect, nn
    >>> _ = chainrule.manual_seed(0)
    >>> found = inspect.weight_histograms(nn.Linear(500, 300), ["kaiming_normal"])
    >>> round(found.drawn[0].scale, 1)
    2.0
    """
    weights = {n: p for n, p in model.named_parameters() if p.ndim >= 2}
    if layer is not None:
        check_patterns("weight_histograms", model, [layer])
        weights = {n: p for n, p in weights.items() if chosen(n, [layer])}
    if not weights:
        raise ValueError("weight_histograms: there is no weight of two or more dimensions")
    name = max(weights, key=lambda n: weights[n].numel())
    weight = weights[name]
    fan_in, _ = fan_in_and_fan_out(weight)
    drawn = []
    for kind in initializers:
        draw = None if kind == "now" else getattr(init, f"{kind}_", None)
        if draw is None and kind != "now":
            known = [n[:-1] for n in init.__all__ if n.endswith("_")]
            raise ValueError(f"weight_histograms: no initializer {kind!r}; select from {known}")
        with no_grad():
            fresh = clone(weight.detach())
            if draw is not None:
                draw(fresh)
        found = statistics(reshape(fresh, (-1,)), sample=fresh.numel())
        scale = fan_in * (found.norm**2 / found.size)
        drawn.append(DrawnWeights(kind, found, scale))
    return WeightHistograms(name, tuple(weight.shape), drawn)

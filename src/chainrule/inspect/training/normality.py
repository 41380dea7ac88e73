"""How normal the sums of a layer are: densities beside N(0, 1), the rate of Berry and Esseen."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from chainrule.autograd.modes import no_grad
from chainrule.backend import dtypes
from chainrule.information.limits import berry_esseen_bound, kolmogorov_distance
from chainrule.inspect.core.arguments import Inputs, check_finite
from chainrule.charts import COLORS, grid_of_axes
from chainrule.inspect.core.registry import instrument
from chainrule.inspect.core.results import Result
from chainrule.inspect.core.tracing import Call, trace
from chainrule.inspect.training.choosing import chosen, has_sums, label
from chainrule.inspect.training.pictures import normal_density
from chainrule.nn.init.tensors import fan_in_and_fan_out
from chainrule.nn.module.base import Module
from chainrule.ops.core.promotion import cast
from chainrule.ops.creation.from_data import tensor
from chainrule.ops.elementwise.functions import exp
from chainrule.ops.reduce.reductions import mean, std
from chainrule.ops.shape.views import reshape, unsqueeze
from chainrule.printing import text_table
from chainrule.tensor import Tensor

__all__ = ["LayerNormality", "Normality", "normality"]

SAMPLE = 4096
GRID = tuple(-4 + 0.05 * i for i in range(161))


@dataclass
class LayerNormality:
    """The sums of one layer, for each input centered and scaled over the units.

    ``rate`` is J^(-1/2), at which the distance from the normal distribution falls with the number
    of inputs; ``bound`` what it can be at most by Berry and Esseen for independent weights like
    these, and NaN where units do not see all inputs (convolutions). ``distance`` is measured
    (Kolmogorov's), with an error of about ``noise``.
    """

    name: str
    fan_in: int
    count: int
    distance: float
    noise: float
    rate: float
    bound: float
    skewness: float
    excess_kurtosis: float
    density: list[float]  # a kernel estimate, at the places of the grid


@dataclass(repr=False, eq=False)
class Normality(Result):
    """All layers, and the places at which their densities are given."""

    layers: list[LayerNormality]
    grid: list[float]

    def __str__(self) -> str:
        header = ["layer", "J", "distance", "+-", "J^-1/2", "bound", "skewness", "excess kurtosis"]
        rows = [
            [f.name, str(f.fan_in)]
            + [f"{v:.2g}" if v == v else "" for v in (f.distance, f.noise, f.rate, f.bound)]
            + [f"{f.skewness:.2g}", f"{f.excess_kurtosis:.2g}"]
            for f in self.layers
        ]
        table = text_table(header, rows, left=1, rule=True)
        far = [f.name for f in self.layers if f.distance > f.rate + f.noise]
        if not far:
            return f"{table}\nthe sums of all layers are as normal as their width allows"
        return (
            f"{table}\nfurther from normal than J^-1/2: {', '.join(far)}; units depend on each "
            "other (weights that have learned), or few inputs carry most of the sum"
        )

    def plot(self, *, axes: Any = None, **style: Any) -> list[Any]:
        """Draws the density of each layer's sums beside the standard normal density."""
        columns = min(5, len(self.layers))
        made = grid_of_axes(axes, len(self.layers), columns, (2.9, 2.4))
        for ax, one in zip(made, self.layers, strict=True):
            ax.plot(
                self.grid, normal_density(self.grid), color="0.35", linestyle="--", label="N(0, 1)"
            )
            ax.plot(self.grid, one.density, **{"color": COLORS[1], "label": "sums", **style})
            ax.set(xlim=(-4, 4), yticks=[])
            ax.set_title(f"{one.name}, J = {one.fan_in}", fontsize=9)
            ax.set_xlabel(f"distance {one.distance:.2g}, J^-1/2 {one.rate:.2g}", fontsize=8)
        for ax in made[::columns]:
            ax.set_ylabel("density", fontsize=8)
        made[0].legend(fontsize=7, frameon=False, loc="upper left")
        return made


@instrument("V21", "N11", needs=("model", "inputs"))
def normality(model: Module, inputs: Inputs, *patterns: str) -> Normality:
    """How close the sums of each layer are to a normal distribution, beside the rate J^-1/2.

    For each input the sums of all units of a layer are centered and scaled; then all are put
    together. Layers with fewer than 8 units are left out.

    Args:
        model: any module with layers that have weights.
        inputs: what it is called with.
        patterns: of the names of the layers to look at; all unless given.

    >>> import chainrule
    >>> from chainrule import inspect, nn
    >>> _ = chainrule.manual_seed(0)
    >>> found = inspect.normality(nn.Linear(400, 300), chainrule.randn(20, 400))
    >>> found.layers[0].rate, found.layers[0].distance < 0.05
    (0.05, True)
    """
    check_finite("normality", model, inputs)
    seen = trace("normality", model, inputs)
    calls = [c for c in seen.calls if has_sums(c.module) and c.outputs and c.inputs]
    if patterns:
        calls = [c for c in calls if chosen(label(c.path, model), patterns)]
    found = []
    counts: dict[str, int] = {}
    for call in calls:
        name = label(call.path, model)
        counts[name] = counts.get(name, 0) + 1
        one = _looked(call, name + (f"#{counts[name]}" if counts[name] > 1 else ""))
        if one is not None:
            found.append(one)
    if not found:
        raise ValueError(
            f"normality: no layer with weights and at least 8 units ran in {type(model).__name__}"
            + (f" that {list(patterns)} means" if patterns else "")
        )
    return Normality(found, list(GRID))


def _looked(call: Call, name: str) -> LayerNormality | None:
    s = cast(call.outputs[0].detach(), dtypes.float64)
    rows = reshape(s, (s.shape[0], -1)) if s.ndim > 1 else unsqueeze(s, 0)
    if rows.shape[1] < 8:
        return None
    spread = std(rows, dim=1, keepdim=True, correction=0)
    z = (rows - mean(rows, dim=1, keepdim=True)) / spread
    z = reshape(z[reshape(spread > 0, (-1,))], (-1,))
    if z.numel() == 0:
        return None
    if z.numel() > SAMPLE:
        z = z[:: -(-z.numel() // SAMPLE)]
    weight: Any = call.module._parameters["weight"]
    fan_in, _ = fan_in_and_fan_out(weight)
    return LayerNormality(
        name,
        fan_in,
        z.numel(),
        kolmogorov_distance(z),
        1 / math.sqrt(z.numel()),
        fan_in**-0.5,
        _bound(call.inputs[0], weight),
        float(mean(z**3)),
        float(mean(z**4)) - 3,
        _density(z),
    )


def _bound(x: Tensor, weight: Tensor) -> float:
    """The mean over inputs of what Berry and Esseen allow for independent weights like these."""
    if weight.ndim != 2 or x.ndim != 2 or x.shape[1] != weight.shape[1]:
        return math.nan
    w = cast(weight.detach(), dtypes.float64)
    third, second = float(mean(abs(w) ** 3)), float(mean(w * w))
    rows = cast(x.detach(), dtypes.float64)[:64]
    if not second > 0:
        return math.nan
    bounds = [
        float(berry_esseen_bound(row, third, second)) for row in rows if float((row**2).sum())
    ]
    return sum(bounds) / len(bounds) if bounds else math.nan


def _density(z: Tensor) -> list[float]:
    """A kernel estimate with Silverman's bandwidth."""
    with no_grad():
        width = 0.9 * z.numel() ** -0.2
        places = tensor(list(GRID), dtype=z.dtype)
        kernels = exp(-0.5 * ((unsqueeze(places, 1) - unsqueeze(z, 0)) / width) ** 2)
        return (mean(kernels, dim=1) / (width * math.sqrt(2 * math.pi))).tolist()

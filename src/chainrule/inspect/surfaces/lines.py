"""The loss along one line of the weights: its parabola, flat and sharp minima, the way between two
networks."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from chainrule.autograd.func import grad, hvp
from chainrule import charts
from chainrule.inspect.core.registry import instrument
from chainrule.inspect.core.results import Result
from chainrule.inspect.core.untouched import untouched
from chainrule.inspect.surfaces.planes import Loss, LossOfWeights, filter_normalized, weights_of
from chainrule.nn.module.base import Module
from chainrule.ops.creation.from_data import tensor
from chainrule.printing import text_table
from chainrule.random import Generator
from chainrule.tensor import Tensor

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["LossLine", "loss_line"]


@dataclass(repr=False, eq=False)
class LossLine(Result):
    """The loss at ``center + t direction`` for each ``t``, of one network or several.

    ``slopes`` and ``curvatures`` are its exact first and second derivatives at t = 0, and
    ``parabolas`` the quadratic approximation that they make.
    """

    t: Tensor
    losses: dict[str, Tensor]
    slopes: dict[str, float]
    curvatures: dict[str, float]
    label: str

    @property
    def parabolas(self) -> dict[str, Tensor]:
        """L(0) + slope t + curvature t^2 / 2."""
        middle = {name: self._at_zero(name) for name in self.losses}
        return {
            name: middle[name] + self.slopes[name] * self.t + self.curvatures[name] / 2 * self.t**2
            for name in self.losses
        }

    def _at_zero(self, name: str) -> float:
        return float(self.losses[name][int(self.t.abs().argmin())])

    def __str__(self) -> str:
        rows = [
            [
                name,
                f"{self._at_zero(name):.6g}",
                f"{self.slopes[name]:.4g}",
                f"{self.curvatures[name]:.4g}",
                f"{float(values[values.isfinite()].max()):.4g}"
                if bool(values.isfinite().any())
                else "nan",
            ]
            for name, values in self.losses.items()
        ]
        header = ["network", "loss", "slope", "curvature", "highest"]
        return f"{self.label}\n{text_table(header, rows, left=1, rule=True)}\n{self._verdict()}"

    def _verdict(self) -> str:
        if len(self.losses) < 2:
            return (
                "A curvature far from 0 is a sharp direction: a small step changes the loss much."
            )
        order = sorted(self.curvatures, key=lambda name: abs(self.curvatures[name]))
        flat, sharp = order[0], order[-1]
        return f"{flat} lies flattest along this line, {sharp} sharpest."

    def plot(self, ax: Axes | None = None, **style: Any) -> Axes:
        """Draws the loss, and dashed its parabola."""
        ax = charts.axes_for(ax)
        t = self.t.numpy()
        for i, (name, values) in enumerate(self.losses.items()):
            color = charts.COLORS[i % len(charts.COLORS)]
            ax.plot(t, values.numpy(), **{"color": color, "label": name} | style)
            ax.plot(t, self.parabolas[name].numpy(), "--", color=color, linewidth=1, alpha=0.8)
        finite = [float(v) for values in self.losses.values() for v in values[values.isfinite()]]
        if finite:  # the parabola may leave the picture, the loss does not
            margin = 0.1 * (max(finite) - min(finite)) or 1.0
            ax.set_ylim(min(finite) - margin, max(finite) + margin)
        ax.set(title="Loss along a line (dashed: its parabola)", xlabel=self.label, ylabel="loss")
        ax.legend()
        return ax


@instrument("V15", "V43", needs=("model", "loss", "data"))
def loss_line(
    model: Module | Mapping[str, Module],
    loss: Loss,
    data: Any,
    *,
    direction: str | Tensor | Module = "random",
    span: float = 1.0,
    points: int = 41,
    seed: int = 0,
) -> LossLine:
    """The loss along a line through the weights, with its exact parabola.

    Args:
        model: a module; or several by name, to compare how flat their minima are.
        loss: ``loss(output, targets)``, one number.
        data: a pair (inputs, targets), or a loader whose first batch is taken.
        direction: "random" (filter-normalized, the same seed for all), "gradient" (downhill), a
            vector over all weights, or another network of the same kind at t = 1.
        span: how far to go, in lengths of the direction; to another network from -span to 1 + span.
        points: on the line.
        seed: of the random direction.

    >>> from chainrule import inspect, nn, ones
    >>> net = nn.Linear(1, 1, bias=False)
    >>> seen = inspect.loss_line(net, nn.functional.mse_loss, (ones(1, 1), ones(1, 1)),
    ...                          direction=ones(1))
    >>> seen.curvatures["Linear"]  # of (w - 1)^2
    2.0
    """
    if points < 3 or span <= 0:
        raise ValueError(
            f"loss_line: points must be at least 3 and span positive, got points={points}, "
            f"span={span}"
        )
    models = {type(model).__name__: model} if isinstance(model, Module) else dict(model)
    if not models:
        raise ValueError("loss_line: there is no model")
    start, stop = (-span, 1 + span) if isinstance(direction, Module) else (-span, span)
    # One of the points is 0, where the parabola touches.
    t = sorted({0.0, *[start + (stop - start) * i / (points - 1) for i in range(points)]})
    losses, slopes, curvatures = {}, {}, {}
    for name, network in models.items():
        with untouched(network):
            at = LossOfWeights("loss_line", network, loss, data)
            d = _direction(network, at, direction, seed)
            at.at_center()
            losses[name] = tensor([at.number(at.center + s * d) for s in t])
            slopes[name] = float(grad(at)(at.center) @ d)
            curvatures[name] = float(hvp(at, (at.center,), (d,)) @ d)
    return LossLine(tensor(t), losses, slopes, curvatures, _label(direction))


def _label(direction: str | Tensor | Module) -> str:
    if isinstance(direction, str):
        return "t along the random direction" if direction == "random" else "t along -gradient"
    return "t along the direction" if isinstance(direction, Tensor) else "t to the other network"


def _direction(
    model: Module, at: LossOfWeights, direction: str | Tensor | Module, seed: int
) -> Tensor:
    if isinstance(direction, Module):
        other = weights_of(direction)
        if other.shape != at.center.shape:
            raise ValueError(
                f"loss_line: the other network has {len(other)} weights, the model "
                f"{len(at.center)}; the line runs between two of the same kind"
            )
        vector = other - at.center
    elif isinstance(direction, Tensor):
        vector = direction.detach().reshape(-1)
    elif direction == "random":
        vector = filter_normalized("loss_line", model, Generator().manual_seed(seed))
    elif direction == "gradient":
        vector = -grad(at)(at.center).detach()
    else:
        raise ValueError(
            f"loss_line: direction must be 'random', 'gradient', a vector or a module, got "
            f"{direction!r}"
        )
    if vector.shape != at.center.shape:
        raise ValueError(
            f"loss_line: the direction has {len(vector)} elements, the model {len(at.center)} "
            "weights"
        )
    if not math.isfinite(length := float((vector * vector).sum())) or length == 0:
        raise ValueError("loss_line: the direction is zero or not finite")
    return vector

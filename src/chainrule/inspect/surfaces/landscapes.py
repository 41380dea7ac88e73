"""Loss surfaces: of functions of two numbers, and of networks on planes of their weights."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from chainrule.autograd.modes import no_grad
from chainrule import charts
from chainrule.inspect.core.registry import instrument
from chainrule.inspect.core.results import Result
from chainrule.inspect.surfaces.planes import (
    Loss,
    LossOfWeights,
    Plane,
    filter_normalized,
    principal_plane,
    weights_of,
)
from chainrule.nn.module.base import Module
from chainrule.ops.creation.from_data import tensor
from chainrule.printing import text_table
from chainrule.random import Generator
from chainrule.tensor import Tensor

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Landscape", "WeightPath", "landscape", "surface"]


class WeightPath:
    """The weights along a training, for :func:`landscape`.

    A callback of the trainer records one point for each epoch (or each ``every`` updates); in a
    loop of one's own ``path.record(model)`` does.

    >>> from chainrule import inspect, nn
    >>> net, path = nn.Linear(2, 1), inspect.WeightPath()
    >>> path.record(net)
    >>> len(path), len(path[0])
    (1, 3)
    """

    def __init__(self, every: int | None = None):
        if every is not None and every < 1:
            raise ValueError(f"WeightPath: every must be a positive number of updates, got {every}")
        self.every, self.points = every, list[Tensor]()
        self._updates = 0

    def record(self, model: Module) -> None:
        """Adds the weights as they are now."""
        self.points.append(weights_of(model))

    def __len__(self) -> int:
        return len(self.points)

    def __getitem__(self, i: int) -> Tensor:
        return self.points[i]

    def on_fit_start(self, trainer: Any) -> None:
        """Records the start of a training."""
        self.record(trainer.model)

    def on_batch_end(self, trainer: Any) -> None:
        """Records after every so many updates, if asked to."""
        self._updates += 1
        if self.every is not None and self._updates % self.every == 0:
            self.record(trainer.model)

    def on_epoch_end(self, trainer: Any) -> None:
        """Records after every epoch, if not asked for updates."""
        if self.every is None:
            self.record(trainer.model)

    def on_epoch_start(self, trainer: Any) -> None:
        """Nothing is recorded here."""

    def on_backward_end(self, trainer: Any) -> None:
        """Nothing is recorded here."""

    def on_fit_end(self, trainer: Any) -> None:
        """Nothing is recorded here."""

    def state_dict(self) -> dict[str, Any]:
        """What a resumed training goes on from."""
        return {"points": list(self.points), "updates": self._updates}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Takes back what ``state_dict`` gave."""
        self.points, self._updates = list(state["points"]), state["updates"]


@dataclass(repr=False, eq=False)
class Landscape(Result):
    """Values over a grid: ``values[i, j]`` at ``(x[j], y[i])``.

    For a path: its ``path`` in the plane, the loss of the network at its points (``true_losses``)
    and of the points of the plane below them (``plane_losses``), which are what the picture shows.
    ``explained`` is the share of the path's variance that lies in either direction.
    """

    title: str
    labels: tuple[str, str]
    x: Tensor
    y: Tensor
    values: Tensor
    center: float
    path: list[tuple[float, float]] = field(default_factory=list)
    true_losses: list[float] = field(default_factory=list)
    plane_losses: list[float] = field(default_factory=list)
    explained: tuple[float, float] | None = None
    _plane: Plane | None = None

    @property
    def gap(self) -> float:
        """The largest difference between the loss of the plane and the true one on the path."""
        pairs = zip(self.true_losses, self.plane_losses, strict=True)
        return max((abs(a - b) for a, b in pairs), default=0.0)

    def __str__(self) -> str:
        finite = self.values[self.values.isfinite()]
        low, high = (
            (float(finite.min()), float(finite.max())) if finite.numel() else (math.nan,) * 2
        )
        rows = [
            ["points", f"{len(self.x)} x {len(self.y)}"],
            [self.labels[0], f"{float(self.x[0]):.4g} to {float(self.x[-1]):.4g}"],
            [self.labels[1], f"{float(self.y[0]):.4g} to {float(self.y[-1]):.4g}"],
            ["lowest", f"{low:.6g}"],
            ["highest", f"{high:.6g}"],
            ["at the center", f"{self.center:.6g}"],
        ]
        if finite.numel() < self.values.numel():
            wrong = self.values.numel() - finite.numel()
            rows.append(["not finite", f"{wrong} of {self.values.numel()} points, left white"])
        if self.path:
            rows.append(["path", f"{len(self.path)} points"])
            rows.append(["plane against true loss", f"at most {self.gap:.3g} apart on the path"])
        if self.explained is not None:
            rows.append(["explained by the plane", f"{sum(self.explained):.1%} of the path"])
        return f"{self.title}\n{text_table(['', ''], rows).lstrip()}"

    def plot(self, ax: Any = None, *, kind: str = "contour", levels: int = 30, **style: Any) -> Any:
        """Draws contours, or with ``kind="surface"`` the surface in three dimensions.

        A path is drawn on the contours; beside it, unless axes are given, the loss of the plane
        stands against the true one.
        """
        if kind not in ("contour", "surface"):
            raise ValueError(f"plot: kind must be 'contour' or 'surface', got {kind!r}")
        if kind == "surface":
            return self._plot_surface(ax, **style)
        if ax is None and self.path:
            axes = charts.grid_of_axes(None, 2, 2, (5.2, 4.2))
            self._plot_contours(axes[0], levels, **style)
            self._plot_losses(axes[1])
            return axes
        return self._plot_contours(charts.axes_for(ax, (5.6, 4.6)), levels, **style)

    def _plot_contours(self, ax: Axes, levels: int, **style: Any) -> Axes:
        norm, at = charts.levels_of(self.values, levels)
        grid = self.x.numpy(), self.y.numpy(), self.values.numpy()
        drawn = ax.contourf(
            *grid, **{"levels": at, "norm": norm, "cmap": charts.SEQUENTIAL} | style
        )
        charts.add_colorbar(ax, drawn, "loss")
        ax.set(title=self.title, xlabel=self.labels[0], ylabel=self.labels[1])
        ax.locator_params(nbins=6)
        if self.path:
            xs, ys = zip(*self.path, strict=True)
            ax.plot(xs, ys, "-o", color="white", markersize=3, linewidth=1.2)
            ax.plot(xs[:1], ys[:1], "s", color="white", mec="black", markersize=7, label="start")
            ax.plot(xs[-1:], ys[-1:], "*", color=charts.COLORS[1], markersize=13, label="end")
            ax.legend(loc="best", framealpha=0.8)
        elif self._plane is not None:  # the weights as they are
            ax.plot([0.0], [0.0], "+", color="white", markersize=10)
        return ax

    def _plot_losses(self, ax: Axes) -> None:
        steps = range(len(self.path))
        ax.plot(steps, self.true_losses, color=charts.COLORS[0], label="the network")
        ax.plot(steps, self.plane_losses, "--", color=charts.COLORS[1], label="the plane below it")
        charts.log_if_wide(ax, [*self.true_losses, *self.plane_losses])
        share = "" if self.explained is None else f" ({sum(self.explained):.1%} explained)"
        ax.set(title=f"Loss along the path{share}", xlabel="recorded point", ylabel="loss")
        ax.legend()

    def _plot_surface(self, ax: Any, **style: Any) -> Any:
        ax = charts.axes_for(ax, (6.4, 5.0), projection="3d")
        x, y = self.x.numpy(), self.y.numpy()
        across, along = x[None, :].repeat(len(y), 0), y[:, None].repeat(len(x), 1)
        ax.plot_surface(across, along, self.values.numpy(), **{"cmap": charts.SEQUENTIAL} | style)
        if self.path:
            xs, ys = zip(*self.path, strict=True)
            ax.plot(xs, ys, self.plane_losses, color=charts.COLORS[1], linewidth=2, zorder=5)
        ax.set(title=self.title, zlabel="loss")
        ax.set_xlabel(self.labels[0], labelpad=8)
        ax.set_ylabel(self.labels[1], labelpad=8)
        ax.locator_params(nbins=5)
        ax.set_box_aspect(None, zoom=0.82)  # labels lie inside the figure
        return ax


def _grid(name: str, limits: tuple[float, float], points: int) -> list[float]:
    low, high = limits
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ValueError(f"{name}: a range goes from a smaller to a larger number, got {limits}")
    if points < 3:
        raise ValueError(f"{name}: points must be at least 3 in each direction, got {points}")
    return [low + (high - low) * i / (points - 1) for i in range(points)]


@instrument("V02", "V10", needs=("function",))
def surface(
    function: Callable[[Tensor], Tensor],
    x: tuple[float, float] = (-2.0, 2.0),
    y: tuple[float, float] = (-2.0, 2.0),
    *,
    points: int = 81,
    title: str = "",
) -> Landscape:
    """The values of a function of two numbers over a rectangle.

    Args:
        function: takes a vector of two elements, as optimizers see it, and returns one number.
        x, y: the ranges of the two elements.
        points: in each direction.
        title: above the picture.

    >>> from chainrule import inspect, problems
    >>> seen = inspect.surface(problems.bowl().function, points=5)
    >>> seen.values[2]
    tensor([4., 1., 0., 1., 4.])
    """
    across, along = _grid("surface", x, points), _grid("surface", y, points)
    with no_grad():
        values = [[_number(function(tensor([a, b]))) for a in across] for b in along]
        center = _number(function(tensor([sum(x) / 2, sum(y) / 2])))
    name = title or f"{getattr(function, '__name__', 'function').strip('<>')} of two parameters"
    return Landscape(
        name, ("parameter 1", "parameter 2"), tensor(across), tensor(along), tensor(values), center
    )


def _number(value: Any) -> float:
    if isinstance(value, Tensor) and value.numel() != 1:
        raise ValueError(
            f"surface: the function must return one number, got shape {tuple(value.shape)}"
        )
    return float(value)


@instrument("V10", "V11", "V40", needs=("model", "loss", "data"))
def landscape(
    model: Module,
    loss: Loss,
    data: Any,
    *,
    path: WeightPath | Sequence[Tensor] | None = None,
    directions: tuple[Tensor, Tensor] | None = None,
    span: float | None = None,
    points: int = 21,
    seed: int = 0,
) -> Landscape:
    """The loss of a network on a plane of its weights, with an honest path on it.

    The plane lies through the weights as they are. Without a path it is spanned by two random,
    filter-normalized directions; with one by the path's two principal components, and the result
    says how much of the path lies in the plane and how far the plane's loss is from the true one.

    Args:
        model: any module; it is run in evaluation mode.
        loss: ``loss(output, targets)``, one number.
        data: a pair (inputs, targets), or a loader whose first batch is taken.
        path: recorded by :class:`WeightPath`; the plane then follows it.
        directions: two vectors over all weights that span the plane instead.
        span: how far the plane goes from the center, in lengths of a direction; a path is always
            covered. By default 1, or with a path what covers it.
        points: of the grid in each direction.
        seed: of the random directions.

    >>> from chainrule import inspect, nn, ones
    >>> net = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
    >>> seen = inspect.landscape(net, nn.functional.mse_loss, (ones(4, 2), ones(4, 1)), points=5)
    >>> seen.values.shape, bool(abs(seen.values[2, 2] - seen.center) < 1e-6)
    (chainrule.Size([5, 5]), True)
    """
    loss_at = LossOfWeights("landscape", model, loss, data)
    points_of_path = path.points if isinstance(path, WeightPath) else list(path or [])
    for weights in points_of_path:
        if weights.shape != loss_at.center.shape:
            raise ValueError(
                f"landscape: the path has {tuple(weights.shape)} weights, the model "
                f"{tuple(loss_at.center.shape)}; record it with this model"
            )
    center = loss_at.at_center()
    plane = _plane(model, loss_at.center, points_of_path, directions, seed)
    where = [plane.coordinates(weights) for weights in points_of_path]
    x = _grid("landscape", _covering(span, [a for a, _ in where]), points)
    y = _grid("landscape", _covering(span, [b for _, b in where]), points)
    return Landscape(
        f"Loss of {type(model).__name__}",
        plane.labels,
        tensor(x),
        tensor(y),
        tensor([[loss_at.number(plane.point(a, b)) for a in x] for b in y]),
        center,
        where,
        [loss_at.number(weights) for weights in points_of_path],
        [loss_at.number(plane.point(*at)) for at in where],
        plane.explained,
        plane,
    )


def _plane(
    model: Module,
    center: Tensor,
    path: list[Tensor],
    directions: tuple[Tensor, Tensor] | None,
    seed: int,
) -> Plane:
    if directions is not None:
        one, other = (d.detach().reshape(-1) for d in directions)
        if one.shape != center.shape or other.shape != center.shape:
            raise ValueError(
                f"landscape: directions have {len(one)} and {len(other)} elements, the model has "
                f"{len(center)} weights"
            )
        aa, ab, bb = float(one @ one), float(one @ other), float(other @ other)
        if not aa * bb - ab * ab > 1e-12 * aa * bb:
            raise ValueError(
                "landscape: the two directions must span a plane: finite, not zero, not parallel"
            )
        return Plane(center, (one, other), ("direction 1", "direction 2"))
    if path:
        return principal_plane(path, center)
    draw = Generator().manual_seed(seed)
    one, other = (filter_normalized("landscape", model, draw) for _ in range(2))
    return Plane(center, (one, other), ("random direction 1", "random direction 2"))


def _covering(span: float | None, where: list[float]) -> tuple[float, float]:
    """A range around zero, and around all points of a path with a margin."""
    if span is not None and not span > 0:
        raise ValueError(f"landscape: span must be positive, got {span}")
    if not where:
        return -(span or 1.0), span or 1.0
    low, high = min(*where, 0.0), max(*where, 0.0)
    margin = 0.2 * (high - low) or 1.0
    return min(low - margin, -(span or 0.0)), max(high + margin, span or 0.0)

"""Optimizers side by side: their paths on one surface, values and step sizes, as a film too."""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from chainrule.autograd.modes import enable_grad
from chainrule import charts
from chainrule.inspect.core.arguments import arguments, of_batch
from chainrule.inspect.core.pages import Frames
from chainrule.inspect.core.registry import instrument
from chainrule.inspect.core.results import Result
from chainrule.inspect.surfaces.landscapes import Landscape, landscape, surface
from chainrule.inspect.surfaces.planes import Loss, weights_of
from chainrule.nn.module.base import Module
from chainrule.nn.parameter import Parameter
from chainrule.ops.creation.conversion import clone
from chainrule.ops.creation.from_data import tensor
from chainrule.ops.creation.sampling import randperm
from chainrule.optim.optimizer import Optimizer
from chainrule.printing import text_table
from chainrule.random import fork_rng
from chainrule.tensor import Tensor

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["OptimizerPaths", "optimizer_paths"]

DOTS = 60  # steps of a path that are marked

Factory = Callable[[list[Parameter]], Optimizer]
Run = tuple[list[Tensor], list[float]]  # the points of a path, and the value at each


@dataclass(repr=False, eq=False)
class OptimizerPaths(Result):
    """Where each optimizer went: its ``points`` on the picture, the ``values`` there, and the
    lengths of its steps (``step_sizes``). A path that left all bounds ends there.
    """

    points: dict[str, list[tuple[float, float]]]
    values: dict[str, list[float]]
    step_sizes: dict[str, list[float]]
    background: Landscape

    @property
    def names(self) -> list[str]:
        """The optimizers, in the order given."""
        return list(self.points)

    def __str__(self) -> str:
        rows = []
        for name, values in self.values.items():
            best = min((v for v in values if math.isfinite(v)), default=math.nan)
            length = sum(s for s in self.step_sizes[name] if math.isfinite(s))
            cells = [values[0], values[-1], best]
            note = "" if math.isfinite(values[-1]) else "diverged"
            rows.append(
                [name, str(len(values) - 1), *[f"{v:.4g}" for v in cells], f"{length:.3g}", note]
            )
        header = ["optimizer", "steps", "start", "end", "best", "length of the path", ""]
        table = text_table(header, rows, left=1, rule=True)
        first = min(self.values, key=lambda n: _rank(self.values[n][-1]))
        if not math.isfinite(self.values[first][-1]):
            return f"{table}\nAll diverged: lower the rates."
        return f"{table}\nLowest at the end: {first}."

    def plot(self, axes: Sequence[Axes] | None = None, **style: Any) -> list[Axes]:
        """Draws all paths on one map, and beside it the values step by step."""
        path, value = charts.grid_of_axes(axes, 2, 2, (5.2, 4.2))
        self._draw(path, value, max(map(len, self.values.values())), **style)
        return [path, value]

    def film(self, frames: int = 40) -> Frames:
        """The paths as they grow, for a page or a GIF."""
        if frames < 2:
            raise ValueError(f"film: frames must be at least 2, got {frames}")
        longest = max(map(len, self.values.values()))
        upto = sorted({max(1, round(longest * (i + 1) / frames)) for i in range(frames)})

        def draw(figure: Figure, i: int) -> None:
            path, value = figure.subplots(1, 2)
            self._draw(path, value, upto[i])

        return Frames("Optimizers side by side", len(upto), draw, (10.4, 4.2))

    def _draw(self, path: Axes, value: Axes, upto: int, **style: Any) -> None:
        # Gray, so that the colors of the paths are the only ones.
        self.background._plot_contours(path, 20, cmap="Greys", alpha=0.55)
        limits = path.get_xlim(), path.get_ylim()
        for i, name in enumerate(self.names):
            color = charts.COLORS[(i + 1) % len(charts.COLORS)]
            xs, ys = zip(*self.points[name][:upto], strict=True)
            looks: dict[str, Any] = {
                "color": color,
                "linewidth": 1.5,
                "markersize": 2.5,
                "marker": "o",
                "markevery": max(1, len(self.points[name]) // DOTS),
            } | style
            path.plot(xs, ys, label=name, **looks)
            value.plot(self.values[name][:upto], color=color, label=name)
        path.plot(*self.points[self.names[0]][0], "s", color="black", markersize=6)
        path.set(xlim=limits[0], ylim=limits[1], title="Paths (square: start)")
        known = [v for values in self.values.values() for v in values]
        charts.log_if_wide(value, known)
        finite = [v for v in known if math.isfinite(v)]
        value.set(title="Value after each step", xlabel="step", ylabel="value")
        value.set_xlim(0, max(map(len, self.values.values())) - 1 or 1)
        # The same in every frame of a film. One that diverges would press all others into a line.
        start = max(values[0] for values in self.values.values())
        value.update_datalim([(0, v) for v in finite])
        value.autoscale_view(scalex=False)
        if finite and max(finite) > 100 * abs(start) and start > 0:
            value.set_ylim(top=10 * start)
        value.legend(loc="best" if upto > 1 else "upper right")


def _rank(value: float) -> float:
    return value if math.isfinite(value) else math.inf


@instrument("V11", "V12", "V13", "V14", "V39", needs=("function",))
def optimizer_paths(
    target: Callable[[Tensor], Tensor] | Module,
    optimizers: Mapping[str, Factory] | Sequence[Factory],
    start: Tensor | None = None,
    *,
    steps: int = 100,
    loss: Loss | None = None,
    data: Any = None,
    batch_size: int | Mapping[str, int] | None = None,
    points: int | None = None,
) -> OptimizerPaths:
    """The paths of several optimizers from one start, on a function or on a network.

    Args:
        target: a function of a vector of two elements; or a network, of which every optimizer
            trains a copy, seen on the plane of all paths' principal components.
        optimizers: by name, each made from a list of parameters:
            ``{"momentum": lambda p: optim.SGD(p, lr=0.1, momentum=0.9)}``; or a list of classes.
        start: where all begin, on a function; a network begins at its own weights.
        steps: how many updates.
        loss, data: for a network, ``loss(output, targets)`` and a pair (inputs, targets).
        batch_size: for a network, how many samples each update sees, of all optimizers or by name:
            ``{"stochastic": 8}``; by default all. Values are those of all samples.
        points: of the map in each direction; by default 61, of a network's 25.

    >>> from chainrule import inspect, optim, problems
    >>> bowl = problems.bowl()
    >>> seen = inspect.optimizer_paths(
    ...     bowl.function, {"gradient": lambda p: optim.SGD(p, lr=0.1)}, bowl.start, steps=3)
    >>> [round(v, 3) for v in seen.values["gradient"]]
    [6.0, 0.64, 0.41, 0.262]
    """
    if steps < 1:
        raise ValueError(f"optimizer_paths: steps must be positive, got {steps}")
    made = _named(optimizers)
    if isinstance(target, Module):
        if loss is None or data is None:
            raise TypeError(
                "optimizer_paths: a network needs loss=loss(output, targets) and data=(inputs, "
                "targets)"
            )
        if start is not None:
            raise TypeError("optimizer_paths: a network begins at its own weights, not at start=")
        sizes = _sizes(batch_size, made)
        return _on_network(target, made, steps, loss, data, sizes, points or 25)
    if loss is not None or data is not None or batch_size is not None:
        raise TypeError(
            "optimizer_paths: loss=, data= and batch_size= belong to a network, not to a function"
        )
    if start is None:
        raise TypeError("optimizer_paths: a function needs start=, a vector of two elements")
    if tuple(start.shape) != (2,):
        raise ValueError(
            f"optimizer_paths: start must be a vector of two elements, got shape "
            f"{tuple(start.shape)}; give a Module for more parameters"
        )
    if not bool(start.isfinite().all()):
        raise ValueError(f"optimizer_paths: start must be finite, got {start.tolist()}")
    return _on_function(target, made, start, steps, points or 61)


def _named(optimizers: Mapping[str, Factory] | Sequence[Factory]) -> dict[str, Factory]:
    named: dict[str, Factory] = {}
    if isinstance(optimizers, Mapping):
        named = dict(optimizers)
    else:
        for factory in optimizers:
            name = getattr(factory, "__name__", "optimizer").strip("<>")
            same = sum(n.split(" (")[0] == name for n in named)
            named[f"{name} ({same + 1})" if same else name] = factory
    if not named:
        raise ValueError("optimizer_paths: there is no optimizer to follow")
    return named


def _sizes(
    batch_size: int | Mapping[str, int] | None, optimizers: dict[str, Factory]
) -> dict[str, int | None]:
    """How many samples an update of each optimizer sees; None are all."""
    if not isinstance(batch_size, Mapping):
        sizes: dict[str, int | None] = dict.fromkeys(optimizers, batch_size)
    else:
        unknown = [name for name in batch_size if name not in optimizers]
        if unknown:
            raise ValueError(
                f"optimizer_paths: batch_size names {unknown[0]!r}, which is none of "
                f"{list(optimizers)}"
            )
        sizes = {name: batch_size.get(name) for name in optimizers}
    if any(size is not None and size < 1 for size in sizes.values()):
        raise ValueError(f"optimizer_paths: batch_size must be positive, got {batch_size}")
    return sizes


class _Batches:
    """Samples in random order, a few at a time, over and over."""

    def __init__(self, args: Any, kwargs: Any, targets: Any, size: int):
        self.whole, self.count, self.size = (args, kwargs, targets), len(targets), size
        self.order: list[int] = []

    def next(self) -> tuple[Any, Any, Any]:
        """Arguments and targets of the next few samples."""
        if not self.order:
            self.order = randperm(self.count).tolist()
        chosen = tensor(self.order[: self.size])
        self.order = self.order[self.size :]

        def cut(leaf: Any) -> Any:
            per_sample = isinstance(leaf, Tensor) and leaf.ndim and len(leaf) == self.count
            return leaf[chosen] if per_sample else leaf

        args, kwargs, targets = self.whole
        return tuple(map(cut, args)), {k: cut(v) for k, v in kwargs.items()}, cut(targets)


def _run(
    factory: Factory,
    parameters: list[Parameter],
    value: Callable[[], Tensor],
    place: Callable[[], Tensor],
    steps: int,
    draw: Callable[[], Callable[[], Tensor]] | None = None,
) -> Run:
    """The points and values of one optimizer; each has the same random numbers.

    ``draw`` gives what an update descends on, if that is not the value itself.
    """
    with fork_rng(), enable_grad():
        optimizer = factory(parameters)
        descended = value

        def closure() -> Tensor:
            optimizer.zero_grad()
            now = descended()
            now.backward()
            return now

        path, values = [place()], [float(value().detach())]
        for _ in range(steps):
            if not math.isfinite(values[-1]):
                break
            descended = value if draw is None else draw()
            try:
                optimizer.step(closure)
            except RuntimeError as error:  # optimizers refuse gradients that are not finite
                if "finite" not in str(error):
                    raise
                values[-1] = math.inf
                break
            path.append(place())
            values.append(float(value().detach()))
        return path, values


def _on_function(
    function: Callable[[Tensor], Tensor],
    optimizers: dict[str, Factory],
    start: Tensor,
    steps: int,
    points: int,
) -> OptimizerPaths:
    def followed(factory: Factory) -> Run:
        w = Parameter(clone(start.detach()))
        return _run(factory, [w], lambda: function(w), lambda: clone(w.detach()), steps)

    runs = {name: followed(factory) for name, factory in optimizers.items()}
    where = {n: [(float(p[0]), float(p[1])) for p in path] for n, (path, _) in runs.items()}
    x, y = (_bounds(runs, where, k) for k in (0, 1))
    background = surface(function, x, y, points=points, title="Paths")
    background.labels = "parameter 1", "parameter 2"
    return _result(runs, where, background)


def _bounds(
    runs: dict[str, Run], where: dict[str, list[tuple[float, float]]], k: int
) -> tuple[float, float]:
    """What the map covers: all points that are no higher than ten times the start."""
    values = [
        at[k]
        for name, path in where.items()
        for at, v in zip(path, runs[name][1], strict=False)
        if math.isfinite(v) and v <= 10 * abs(runs[name][1][0]) + 1e-9 and math.isfinite(at[k])
    ]
    low, high = min(values), max(values)
    margin = 0.25 * (high - low) or 1.0
    return low - margin, high + margin


def _on_network(
    model: Module,
    optimizers: dict[str, Factory],
    steps: int,
    loss: Loss,
    data: Any,
    sizes: dict[str, int | None],
    points: int,
) -> OptimizerPaths:
    inputs, targets = of_batch("optimizer_paths", data)
    args, kwargs = arguments("optimizer_paths", inputs)

    def followed(factory: Factory, size: int | None) -> Run:
        net = copy.deepcopy(model)
        trained = [p for p in net.parameters() if p.requires_grad]

        def value() -> Tensor:
            return loss(net(*args, **kwargs), targets)

        batches = None if size is None else _Batches(args, kwargs, targets, size)

        def draw() -> Callable[[], Tensor]:
            some, named, wanted = (args, kwargs, targets) if batches is None else batches.next()
            return lambda: loss(net(*some, **named), wanted)

        return _run(factory, trained, value, lambda: weights_of(net), steps, draw)

    runs = {name: followed(factory, sizes[name]) for name, factory in optimizers.items()}
    every = [p for path, _ in runs.values() for p in path if bool(p.isfinite().all())]
    if len(every) < 3:
        raise ValueError(
            "optimizer_paths: all optimizers diverge in their first steps, and there is no path to "
            "draw; lower their rates"
        )
    background = landscape(model, loss, data, path=every, points=points)
    plane = background._plane
    if plane is None:
        raise RuntimeError("optimizer_paths: the map has no plane")
    where = {
        name: [plane.coordinates(p) for p in path if bool(p.isfinite().all())]
        for name, (path, _) in runs.items()
    }
    background.path, background.true_losses, background.plane_losses = [], [], []
    return _result(runs, where, background)


def _result(
    runs: dict[str, Run], where: dict[str, list[tuple[float, float]]], background: Landscape
) -> OptimizerPaths:
    sizes = {
        name: [float(((b - a) ** 2).sum().sqrt()) for a, b in itertools.pairwise(path)]
        for name, (path, _) in runs.items()
    }
    return OptimizerPaths(where, {n: v for n, (_, v) in runs.items()}, sizes, background)

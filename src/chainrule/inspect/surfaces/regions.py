"""What a network answers everywhere: decision regions, fitted curves and surfaces."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from chainrule.autograd.modes import no_grad
from chainrule import charts
from chainrule.inspect.core.registry import instrument
from chainrule.inspect.core.results import Result
from chainrule.inspect.surfaces.answers import Answers, answers_of
from chainrule.inspect.surfaces.slices import Slice, slice_of
from chainrule.ops.creation.from_data import as_tensor
from chainrule.printing import text_table
from chainrule.tensor import Tensor

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Regions", "regions"]


@dataclass(repr=False, eq=False)
class Regions(Result):
    """The answers of a model over a line or a plane of its inputs.

    ``x`` (and ``y``) are the coordinates of the grid. ``values`` are probabilities of all classes
    along the last dimension, or of a regression the output; ``classes`` the names of the classes,
    empty for a regression. ``points`` are the data in the same coordinates, ``targets`` theirs.
    ``off_plane`` is the root mean square distance of the data from the plane.
    """

    labels: tuple[str, ...]
    where: str
    x: Tensor
    y: Tensor | None
    values: Tensor
    classes: list[str]
    points: Tensor
    targets: Tensor | None
    accuracy: float | None
    off_plane: float

    def __str__(self) -> str:
        rows = [["seen on", self.where], ["points of the grid", " x ".join(map(str, self.size))]]
        if self.classes:
            shares = self.shares
            rows += [
                [f"region of class {name}", f"{share:.1%}"]
                for name, share in zip(self.classes, shares, strict=True)
            ]
        else:
            low, high = float(self.values.min()), float(self.values.max())
            rows.append(["output", f"{low:.4g} to {high:.4g}"])
        if self.accuracy is not None:
            rows.append(["accuracy on the data", f"{self.accuracy:.1%}"])
        if self.off_plane > 0:
            rows.append(["data off the plane", f"{self.off_plane:.3g} (root mean square)"])
        return text_table(["what a model answers", ""], rows)

    @property
    def size(self) -> tuple[int, ...]:
        """Points of the grid in each direction."""
        return (len(self.x),) if self.y is None else (len(self.x), len(self.y))

    @property
    def shares(self) -> list[float]:
        """The share of the grid in which each class is the answer."""
        winners = self.values.argmax(-1)
        return [float((winners == k).float().mean()) for k in range(len(self.classes))]

    def plot(self, ax: Axes | None = None, *, data: bool = True, **style: Any) -> Axes:
        """Draws regions with probabilities as shades, or the output; and the data on it."""
        ax = charts.axes_for(ax, (5.6, 4.4))
        if self.y is None:
            self._plot_line(ax, data, **style)
        elif self.classes:
            self._plot_classes(ax, data, **style)
        else:
            self._plot_surface(ax, data, **style)
        what = "Decision regions" if self.classes else "Output"
        ax.set_title(f"{what}\n{self.where}", fontsize=10)
        return ax

    def _plot_line(self, ax: Axes, data: bool, **style: Any) -> None:
        names = self.classes or ["the model"]
        x = self.x.numpy()
        for k, name in enumerate(names):
            color = charts.COLORS[k % len(charts.COLORS)]
            values = self.values[:, k] if self.classes else self.values
            ax.plot(x, values.numpy(), **{"color": color, "label": name} | style)
        if data and self.targets is not None:
            shown = self.points[:, 0].numpy()
            if self.classes:
                for k in range(len(names)):
                    chosen = (self.targets == k).numpy()
                    height = [1.0 + 0.02 * k] * int(chosen.sum())
                    ax.plot(shown[chosen], height, "|", color=charts.COLORS[k % len(charts.COLORS)])
            else:
                ax.plot(shown, self.targets.numpy(), ".", color="#555555", label="data", zorder=0)
        ax.set(xlabel=self.labels[0], ylabel="probability" if self.classes else "output")
        ax.legend()

    def _grid(self) -> tuple[float, float, float, float]:
        if self.y is None:
            raise ValueError("there is one coordinate")
        return float(self.x[0]), float(self.x[-1]), float(self.y[0]), float(self.y[-1])

    def _plot_classes(self, ax: Axes, data: bool, **style: Any) -> None:
        from matplotlib.colors import to_rgb

        colors = [to_rgb(charts.COLORS[k % len(charts.COLORS)]) for k in range(len(self.classes))]
        # Each point mixes the colors of the classes by their probabilities, on white.
        mixed = self.values.float() @ as_tensor(colors)
        shade = (0.6 + 0.4 * mixed).clamp(0, 1)
        looks: dict[str, Any] = {
            "extent": self._grid(),
            "origin": "lower",
            "aspect": "auto",
        } | style
        ax.imshow(shade.numpy(), **looks)
        self._boundaries(ax)
        ax.set(xlabel=self.labels[0], ylabel=self.labels[1])
        for k, name in enumerate(self.classes):
            chosen = None if self.targets is None else (self.targets == k)
            points = self.points[:0] if chosen is None or not data else self.points[chosen]
            ax.plot(
                points[:, 0].numpy(), points[:, 1].numpy(), charts.marker_of(k), color=colors[k],
                markersize=5, markeredgecolor="white", markeredgewidth=0.7, label=name,
            )  # fmt: skip
        ax.legend(title="class", framealpha=0.9)

    def _boundaries(self, ax: Axes) -> None:
        """Lines where the answer changes: where the best class is as likely as the next."""
        winners = self.values.argmax(-1)
        x, y = self.x.numpy(), self.y.numpy() if self.y is not None else None
        for k in range(len(self.classes)):
            others = self.values.clone()
            others[..., k] = -1.0
            lead = self.values[..., k] - others.amax(-1)
            if bool((winners == k).any()) and not bool((winners == k).all()):
                ax.contour(x, y, lead.numpy(), levels=[0.0], colors="black", linewidths=0.8)
            if len(self.classes) == 2:
                break

    def _plot_surface(self, ax: Axes, data: bool, **style: Any) -> None:
        low, high = float(self.values.min()), float(self.values.max())
        if data and self.targets is not None:
            low = min(low, float(self.targets.min()))
            high = max(high, float(self.targets.max()))
        looks: dict[str, Any] = {"vmin": low, "vmax": high, "cmap": charts.SEQUENTIAL}
        drawn = ax.imshow(
            self.values.numpy(),
            **looks | {"extent": self._grid(), "origin": "lower", "aspect": "auto"} | style,
        )
        charts.add_colorbar(ax, drawn, "output")
        if data and self.targets is not None:
            ax.scatter(
                self.points[:, 0].numpy(), self.points[:, 1].numpy(), c=self.targets.numpy(),
                s=18, edgecolors="white", linewidths=0.6, **looks,
            )  # fmt: skip
        ax.set(xlabel=self.labels[0], ylabel=self.labels[1])


@instrument("V02", "V03", "V05", "V45", needs=("model", "inputs"))
def regions(
    model: Any,
    inputs: Any,
    targets: Any = None,
    *,
    features: Sequence[int | str] | None = None,
    names: Sequence[str] | None = None,
    classes: Sequence[str] | None = None,
    task: str | None = None,
    points: int = 200,
    margin: float = 0.1,
) -> Regions:
    """What a model answers on a line or plane of its inputs, with the data on it.

    One feature gives a curve. Two give the whole plane. Of more, two are shown and the others held
    at their medians, if ``features`` names them; else the plane of the data's two principal
    components is taken, through their mean. The result says which.

    Args:
        model: a module, a function of a batch, or an estimator with ``predict_proba`` or
            ``predict``.
        inputs: the data, a row for each sample.
        targets: theirs; integers, one-hot rows and words mean classes.
        features: one or two columns, by number or by name.
        names: of the columns; those of a frame by default.
        classes: names of the classes.
        task: "classification" or "regression"; by default what the targets and outputs say.
        points: of the grid in each direction.
        margin: how far the grid goes beyond the data, as a share of their range.

    >>> from chainrule import inspect, nn, problems
    >>> data = problems.boolean("xor")
    >>> classes = data.targets.long().flatten()
    >>> seen = inspect.regions(nn.Linear(2, 2), data.inputs, classes, points=20)
    >>> seen.values.shape, seen.where
    (chainrule.Size([20, 20, 2]), 'both features')
    """
    x, columns = _data(inputs), _columns_of(model, inputs)
    if names is None and hasattr(inputs, "columns"):
        names = [str(name) for name in inputs.columns]
    if points < 2:
        raise ValueError(f"regions: points must be at least 2, got {points}")
    cut: Slice = slice_of(x, features, list(names) if names is not None else None, margin)
    y = None if targets is None else _targets(model, targets, len(x), classes)
    with no_grad():
        on_grid: Answers = answers_of("regions", model, cut.grid(points), y, task, columns)
        on_data = answers_of("regions", model, x, y, task, columns)
    values = on_grid.values.reshape(*cut.shape(points), *on_grid.values.shape[1:])
    labels = [str(c) for c in classes] if classes is not None else on_grid.classes
    if labels and not on_grid.classes:
        raise ValueError("regions: classes= has names of classes, and this is a regression")
    if len(labels) != len(on_grid.classes):
        raise ValueError(
            f"regions: {len(labels)} names for {len(on_grid.classes)} classes: {labels}"
        )
    known = y if not on_grid.classes or y is None else on_grid.numbered("regions", y)
    hit = on_grid.classes and known is not None
    accuracy = float((on_data.values.argmax(-1) == known).double().mean()) if hit else None
    axes = cut.axes(points)
    return Regions(
        cut.labels, cut.where, axes[0], axes[1] if len(axes) > 1 else None, values,
        labels, cut.coordinates(x), known, accuracy, cut.distance(x),
    )  # fmt: skip


def _columns_of(model: Any, inputs: Any) -> Callable[[Any], Any] | None:
    """Makes a frame of an array, for an estimator that was fitted on one."""
    if not (hasattr(inputs, "columns") and hasattr(model, "feature_names_in_")):
        return None
    return lambda values: type(inputs)(values, columns=inputs.columns)


def _targets(model: Any, targets: Any, count: int, classes: Sequence[str] | None) -> Tensor:
    """Targets as one number each: words as the model numbers them, one-hot rows as their class."""
    given = targets.to_numpy() if hasattr(targets, "to_numpy") else targets
    listed = given.tolist() if hasattr(given, "tolist") else list(given)
    if listed and isinstance(listed[0], str):
        names = [str(c) for c in getattr(model, "classes_", classes or ())]
        if not names:
            raise ValueError(
                f"regions: the targets are words such as {listed[0]!r}; say which output is which: "
                "classes=[...], in the order of the outputs"
            )
        unknown = sorted(set(listed) - set(names))
        if unknown:
            raise ValueError(f"regions: the target {unknown[0]!r} is none of the classes {names}")
        y = as_tensor([names.index(label) for label in listed])
    else:
        y = as_tensor(given).detach()
        whole = y.ndim == 2 and y.shape[1] > 1 and bool(((y == 0) | (y == 1)).all())
        if whole and bool((y.sum(1) == 1).all()):
            y = y.argmax(1)
    y = y.reshape(-1)
    if len(y) != count:
        raise ValueError(f"regions: {count} inputs and {len(y)} targets do not fit together")
    if not bool(y.isfinite().all()):
        raise ValueError("regions: the targets have values that are not finite; drop these rows")
    return y


def _data(inputs: Any) -> Tensor:
    if isinstance(inputs, (tuple, dict)):
        raise TypeError(
            "regions: inputs must be one table; a network of several inputs has no one plane: give "
            "a function of one of them, with the others held fixed, as the model"
        )
    x = as_tensor(inputs.to_numpy() if hasattr(inputs, "to_numpy") else inputs).detach()
    if not x.dtype.is_floating_point:
        x = x.float()
    if x.ndim == 1:
        x = x.reshape(-1, 1)
    if x.ndim != 2 or not x.numel():
        raise ValueError(
            f"regions: inputs must be a table with a row for each sample, got shape "
            f"{tuple(x.shape)}; a network of images has no plane of features: look at "
            "hidden_space instead"
        )
    if not bool(x.isfinite().all()):
        raise ValueError("regions: the inputs have values that are not finite; drop these rows")
    return x

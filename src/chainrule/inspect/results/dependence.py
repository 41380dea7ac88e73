"""What a model answers as one or two features change and all others stay."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from chainrule.backend import dtypes
from chainrule import charts
from chainrule.inspect.core.registry import instrument
from chainrule.inspect.core.results import Result
from chainrule.inspect.results.columns import Columns, columns_of
from chainrule.inspect.results.predictions import is_fitted, outputs_of
from chainrule.metrics.scores import probabilities
from chainrule.ops.creation.patterns import linspace
from chainrule.ops.shape.stacking import stack
from chainrule.printing import text_table
from chainrule.tensor import Tensor

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["PartialDependence", "partial_dependence"]


@dataclass(repr=False, eq=False)
class PartialDependence(Result):
    """``average``: the mean answer over all samples with the features at each point of ``grid``;
    of two features a table of the first by the second. ``individual`` are the answers for single
    samples (N, ...). ``deciles`` of the features say where there are data."""

    features: list[str]
    output: str
    grid: list[Tensor]
    average: Tensor
    individual: Tensor
    deciles: list[list[float]]

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, features: Any, **options: Any) -> Self:
        """The same as ``inspect.partial_dependence``, under scikit-learn's habit."""
        found: Any = partial_dependence(estimator, X, features, **options)
        return found

    @property
    def effect(self) -> float:
        """How far the mean answer moves over the grid."""
        return float(self.average.max() - self.average.min())

    @property
    def disagreement(self) -> float:
        """The root mean square distance of single curves from the mean, less their levels: where
        it is large against the effect, the feature works together with others."""
        curves = self.individual.reshape(len(self.individual), -1)
        level = curves - curves.mean(1, keepdim=True)
        return float(((level - level.mean(0)) ** 2).mean().sqrt())

    def __str__(self) -> str:
        rows = [
            ["of", self.output],
            ["mean answer", f"{float(self.average.min()):.4g} to {float(self.average.max()):.4g}"],
            ["samples differ by", f"{self.disagreement:.4g}"],
        ]
        rows += [
            [name, f"{float(g[0]):.4g} to {float(g[-1]):.4g} in {len(g)} points"]
            for name, g in zip(self.features, self.grid, strict=True)
        ]
        text = text_table([f"dependence on {' and '.join(self.features)}", ""], rows)
        if self.disagreement > 0.5 * self.effect and len(self.features) == 1:
            text += (
                "\nthe mean hides how samples differ: look at the single lines, or at a pair of "
                "features"
            )
        return text

    def plot(self, ax: Axes | None = None, *, lines: int = 50, **style: Any) -> Axes:
        """Draws the mean over single lines, or of two features contours; ticks are deciles."""
        if len(self.features) == 2:
            return self._plot_pair(ax, **style)
        ax = charts.axes_for(ax, (5.4, 3.8))
        x, step = self.grid[0].numpy(), max(1, math.ceil(len(self.individual) / max(1, lines)))
        for i, row in enumerate(self.individual.tolist()[::step] if lines else []):
            label = "single samples" if i == 0 else None
            ax.plot(x, row, color="#999999", linewidth=0.6, alpha=0.6, label=label)
        looks: dict[str, Any] = {"color": charts.COLORS[0], "linewidth": 2.5, "label": "mean"}
        ax.plot(x, self.average.numpy(), **looks | style)
        inside = [d for d in self.deciles[0] if x[0] <= d <= x[-1]]
        ax.plot(
            inside,
            [0.015] * len(inside),
            "|",
            color="black",
            markersize=8,
            transform=ax.get_xaxis_transform(),
        )
        ax.set(xlabel=self.features[0], ylabel=self.output)
        ax.set_title("Partial dependence")
        ax.legend()
        return ax

    def _plot_pair(self, ax: Axes | None, **style: Any) -> Axes:
        ax = charts.axes_for(ax, (5.4, 4.2))
        norm, levels = charts.levels_of(self.average, 12)
        drawn = ax.contourf(
            self.grid[0].numpy(),
            self.grid[1].numpy(),
            self.average.numpy().T,
            **{"levels": levels, "norm": norm, "cmap": charts.SEQUENTIAL} | style,
        )
        charts.add_colorbar(ax, drawn, self.output)
        low, high = (float(self.grid[1][i]) for i in (0, -1))
        left, right = (float(self.grid[0][i]) for i in (0, -1))
        across = [d for d in self.deciles[0] if left <= d <= right]
        along = [d for d in self.deciles[1] if low <= d <= high]
        ax.plot(across, [low] * len(across), "|", color="white", markersize=10)
        ax.plot([left] * len(along), along, "_", color="white", markersize=10)
        ax.set(xlabel=self.features[0], ylabel=self.features[1])
        ax.set_title("Partial dependence")
        return ax


def _quantile(ordered: list[float], p: float) -> float:
    """SciPy's ``mquantiles``, which scikit-learn's grids are made of."""
    n = len(ordered)
    at = n * p + 0.4 + 0.2 * p
    k = math.floor(min(max(at, 1), max(1, n - 1)))
    share = min(max(at - k, 0.0), 1.0)
    return (1 - share) * ordered[k - 1] + share * ordered[min(k, n - 1)]


def _grid(values: Tensor, points: int, percentiles: tuple[float, float], name: str) -> Tensor:
    if not bool(values.isfinite().all()):
        raise ValueError(
            f"partial_dependence: the feature {name!r} has values that are not finite; drop them"
        )
    different = values.reshape(-1).unique()
    if len(different) < 2:
        raise ValueError(
            f"partial_dependence: the feature {name!r} has one value, {float(different[0]):g}, and "
            "there is nothing to see; give more samples or choose another"
        )
    if len(different) < points:
        return different.double()
    ordered = sorted(values.reshape(-1).tolist())
    low, high = (_quantile(ordered, p) for p in percentiles)
    if not low < high:
        raise ValueError(
            f"partial_dependence: the feature {name!r} is nearly constant ({low:g} at both "
            f"percentiles {percentiles}); widen percentiles or choose another"
        )
    return linspace(low, high, points, dtype=dtypes.float64)


class _Answers:
    """The chosen output of a model, a number for each sample."""

    def __init__(self, model: Any, inputs: Any, output: int | str | None, task: str | None):
        self.model, self.task, self.column = model, task, 0
        found, names = outputs_of("partial_dependence", model, inputs)
        width = found.numel() // len(found)
        classified = task == "classification" or (task is None and (names or width > 1))
        self.task = "classification" if classified else "regression"
        if not classified and width == 1:
            if output is not None:
                raise ValueError(
                    f"partial_dependence: the model has one output; leave out output={output!r}, "
                    "or say task='classification'"
                )
            self.name = "prediction"
            return
        known = [str(n) for n in names] or [str(k) for k in range(max(2, width))]
        if output is None and len(known) == 2 and classified:
            output = 1
        if output is None:
            raise ValueError(
                f"partial_dependence: the model has {len(known)} outputs; say which: output=0, or "
                f"one of {known[:12]}"
            )
        inside = isinstance(output, int) and -len(known) <= output < len(known)
        if str(output) not in known and not inside:
            raise ValueError(
                f"partial_dependence: there is no output {output!r}; there are {known[:12]}"
            )
        self.column = output if isinstance(output, int) and inside else known.index(str(output))
        what = "probability of class" if classified else "output"
        self.name = f"{what} {known[self.column]}"

    def __call__(self, inputs: Any) -> Tensor:
        found, _ = outputs_of("partial_dependence", self.model, inputs)
        if self.task == "classification":
            return probabilities("partial_dependence", found, None)[:, self.column]
        return found.reshape(len(found), -1)[:, self.column].double()


def _answers(answer: _Answers, columns: Columns, places: list[int], grid: list[Tensor]) -> Tensor:
    if len(places) == 1:
        each = [answer(columns.filled({places[0]: v})) for v in grid[0].tolist()]
        return stack(each, 1)
    rows = [
        stack([answer(columns.filled({places[0]: a, places[1]: b})) for b in grid[1].tolist()], 1)
        for a in grid[0].tolist()
    ]
    return stack(rows, 1)


@instrument(needs=("model", "inputs"))
def partial_dependence(
    model: Any,
    inputs: Any,
    features: int | str | Sequence[int | str] = 0,
    *,
    output: int | str | None = None,
    task: str | None = None,
    points: int | None = None,
    percentiles: tuple[float, float] = (0.05, 0.95),
    names: Sequence[str] | None = None,
) -> PartialDependence:
    """The answers of a model as one or two features change, in the mean and for single samples.

    Args:
        model: a module, a fitted network, an estimator, or a function of a batch.
        inputs: see :func:`permutation_importance`.
        features: one or two, by number or name.
        output: which class or number, of several; of two classes the second.
        task: "classification" or "regression"; by default several outputs are classes.
        points: of the grid, in each direction, by default 50, of a pair 20; a feature of fewer
            different values has these.
        percentiles: between which shares of the data the grid lies.
        names: of the features.

    >>> import chainrule
    >>> from chainrule import inspect
    >>> x = chainrule.tensor([[0.0, 1.0], [1.0, 3.0]])
    >>> inspect.partial_dependence(lambda x: x[:, 0] * x[:, 1], x, 0).average.tolist()
    [0.0, 2.0]
    """
    name = "partial_dependence"
    if task not in (None, "classification", "regression"):
        raise ValueError(f"{name}: task must be 'classification' or 'regression', got {task!r}")
    chosen = [features] if isinstance(features, (int, str)) else list(features)
    points = (50 if len(chosen) == 1 else 20) if points is None else points
    if points < 2 or not 0 <= percentiles[0] < percentiles[1] <= 1:
        raise ValueError(
            f"{name}: needs points >= 2 and percentiles between 0 and 1, got {points} and "
            f"{percentiles}"
        )
    columns = columns_of(name, inputs, names, model.about["target"] if is_fitted(model) else None)
    if len(chosen) not in (1, 2):
        raise ValueError(f"{name}: one or two features can be shown, got {len(chosen)}")
    places = [columns.place(name, feature) for feature in chosen]
    labels = [columns.names[j] for j in places]
    values = [columns.values(j) for j in places]
    grid = [_grid(v, points, percentiles, n) for v, n in zip(values, labels, strict=True)]
    answer = _Answers(model, inputs, output, task)
    individual = _answers(answer, columns, places, grid)
    ordered = [sorted(v.reshape(-1).tolist()) for v in values]
    deciles = [[_quantile(o, p / 10) for p in range(1, 10)] for o in ordered]
    return PartialDependence(labels, answer.name, grid, individual.mean(0), individual, deciles)

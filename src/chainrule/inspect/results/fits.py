"""A regression over its data: the fitted curve with training and validation points."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from chainrule import metrics
from chainrule.backend import dtypes
from chainrule import charts
from chainrule.inspect.core.registry import instrument
from chainrule.inspect.core.results import Result
from chainrule.inspect.results.predictions import fitting, outputs_of, predicted
from chainrule.ops.creation.from_data import as_tensor
from chainrule.ops.creation.patterns import linspace
from chainrule.printing import text_table
from chainrule.tensor import Tensor

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["RegressionFit", "regression_fit"]


@dataclass(repr=False, eq=False)
class RegressionFit(Result):
    """The points of each split, what is predicted for them, and the errors.

    ``points[split]`` is (inputs, targets, predictions). Of one feature ``grid`` and ``curve`` are
    the fitted function; of several they are None, and predictions are drawn against targets.
    """

    points: dict[str, tuple[Tensor, Tensor, Tensor]]
    rmse: dict[str, float]
    r2: dict[str, float]
    grid: Tensor | None
    curve: Tensor | None
    name: str

    def __str__(self) -> str:
        rows = [
            [split, str(len(p[1])), f"{self.rmse[split]:.4g}", f"{self.r2[split]:.4f}"]
            for split, p in self.points.items()
        ]
        header = ["split", "samples", "root mean square error", "R2"]
        text = text_table(header, rows, left=1)
        if len(rows) == 2 and self.rmse["validation"] > 1.5 * self.rmse["training"]:
            text += (
                f"\nthe validation error is {self.rmse['validation'] / self.rmse['training']:.1f} "
                "times the training error: the fit follows the noise; regularize, stop earlier, or "
                "use fewer units"
            )
        return text

    def plot(self, ax: Axes | None = None, **style: Any) -> Axes:
        """Draws the fitted curve over the points of both splits, or predictions over targets."""
        ax = charts.axes_for(ax, (5.8, 4.0))
        low, high = math.inf, -math.inf
        for i, (split, (x, y, said)) in enumerate(self.points.items()):
            label = f"{split}: RMSE {self.rmse[split]:.3g}"
            looks: dict[str, Any] = {"color": charts.COLORS[i], "markersize": 5, "alpha": 0.75}
            across, along = (x, y) if self.grid is not None else (y, said)
            marker = "os"[i % 2]
            ax.plot(across.tolist(), along.tolist(), marker, label=label, **looks)
            low, high = min(low, float(y.min())), max(high, float(y.max()))
        if self.grid is not None and self.curve is not None:
            curve: dict[str, Any] = {"color": "black", "linewidth": 2, "label": "fit"} | style
            ax.plot(self.grid.tolist(), self.curve.tolist(), **curve)
            ax.set(xlabel=self.name, ylabel="target")
        else:
            ax.plot([low, high], [low, high], **{"color": "black", "label": "perfect"} | style)
            ax.set(xlabel="target", ylabel="prediction")
        ax.set_title("Regression: data and fit")
        ax.legend()
        return ax


@instrument("V46", needs=("model", "inputs", "targets"))
def regression_fit(
    model: Any,
    inputs: Any,
    targets: Any,
    *,
    validation: tuple[Any, Any] | None = None,
    name: str = "x",
    points: int = 200,
    margin: float = 0.05,
) -> RegressionFit:
    """A fitted function over its training and validation data, with the errors on both.

    Args:
        model: a module, an estimator, or a function of a batch.
        inputs: of the training; one feature gives a curve, several predictions over targets.
        targets: of the training, one number each.
        validation: (inputs, targets) that were not trained on.
        name: of the feature.
        points: of the curve.
        margin: how far the curve goes beyond the data, as a share of their range.

    >>> import chainrule
    >>> from chainrule import inspect
    >>> x = chainrule.tensor([[0.0], [1.0], [2.0]])
    >>> inspect.regression_fit(lambda x: 2 * x, x, 2 * x + 1).rmse
    {'training': 1.0}
    """
    if points < 2:
        raise ValueError(f"regression_fit: points must be at least 2, got {points}")
    splits = {"training": (inputs, targets)}
    if validation is not None:
        splits["validation"] = (validation[0], validation[1])
    held, rmse, r2 = {}, {}, {}
    for split, (x, y) in splits.items():
        found = predicted("regression_fit", model, _table(x), y, "regression")
        if found.scores.shape[1] != 1:
            raise ValueError(
                f"regression_fit: {found.scores.shape[1]} outputs have no one curve; give a "
                "function that returns one of them"
            )
        said, true = found.scores[:, 0], found.targets[:, 0]
        held[split] = (as_tensor(_table(x)).reshape(len(true), -1).double(), true, said)
        rmse[split], r2[split] = metrics.rmse(said, true), metrics.r2(said, true)
    if held["training"][0].shape[1] != 1:
        return RegressionFit(held, rmse, r2, None, None, name)
    values = [v for x, _, _ in held.values() for v in x.reshape(-1).tolist()]
    low, high = min(values), max(values)
    room = margin * ((high - low) or 1.0)
    grid = linspace(low - room, high + room, points, dtype=dtypes.float64)
    kind = as_tensor(inputs).dtype
    rows = grid.to(dtype=kind if kind.is_floating_point else dtypes.float32).reshape(-1, 1)
    curve, _ = outputs_of("regression_fit", model, fitting(model, rows.numpy()))
    flat = {k: (x.reshape(-1), y, said) for k, (x, y, said) in held.items()}
    return RegressionFit(flat, rmse, r2, grid, curve.reshape(-1), name)


def _table(x: Any) -> Any:
    """One feature as a column."""
    given = x if isinstance(x, Tensor) or hasattr(x, "__array__") else as_tensor(x)
    return given.reshape(-1, 1) if given.ndim == 1 else given

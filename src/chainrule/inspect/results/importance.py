"""How much a model loses without a feature."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from chainrule import metrics
from chainrule.backend import dtypes
from chainrule import charts
from chainrule.inspect.core.registry import instrument
from chainrule.inspect.core.results import Result
from chainrule.inspect.results.columns import columns_of
from chainrule.inspect.results.predictions import Predictions, is_fitted, predicted
from chainrule.ops.creation.from_data import as_tensor, tensor
from chainrule.ops.creation.sampling import randperm
from chainrule.printing import text_table
from chainrule.random import fork_rng, manual_seed
from chainrule.tensor import Tensor

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["PermutationImportance", "permutation_importance"]

# Measures that are better the lower they are.
ERRORS = (
    "error_rate",
    "top_5_error",
    "nll",
    "calibration_error",
    "mse",
    "rmse",
    "mae",
    "max_error",
)
Score = Callable[[Tensor, Tensor], Any]


@dataclass(repr=False, eq=False)
class PermutationImportance(Result):
    """``importances[j, r]``: how much worse the score is with feature j shuffled for the r-th time.

    ``mean`` is the mean over the repeats and ``interval`` what lies within two standard errors of
    it. ``score`` names the measure and ``baseline`` is its value on the data as they are.
    """

    names: list[str]
    importances: Tensor
    mean: list[float]
    interval: list[tuple[float, float]]
    score: str
    baseline: float

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, **options: Any) -> Self:
        """The same as ``inspect.permutation_importance``, under scikit-learn's habit."""
        found: Any = permutation_importance(estimator, X, y, **options)
        return found

    @property
    def order(self) -> list[int]:
        """The features from the most important down."""
        return sorted(range(len(self.names)), key=lambda j: -self.mean[j])

    @property
    def idle(self) -> list[str]:
        """Features without which the model is as good, as far as the repeats can tell."""
        return [n for n, (low, _) in zip(self.names, self.interval, strict=True) if low <= 0]

    def __str__(self) -> str:
        rows = [
            [
                self.names[j],
                f"{self.mean[j]:+.4f}",
                f"{self.interval[j][0]:+.4f} to {self.interval[j][1]:+.4f}",
            ]
            for j in self.order
        ]
        lines = [
            text_table(["feature", f"lost {self.score}", "interval"], rows, left=1),
            f"{self.score} with all features: {self.baseline:.4f}",
        ]
        if self.idle:
            shown = ", ".join(self.idle[:8]) + (", ..." if len(self.idle) > 8 else "")
            lines.append(
                f"not missed: {shown}: leave out one at a time and train again (of two features "
                "that say the same, neither is missed)"
            )
        return "\n".join(lines)

    def plot(self, ax: Axes | None = None, *, count: int = 15, **style: Any) -> Axes:
        """Draws the most important features with their intervals and single repeats."""
        shown = self.order[:count][::-1]
        ax = charts.axes_for(ax, (6.0, 1.3 + 0.28 * len(shown)))
        at = list(range(len(shown)))
        mean = [self.mean[j] for j in shown]
        low = [self.mean[j] - self.interval[j][0] for j in shown]
        high = [self.interval[j][1] - self.mean[j] for j in shown]
        looks: dict[str, Any] = {"color": charts.COLORS[0], "alpha": 0.75} | style
        ax.barh(at, mean, **looks)
        ax.errorbar(mean, at, xerr=[low, high], fmt="none", ecolor="black", capsize=2, linewidth=1)
        for i, j in enumerate(shown):
            single = self.importances[j].tolist()
            ax.plot(single, [i] * len(single), ".", color=charts.COLORS[1], markersize=3)
        ax.axvline(0, color="#888888", linewidth=0.8)
        ax.set_yticks(at, [self.names[j] for j in shown])
        ax.set_xlabel(f"{self.score} that is lost when the feature is shuffled")
        ax.set_title(f"Permutation importance ({self.importances.shape[1]} repeats)")
        return ax


def _measure(found: Predictions, score: str | Score | None) -> tuple[str, Score, float]:
    """The name of a score, the function, and +1 where more is better, else -1."""
    if callable(score):
        return getattr(score, "__name__", "score"), score, 1.0
    if score is None and found.task == "labels":
        return "share of right labels", _right_labels, 1.0
    name = score or ("r2" if found.task == "regression" else "accuracy")
    kind: Any = "probabilities" if found.task == "classification" else None
    known = metrics.metric_functions(name, kind)[name]
    return name, known, -1.0 if name in ERRORS else 1.0


def _right_labels(scores: Tensor, true: Tensor) -> float:
    return float(((scores > 0.5) == (true > 0.5)).double().mean())


def _orders(given: Sequence[Any] | None, count: int, repeats: int, seed: int) -> list[Tensor]:
    if given is not None:
        orders = [as_tensor(order) for order in given]
        whole = list(range(count))
        if any(sorted(order.tolist()) != whole for order in orders) or not orders:
            raise ValueError(
                f"permutation_importance: orders must be permutations of 0 to {count - 1}"
            )
        return orders
    if repeats < 1:
        raise ValueError(f"permutation_importance: repeats must be positive, got {repeats}")
    with fork_rng():
        manual_seed(seed)
        return [randperm(count) for _ in range(repeats)]


def _interval(values: list[float]) -> tuple[float, float]:
    n = len(values)
    center = math.fsum(values) / n
    spread = math.fsum((v - center) ** 2 for v in values) / max(1, n - 1)
    return center - 2 * math.sqrt(spread / n), center + 2 * math.sqrt(spread / n)


@instrument(needs=("model", "inputs", "targets"))
def permutation_importance(
    model: Any,
    inputs: Any,
    targets: Any,
    *,
    score: str | Score | None = None,
    repeats: int = 5,
    names: Sequence[str] | None = None,
    seed: int = 0,
    orders: Sequence[Any] | None = None,
) -> PermutationImportance:
    """How much worse a model is when a feature is shuffled among the samples, with intervals.

    Args:
        model: a module, a fitted network, an estimator, or a function of a batch.
        inputs: a table (N, D), series (N, L, C) whose channels are shuffled as a whole, several of
            them, a frame, or the table of a fitted network.
        targets: see :func:`roc`, or numbers.
        score: a metric's name, or a function of probabilities (or numbers) and targets of which
            more is better. By default accuracy, or R2 of numbers.
        repeats: how often each feature is shuffled.
        names: of the features.
        seed: of the shuffling.
        orders: the permutations themselves, in place of repeats and seed.

    >>> import chainrule
    >>> from chainrule import inspect
    >>> x = chainrule.tensor([[0.0, 5.0], [1.0, 5.0], [2.0, 5.0], [3.0, 5.0]])
    >>> seen = inspect.permutation_importance(lambda x: 2 * x[:, 0], x, 2 * x[:, 0])
    >>> seen.mean[1], seen.idle
    (0.0, ['1'])
    """
    name = "permutation_importance"
    fitted = is_fitted(model)
    left_out = model.about["target"] if fitted else None
    truth = inputs[left_out] if fitted and targets is None else targets
    columns = columns_of(name, inputs, names, left_out)
    if columns.count < 2:
        raise ValueError(f"{name}: one sample cannot be shuffled; give at least two")
    found = predicted(name, model, inputs, truth)
    label, measure, sign = _measure(found, score)
    baseline = float(measure(found.scores, found.targets))

    def lost(j: int, order: Tensor) -> float:
        said = predicted(name, model, columns.shuffled(j, order), truth, found.task)
        return sign * (baseline - float(measure(said.scores, said.targets)))

    made = _orders(orders, columns.count, repeats, seed)
    each = [[lost(j, order) for order in made] for j in range(len(columns.names))]
    mean = [math.fsum(row) / len(row) for row in each]
    table = tensor(each, dtype=dtypes.float64)
    return PermutationImportance(
        columns.names, table, mean, [_interval(row) for row in each], label, baseline
    )

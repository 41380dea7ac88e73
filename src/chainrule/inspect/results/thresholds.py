"""What a threshold on the score of a class buys: true against false alarms, precision, recall."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

from chainrule import metrics
from chainrule import charts
from chainrule.inspect.core.registry import instrument
from chainrule.inspect.results.predictions import Display, Predictions, predicted
from chainrule.metrics.curves import PrecisionRecallCurve, RocCurve
from chainrule.printing import text_table
from chainrule.tensor import Tensor

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["PrecisionRecall", "Roc", "precision_recall", "roc"]


def _each_against_the_rest(
    name: str, found: Predictions, threshold: float
) -> list[tuple[str, Tensor, Tensor]]:
    """Name, scores and membership of each class that has a curve: of two classes the second."""
    if not 0 < threshold < 1:
        raise ValueError(f"{name}: threshold must lie between 0 and 1, got {threshold}")
    if found.task == "regression":
        raise ValueError(
            f"{name}: one prediction for each sample and targets that are not two classes have no "
            "curve; give probabilities (N, K) for K classes, or look at numbers with "
            "inspect.residuals"
        )
    labels = found.task == "labels"
    counts = {
        k: (found.targets[:, k] > 0.5 if labels else found.targets == k)
        for k in range(len(found.classes))
    }
    if len(counts) == 2 and not labels:
        del counts[0]
    known = {k: own for k, own in counts.items() if bool(own.any()) and not bool(own.all())}
    if not known:
        raise ValueError(f"{name}: needs samples of at least two classes; the targets have one")
    return [(found.classes[k], found.scores[:, k], own) for k, own in known.items()]


@dataclass(repr=False, eq=False)
class _Thresholds(Display):
    """A curve over all thresholds for each class against the rest: the place ``at`` of
    ``threshold`` on it, and the ``best`` threshold."""

    curves: dict[str, Any]
    threshold: float
    at: dict[str, tuple[float, float]]
    best: dict[str, float]
    _title = ""
    _axes = ("", "")
    _legend: ClassVar[Any] = "best"

    @classmethod
    def _of(cls, found: Predictions, threshold: float = 0.5) -> Self:
        each = {
            name: cls._measured(scores, own, threshold)
            for name, scores, own in _each_against_the_rest(cls._name, found, threshold)
        }
        fields = next(iter(each.values()))
        return cls(
            threshold=threshold, **{f: {name: each[name][f] for name in each} for f in fields}
        )

    @classmethod
    def _measured(cls, scores: Tensor, own: Tensor, threshold: float) -> dict[str, Any]:
        """What the fields hold of one class."""
        raise NotImplementedError(cls.__name__)

    def _columns(self) -> dict[str, Callable[[str], str]]:
        """What is printed of a class, by the head of its column."""
        raise NotImplementedError(type(self).__name__)

    def _line(self, name: str) -> tuple[Tensor, Tensor, str]:
        """The curve of a class, and what the legend says of it."""
        raise NotImplementedError(type(self).__name__)

    def _guess(self, ax: Axes) -> None:
        """Draws what chance would do."""
        raise NotImplementedError(type(self).__name__)

    def __str__(self) -> str:
        columns = self._columns()
        rows = [[name, *(cell(name) for cell in columns.values())] for name in self.curves]
        return text_table(["class", *columns], rows, left=1)

    def plot(self, ax: Axes | None = None, **style: Any) -> Axes:
        """Draws a curve for each class, what chance would do, and marks the threshold."""
        ax = charts.axes_for(ax, (5.0, 4.4))
        self._guess(ax)
        for i, name in enumerate(self.curves):
            color = charts.COLORS[i % len(charts.COLORS)]
            x, y, label = self._line(name)
            looks: dict[str, Any] = {"color": color, "label": f"class {name}: {label}"} | style
            ax.plot(x.numpy(), y.numpy(), **looks)
            mark = f"threshold {self.threshold:g}" if i == len(self.curves) - 1 else None
            ax.plot(*self.at[name], "o", color=color, label=mark)
        ax.set(title=self._title, xlabel=self._axes[0], ylabel=self._axes[1])
        ax.legend(loc=self._legend)
        return ax


@dataclass(repr=False, eq=False)
class Roc(_Thresholds):
    """Shares of true against false alarms for every threshold, for each class against the rest.

    ``auc`` is the area below a curve, ``at`` (false, true positive rate) at ``threshold``, ``best``
    the threshold at which their difference is largest.
    """

    curves: dict[str, RocCurve]
    auc: dict[str, float]
    _name = "roc"
    _title = "Receiver operating characteristic"
    _axes = ("false positive rate", "true positive rate")
    _legend = "lower right"

    @classmethod
    def _measured(cls, scores: Tensor, own: Tensor, threshold: float) -> dict[str, Any]:
        curve = metrics.roc_curve(scores, own)
        above = (scores >= threshold).double()
        lead = curve.true_positive_rate - curve.false_positive_rate
        return {
            "curves": curve,
            "auc": metrics.roc_auc(scores, own),
            "at": (float(above[~own].mean()), float(above[own].mean())),
            "best": float(curve.thresholds[int(lead.argmax())]),
        }

    def _columns(self) -> dict[str, Callable[[str], str]]:
        return {
            "area": lambda name: f"{self.auc[name]:.4f}",
            f"false alarms at {self.threshold:g}": lambda name: f"{self.at[name][0]:.1%}",
            "found": lambda name: f"{self.at[name][1]:.1%}",
            "best threshold": lambda name: f"{self.best[name]:.3g}",
        }

    def _line(self, name: str) -> tuple[Tensor, Tensor, str]:
        curve = self.curves[name]
        label = f"area {self.auc[name]:.3f}"
        return curve.false_positive_rate, curve.true_positive_rate, label

    def _guess(self, ax: Axes) -> None:
        ax.plot([0, 1], [0, 1], "--", color="#888888", label="chance")


@dataclass(repr=False, eq=False)
class PrecisionRecall(_Thresholds):
    """Precision against recall for every threshold, for each class against the rest.

    ``average_precision`` is the mean precision, ``share`` that of the class (the precision of a
    guess), ``at`` (recall, precision) at ``threshold``, ``best`` the threshold of the largest F1.
    """

    curves: dict[str, PrecisionRecallCurve]
    average_precision: dict[str, float]
    share: dict[str, float]
    _name = "precision_recall"
    _title = "Precision and recall"
    _axes = ("recall", "precision")
    _legend = "lower left"

    @classmethod
    def _measured(cls, scores: Tensor, own: Tensor, threshold: float) -> dict[str, Any]:
        curve = metrics.precision_recall_curve(scores, own)
        above = scores >= threshold
        hits = float((above & own).sum())
        both = (curve.precision + curve.recall).clamp(min=1e-300)
        f1 = (curve.precision * curve.recall / both)[:-1]
        return {
            "curves": curve,
            "average_precision": metrics.average_precision(scores, own),
            "share": float(own.double().mean()),
            "at": (hits / float(own.sum()), hits / max(1.0, float(above.sum()))),
            "best": float(curve.thresholds[int(f1.argmax())]),
        }

    def _columns(self) -> dict[str, Callable[[str], str]]:
        at = f"at {self.threshold:g}"
        return {
            "average precision": lambda name: f"{self.average_precision[name]:.4f}",
            "share": lambda name: f"{self.share[name]:.1%}",
            f"recall {at}": lambda name: f"{self.at[name][0]:.1%}",
            f"precision {at}": lambda name: f"{self.at[name][1]:.1%}",
            "best F1 at": lambda name: f"{self.best[name]:.3g}",
        }

    def _line(self, name: str) -> tuple[Tensor, Tensor, str]:
        curve = self.curves[name]
        return curve.recall, curve.precision, f"mean {self.average_precision[name]:.3f}"

    def _guess(self, ax: Axes) -> None:
        for i, share in enumerate(self.share.values()):
            label = "share of the class" if i == 0 else None
            color = charts.COLORS[i % len(charts.COLORS)]
            ax.axhline(share, linestyle=":", color=color, linewidth=1, label=label)

    def plot(self, ax: Axes | None = None, **style: Any) -> Axes:
        """Draws a curve for each class, the precision of a guess, and marks the threshold."""
        ax = super().plot(ax, **{"drawstyle": "steps-post"} | style)
        ax.set_ylim(0, 1.03)
        return ax


@instrument(needs=("model", "inputs", "targets"))
def roc(
    model: Any,
    inputs: Any,
    targets: Any,
    *,
    threshold: float = 0.5,
    classes: Sequence[str] | None = None,
) -> Roc:
    """The shares of true and of false alarms for every threshold, each class against the rest.

    Args:
        model: a module, a fitted network, an estimator, or a function of a batch.
        inputs: what it is called with.
        targets: class indices, one-hot rows, -1 and +1, or for several labels of a sample rows of
            zeros and ones; of an estimator its labels.
        threshold: of the probability, marked on the curves.
        classes: names of the classes.

    >>> from chainrule import inspect
    >>> inspect.Roc.from_predictions([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]).auc
    {'1': 0.75}
    """
    return Roc._of(predicted("roc", model, inputs, targets, None, classes), threshold=threshold)


@instrument(needs=("model", "inputs", "targets"))
def precision_recall(
    model: Any,
    inputs: Any,
    targets: Any,
    *,
    threshold: float = 0.5,
    classes: Sequence[str] | None = None,
) -> PrecisionRecall:
    """Precision against recall for every threshold, each class against the rest.

    Args:
        model: a module, a fitted network, an estimator, or a function of a batch.
        inputs: what it is called with.
        targets: see :func:`roc`.
        threshold: of the probability, marked on the curves.
        classes: names of the classes.

    >>> from chainrule import inspect
    >>> seen = inspect.PrecisionRecall.from_predictions([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    >>> round(seen.average_precision["1"], 4)
    0.8333
    """
    found = predicted("precision_recall", model, inputs, targets, None, classes)
    return PrecisionRecall._of(found, threshold=threshold)

"""What a threshold on the score of a class buys: true against false alarms, precision, recall."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

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
            f"{name}: the targets are numbers and no classes; look at inspect.residuals instead"
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
class Roc(Display):
    """Shares of true against false alarms for every threshold, for each class against the rest.

    ``auc`` is the area below a curve, ``at`` (false, true positive rate) at ``threshold``, ``best``
    the threshold at which their difference is largest.
    """

    curves: dict[str, RocCurve]
    auc: dict[str, float]
    threshold: float
    at: dict[str, tuple[float, float]]
    best: dict[str, float]
    _name = "roc"

    @classmethod
    def _of(cls, found: Predictions, threshold: float = 0.5) -> Self:
        curves, auc, at, best = {}, {}, {}, {}
        for name, scores, own in _each_against_the_rest("roc", found, threshold):
            curve = metrics.roc_curve(scores, own)
            curves[name], auc[name] = curve, metrics.roc_auc(scores, own)
            above = (scores >= threshold).double()
            at[name] = (float(above[~own].mean()), float(above[own].mean()))
            lead = curve.true_positive_rate - curve.false_positive_rate
            best[name] = float(curve.thresholds[int(lead.argmax())])
        return cls(curves, auc, threshold, at, best)

    def __str__(self) -> str:
        header = ["class", "area", f"false alarms at {self.threshold:g}", "found", "best threshold"]
        rows = [
            [
                name,
                f"{self.auc[name]:.4f}",
                f"{self.at[name][0]:.1%}",
                f"{self.at[name][1]:.1%}",
                f"{self.best[name]:.3g}",
            ]
            for name in self.curves
        ]
        return text_table(header, rows, left=1)

    def plot(self, ax: Axes | None = None, **style: Any) -> Axes:
        """Draws a curve for each class and marks the threshold on it."""
        ax = charts.axes_for(ax, (5.0, 4.4))
        ax.plot([0, 1], [0, 1], "--", color="#888888", label="chance")
        for i, (name, curve) in enumerate(self.curves.items()):
            color = charts.COLORS[i % len(charts.COLORS)]
            label = f"class {name}: area {self.auc[name]:.3f}"
            x, y = curve.false_positive_rate.numpy(), curve.true_positive_rate.numpy()
            ax.plot(x, y, **{"color": color, "label": label} | style)
            mark = f"threshold {self.threshold:g}" if i == len(self.curves) - 1 else None
            ax.plot(*self.at[name], "o", color=color, label=mark)
        ax.set(xlabel="false positive rate", ylabel="true positive rate")
        ax.set_title("Receiver operating characteristic")
        ax.legend(loc="lower right")
        return ax


@dataclass(repr=False, eq=False)
class PrecisionRecall(Display):
    """Precision against recall for every threshold, for each class against the rest.

    ``average_precision`` is the mean precision, ``share`` that of the class (the precision of a
    guess), ``at`` (recall, precision) at ``threshold``, ``best`` the threshold of the largest F1.
    """

    curves: dict[str, PrecisionRecallCurve]
    average_precision: dict[str, float]
    share: dict[str, float]
    threshold: float
    at: dict[str, tuple[float, float]]
    best: dict[str, float]
    _name = "precision_recall"

    @classmethod
    def _of(cls, found: Predictions, threshold: float = 0.5) -> Self:
        curves, average, share, at, best = {}, {}, {}, {}, {}
        for name, scores, own in _each_against_the_rest("precision_recall", found, threshold):
            curve = metrics.precision_recall_curve(scores, own)
            curves[name], average[name] = curve, metrics.average_precision(scores, own)
            above = scores >= threshold
            hits = float((above & own).sum())
            at[name] = (hits / float(own.sum()), hits / max(1.0, float(above.sum())))
            share[name] = float(own.double().mean())
            both = (curve.precision + curve.recall).clamp(min=1e-300)
            f1 = (curve.precision * curve.recall / both)[:-1]
            best[name] = float(curve.thresholds[int(f1.argmax())])
        return cls(curves, average, share, threshold, at, best)

    def __str__(self) -> str:
        at = f"at {self.threshold:g}"
        header = [
            "class",
            "average precision",
            "share",
            f"recall {at}",
            f"precision {at}",
            "best F1 at",
        ]
        rows = [
            [
                name,
                f"{self.average_precision[name]:.4f}",
                f"{self.share[name]:.1%}",
                f"{self.at[name][0]:.1%}",
                f"{self.at[name][1]:.1%}",
                f"{self.best[name]:.3g}",
            ]
            for name in self.curves
        ]
        return text_table(header, rows, left=1)

    def plot(self, ax: Axes | None = None, **style: Any) -> Axes:
        """Draws a curve for each class, the precision of a guess, and marks the threshold."""
        ax = charts.axes_for(ax, (5.0, 4.4))
        for i, (name, curve) in enumerate(self.curves.items()):
            color = charts.COLORS[i % len(charts.COLORS)]
            label = f"class {name}: mean {self.average_precision[name]:.3f}"
            looks: dict[str, Any] = {
                "color": color,
                "label": label,
                "drawstyle": "steps-post",
            } | style
            ax.plot(curve.recall.numpy(), curve.precision.numpy(), **looks)
            last = i == len(self.curves) - 1
            mark = f"threshold {self.threshold:g}" if last else None
            ax.plot(*self.at[name], "o", color=color, label=mark)
            guess = "share of the class" if last else None
            ax.axhline(self.share[name], linestyle=":", color=color, linewidth=1, label=guess)
        ax.set(xlabel="recall", ylabel="precision", ylim=(0, 1.03))
        ax.set_title("Precision and recall")
        ax.legend(loc="lower left")
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

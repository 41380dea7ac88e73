"""Which classes are taken for which."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from chainrule import metrics
from chainrule import charts
from chainrule.inspect.core.registry import instrument
from chainrule.inspect.results.predictions import Display, Predictions, predicted
from chainrule.ops.creation.from_data import tensor
from chainrule.ops.elementwise.logic import where
from chainrule.printing import text_table
from chainrule.tensor import Tensor

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Confusion", "confusion"]

PRINTED = 12  # classes, beyond which only the worst pairs are printed
NUMBERED = 20  # classes, beyond which cells are too small for numbers
NORMALIZED = (None, "true", "pred", "all")


@dataclass(repr=False, eq=False)
class Confusion(Display):
    """``matrix[i, j]``: how many samples of class i were taken for class j; or shares of the true
    class, of the predicted one or of all, with ``normalize``. ``recall`` and ``precision`` are
    those of each class."""

    matrix: Tensor
    counts: Tensor
    classes: list[str]
    accuracy: float
    recall: list[float]
    precision: list[float]
    normalize: str | None
    _name = "confusion"
    _task = "classification"

    @classmethod
    def _of(cls, found: Predictions, normalize: str | None = None) -> Self:
        if normalize not in NORMALIZED:
            raise ValueError(
                f"confusion: normalize must be 'true', 'pred', 'all' or None, got {normalize!r}"
            )
        scores, true = found.scores, found.targets
        counts = metrics.confusion_matrix(scores, true, len(found.classes))
        each = [measure(scores, true, None) for measure in (metrics.recall, metrics.precision)]
        recall, precision = ([float(v) for v in m.tolist()] for m in map(_as_tensor, each))
        return cls(
            _normalized(counts, normalize),
            counts,
            found.classes,
            metrics.accuracy(scores, true),
            recall,
            precision,
            normalize,
        )

    @property
    def worst(self) -> list[tuple[str, str, int]]:
        """Pairs (true class, taken for, how often), the most frequent mistakes first."""
        rows = self.counts.tolist()
        pairs = [
            (self.classes[i], self.classes[j], int(n))
            for i, row in enumerate(rows)
            for j, n in enumerate(row)
            if i != j and n
        ]
        return sorted(pairs, key=lambda pair: -pair[2])

    def __str__(self) -> str:
        lines = [f"accuracy {self.accuracy:.2%} of {int(self.counts.sum())} samples"]
        if len(self.classes) <= PRINTED:
            header = ["true \\ predicted", *self.classes, "recall", "precision"]
            cells = [[self._cell(v) for v in row] for row in self.matrix.tolist()]
            seen, said = self.counts.sum(1).tolist(), self.counts.sum(0).tolist()
            rows = [  # what no sample is of, or none is taken for, has no share
                [
                    name,
                    *cells[i],
                    f"{self.recall[i]:.1%}" if seen[i] else "-",
                    f"{self.precision[i]:.1%}" if said[i] else "-",
                ]
                for i, name in enumerate(self.classes)
            ]
            lines.append(text_table(header, rows, left=1, rule=True))
        for true, said, count in self.worst[:3]:
            lines.append(f"{true} taken for {said}: {count} times")
        return "\n".join(lines)

    def _cell(self, value: float) -> str:
        return str(int(value)) if self.normalize is None else f"{value:.2f}"

    def plot(self, ax: Axes | None = None, **style: Any) -> Axes:
        """Draws true classes as rows and predicted ones as columns; shades are shares of the true
        class, blue where it was found and orange where it was missed."""
        k = len(self.classes)
        side = min(9.0, max(3.6, 1.6 + 0.45 * k))
        ax = charts.axes_for(ax, (side + 0.4, side))
        ax.imshow(self._shades(), **{"interpolation": "nearest"} | style)
        if k <= NUMBERED:
            shares = _normalized(self.counts, "true").tolist()
            for i, row in enumerate(self.matrix.tolist()):
                for j, value in enumerate(row):
                    if value:
                        dark = shares[i][j] ** (1.0 if i == j else 0.5) > 0.55
                        ax.text(
                            j,
                            i,
                            self._cell(value),
                            ha="center",
                            va="center",
                            fontsize=8,
                            color="white" if dark else "black",
                        )
        step = max(1, k // 25)
        shown = list(range(0, k, step))
        turned = max(len(name) for name in self.classes) > 4
        names = [self.classes[i] for i in shown]
        ax.set_xticks(
            shown, names, rotation=45 if turned else 0, ha="right" if turned else "center"
        )
        ax.set_yticks(shown, names)
        ax.set(xlabel="predicted class", ylabel="true class")
        ax.set_title(f"Confusion: accuracy {self.accuracy:.1%}")
        return ax

    def _shades(self) -> Any:
        """Colors on white; of mistakes the root of the share, so that a few are seen, too."""
        shares = _normalized(self.counts, "true")
        right, wrong = tensor([0.0, 0.447, 0.698]), tensor([0.835, 0.369, 0.0])
        diagonal = (tensor(range(len(shares))).reshape(-1, 1) == tensor(range(len(shares)))).float()
        depth = where(diagonal > 0, shares, shares.sqrt()).float().unsqueeze(2)
        ink = diagonal.unsqueeze(2) * right + (1 - diagonal).unsqueeze(2) * wrong
        return (1 - depth * (1 - ink)).numpy()


def _as_tensor(value: float | Tensor) -> Tensor:
    return value if isinstance(value, Tensor) else tensor([value])


def _normalized(counts: Tensor, by: str | None) -> Tensor:
    if by is None:
        return counts
    matrix = counts.double()
    if by == "all":
        return matrix / matrix.sum()
    return matrix / matrix.sum(1 if by == "true" else 0, keepdim=True).clamp(min=1)


@instrument(needs=("model", "inputs", "targets"))
def confusion(
    model: Any,
    inputs: Any,
    targets: Any,
    *,
    classes: Sequence[str] | None = None,
    normalize: str | None = None,
) -> Confusion:
    """Which classes a model takes for which, with recall and precision of each.

    Args:
        model: a module, a fitted network, an estimator, or a function of a batch.
        inputs: what it is called with.
        targets: class indices, one-hot rows, or -1 and +1; of an estimator its labels.
        classes: names of the classes.
        normalize: "true", "pred" or "all" for shares of rows, columns or of all samples.

    >>> from chainrule import inspect, tensor
    >>> seen = inspect.Confusion.from_predictions([0, 0, 1, 1], [0, 1, 1, 1])
    >>> seen.matrix, seen.accuracy
    (tensor([[1, 1],
            [0, 2]]), 0.75)
    """
    found = predicted("confusion", model, inputs, targets, "classification", classes)
    return Confusion._of(found, normalize=normalize)

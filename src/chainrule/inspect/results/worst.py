"""The samples on which a model is worst, each beside the nearest one that it was trained on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from chainrule.autograd.modes import no_grad
from chainrule.backend import dtypes
from chainrule import charts
from chainrule.inspect.core.arguments import arguments
from chainrule.inspect.core.registry import instrument
from chainrule.inspect.core.results import Result
from chainrule.inspect.results.pictures import show_picture
from chainrule.inspect.results.predictions import Predictions, fitting, is_fitted, predicted
from chainrule.nn.module.base import Module
from chainrule.ops.shape.stacking import cat
from chainrule.ops.creation.from_data import as_tensor, tensor
from chainrule.printing import text_table
from chainrule.tensor import Tensor

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Case", "TopLosses", "top_losses"]

Loss = Callable[[Any, Any], Tensor]
SHOWN = 10  # features of a row in a picture


@dataclass(frozen=True, eq=False)
class Case:
    """One sample: its number, loss, target, prediction and inputs, and the nearest sample of the
    training data with its distance (of tables in standard deviations)."""

    index: int
    loss: float
    target: str
    prediction: str
    inputs: list[Tensor]
    nearest: int | None = None
    distance: float | None = None
    nearest_target: str = ""
    nearest_inputs: list[Tensor] | None = None

    @property
    def is_twin(self) -> bool:
        """Whether the very same inputs were trained on with another target."""
        return self.distance == 0 and self.nearest_target != self.target


@dataclass(repr=False, eq=False)
class TopLosses(Result):
    """The worst ``cases``, the losses of all samples, and what the inputs are: "pictures", "rows"
    or "series". ``center`` and ``scale`` are those of the features of rows."""

    cases: list[Case]
    losses: Tensor
    kind: str
    names: list[str]
    center: Tensor
    scale: Tensor

    @property
    def share(self) -> float:
        """The part of the whole loss that the worst cases make."""
        total = float(self.losses.sum())
        return sum(case.loss for case in self.cases) / total if total else 0.0

    def __str__(self) -> str:
        with_nearest = self.cases[0].nearest is not None
        header = ["sample", "loss", "target", "prediction"]
        header += ["nearest in training", "its target", "distance"] if with_nearest else []
        rows = []
        for case in self.cases:
            row = [str(case.index), f"{case.loss:.4g}", case.target, case.prediction]
            if with_nearest:
                row += [str(case.nearest), case.nearest_target, f"{case.distance:.3g}"]
            rows.append(row)
        lines = [
            text_table(header, rows, left=0),
            f"these {len(rows)} of {len(self.losses)} samples make {self.share:.0%} of the loss",
        ]
        twins = [str(case.index) for case in self.cases if case.is_twin]
        if twins:
            lines.append(
                f"samples {', '.join(twins)}: the same inputs were trained on with another target; "
                "look at the labels"
            )
        return "\n".join(lines)

    def plot(
        self, axes: Sequence[Axes] | None = None, *, count: int = 6, **style: Any
    ) -> list[Axes]:
        """Draws the worst cases and their nearest samples: pictures above each other (two panels a
        case), features of rows and curves of series in one panel a case."""
        shown = self.cases[:count]
        if self.kind == "pictures":
            return self._plot_pictures(axes, shown, style)
        size = (3.3, 2.9) if self.kind == "rows" else (3.3, 2.4)
        made = charts.grid_of_axes(axes, len(shown), 3, size)
        for i, (ax, case) in enumerate(zip(made, shown, strict=True)):
            draw = self._plot_row if self.kind == "rows" else self._plot_series
            draw(ax, case, i == 0, style)
            ax.set_title(_title(case), fontsize=9)
        return made

    def _plot_pictures(
        self, axes: Sequence[Axes] | None, shown: list[Case], style: dict[str, Any]
    ) -> list[Axes]:
        nearest = [case for case in shown if case.nearest_inputs]
        made = charts.grid_of_axes(axes, len(shown) + len(nearest), len(shown), (1.9, 2.1))
        for ax, case in zip(made, shown, strict=False):
            show_picture(ax, case.inputs[0], **style)
            ax.set_title(_title(case), fontsize=8)
        for ax, case in zip(made[len(shown) :], nearest, strict=True):
            show_picture(ax, (case.nearest_inputs or case.inputs)[0], **style)
            ax.set_title(f"nearest: {case.nearest_target}", fontsize=8)
        return made

    def _plot_row(self, ax: Axes, case: Case, first: bool, style: dict[str, Any]) -> None:
        own = (_flat(case.inputs) - self.center) / self.scale
        other = (
            None
            if case.nearest_inputs is None
            else (_flat(case.nearest_inputs) - self.center) / self.scale
        )
        weight = own.abs() if other is None else (own - other).abs() + 1e-9 * own.abs()
        chosen = weight.argsort(descending=True).tolist()[:SHOWN][::-1]
        at = list(range(len(chosen)))
        if other is not None:
            ax.plot(
                other[tensor(chosen)].tolist(),
                at,
                "o",
                color=charts.COLORS[0],
                markersize=5,
                label="nearest in training" if first else None,
            )
            for i, j in enumerate(chosen):
                ends = [float(own[j]), float(other[j])]
                ax.plot(ends, [i, i], color="#bbbbbb", linewidth=1, zorder=0)
        looks: dict[str, Any] = {"color": charts.COLORS[1], "markersize": 5} | style
        label = "this sample" if first else None
        ax.plot(own[tensor(chosen)].tolist(), at, "o", label=label, **looks)
        ax.set_yticks(at, [self.names[j][:22] for j in chosen], fontsize=7)
        ax.set_xlabel("standard deviations", fontsize=8)
        if first:
            ax.set_ylim(top=len(chosen) + 0.6)  # room for the legend
            ax.legend(fontsize=6, loc="upper center", ncols=2)

    def _plot_series(self, ax: Axes, case: Case, first: bool, style: dict[str, Any]) -> None:
        pairs = [("this sample", case.inputs, charts.COLORS[1])]
        if case.nearest_inputs is not None:
            pairs.insert(0, ("nearest in training", case.nearest_inputs, charts.COLORS[0]))
        for name, inputs, color in pairs:
            curve = inputs[0].reshape(len(inputs[0]), -1)
            for c in range(min(curve.shape[1], 4)):
                looks: dict[str, Any] = {"color": color, "alpha": 1 - 0.2 * c} | style
                label = name if first and c == 0 else None
                ax.plot(curve[:, c].tolist(), label=label, **looks)
        ax.set_xlabel("step", fontsize=8)
        if first:
            ax.legend(fontsize=7)


def _title(case: Case) -> str:
    said, true = case.prediction, case.target
    return f"is {true[:18]}, said {said[:18]}\nloss {case.loss:.3g}"


def _flat(parts: list[Tensor]) -> Tensor:
    return cat([part.reshape(-1).double() for part in parts])


# --- what is compared -----------------------------------------------------------------------------


def _leaves(model: Any, inputs: Any) -> list[Tensor]:
    """The inputs as tensors with a sample in each row, as the network sees them."""
    if is_fitted(model):
        return [model.inputs(inputs, model.about.get("target")).detach()]
    if hasattr(inputs, "to_numpy") and hasattr(inputs, "columns"):
        return [as_tensor(inputs.to_numpy())]
    args, kwargs = arguments("top_losses", inputs)
    found = [as_tensor(v).detach() for v in (*args, *kwargs.values())]
    return [leaf for leaf in found if leaf.ndim]


def _rows(leaves: list[Tensor]) -> Tensor:
    return cat([leaf.reshape(len(leaf), -1).double() for leaf in leaves], 1)


def _kind(leaves: list[Tensor]) -> str:
    return {4: "pictures", 3: "series"}.get(leaves[0].ndim, "rows")


def _samples(model: Any, inputs: Any, i: int) -> Any:
    """Inputs of a batch with sample i alone."""
    args, kwargs = arguments("top_losses", fitting(model, inputs))

    def cut(value: Any) -> Any:
        return value[i : i + 1] if isinstance(value, Tensor) and value.ndim else value

    return {k: cut(v) for k, v in kwargs.items()} if kwargs else tuple(map(cut, args))


def _losses(found: Predictions) -> Tensor:
    """Cross-entropy of classes and labels, squared error of numbers, for each sample."""
    p, true = found.scores, found.targets
    if found.task == "classification":
        return -p.gather(1, true.reshape(-1, 1)).clamp(min=1e-300).log().reshape(-1)
    if found.task == "labels":
        right = true * p + (1 - true) * (1 - p)
        return -right.clamp(min=1e-300).log().mean(1)
    return ((p - true) ** 2).mean(1)


def _given_losses(model: Any, loss: Loss, inputs: Any, targets: Any) -> Tensor:
    """The loss of each sample as that of a batch of one."""
    if not isinstance(model, Module):
        raise TypeError(
            f"top_losses: a loss of your own needs a module, got {type(model).__name__}; leave it "
            "out for cross-entropy and squared error"
        )
    whole, values = as_tensor(targets), []
    model.eval()
    for i in range(len(whole)):
        sample = _samples(model, inputs, i)
        output = model(**sample) if isinstance(sample, dict) else model(*sample)
        value = loss(output, whole[i : i + 1])
        if value.numel() != 1:
            raise ValueError(
                "top_losses: the loss of a batch of one must be one number, got shape "
                f"{tuple(value.shape)}"
            )
        values.append(float(value))
    return tensor(values, dtype=dtypes.float64)


def _said(found: Predictions, i: int) -> str:
    row = found.scores[i]
    if found.task == "classification":
        k = int(row.argmax())
        return f"{found.classes[k]} ({float(row[k]):.0%})"
    if found.task == "labels":
        return _named(found, (row > 0.5).tolist())
    return _number(row)


def _true(found: Predictions, i: int) -> str:
    row = found.targets[i]
    if found.task == "classification":
        return found.classes[int(row)]
    return _named(found, (row > 0.5).tolist()) if found.task == "labels" else _number(row)


def _named(found: Predictions, present: list[bool]) -> str:
    return "+".join(n for n, yes in zip(found.classes, present, strict=True) if yes) or "none"


def _number(row: Tensor) -> str:
    values = row.reshape(-1).tolist()
    shown = ", ".join(f"{v:.4g}" for v in values[:3])
    return shown + (", ..." if len(values) > 3 else "")


def _scales(rows: Tensor, kind: str) -> tuple[Tensor, Tensor]:
    """Features of a table count in standard deviations, pixels and steps as they are."""
    if kind != "rows" or len(rows) < 2:
        return rows[0] * 0, rows[0] * 0 + 1
    spread = rows.std(0)
    return rows.mean(0), spread + (spread == 0).double()


@instrument(needs=("model", "inputs", "targets"))
def top_losses(
    model: Any,
    inputs: Any,
    targets: Any,
    *,
    training: tuple[Any, Any] | None = None,
    loss: Loss | None = None,
    k: int = 9,
    classes: Sequence[str] | None = None,
    names: Sequence[str] | None = None,
) -> TopLosses:
    """The samples with the largest losses, each with the nearest sample of the training data.

    Args:
        model: a module, a fitted network, an estimator, or a function of a batch.
        inputs: pictures (N, C, H, W), series (N, L, C), rows (N, D), or several of them.
        targets: class indices, rows of zeros and ones for several labels, or numbers.
        training: inputs and targets among which the nearest is looked for.
        loss: a function of output and target, called with a batch of one for each sample. By
            default cross-entropy of classes and labels, squared error of numbers.
        k: how many.
        classes: names of the classes.
        names: of the features of rows.

    >>> import chainrule
    >>> from chainrule import inspect
    >>> x, y = chainrule.tensor([[1.0], [2.0], [3.0]]), chainrule.tensor([1.0, 5.0, 3.5])
    >>> seen = inspect.top_losses(lambda x: x, x, y, training=(x + 0.1, y), k=1)
    >>> seen.cases[0].index, seen.cases[0].loss, seen.cases[0].nearest
    (1, 9.0, 1)
    """
    if k < 1:
        raise ValueError(f"top_losses: k must be positive, got {k}")
    found = predicted("top_losses", model, inputs, targets, None, classes)
    with no_grad():
        losses = _losses(found) if loss is None else _given_losses(model, loss, inputs, targets)
    leaves = _leaves(model, inputs)
    kind, rows = _kind(leaves), _rows(leaves)
    seen = None if training is None else _Known(model, training, found, rows.shape[1])
    center, scale = _scales(rows if seen is None else seen.rows, kind)
    worst = losses.argsort(descending=True, stable=True).tolist()[:k]
    cases = []
    for i in worst:
        shown = [leaf[i] for leaf in leaves]
        nearest = {} if seen is None else seen.nearest(rows[i], scale)
        cases.append(Case(i, float(losses[i]), _true(found, i), _said(found, i), shown, **nearest))
    known = (
        getattr(getattr(model, "inputs", None), "feature_names", None) if is_fitted(model) else None
    )
    labels = [str(n) for n in names or known or range(rows.shape[1])]
    if kind == "rows" and len(labels) != rows.shape[1]:
        raise ValueError(f"top_losses: {len(labels)} names for {rows.shape[1]} features")
    return TopLosses(cases, losses, kind, labels, center, scale)


class _Known:
    """The training data, in which the nearest sample is looked for."""

    def __init__(self, model: Any, training: tuple[Any, Any], like: Predictions, width: int):
        if not isinstance(training, (tuple, list)) or len(training) != 2:
            raise TypeError("top_losses: training must be a pair (inputs, targets)")
        self.leaves = _leaves(model, training[0])
        self.rows = _rows(self.leaves)
        if self.rows.shape[1] != width:
            raise ValueError(
                f"top_losses: training samples have {self.rows.shape[1]} numbers and the others "
                f"{width}; prepare both in one way"
            )
        self.found = predicted("top_losses", model, *training, like.task, like.classes or None)

    def nearest(self, row: Tensor, scale: Tensor) -> dict[str, Any]:
        """The nearest sample, as fields of a case."""
        distances = (((self.rows - row) / scale) ** 2).sum(1)
        i = int(distances.argmin())
        return {
            "nearest": i,
            "distance": float(distances[i].sqrt()),
            "nearest_target": _true(self.found, i),
            "nearest_inputs": [leaf[i] for leaf in self.leaves],
        }

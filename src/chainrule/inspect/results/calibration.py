"""Whether probabilities come true as often as they say."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from chainrule import metrics
from chainrule import charts
from chainrule.inspect.core.registry import instrument
from chainrule.inspect.results.predictions import Display, Predictions, predicted
from chainrule.metrics.scores import binned
from chainrule.printing import text_table
from chainrule.tensor import Tensor

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Calibration", "calibration"]


@dataclass(repr=False, eq=False)
class Calibration(Display):
    """For each bin of confidence its mean, the share that came true and the number of samples.

    ``error`` is the expected calibration error (the mean gap, weighted by counts), ``largest`` the
    largest gap, ``bias`` the mean confidence less the share that came true, ``bias_error`` what
    chance makes of it if the probabilities are right. ``of`` says whose confidence it is.
    """

    of: str
    confidences: Tensor
    hits: Tensor
    counts: Tensor
    error: float
    largest: float
    bias: float
    bias_error: float
    _name = "calibration"
    _task = "classification"

    @classmethod
    def _of(cls, found: Predictions, bins: int = 10, of: str | int | None = None) -> Self:
        if bins < 1:
            raise ValueError(f"calibration: bins must be positive, got {bins}")
        p, true = found.scores, found.targets
        chosen = _chosen(found, of)
        if chosen is None:
            curve = metrics.reliability(p, true, bins, scores="probabilities")
            confidence, said = p.max(dim=1)
            hit, name = (said == true).double(), "the predicted class"
        else:
            confidence, hit = p[:, chosen], (true == chosen).double()
            curve, name = binned(confidence, hit, bins), f"class {found.classes[chosen]}"
        seen = curve.counts > 0
        gaps = (curve.hits - curve.confidences)[seen].abs()
        error = float((gaps * curve.counts[seen]).sum() / len(true))
        bias = float((confidence - hit).mean())
        chance = math.sqrt(float((confidence * (1 - confidence)).sum())) / len(true)
        return cls(name, *curve, error, float(gaps.max()), bias, chance)

    @property
    def verdict(self) -> str:
        """Whether the probabilities are too high or too low, and what to do."""
        if abs(self.bias) <= max(0.01, 2 * self.bias_error):
            return "no more confident than right, within chance"
        if self.of != "the predicted class":
            word = "too high" if self.bias > 0 else "too low"
            return (
                f"probabilities of {self.of} are {word} by {abs(self.bias):.3f}: compare its share "
                "in training and here, then move the output's bias or refit it on held-out data"
            )
        if self.bias > 0:
            return (
                f"overconfident by {self.bias:.3f}: divide the logits by a temperature above 1, "
                "fitted on held-out data, smooth the labels, or train for fewer epochs"
            )
        return (
            f"underconfident by {-self.bias:.3f}: divide the logits by a temperature below 1, "
            "fitted on held-out data, or regularize less"
        )

    def __str__(self) -> str:
        n = len(self.counts)
        rows = [
            [f"{i / n:.2f} to {(i + 1) / n:.2f}", f"{c:.3f}", f"{h:.3f}", str(count)]
            for i, (c, h, count) in enumerate(
                zip(
                    self.confidences.tolist(), self.hits.tolist(), self.counts.tolist(), strict=True
                )
            )
            if count
        ]
        table = text_table(["confidence", "mean", "came true", "samples"], rows, left=1)
        return (
            f"{table}\nof {self.of}: expected calibration error {self.error:.4f}, largest gap "
            f"{self.largest:.4f}\n{self.verdict}"
        )

    def plot(self, axes: Sequence[Axes] | None = None, **style: Any) -> list[Axes]:
        """Draws what came true against the confidence, and the samples in each bin (2 panels)."""
        made = charts.grid_of_axes(axes, 2, 2, (4.2, 3.6))
        seen = (self.counts > 0).numpy()
        made[0].plot([0, 1], [0, 1], "--", color="#888888", label="perfect")
        made[0].plot(
            self.confidences.numpy()[seen],
            self.hits.numpy()[seen],
            **{"marker": "o", "color": charts.COLORS[0], "label": "this model"} | style,
        )
        made[0].set(
            xlabel=f"probability of {self.of}",
            ylabel="share that came true",
            xlim=(0, 1),
            ylim=(-0.02, 1.02),
        )
        made[0].set_title(f"Calibration: error {self.error:.3f}")
        made[0].legend()
        n = len(self.counts)
        made[1].bar(
            [(i + 0.5) / n for i in range(n)], self.counts.numpy(), 0.9 / n, color=charts.COLORS[0]
        )
        made[1].set(xlabel=f"probability of {self.of}", ylabel="samples", xlim=(0, 1))
        made[1].set_title("How often it is said")
        return made


def _chosen(found: Predictions, of: str | int | None) -> int | None:
    """The class to look at; of two classes the second; None for whichever is predicted."""
    if of is None:
        return 1 if len(found.classes) == 2 else None
    if of == "predicted":
        return None
    if isinstance(of, int) and 0 <= of < len(found.classes):
        return of
    if of in found.classes:
        return found.classes.index(str(of))
    raise ValueError(
        f"calibration: of must be 'predicted' or one of the classes {found.classes}, got {of!r}"
    )


@instrument(needs=("model", "inputs", "targets"))
def calibration(
    model: Any,
    inputs: Any,
    targets: Any,
    *,
    bins: int = 10,
    of: str | int | None = None,
    classes: Sequence[str] | None = None,
) -> Calibration:
    """Whether a classifier's probabilities come true as often as they say, with the counts.

    Args:
        model: a module, a fitted network, an estimator, or a function of a batch.
        inputs: what it is called with.
        targets: class indices, one-hot rows, or -1 and +1; of an estimator its labels.
        bins: into how many equal parts the probabilities are divided.
        of: a class, or "predicted" for whichever is predicted. By default the second of two
            classes, and the predicted one of more.
        classes: names of the classes.

    >>> from chainrule import inspect
    >>> seen = inspect.Calibration.from_predictions([0, 1, 1, 1], [0.25, 0.75, 0.75, 0.75], bins=2)
    >>> seen.hits.tolist(), seen.error
    ([0.0, 1.0], 0.25)
    """
    found = predicted("calibration", model, inputs, targets, "classification", classes)
    return Calibration._of(found, bins=bins, of=of)

"""What a regression leaves unexplained."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from chainrule import metrics
from chainrule import charts
from chainrule.inspect.core.registry import instrument
from chainrule.inspect.results.predictions import Display, Predictions, predicted
from chainrule.printing import text_table
from chainrule.tensor import Tensor

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Residuals", "residuals"]


@dataclass(repr=False, eq=False)
class Residuals(Display):
    """Predictions, targets and residuals (target - prediction) of one output.

    ``tilt`` is the correlation of the residuals with the predictions and ``spread`` that of their
    size with the predictions: both are near 0 where nothing is left to explain.
    """

    predicted: Tensor
    targets: Tensor
    residuals: Tensor
    r2: float
    rmse: float
    mae: float
    bias: float
    tilt: float
    spread: float
    _name = "residuals"
    _task = "regression"

    @classmethod
    def _of(cls, found: Predictions, output: int = 0) -> Self:
        width = found.scores.shape[1]
        if not 0 <= output < width:
            raise ValueError(f"residuals: output must lie in [0, {width}), got {output}")
        said, true = found.scores[:, output], found.targets[:, output]
        left = true - said
        return cls(
            said,
            true,
            left,
            metrics.r2(said, true),
            metrics.rmse(said, true),
            metrics.mae(said, true),
            float(left.mean()),
            _correlation(said, left),
            _correlation(said, left.abs()),
        )

    @property
    def verdicts(self) -> list[str]:
        """What the residuals still show, and what to do about it."""
        n = len(self.residuals)
        alarm = max(0.3, 3 / math.sqrt(n))  # far outside of what chance makes of unrelated numbers
        deviation = math.sqrt(max(0.0, self.rmse**2 - self.bias**2))
        found = []
        if abs(self.bias) > 3 * deviation / math.sqrt(n) and abs(self.bias) > 0.1 * self.rmse:
            word = "low" if self.bias > 0 else "high"
            found.append(
                f"predictions are too {word} by {abs(self.bias):.3g} in the mean: compare these "
                "data with those of the training, and the scaling of both"
            )
        if abs(self.tilt) > alarm:
            word = "timid" if self.tilt > 0 else "extreme"
            what = "train longer or regularize less" if self.tilt > 0 else "regularize more"
            found.append(
                f"predictions are too {word} (correlation {self.tilt:+.2f} with the residuals): "
                f"{what}"
            )
        if abs(self.spread) > alarm:
            found.append(
                f"the errors grow with the size of the prediction (correlation {self.spread:+.2f}):"
                " predict the logarithm, or weight the samples"
            )
        return found

    def __str__(self) -> str:
        rows = [
            ["samples", str(len(self.residuals))],
            ["R2", f"{self.r2:.4f}"],
            ["root mean square error", f"{self.rmse:.4g}"],
            ["mean absolute error", f"{self.mae:.4g}"],
            ["mean residual", f"{self.bias:+.4g}"],
            ["largest error", f"{float(self.residuals.abs().max()):.4g}"],
        ]
        verdicts = self.verdicts or ["nothing left that depends on the prediction"]
        return "\n".join([text_table(["target - prediction", ""], rows, left=1), *verdicts])

    def plot(self, axes: Sequence[Axes] | None = None, **style: Any) -> list[Axes]:
        """Draws predictions against targets, residuals against predictions, and their histogram
        (3 panels)."""
        made = charts.grid_of_axes(axes, 3, 3, (3.5, 3.4))
        looks: dict[str, Any] = {
            "s": 12,
            "alpha": 0.55,
            "color": charts.COLORS[0],
            "linewidths": 0,
        } | style
        said, true = self.predicted.numpy(), self.targets.numpy()
        low, high = min(said.min(), true.min()), max(said.max(), true.max())
        made[0].plot([low, high], [low, high], "--", color="#888888")
        made[0].scatter(true, said, **looks)
        made[0].set(xlabel="target", ylabel="prediction")
        made[0].set_title(f"Predictions: R2 {self.r2:.3f}")
        made[1].axhline(0, linestyle="--", color="#888888")
        made[1].scatter(said, self.residuals.numpy(), **looks)
        made[1].set(xlabel="prediction", ylabel="target - prediction")
        made[1].set_title("Residuals")
        bins = min(40, max(8, round(math.sqrt(len(said)))))
        made[2].hist(self.residuals.numpy(), bins, color=charts.COLORS[0])
        made[2].axvline(self.bias, color=charts.COLORS[1], label=f"mean {self.bias:+.2g}")
        made[2].set(xlabel="target - prediction", ylabel="samples")
        made[2].set_title(f"Spread: RMSE {self.rmse:.3g}")
        made[2].margins(y=0.25)
        made[2].legend()
        return made


def _correlation(x: Tensor, y: Tensor) -> float:
    a, b = x - x.mean(), y - y.mean()
    size = math.sqrt(float((a * a).sum()) * float((b * b).sum()))
    return float((a * b).sum()) / size if size > 0 else 0.0


@instrument(needs=("model", "inputs", "targets"))
def residuals(model: Any, inputs: Any, targets: Any, *, output: int = 0) -> Residuals:
    """What a regression leaves unexplained: errors, their spread, and what they depend on.

    Args:
        model: a module, a fitted network, an estimator, or a function of a batch.
        inputs: what it is called with.
        targets: numbers, in the form of the output.
        output: which one, of several.

    >>> from chainrule import inspect
    >>> seen = inspect.Residuals.from_predictions([1.0, 2.0, 4.0], [1.5, 2.0, 3.5])
    >>> seen.residuals.tolist(), seen.bias
    ([-0.5, 0.0, 0.5], 0.0)
    """
    found = predicted("residuals", model, inputs, targets, "regression")
    return Residuals._of(found, output=output)

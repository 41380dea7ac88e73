"""The recipe before a training: six looks that take seconds, each passed or failed."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from chainrule import charts
from chainrule.inspect.core.registry import instrument
from chainrule.inspect.core.results import Result
from chainrule.inspect.health import recipe
from chainrule.inspect.health.objectives import Loss
from chainrule.inspect.health.recipe import Check
from chainrule.inspect.health.samples import read
from chainrule.nn.module.base import Module
from chainrule.printing import text_table
from chainrule.tensor import Tensor

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Preflight", "preflight"]


@dataclass(repr=False)
class Preflight(Result):
    """What :func:`preflight` saw.

    ``checks`` are its lines; ``curve`` the loss of the one batch that a copy learns by heart;
    ``losses`` those at the start, expected there, with inputs and without; ``features`` the range
    of each input, ``classes`` how often each class occurs.
    """

    checks: list[Check]
    curve: list[float] = field(default_factory=list)
    losses: dict[str, float] = field(default_factory=dict)
    features: dict[str, list[float]] = field(default_factory=dict)
    classes: dict[str, int] = field(default_factory=dict)
    _pictures: Tensor | None = None
    _labels: list[str] = field(default_factory=list)  # of the pictures

    @property
    def passed(self) -> bool:
        """Whether no line failed."""
        return all(check.passed is not False for check in self.checks)

    def __str__(self) -> str:
        words = {True: "pass", False: "FAIL", None: "none"}
        rows = [[words[c.passed], c.name, c.reason] for c in self.checks]
        lines = [text_table(["", "check", "what was seen"], rows)]
        lines += [f"remedy ({c.name}): {c.remedy}" for c in self.checks if c.passed is False]
        failed = sum(c.passed is False for c in self.checks)
        verdict = "ready to train" if self.passed else f"{failed} of {len(self.checks)} lines fail"
        return "\n".join([*lines, f"verdict: {verdict}"])

    def plot(self, axes: Any = None, **style: Any) -> list[Axes]:
        """Draws three panels: the batch that is learned by heart, the losses, and what the network
        sees (pictures, or the range of each input)."""
        panels = charts.grid_of_axes(axes, 3, 3, (3.6, 3.4))
        self._draw_curve(panels[0], style)
        self._draw_losses(panels[1])
        if self._pictures is not None:
            self._draw_pictures(panels[2], self._pictures)
        else:
            self._draw_features(panels[2])
        return panels

    def _draw_curve(self, ax: Axes, style: dict[str, Any]) -> None:
        if self.curve:
            ax.plot(range(len(self.curve)), self.curve, **{"color": charts.COLORS[0], **style})
            charts.log_if_wide(ax, [v for v in self.curve if v > 0])
        ax.locator_params(axis="x", integer=True)
        ax.set(title="One batch by heart", xlabel="step", ylabel="loss")

    def _draw_losses(self, ax: Axes) -> None:
        known = {k: v for k, v in self.losses.items() if math.isfinite(v)}
        colors = [charts.COLORS[i % len(charts.COLORS)] for i in range(len(known))]
        ax.barh(list(known), list(known.values()), color=colors)
        ax.invert_yaxis()
        ax.set(title="Loss", xlabel="loss")

    def _draw_pictures(self, ax: Axes, given: Tensor) -> None:
        sheet = recipe.sheet(given)
        ax.imshow(sheet.numpy(), cmap="gray" if sheet.ndim == 2 else None, interpolation="nearest")
        height, width = given.shape[2:]
        columns = (sheet.shape[1] + 1) // (width + 1)
        for i, label in enumerate(self._labels):
            place = (i % columns) * (width + 1), (i // columns) * (height + 1)
            ax.text(
                *place, label, color=charts.COLORS[4], fontsize="small", va="top", weight="bold"
            )
        ax.set(title="What the network sees", xticks=[], yticks=[])

    def _draw_features(self, ax: Axes) -> None:
        low, middle, high = (self.features.get(k, []) for k in ("lowest", "mean", "highest"))
        places = range(len(middle))
        ax.vlines(places, low, high, color=charts.COLORS[5], linewidth=3, label="lowest to highest")
        ax.plot(places, middle, ".", color=charts.COLORS[7], label="mean")
        ax.locator_params(axis="x", integer=True)
        ax.set(title="What the network sees", xlabel="input", ylabel="value")
        ax.margins(y=0.3)
        if middle:
            ax.legend(loc="upper center", fontsize="x-small", ncols=2)


@instrument("E10", needs=("model", "loss", "data"))
def preflight(
    model: Module, loss: Loss, data: Any, *, seconds: float = 2.0, steps: int = 300
) -> Preflight:
    """Runs the recipe before a training: start, output, one batch, baseline, samples, data.

    The lines: the data is finite and varies; outputs have the shape and range that the loss takes;
    the loss at the start is that of knowing nothing (ln K for K classes, the variance of targets);
    a copy learns one small batch by heart; with inputs a copy gets below the best constant; and the
    output of one sample depends on that sample alone.

    Args:
        model: the model, before training.
        loss: ``loss(output, targets)``.
        data: a pair (inputs, targets), or a loader of such batches.
        seconds: how long each of the two short trainings may take.
        steps: how many steps each may have.

    >>> import chainrule
    >>> from chainrule import data, inspect, models, nn
    >>> _ = chainrule.manual_seed(0)
    >>> x, y = data.embedded("iris").tensors()
    >>> report = inspect.preflight(models.MLP(4, [16], 3), nn.CrossEntropyLoss(), (x, y))
    >>> report.passed, [check.name for check in report.checks][:3]
    (True, ['data', 'output', 'loss at the start'])
    """
    if steps < 1 or not seconds > 0:
        raise ValueError(
            f"preflight: steps and seconds must be positive, got steps={steps}, seconds={seconds}"
        )
    seen = read("preflight", data)
    target = seen.first[1]
    if isinstance(target, Tensor) and target.ndim == 0:
        raise ValueError(
            "preflight: the targets are a single number; give a batch, with a first dimension for "
            "the samples"
        )
    result = Preflight([])
    result.checks.append(recipe.data_as_seen(seen, result.features, result.classes))
    result._pictures, result._labels = recipe.pictures(seen.first)
    objective, output = recipe.first_pass(model, loss, seen.first)
    result.checks.append(output)
    if objective is None or result.checks[0].passed is False:
        return result
    result.checks.append(recipe.start(objective, result.losses))
    result.checks.append(recipe.by_heart(model, loss, seen, steps, seconds, result.curve))
    result.checks.append(recipe.with_inputs(model, loss, seen, steps, seconds, result.losses))
    result.checks.append(recipe.separate(model, seen.first[0]))
    return result

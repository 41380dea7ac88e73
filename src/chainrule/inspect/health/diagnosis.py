"""What the doctor says: findings, and the layers they were found in."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from chainrule import charts
from chainrule.inspect.core.results import Result
from chainrule.inspect.health.findings import Finding
from chainrule.inspect.health.passes import Layer
from chainrule.printing import text_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Diagnosis"]


@dataclass(repr=False)
class Diagnosis(Result):
    """What :func:`doctor` found.

    ``findings`` are the mistakes; ``checked`` the names of the rules that looked; ``skipped`` says
    of those that could not why; ``layers`` are the sizes of activations and gradients.
    """

    findings: list[Finding] = field(default_factory=list)
    checked: list[str] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    layers: list[Layer] = field(default_factory=list)

    @property
    def healthy(self) -> bool:
        """Whether nothing was found."""
        return not self.findings

    @property
    def rules(self) -> list[str]:
        """The names of the rules that found something."""
        return list(dict.fromkeys(f.rule for f in self.findings))

    def __str__(self) -> str:
        lines = [str(f) for f in sorted(self.findings, key=lambda f: f.severity)]
        if self.layers:
            rows = [
                [x.name or "(model)", x.kind, f"{x.activation:.3g}", f"{x.gradient:.3g}"]
                for x in self.layers
            ]
            lines.append(text_table(["layer", "kind", "activation", "gradient"], rows, left=2))
        lines += [f"not checked: {what} ({why})" for what, why in self.skipped.items()]
        count, errors = len(self.findings), sum(f.severity == "error" for f in self.findings)
        if count:
            verdict = f"{count} finding{'s' * (count > 1)}, {errors} of them fatal"
        else:
            verdict = "nothing found"
        return "\n".join([*lines, f"verdict: {verdict} ({len(self.checked)} rules)"])

    def plot(self, ax: Axes | None = None, **style: Any) -> Axes:
        """Draws the size of activations and gradients from the first layer to the last; layers
        with a finding are marked by its name."""
        ax = charts.axes_for(ax, (6.8, 4.2))
        names = [x.name or "(model)" for x in self.layers]
        places = range(len(names))
        series = (
            ("activation (root mean square)", "o-", [x.activation for x in self.layers]),
            ("gradient (norm)", "s--", [x.gradient for x in self.layers]),
        )
        for (label, mark, values), color in zip(series, charts.COLORS, strict=False):
            ax.plot(places, values, mark, label=label, **{"color": color, **style})
        charts.log_if_wide(ax, [v for _, _, vs in series for v in vs if math.isfinite(v) and v > 0])
        self._mark(ax, names)
        few = max(1, math.ceil(len(names) / 12))
        ax.set_xticks(list(places)[::few], names[::few], rotation=30, ha="right")
        found = ", ".join(self.rules[:2]) + (", ..." if len(self.rules) > 2 else "")
        ax.set(xlabel="layer", ylabel="size", title=f"Doctor: {found or 'nothing found'}")
        ax.margins(y=0.15)
        ax.legend(loc="best", fontsize="small")
        return ax

    def _mark(self, ax: Axes, names: list[str]) -> None:
        """A red band behind layers with findings."""
        first = True
        for i, name in enumerate(names):
            if any(f.layer in (name, f"{name}.weight", f"{name}.bias") for f in self.findings):
                label = "layer with a finding" if first else None
                ax.axvspan(i - 0.3, i + 0.3, color=charts.COLORS[1], alpha=0.18, label=label)
                first = False

"""What activations are like, as a table: ranges, slopes, saturation."""

from __future__ import annotations

import math

from chainrule import charts, nn
from chainrule.atlas import Number, Outcome, Statement, entry
from chainrule.nn.activations.properties import ActivationProperties

NAMES = ("sigmoid", "tanh", "relu", "leaky_relu", "elu", "selu")


def _saturated(report: ActivationProperties) -> float:
    """How much of [-8, 8] is saturated."""
    ends = [(max(part.low, -8.0), min(part.high, 8.0)) for part in report.saturation]
    return sum(max(0.0, high - low) for low, high in ends) / 16


def _panel(ax: object, reports: dict[str, ActivationProperties]) -> None:
    """Where each activation is saturated, as gray bars, and where it is steepest."""
    for row, report in enumerate(reports.values()):
        for part in report.saturation:
            low, high = max(part.low, -8.0), min(part.high, 8.0)
            ax.barh(row, high - low, left=low, height=0.5, color="silver")  # type: ignore[attr-defined]
        at = [min(max(x, -8.0), 8.0) for x in (report.max_slope_at.low, report.max_slope_at.high)]
        ax.plot(at, [row, row], "o-", color=charts.COLORS[1], linewidth=3)  # type: ignore[attr-defined]
    labels = [f"{name} {report.range}" for name, report in reports.items()]
    ax.set_yticks(range(len(labels)), labels)  # type: ignore[attr-defined]


@entry(
    "A17",
    course="000",
    printed="section 2.1; 004 A.1",
    title="The properties of activations",
    claims=[
        Number("largest slope of sigmoid and tanh", (0.25, 1.0), tolerance=1e-9),
        Number("bounds of sigmoid and tanh", (0.0, 1.0, -1.0, 1.0), tolerance=1e-9),
        Number(
            "lower bounds of ReLU, ELU, SELU",
            (0.0, -1.0, -1.7581),
            tolerance=5e-5,
            unprinted="the last is -s alpha",
        ),
        Statement("slope of tanh at 0", "tanh is the identity near 0", 1 - 1e-6, 1 + 1e-6),
        Statement(
            "saturated share of [-8, 8], sigmoid and tanh",
            "both squash: flat on both sides",
            at_least=0.25,
        ),
        Statement("end of the flat side of ReLU", "flat for all negative sums", -1e-6, 1e-6),
        Statement("saturated share of leaky ReLU", "it never saturates", at_most=0.0),
    ],
)
def activation_properties() -> Outcome:
    """What one asks of an activation, answered for six of them by looking at the function.

    Its range, whether it rises everywhere, its largest slope, and where it is saturated: where the
    slope is below 0.01 (gray), hardly any gradient comes through. The sigmoid passes on a quarter
    of a gradient at best, tanh all of it, at 0. ReLU has nothing on the left and all of it on the
    right; leaky ReLU is steep enough everywhere.
    """
    reports = {name: nn.activation_properties(name) for name in NAMES}
    sigmoid, tanh, relu, leaky, elu, selu = reports.values()
    ax = charts.axes_for(None, (6.4, 3.6))
    _panel(ax, reports)
    ax.plot([], [], "o-", color=charts.COLORS[1], linewidth=3, label="steepest")
    ax.bar([0], [0], color="silver", label="saturated")
    ax.set(title="Range, saturation, steepest place", xlabel="x", xlim=(-8.5, 8.5))
    ax.set_ylim(len(reports) + 0.6, -0.7)
    ax.legend(loc="lower left", ncols=2)
    side = [part for part in relu.saturation if part.low == -math.inf]
    return Outcome(
        {
            "largest slope of sigmoid and tanh": (sigmoid.max_slope, tanh.max_slope),
            "bounds of sigmoid and tanh": (
                sigmoid.lower_bound,
                sigmoid.upper_bound,
                tanh.lower_bound,
                tanh.upper_bound,
            ),
            "lower bounds of ReLU, ELU, SELU": tuple(r.lower_bound for r in (relu, elu, selu)),
            "slope of tanh at 0": tanh.slope_at_zero,
            "saturated share of [-8, 8], sigmoid and tanh": (_saturated(sigmoid), _saturated(tanh)),
            "end of the flat side of ReLU": side[0].high,
            "saturated share of leaky ReLU": _saturated(leaky),
        },
        [ax],
    )

"""Does the starting point matter?"""

from __future__ import annotations

import math

import chainrule
from chainrule import charts
from chainrule.atlas import Outcome, Statement, entry
from chainrule.atlas.course.course_table import binomial_tail
from chainrule.atlas.course.x04_xor_restarts import PRINTED, learned, restarts


@entry(
    "X04",
    course="001",
    printed="does the starting point matter?",
    title="Restarts of a small network on XOR",
    claims=[
        Statement(
            "chance of 6 or fewer failures in 20 from U(-10, 10)",
            "6 of 20 starts fail with weights from U(-10, 10)",
            at_least=0.025,
        ),
        Statement(
            "chance of 0 failures in 20 from LeCun's start",
            "0 of 20 starts fail with LeCun's variance",
            at_least=0.025,
        ),
        Statement("failures of U(-10, 10) over LeCun's", "the starting point matters", at_least=5),
    ],
    full={"starting_points": 2000},
)
def xor_restarts(starting_points: int = 200, epochs: int = 1000) -> Outcome:
    """The same network of 2-4-1 sigmoid units, begun many times, learns XOR or does not.

    With weights between -10 and 10 the units are saturated at the start: their slopes are nearly 0,
    and about half of the starts never get out. With LeCun's variance 1 / fan_in nearly all learn.
    A printed count of failures in 20 starts is one draw; here is the chance of a draw like it.
    """
    rates = {}
    axes = charts.grid_of_axes(None, 2, 2, (3.4, 3.4))
    for k, init in enumerate(PRINTED):
        fits = restarts(init, starting_points, epochs=epochs)
        rates[init] = rate = 1 - sum(learned(fits.models)) / starting_points
        error = 2 * math.sqrt(rate * (1 - rate) / starting_points)
        axes[0].bar(k, 20 * rate, 0.5, yerr=20 * error, capsize=6, color=charts.COLORS[k])
        axes[0].plot(k, PRINTED[init], "*", color="black", markersize=12, clip_on=False, zorder=5)
        losses = chainrule.tensor([h["loss"] for h in fits.histories])
        shown = [losses.quantile(q, 0).numpy() for q in (0.05, 0.5, 0.95)]
        steps = range(1, epochs + 1)
        axes[1].fill_between(steps, shown[0], shown[2], color=charts.COLORS[k], alpha=0.25)
        axes[1].semilogy(steps, shown[1], color=charts.COLORS[k], label=init)
    axes[0].plot([], [], "*", color="black", markersize=12, label="printed")
    axes[0].set_xticks([0, 1], list(rates))
    axes[0].set(title=f"XOR, {starting_points} starts each", ylabel="failures in 20")
    axes[0].set(xlabel="weights; bars: two standard errors")
    axes[0].legend()
    axes[1].set(title="Loss: median, 5 to 95 %", xlabel="epoch", ylabel="cross entropy")
    axes[1].legend(loc="lower left")
    wide, lecun = rates.values()
    return Outcome(
        {
            "chance of 6 or fewer failures in 20 from U(-10, 10)": binomial_tail(6, 20, wide),
            "chance of 0 failures in 20 from LeCun's start": binomial_tail(0, 20, lecun),
            "failures of U(-10, 10) over LeCun's": wide / max(lecun, 1 / starting_points),
        },
        [axes],
        note=f"{starting_points} seeds for each start, trained at once. Each update sees all four "
        "cases; the course does not say how many.",
    )

"""Does the starting point matter?"""

from __future__ import annotations

import math

import chainrule
from chainrule import charts
from chainrule.atlas import Outcome, Statement, entry
from chainrule.atlas.course.course_table import binomial_tail
from chainrule.atlas.course.x04_xor_restarts import PRINTED, starts, train


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
def xor_restarts(starting_points: int = 400, epochs: int = 1000) -> Outcome:
    """The same network of 2-4-1 sigmoid units, begun many times, learns XOR or does not.

    With weights between -10 and 10 the units are saturated at the start: their slopes are nearly 0,
    and about half of the starts never get out. With LeCun's variance 1 / fan_in nearly all learn.
    A printed count of failures in 20 starts is one draw; here is the chance of a draw like it.
    """
    rates = {}
    for init in PRINTED:
        chainrule.manual_seed(0)
        learned = train(starts(init, starting_points), 4, epochs)
        rates[init] = 1 - float(learned.double().mean())
    ax = charts.axes_for(None)
    for k, (init, rate) in enumerate(rates.items()):
        error = 2 * math.sqrt(rate * (1 - rate) / starting_points)
        ax.bar(k, 20 * rate, 0.5, yerr=20 * error, capsize=6, color=charts.COLORS[k])
        ax.plot(k, PRINTED[init], "*", color="black", markersize=14)
    ax.plot([], [], "*", color="black", label="printed")
    ax.set_xticks([0, 1], list(rates))
    ax.set(title=f"XOR, {starting_points} starts", ylabel="failures in 20", xlabel="weights")
    ax.legend()
    wide, lecun = rates.values()
    return Outcome(
        {
            "chance of 6 or fewer failures in 20 from U(-10, 10)": binomial_tail(6, 20, wide),
            "chance of 0 failures in 20 from LeCun's start": binomial_tail(0, 20, lecun),
            "failures of U(-10, 10) over LeCun's": wide / max(lecun, 1 / starting_points),
        },
        [ax],
        note="Each update sees all four cases; the course does not say how many.",
    )

"""XOR from many starting points: traces of the loss, and how often it is not learned."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import chainrule
from chainrule import charts, nn, optim, problems, train
from chainrule.atlas import Outcome, Spread, Statement, entry
from chainrule.atlas.course.course_table import binomial_tail
from chainrule.atlas.course.x04_xor_restarts import PRINTED

TRIES = 20  # starts that the course made


def xor_network(init: str) -> nn.Module:
    """2-4-1 sigmoid units with weights from U(-10, 10) or of LeCun's variance, biases 0."""
    net = nn.Sequential(nn.Linear(2, 4), nn.Sigmoid(), nn.Linear(4, 1), nn.Sigmoid())
    for name, p in net.named_parameters():
        if name.endswith("bias"):
            nn.init.zeros_(p)
        elif init == "LeCun":
            nn.init.normal_(p, 0.0, 1 / math.sqrt(p.shape[1]))
        else:
            nn.init.uniform_(p, -10.0, 10.0)
    return net


def restarted(make: Callable[[], nn.Module], starts: int, epochs: int) -> tuple[Any, list[bool]]:
    """The losses of all starts after every epoch (starts, epochs), and which of them fail."""
    xor = problems.boolean("xor")
    fits = train.fit_many(
        make,
        (xor.inputs, xor.targets),
        "bce",
        functools.partial(optim.SGD, lr=0.1, momentum=0.99),
        seeds=range(starts),
        epochs=epochs,
        batch_size=4,
    )
    wanted = xor.targets > 0.5
    with chainrule.no_grad():
        fails = [not bool(((net(xor.inputs) > 0.5) == wanted).all()) for net in fits.models]
    return [history["loss"] for history in fits.histories], fails


def draw_traces(ax: Any, init: str, losses: list[list[float]], fails: list[bool]) -> None:
    """The losses of twenty starts, those that fail in another color."""
    for trace, failed in zip(losses[:TRIES], fails[:TRIES], strict=True):
        ax.semilogy(trace, color=charts.COLORS[int(failed)], linewidth=1, alpha=0.8)
    count = sum(fails[:TRIES])
    for k, label in enumerate((f"{TRIES - count} learn", f"{count} fail")):
        ax.plot([], [], color=charts.COLORS[k], label=label)
    ax.set(title=f"{TRIES} starts, weights {init}", xlabel="epoch", ylabel="cross-entropy")
    ax.legend()


def draw_histogram(ax: Any, groups: dict[str, list[int]]) -> None:
    """How many groups of twenty starts have how many failures, and what is printed."""
    for k, (init, counts) in enumerate(groups.items(), start=2):
        shares = [counts.count(n) / len(counts) for n in range(TRIES + 1)]
        ax.bar(range(TRIES + 1), shares, 0.8, alpha=0.6, color=charts.COLORS[k], label=init)
        ax.plot(PRINTED[init], -0.04, "*", color=charts.COLORS[k], markersize=13, clip_on=False)
    ax.plot([], [], "*", color="gray", markersize=13, label="printed")
    ax.axhline(0, color="black", linewidth=0.8)
    number = len(next(iter(groups.values())))
    ax.set(title=f"Failures in {TRIES} starts, {number} times", xlabel="failures")
    ax.set(ylabel="share", ylim=(-0.1, 1.0), xticks=range(0, TRIES + 1, 4))
    ax.legend()


@entry(
    "V51",
    course="001",
    printed="does the starting point matter?",
    title="Twenty starts on XOR, and what twenty others would give",
    claims=[
        Statement(
            "chance of 6 or fewer failures in 20 from U(-10, 10)",
            "it fails 6 of 20 times",
            at_least=0.025,
        ),
        Statement(
            "chance of 0 failures in 20 from LeCun's start",
            "it fails 0 of 20 times",
            at_least=0.025,
        ),
        Statement(
            "failures in 20 from U(-10, 10) less those from LeCun's start",
            "the starting point has a dramatic impact",
            at_least=4,
        ),
    ],
    full={"starts": 4000},
)
def restart_traces(starts: int = 200, epochs: int = 1000) -> Outcome:
    """The same network with other random weights at the start: does it learn XOR in 1000 epochs?

    With weights between -10 and 10 the units begin saturated, with slopes near 0, and about half of
    the starts stay on a plateau: two cases right, or three, and no way on. With LeCun's variance
    nearly all learn. Twenty starts are few: the histogram shows how many failures other groups of
    twenty have, with the printed counts as stars. Six failures of twenty are a lucky draw, but a
    possible one.
    """
    axes = charts.grid_of_axes(None, 3, 1, (5.4, 2.7))
    groups: dict[str, list[int]] = {}
    rates = []
    for ax, init in zip(axes, PRINTED, strict=False):
        losses, fails = restarted(functools.partial(xor_network, init), starts, epochs)
        draw_traces(ax, init, losses, fails)
        groups[init] = [sum(fails[i : i + TRIES]) for i in range(0, starts, TRIES)]
        rates.append(sum(fails) / starts)
    draw_histogram(axes[2], groups)
    wide, lecun = groups.values()
    differences = tuple(float(a - b) for a, b in zip(wide, lecun, strict=True))
    return Outcome(
        {
            "chance of 6 or fewer failures in 20 from U(-10, 10)": binomial_tail(6, 20, rates[0]),
            "chance of 0 failures in 20 from LeCun's start": binomial_tail(0, 20, rates[1]),
            "failures in 20 from U(-10, 10) less those from LeCun's start": Spread(differences),
        },
        [axes],
        note=f"{starts} starts each; an update sees all four cases, which the course does not say.",
    )

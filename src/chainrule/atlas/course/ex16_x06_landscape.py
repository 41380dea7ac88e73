"""Example 16 of document 000 (X06): ten settings of optimizers from two starts on equation 78.

The surface has many valleys; its lowest point is (61.770, 67.590), 99.53 away from the start
(135, 135) and 36.65 away from (45, 35) (erratum 43). The rate is 20 and there are 10000 steps.
Rounding decides where most of these runs end, so every start is also tried 49 times more, moved by
about 0.001: a claim about the optimizer should hold for those, too (erratum 44).

A run is at the minimum if it ends within 1 of it. It ranges around it if the center of its last
hundred places is nearer to the minimum than half of what these places are on average.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import chainrule
from chainrule import Generator, Tensor, optim, problems
from chainrule.atlas.course.course_table import show

STARTS = ((135.0, 135.0), (45.0, 35.0))
SETTINGS: dict[str, Callable[[list[Tensor]], Any]] = {
    "SGD g=.7 t=.6": lambda p: optim.SGD(p, lr=20, momentum=0.7, dampening=0.6),
    "SGD g=0 t=.5": lambda p: optim.SGD(p, lr=20, momentum=0.0, dampening=0.5),
    "SGD g=.9 t=.5": lambda p: optim.SGD(p, lr=20, momentum=0.9, dampening=0.5),
    "Nesterov g=.3": lambda p: optim.SGD(p, lr=20, momentum=0.3, nesterov=True),
    "Adadelta a=.9": lambda p: optim.Adadelta(p, lr=20, rho=0.9),
    "RMSprop g=.1 a=.9": lambda p: optim.RMSprop(p, lr=20, alpha=0.9, momentum=0.1),
    "RMSprop g=.5 a=.5": lambda p: optim.RMSprop(p, lr=20, alpha=0.5, momentum=0.5),
    "RMSprop a=.9 lr=12": lambda p: optim.RMSprop(p, lr=12, alpha=0.9),
    "Adam": lambda p: optim.Adam(p, lr=20),
    "AdamW l=1e-5": lambda p: optim.AdamW(p, lr=20, weight_decay=1e-5),
}
# What the document says: of the start at (135, 135), of the start at (45, 35).
CLAIMS = {
    "SGD g=.7 t=.6": ("reaches it", "does not"),
    "SGD g=0 t=.5": ("local minima", None),
    "SGD g=.9 t=.5": ("misses it", None),
    "Nesterov g=.3": ("ranges around it", "ranges around it"),
    "Adadelta a=.9": ("fails", "fails"),
    "RMSprop g=.1 a=.9": ("unstable", None),
    "RMSprop g=.5 a=.5": ("stable", None),
    "RMSprop a=.9 lr=12": ("reaches it", "reaches it"),
    "Adam": ("nearer than SGD", "reaches it"),
    "AdamW l=1e-5": (None, "no better than Adam"),
}


def holds(claim: str, result: dict[str, Any], sgd: dict[str, Any]) -> bool:
    """Whether what the document says is what most copies of a start do."""
    reached, moving = result["at the minimum"] > 0.5, result["moving"] > 1
    if claim == "nearer than SGD":
        return result["distance"] < sgd["distance"]
    if claim in ("unstable", "ranges around it"):
        return moving and not reached
    if claim == "stable":
        return not moving
    return reached if claim == "reaches it" else not reached


class Runs:
    """Where the copies of the two starts are, were nearest to the minimum, and how they moved."""

    def __init__(self, copies: int, dtype: Any):
        self.problem = problems.vialle(dtype=dtype)
        noise = 1e-3 * chainrule.randn(
            2, 2, copies, dtype=chainrule.float64, generator=Generator().manual_seed(0)
        )
        noise[:, :, 0] = 0  # the first copy is the start itself
        start = chainrule.tensor(STARTS, dtype=chainrule.float64).T.unsqueeze(2) + noise
        self.points = [start.to(dtype).clone().requires_grad_() for _ in SETTINGS]
        self.optimizers = [
            make([p]) for make, p in zip(SETTINGS.values(), self.points, strict=True)
        ]
        self.nearest = chainrule.full((len(SETTINGS), 2, copies), float("inf"), dtype=dtype)
        self.last_step = self.nearest
        self.recent: deque[Tensor] = deque(maxlen=100)

    def distance(self) -> Tensor:
        at = chainrule.stack([p.detach() for p in self.points])
        away = at - self.problem.minimizer.reshape(2, 1, 1)
        return chainrule.hypot(away[:, 0], away[:, 1])

    def off_center(self) -> Tensor:
        """How far the center of the last places is from the minimum, over their mean distance from
        it: 0 goes round it, 1 stays on one side."""
        away = chainrule.stack([*self.recent]) - self.problem.minimizer.reshape(2, 1, 1)
        center = away.mean(0)
        off = chainrule.hypot(center[:, 0], center[:, 1])
        return off / chainrule.hypot(away[:, :, 0], away[:, :, 1]).mean(0)

    def step(self) -> None:
        for optimizer in self.optimizers:
            optimizer.zero_grad()
        # One call for all: the surface takes a point along the first dimension.
        self.problem.function(chainrule.stack(self.points, 1)).sum().backward()
        before = chainrule.stack([p.detach().clone() for p in self.points])
        for optimizer in self.optimizers:
            optimizer.step()
        self.nearest = chainrule.minimum(self.nearest, self.distance())
        self.recent.append(chainrule.stack([p.detach().clone() for p in self.points]))
        moved = self.recent[-1] - before
        self.last_step = chainrule.hypot(moved[:, 0], moved[:, 1])


def run(steps: int, copies: int, dtype: Any) -> dict[tuple[str, int], dict[str, Any]]:
    """For every setting and start: the end of the start itself, and shares and medians over its
    copies."""
    runs = Runs(copies, dtype)
    for _ in range(steps):
        runs.step()
    distance, off_center, result = runs.distance(), runs.off_center(), {}
    for i, name in enumerate(SETTINGS):
        for j in range(2):
            result[name, j] = {
                "end": tuple(runs.points[i].detach()[:, j, 0].tolist()),
                "distance": distance[i, j, 0].item(),
                "nearest": runs.nearest[i, j, 0].item(),
                "moving": runs.last_step[i, j, 0].item(),
                "at the minimum": (distance[i, j] < 1).double().mean().item(),
                "median distance": distance[i, j].median().item(),
                "median last step": runs.last_step[i, j].median().item(),
                "off center": off_center[i, j].median().item(),
            }
    return result


def main(steps: int = 10000, copies: int = 50) -> dict[str, dict[tuple[str, int], dict[str, Any]]]:
    """What became of every setting and start, in both precisions."""
    results = {str(d): run(steps, copies, d) for d in (chainrule.float64, chainrule.float32)}
    exact, single = results.values()
    rows = []
    for (name, j), a in exact.items():
        b, claim = single[name, j], CLAIMS[name][j]
        same = claim and holds(claim, a, exact["SGD g=.7 t=.6", j])
        rows.append(
            (
                name,
                f"({STARTS[j][0]:g}, {STARTS[j][1]:g})",
                claim or "-",
                *(f"({r['end'][0]:.1f}, {r['end'][1]:.1f})" for r in (a, b)),
                f"{a['nearest']:.1f}",
                f"{a['moving']:.1f}",
                *(f"{100 * r['at the minimum']:.0f} %" for r in (a, b)),
                "-" if claim is None else "yes" if same else "no",
            )
        )
    show(
        f"Equation 78, rate 20, {steps} steps; there: share of {copies} starts at the minimum",
        (
            "optimizer",
            "start",
            "printed",
            "end, float64",
            "end, float32",
            "nearest",
            "last step",
            "there, float64",
            "there, float32",
            "so?",
        ),
        rows,
    )
    return results


if __name__ == "__main__":
    main()

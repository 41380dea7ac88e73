"""Mistakes that the curve of the training loss shows: one number for each epoch."""

from __future__ import annotations

import math
from collections.abc import Iterator

from chainrule.inspect.health.findings import Seen, rule

__all__: list[str] = []


@rule(
    "loss rises",
    "curves",
    1.5,
    "the training loss of the last epoch against that of the first",
    "error",
)
def _rises(losses: list[float], threshold: float) -> Iterator[Seen]:
    if len(losses) >= 3 and losses[0] > 0 and losses[-1] > threshold * losses[0]:
        yield Seen(
            "loss",
            losses[-1] / losses[0],
            f"the training loss went from {losses[0]:.3g} to {losses[-1]:.3g}",
            "a tenth of the learning rate, or clip_norm=1",
        )


@rule(
    "loss does not fall",
    "curves",
    0.01,
    "the share by which the training loss fell over all epochs; noise is larger",
)
def _flat(losses: list[float], threshold: float) -> Iterator[Seen]:
    if len(losses) < 10 or not all(map(math.isfinite, losses)) or losses[0] <= 0:
        return
    fall = 1 - min(losses[1:]) / losses[0]
    if fall < threshold and losses[0] > 1e-3:
        yield Seen(
            "loss",
            fall,
            f"in {len(losses)} epochs the training loss fell by {fall:.2%}, from {losses[0]:.3g}",
            "ten times the learning rate; if that does not help, overfit one batch "
            "(fit(..., overfit_batches=1)) to see whether the network can learn at all",
        )

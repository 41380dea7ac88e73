"""The effort "high": several networks are trained, and those that are best together are kept."""

from __future__ import annotations

import math
import sys
import time
from dataclasses import replace
from typing import Any

from chainrule import nn
from chainrule.models import WeightedNetworks
from chainrule.ops.creation.sampling import randint
from chainrule.random import Generator
from chainrule.train.automatic.calibration import HeldOut
from chainrule.train.automatic.ensemble import Pool, Recipe, Trained, make_members, train_members
from chainrule.train.automatic.settings import Settings
from chainrule.train.callbacks import Callback
from chainrule.train.progress import ProgressLike
from chainrule.train.trainer import Trainer

__all__ = ["search"]

CANDIDATES = (
    Recipe(),
    Recipe(hidden=(128, 128), pieces=16, lr=0.01, updates=300),
    Recipe(hidden=(96, 96), activation="silu", pieces=0, updates=300),
    Recipe(hidden=(64, 64), dropout=0.1, lr=0.01, decay=1.0, updates=300),
    Recipe(hidden=(256,), pieces=16, lr=0.01, updates=300),
    Recipe(hidden=(128, 64, 64), pieces=0, lr=0.01, decay=1.0, updates=300),
)
SPACE: dict[str, tuple[Any, ...]] = {
    "hidden": ((64, 64), (128, 128), (256,), (128, 64, 64), (256, 128)),
    "activation": ("relu", "silu", "selu"),
    "dropout": (0.0, 0.1, 0.2),
    "pieces": (0, 8, 16),
    "lr": (0.003, 0.007, 0.015, 0.03),
    "decay": (0.1, 0.5, 1.0, 2.0),
    "updates": (200, 400, 800),
}
ROUNDS = 12  # of choosing among the networks that are trained


class _Deadline(Callback):
    """Stops a training when the time is over."""

    def __init__(self, end: float):
        self.end = end

    def on_epoch_end(self, trainer: Trainer) -> None:
        if time.monotonic() > self.end:
            trainer.stop("the time limit is reached")


def search(
    pool: Pool, settings: Settings, callbacks: list[Callback], progress: ProgressLike
) -> tuple[nn.Module, Trained]:
    """Trains one candidate after the other; returns the mean of those that do best together.

    Without a time limit these are the six of ``CANDIDATES``; with one, others are drawn at random
    until it is reached. Ctrl-C ends the search, and what is trained by then is used. The first
    candidate is what the effort "normal" trains.
    """
    end = time.monotonic() + (settings.time_limit or math.inf)
    drawn = Generator().manual_seed(settings.seed)
    found: list[Trained] = []
    losses: list[float] = []
    while len(found) < len(CANDIDATES) or settings.time_limit is not None:
        i = len(found)
        recipe = CANDIDATES[i] if i < len(CANDIDATES) else _random(drawn)
        watching = [*(callbacks if not found else []), _Deadline(end)]
        try:
            model = make_members(pool, recipe)
            found.append(train_members(model, pool, settings, recipe, watching, progress))
        except KeyboardInterrupt:
            if not found:
                raise
            break
        losses.append(found[-1].seen.loss(pool.careful_loss))
        if progress:
            told = f"network {i + 1}: held-out loss {losses[-1]:.4g}, best {min(losses):.4g}\n"
            sys.stderr.write(told)
        if found[-1].trainer.history.ending == "interrupted" or time.monotonic() > end:
            break
    return _together(found, losses, pool)


def _random(generator: Generator) -> Recipe:
    """A recipe, each choice drawn for itself."""
    return replace(
        Recipe(),
        **{
            name: choices[int(randint(0, len(choices), (1,), generator=generator))]
            for name, choices in SPACE.items()
        },
    )


def _together(found: list[Trained], losses: list[float], pool: Pool) -> tuple[nn.Module, Trained]:
    """The mean of networks, chosen greedily, with repetition, by held-out rows (Caruana, 2004)."""
    counts = [0] * len(found)
    best = losses.index(min(losses))
    counts[best] = 1
    total, seen = found[best].seen.output, found[best].seen
    for size in range(2, ROUNDS + 1):
        tried = [seen.loss(pool.careful_loss, (total + f.seen.output) / size) for f in found]
        chosen = tried.index(min(tried))
        counts[chosen] += 1
        total = total + found[chosen].seen.output
    used = [(f.trainer.model, n) for f, n in zip(found, counts, strict=True) if n]
    facts = {
        **found[best].facts,
        "networks": len(found),
        "used": [
            {**f.facts, "weight": n / ROUNDS} for f, n in zip(found, counts, strict=True) if n
        ],
    }
    model = WeightedNetworks([m for m, _ in used], [n / ROUNDS for _, n in used])
    output = HeldOut(total / ROUNDS, seen.truth, seen.weight)
    return model, Trained(found[best].trainer, output, facts)

"""The effort "high": networks of several shapes and rates, of which the best together are kept."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

from chainrule import nn
from chainrule.models import TabularNetwork, WeightedNetworks
from chainrule.train.automatic.calibration import HeldOut
from chainrule.train.automatic.ensemble import RECIPES, Pool, Recipe, Trained, train_members
from chainrule.train.automatic.kept import KeptSearch
from chainrule.train.automatic.settings import Settings
from chainrule.train.automatic.together import Candidate, Deadline, train_together
from chainrule.train.callbacks import Callback
from chainrule.train.progress import ProgressLike
from chainrule.train.sweep import Setting, grid, random_settings, sweep

__all__ = ["search"]

# Shapes that are tried after the network of the effort "normal", each with its rate times FACTORS.
SHAPES = (
    Recipe(hidden=(128, 128), pieces=16, lr=0.01, updates=300),
    Recipe(hidden=(96, 96), activation="silu", pieces=0, updates=300),
    Recipe(hidden=(64, 64), dropout=0.1, lr=0.01, decay=1.0, updates=300),
    Recipe(hidden=(256,), pieces=16, lr=0.01, updates=300),
    Recipe(hidden=(128, 64, 64), pieces=0, lr=0.01, decay=1.0, updates=300),
)
FACTORS = (0.5, 1.0, 2.0)
SPACE: dict[str, Sequence[Any]] = {
    "hidden": ((64, 64), (128, 128), (256,), (128, 64, 64), (256, 128)),
    "activation": ("relu", "silu", "selu"),
    "dropout": (0.0, 0.1, 0.2),
    "pieces": (0, 8, 16),
    "lr": (0.007, 0.015),
    "decay": (0.1, 0.5, 1.0, 2.0),
    "updates": (200, 400, 800),
}
ROUNDS = 12  # of choosing among the networks that are trained
KEPT = 24  # networks to choose from, the best alone


def search(
    model: TabularNetwork,
    pool: Pool,
    settings: Settings,
    callbacks: list[Callback],
    progress: ProgressLike,
    kept: KeptSearch,
) -> tuple[nn.Module, Trained]:
    """Sweeps over shapes and rates; returns the mean of the networks that do best together.

    The first network is that of the effort "normal", so that there is an answer early. Each sweep
    trains one shape with several rates at once. Without a time limit these are ``SHAPES``; with
    one, others are drawn at random until it is reached. Ctrl-C ends the search, too, and what is
    trained by then is used.
    """
    of = _Search(pool, settings, progress, kept)
    first = of.begin(model, callbacks)
    of.sweep_all(first)
    together = _together(of.found, pool)
    if of.interrupted:
        first.trainer.history.end("interrupted", "interrupted by the user")
    return together[0], Trained(
        first.trainer, together[1], {**first.facts, **together[2], "networks": kept.networks}
    )


class _Search:
    """The networks that are found, the first of which is always kept."""

    def __init__(self, pool: Pool, settings: Settings, progress: ProgressLike, kept: KeptSearch):
        self.pool, self.settings, self.progress, self.kept = pool, settings, progress, kept
        self.began = time.monotonic()
        self.limit = math.inf if settings.time_limit is None else settings.time_limit
        self.found: list[Candidate] = []
        self.interrupted = False

    @property
    def end(self) -> float:
        """When the time is over."""
        return self.began + self.limit

    def begin(self, model: TabularNetwork, callbacks: list[Callback]) -> Trained:
        """Trains the first network, and takes over those of a run that was killed."""
        recipe = RECIPES[self.settings.effort]
        first = train_members(
            model,
            self.pool,
            self.settings,
            recipe,
            [*callbacks, Deadline(self.end)],
            self.progress,
            self.kept.resume,
        )
        own = Candidate.of(self.pool, recipe, model, first.facts["share"], first.seen)
        self.found = [own, *self.kept.read(self.pool, own.seen)]
        self.began -= self.kept.seconds
        self.interrupted = first.trainer.history.ending == "interrupted"
        self._tell(f"1 network: held-out loss {own.loss:.4g}")
        return first

    def sweep_all(self, first: Trained) -> None:
        """One shape after the other, from the first that is not done."""
        for number, shape in enumerate(_shapes(self.settings)):
            if number < self.kept.sweeps:
                continue
            if self.interrupted or time.monotonic() > self.end:
                return
            try:
                self._sweep(number, shape)
            except KeyboardInterrupt:
                self.interrupted = True
            self.found[1:] = sorted(self.found[1:], key=lambda c: c.loss)[:KEPT]
            if not self.interrupted:
                self.kept.sweeps = number + 1
                self.kept.seconds = time.monotonic() - self.began
                self.kept.write(self.found[1:], first.trainer)

    def _sweep(self, number: int, shape: Recipe) -> None:
        """One shape, with all its rates at once."""
        given = self.settings.lr
        rates = [shape.lr * f for f in FACTORS] if given is None else [given]
        seeds = [self.settings.seed + 1000 * (number + 1) + i for i in range(len(rates))]

        def run(some: list[Setting]) -> list[dict[str, float]]:
            found, self.interrupted = train_together(
                self.pool,
                self.settings,
                shape,
                [setting["lr"] for setting in some],
                seeds,
                self.end,
                self.progress in (True, "bar"),
            )
            self.found += [c for c in found if c is not None]
            return [{"loss": math.inf if c is None else c.loss} for c in found]

        losses = sweep(run, grid({"lr": rates}), many=True)["loss"]
        self.kept.networks += len([v for v in losses if v < math.inf])
        best = min([c.loss for c in self.found])
        self._tell(
            f"{self.kept.networks} networks, the last with layers of "
            f"{', '.join(map(str, shape.hidden))}: held-out loss {min(losses):.4g}, best {best:.4g}"
        )

    def _tell(self, line: str) -> None:
        if self.progress:
            sys.stderr.write(f"{line}\n")


def _shapes(settings: Settings) -> Iterator[Recipe]:
    """What is tried; with a time limit there is no end to it."""
    yield from SHAPES
    number = settings.seed
    while settings.time_limit is not None:
        yield Recipe(**random_settings(SPACE, 1, seed=number)[0])
        number += 1


def _together(found: list[Candidate], pool: Pool) -> tuple[nn.Module, HeldOut, dict[str, Any]]:
    """The mean of networks, chosen greedily, with repetition, by held-out rows (Caruana, 2004).

    Also returns its outputs for held-out rows, and facts.
    """
    counts = [0] * len(found)
    losses = [c.loss for c in found]
    best = losses.index(min(losses))
    counts[best] = 1
    total, seen = found[best].seen.output, found[best].seen
    for size in range(2, ROUNDS + 1):
        tried = [seen.loss(pool.careful_loss, (total + c.seen.output) / size) for c in found]
        chosen = tried.index(min(tried))
        counts[chosen] += 1
        total = total + found[chosen].seen.output
    used = [(c, n / ROUNDS) for c, n in zip(found, counts, strict=True) if n]
    facts = {**found[best].facts, "used": [{**c.facts, "weight": weight} for c, weight in used]}
    model = WeightedNetworks([c.model for c, _ in used], [weight for _, weight in used])
    return model, seen._replace(output=total / ROUNDS), facts

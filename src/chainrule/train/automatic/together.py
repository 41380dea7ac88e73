"""Networks of one shape with different rates, trained at once by ``fit_many``."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

from chainrule import nn, optim
from chainrule.models import TabularNetwork
from chainrule.ops.shape.stacking import cat
from chainrule.tensor import Tensor
from chainrule.random import fork_rng, manual_seed
from chainrule.train.automatic.calibration import HeldOut, weigh
from chainrule.train.automatic.ensemble import (
    Pool,
    Recipe,
    Rise,
    loader_of,
    make_members,
    member_optimizer,
    plan_of,
    train_members,
)
from chainrule.train.automatic.members import MemberLoss, Rows
from chainrule.train.automatic.settings import Settings
from chainrule.train.batched.fit import fit_many
from chainrule.train.callbacks import Callback, EarlyStopping, Watched
from chainrule.train.history import History
from chainrule.train.progress import Progress
from chainrule.train.trainer import DivergedError, Trainer

__all__ = ["Candidate", "Deadline", "train_together"]

MOST = 2**26  # numbers in the rows of all members that are laid out at once: 256 MB
WIDEST = 96  # pieces of all numbers of a row


@dataclass(frozen=True)
class Candidate:
    """A trained network, what it makes of the rows its members hold out, and facts about it."""

    model: TabularNetwork
    recipe: Recipe
    seen: HeldOut
    loss: float
    facts: dict[str, Any]

    @classmethod
    def of(
        cls, pool: Pool, recipe: Recipe, model: TabularNetwork, share: float, seen: HeldOut
    ) -> Self:
        """A network that counts so much beside its linear models."""
        facts = {**asdict(recipe), "hidden": list(recipe.hidden), "members": pool.members}
        return cls(model, recipe, seen, seen.loss(pool.careful_loss), facts | {"share": share})


class Deadline(Callback):
    """Stops a training when the time is over."""

    def __init__(self, end: float):
        self.end = end

    def on_epoch_end(self, trainer: Trainer) -> None:
        if time.monotonic() > self.end:
            trainer.stop("the time limit is reached")


class _Stopping(EarlyStopping):
    """Stops one network of many where it gets no better, or when the time is over."""

    def __init__(self, patience: int, end: float, bar: Progress):
        super().__init__(patience)
        self.end, self.bar = end, bar

    def on_epoch_end(self, trainer: Watched) -> None:
        super().on_epoch_end(trainer)
        if time.monotonic() > self.end:
            trainer.stop("the time limit is reached")
        if len(trainer.history) > self.bar.epoch:  # the first network that gets there
            row = trainer.history[-1]
            self.bar.batch_done(row["loss"], 1, dict)
            self.bar.epoch_done(row)


class _OfOneInput(nn.Module):
    """A network whose prepared rows and outputs of linear models come as one tensor."""

    def __init__(self, model: TabularNetwork):
        super().__init__()
        self.model = model

    def forward(self, input: Tensor) -> Tensor:
        wide = input.shape[-1] - self.model.out_features
        return self.model(input[..., :wide], input[..., wide:])


def _one_input(rows: Rows, chosen: Tensor) -> list[Tensor]:
    x, linear, *rest = rows.of(chosen)
    return [cat([x, linear], -1), *rest]


def train_together(
    pool: Pool,
    settings: Settings,
    recipe: Recipe,
    rates: Sequence[float],
    seeds: Sequence[int],
    end: float,
    show: bool,
) -> tuple[list[Candidate | None], bool]:
    """Trains a network with each of some rates; None for one that diverged or was not begun.

    Each network is that of :func:`train_members`, but for the order of its rows, which all of its
    members share. Also returns whether the user interrupted it. Where the rows are too many to be
    laid out for all members, it trains one network after the other.
    """
    if math.prod(pool.learned.shape) * (int(pool.x.shape[1]) + WIDEST) > MOST:
        return _one_by_one(pool, settings, recipe, rates, seeds, end, show)

    def make() -> _OfOneInput:
        model = make_members(pool, recipe)
        pool.set_linear(model)
        return _OfOneInput(model)

    with fork_rng():
        rows = pool.prepared_rows(make().model)
    loader = loader_of(pool, rows, settings)
    plan = plan_of(pool, settings, recipe, loader)
    data = [cat([part] * loader.passes) for part in _one_input(rows, pool.learned)]
    batch_size = math.ceil(len(data[0]) / len(loader))
    updates = plan.epochs * math.ceil(len(data[0]) / batch_size)
    bar = Progress(show, plan.epochs, 0, 1)
    try:
        fits = fit_many(
            make,
            tuple(data),
            MemberLoss(pool.target.loss),
            lambda params: member_optimizer(params, plan.lr, plan.decay),
            seeds=seeds,
            lr=list(rates),
            validation=tuple(_one_input(rows, pool.held_out)),
            epochs=plan.epochs,
            batch_size=batch_size,
            early_stopping=_Stopping(plan.patience, end, bar),
            schedule=lambda o: optim.lr_scheduler.LambdaLR(o, Rise(updates)),
            schedule_each="batch",
        )
    finally:
        bar.close()
    trained: Any = zip(rates, fits.models, fits.histories, strict=True)
    found = [_candidate(pool, replace(recipe, lr=lr), m.model, h) for lr, m, h in trained]
    return found, any([h.ending == "interrupted" for h in fits.histories])


def _candidate(
    pool: Pool, recipe: Recipe, model: TabularNetwork, history: History
) -> Candidate | None:
    """A network with its share beside the linear models; None where it did not learn."""
    if not len(history):
        return None
    share, seen = weigh(model, pool.whole_held_out(), pool.careful_loss)
    found = Candidate.of(pool, recipe, model, share, seen)
    return found if math.isfinite(found.loss) else None


def _one_by_one(
    pool: Pool,
    settings: Settings,
    recipe: Recipe,
    rates: Sequence[float],
    seeds: Sequence[int],
    end: float,
    show: bool,
) -> tuple[list[Candidate | None], bool]:
    found: list[Candidate | None] = [None] * len(rates)
    for i, (lr, seed) in enumerate(zip(rates, seeds, strict=True)):
        if i and time.monotonic() > end:
            break
        own = replace(recipe, lr=lr)
        with fork_rng():
            manual_seed(seed)
            model = make_members(pool, own)
            try:
                one = train_members(model, pool, settings, own, [Deadline(end)], show)
            except KeyboardInterrupt:
                return found, True
            except DivergedError:
                continue
        found[i] = Candidate.of(pool, own, model, one.facts["share"], one.seen)
        if one.trainer.history.ending == "interrupted":
            return found, True
    return found, False

"""The network that is chosen where none is asked for, and how its members are trained."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from chainrule import nn, optim
from chainrule.autograd.modes import no_grad
from chainrule.backend import dtypes
from chainrule.data.tabular.shared import BEND
from chainrule.models import TabularNetwork
from chainrule.ops.core.promotion import cast
from chainrule.ops.creation.patterns import zeros
from chainrule.ops.shape.stacking import cat
from chainrule.random import Generator
from chainrule.tensor import Tensor
from chainrule.train.automatic.calibration import HeldOut, weigh
from chainrule.train.automatic.linear import LinearMembers, linear_members
from chainrule.train.automatic.members import (
    HeldOutBatches,
    MemberBatches,
    MemberLoss,
    Rows,
    member_metric,
    rows_in_time,
    rows_of_groups,
    rows_of_members,
)
from chainrule.train.automatic.parts import Parts
from chainrule.train.automatic.settings import Settings
from chainrule.train.callbacks import Callback
from chainrule.train.placing import DevicesLike
from chainrule.train.progress import ProgressLike
from chainrule.train.trainer import Trainer

__all__ = [
    "MEMBERS",
    "RECIPES",
    "Plan",
    "Pool",
    "Recipe",
    "Rise",
    "Trained",
    "loader_of",
    "make_members",
    "member_optimizer",
    "plan_of",
    "train_members",
]

SCALE_RATE = 6.0  # how much faster the scales of the features learn than all else
WARM_UP = 0.05  # part of the updates in which the rate rises
PREPARED = 2**25  # numbers of prepared rows at most: 128 MB
MEMBERS = {"quick": 2, "normal": 4, "high": 4}


@dataclass(frozen=True)
class Recipe:
    """What is chosen: the members' layers, how numbers are seen, and how all is trained.

    ``pieces`` are at most so many for each number; ``updates`` are for 1000 rows, and grow with the
    root of the rows.
    """

    hidden: tuple[int, ...] = (64, 64)
    activation: str = "relu"
    dropout: float = 0.0
    pieces: int = 8
    lr: float = 0.02
    decay: float = 0.5
    updates: int = 200


RECIPES = {"quick": Recipe(updates=100), "normal": Recipe(), "high": Recipe()}


class Pool:
    """All rows outside the test part, and which of them each member learns from and holds out."""

    def __init__(self, parts: Parts, settings: Settings):
        self.target = parts.target
        self.index_sizes = list(parts.inputs.index_sizes)
        self.x, self.y = (cat([a, b]) for a, b in zip(parts.train, parts.validation, strict=True))
        classes = self.target.task == "classification"
        fraction = len(parts.validation[1]) / len(self.y)
        generator = Generator().manual_seed(settings.seed)
        members = MEMBERS[settings.effort]
        if parts.in_time:
            self.learned, self.held_out = rows_in_time(parts, members)
        elif parts.groups[0] is not None and parts.groups[1] is not None:
            group = cat([parts.groups[0], parts.groups[1]])
            self.learned, self.held_out = rows_of_groups(group, members, fraction, generator)
        else:
            self.learned, self.held_out = rows_of_members(
                self.y, members, fraction, classes, generator
            )
        self.weight = _row_weights(self.y, parts, settings)
        self._linear: LinearMembers | None = None

    def linear(self, model: TabularNetwork) -> LinearMembers | None:
        """The linear models of the members, which are the same for all networks."""
        if self._linear is None:
            self._linear = linear_members(
                model.linear_features(self.x),
                self.y,
                self.target.task,
                self.target.outputs,
                self.member_weights(),
                self.target.quantiles,
            )
        return self._linear

    def set_linear(self, model: TabularNetwork) -> LinearMembers | None:
        """Puts them beside a network, where the task has some."""
        linear = self.linear(model)
        if linear is not None:
            model.set_linear(linear.weight, linear.bias)
        return linear

    def rows(self, model: TabularNetwork) -> Rows:
        """The rows for the training of a network: prepared, if that does not take much memory."""
        width = int(self.x.shape[1]) + len(model.columns)
        if len(self.y) * width > PREPARED:
            return Rows(self.x, self.y, self.weight)
        return self.prepared_rows(model)

    @no_grad()
    def prepared_rows(self, model: TabularNetwork) -> Rows:
        """The rows with all that is computed of them once: pieces, and outputs of linear models."""
        return Rows(model.prepared(self.x), self.y, self.weight, model.linear(self.x))

    def whole_held_out(self) -> HeldOutBatches:
        """The rows as they are that the members hold out."""
        return HeldOutBatches(Rows(self.x, self.y, self.weight), self.held_out)

    @property
    def careful_loss(self) -> Any:
        """The loss of the target; classes as if there were one error more, so that none is sure."""
        if self.target.task == "classification":
            return nn.CrossEntropyLoss(label_smoothing=1 / len(self.y))
        return self.target.loss

    @property
    def members(self) -> int:
        """How many there are."""
        return int(self.learned.shape[0])

    def member_weights(self) -> Tensor:
        """The weight of each row for each member (M, N), 0 where it is held out."""
        weights = zeros(self.members, len(self.y))
        for row, own in zip(weights, self.learned, strict=True):
            row[own] = 1.0 if self.weight is None else self.weight[own]
        return weights


def _row_weights(y: Tensor, parts: Parts, settings: Settings) -> Tensor | None:
    """The weight of each row: its own, and that of its class, where classes are to be balanced."""
    own = None
    if parts.weights[0] is not None and parts.weights[1] is not None:
        own = cat([parts.weights[0], parts.weights[1]])
    if settings.class_weight is None:
        return own
    if settings.class_weight != "balanced":
        raise ValueError(f"class_weight: expected 'balanced', got {settings.class_weight!r}")
    if y.ndim != 1:
        raise ValueError(
            f"class_weight: classes are weighed, but the task is {parts.target.task}; leave it out"
        )
    counts = cast(y.bincount(), dtypes.get_default_dtype())
    of_class = (len(y) / (sum(counts > 0) * counts.clamp(min=1)))[y]
    return of_class if own is None else of_class * own


def make_members(pool: Pool, recipe: Recipe) -> TabularNetwork:
    """The network, with pieces at the quantiles of the rows."""
    plain = pool.x[:, : pool.x.shape[1] - len(pool.index_sizes)]
    model = TabularNetwork(
        int(pool.x.shape[1]),
        pool.target.outputs,
        recipe.hidden,
        members=pool.members,
        activation=recipe.activation,
        dropout=recipe.dropout,
        index_sizes=pool.index_sizes,
        pieces=TabularNetwork.pieces_of(plain, recipe.pieces),
        clip=BEND,
    )
    model.set_pieces(pool.x)
    return model


class Trained(NamedTuple):
    """A trained network, what it makes of the rows its members hold out, and facts about it."""

    trainer: Trainer
    seen: HeldOut
    facts: dict[str, Any]


def train_members(
    model: TabularNetwork,
    pool: Pool,
    settings: Settings,
    recipe: Recipe,
    callbacks: list[Callback],
    progress: ProgressLike,
    resume: Path | None = None,
    devices: DevicesLike | None = None,
) -> Trained:
    """Trains all members, stopped by the rows they hold out, and weighs them and linear models."""
    linear = pool.set_linear(model)
    rows = pool.rows(model)
    loader = loader_of(pool, rows, settings)
    plan = plan_of(pool, settings, recipe, loader)
    loss = pool.target.loss
    trainer = Trainer(
        model,
        MemberLoss(loss),
        member_optimizer(model.parameters(), plan.lr, plan.decay),
        schedule=lambda o: optim.lr_scheduler.LambdaLR(o, Rise(plan.epochs * len(loader))),
        schedule_each="batch",
        metrics=member_metric(pool.target.metric, loss),
        callbacks=callbacks,
        progress=progress,
        seed=settings.seed,
        devices=devices,
    )
    held_out = HeldOutBatches(rows, pool.held_out)
    trainer.fit(loader, held_out, epochs=plan.epochs, early_stopping=plan.patience, resume=resume)
    model.to("cpu")
    if not len(trainer.history):  # interrupted before there was anything to keep
        raise KeyboardInterrupt
    share, seen = weigh(model, pool.whole_held_out(), pool.careful_loss)
    told = {**asdict(recipe), "hidden": list(recipe.hidden), "members": pool.members}
    told |= {"epochs": plan.epochs, "batch_size": loader.size, "lr": plan.lr, "share": share}
    return Trained(trainer, seen, told | {"l2_of_linear": None if linear is None else linear.l2})


def _batch_size(rows: int) -> int:
    """128, and more for many rows: 256 from 8,000 on, 512 from 32,000 on, 1024 from 128,000 on."""
    return next(
        (size for size, most in ((128, 8e3), (256, 32e3), (512, 128e3)) if rows < most), 1024
    )


class Plan(NamedTuple):
    """How a network is trained: by the settings where they say it, else by the recipe."""

    lr: float
    decay: float
    epochs: int
    patience: int


def loader_of(pool: Pool, rows: Rows, settings: Settings) -> MemberBatches:
    """The rows of the members, in batches of a size that suits their number."""
    size = settings.batch_size or _batch_size(len(pool.y))
    generator = Generator().manual_seed(settings.seed)
    return MemberBatches(rows, pool.learned, size, generator)


def plan_of(pool: Pool, settings: Settings, recipe: Recipe, loader: MemberBatches) -> Plan:
    """Rate, decay, epochs and patience."""
    updates = recipe.updates * max(1.0, len(pool.y) / 1000) ** 0.5
    epochs = settings.epochs or math.ceil(updates / len(loader))
    decay = recipe.decay if settings.weight_decay is None else settings.weight_decay
    patience = settings.patience or max(2, math.ceil(0.3 * epochs))
    return Plan(settings.lr or recipe.lr, decay, epochs, patience)


def member_optimizer(params: Iterable[Tensor], lr: float, decay: float) -> optim.Optimizer:
    """AdamW for the parameters of a network, of which the scale of the features is the first."""
    scale, *others = params
    groups: list[Any] = [
        {"params": others},
        {"params": [scale], "lr": SCALE_RATE * lr, "weight_decay": 0.0},
    ]
    return optim.AdamW(groups, lr=lr, betas=(0.9, 0.95), weight_decay=decay)


class Rise:
    """The factor of the rate at an update: up in a line, then down to 0 as half a cosine."""

    def __init__(self, updates: int):
        self.updates = updates

    def __call__(self, update: int) -> float:
        at = (update + 1) / self.updates
        return min(1.0, at / WARM_UP) * 0.5 * (1 + math.cos(math.pi * min(1.0, at)))

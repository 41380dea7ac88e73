"""Many networks trained at once: folds, seeds and settings as one batched job.

A small network spends its time on the way from one operation to the next, not in them. Networks of
one architecture therefore train together: their parameters are stacked, each layer is one batched
product for all of them, and one optimizer updates the stack.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from chainrule import nn
from chainrule.metrics import MetricsLike, metric_functions
from chainrule.optim.names import OptimizerLike
from chainrule.train.batched.job import Job, Recipe
from chainrule.train.batched.networks import Maker, Network, make_networks
from chainrule.train.batched.rates import ScheduleMaker
from chainrule.train.callbacks import EarlyStopping
from chainrule.train.history import History
from chainrule.train.losses import LossLike, WeightedLoss
from chainrule.train.penalties import PenaltiesLike, named_penalties

__all__ = ["ManyFits", "fit_many"]


@dataclass
class ManyFits:
    """The networks of :func:`fit_many`, in the order they were asked for.

    ``jobs`` is how many batched jobs they made: networks that differ in more than numbers (another
    architecture, another amount of data, another optimizer) cannot be computed together.
    """

    models: list[nn.Module]
    histories: list[History]
    jobs: int

    def __len__(self) -> int:
        return len(self.models)

    def last(self, column: str = "loss") -> list[float]:
        """A column of the last epoch of each network."""
        return [history[column][-1] for history in self.histories]

    def __str__(self) -> str:
        rows = [
            {"network": i + 1, **(h[-1] if len(h) else {}), "stopped": h.stopped}
            for i, h in enumerate(self.histories)
        ]
        return str(History(rows))


def fit_many(
    model: Maker | Sequence[Maker | nn.Module],
    data: Sequence[Any],
    loss: LossLike,
    optimizer: OptimizerLike | Sequence[OptimizerLike] | None = None,
    *,
    seeds: Sequence[int] | None = None,
    lr: float | Sequence[float] | None = None,
    validation: Sequence[Any] | None = None,
    metrics: MetricsLike = (),
    penalties: PenaltiesLike = (),
    clip_norm: float | None = None,
    epochs: int = 10,
    batch_size: int = 32,
    shuffle: bool = True,
    early_stopping: int | EarlyStopping | None = None,
    restore_best: bool | None = None,
    schedule: ScheduleMaker | None = None,
    schedule_each: str = "epoch",
) -> ManyFits:
    """Trains many networks at once, each as if it were trained alone.

    Network i is, up to rounding, what this gives, with the same batches in the same order and the
    same units dropped::

        manual_seed(seeds[i])
        m = model()
        Trainer(m, loss, optimizer).fit(data, ...)

    How many networks there are is said by ``seeds`` or by any other argument that is a list; lists
    must have one length. A network whose loss or gradient is not finite stops with the weights from
    before that batch, while the others go on; its history says so.

    Optimizers must work element by element (SGD, Adam, Rprop, ...): others would mix the networks.

    Args:
        model: makes a new network, or a list of such functions, or a list of networks.
        data: (x, y) or (x, y, sample_weight) for all; or a list of such, one for each network.
        loss: see :class:`Trainer`.
        optimizer: a name, a class, or a function that makes one for parameters; or a list.
        seeds: one for each network, by default 0, 1, 2, ...
        lr: the learning rate, or a list with one for each network, in place of the optimizer's (of
            its first group; those of others are scaled with it).
        validation: like ``data``.
        metrics: see :class:`Trainer`.
        penalties: see :class:`Trainer`; functions of the model alone.
        clip_norm: the largest norm of each network's gradient.
        epochs: how many.
        batch_size: of each network.
        shuffle: whether each network has its own new order in each epoch.
        early_stopping: after how many epochs without improvement a network stops, or a callback.
        restore_best: whether a network ends with the weights of its best epoch, by what early
            stopping monitors, else by validation loss; by default if ``early_stopping`` is given.
        schedule: makes a learning-rate schedule for an optimizer; each network has its own.
        schedule_each: whether the schedules step each "epoch" or each "batch".

    >>> from chainrule import models, problems, train
    >>> xor = problems.boolean("xor")
    >>> fits = train.fit_many(
    ...     lambda: models.MLP(2, [4], 1, "tanh"), (xor.inputs, xor.targets), "bce_with_logits",
    ...     "sgd", seeds=range(3), lr=[0.1, 0.5, 1.0], epochs=300, batch_size=4,
    ... )
    >>> len(fits), fits.jobs, fits.histories[2][-1]["loss"] < 0.1
    (3, 1, True)
    """
    weighted = WeightedLoss(loss)
    scores = metric_functions(metrics, weighted.scores)
    restores = early_stopping is not None if restore_best is None else restore_best
    added = named_penalties(penalties)
    same = (clip_norm, epochs, batch_size, shuffle, restores, schedule, schedule_each)
    recipe = Recipe(weighted, scores, added, *same)
    recipe.check()
    networks = make_networks(model, data, optimizer, seeds, lr, validation, early_stopping)
    kinds: dict[Any, list[Network]] = {}
    for network in networks:
        kinds.setdefault(network.kind(), []).append(network)
    for alike in kinds.values():
        Job(alike, recipe).run()
    return ManyFits([n.model for n in networks], [n.history for n in networks], len(kinds))

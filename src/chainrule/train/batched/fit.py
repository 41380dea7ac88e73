"""Many networks trained at once: folds, seeds and settings as one batched job.

A small network spends its time on the way from one operation to the next, not in them. Networks of
one architecture therefore train together: their parameters are stacked, each layer is one batched
product for all of them, and one optimizer updates the stack.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from chainrule import nn, optim
from chainrule.autograd.modes import no_grad
from chainrule.backend import K
from chainrule.ops.creation.conversion import clone
from chainrule.ops.elementwise.functions import sqrt
from chainrule.ops.elementwise.logic import isfinite, where
from chainrule.ops.elementwise.options import clamp
from chainrule.ops.creation.from_data import as_tensor
from chainrule.ops.reduce.reductions import all as all_of, sum as sum_of
from chainrule.ops.shape.views import flatten, reshape
from chainrule.ops.shape.stacking import cat, stack
from chainrule.optim.names import OptimizerLike, make_optimizer
from chainrule.random import Streams
from chainrule.tensor import Tensor
from chainrule.train.callbacks import EarlyStopping
from chainrule.train.batched.columns import Columns
from chainrule.train.batched.rates import OwnRates, ScheduleMaker, StackedRates
from chainrule.train.history import Ending, History
from chainrule.train.losses import LossLike, WeightedLoss
from chainrule.train.batched.networks import Maker, Network, make_networks
from chainrule.metrics import MetricsLike, metric_functions
from chainrule.train.batched.stacking import Lists, Stack, is_steady
from chainrule.train.penalties import PenaltiesLike, check_stackable, named_penalties
from chainrule.typing import Array

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
    recipe = _Recipe(weighted, scores, added, *same)
    recipe.check()
    networks = make_networks(model, data, optimizer, seeds, lr, validation, early_stopping)
    kinds: dict[Any, list[Network]] = {}
    for network in networks:
        kinds.setdefault(network.kind(), []).append(network)
    for alike in kinds.values():
        _Job(alike, recipe).run()
    return ManyFits([n.model for n in networks], [n.history for n in networks], len(kinds))


# --- a job ----------------------------------------------------------------------------------------


@dataclass
class _Recipe:
    """What all networks have in common."""

    loss: WeightedLoss
    metrics: dict[str, Callable[..., Any]]
    penalties: dict[str, Callable[..., Any]]
    clip_norm: float | None
    epochs: int
    batch_size: int
    shuffle: bool
    restore_best: bool
    schedule: ScheduleMaker | None
    schedule_each: str

    def check(self) -> None:
        """Raises ValueError for what networks cannot be trained with together."""
        if self.epochs < 0 or self.batch_size < 1:
            raise ValueError(
                "fit_many: epochs must not be negative and batch_size positive, got "
                f"epochs={self.epochs}, batch_size={self.batch_size}"
            )
        if self.clip_norm is not None and not self.clip_norm > 0:
            raise ValueError(f"fit_many: clip_norm must be positive, got {self.clip_norm}")
        if self.schedule_each not in ("epoch", "batch"):
            raise ValueError(
                f"fit_many: schedule_each must be 'epoch' or 'batch', got {self.schedule_each!r}"
            )
        if self.schedule is not None and not callable(self.schedule):
            raise TypeError(
                "fit_many: schedule must be a function that makes one for an optimizer, such as "
                "lambda o: optim.lr_scheduler.StepLR(o, 10), got "
                f"{type(self.schedule).__name__}"
            )
        check_stackable(self.penalties)


class _Job:
    """Networks of one kind, trained together until each has stopped."""

    def __init__(self, networks: list[Network], recipe: _Recipe):
        self.networks, self.recipe = list(networks), recipe
        called = [recipe.loss.loss, *recipe.penalties.values()]
        models = [n.model for n in networks]
        self.stack = Stack(models, steady=is_steady(models[0], called))
        self.streams = Streams([n.generator for n in networks])
        self.rates: StackedRates | None = None
        self.optimizer = self._optimizer() if self.stack.learned else None
        self.best: dict[str, Tensor] | None = None
        self._gather()

    def _gather(self) -> None:
        self.data = Columns([n.data for n in self.networks])
        held_out = [n.validation for n in self.networks if n.validation is not None]
        self.validation = Columns(held_out) if held_out else None

    def _optimizer(self) -> optim.Optimizer:
        made = make_optimizer("fit_many", self.networks[0].optimizer, self.stack.parameters)
        kind = type(made)
        if kind.step is not optim.Optimizer.step or kind.update is not optim.Optimizer.update:
            raise ValueError(
                f"fit_many: {kind.__name__} does not work element by element, so that networks "
                "trained together would not be as if trained alone; use another optimizer (SGD, "
                "Adam, Rprop, ...), or a loop over Trainer.fit"
            )
        made.check_finite = False  # seen to here, network by network
        if self.networks[0].lr is not None or self.recipe.schedule is not None:
            self.rates = StackedRates(made, [self._own_rates(n) for n in self.networks])
        return made

    def _own_rates(self, n: Network) -> OwnRates:
        if n.rates is None:
            n.rates = OwnRates(n.model, n.optimizer, n.lr, self.recipe.schedule)
        return n.rates

    def run(self) -> None:
        """All epochs, or as many as there are networks left."""
        recipe, reason = self.recipe, f"finished {self.recipe.epochs} epochs"
        ending: Ending = "finished"
        try:
            with self.streams:
                for epoch in range(recipe.epochs):
                    if not self.networks:
                        break
                    self._one_epoch(epoch)
                    self._leave()
        except KeyboardInterrupt:
            reason, ending = "interrupted by the user", "interrupted"
        for n in self.networks:
            n.stop(reason, ending)
        self._leave()
        self.stack.template.train()

    def _one_epoch(self, epoch: int) -> None:
        began, networks = time.perf_counter(), self.networks
        rows = self._train(epoch)
        if self.validation is not None:
            for row, more in zip(rows, self._evaluate(self.validation), strict=True):
                row |= {f"val_{k}": v for k, v in more.items()}
        share = (time.perf_counter() - began) / len(networks)
        if self.recipe.restore_best:
            self._note_best([n.watched(row) for n, row in zip(networks, rows, strict=True)])
        for n, row in zip(networks, rows, strict=True):
            if not n.stopped:
                lr = self._rate(n)
                n.history.append({"epoch": epoch + 1, **row, "lr": lr, "seconds": share})
                if n.stopping is not None:
                    n.stopping.on_epoch_end(n)
        self._step_schedules("epoch", [row.get("val_loss", row["loss"]) for row in rows])

    def _step_schedules(self, when: str, losses: list[float]) -> None:
        if self.rates is not None and self.recipe.schedule and self.recipe.schedule_each == when:
            self.rates.step(losses)

    def _rate(self, network: Network) -> float | None:
        if network.rates is not None:
            return network.rates.now[0]
        if self.optimizer is None:
            return network.lr
        lr = self.optimizer.param_groups[0].get("lr")
        return lr if isinstance(lr, (int, float)) else None

    # --- one pass over the data -------------------------------------------------------------------

    def _order(self) -> Array | None:
        """An array with the order of each network's samples, drawn as a DataLoader draws it."""
        alone = self.data.n <= self.recipe.batch_size and not self.stack.draws
        if not self.recipe.shuffle or alone:  # the order of the only batch matters to nobody
            return None
        return self.streams.orders(self.data.n)

    def _train(self, epoch: int) -> list[dict[str, float]]:
        """An update for each batch; the means of the losses of each network, and its metrics."""
        recipe, table = self.recipe, self.data
        if not self.stack.template.training:
            self.stack.template.train()
        names = ["loss", *recipe.penalties]
        totals = [[0.0] * len(self.networks) for _ in names]
        seen: list[Tensor] = []
        order = self._order()
        for number, (args, shared) in enumerate(table.batches(recipe.batch_size, order)):
            size = args[0].array.shape[0 if shared[0] else 1]
            parts, outputs = self.stack.differentiate(self._losses, args, shared, self.streams)
            losses = [part.tolist() for part in parts]
            for total, part in zip(totals, losses, strict=True):
                for i, value in enumerate(part):
                    total[i] += value * size
            self._update(totals[0], number, epoch)
            self._step_schedules("batch", losses[0])
            seen += outputs
        rows = [
            {name: total[i] / table.n for name, total in zip(names, totals, strict=True)}
            for i in range(len(self.networks))
        ]
        return self._measured(rows, seen, table.targets(order))

    def _losses(self, model: nn.Module, x: Tensor, y: Tensor, w: Tensor | None) -> Lists:
        """The loss and the penalties of one network, and its output if there are metrics."""
        output = model(x)
        parts = [self.recipe.loss(output, y, w)]
        parts += [penalty(model) for penalty in self.recipe.penalties.values()]
        return parts, [output] if self.recipe.metrics else []

    def _update(self, totals: list[float], batch: int, epoch: int) -> None:
        if not math.isfinite(sum(totals)):  # which may overflow where none of them does
            which = [not math.isfinite(t) for t in totals]
            self._diverged(which, "the loss", batch, epoch)
        if self.optimizer is None:
            return
        grads = [p._grad for p in self.stack.parameters if p._grad is not None]
        if not K.all_finite([g.array for g in grads]):
            finite = stack([all_of(isfinite(flatten(g, 1)), 1) for g in grads])
            which = [not ok for ok in all_of(finite, 0).tolist()]
            self._diverged(which, "a gradient", batch, epoch)
        if self.recipe.clip_norm is not None:
            self._clip(grads, self.recipe.clip_norm)
        self.optimizer.step()

    def _diverged(self, which: list[bool], what: str, batch: int, epoch: int) -> None:
        """Stops networks with the weights they have now; what becomes of them later is ignored."""
        for i, n in enumerate(self.networks):
            if which[i] and not n.stopped:
                place = f"batch {batch + 1} of epoch {epoch + 1}"
                n.stop(f"diverged: {what} is not finite in {place}", "diverged")
                self._finish(i)

    @no_grad()
    def _clip(self, grads: Sequence[Tensor], limit: float) -> None:
        squares = [sum_of(flatten(g * g, 1), 1) for g in grads]
        norm = sqrt(sum_of(stack(squares), 0))
        scale = clamp(limit / (norm + 1e-6), max=1.0)
        for p in self.stack.parameters:
            if p.grad is not None:
                p.grad = p.grad * reshape(scale, (-1, *[1] * (p.ndim - 1)))

    @no_grad()
    def _evaluate(self, table: Columns) -> list[dict[str, float]]:
        """The mean loss and the metrics of each network on the validation data."""
        self.stack.template.eval()
        totals, count = [0.0] * len(self.networks), [0.0] * len(self.networks)
        seen: list[Tensor] = []
        for args, shared in table.batches(self.recipe.batch_size):
            (loss, *_), outputs = self.stack.evaluate(self._losses, args, shared)
            sizes = table.sizes(args, shared, len(self.networks))
            for i, value in enumerate(loss.tolist()):
                totals[i] += value * sizes[i]
                count[i] += sizes[i]
            seen += outputs
        rows = [{"loss": t / c} for t, c in zip(totals, count, strict=True)]
        return self._measured(rows, seen, table.targets())

    def _measured(
        self, rows: list[dict[str, float]], outputs: list[Tensor], targets: Any
    ) -> list[dict[str, float]]:
        """The rows with the metrics of each network."""
        if not self.recipe.metrics:
            return rows
        joined = cat(outputs, 1)
        for i, row in enumerate(rows):
            for name, metric in self.recipe.metrics.items():
                row[name] = float(metric(joined[i], targets(i)))
        return rows

    # --- the end of a network ---------------------------------------------------------------------

    def _note_best(self, values: list[float]) -> None:
        """Keeps the tensors of the networks that have never been better."""
        better = [v < n.best and not n.stopped for v, n in zip(values, self.networks, strict=True)]
        if not any(better):
            return
        now = {name: clone(t.detach()) for name, t in self.stack.tensors.items()}
        if self.best is not None and not all(better):
            mask = as_tensor(better)
            for name, t in now.items():
                before = self.best[name]
                now[name] = where(reshape(mask, (-1, *[1] * (t.ndim - 1))), t, before)
        self.best = now
        for n, value, is_better in zip(self.networks, values, better, strict=True):
            n.best = value if is_better else n.best

    def _finish(self, i: int) -> None:
        """Gives a network its final weights."""
        n = self.networks[i]
        self.stack.write(i, n.model, self.best if n.best < math.inf else None)
        n.history.end(n.ending, n.stopped)
        n.finished = True

    def _leave(self) -> None:
        """Takes the networks that have stopped out of the stack."""
        for i, n in enumerate(self.networks):
            if n.stopped and not n.finished:
                self._finish(i)
        left = [i for i, n in enumerate(self.networks) if not n.stopped]
        if not left or len(left) == len(self.networks):
            self.networks = [self.networks[i] for i in left]
            return
        self.networks = [self.networks[i] for i in left]
        before = self.optimizer
        self.stack.keep(left)
        self.streams.keep(left)
        if before is not None:
            self.optimizer = self._optimizer()
            _hand_over(before, self.optimizer, left)
        if self.best is not None:
            chosen = as_tensor(left)
            self.best = {name: t[chosen] for name, t in self.best.items()}
        self._gather()


def _hand_over(before: Any, after: Any, left: list[int]) -> None:
    """Gives an optimizer of some of the networks what another one knew of them."""
    chosen = as_tensor(left)
    for old, new in zip(before.param_groups, after.param_groups, strict=True):
        for p, q in zip(old["params"], new["params"], strict=True):
            for name, value in before.state.get(p, {}).items():
                stacked = isinstance(value, Tensor) and value.shape == p.shape
                after.state[q][name] = clone(value[chosen]) if stacked else value

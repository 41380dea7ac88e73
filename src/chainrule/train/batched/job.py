"""A batched job: networks of one kind, trained together until each has stopped."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from chainrule import optim
from chainrule.autograd.modes import no_grad
from chainrule.ops.creation.conversion import clone
from chainrule.ops.creation.from_data import as_tensor
from chainrule.ops.elementwise.logic import where
from chainrule.ops.shape.stacking import cat
from chainrule.ops.shape.views import reshape
from chainrule.optim.names import make_optimizer
from chainrule.random import Streams
from chainrule.tensor import Tensor
from chainrule.train.batched.columns import Batches, Columns
from chainrule.train.batched.networks import Network
from chainrule.train.batched.rates import OwnRates, ScheduleMaker, StackedRates
from chainrule.train.batched.stacking import Stack, is_steady
from chainrule.train.batched.steps import Steps, to_the_end
from chainrule.train.history import Ending
from chainrule.train.losses import WeightedLoss
from chainrule.train.penalties import check_stackable
from chainrule.typing import Array

__all__ = ["Job", "Recipe"]

EPOCHS = 1000  # of one batch, that run at once
WORTH = 200  # updates from which on a smaller stack has its record


@dataclass
class Recipe:
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


class Job:
    """Networks of one kind, trained together until each has stopped.

    Where updates run from a record, a network that has stopped stays in the stack, and what becomes
    of it is ignored, until half of them have stopped: to make a new record takes longer. One that
    is not finite any more goes on as a second one of another network.
    """

    def __init__(self, networks: list[Network], recipe: Recipe):
        self.networks, self.recipe = list(networks), recipe
        models = [n.model for n in networks]
        steady = is_steady(models[0], [recipe.loss.loss, *recipe.penalties.values()])
        self.stack = Stack(models, steady)
        self.streams = Streams([n.generator for n in networks])
        self.rates: StackedRates | None = None
        self.optimizer = self._optimizer() if self.stack.learned else None
        self.best: dict[str, Tensor] | None = None
        self.steps = Steps(
            self.stack,
            self.streams,
            recipe.loss,
            recipe.penalties,
            bool(recipe.metrics),
            recipe.clip_norm,
        )
        self.steps.optimizer = self.optimizer
        self.epoch = 0  # how many are finished
        self._updated = False  # whether there was an update
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
                while self.epoch < recipe.epochs and self.networks:
                    self._some_epochs()
                    self._leave()
        except KeyboardInterrupt:
            reason, ending = "interrupted by the user", "interrupted"
        for n in self.networks:
            n.stop(reason, ending)
        self._leave()
        self.stack.template.train()

    @property
    def left(self) -> int:
        """How many epochs are to come."""
        return self.recipe.epochs - self.epoch

    def _some_epochs(self) -> None:
        """One epoch, or many where nobody looks at them and all are alike."""
        self.steps.look_around()
        before = self.steps.at_once, self.steps.one_by_one
        try:
            order = self._order()
            if order is None and self._runs_on():
                self._same_batch()
            else:
                self._one_epoch(order)
        finally:
            way = self._way(*before)
            for n in self.networks:
                if not n.finished and (way.startswith("compiled") or len(n.history) == self.epoch):
                    n.history.ran = way

    def _way(self, at_once: int, one_by_one: int) -> str:
        """How the updates since then ran, as ``History.ran`` says it."""
        if self.steps.at_once > at_once:
            return "compiled epochs"
        if self.steps.one_by_one > one_by_one:
            return "compiled steps"
        why = self.steps.why or "too few updates are alike to gain by a record"
        return f"eager: {why}"

    def _one_epoch(self, order: Array | None) -> None:
        began, networks = time.perf_counter(), self.networks
        living = sum([not n.stopped for n in networks])
        rows = self._train(order)
        if self.validation is not None:
            for row, more in zip(rows, self._evaluate(self.validation), strict=True):
                row |= {f"val_{k}": v for k, v in more.items()}
        share = (time.perf_counter() - began) / living
        if self.recipe.restore_best:
            self._note_best(rows)
        self.epoch += 1
        for n, row in zip(networks, rows, strict=True):
            if not n.stopped:
                lr = self._rate(n)
                n.history.append({"epoch": self.epoch, **row, "lr": lr, "seconds": share})
                if n.stopping is not None:
                    n.stopping.on_epoch_end(n)
        self._step_schedules("epoch", [row.get("val_loss", row["loss"]) for row in rows])

    def _step_schedules(self, when: str, losses: list[float]) -> None:
        if self._schedules(when):
            self.rates.step(losses)  # type: ignore[union-attr]

    def _schedules(self, when: str) -> bool:
        each = self.recipe.schedule is not None and self.recipe.schedule_each == when
        return self.rates is not None and each

    def _rate(self, network: Network) -> float | None:
        if network.rates is not None:
            return network.rates.now[0]
        if self.optimizer is None:
            return network.lr
        lr = self.optimizer.param_groups[0].get("lr")
        return lr if isinstance(lr, (int, float)) else None

    # --- many epochs of one batch -----------------------------------------------------------------

    def _runs_on(self) -> bool:
        """Whether epochs are one update from the same batch, and nobody looks at them."""
        r = self.recipe
        looks = self.validation is not None or r.metrics or r.schedule is not None
        looks = looks or any([n.stopping is not None for n in self.networks])
        return self._has_record() and not looks

    def _has_record(self) -> bool:
        """Whether an epoch is one update, from a record that draws no random numbers."""
        ran = self.steps.at_once + self.steps.one_by_one
        return self.data.n <= self.recipe.batch_size and ran > 0 and not self.stack.draws

    def _same_batch(self) -> None:
        """Epochs of one update each, until one is not finite."""
        (batch,) = self.data.batches(self.recipe.batch_size)
        times, before = min(self.left, EPOCHS), self.epoch
        began, failed = time.perf_counter(), False
        rates = [self._rate(n) for n in self.networks]
        starts = [len(n.history) for n in self.networks]
        try:
            _, failed = self.steps.take(batch, 0, self.left, times)
        finally:
            rows = self.steps.rows
            whole = rows[: len(rows) - failed]
            living = [i for i, n in enumerate(self.networks) if not n.stopped]
            share = (time.perf_counter() - began) / max(1, len(rows)) / max(1, len(living))

            def keep() -> None:
                for i in living:
                    kept = [
                        self._row(k, r, i, rates, share) for k, r in enumerate(whole, before + 1)
                    ]
                    self.networks[i].history.rows[starts[i] :] = kept
                self.epoch = before + len(whole)

            to_the_end(keep)
        if failed:
            self._not_taken(0)
            for i in living:
                if not self.networks[i].stopped:
                    row = self._row(self.epoch + 1, rows[-1], i, rates, share)
                    self.networks[i].history.rows.append(row)
            self.epoch += 1

    def _row(
        self, epoch: int, row: list[float], i: int, rates: list[Any], share: float
    ) -> dict[str, Any]:
        """An epoch of one update in the history of a network."""
        count, n, size = len(self.networks), self.data.n, self.data.n
        new: dict[str, Any] = {"epoch": epoch, "loss": row[i] * size / n}
        for k, name in enumerate(self.recipe.penalties, 1):
            new[name] = row[k * count + i] * size / n
        return new | {"lr": rates[i], "seconds": share}

    # --- one pass over the data -------------------------------------------------------------------

    def _order(self) -> Array | None:
        """An array with the order of each network's samples, drawn as a DataLoader draws it."""
        if not self.recipe.shuffle:
            return None
        # The order of the only batch matters to nobody, if nothing else is drawn.
        if self.data.n <= self.recipe.batch_size and self._updated and not self.stack.draws:
            return None
        return self.streams.orders(self.data.n)

    def _train(self, order: Array | None) -> list[dict[str, float]]:
        """An update for each batch; the means of the losses of each network, and its metrics."""
        recipe, table, count = self.recipe, self.data, len(self.networks)
        self.stack.train()
        names = ["loss", *recipe.penalties]
        totals = [0.0] * (len(names) * count)
        seen: list[Tensor] = []
        number = 0
        for batches in table.batches(recipe.batch_size, order):
            first = 0
            while first < batches.times and not all([n.stopped for n in self.networks]):
                some = 1 if self._schedules("batch") else batches.times - first
                outputs, failed = self.steps.take(batches, first, self._expected(batches), some)
                for row in self.steps.rows:
                    for i, value in enumerate(row):
                        totals[i] += value * batches.size
                taken = len(self.steps.rows)
                self._updated = True
                if failed:
                    self._not_taken(number + taken - 1)
                self._step_schedules("batch", self.steps.rows[-1][:count])
                seen += outputs
                first, number = first + taken, number + taken
        rows = [
            {name: totals[k * count + i] / table.n for k, name in enumerate(names)}
            for i in range(count)
        ]
        return self._measured(rows, seen, table.targets(order))

    def _expected(self, batches: Batches) -> int:
        """How many updates from batches of this size are to come, this epoch included."""
        whole = batches.size == self.recipe.batch_size
        return self.left * (self.data.n // self.recipe.batch_size if whole else 1)

    def _not_taken(self, batch: int) -> None:
        """Ends an update that is not finite: networks stop by which it is not, others take it."""
        losses, grads = self.steps.not_finite()
        place = f"batch {batch + 1} of epoch {self.epoch + 1}"
        for what, which in (("the loss", losses), ("a gradient", grads)):
            for i, n in enumerate(self.networks):
                if which[i] and not n.stopped:
                    n.stop(f"diverged: {what} is not finite in {place}", "diverged")
                    self._finish(i)
        living = [i for i, n in enumerate(self.networks) if not n.stopped]
        if living:
            for i, bad in enumerate(zip(losses, grads, strict=True)):
                if any(bad):
                    self._repeat(i, living[0])
            self.steps.finish()

    @no_grad()
    def _repeat(self, i: int, j: int) -> None:
        """Has the i-th network of the stack be a second one of the j-th from now on."""
        self.stack.repeat(i, j)
        self.streams.generators[i] = self.streams.generators[j].clone_state()
        for table in (self.data, self.validation):
            if table is not None:
                table.repeat(i, j)
        if self.rates is not None:
            self.rates.repeat(i, j)
        for p in self.stack.parameters:
            for value in self.optimizer.state.get(p, {}).values() if self.optimizer else ():
                if isinstance(value, Tensor) and value.shape == p.shape:
                    value[i] = value[j]

    @no_grad()
    def _evaluate(self, table: Columns) -> list[dict[str, float]]:
        """The mean loss and the metrics of each network on the validation data."""
        self.stack.train(False)
        totals, count = [0.0] * len(self.networks), [0.0] * len(self.networks)
        seen: list[Tensor] = []
        for batches in table.batches(self.recipe.batch_size):
            for k in range(batches.times):
                loss, outputs = self.steps.evaluate(batches, k, self.left * batches.times)
                sizes = table.sizes(batches.one(k), batches.shared)
                for i, value in enumerate(loss.tolist()):
                    totals[i] += value * sizes[i]
                    count[i] += sizes[i]
                seen += outputs
        rows = [{"loss": t / c} for t, c in zip(totals, count, strict=True)]
        return self._measured(rows, seen, table.targets())

    def _measured(
        self, rows: list[dict[str, float]], outputs: list[Tensor], targets: Any
    ) -> list[dict[str, float]]:
        """The rows with the metrics of each network that has not stopped."""
        living = [i for i, n in enumerate(self.networks) if not n.stopped]
        if not self.recipe.metrics or not living:
            return rows
        joined = cat(outputs, 1)
        for i in living:
            for name, metric in self.recipe.metrics.items():
                rows[i][name] = float(metric(joined[i], targets(i)))
        return rows

    # --- the end of a network ---------------------------------------------------------------------

    def _note_best(self, rows: list[dict[str, float]]) -> None:
        """Keeps the tensors of the networks that have never been better."""
        pairs = zip(self.networks, rows, strict=True)
        values = [math.nan if n.stopped else n.watched(row) for n, row in pairs]
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
        """Takes the networks that have stopped out of the stack, where that pays."""
        for i, n in enumerate(self.networks):
            if n.stopped and not n.finished:
                self._finish(i)
        left = [i for i, n in enumerate(self.networks) if not n.stopped]
        if not left:
            self.networks = []
        if not left or len(left) == len(self.networks) or self._all_stay(len(left)):
            return
        self.networks = [self.networks[i] for i in left]
        before = self.optimizer
        self.stack.keep(left)
        self.streams.keep(left)
        self.steps.forget()
        if before is not None:
            self.optimizer = self.steps.optimizer = self._optimizer()
            _hand_over(before, self.optimizer, left)
        if self.best is not None:
            chosen = as_tensor(left)
            self.best = {name: t[chosen] for name, t in self.best.items()}
        self._gather()

    def _all_stay(self, living: int) -> bool:
        """Whether networks that have stopped are computed on: a new record would not pay."""
        updates = self.left * -(-self.data.n // self.recipe.batch_size)
        few = 2 * living > len(self.networks) or updates < WORTH
        return self.steps.has_records and few


def _hand_over(before: Any, after: Any, left: list[int]) -> None:
    """Gives an optimizer of some of the networks what another one knew of them."""
    chosen = as_tensor(left)
    for old, new in zip(before.param_groups, after.param_groups, strict=True):
        for p, q in zip(old["params"], new["params"], strict=True):
            for name, value in before.state.get(p, {}).items():
                stacked = isinstance(value, Tensor) and value.shape == p.shape
                after.state[q][name] = clone(value[chosen]) if stacked else value

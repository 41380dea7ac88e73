"""The loop: batches, losses, updates, validation, and everything that may end it."""

from __future__ import annotations

import copy
import math
import os
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NoReturn

from chainrule import nn, optim
from chainrule.backend import processes
from chainrule.data.sampler import DistributedSampler
from chainrule.files import load, save
from chainrule.inspect.health.autopsy import Autopsy, autopsy
from chainrule.inspect.health.findings import Finding
from chainrule.ops.creation.conversion import clone
from chainrule.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau
from chainrule.optim.names import OptimizerLike, make_optimizer
from chainrule.random import Generator
from chainrule.tensor import Tensor
from chainrule.train.attending import Doctor
from chainrule.train.batches import Batch, DataLike, FirstBatches, as_loader
from chainrule.train.callbacks import Checkpoint, EarlyStopping, Events
from chainrule.train.checkpoints import restore, state_of
from chainrule.train.evaluation import evaluate, predict
from chainrule.train.history import History
from chainrule.train.losses import LossLike, WeightedLoss
from chainrule.metrics import MetricsLike, metric_functions
from chainrule.train.penalties import (
    PenaltiesLike,
    check_penalties,
    learned,
    named_penalties,
    penalty_values,
)
from chainrule.train.placing import DevicesLike, Placing, place_modules
from chainrule.train.progress import ProgressLike, Shown, check_progress, progress_of
from chainrule.train.repeating import Repeater, length_of
from chainrule.train.updates import Sums
from chainrule.train.weights import ClassWeight, class_weights
from chainrule.typing import Device, Features

__all__ = ["DivergedError", "Trainer"]


ScheduleLike = LRScheduler | Callable[[optim.Optimizer], LRScheduler]


class DivergedError(RuntimeError):
    """The loss or a gradient is not finite; ``autopsy`` says where that began, if it is known."""

    def __init__(self, message: str, report: Autopsy | None = None):
        super().__init__(message if report is None else f"{message}\n{report}")
        self.autopsy = report


class Trainer:
    """Trains a model.

    Each batch: loss = mean loss + penalties, its gradient, clipping, an update. Each epoch: a look
    at the validation data, the schedule, a row in the history.

    Args:
        model: the module to train.
        loss: a name ("cross_entropy", "mse", ...), a function ``loss(output, target)`` or a module.
        optimizer: an optimizer, or the name or class of one (default: Adam) to make.
        schedule: a learning-rate schedule, or a function that makes one for the optimizer.
        schedule_each: whether the schedule steps each "epoch" or each "batch".
        metrics: names or functions ``metric(output, target)``, or a dictionary of them.
        penalties: functions ``penalty(model)`` that are added to the loss, or a dictionary of them.
            One with ``needs_inputs`` is called as ``penalty(model, *inputs)``; one with a method
            ``after_backward`` changes the gradient and not the loss, and is only reported.
        clip_norm: the largest norm of the gradient.
        clip_value: the largest entry of the gradient.
        accumulate: how many batches make one update.
        callbacks: see :class:`Callback`; an ``inspect.Watch`` is one, too.
        class_weight: "balanced", or the weight of each class: for targets that are class indices.
        progress: True or "bar" for a bar (on a terminal), "plot" for curves that are drawn again.
        compile: whether updates run from a record (see :func:`chainrule.compile`), with the same
            results, where one can be made and enough are to come; ``history.ran`` says what ran.
        doctor: whether to look for mistakes before and after training: see :class:`Doctor`.
        seed: for the order of the data; by default the global generator gives it.
        device: where to move the model; by default it stays where it is. Batches follow it, and
            updates on a device are compiled from the first on.
        devices: several devices that share each batch, as one would compute it: "cuda" or "xla"
            (all of that kind), a number, "auto" (all GPUs or TPUs, the CPU where there are none),
            or names, as "cuda:0,cuda:1" or in a list. In several processes all devices of all of
            them, which read the same batches, or each its own with a ``DistributedSampler``.

    >>> import chainrule
    >>> from chainrule import models, train
    >>> _ = chainrule.manual_seed(0)
    >>> x = chainrule.linspace(-1, 1, 64).reshape(-1, 1)
    >>> adam = lambda parameters: chainrule.optim.Adam(parameters, lr=0.02)
    >>> trainer = train.Trainer(models.MLP(1, [16], 1), "mse", adam)
    >>> history = trainer.fit((x, x**2), epochs=60, batch_size=16)
    >>> history[-1]["loss"] < 0.01
    True
    """

    def __init__(
        self,
        model: nn.Module,
        loss: LossLike,
        optimizer: OptimizerLike | None = None,
        *,
        schedule: ScheduleLike | None = None,
        schedule_each: str = "epoch",
        metrics: MetricsLike = (),
        penalties: PenaltiesLike = (),
        clip_norm: float | None = None,
        clip_value: float | None = None,
        accumulate: int = 1,
        callbacks: Iterable[Events] = (),
        class_weight: ClassWeight = None,
        progress: ProgressLike = True,
        compile: bool = True,
        doctor: bool = False,
        seed: int | None = None,
        device: Device | None = None,
        devices: DevicesLike | None = None,
    ):
        if accumulate < 1:
            raise ValueError(f"Trainer: accumulate must be positive, got {accumulate}")
        if schedule_each not in ("epoch", "batch"):
            raise ValueError(
                f"Trainer: schedule_each must be 'epoch' or 'batch', got {schedule_each!r}"
            )
        for name, value in (("clip_norm", clip_norm), ("clip_value", clip_value)):
            if value is not None and not value > 0:
                raise ValueError(f"Trainer: {name} must be positive, got {value}")
        self.model = model
        self.loss = WeightedLoss(loss)
        self.penalties = named_penalties(penalties)
        modules = [model, *learned(self.penalties).values()]
        place_modules([*modules, *self._loss_modules()], device, devices)
        learnable = [p for m in modules for p in m.parameters() if p.requires_grad]
        self.optimizer = make_optimizer("Trainer", optimizer, learnable)
        check_penalties(self.penalties, self.optimizer)
        self.schedule = _schedule(schedule, self.optimizer)
        self.schedule_each = schedule_each
        self.metrics = metric_functions(metrics, self.loss.scores)
        self.clip_norm, self.clip_value, self.accumulate = clip_norm, clip_value, accumulate
        self.callbacks = [*callbacks, *([Doctor()] if doctor else [])]
        self.class_weight, self.compile = class_weight, compile
        self.progress = check_progress(progress)
        self.generator = None if seed is None else Generator().manual_seed(seed)
        self.history = History()
        self._batch: Batch | None = None
        self._late_batch: Callable[[], Batch] | None = None  # where nobody has asked for it yet
        self.epoch = 0  # how many are finished
        self._stop = ""
        self._best: dict[str, Any] | None = None
        self._stopping: EarlyStopping | None = None
        self._running = self.callbacks
        self._loader: Any = None
        self.placing = Placing(model)
        self.data: tuple[Any, Any] = (None, None)  # loaders of training and validation

    # --- training ---------------------------------------------------------------------------------

    def fit(
        self,
        train: DataLike,
        validation: DataLike | None = None,
        *,
        epochs: int = 10,
        batch_size: int = 32,
        shuffle: bool = True,
        early_stopping: int | EarlyStopping | None = None,
        restore_best: bool | None = None,
        fast_dev_run: bool = False,
        overfit_batches: int = 0,
        resume: str | os.PathLike[str] | None = None,
    ) -> History:
        """Trains for some epochs (in all: a second call goes on) and returns the history.

        Ctrl-C stops after the present batch; with validation data the best weights are kept.

        Args:
            train: a DataLoader, a Dataset, or (x, y) or (x, y, sample_weight) as tensors or arrays.
            validation: the same.
            epochs: how many.
            batch_size: for data that is not a loader.
            shuffle: likewise.
            early_stopping: after how many epochs without improvement to stop, or a callback.
            restore_best: whether to end with the weights of the best epoch, by what early stopping
                monitors (the last one, if there are several), else by validation loss; by default
                if there is early stopping, here or among the callbacks.
            fast_dev_run: one batch of one epoch, to see whether everything fits.
            overfit_batches: trains (and validates) on so many batches only, always the same.
            resume: a checkpoint to go on from, bit for bit.
        """
        if epochs < 0 or overfit_batches < 0:
            raise ValueError(
                f"fit: epochs and overfit_batches must not be negative, got epochs={epochs}, "
                f"overfit_batches={overfit_batches}"
            )
        loader = as_loader(train, self.model, batch_size, shuffle, self.generator)
        held_out = None if validation is None else as_loader(validation, self.model, batch_size)
        # Checkpoints come last: they keep what the others noted.
        callbacks = [*self.callbacks, *_early(early_stopping)]
        callbacks.sort(key=lambda c: isinstance(c, Checkpoint))
        stopping = [c for c in reversed(callbacks) if isinstance(c, EarlyStopping)]
        self._stopping = stopping[0] if stopping else None
        self._running, self._loader = callbacks, loader
        self.placing = Placing(self.model)
        self.placing.begin(self.optimizer)
        # Before the random state is restored: counting the classes draws an order, too.
        self._weights = self.placing.keep_all(class_weights(self.class_weight, loader))
        self._stop = ""
        if resume is not None:
            self.load_checkpoint(resume)
        if fast_dev_run:
            epochs, overfit_batches = self.epoch + 1, 1
        if overfit_batches:
            loader = FirstBatches(loader, overfit_batches)
            held_out = None if held_out is None else loader
        self.data = loader, held_out
        self._call("on_fit_start")
        self._repeater = Repeater(self, epochs)
        bar = progress_of(self.progress, epochs, self.history, length_of(loader))
        try:
            while self.epoch < epochs and not self._stop:
                self._one_epoch(loader, held_out, bar)
            if self._stop:
                self.history.end("stopped", self._stop)
            else:
                self.history.end("finished", f"finished {epochs} epochs")
        except KeyboardInterrupt:
            self.history.end("interrupted", "interrupted by the user")
            restore_best = restore_best is not False
        except BaseException:
            self._call("on_error")
            raise
        finally:
            bar.close()
        if restore_best or (restore_best is None and (stopping or early_stopping is not None)):
            self.restore_best()
        self._call("on_fit_end")
        return self.history

    @property
    def findings(self) -> list[Finding]:
        """What the doctor found, with ``doctor=True``."""
        return [f for c in self.callbacks if isinstance(c, Doctor) for f in c.findings]

    @property
    def batch(self) -> Batch | None:
        """The batch of the present update, the last if there are several."""
        if self._late_batch is not None:
            self.batch = self._late_batch()
        return self._batch

    @batch.setter
    def batch(self, batch: Batch | None) -> None:
        self._batch, self._late_batch = batch, None

    def stop(self, reason: str) -> None:
        """Ends the training after the present epoch."""
        self._stop = reason

    def restore_best(self) -> None:
        """Puts the weights of the best epoch back: see ``restore_best`` of :meth:`fit`."""
        if self._best is not None:
            self.model.load_state_dict(self._best["model"])

    def _loss_modules(self) -> list[nn.Module]:
        return [self.loss.loss] if isinstance(self.loss.loss, nn.Module) else []

    def _call(self, event: str) -> None:
        for callback in self._running:
            getattr(callback, event)(self)

    def _one_epoch(self, loader: Any, held_out: Any, bar: Shown) -> None:
        began = time.perf_counter()
        self._call("on_epoch_start")
        row: dict[str, Any] = {"epoch": self.epoch + 1, **self._train(loader, bar)}
        if held_out is not None:
            row |= {f"val_{k}": v for k, v in self.evaluate(held_out).items()}
        row["lr"] = self._rate()
        row["seconds"] = time.perf_counter() - began
        if self.schedule is not None and self.schedule_each == "epoch":
            self._step_schedule(row.get("val_loss", row["loss"]))
        self.epoch += 1
        self.history.append(row)
        self.history.ran = self._repeater.way
        self._note_best(row)
        bar.epoch_done(row)
        self._call("on_epoch_end")

    def _train(self, loader: Any, bar: Shown) -> dict[str, Any]:
        """One pass over the training data; the means of its losses, and its metrics."""
        if not all([m.training for m in self.model.modules()]):
            self.model.train()
        sampler = getattr(loader, "sampler", None)
        if isinstance(sampler, DistributedSampler):
            sampler.set_epoch(self.epoch)
        sums = Sums(self.metrics, list(self.penalties))
        self._repeater.one_epoch(loader, sums, bar)
        return sums.means()

    def _loss(self, batch: Batch) -> tuple[Any, Tensor, dict[str, Tensor]]:
        output = self.model(*batch.inputs)
        penalties = penalty_values(self.penalties, self.model, batch)
        return output, self.loss(output, batch.target, self.weight_of(batch)), penalties

    def weight_of(self, batch: Batch) -> Tensor | None:
        """The weights of the samples of a batch, with those of their classes; None for none."""
        if self._weights is None:
            return batch.weight
        own = self._weights[batch.target]
        return own if batch.weight is None else own * batch.weight

    def _diverged(self, what: str, batch: Batch, number: int) -> NoReturn:
        report = autopsy(self.model, batch.inputs, batch.target, self.loss, self.optimizer)
        self.optimizer.zero_grad()
        place = f"{what} is not finite in batch {number + 1} of epoch {self.epoch + 1}"
        self.history.end("diverged", f"diverged: {place}")
        raise DivergedError(f"fit: {place}; the weights are those from before this batch.", report)

    def _step_schedule(self, value: float) -> None:
        if isinstance(self.schedule, ReduceLROnPlateau):
            self.schedule.step(value)
        elif self.schedule is not None:
            self.schedule.step()

    def _rate(self) -> float | None:
        lr = self.optimizer.param_groups[0].get("lr")
        return lr if isinstance(lr, (int, float)) else None

    def _note_best(self, row: dict[str, Any]) -> None:
        if self._stopping is not None:
            column, value = self._stopping.watched(row)
        else:
            column, value = "val_loss", row.get("val_loss", math.nan)
        best = self._best
        known = math.inf if best is None or best.get("column") != column else best["value"]
        if value < known:  # which NaN never is
            state = {k: _copy(v) for k, v in self.model.state_dict().items()}
            self._best = {"column": column, "value": value, "epoch": row["epoch"], "model": state}

    # --- looking ----------------------------------------------------------------------------------

    def evaluate(self, data: DataLike, batch_size: int = 256) -> dict[str, float]:
        """The mean loss and the metrics on some data, in evaluation mode."""
        loader = as_loader(data, self.model, batch_size)
        return evaluate(self.model, loader, self.loss, self.metrics)

    def predict(self, x: Features | Mapping[str, Features], batch_size: int = 1024) -> Any:
        """The outputs of the model for inputs x, in evaluation mode.

        A tuple is several arguments, a dict one argument. Where the model returns a tuple or a dict
        of tensors, so does this, each over all samples.
        """
        return predict(self.model, x, batch_size)

    # --- files ------------------------------------------------------------------------------------

    def save_checkpoint(self, path: str | os.PathLike[str]) -> None:
        """Saves all that a run depends on, so that ``fit(..., resume=path)`` goes on with it.

        Of several processes that train together each calls this, and the one of rank 0 writes.
        """
        state = state_of(self)
        processes.once(lambda: save(state, path, folder=False))

    def load_checkpoint(self, path: str | os.PathLike[str]) -> None:
        """Takes everything back that :meth:`save_checkpoint` saved."""
        restore(self, load(path), path)


def _schedule(given: ScheduleLike | None, optimizer: optim.Optimizer) -> LRScheduler | None:
    if given is None or isinstance(given, LRScheduler):
        return given
    other: Any = given  # what steps is a schedule, too, though none of ours
    made = hasattr(other, "step") and not isinstance(other, type)
    return other if made else other(optimizer)


def _early(given: int | EarlyStopping | None) -> list[Events]:
    if given is None:
        return []
    return [given if isinstance(given, EarlyStopping) else EarlyStopping(given)]


def _copy(value: Any) -> Any:
    return clone(value) if isinstance(value, Tensor) else copy.deepcopy(value)

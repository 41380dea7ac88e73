"""The loop: batches, losses, updates, validation, and everything that may end it."""

from __future__ import annotations

import contextlib
import copy
import math
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from chainrule import nn, optim
from chainrule.autograd.modes import inference_mode
from chainrule.files import load, save
from chainrule.inspect.autopsy import Autopsy, autopsy
from chainrule.nn.utils.clip_grad import clip_grad_norm_, clip_grad_value_
from chainrule.ops.creation.conversion import clone
from chainrule.ops.creation.from_data import as_tensor
from chainrule.ops.shape.views import cat
from chainrule.optim.lr_scheduler import ReduceLROnPlateau
from chainrule.optim.minimizer import Minimizer
from chainrule.optim.names import optimizer_class
from chainrule.random import Generator, get_rng_state, set_rng_state
from chainrule.tensor import Tensor
from chainrule.train.batches import (
    Batch,
    FirstBatches,
    as_loader,
    batches,
    floating_dtype,
    to_tensor,
)
from chainrule.train.callbacks import Callback, EarlyStopping
from chainrule.train.history import History
from chainrule.train.losses import WeightedLoss
from chainrule.train.metrics import metric_functions
from chainrule.train.penalties import (
    after_backward,
    changes_gradient,
    check_penalties,
    learned,
    penalty_values,
)
from chainrule.train.progress import Progress
from chainrule.train.weights import class_weights

__all__ = ["DivergedError", "Trainer", "optimizer_for", "named_penalties"]


class DivergedError(RuntimeError):
    """The loss or a gradient is not finite; ``autopsy`` says where that began."""

    def __init__(self, message: str, report: Autopsy):
        super().__init__(f"{message}\n{report}")
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
        callbacks: see :class:`Callback`.
        class_weight: "balanced", or the weight of each class: for targets that are class indices.
        progress: whether to show a bar (on a terminal).
        seed: for the order of the data; by default the global generator gives it.

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
        loss: Any,
        optimizer: Any = None,
        *,
        schedule: Any = None,
        schedule_each: str = "epoch",
        metrics: Any = (),
        penalties: Any = (),
        clip_norm: float | None = None,
        clip_value: float | None = None,
        accumulate: int = 1,
        callbacks: Iterable[Callback] = (),
        class_weight: Any = None,
        progress: bool = True,
        seed: int | None = None,
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
        self.optimizer = _optimizer(optimizer, [model, *learned(self.penalties).values()])
        check_penalties(self.penalties, self.optimizer)
        made = callable(schedule) and not hasattr(schedule, "step")
        self.schedule = schedule(self.optimizer) if made else schedule
        self.schedule_each = schedule_each
        self.metrics = metric_functions(metrics)
        self.clip_norm, self.clip_value, self.accumulate = clip_norm, clip_value, accumulate
        self.callbacks = list(callbacks)
        self.class_weight = class_weight
        self.progress = progress
        self.generator = None if seed is None else Generator().manual_seed(seed)
        self.history = History()
        self.epoch = 0  # how many are finished
        self._stop = ""
        self._best: dict[str, Any] | None = None

    # --- training ---------------------------------------------------------------------------------

    def fit(
        self,
        train: Any,
        validation: Any = None,
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
            restore_best: whether to end with the weights of the best epoch by validation loss; by
                default if ``early_stopping`` is given.
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
        callbacks = [*self.callbacks, *_early(early_stopping)]
        self._running, self._loader = callbacks, loader
        # Before the random state is restored: counting the classes draws an order, too.
        self._weights = class_weights(self.class_weight, loader)
        if resume is not None:
            self.load_checkpoint(resume)
        if fast_dev_run:
            epochs, overfit_batches = self.epoch + 1, 1
        if overfit_batches:
            loader = FirstBatches(loader, overfit_batches)
            held_out = None if held_out is None else loader
        self._stop = ""
        self._call("on_fit_start")
        bar = Progress(self.progress, epochs, self.epoch, _length(loader))
        try:
            while self.epoch < epochs and not self._stop:
                self._one_epoch(loader, held_out, bar)
        except KeyboardInterrupt:
            self._stop = "interrupted by the user"
            restore_best = restore_best is not False
        finally:
            bar.close()
        self.history.stopped = self._stop or f"finished {epochs} epochs"
        if restore_best or (restore_best is None and early_stopping is not None):
            self.restore_best()
        self._call("on_fit_end")
        return self.history

    def stop(self, reason: str) -> None:
        """Ends the training after the present epoch."""
        self._stop = reason

    def restore_best(self) -> None:
        """Puts the weights of the epoch with the lowest validation loss back."""
        if self._best is not None:
            self.model.load_state_dict(self._best["model"])

    def _call(self, event: str) -> None:
        for callback in self._running:
            getattr(callback, event)(self)

    def _one_epoch(self, loader: Any, held_out: Any, bar: Progress) -> None:
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
        self._note_best(row)
        bar.epoch_done(row)
        self._call("on_epoch_end")

    def _train(self, loader: Any, bar: Progress) -> dict[str, Any]:
        """One pass over the training data; the means of its losses, and its metrics."""
        self.model.train()
        totals, n = dict.fromkeys(("loss", *self.penalties), 0.0), 0
        outputs: list[Any] = []
        targets: list[Any] = []
        group: list[Batch] = []
        length = _length(loader)
        for i, batch in enumerate(batches(loader)):
            group.append(batch)
            if len(group) == self.accumulate or i + 1 == length:
                for key, value in self._update(group, i, outputs, targets).items():
                    totals[key] += value
                n += sum([b.size for b in group])
                group = []
            bar.batch_done(totals["loss"] / max(1, n))
        if group:
            for key, value in self._update(group, i, outputs, targets).items():
                totals[key] += value
            n += sum([b.size for b in group])
        if n == 0:
            raise ValueError("fit: the training data has no batches")
        means = {key: value / n for key, value in totals.items()}
        if self.metrics:
            means |= self._measure(cat(outputs), cat(targets))
        return means

    def _update(
        self, group: list[Batch], number: int, outputs: list[Any], targets: list[Any]
    ) -> dict[str, float]:
        """One update from the batches of a group; their losses times their sizes, summed."""
        count = sum([b.size for b in group])
        totals: dict[str, float] = {}
        before = len(outputs)

        def closure() -> Tensor:
            """The loss of the group, with its gradient."""
            totals.clear()
            del outputs[before:], targets[before:]  # of an earlier call in the same step
            self.optimizer.zero_grad()
            whole = None
            for batch in group:
                output, loss, penalties = self._loss(batch)
                self._note(totals, "loss", float(loss.detach()) * batch.size)
                for name, value in penalties.items():
                    self._note(totals, name, float(value.detach()) * batch.size)
                if not math.isfinite(totals["loss"]):
                    self._diverged("the loss", batch, number)
                for name, value in penalties.items():
                    if not changes_gradient(self.penalties[name]):
                        loss = loss + value
                part = loss if len(group) == 1 else loss * (batch.size / count)
                if self._differentiates:
                    whole = part if whole is None else whole + part
                else:
                    part.backward()
                    whole = part.detach() if whole is None else whole + part.detach()
                if self.metrics:
                    outputs.append(output.detach())
                    targets.append(batch.target)
            return whole  # type: ignore[return-value]

        if self._differentiates:
            self.optimizer.step(closure)
        elif isinstance(self.optimizer, optim.LBFGS):
            self.optimizer.step(closure)
        else:
            closure()
            after_backward(self.penalties, self.model, group)
            self._clip()
            try:
                self.optimizer.step()
            except RuntimeError as error:
                if "no parameter was changed" not in str(error):
                    raise
                self._diverged("a gradient", group[-1], number)
        if self.schedule is not None and self.schedule_each == "batch":
            self._step_schedule(totals["loss"] / count)
        self._call("on_batch_end")
        return totals

    @property
    def _differentiates(self) -> bool:
        """Whether the optimizer takes the derivatives of the loss itself."""
        return isinstance(self.optimizer, Minimizer)

    @staticmethod
    def _note(totals: dict[str, float], name: str, value: float) -> None:
        totals[name] = totals.get(name, 0.0) + value

    def _loss(self, batch: Batch) -> tuple[Any, Tensor, dict[str, Tensor]]:
        output = self.model(*batch.inputs)
        weight = batch.weight
        if self._weights is not None:
            own = self._weights[batch.target]
            weight = own if weight is None else own * weight
        penalties = penalty_values(self.penalties, self.model, batch)
        return output, self.loss(output, batch.target, weight), penalties

    def _clip(self) -> None:
        if self.clip_value is not None:
            clip_grad_value_(self.model.parameters(), self.clip_value)
        if self.clip_norm is not None:
            clip_grad_norm_(self.model.parameters(), self.clip_norm)

    def _diverged(self, what: str, batch: Batch, number: int) -> None:
        report = autopsy(self.model, batch.inputs, batch.target, self.loss)
        self.optimizer.zero_grad()
        raise DivergedError(
            f"fit: {what} is not finite in batch {number + 1} of epoch {self.epoch + 1}; the "
            "weights are those from before this batch.",
            report,
        )

    def _step_schedule(self, value: float) -> None:
        if isinstance(self.schedule, ReduceLROnPlateau):
            self.schedule.step(value)
        else:
            self.schedule.step()

    def _rate(self) -> Any:
        lr = self.optimizer.param_groups[0].get("lr")
        return lr if isinstance(lr, (int, float)) else None

    def _note_best(self, row: dict[str, Any]) -> None:
        value = row.get("val_loss")
        if value is None or (self._best is not None and value >= self._best["value"]):
            return
        state = {k: _copy(v) for k, v in self.model.state_dict().items()}
        self._best = {"value": value, "epoch": row["epoch"], "model": state}

    # --- looking ----------------------------------------------------------------------------------

    def evaluate(self, data: Any, batch_size: int = 256) -> dict[str, float]:
        """The mean loss and the metrics on some data, in evaluation mode."""
        loader = as_loader(data, self.model, batch_size)
        total, n = 0.0, 0.0
        outputs, targets = [], []
        with _evaluating(self.model), inference_mode():
            for batch in batches(loader):
                output = self.model(*batch.inputs)
                size = batch.size if batch.weight is None else float(batch.weight.sum())
                total += float(self.loss(output, batch.target, batch.weight)) * size
                n += size
                outputs.append(output)
                targets.append(batch.target)
            if n == 0:
                raise ValueError("evaluate: the data has no batches")
            measured = self._measure(cat(outputs), cat(targets)) if self.metrics else {}
        return {"loss": total / n, **measured}

    def _measure(self, output: Tensor, target: Tensor) -> dict[str, float]:
        return {name: float(metric(output, target)) for name, metric in self.metrics.items()}

    def predict(self, x: Any, batch_size: int = 1024) -> Tensor:
        """The outputs of the model for inputs x, in evaluation mode."""
        several = x if isinstance(x, tuple) else (x,)
        inputs = [to_tensor(part, floating_dtype(self.model)) for part in several]
        with _evaluating(self.model), inference_mode():
            parts = [
                self.model(*[t[i : i + batch_size] for t in inputs])
                for i in range(0, max(1, int(inputs[0].shape[0])), batch_size)
            ]
        return clone(parts[0] if len(parts) == 1 else cat(parts))

    # --- files ------------------------------------------------------------------------------------

    def save_checkpoint(self, path: str | os.PathLike[str]) -> None:
        """Saves all that a run depends on, so that ``fit(..., resume=path)`` goes on with it."""
        loader: Any = getattr(self, "_loader", None)
        save(
            {
                "epoch": self.epoch,
                "model": dict(self.model.state_dict()),
                "optimizer": self.optimizer.state_dict(),
                "schedule": None if self.schedule is None else self.schedule.state_dict(),
                "random": as_tensor(get_rng_state()),
                "generator": None if self.generator is None else self.generator.get_state(),
                "loader": loader.state_dict() if hasattr(loader, "state_dict") else None,
                "history": self.history.rows,
                "penalties": {k: dict(p.state_dict()) for k, p in learned(self.penalties).items()},
                "best": self._best,
                "callbacks": [c.state_dict() for c in getattr(self, "_running", self.callbacks)],
            },
            path,
            folder=False,
        )

    def load_checkpoint(self, path: str | os.PathLike[str]) -> None:
        """Takes everything back that :meth:`save_checkpoint` saved."""
        kept = load(path)
        missing = {"model", "optimizer", "epoch", "random"} - set(kept)
        if missing:
            raise ValueError(f"fit: {path} is not a checkpoint of a Trainer: it lacks {missing}")
        running = getattr(self, "_running", self.callbacks)
        if len(kept["callbacks"]) != len(running):
            raise ValueError(
                f"fit: the checkpoint {path} was made with {len(kept['callbacks'])} callbacks, "
                f"this trainer has {len(running)}; resume with the same ones"
            )
        if (kept["schedule"] is None) != (self.schedule is None):
            raise ValueError(f"fit: the checkpoint {path} and this trainer differ in the schedule")
        own = learned(self.penalties)
        if set(kept.get("penalties", ())) != set(own):
            raise ValueError(f"fit: the checkpoint {path} and this trainer differ in the penalties")
        self.model.load_state_dict(kept["model"])
        for name, module in own.items():
            module.load_state_dict(kept["penalties"][name])
        self.optimizer.load_state_dict(kept["optimizer"])
        if self.schedule is not None:
            self.schedule.load_state_dict(kept["schedule"])
        for callback, state in zip(running, kept["callbacks"], strict=True):
            callback.load_state_dict(state)
        self.history = History(kept["history"])
        self.epoch, self._best = kept["epoch"], kept["best"]
        loader: Any = getattr(self, "_loader", None)
        if kept["loader"] is not None and hasattr(loader, "load_state_dict"):
            loader.load_state_dict(kept["loader"])
        if self.generator is not None and kept["generator"] is not None:
            self.generator.set_state(kept["generator"])
        set_rng_state(kept["random"])


def _optimizer(optimizer: Any, modules: list[nn.Module]) -> Any:
    """An optimizer for some modules: the one given, or of the class or name given."""
    if isinstance(optimizer, optim.Optimizer):
        return optimizer
    return optimizer_for(optimizer, [p for m in modules for p in m.parameters() if p.requires_grad])


def optimizer_for(optimizer: Any, params: list[Tensor]) -> Any:
    """An optimizer of some parameters by its name (default: Adam), class or function."""
    if optimizer is None:
        optimizer = optim.Adam
    if isinstance(optimizer, str):
        optimizer = optimizer_class(optimizer, "Trainer")
    made = optimizer(params)
    if not isinstance(made, optim.Optimizer):
        raise TypeError(f"Trainer: expected an optimizer, got {type(made).__name__}")
    return made


def named_penalties(given: Any) -> dict[str, Callable[[nn.Module], Tensor]]:
    """Penalties by name."""
    if isinstance(given, Mapping):
        return dict(given)
    listed: Sequence[Any] = [given] if callable(given) else list(given)
    named: dict[str, Any] = {}
    for one in listed:
        name: str = getattr(one, "name", "") or getattr(one, "__name__", type(one).__name__.lower())
        while name in named:
            name += "'"
        named[name] = one
    return named


def _early(given: int | EarlyStopping | None) -> list[Callback]:
    if given is None:
        return []
    return [given if isinstance(given, Callback) else EarlyStopping(given)]


def _length(loader: Any) -> int | None:
    try:
        return len(loader)
    except TypeError:
        return None


def _copy(value: Any) -> Any:
    return clone(value) if isinstance(value, Tensor) else copy.deepcopy(value)


@contextlib.contextmanager
def _evaluating(model: nn.Module) -> Any:
    """Evaluation mode, and afterwards each module as it was."""
    modes = [(m, m.training) for m in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, training in modes:
            module.training = training

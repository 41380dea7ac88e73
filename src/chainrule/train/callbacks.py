"""What happens beside the training steps: stopping early, checkpoints, a look at the gradients."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from chainrule.backend import processes
from chainrule.inspect.training.watch import Watch

if TYPE_CHECKING:
    from chainrule.train.history import History
    from chainrule.train.trainer import Trainer

__all__ = ["Callback", "Checkpoint", "EarlyStopping", "Events", "GradientNorms", "LambdaCallback"]


class Callback:
    """Called by the :class:`Trainer` at the points its methods name.

    A callback ends the training by ``trainer.stop("why")``. What it has to remember when a run is
    resumed it returns from ``state_dict``. One with ``gradients_only`` looks at nothing but the
    gradients in ``on_backward_end``, which then may be called after the update, if nothing clips.
    """

    gradients_only = False

    def on_fit_start(self, trainer: Trainer) -> None:
        """Before the first epoch."""

    def on_epoch_start(self, trainer: Trainer) -> None:
        """Before the batches of an epoch."""

    def on_backward_end(self, trainer: Trainer) -> None:
        """When the gradients of an update are there, before they are clipped."""

    def on_batch_end(self, trainer: Trainer) -> None:
        """After an update; the gradients are those it was made with."""

    def on_epoch_end(self, trainer: Trainer) -> None:
        """After validation, when the row of the epoch stands in ``trainer.history``."""

    def on_fit_end(self, trainer: Trainer) -> None:
        """After the last epoch, also if training was interrupted."""

    def on_error(self, trainer: Trainer) -> None:
        """When the training ends by an error, which is raised again afterwards."""

    def state_dict(self) -> dict[str, Any]:
        """What has to be restored when a run is resumed."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Takes back what ``state_dict`` gave."""


@runtime_checkable
class Events(Protocol):
    """What the trainer calls: a :class:`Callback`, or any object with its methods."""

    def on_fit_start(self, trainer: Any) -> None: ...
    def on_epoch_start(self, trainer: Any) -> None: ...
    def on_backward_end(self, trainer: Any) -> None: ...
    def on_batch_end(self, trainer: Any) -> None: ...
    def on_epoch_end(self, trainer: Any) -> None: ...
    def on_fit_end(self, trainer: Any) -> None: ...
    def on_error(self, trainer: Any) -> None: ...
    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, state: dict[str, Any]) -> None: ...


class Watched(Protocol):
    """What early stopping sees of a run: a trainer, or one network of many."""

    @property
    def history(self) -> History: ...
    def stop(self, reason: str) -> None: ...


class LambdaCallback(Callback):
    """A callback of plain functions: ``LambdaCallback(on_epoch_end=lambda trainer: ...)``."""

    def __init__(self, **functions: Callable[[Trainer], object]):
        for name, function in functions.items():
            if not name.startswith("on_") or not hasattr(Callback, name):
                known = [n for n in vars(Callback) if n.startswith("on_")]
                raise TypeError(f"LambdaCallback: there is no event {name!r}; select from {known}")
            setattr(self, name, function)


class EarlyStopping(Callback):
    """Stops when a column of the history has not improved for some epochs.

    The trainer then restores the weights of the epoch in which that column was best.

    Args:
        patience: how many epochs without improvement to wait.
        monitor: the column: "val_loss", or "loss" where there is no validation.
        min_delta: what counts as an improvement.
        mode: "min" or "max", by default "min" for losses and errors, else "max".
    """

    def __init__(
        self,
        patience: int = 10,
        monitor: str | None = None,
        min_delta: float = 0.0,
        mode: str | None = None,
    ):
        if patience < 1 or min_delta < 0:
            raise ValueError(
                f"EarlyStopping: patience must be positive and min_delta not negative, got "
                f"patience={patience}, min_delta={min_delta}"
            )
        if mode not in (None, "min", "max"):
            raise ValueError(f"EarlyStopping: mode must be 'min' or 'max', got {mode!r}")
        self.patience, self.monitor, self.min_delta, self.mode = patience, monitor, min_delta, mode
        self.best, self.waited = math.inf, 0

    def watched(self, row: Mapping[str, Any]) -> tuple[str, float]:
        """The column that counts, and its value in a row of the history: lower is better."""
        column = self.monitor or ("val_loss" if "val_loss" in row else "loss")
        if row.get(column) is None:
            raise KeyError(
                f"EarlyStopping: the history has no column {column!r}; it has {list(row)}"
            )
        return column, row[column] * (-1 if _mode(self.mode, column) == "max" else 1)

    def on_fit_start(self, trainer: Watched) -> None:
        if not len(trainer.history):
            self.best, self.waited = math.inf, 0

    def on_epoch_end(self, trainer: Watched) -> None:
        column, value = self.watched(trainer.history[-1])
        if value < self.best - self.min_delta:
            self.best, self.waited = value, 0
            return
        self.waited += 1
        if self.waited >= self.patience:
            trainer.stop(f"{column} has not improved for {self.patience} epochs")

    def state_dict(self) -> dict[str, Any]:
        return {"best": self.best, "waited": self.waited}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.best, self.waited = state["best"], state["waited"]


def _mode(mode: str | None, column: str) -> str:
    small = ("loss", "error", "mse", "mae", "nll", "risk", "perplexity")
    return mode or ("min" if any(s in column for s in small) else "max")


class Checkpoint(Callback):
    """Saves all that is needed to resume, every so many epochs, atomically.

    Whatever its place among the callbacks, it is the last to hear of the end of an epoch. Of
    several processes the one of rank 0 writes; a run goes on in any number of them.

    Args:
        path: the file.
        every: after how many epochs.
        seconds: how much time has to pass before the first and from one to the next.
    """

    def __init__(self, path: str | os.PathLike[str], every: int = 1, seconds: float = 0.0):
        if every < 1 or not seconds >= 0:
            raise ValueError(
                "Checkpoint: every must be positive and seconds not negative, got "
                f"every={every}, seconds={seconds}"
            )
        self.path, self.every, self.seconds = Path(path), every, seconds
        self._written = 0.0

    def on_fit_start(self, trainer: Trainer) -> None:
        self._written = time.monotonic()

    def on_epoch_end(self, trainer: Trainer) -> None:
        if trainer.epoch % self.every:
            return
        waited = time.monotonic() - self._written
        if not self.seconds or processes.agreed(waited >= self.seconds):
            self.write(trainer)
            self._written = time.monotonic()

    def write(self, trainer: Trainer) -> None:
        """Writes the file now."""
        trainer.save_checkpoint(self.path)


class GradientNorms(Callback):
    """Keeps the norm of each parameter's gradient, averaged over updates of each epoch.

    It is the norm before clipping, of every update or, with ``every``, of each so many.
    ``norms[name]`` is a list with a number for each epoch; layers whose gradients vanish or explode
    show in it. :class:`chainrule.inspect.Watch` shows more: distributions, activations, updates.
    """

    gradients_only = True

    def __init__(self, every: int = 1) -> None:
        if every < 1:
            raise ValueError(f"GradientNorms: every must be positive, got {every}")
        self.every = every
        self.norms: dict[str, list[float]] = {}
        self._begin()

    def _begin(self) -> None:
        self._seen, self._count, self._updates = Watch(what="grad", every=1, detail="norm"), 0, 0

    def on_epoch_start(self, trainer: Trainer) -> None:
        self._begin()

    def on_backward_end(self, trainer: Trainer) -> None:
        self._updates += 1
        if self._updates % self.every != 1 % self.every:
            return
        self._count += 1
        self._seen.look_at_gradients(trainer.model)

    def on_epoch_end(self, trainer: Trainer) -> None:
        for name, series in self._seen.series.get("grad", {}).items():
            mean = sum(series.values("norm")) / max(1, self._count)
            self.norms.setdefault(name, []).append(mean)

    def state_dict(self) -> dict[str, Any]:
        return {"norms": self.norms}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.norms = state["norms"]

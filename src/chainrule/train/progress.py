"""What shows how far a training run is: a bar with its loss and metrics, or curves."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Literal

from tqdm.auto import tqdm

from chainrule.backend import processes
from chainrule.train.history import History
from chainrule.train.live.plot import LivePlot

__all__ = ["Progress", "ProgressLike", "check_progress", "Shown", "progress_of"]

ProgressLike = bool | Literal["bar", "plot"]


def check_progress(given: ProgressLike) -> ProgressLike:
    """What was asked for, if it is one of these."""
    if given not in (True, False, "bar", "plot"):
        raise ValueError(
            f"Trainer: progress must be True or 'bar', 'plot', or False, got {given!r}"
        )
    return given


def progress_of(how: ProgressLike, epochs: int, history: History, batches: int | None) -> Shown:
    """What shows a run that goes on from a history: a bar, curves, or nothing.

    Of several processes the one of rank 0 shows it.
    """
    how = how if processes.is_writer() else False
    if how == "plot":
        return LivePlot(epochs, history, batches)
    return Progress(bool(how), epochs, len(history), batches)


class Progress:
    """A bar over all batches, drawn a few times a second at most, on a terminal only.

    Beside it stand the loss and the metrics of the epoch so far, and the last validation.
    """

    interval = 0.25  # seconds between looks at the loss

    def __init__(self, show: bool, epochs: int, done: int, batches: int | None):
        self.bar: Any = None
        if show:
            total = None if batches is None else epochs * batches
            self.bar = tqdm(total=total, initial=done * (batches or 0), disable=None, leave=True)
            if self.bar.disable:
                self.bar = None
        self.epochs, self.epoch, self.waiting, self.shown = epochs, done, 0, 0.0
        self.last: list[str] = []

    def batch_done(
        self, total: float, samples: int, metrics: Callable[[], dict[str, float]]
    ) -> None:
        """Counts a batch; the bar hears of it, and the metrics are asked for, only now and then.

        ``total`` is the sum of the losses of all samples of the epoch so far.
        """
        if self.bar is None:
            return
        self.waiting += 1
        now = time.perf_counter()
        if now - self.shown > self.interval:
            text = _listed({"loss": total / max(1, samples), **_if_known(metrics)})
            self.bar.set_postfix_str(", ".join([text, *self.last]), refresh=False)
            self.bar.update(self.waiting)
            self.waiting, self.shown = 0, now

    def epoch_done(self, row: dict[str, Any]) -> None:
        """Shows the epoch, its loss and metrics, and its validation."""
        if self.bar is None:
            return
        self.epoch += 1
        self.bar.set_description_str(f"epoch {self.epoch}/{self.epochs}", refresh=False)
        seen = {k: v for k, v in row.items() if k not in ("epoch", "lr", "seconds")}
        self.last = [_listed(held)] if (held := _held_out(seen)) else []
        self.bar.set_postfix_str(_listed(seen), refresh=False)

    def close(self) -> None:
        """Takes the bar away."""
        if self.bar is not None:
            self.bar.update(self.waiting)
            self.bar.close()


Shown = Progress | LivePlot


def _listed(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{k} {v:.4g}" for k, v in values.items() if v is not None)


def _held_out(row: Mapping[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in row.items() if k.startswith("val_")}


def _if_known(metrics: Callable[[], dict[str, float]]) -> dict[str, float]:
    """The metrics so far; nothing where a part of an epoch has none (one class, for example)."""
    try:
        return metrics()
    except ValueError:
        return {}

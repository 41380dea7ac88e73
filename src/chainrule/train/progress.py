"""A bar for a training run that costs nothing measurable."""

from __future__ import annotations

import time
from typing import Any

from tqdm.auto import tqdm

__all__ = ["Progress"]


class Progress:
    """A bar over all batches, drawn a few times a second at most, on a terminal only."""

    interval = 0.25  # seconds between looks at the loss

    def __init__(self, show: bool, epochs: int, done: int, batches: int | None):
        self.bar: Any = None
        if show:
            total = None if batches is None else epochs * batches
            self.bar = tqdm(total=total, initial=done * (batches or 0), disable=None, leave=True)
            if self.bar.disable:
                self.bar = None
        self.epochs, self.epoch, self.waiting, self.shown = epochs, done, 0, 0.0
        self.last = ""

    def batch_done(self, loss: float) -> None:
        """Counts a batch; the bar hears of it only now and then."""
        if self.bar is None:
            return
        self.waiting += 1
        now = time.perf_counter()
        if now - self.shown > self.interval:
            self.bar.set_postfix_str(f"loss {loss:.4g}{self.last}", refresh=False)
            self.bar.update(self.waiting)
            self.waiting, self.shown = 0, now

    def epoch_done(self, row: dict[str, Any]) -> None:
        """Shows the epoch and its validation."""
        if self.bar is None:
            return
        self.epoch += 1
        self.bar.set_description_str(f"epoch {self.epoch}/{self.epochs}", refresh=False)
        held_out = [f"{k} {v:.4g}" for k, v in row.items() if k.startswith("val_")]
        self.last = "".join(f", {text}" for text in held_out)

    def close(self) -> None:
        """Takes the bar away."""
        if self.bar is not None:
            self.bar.update(self.waiting)
            self.bar.close()

"""Curves of a run while it runs, in the place of a bar."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from chainrule.train.live.curves import Curves
from chainrule.train.live.pace import Pace
from chainrule.train.live.screens import Notebook, Paper, Terminal, screen_for

__all__ = ["LivePlot"]


class LivePlot:
    """Draws the loss of each step, and the numbers of each epoch, again and again.

    Drawing takes at most 1 % of the time of the run; the last state is always drawn.
    """

    def __init__(
        self,
        epochs: int,
        rows: Iterable[Mapping[str, Any]],
        batches: int | None,
        screen: Notebook | Terminal | Paper | None = None,
        pace: Pace | None = None,
    ):
        self.epochs, self.curves = epochs, Curves(rows, batches)
        self.screen = screen_for() if screen is None else screen
        self.pace = Pace() if pace is None else pace
        self._total, self._samples = 0.0, 0

    def batch_done(
        self, total: float, samples: int, metrics: Callable[[], dict[str, float]]
    ) -> None:
        """Notes a step by the sum of losses, and the number of samples, of the epoch so far."""
        if samples > self._samples:
            self.curves.add_step((total - self._total) / (samples - self._samples))
            self._total, self._samples = total, samples
        if self.pace.due():
            self.pace.do(self._show)

    def epoch_done(self, row: dict[str, Any]) -> None:
        """Notes the numbers of an epoch."""
        self.curves.add_epoch(row)
        self._total, self._samples = 0.0, 0
        if self.pace.due():
            self.pace.do(self._show)

    def close(self) -> None:
        """Draws the last state."""
        if panels := self.curves.panels():
            self.screen.close(panels, self._status())

    def _show(self) -> None:
        if panels := self.curves.panels():
            self.screen.show(panels, self._status())

    def _status(self) -> str:
        rows = self.curves.rows
        parts = [f"epoch {len(rows)}/{self.epochs}", f"{self.pace.clock() - self.pace.began:.0f} s"]
        known = [(row["val_loss"], i) for i, row in enumerate(rows, 1) if "val_loss" in row]
        if known:
            value, epoch = min(known)
            parts.append(f"best val_loss {value:.4g} in epoch {epoch}")
        if rows and rows[-1].get("lr") is not None:
            parts.append(f"lr {rows[-1]['lr']:.3g}")
        return ", ".join(parts)

"""The record of a training run: a table with one row for each epoch."""

from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from chainrule.files import write_atomically
from chainrule.printing import text_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame

__all__ = ["Ending", "History"]

# Why a training ended: all epochs are done, a callback stopped it, the user did, or a loss or a
# gradient was not finite; nothing while it has not.
Ending = Literal["", "finished", "stopped", "interrupted", "diverged"]


class History:
    """One row per epoch: losses, penalties, metrics, learning rate, seconds.

    ``history["val_loss"]`` is a column, ``history[-1]`` a row; printed, it is a table. ``stopped``
    says in words why training ended, ``ending`` in one: "finished", "stopped", "interrupted" or
    "diverged". ``ran`` says how the updates of the last epoch ran: "compiled epochs", "compiled
    steps", or "eager: " and why.

    >>> from chainrule.train import History
    >>> history = History([{"epoch": 1, "loss": 0.5}, {"epoch": 2, "loss": 0.25}])
    >>> history["loss"], history.best("loss")
    ([0.5, 0.25], {'epoch': 2, 'loss': 0.25})
    """

    def __init__(self, rows: list[dict[str, Any]] | None = None, stopped: str = ""):
        self.rows = [dict(row) for row in rows or []]
        self.stopped = stopped
        self.ending: Ending = ""
        self.ran = ""

    def end(self, ending: Ending, reason: str) -> None:
        """Notes why training ended."""
        self.ending, self.stopped = ending, reason

    def append(self, row: dict[str, Any]) -> None:
        """Adds an epoch."""
        self.rows.append(dict(row))

    @property
    def columns(self) -> list[str]:
        """The names of all columns, in the order in which they appeared."""
        return list(dict.fromkeys(name for row in self.rows for name in row))

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows)

    def __contains__(self, name: str) -> bool:
        return name in self.columns

    @overload
    def __getitem__(self, key: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, key: slice) -> list[dict[str, Any]]: ...
    @overload
    def __getitem__(self, key: str) -> list[Any]: ...
    def __getitem__(self, key: int | slice | str) -> Any:
        if isinstance(key, (int, slice)):
            return self.rows[key]
        if key not in self.columns:
            raise KeyError(f"history has no column {key!r}; it has {self.columns}")
        return [row.get(key) for row in self.rows]

    def best(self, column: str = "val_loss", mode: str = "min") -> dict[str, Any]:
        """The row in which a column was lowest (or highest, with ``mode="max"``)."""
        if mode not in ("min", "max"):
            raise ValueError(f"best: mode must be 'min' or 'max', got {mode!r}")
        values = self[column]
        known = [i for i, v in enumerate(values) if v is not None and not math.isnan(v)]
        if not known:
            raise ValueError(f"best: the column {column!r} has no numbers")
        choose = min if mode == "min" else max
        return self.rows[choose(known, key=lambda i: values[i])]

    def to_csv(self, path: str | os.PathLike[str] | None = None) -> str:
        """The table as comma-separated text; written to a file if a path is given."""
        text = io.StringIO()
        writer = csv.DictWriter(text, self.columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.rows)
        if path is not None:
            write_atomically(Path(path), text.getvalue().encode())
        return text.getvalue()

    def to_pandas(self) -> DataFrame:
        """The table as a pandas frame (pandas must be installed)."""
        import pandas

        return pandas.DataFrame(self.rows, columns=self.columns)

    def plot(
        self,
        axes: Sequence[Axes] | None = None,
        *,
        columns: Sequence[str] | None = None,
        **style: Any,
    ) -> list[Axes]:
        """Draws losses, metrics and the learning rate over the epochs, a panel each.

        Training and validation share a panel; an axis is logarithmic where positive values span two
        decades. The numbers are those of ``inspect.learning_curves(history)``.

        Args:
            axes: as many as there are panels; a new figure without them.
            columns: which curves, by name.
            style: of the lines, as matplotlib calls it.
        """
        from chainrule.inspect.results.learning import learning_curves

        return learning_curves(self, columns).plot(axes, **style)

    def __str__(self) -> str:
        names = self.columns
        cells = [[_cell(row.get(name)) for name in names] for row in self.rows]
        table = text_table(names, cells, left=0)
        return f"{table}\nstopped: {self.stopped}" if self.stopped else table

    def __repr__(self) -> str:
        return f"History({len(self)} epochs; columns: {', '.join(self.columns)})"


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return "" if value is None else str(value)

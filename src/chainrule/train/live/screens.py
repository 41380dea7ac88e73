"""Where curves are shown: a terminal, a notebook, or a file that keeps the last state."""

from __future__ import annotations

import math
import os
import shutil
import sys
from collections.abc import Mapping
from typing import Any, TextIO

from chainrule.charts import spans_decades
from chainrule.inspect.core.svg import curve_chart
from chainrule.train.live.curves import STEP, Points
from chainrule.train.live.text import Frame, Look, text_chart, visible

__all__ = ["Notebook", "Paper", "Terminal", "screen_for"]

Panels = Mapping[str, Mapping[str, Points]]
WIDEST, HIGHEST = 100, 16  # characters of a chart


def screen_for(file: TextIO | None = None) -> Notebook | Terminal | Paper:
    """The screen that there is: a notebook, a terminal, or none."""
    display = _notebook_display()
    if display is not None:
        return Notebook(display)
    file = sys.stderr if file is None else file
    moves = file.isatty() and os.environ.get("TERM") != "dumb"
    return Terminal(file) if moves else Paper(file)


def _notebook_display() -> Any:
    """IPython's module of displays in a notebook's kernel; none elsewhere."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if shell is None or not hasattr(shell, "kernel"):
        return None
    import IPython.display  # type: ignore[import-not-found, unused-ignore]

    return IPython.display


class Paper:
    """A file or a pipe: nothing moves there, so only the last state is written, as plain text."""

    def __init__(self, file: TextIO):
        self.file = file

    def show(self, panels: Panels, status: str) -> None:
        """Writes nothing: there is more to come."""

    def close(self, panels: Panels, status: str) -> None:
        """Writes the chart."""
        look = Look(_has_braille(self.file), color=False)
        lines = drawn(panels, status, (WIDEST - 20, HIGHEST + 8), look)
        self.file.write("\n".join(lines) + "\n")


class Terminal:
    """A terminal, in which each state is written over the last one, whatever its size is now."""

    def __init__(self, file: TextIO):
        self.file = file
        self.look = Look(_has_braille(file), color="NO_COLOR" not in os.environ)
        self.lengths: list[int] = []  # of the lines that stand there

    def show(self, panels: Panels, status: str) -> None:
        """Draws the state in the place of the last one."""
        columns, rows = _size(self.file)
        lines = drawn(panels, status, (columns - 1, rows - 2), self.look)
        # A window that became narrower has broken the lines that were longer.
        height = sum(max(1, math.ceil(n / columns)) for n in self.lengths)
        up = f"\x1b[{min(height, rows - 1)}A\r" if height else ""
        self.file.write(up + "".join(f"{line}\x1b[K\n" for line in lines) + "\x1b[J")
        self.file.flush()
        self.lengths = [visible(line) for line in lines]

    close = show


class Notebook:
    """A cell of a notebook, whose picture is replaced."""

    def __init__(self, display: Any):
        self.display, self.handle = display, None

    def show(self, panels: Panels, status: str) -> None:
        """Draws the state in the place of the last one."""
        page = self.display.HTML(html_of(panels, status))
        if self.handle is None:
            self.handle = self.display.display(page, display_id=True)
        else:
            self.handle.update(page)

    close = show


def html_of(panels: Panels, status: str) -> str:
    """Charts as SVG text and a line below them."""
    charts = [
        curve_chart(
            curves,
            name,
            log=spans_decades(y for points in curves.values() for _, y in points),
            faint=(STEP,),
        )
        for name, curves in panels.items()
    ]
    shown = "".join(charts)
    return f'<div style="display:flex;flex-wrap:wrap;gap:8px">{shown}</div><div>{status}</div>'


def drawn(panels: Panels, status: str, size: tuple[int, int], look: Look) -> list[str]:
    """As many charts as there is room for, the loss first, and a line below them."""
    width, height = size
    lines: list[str] = []
    if width >= 40 and height >= 9:
        room = max(1, min(len(panels), (height - 1) // 11))
        each = min(HIGHEST, (height - 1) // room)
        shown = dict(list(panels.items())[:room])
        frame = Frame.of(shown.values(), min(width, WIDEST))
        for name, curves in shown.items():
            lines += text_chart(curves, name, each, frame, look)
    return [*lines, status[: max(1, width)]]


def _size(file: TextIO) -> tuple[int, int]:
    """Columns and rows of a terminal now."""
    try:
        columns, rows = os.get_terminal_size(file.fileno())
    except (OSError, ValueError):
        columns, rows = shutil.get_terminal_size()
    return (columns or 80), (rows or 24)


def _has_braille(file: TextIO) -> bool:
    try:
        "⣿│".encode(getattr(file, "encoding", None) or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return False
    return True

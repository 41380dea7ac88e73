"""docs/reliability.md: the table of what was tried and what came of it, written by the command."""

from __future__ import annotations

import datetime
import platform
import re
from dataclasses import dataclass
from pathlib import Path

from chainrule import __version__, backend
from reliability.cases import MEMORY, SECONDS
from reliability.load import PROCESSES, THREADS
from reliability.runner import Result

__all__ = ["PAGE", "Row", "rows_of", "written"]

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reliability.md"
COLUMNS = ("kind", "what has to come of it", "cases", "refused", "failures", "seconds", "seed")
HEAD = f"| {' | '.join((*COLUMNS, 'run with'))} |"
ROW = re.compile(r"^\| (.+) \|$")

TEXT = Path(__file__).with_name("reliability.md.in").read_text("utf-8")


@dataclass
class Row:
    """One line of the table."""

    kind: str
    cells: tuple[str, ...]

    @classmethod
    def of(cls, result: Result, rule: str, seed: int) -> Row:
        """The line of what was just run."""
        day = datetime.datetime.now(datetime.UTC).date().isoformat()
        system = f"{platform.system()} {platform.machine()}"
        about = f"chainrule {__version__}, {backend.current()} kernels, Python "
        about += f"{platform.python_version()}, {system}, {day}"
        refused = f"{result.refused:,}" if result.refused else ""
        numbers = (f"{result.tried:,}", refused, f"{len(result.failures):,}")
        return cls(result.name, (rule, *numbers, f"{result.seconds:,.0f}", str(seed), about))

    def __str__(self) -> str:
        return f"| {' | '.join((self.kind, *self.cells))} |"


def rows_of(text: str) -> dict[str, Row]:
    """The lines of the table in a page, by their kinds."""
    found = {}
    for line in text.splitlines():
        match = ROW.match(line)
        cells = match[1].split(" | ") if match else []
        if len(cells) == len(COLUMNS) + 1 and cells[0] not in ("kind", "---"):
            found[cells[0]] = Row(cells[0], tuple(cells[1:]))
    return found


def written(rows: dict[str, Row], kinds: list[str]) -> str:
    """The page with these lines, in the order of the kinds; it says which were never run."""
    lines = [str(rows[kind]) for kind in kinds if kind in rows]
    missing = [kind for kind in kinds if kind not in rows]
    return TEXT.format(
        head=HEAD + "\n|" + "---|" * (len(COLUMNS) + 1),
        rows="\n".join(lines),
        missing=f"Not yet run: {', '.join(missing)}.\n\n" if missing else "",
        seconds=SECONDS,
        memory=MEMORY >> 30,
        processes=PROCESSES,
        threads=THREADS,
    ).replace("\n\n\n", "\n\n")

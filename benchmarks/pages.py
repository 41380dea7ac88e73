"""Parts of pages that programs write, between two marks: the rest of the page stays."""

from __future__ import annotations

import re
from pathlib import Path

__all__ = ["README", "RESULTS", "kept", "write_part"]

RESULTS = Path(__file__).parent / "results.md"
README = Path(__file__).parents[1] / "README.md"


def _marks(name: str) -> tuple[str, str]:
    return f"<!-- {name}: begin (make bench writes them) -->\n", f"<!-- {name}: end -->"


def write_part(page: Path, name: str, lines: list[str]) -> None:
    """Writes the lines between the marks of this name, at the end of the page if it has none."""
    begin, end = _marks(name)
    text = page.read_text()
    if begin not in text:
        text = f"{text.rstrip()}\n\n{begin}{end}\n"
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(end)
    page.write_text(before + begin + "\n".join(lines) + "\n" + end + after)


def kept(page: Path) -> str:
    """All parts with their marks, for a program that writes the rest of the page anew."""
    text = page.read_text() if page.exists() else ""
    parts = re.findall(r"<!-- (\S+): begin .*?<!-- \1: end -->\n", text, re.DOTALL)
    found = []
    for name in parts:
        begin, end = _marks(name)
        found.append(f"\n{begin}{text.partition(begin)[2].partition(end)[0]}{end}\n")
    return "".join(found)

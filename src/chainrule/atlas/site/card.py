"""A picture for an entry that draws none: its findings on a card."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from html import escape

from chainrule.atlas.core.claims import Judged

__all__ = ["card"]

COLORS = {  # all with a contrast of 4.5 or more against white
    "holds": "#00694d",
    "erratum": "#a34300",
    "does not hold": "#96205a",
    "the printed form holds": "#00694d",
    "not checked": "#595959",
}
WIDTH, LINE, LETTERS = 480, 22, 52


def _rows(text: str, most: int = 3) -> list[str]:
    """A text in rows that fit on the card; what is beyond them is left out."""
    return textwrap.wrap(text, LETTERS, max_lines=most, placeholder=" …")


def _lines(j: Judged) -> Iterator[tuple[str, str]]:
    """The rows of a claim, and how each is drawn."""
    color = COLORS[j.finding]
    for row in _rows(j.name, 2):
        yield row, 'font-weight="600" fill="#1a1a1a"'
    for row in _rows(f"printed: {j.printed}"):
        yield row, 'fill="#444444"'
    for row in _rows(f"obtained: {j.obtained}" if j.obtained else j.note):
        yield row, f'fill="{color}"'


def card(judged: Sequence[Judged]) -> str:
    """The first claims with what is printed, what was obtained and a mark for the finding."""
    parts, top = [], 28
    for j in judged[:3]:
        lines = [*_lines(j)]
        parts.append(
            f'<rect x="12" y="{top - 15}" width="5" height="{len(lines) * LINE}" '
            f'fill="{COLORS[j.finding]}"/>'
        )
        for row, (text, look) in enumerate(lines):
            parts.append(f'<text x="28" y="{top + row * LINE}" {look}>{escape(text)}</text>')
        top += (len(lines) + 1) * LINE
    height = top - LINE
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'width="{WIDTH}" height="{height}" font-family="system-ui,sans-serif" font-size="15">'
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>{"".join(parts)}</svg>'
    )

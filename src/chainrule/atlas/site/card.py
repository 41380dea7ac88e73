"""A picture for an entry that draws none: its findings on a card."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from chainrule.atlas.core.claims import Judged

__all__ = ["card"]

COLORS = {
    "holds": "#009E73",
    "erratum": "#D55E00",
    "does not hold": "#B0286A",
    "the printed form holds": "#009E73",
    "not checked": "#666666",
}
WIDTH, LINE = 480, 22


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"


def card(judged: Sequence[Judged]) -> str:
    """The first claims with what is printed, what was obtained and a mark for the finding."""
    shown = judged[:3]
    height = 20 + len(shown) * (4 * LINE)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'width="{WIDTH}" height="{height}" font-family="system-ui,sans-serif" font-size="15">'
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>'
    ]
    for place, j in enumerate(shown):
        top = 28 + place * 4 * LINE
        color = COLORS[j.finding]
        parts.append(
            f'<rect x="12" y="{top - 15}" width="5" height="{3 * LINE}" fill="{color}"/>'
            f'<text x="28" y="{top}" font-weight="600" fill="#1a1a1a">'
            f"{escape(_cut(j.name, 46))}</text>"
            f'<text x="28" y="{top + LINE}" fill="#444444">printed: '
            f"{escape(_cut(j.printed, 44))}</text>"
            f'<text x="28" y="{top + 2 * LINE}" fill="{color}">'
            f"{escape(_cut(j.obtained or j.note, 52))}</text>"
        )
    return "".join([*parts, "</svg>"])

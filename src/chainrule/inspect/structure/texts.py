"""How wide a text is, without a font: by a table of the widths of characters.

The numbers are those of Helvetica, in thousandths of the size (Arial and Liberation Sans are as
wide); a character that is not in the table counts as wide as the widest letters. A drawing says the
width of each text along with it (``textLength``), so that another font is fitted into it.
"""

from __future__ import annotations

import re
from functools import lru_cache
from html import escape

__all__ = ["LINE", "MINUS", "SIZE", "TIMES", "escaped", "shortened", "text", "width_of", "wrapped"]

SIZE = 12.0  # of letters, in units of the picture
LINE = 15.0  # from line to line
TIMES, MINUS = "\N{MULTIPLICATION SIGN}", "\N{MINUS SIGN}"

_FROM_SPACE = (
    "278 278 355 556 556 889 667 222 333 333 389 584 278 333 278 278 556 556 556 556 556 556 556 "
    "556 556 556 278 278 584 584 584 556 1015 667 667 722 722 667 611 778 722 278 500 667 556 833 "
    "722 778 667 778 722 667 611 722 667 944 667 667 611 278 278 278 469 556 222 556 556 500 556 "
    "556 278 556 556 222 222 500 222 833 556 556 556 556 333 500 278 556 500 722 500 500 500 334 "
    "260 334 584"
)
_WIDTHS = {chr(32 + i): int(width) for i, width in enumerate(_FROM_SPACE.split())}
_WIDTHS |= {"…": 1000, TIMES: 584, MINUS: 584, "·": 278, "÷": 584, "→": 1000}
_WIDEST = 1015
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
BOLD = 1.09  # the widest ratio of a whole word in bold letters to the same in plain ones


@lru_cache(maxsize=4096)
def width_of(words: str, size: float = SIZE, bold: bool = False) -> float:
    """The width of a text.

    >>> width_of("mm", size=10)
    16.66
    """
    thousandths = sum(_WIDTHS.get(c, _WIDEST) for c in words)
    return round(thousandths * size / 1000 * (BOLD if bold else 1.0), 2)


def shortened(words: str, limit: float, size: float = SIZE, bold: bool = False) -> str:
    """The text, or as much of its beginning as fits, and "…".

    >>> shortened("a long name", 40)
    'a lon…'
    """
    if width_of(words, size, bold) <= limit:
        return words
    while words and width_of(words + "…", size, bold) > limit:
        words = words[:-1]
    return words.rstrip() + "…"


def wrapped(words: str, limit: float, size: float, lines: int) -> list[str]:
    """The text in so many lines at most, the last of which is shortened.

    >>> wrapped("one two three four five", 60, 12, 2)
    ['one two', 'three fou…']
    """
    found: list[str] = []
    left = words.split()
    while left and len(found) < lines - 1:
        line = left.pop(0)
        while left and width_of(f"{line} {left[0]}", size) <= limit:
            line = f"{line} {left.pop(0)}"
        found.append(shortened(line, limit, size))
    return [*found, shortened(" ".join(left), limit, size)] if left else found


def escaped(words: str) -> str:
    """A text as it may stand in XML, which knows no control characters.

    >>> escaped("a < b\\x00")
    'a &lt; b '
    """
    return escape(_CONTROL.sub(" ", words), quote=False)


def text(
    words: str,
    x: float,
    y: float,
    *,
    size: float = SIZE,
    bold: bool = False,
    anchor: str = "start",
    color: str = "",
) -> str:
    """A text as an element of SVG; y is its baseline."""
    style = f' font-size="{size:g}"' if size != SIZE else ""
    style += ' font-weight="bold"' if bold else ""
    style += f' text-anchor="{anchor}"' if anchor != "start" else ""
    style += f' fill="{color}"' if color else ""
    length = width_of(words, size, bold)
    fitted = f' textLength="{length:g}" lengthAdjust="spacingAndGlyphs"' if len(words) > 1 else ""
    return f'<text x="{x:.1f}" y="{y:.1f}"{style}{fitted}>{escaped(words)}</text>'

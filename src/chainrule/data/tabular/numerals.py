"""Numbers as people write them: currencies, percent, thousands, parentheses for negative ones."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Sequence

from chainrule.backend import dtypes
from chainrule.data.columns import NUMBER, Column, TableError, is_code, number_in
from chainrule.data.tabular.shared import used_words
from chainrule.ops.creation.from_data import tensor
from chainrule.tensor import Tensor

__all__ = ["decimal_mark", "in_numbers", "numeral"]

KEPT = 2**16  # words whose meaning is remembered: each is read once
SOME = 50  # words by which most columns are seen to be no numbers
SIGNS = "$€£¥₹₽₩₪₫₺₴₦฿¢"
CODES = "USD EUR GBP JPY CHF CAD AUD NZD CNY INR SEK NOK DKK PLN CZK HUF RUB TRY BRL MXN ZAR kr zł"
_CURRENCY = re.compile(
    rf"(?:US|CA|AU|NZ|HK)\$|[{SIGNS}]|(?<![^\W\d_])(?:{'|'.join(CODES.split())})(?![^\W\d_])\.?",
    re.IGNORECASE,
)
_SPACES = str.maketrans({**dict.fromkeys("\u00a0\u202f\u2009", " "), "\u2019": "'", "\u2212": "-"})
_POINT, _COMMA = (
    re.compile(
        rf"(?:\d+|\d{{1,3}}(?:\{other}\d{{3}})+|\d{{1,3}}(?: \d{{3}})+|\d{{1,3}}(?:'\d{{3}})+)?"
        rf"(?:\{mark}\d*)?"
    )
    for mark, other in (".,", ",.")
)
_THREE = re.compile(r"\D*\d{1,3}(?:\.\d{3})+\D*")


@functools.lru_cache(KEPT)
def numeral(word: str, mark: str) -> float | None:
    """A word as a number, where ``mark`` is the decimal mark; None if it is none.

    >>> numeral("$1,234.50", "."), numeral("1.234,50 €", ","), numeral("45%", ".")
    (1234.5, 1234.5, 0.45)
    >>> numeral("(1,200)", "."), numeral("12 apples", ".")
    (-1200.0, None)
    """
    text = word.translate(_SPACES).strip()
    sign = 1.0
    if text.startswith("(") and text.endswith(")"):
        text, sign = text[1:-1], -1.0
    text, money = _CURRENCY.subn("", text)
    text = text.strip()
    percent = text.endswith("%")
    text = text.removesuffix("%").strip()
    if text[:1] in ("+", "-") or text.endswith("-"):
        sign = -sign if "-" in (text[0], text[-1]) else sign
        text = text.strip("+-").strip()
    pattern = _COMMA if mark == "," else _POINT
    if money > 1 or not any(c.isdigit() for c in text) or not pattern.fullmatch(text):
        return _plain(text, sign) if not (money or percent) and mark == "." else None
    for separator in (" ", "'", "." if mark == "," else ","):
        text = text.replace(separator, "")
    return sign * float(text.replace(mark, ".")) / (100 if percent else 1)


def _plain(text: str, sign: float) -> float | None:
    """A number in Python's form, with an exponent."""
    try:
        return sign * float(text) if re.fullmatch(r"[\d.]+[eE][+-]?\d{1,3}", text) else None
    except ValueError:
        return None


def decimal_mark(words: Sequence[str]) -> str | None:
    """The decimal mark with which all words are numbers; None if there is none.

    If both are possible, three digits behind each point or comma are thousands: 1,234 is written
    with a decimal point, and 1.234 € with a decimal comma.
    """
    if any(map(is_code, words)) or all(number_in(word) is not None for word in words):
        return None  # what is said to be words, or cannot be numbers
    marks = [
        mark
        for mark in (".", ",")
        if all(numeral(w, mark) is not None for w in words[:SOME])
        and all(numeral(w, mark) is not None for w in words)
    ]
    if not marks or len({s.upper() for w in words for s in _CURRENCY.findall(w)}) > 1:
        return None
    if len(marks) == 2 and any("." in w for w in words):
        return "," if all(_THREE.fullmatch(w) for w in words if "." in w) else "."
    return marks[0]


def in_numbers(column: Column, mark: str) -> Tensor:
    """The numbers (N,) of a column of words, NaN where they are missing."""
    if column.kind == NUMBER:
        return column.numbers
    words, places = used_words(column)
    found: list[float] = []
    for word in words:
        value = math.nan if word is None else numeral(str(word), mark)
        if value is None or math.isinf(value):
            row = column.values.index(word) + 1
            raise TableError(
                f"column {column.name!r} is numbers, but row {row} has {word!r}; mend it, leave it "
                "empty, or use the column as a category or as text"
            )
        found.append(value)
    return tensor(found, dtype=dtypes.float64)[places]

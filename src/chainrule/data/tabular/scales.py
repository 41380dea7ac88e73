"""Words that have an order by what they mean: sizes, degrees, ranges of numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["known_order"]

SCALES = [
    scale.split(", ")
    for scale in (
        "very low, low, medium, high, very high",
        "low, mid, high",
        "low, moderate, high",
        "low, middle, high",
        "low, normal, high",
        "low, average, high",
        "tiny, small, medium, large, huge",
        "xxs, xs, s, m, l, xl, xxl, xxxl",
        "very poor, poor, fair, good, very good, excellent",
        "very bad, bad, average, good, very good",
        "very bad, bad, ok, good, very good",
        "easy, medium, hard",
        "primary, secondary, tertiary",
        "terrible, poor, average, good, excellent",
        "strongly disagree, disagree, neutral, agree, strongly agree",
        "very dissatisfied, dissatisfied, neutral, satisfied, very satisfied",
        "never, rarely, sometimes, often, always",
        "none, mild, moderate, severe",
        "beginner, intermediate, advanced, expert",
        "junior, mid, senior",
        "bronze, silver, gold, platinum, diamond",
        "poor, fair, typical, good, excellent",
    )
]
_RANGE = re.compile(
    r"(?P<below>[<≤]|under |below |up to )?\s*(?P<low>\d+(?:\.\d+)?)\s*"
    r"(?:(?P<above>\+|and over|or more)|(?:-|–|—|to)\s*\d+(?:\.\d+)?)?\s*[^\W\d_]{0,8}",  # noqa: RUF001
    re.IGNORECASE,
)
_OVER = re.compile(r"(?:[>≥]|over |above )\s*(?P<low>\d+(?:\.\d+)?)\s*[^\W\d_]{0,8}", re.IGNORECASE)


def known_order(words: Iterable[str]) -> list[str] | None:
    """Three words or more in the order of their meaning, None if it is not known.

    >>> known_order(["high", "low", "medium"]), known_order(["65+", "18-25", "26-64", "<18"])
    (['low', 'medium', 'high'], ['<18', '18-25', '26-64', '65+'])
    """
    found = sorted(set(words))
    by_name = {word.lower().replace("_", " "): word for word in found}
    if len(found) < 3 or len(by_name) < len(found):
        return None
    for scale in SCALES:
        if set(by_name).issubset(scale):
            return [by_name[name] for name in scale if name in by_name]
    return _ranges(found)


def _ranges(words: list[str]) -> list[str] | None:
    starts = [_start(word.strip()) for word in words]
    if any(s is None for s in starts) or len(set(starts)) < len(words):
        return None
    is_range = [any(c in word for c in "-–—+<>≤≥") or "to" in word.lower() for word in words]  # noqa: RUF001
    if sum(is_range) < 2:
        return None
    return [word for _, word in sorted(zip(starts, words, strict=True))]


def _start(word: str) -> tuple[float, int] | None:
    """Where a range begins; what lies below a number comes before it, what lies above after."""
    over = _OVER.fullmatch(word)
    if over is not None:
        return float(over["low"]), 2
    m = _RANGE.fullmatch(word)
    if m is None:
        return None
    return float(m["low"]), 0 if m["below"] else 1

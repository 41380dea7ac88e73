"""Numbers and sizes that can be read at a glance."""

from __future__ import annotations

import itertools

__all__ = ["amount", "round_numbers", "short", "size"]


def amount(n: int) -> str:
    """A number that can be read at a glance.

    >>> amount(416520), amount(12_345_678), amount(4_100_000_000)
    ('416,520', '12.35 M', '4.10 G')
    """
    for unit, letter in ((10**12, "T"), (10**9, "G"), (10**6, "M")):
        if n >= 10 * unit or (n >= unit and unit > 10**6):
            return f"{n / unit:.2f} {letter}"
    return f"{n:,}"


def short(n: int) -> str:
    """A round number for the tick of an axis.

    >>> short(500), short(20_000), short(1_500_000)
    ('500', '20k', '1.5M')
    """
    for unit, letter in ((10**12, "T"), (10**9, "G"), (10**6, "M"), (10**3, "k")):
        if n >= unit:
            return f"{n / unit:g}{letter}"
    return str(n)


def round_numbers(largest: int) -> list[int]:
    """From 0 to at most ``largest`` in three to five round steps.

    >>> round_numbers(48120)
    [0, 10000, 20000, 30000, 40000]
    """
    steps = (m * 10**k for k in itertools.count() for m in (1, 2, 5))
    step = next(s for s in steps if 5 * s > largest)
    return list(range(0, largest + 1, step))


def size(n: int) -> str:
    """Bytes that can be read at a glance.

    >>> size(268), size(20_480), size(3_500_000)
    ('268 B', '20.5 kB', '3.5 MB')
    """
    for unit, letter in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if n >= unit:
            return f"{n / unit:.1f} {letter}"
    return f"{n} B"

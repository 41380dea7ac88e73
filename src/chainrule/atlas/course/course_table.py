"""A table in plain text: what a course prints beside what is obtained."""

from __future__ import annotations

import math
from collections.abc import Sequence

__all__ = ["binomial_tail", "show", "spread"]


def show(title: str, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Prints the rows in columns as wide as their widest entry."""
    table = [[str(cell) for cell in row] for row in (header, *rows)]
    widths = [max(len(row[i]) for row in table) for i in range(len(header))]
    lines = ["  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) for row in table]
    lines.insert(1, "  ".join("-" * w for w in widths))
    print("\n".join([title, *(line.rstrip() for line in lines), ""]))


def spread(values: Sequence[float]) -> tuple[float, float]:
    """Mean and standard deviation of a sample."""
    mean = math.fsum(values) / len(values)
    return mean, math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (len(values) - 1))


def binomial_tail(k: int, n: int, p: float) -> float:
    """The probability of a count as far from n p as k or farther, on k's side."""
    counts = range(k + 1) if k <= n * p else range(k, n + 1)
    return math.fsum(math.comb(n, i) * p**i * (1 - p) ** (n - i) for i in counts)

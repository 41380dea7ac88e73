"""Sizes that change with the inputs: what they are, as a formula of the free axes.

A model is run several times: with the sizes that were given, with each free axis twice as long, and
with all of them three times as long. A number that differs between these passes, like the second in
``reshape(2, 128)``, follows from the free axes; its formula is found from the passes and holds in
all of them, or the number is refused.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

__all__ = ["Axis", "Linear", "Monomial", "formula_of", "passes_of"]


@dataclass(frozen=True)
class Axis:
    """A free axis: its name, the first input that has it, where, and its size there."""

    name: str
    input: int
    dim: int
    size: int


@dataclass(frozen=True)
class Linear:
    """offset + sum of factor * axis."""

    offset: Fraction
    factors: tuple[Fraction, ...]

    def at(self, sizes: Sequence[int]) -> Fraction:
        """Its value for these sizes of the axes."""
        parts = [f * s for f, s in zip(self.factors, sizes, strict=True)]
        return self.offset + sum(parts, Fraction(0))


@dataclass(frozen=True)
class Monomial:
    """factor * product of axis ** exponent; exponents may be halves, for a square root."""

    factor: float
    exponents: tuple[float, ...]

    def at(self, sizes: Sequence[int]) -> float:
        """Its value for these sizes of the axes."""
        return self.factor * math.prod(
            [s**e for s, e in zip(sizes, self.exponents, strict=True)], start=1.0
        )


def passes_of(axes: Sequence[Axis]) -> list[list[int]]:
    """The sizes of the axes in each pass: as they are, each doubled, all three times as large.

    Multiples, so that what is divided into patches or heads can still be divided. Without free axes
    there are two passes all the same: the second one has other values.
    """
    base = [a.size for a in axes]
    doubled = [[s * 2 if i == k else s for i, s in enumerate(base)] for k in range(len(base))]
    return [base, *doubled, [3 * s for s in base]]


def formula_of(values: Sequence[float], axes: Sequence[Axis]) -> Linear | Monomial | None:
    """The formula that gives these values in the passes of :func:`passes_of`; None if none does.

    >>> batch = Axis("batch", 0, 0, 4)
    >>> formula_of([8, 16, 24], [batch])
    Linear(offset=Fraction(0, 1), factors=(Fraction(2, 1),))
    >>> formula_of([0.5, 0.25, 1 / 6], [batch])
    Monomial(factor=2.0, exponents=(-1.0,))
    >>> formula_of([1, 7, 3], [batch]) is None
    True
    """
    passes = passes_of(axes)
    if not all(map(math.isfinite, values)):
        return None
    first, *doubled, last = values
    if all(float(v).is_integer() for v in values):
        factors = [Fraction(int(v - first), a.size) for v, a in zip(doubled, axes, strict=True)]
        offset = int(first) - sum([f * a.size for f, a in zip(factors, axes, strict=True)])
        linear = Linear(Fraction(offset), tuple(factors))
        if linear.at(passes[-1]) == last:
            return linear
    if first == 0 or any(v / first <= 0 for v in values):
        return None
    exponents = tuple([round(2 * math.log2(v / first)) / 2 for v in doubled])
    factor = first / Monomial(1.0, exponents).at(passes[0])
    found = Monomial(factor, exponents)
    fits = [math.isclose(found.at(p), v, rel_tol=1e-9) for p, v in zip(passes, values, strict=True)]
    return found if all(fits) else None

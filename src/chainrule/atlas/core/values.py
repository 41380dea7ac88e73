"""What comes out of a demonstration: numbers, numbers of many seeds, and forms of a formula."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from chainrule.tensor import Tensor

__all__ = ["Failed", "Forms", "Spread", "Value", "attempt", "distance", "numbers", "shown"]


# What a form raises that cannot be evaluated.
FAILURES = (
    ArithmeticError,
    AttributeError,
    LookupError,
    NameError,
    RuntimeError,
    TypeError,
    ValueError,
)


@dataclass(frozen=True)
class Failed:
    """What a form gives that cannot be evaluated: it equals nothing."""

    reason: str


Value: TypeAlias = "float | int | bool | Sequence[float] | Tensor | Failed | Spread"


@dataclass(frozen=True)
class Spread:
    """A number that was obtained with many seeds."""

    values: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.values) < 2:
            raise ValueError(f"Spread: needs the numbers of two seeds or more, got {self.values}")

    @property
    def mean(self) -> float:
        """Their mean."""
        return math.fsum(self.values) / len(self.values)

    @property
    def deviation(self) -> float:
        """The standard deviation of one of them."""
        return statistics.stdev(self.values)


@dataclass(frozen=True)
class Forms:
    """A formula as it is printed and as it is right, evaluated, and the truth, which is found by
    another way: a derivative, a count, a quadrature, a simulation."""

    printed: Value
    right: Value
    truth: Value


def attempt(compute: Callable[[], Value]) -> Value:
    """What a form gives, or that it cannot be evaluated, with the reason."""
    try:
        return compute()
    except FAILURES as e:
        said = " ".join(str(e).split())
        return Failed(f"{type(e).__name__}: {said if len(said) < 90 else said[:88] + '…'}")


def numbers(value: Value) -> list[float]:
    """A value as a flat list of numbers; of many seeds the mean."""
    if isinstance(value, Failed):
        return []
    if isinstance(value, Spread):
        return [value.mean]
    if isinstance(value, Tensor):
        return [float(x) for x in value.detach().flatten().tolist()]
    if isinstance(value, (int, float)):
        return [float(value)]
    return [float(x) for x in value]


def distance(one: Value, other: Value) -> float:
    """The largest difference of two values; infinite if they have not the same number of numbers,
    or if one is not finite or failed."""
    if isinstance(one, Failed) or isinstance(other, Failed):
        return math.inf
    if isinstance(one, Tensor) and isinstance(other, Tensor) and one.shape != other.shape:
        return math.inf
    a, b = numbers(one), numbers(other)
    if len(a) != len(b) or not all(map(math.isfinite, [*a, *b])):
        return math.inf
    return max((abs(x - y) for x, y in zip(a, b, strict=True)), default=0.0)


def shown(value: Value) -> str:
    """A value in few words, for tables."""
    if isinstance(value, Failed):
        return value.reason
    if isinstance(value, Spread):
        return f"{_short(value.mean)} ± {_short(value.deviation)} ({len(value.values)} seeds)"
    if isinstance(value, bool):
        return "yes" if value else "no"
    found = numbers(value)
    if len(found) == 1:
        return _short(found[0])
    listed = ", ".join(map(_short, found[:12]))
    return f"({listed}{', ...' if len(found) > 12 else ''})"


def _short(number: float) -> str:
    if number == int(number) if math.isfinite(number) else False:
        return str(int(number)) if abs(number) < 1e15 else f"{number:.4g}"
    return f"{number:.6g}"

"""What the settings of optimizers may be: intervals, pairs, PyTorch's implementation arguments."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

from chainrule.tensor import Tensor
from chainrule.typing import Rates

__all__ = [
    "FRACTION",
    "IMPLEMENTATION",
    "NOT_NEGATIVE",
    "UNIT",
    "Capturable",
    "Fused",
    "Implementation",
    "Interval",
    "check_implementation",
    "check_pair",
    "check_range",
]

# Arguments of PyTorch's optimizers that choose between implementations of one result. Here every
# update is fused; ``differentiable`` records it, and ``capturable`` concerns CUDA graphs.
IMPLEMENTATION = {"foreach": None, "capturable": False, "differentiable": False, "fused": None}


class _Chosen(TypedDict, total=False):
    foreach: bool | None
    differentiable: bool


class Fused(_Chosen, total=False):
    """The arguments about implementation of SGD and Adagrad."""

    fused: bool | None


class Capturable(_Chosen, total=False):
    """The arguments about implementation of those optimizers that PyTorch has not fused."""

    capturable: bool


class Implementation(Fused, Capturable, total=False):
    """All arguments about implementation: of Adam, and of what PyTorch does not have."""


@dataclass(frozen=True)
class Interval:
    """The numbers from ``low`` to ``high``; ``ends`` says with brackets which of both belong to it.

    >>> 1.0 in Interval(0, 1), 1.0 in Interval(0, 1, "[]")
    (False, True)
    """

    low: float = 0.0
    high: float = math.inf
    ends: str = "[)"

    def __contains__(self, value: float) -> bool:
        above = self.low <= value if self.ends[0] == "[" else self.low < value
        return above and (value <= self.high if self.ends[1] == "]" else value < self.high)

    def __str__(self) -> str:
        high = "infinity" if self.high == math.inf else self.high
        return f"{self.ends[0]}{self.low}, {high}{self.ends[1]}"

    def check(self, name: str, key: str, value: Rates) -> None:
        """Raises ValueError unless a number, or all numbers of a list or tensor, are in it."""
        for v in value if isinstance(value, (tuple, list)) else (value,):
            if isinstance(v, Tensor):
                x = v.detach()
                numbers = [float(x.min()), float(x.max())] if v.numel() else []
            else:
                numbers = [v]
            if not all(number in self for number in numbers):
                raise ValueError(f"{name}: invalid {key}: {value}; it must lie in {self}")


NOT_NEGATIVE = Interval()
FRACTION = Interval(0.0, 1.0)  # without 1
UNIT = Interval(0.0, 1.0, "[]")


def check_range(
    name: str, low: float = 0.0, high: float = math.inf, *, closed: bool = True, **values: Rates
) -> None:
    """Raises ValueError if a number is not in [low, high), or not in (low, high) if not closed."""
    for key, value in values.items():
        Interval(low, high, "[)" if closed else "()").check(name, key, value)


def check_pair(name: str, key: str, value: object) -> None:
    """Raises ValueError unless a setting has two numbers."""
    if not isinstance(value, (tuple, list)) or len(value) != 2:
        raise ValueError(f"{name}: {key} must be a pair of numbers, got {value}")


def check_implementation(
    name: str, keys: Sequence[str], given: Mapping[str, Any]
) -> dict[str, bool | None]:
    """PyTorch's arguments about implementation, of which one cannot be had here."""
    unknown = sorted(set(given) - set(keys))
    if unknown:
        raise TypeError(f"{name}: got an unexpected keyword argument {unknown[0]!r}")
    if given.get("capturable"):
        raise ValueError(
            f"{name}: capturable=True is for CUDA graphs, which there are none of here"
        )
    for other in ("foreach", "differentiable"):
        if given.get(other) and given.get("fused"):
            raise RuntimeError(f"{name}: `fused` and `{other}` cannot be True together")
    return {key: given.get(key, IMPLEMENTATION[key]) for key in keys}

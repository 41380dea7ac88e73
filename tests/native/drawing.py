"""Random arguments for compiled kernels, and the list of what draws them for each."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

from native.twins import FLOATS

__all__ = ["MAKERS", "Call", "Draw", "makes"]

Call = tuple[tuple[Any, ...], dict[str, Any]]
# For each kernel, what draws its arguments: (draw, name) -> (args, named)
MAKERS: dict[str, Any] = {}


class Draw:
    """A source of random arguments; the same seed draws the same ones."""

    def __init__(self, seed: int, empty: bool = True):
        self.r, self.numbers = random.Random(seed), np.random.default_rng(seed)
        self.dtype = self.r.choice(FLOATS)
        self.empty = empty and self.chance(0.1)
        self.special = self.chance(0.15)
        self.odd = [np.nan, np.inf, -np.inf, -0.0, 1e-40, 0.0]

    def chance(self, p: float) -> bool:
        return self.r.random() < p

    def pick(self, *choices: Any) -> Any:
        return self.r.choice(choices)

    def size(self, most: int = 5) -> int:
        return 0 if self.empty and self.chance(0.3) else self.r.randint(1, most)

    def sizes(self, least: int = 0, most: int = 4) -> tuple[int, ...]:
        return tuple(self.size() for _ in range(self.r.randint(least, most)))

    def array(self, *shape: int) -> np.ndarray:
        a = np.asarray(self.numbers.normal(size=shape) * 2).astype(self.dtype)
        if self.special and a.size:
            at = self.numbers.integers(a.size, size=2)
            a.reshape(-1)[at] = self.r.choice(self.odd)
        return a

    def whole(self, high: int, *shape: int) -> np.ndarray:
        return np.asarray(self.numbers.integers(max(high, 1), size=shape))

    def number(self) -> float:
        return self.pick(0.0, 1.0, 0.5, -1.5, self.r.uniform(0, 2))

    def flag(self) -> bool:
        return self.chance(0.5)


def makes(*names: str) -> Callable[[Any], Any]:
    """The function draws a valid call of the kernels of these names."""

    def register(maker: Any) -> Any:
        MAKERS.update(dict.fromkeys(names, maker))
        return maker

    return register

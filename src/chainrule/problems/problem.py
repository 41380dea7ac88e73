"""What a test problem is."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from chainrule.backend import dtypes
from chainrule.ops.core.promotion import cast
from chainrule.ops.reduce.reductions import mean
from chainrule.ops.creation.sampling import rand, randn, randperm
from chainrule.tensor import Tensor
from chainrule.typing import DType, MaybeNone, Random

__all__ = ["Pair", "Problem", "floating", "normal", "positive", "squared_error", "uniform", "whole"]

Pair = tuple[Tensor, Tensor]


@dataclass(frozen=True, eq=False)
class Problem:
    """A function to minimize, or data to learn, with what is known about it.

    A function has ``function``, ``start``, ``minimizer`` and ``minimum``. Data have ``inputs`` and
    ``targets``, and the ``rule`` that makes the targets from the inputs but for noise. Regression
    has both: its function is the mean squared error as a function of the parameters.

    Args:
        name: what it is called.
        source: where it comes from.
        function: the number to minimize, of a vector of parameters.
        start: where to begin.
        minimizer: where the function is smallest.
        minimum: the function there.
        inputs: what is given, along dimension 0.
        targets: what is to be predicted, along dimension 0.
        rule: targets without noise, of inputs.
        truth: the parameters that made the data; noise moves the minimizer away from them.
        known: whatever else is known, by name.

    >>> from chainrule import problems
    >>> p = problems.bowl()
    >>> p.function(p.start), p.function(p.minimizer)
    (tensor(6.), tensor(0.))
    """

    name: str
    source: str
    function: Callable[[Tensor], Tensor] | MaybeNone = None
    start: Tensor | MaybeNone = None
    minimizer: Tensor | MaybeNone = None
    minimum: float | MaybeNone = None
    inputs: Tensor | MaybeNone = None
    targets: Tensor | MaybeNone = None
    rule: Callable[[Tensor], Tensor] | MaybeNone = None
    truth: Tensor | MaybeNone = None
    known: dict[str, Any] = field(default_factory=dict)

    def split(self, fraction: float = 0.8, generator: Random = None) -> tuple[Pair, Pair]:
        """The data in random order, divided into (inputs, targets) to train with and the rest.

        >>> from chainrule import problems
        >>> (x, y), (x_val, y_val) = problems.exponential().split(0.8)
        >>> x.shape, y_val.shape
        (chainrule.Size([160, 1]), chainrule.Size([40, 1]))
        """
        if self.inputs is None or self.targets is None:
            raise ValueError(f"split: the problem {self.name!r} has a function but no data")
        if not 0 <= fraction <= 1:
            raise ValueError(f"split: fraction must lie in [0, 1], got {fraction}")
        order = randperm(self.inputs.shape[0], generator=generator)
        first = int(fraction * self.inputs.shape[0])
        train, rest = order[:first], order[first:]
        return (self.inputs[train], self.targets[train]), (self.inputs[rest], self.targets[rest])

    def __repr__(self) -> str:
        parts = [f"Problem({self.name!r}, source={self.source!r}"]
        if self.inputs is not None and self.targets is not None:
            shapes = tuple(self.inputs.shape), tuple(self.targets.shape)
            parts.append(f"inputs {shapes[0]}, targets {shapes[1]}")
        if self.minimum is not None:
            parts.append(f"minimum={self.minimum:.6g}")
        return ", ".join(parts) + ")"


def squared_error(
    model: Callable[[Tensor, Tensor], Tensor], x: Tensor, y: Tensor
) -> Callable[[Tensor], Tensor]:
    """mean (y - model(theta, x))^2 as a function of theta."""

    def error(theta: Tensor) -> Tensor:
        r = y - model(theta, x)
        return mean(r * r)

    return error


# --- arguments and random numbers -----------------------------------------------------------------


def floating(op: str, dtype: DType | None) -> dtypes.dtype:
    """The dtype of a problem's numbers, by default the default one."""
    found = dtypes.get_default_dtype() if dtype is None else dtypes.as_dtype(dtype)
    if not found.is_floating_point:
        raise TypeError(f"{op}: dtype must be a floating one, got {found}")
    return found


def whole(op: str, least: int = 1, **values: int) -> None:
    """Raises ValueError for a count that is too small."""
    for name, value in values.items():
        if int(value) != value or value < least:
            raise ValueError(f"{op}: {name} must be an integer of at least {least}, got {value}")


def positive(op: str, **values: float) -> None:
    """Raises ValueError for a number that is not positive and finite."""
    for name, value in values.items():
        if not 0 < value < math.inf:
            raise ValueError(f"{op}: {name} must be positive and finite, got {value}")


# Numbers are drawn in float64 and cast: a seed gives the same data in every dtype.


def uniform(low: float, high: float, *shape: int, generator: Random, dtype: DType) -> Tensor:
    """Numbers of this shape in [low, high)."""
    draw = rand(*shape, dtype=dtypes.float64, generator=generator)
    return cast(low + (high - low) * draw, dtype)


def normal(std: float, *shape: int, generator: Random, dtype: DType) -> Tensor:
    """Normal numbers of this shape with mean 0 and this standard deviation."""
    return cast(std * randn(*shape, dtype=dtypes.float64, generator=generator), dtype)

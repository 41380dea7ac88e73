"""What a penalty is: a function of a module that is added to the loss."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from chainrule.nn.module.base import Module
from chainrule.nn.module.names import Where, check_where, describe
from chainrule.regularize.where import select, select_groups
from chainrule.tensor import Tensor

__all__ = ["Penalty", "SumPenalty", "added", "check_strength"]


def check_strength(op: str, strength: float | Mapping[str, float]) -> None:
    """Raises ValueError unless it is a number that is not negative, or patterns with such."""
    if isinstance(strength, Mapping):
        if not strength:
            raise ValueError(f"{op}: the dictionary of strengths is empty")
        for value in strength.values():
            check_strength(op, value)
    elif not 0 <= strength < math.inf:
        raise ValueError(f"{op}: the strength must be a number >= 0, got {strength}")


class Penalty:
    """A function of the weights of a module: called with the module, it returns a number.

    ``train.Trainer(..., penalties=[...])`` adds it to the loss of each batch, and the history
    has its mean in the column ``name``. A subclass says :meth:`measure`, the penalty of strength 1
    for one group of weights.

    Args:
        strength: what the penalty is multiplied with; or a dictionary from patterns to strengths,
            where the first pattern that matches a parameter counts.
        where: which parameters: a pattern, a list of them, or a function of a name; by default
            all of two or more dimensions, which leaves biases and normalizations out.
        name: the name of its column; by default that of the class in small letters.
    """

    needs_inputs = False  # whether it is called with the inputs of the batch, too
    default_where: Where = None

    def __init__(
        self, strength: float | Mapping[str, float], where: Where = None, name: str | None = None
    ):
        check_strength(type(self).__name__, strength)
        check_where(type(self).__name__, where)
        if isinstance(strength, Mapping) and where is not None:
            raise ValueError(
                f"{type(self).__name__}: the patterns stand in the dictionary of strengths; where "
                f"must be None, got {describe(where)}"
            )
        self.strength = dict(strength) if isinstance(strength, Mapping) else strength
        self.where = where
        self.name = name or type(self).__name__.lower()

    def groups(self, model: Module) -> list[tuple[float, dict[str, Tensor]]]:
        """The strengths, each with the parameters it is for."""
        op = type(self).__name__
        if isinstance(self.strength, dict):
            return select_groups(op, model, self.strength)
        where = self.default_where if self.where is None else self.where
        return [(self.strength, select(op, model, where))]

    def weights(self, model: Module) -> dict[str, Tensor]:
        """The parameters that are penalized, by name."""
        return {name: p for _, chosen in self.groups(model) for name, p in chosen.items()}

    def measure(self, weights: dict[str, Tensor]) -> Tensor:
        """The penalty of these weights at strength 1; a subclass says it."""
        raise NotImplementedError(f"{type(self).__name__} has no measure(weights)")

    def __call__(self, model: Module) -> Tensor:
        """The penalty of a module as it is."""
        return added([s * self.measure(chosen) for s, chosen in self.groups(model)])

    def settings(self) -> dict[str, Any]:
        """What else the representation shows."""
        return {}

    def __repr__(self) -> str:
        parts = [repr(self.strength)]
        if self.where is not None:
            parts.append(f"where={describe(self.where)}")
        parts += [f"{key}={value!r}" for key, value in self.settings().items()]
        return f"{type(self).__name__}({', '.join(parts)})"


def added(parts: list[Tensor]) -> Tensor:
    """The sum of some tensors."""
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


class SumPenalty(Penalty):
    """A penalty that is a sum over the parameters: a subclass says :meth:`of` one of them."""

    def of(self, name: str, weight: Tensor) -> Tensor:
        """The penalty of one parameter at strength 1."""
        raise NotImplementedError(f"{type(self).__name__} has no of(name, weight)")

    def measure(self, weights: dict[str, Tensor]) -> Tensor:
        return added([self.of(name, w) for name, w in weights.items()])

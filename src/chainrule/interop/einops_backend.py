"""How einops computes with tensors: the raw functions that its patterns are made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from types import ModuleType

from einops._backends import AbstractBackend

from chainrule.ops.creation.from_data import from_numpy
from chainrule.ops.creation.patterns import arange
from chainrule.ops.linalg.einsum import einsum
from chainrule.ops.shape.stacking import cat, stack
from chainrule.tensor import Tensor
from chainrule.typing import Array

__all__ = ["ChainruleBackend"]

# einops' names for reductions that have another one here.
REDUCTIONS = {"min": "amin", "max": "amax"}


class ChainruleBackend(AbstractBackend):
    """Tensors for einops. Each function is an operation, so derivatives of any order follow."""

    framework_name = "chainrule"

    def is_appropriate_type(self, tensor: object) -> bool:
        return isinstance(tensor, Tensor)

    def from_numpy(self, x: Array) -> Tensor:
        out = from_numpy(x)
        return out.requires_grad_(out.is_floating_point())

    def to_numpy(self, x: Tensor) -> Array:
        return x.detach().numpy()

    def arange(self, start: int, stop: int) -> Tensor:
        return arange(start, stop)

    def transpose(self, x: Tensor, axes: Sequence[int]) -> Tensor:
        return x.permute(axes)

    def reduce(self, x: Tensor, operation: str, axes: Sequence[int]) -> Tensor:
        if operation == "prod":  # along one dimension at a time
            for axis in sorted(axes, reverse=True):
                x = x.prod(axis)
            return x
        reduced: Tensor = getattr(x, REDUCTIONS.get(operation, operation))(tuple(axes))
        return reduced

    def stack_on_zeroth_dimension(self, tensors: list[Tensor]) -> Tensor:
        return stack(tensors)

    def add_axis(self, x: Tensor, new_position: int) -> Tensor:
        return x.unsqueeze(new_position)

    def add_axes(self, x: Tensor, n_axes: int, pos2len: Mapping[int, int]) -> Tensor:
        sizes = [-1] * n_axes
        for position, length in pos2len.items():
            x = x.unsqueeze(position)
            sizes[position] = length
        return x.expand(sizes)

    def tile(self, x: Tensor, repeats: Sequence[int]) -> Tensor:
        return x.repeat(repeats)

    def concat(self, tensors: Sequence[Tensor], axis: int) -> Tensor:
        return cat(tensors, axis)

    def is_float_type(self, x: Tensor) -> bool:
        return x.is_floating_point()

    def layers(self) -> ModuleType:
        return import_module("chainrule.interop.einops_layers")

    def einsum(self, pattern: str, *x: Tensor) -> Tensor:
        return einsum(pattern, *x)

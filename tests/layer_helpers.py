"""From a layer's record to a function of its inputs and parameters."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from helpers import all_arrays, is_variable, map_arrays, weight
from layers.record import Layer

import chainrule
from chainrule import nn
from chainrule.func import functional_call
from chainrule.tensor import Tensor, of_array

__all__ = ["LayerCase", "called", "draw", "each", "inner", "made", "tensors_in"]


def each(layers: Sequence[Layer]) -> pytest.MarkDecorator:
    """Runs a test for each of these records."""
    return pytest.mark.parametrize("layer", layers, ids=[layer.label for layer in layers])


def draw(layer: Layer, number: int = 0) -> np.random.Generator:
    """Random numbers that depend on nothing but the record's label."""
    return np.random.default_rng([zlib.crc32(layer.label.encode()), number])


def made(layer: Layer, library: Any = chainrule, seed: int = 0) -> Any:
    """The layer in float64, its parameters moved a little from where they start."""
    library.manual_seed(seed)
    module = layer.make(library.nn).double()
    rng = draw(layer, 1000 + seed)
    with library.no_grad():
        for p in module.parameters():
            p += library.from_numpy(np.array(0.1 * rng.normal(size=tuple(p.shape))))
    return module


def called(layer: Layer, module: Any, args: Sequence[Any]) -> list[Any]:
    """What the layer gives for these arguments, as a list of tensors."""
    out = module(*args) if layer.call is None else layer.call(module, *args)
    return tensors_in(out if layer.pick is None else layer.pick(out))


def tensors_in(out: Any) -> list[Any]:
    """The tensors in a result that may be nested."""
    if isinstance(out, dict):
        out = list(out.values())
    if isinstance(out, (list, tuple)) and not hasattr(out, "batch_sizes"):
        return [y for part in out for y in tensors_in(part)]
    out = out.data if hasattr(out, "batch_sizes") else out  # a packed sequence
    return [out] if hasattr(out, "detach") else []


def inner(a: Sequence[Tensor], b: Sequence[Tensor]) -> Tensor:
    """The sum of all products of entries."""
    total = of_array(np.zeros(()))
    for x, y in zip(a, b, strict=True):
        total = total + (x * y).sum()
    return total


class _Held(nn.Module):
    """A layer together with the way in which its record calls it."""

    def __init__(self, layer: Layer, module: Any):
        super().__init__()
        self.layer, self.module = layer, module

    def forward(self, *args: Any) -> list[Any]:
        return called(self.layer, self.module, args)


class LayerCase:
    """A layer at concrete inputs: the function of its inputs and parameters.

    ``values`` holds the arrays of the inputs first, then those of the parameters. A call leaves the
    buffers as they were, and draws the same random numbers every time.
    """

    def __init__(self, layer: Layer, training: bool):
        self.layer = layer
        self.args = layer.inputs(draw(layer))
        self.module = made(layer).train(training)
        self.held = _Held(layer, self.module)
        named = dict(self.held.named_parameters())
        self.names = list(named)
        inputs = [a for a in all_arrays(self.args) if is_variable(a)]
        self.inputs = len(inputs)
        self.values = inputs + [p.numpy(force=True).copy() for p in named.values()]

    def __call__(self, *variables: Tensor) -> list[Tensor]:
        given = iter(variables[: self.inputs])
        args = map_arrays(
            lambda a: next(given) if is_variable(a) else of_array(a.copy()), self.args
        )
        tensors = {name: b.clone() for name, b in self.held.named_buffers()}
        tensors.update(zip(self.names, variables[self.inputs :], strict=True))
        chainrule.manual_seed(1)
        return functional_call(self.held, tensors, tuple(args))

    def floats(self, *variables: Tensor) -> list[Tensor]:
        """The outputs of floating type."""
        return [y for y in self(*variables) if y.is_floating_point()]

    def variables(self, dtype: Any = np.float64, requires_grad: bool = False) -> list[Tensor]:
        tensors = [of_array(np.array(v, dtype=dtype)) for v in self.values]
        return [t.requires_grad_(requires_grad) for t in tensors]

    def gradients(self, variables: Sequence[Tensor]) -> list[Tensor]:
        """The gradients of a sum of the outputs weighted irregularly."""
        results = [y for y in self.floats(*variables) if y.requires_grad]
        weights = [of_array(weight(tuple(y.shape), y.dtype.name)) for y in results]
        return list(chainrule.autograd.grad(results, variables, weights, materialize_grads=True))

    def directions(self) -> list[np.ndarray]:
        """For every variable a direction to move in, without zeros."""
        return [weight(v.shape) - 0.3 for v in self.values]

    def along(self, groups: Sequence[Sequence[int]]) -> Callable[..., tuple[Tensor, ...]]:
        """The outputs, each weighted and summed, as functions of one number per group: how far the
        variables of that group have moved in their directions."""
        points, directions = self.variables(), [of_array(t) for t in self.directions()]

        def function(*steps: Tensor) -> tuple[Tensor, ...]:
            moved = list(points)
            for step, group in zip(steps, groups, strict=True):
                for i in group:
                    moved[i] = points[i] + step * directions[i]
            results = self.floats(*moved)
            return tuple((y * of_array(weight(tuple(y.shape)) - 0.7)).sum() for y in results)

        return function

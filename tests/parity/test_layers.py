"""Every layer and loss that PyTorch has, by its records: outputs, gradients, states, printing."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from helpers import assert_close, is_variable, map_arrays, weight
from layer_helpers import called, draw, each, made
from layers import ALL
from layers.record import Layer

import chainrule

torch = pytest.importorskip("torch")

IN_TORCH = [layer for layer in ALL if layer.torch]
COMPARED_IN_TRAINING = [layer for layer in IN_TORCH if not layer.random]


class Side:
    """A layer in one of the two libraries."""

    def __init__(self, layer: Layer, library: Any, module: Any):
        self.layer, self.library, self.module = layer, library, module

    def run(self, number: int = 0) -> tuple[list[Any], list[Any]]:
        """The outputs, and the gradients of a sum of them, weighted irregularly."""
        variables: list[Any] = []

        def tensor(a: np.ndarray) -> Any:
            x = self.library.from_numpy(a.copy())
            if is_variable(a) and self.layer.differentiable:
                variables.append(x.requires_grad_())
            return x

        args = map_arrays(tensor, self.layer.inputs(draw(self.layer, number)))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what PyTorch has deprecated or cannot do fast
            results = called(self.layer, self.module, args)
        variables += [p for p in self.module.parameters() if p.requires_grad]
        roots = [y for y in results if y.requires_grad]
        if not roots or not self.layer.differentiable:
            return results, []
        weights = [self.library.from_numpy(weight(tuple(y.shape))) for y in roots]
        found = self.library.autograd.grad(roots, variables, weights, allow_unused=True)
        return results, [
            0 * x.detach() if g is None else g for x, g in zip(variables, found, strict=True)
        ]

    def state(self) -> dict[str, Any]:
        return dict(self.module.state_dict())


def both(layer: Layer, training: bool) -> tuple[Side, Side]:
    """The layer in both libraries, with PyTorch's state."""
    theirs = made(layer, torch).train(training)
    ours = made(layer, chainrule, seed=1).train(training)
    ours.load_state_dict(theirs.state_dict())
    return Side(layer, chainrule, ours), Side(layer, torch, theirs)


def assert_same(ours: Sequence[Any], theirs: Sequence[Any]) -> None:
    """Shape, dtype and value; what a value may deviate by is relative to the largest."""
    __tracebackhide__ = True
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        assert str(a.dtype).rpartition(".")[2] == str(b.dtype).rpartition(".")[2]
        values = b.numpy(force=True)
        scale = float(np.abs(values).max()) if values.size and values.dtype.kind == "f" else 1.0
        assert_close(a, values, rtol=1e-9, atol=1e-10 * max(scale, 1.0))


def assert_same_run(ours: Side, theirs: Side, number: int = 0) -> None:
    __tracebackhide__ = True
    a, b = ours.run(number), theirs.run(number)
    assert_same(a[0], b[0])
    assert_same(a[1], b[1])


@each(COMPARED_IN_TRAINING)
def test_training(layer: Layer) -> None:
    """Two calls: outputs, gradients and then buffers; and evaluation with those buffers."""
    ours, theirs = both(layer, training=True)
    assert_same_run(ours, theirs)
    assert_same_run(ours, theirs, number=1)
    assert_same(list(ours.state().values()), list(theirs.state().values()))
    ours.module.eval()
    theirs.module.eval()
    assert_same_run(ours, theirs)


@each([layer for layer in IN_TORCH if layer.random])
def test_evaluation_of_what_is_random_in_training(layer: Layer) -> None:
    assert_same_run(*both(layer, training=False))


@each(IN_TORCH)
def test_state_has_the_same_keys_and_shapes(layer: Layer) -> None:
    ours, theirs = layer.make(chainrule.nn).state_dict(), layer.make(torch.nn).state_dict()
    assert list(ours) == list(theirs)
    for a, b in zip(ours.values(), theirs.values(), strict=True):
        assert (tuple(a.shape), str(a.dtype)[10:]) == (tuple(b.shape), str(b.dtype)[6:])


@each(IN_TORCH)
def test_state_goes_to_torch(layer: Layer) -> None:
    """By way of NumPy; the outputs are then the same."""
    ours, theirs = both(layer, training=False)
    other = made(layer, chainrule, seed=2).eval()
    arrays = {name: torch.from_numpy(t.numpy()) for name, t in other.state_dict().items()}
    theirs.module.load_state_dict(arrays)
    ours.module.load_state_dict(arrays)
    assert_same_run(Side(layer, chainrule, other), theirs)
    assert_same_run(ours, theirs)


@each([layer for layer in IN_TORCH if layer.same_repr])
def test_repr(layer: Layer) -> None:
    assert repr(layer.make(chainrule.nn)) == repr(layer.make(torch.nn))

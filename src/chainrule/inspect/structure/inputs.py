"""Inputs for a network of which only the sizes are known."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from chainrule.backend import dtypes
from chainrule.inspect.core.arguments import Inputs
from chainrule.inspect.core.tracing import trace
from chainrule.inspect.structure.memory import owner
from chainrule.nn.layers.embedding import Embedding, EmbeddingBag
from chainrule.nn.module.base import Module
from chainrule.nn.parameter import is_lazy
from chainrule.ops.creation.patterns import zeros
from chainrule.ops.creation.sampling import rand
from chainrule.random import fork_rng
from chainrule.tensor import Tensor

__all__ = ["inputs_or_made", "made_inputs", "settled"]

EMBEDDINGS = (Embedding, EmbeddingBag)


def inputs_or_made(instrument: str, model: Module, inputs: Inputs, input_size: Any) -> Inputs:
    """The inputs that were given, or some of the sizes that were given instead."""
    if (inputs is None) == (input_size is None):
        raise TypeError(
            f"{instrument}: give inputs (what the model is called with) or input_size (their "
            "sizes with the batch, such as (1, 3, 32, 32)), and not both"
        )
    return inputs if input_size is None else made_inputs(instrument, model, input_size)


def settled(model: Module) -> Module:
    """The model, or a copy of one with lazy layers: a call would give these their sizes."""
    return copy.deepcopy(model) if any(map(is_lazy, model.parameters())) else model


def made_inputs(instrument: str, model: Module, input_size: Any) -> Inputs:
    """Inputs of these sizes, in the model's floating type; whole numbers where an embedding reads
    them. ``input_size`` is a size, a list of sizes, or a dict of them by argument."""
    if isinstance(input_size, Mapping):
        sizes: dict[Any, tuple[int, ...]] = {
            name: _size(instrument, size) for name, size in input_size.items()
        }
    elif _is_size(input_size):
        sizes = {0: _size(instrument, input_size)}
    elif isinstance(input_size, (tuple, list)) and input_size:
        sizes = dict(enumerate(_size(instrument, size) for size in input_size))
    else:
        raise _no_size(instrument, input_size)
    with fork_rng():
        dtype = _floating_type(model)
        made = {name: rand(*size, dtype=dtype) for name, size in sizes.items()}
    if any(isinstance(m, EMBEDDINGS) for m in model.modules()):
        while (name := _read_by_an_embedding(instrument, model, made)) is not None:
            made[name] = zeros(*made[name].shape, dtype=dtypes.int64)
    return _as_inputs(made)


def _as_inputs(made: dict[Any, Tensor]) -> Inputs:
    return made if not all(isinstance(k, int) for k in made) else tuple(made.values())


def _is_size(value: Any) -> bool:
    return (
        isinstance(value, (tuple, list))
        and bool(value)
        and all(hasattr(n, "__index__") for n in value)
    )


def _size(instrument: str, value: Any) -> tuple[int, ...]:
    if not _is_size(value) or any(n.__index__() < 0 for n in value):
        raise _no_size(instrument, value)
    return tuple(n.__index__() for n in value)


def _no_size(instrument: str, value: Any) -> ValueError:
    return ValueError(
        f"{instrument}: input_size must be a size with the batch such as (1, 3, 32, 32), a list of "
        f"them, or a dict of them by argument, got {value!r}"
    )


def _floating_type(model: Module) -> Any:
    for parameter in model.parameters():
        if parameter.dtype.is_floating_point or parameter.dtype.is_complex:
            return parameter.dtype
    return None


def _read_by_an_embedding(instrument: str, model: Module, made: dict[Any, Tensor]) -> Any:
    """The name of the floating input at which a pass ends in an embedding, which reads whole
    numbers."""
    failed = trace(instrument, model, _as_inputs(made), partial=True).failed
    if failed is None or not isinstance(failed.module, EMBEDDINGS):
        return None
    read = {id(owner(t.array)) for t in failed.inputs if t.is_floating_point()}
    return next((name for name, t in made.items() if id(owner(t.array)) in read), None)

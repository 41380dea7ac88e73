"""The parameters of a model: as a tree of tensors, as one vector, as the rows of a matrix.

A model is a function ``f(params, *inputs)``, where ``params`` is a tensor or a nested dict, tuple
or list of tensors; or an object with a ``named_parameters()`` method, such as a module, whose own
parameters are taken unless others are given. ``inputs`` is a tensor, or a tuple with one entry for
each argument.

Where parameters are counted (a vector of all W of them, a matrix of W rows) they stand in *tree
order*: dicts in their own order, tuples and lists from the first entry on, each tensor row by row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from chainrule.autograd.functional_call import functional_call
from chainrule.autograd.nested import flatten, unflatten
from chainrule.nn.module.base import Module
from chainrule.ops.creation.conversion import clone
from chainrule.ops.shape.joining import split
from chainrule.ops.core.promotion import cast
from chainrule.ops.shape.views import reshape
from chainrule.ops.shape.stacking import cat
from chainrule.tensor import Tensor
from chainrule.typing import Inputs, Nested

__all__ = [
    "Model",
    "arguments",
    "as_function",
    "blocks",
    "last_layer",
    "one_tensor",
    "paths",
    "ravel",
]


Model: TypeAlias = Callable[..., Any]  # a function f(params, *inputs), or a module


def as_function(model: Model, params: Nested | None = None) -> tuple[Callable[..., Any], Any]:
    """A model as ``(f, params)``, to be called as ``f(params, *inputs)``.

    The parameters of a module are a dict by name, without history. Some of them are enough: the
    others stay as they are. The buffers of a module stay, too, even if it is in training and would
    change them (the running moments of batch normalization).

    >>> from chainrule import curvature, nn, ones, zeros
    >>> f, params = curvature.as_function(nn.Linear(2, 1))
    >>> f({"weight": ones(1, 2), "bias": zeros(1)}, ones(2))
    tensor([2.])
    """
    if hasattr(model, "named_parameters"):
        if params is None:
            params = {name: p.detach() for name, p in model.named_parameters()}

        def function(p: Any, *inputs: Any) -> Any:
            return functional_call(model, {**_spare_buffers(model), **p}, inputs)

        return function, params
    if not callable(model):
        raise TypeError(
            "model: expected a function f(params, *inputs) or an object with named_parameters(), "
            f"got {type(model).__name__}"
        )
    if params is None:
        raise TypeError(
            "model: a function f(params, *inputs) needs its parameters, and params is None; pass "
            "params=..."
        )
    return model, params


def _spare_buffers(model: Any) -> dict[str, Any]:
    """Copies of the buffers of a module that is in training, for it to change."""
    if not getattr(model, "training", False) or not hasattr(model, "named_buffers"):
        return {}
    return {name: clone(b.detach()) for name, b in model.named_buffers()}


def ravel(tree: Nested) -> tuple[Tensor, Callable[[Tensor], Any]]:
    """All tensors of a tree as one vector in tree order, and the way back from such a vector.

    >>> import chainrule
    >>> from chainrule.curvature.parameters import ravel
    >>> vector, unravel = ravel({"w": chainrule.ones(2), "b": chainrule.tensor(3.0)})
    >>> vector
    tensor([1., 1., 3.])
    >>> unravel(2 * vector)
    {'w': tensor([2., 2.]), 'b': tensor(6.)}
    """
    leaves, structure = flatten(tree)
    for x in leaves:
        if not isinstance(x, Tensor):
            raise TypeError(f"ravel: parameters must be Tensors, got {type(x).__name__}")
    sizes = [x.numel() for x in leaves]
    if sum(sizes) == 0:
        raise ValueError("ravel: there are no parameters")
    like = [(tuple(x.shape), x.dtype) for x in leaves]

    def unravel(vector: Tensor) -> Any:
        if tuple(vector.shape) != (sum(sizes),):
            raise RuntimeError(
                f"unravel: expected a vector of {sum(sizes)} elements, one for each parameter, got "
                f"shape {tuple(vector.shape)}"
            )
        parts = zip(split(vector, sizes), like, strict=True)
        return unflatten([cast(reshape(x, shape), dtype) for x, (shape, dtype) in parts], structure)

    return cat([reshape(x, (x.numel(),)) for x in leaves]), unravel


def blocks(matrix: Tensor, params: Nested) -> Any:
    """A (W, W) matrix in the form of ``func.hessian``: a tree of trees of blocks (*P, *Q).

    ``blocks(matrix, params)["w"]["b"]`` has the rows of parameter w and the columns of parameter b.

    >>> import chainrule
    >>> from chainrule import curvature
    >>> params = {"w": chainrule.ones(2), "b": chainrule.tensor(2.0)}
    >>> matrix = curvature.hessian_matrix(lambda p: p["b"] * (p["w"] ** 2).sum(), params)
    >>> curvature.blocks(matrix, params)["w"]["b"]
    tensor([2., 2.])
    """
    leaves, structure = flatten(params)
    sizes = [x.numel() for x in leaves]
    if tuple(matrix.shape) != (sum(sizes), sum(sizes)):
        raise RuntimeError(
            f"blocks: expected a matrix of {sum(sizes)} rows and columns, one for each parameter, "
            f"got shape {tuple(matrix.shape)}"
        )

    def row_of(p: Tensor, rows: Tensor) -> Any:
        columns = zip(split(rows, sizes, 1), leaves, strict=True)
        return unflatten([reshape(x, (*p.shape, *q.shape)) for x, q in columns], structure)

    rows = zip(leaves, split(matrix, sizes), strict=True)
    return unflatten([row_of(p, row) for p, row in rows], structure)


def arguments(inputs: Inputs) -> tuple[Any, ...]:
    """The inputs of a model as a tuple, one entry for each argument."""
    return inputs if isinstance(inputs, tuple) else (inputs,)


def one_tensor(op: str, function: Callable[..., Any]) -> Callable[..., Tensor]:
    """The function, which must return one tensor."""

    def checked(*args: Any) -> Tensor:
        out = function(*args)
        if not isinstance(out, Tensor):
            raise TypeError(
                f"{op}: the model must return one Tensor, got {type(out).__name__}; wrap it in a "
                "function that returns the output you want"
            )
        return out

    return checked


def paths(tree: object, prefix: str = "") -> list[str]:
    """The dotted names of the leaves of a tree; that of a tensor alone is "param".

    >>> paths({"w": 1, "out": [2, 3]})
    ['w', 'out.0', 'out.1']
    """
    if isinstance(tree, dict):
        parts: Any = tree.items()
    elif isinstance(tree, (tuple, list)):
        parts = enumerate(tree)
    else:
        return [prefix or "param"]
    start = f"{prefix}." if prefix else ""
    return [name for key, part in parts for name in paths(part, f"{start}{key}")]


def last_layer(model: Module) -> list[str]:
    """The names of the parameters of the layer that holds the last parameter of a module.

    >>> from chainrule import nn
    >>> last_layer(nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1)))
    ['2.weight', '2.bias']
    """
    names = [name for name, _ in model.named_parameters()]
    if not names:
        raise ValueError("last_layer: the model has no parameters")
    layer = names[-1].rpartition(".")[0]
    return [name for name in names if name.rpartition(".")[0] == layer]

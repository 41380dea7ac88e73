"""Jacobians and Hessians: a pull back or a push for every unit vector, all at once by vmap."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec

from chainrule.ops.core.arguments import placed_like
from chainrule.autograd.func import push_forward
from chainrule.autograd.nested import Structure, flatten, map_tree, unflatten
from chainrule.autograd.rows import for_units
from chainrule.autograd.traced import Traced, select, substitute, unpack_single
from chainrule.backend import K
from chainrule.ops.shape.views import movedim, reshape
from chainrule.tensor import Tensor, of_array

__all__ = ["hessian", "hessian_of", "jacfwd", "jacrev"]

P = ParamSpec("P")


def jacrev(
    func: Callable[P, Any],
    argnums: int | tuple[int, ...] = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
) -> Callable[P, Any]:
    """The Jacobian by reverse mode, one pull back for each output: best for few outputs.

    The Jacobian of an output of shape (K...) by an input of shape (D...) has shape (K..., D...).

    >>> import chainrule
    >>> from chainrule.func import jacrev
    >>> jacrev(lambda x: x.sum() * x)(chainrule.tensor([1.0, 2.0]))
    tensor([[4., 1.],
            [2., 5.]])
    """

    @functools.wraps(func)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> Any:
        selected = substitute(func, args, argnums, kwargs)
        traced = Traced(selected, select(args, argnums), has_aux)
        result = _rows(traced, argnums, chunk_size)
        return (result, traced.aux) if has_aux else result

    return wrapped


def _rows(traced: Traced, argnums: int | tuple[int, ...], chunk_size: int | None) -> Any:
    """The Jacobian of a traced function, one tree of inputs for each output."""
    rows = [
        unpack_single(_pull_basis(traced, i, y, chunk_size), argnums)
        for i, y in enumerate(traced.outputs)
    ]
    return unflatten(rows, traced.out_structure)


def _pull_basis(traced: Traced, i: int, y: Tensor, chunk_size: int | None) -> Any:
    """The gradients of every element of the i-th output, shaped (output..., input...)."""

    def pull(g: Tensor) -> Any:
        cotangents: list[Tensor | None] = [None] * len(traced.outputs)
        cotangents[i] = g
        return traced.pull(cotangents, retain=True)

    shape = y.array.shape
    if shape == ():
        return pull(
            placed_like(y, of_array(K.ones((), y.array.dtype)))
        )  # a batch of one needs no batch
    stacked = for_units(pull, shape, y, chunk_size)

    def as_rows(g: Tensor) -> Tensor:
        return traced.settled(reshape(g, (*shape, *g.array.shape[1:])))

    return map_tree(as_rows, stacked)


def jacfwd(
    func: Callable[P, Any],
    argnums: int | tuple[int, ...] = 0,
    has_aux: bool = False,
    *,
    chunk_size: int | None = None,
) -> Callable[P, Any]:
    """The Jacobian by forward mode, one push for each input: best for few inputs.

    >>> import chainrule
    >>> from chainrule.func import jacfwd
    >>> jacfwd(lambda x: x.sum() * x)(chainrule.tensor([1.0, 2.0]))
    tensor([[4., 1.],
            [2., 5.]])
    """

    @functools.wraps(func)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> Any:
        selected = substitute(func, args, argnums, kwargs)
        primals = select(args, argnums)
        points, structure = flatten(primals)
        columns, aux = [], None
        for i, x in enumerate(points):
            column, aux = _push_basis(selected, points, structure, i, x, has_aux, chunk_size)
            columns.append(column)
        result = _by_output(columns, structure, argnums)
        return (result, aux) if has_aux else result

    return wrapped


def _push_basis(
    func: Callable[..., Any],
    points: list[Any],
    structure: Structure,
    i: int,
    x: Tensor,
    has_aux: bool,
    chunk_size: int | None,
) -> Any:
    """The derivatives by every element of the i-th input, shaped (output..., input...)."""
    outside: list[Any] = []

    def push(t: Tensor) -> Any:
        directions: list[Tensor | None] = [None] * len(points)
        directions[i] = t
        result = push_forward(func, points, directions, structure, has_aux)
        outside[:] = result[2:]
        return result[1]

    shape = tuple(x.shape)
    stacked = for_units(push, shape, x, chunk_size)
    column = map_tree(lambda t: reshape(movedim(t, 0, -1), (*t.shape[1:], *shape)), stacked)
    return column, (outside[0] if outside else None)


def _by_output(columns: list[Any], structure: Structure, argnums: int | tuple[int, ...]) -> Any:
    """Columns (one tree of outputs per input) as one tree of outputs with a tree of inputs each."""
    leaves = [flatten(column)[0] for column in columns]
    out_structure = flatten(columns[0])[1]
    rows = [
        unpack_single(unflatten([column[k] for column in leaves], structure), argnums)
        for k in range(len(leaves[0]))
    ]
    return unflatten(rows, out_structure)


def hessian(func: Callable[P, Any], argnums: int | tuple[int, ...] = 0) -> Callable[P, Any]:
    """The matrix of second derivatives.

    The gradient of a scalar is differentiated in reverse again: its graph is recorded once, and
    only the way back through it is taken for every unit vector. The Jacobian of a function with
    several outputs has more elements than there are inputs, so it is differentiated forward.

    >>> import chainrule
    >>> from chainrule.func import hessian
    >>> hessian(lambda x: (x**3).sum())(chainrule.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    return hessian_of(jacrev(func, argnums), argnums)


def hessian_of(
    gradient: Callable[P, Any], argnums: int | tuple[int, ...], chunk_size: int | None = None
) -> Callable[P, Any]:
    """The derivative of a gradient: what every function that returns a Hessian calls.

    The rows are pulled back through the graph of the gradient, ``chunk_size`` of them at once. The
    Jacobian of several outputs, which ``gradient`` may be too, is differentiated forward.
    """

    @functools.wraps(gradient)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> Any:
        selected = substitute(gradient, args, argnums, kwargs)
        traced = Traced(selected, select(args, argnums), has_aux=False)
        if _is_gradient(traced):
            return _rows(traced, argnums, chunk_size)
        return jacfwd(gradient, argnums, chunk_size=chunk_size)(*args, **kwargs)

    return wrapped


def _is_gradient(traced: Traced) -> bool:
    """Whether a traced Jacobian is the gradient of a scalar, and real (conjugation is not undone
    by a second pass)."""
    inputs, outputs = traced.inputs, traced.outputs
    if [y.array.shape for y in outputs] != [x.array.shape for x in inputs]:
        return False
    return all([t.is_floating_point() for t in (*inputs, *outputs)])

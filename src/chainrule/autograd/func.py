"""Derivatives as functions of functions: grad, vjp, jvp.

Arguments and results may be nested tuples, lists and dicts of tensors. Every transformation can be
applied to the result of every other.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Literal, ParamSpec, TypeAlias, TypeVar, overload

from chainrule.ops.core.arguments import placed_like
from chainrule.autograd.forward_ad import Dual, check_tangent, tangent_of, unpack
from chainrule.autograd.levels import new_level
from chainrule.autograd.nested import Structure, flatten, map_tree, unflatten
from chainrule.autograd.traced import Traced, select, split_aux, substitute, unpack_single
from chainrule.backend import K
from chainrule.tensor import Tensor, of_array
from chainrule.typing import Nested

__all__ = [
    "grad",
    "grad_and_value",
    "hvp",
    "jvp",
    "push_forward",
    "value_and_grad",
    "vjp",
]


P = ParamSpec("P")
R = TypeVar("R")
A = TypeVar("A")
Pull: TypeAlias = Callable[..., tuple[Any, ...]]


def grad_and_value(
    func: Callable[P, R], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[P, tuple[Any, R]]:
    """The function that returns the gradient of ``func`` and its value (or ``(value, aux)``).

    >>> import chainrule
    >>> from chainrule.func import grad_and_value
    >>> grad_and_value(lambda x: x**3)(chainrule.tensor(2.0))
    (tensor(12.), tensor(8.))
    """

    @functools.wraps(func)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> Any:
        selected = substitute(func, args, argnums, kwargs)
        traced = Traced(selected, select(args, argnums), has_aux)
        if len(traced.outputs) != 1 or traced.outputs[0].array.shape != ():
            shapes = [tuple(y.shape) for y in traced.outputs]
            raise RuntimeError(
                "grad: expected the function given to grad to return a tensor with 0 dimensions, "
                f"got shapes {shapes}; reduce it, or use vjp or jacrev"
            )
        out = traced.outputs[0]
        gradients = traced.pull(
            [placed_like(out, of_array(K.ones((), out.array.dtype)))], retain=False
        )
        value = traced.value()
        return unpack_single(gradients, argnums), ((value, traced.aux) if has_aux else value)

    return wrapped


def grad(
    func: Callable[P, Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[P, Any]:
    """The function that computes the gradient of a scalar-valued ``func``.

    >>> import chainrule
    >>> from chainrule.func import grad
    >>> grad(grad(lambda x: x**3))(chainrule.tensor(2.0))
    tensor(12.)
    """

    @functools.wraps(func)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> Any:
        gradient, value = grad_and_value(func, argnums, has_aux)(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return wrapped


def value_and_grad(
    func: Callable[P, R], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[P, tuple[R, Any]]:
    """Like :func:`grad_and_value`, the value first.

    >>> import chainrule
    >>> from chainrule.func import value_and_grad
    >>> value_and_grad(lambda x: x**3)(chainrule.tensor(2.0))
    (tensor(8.), tensor(12.))
    """

    @functools.wraps(func)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> Any:
        gradient, value = grad_and_value(func, argnums, has_aux)(*args, **kwargs)
        return value, gradient

    return wrapped


@overload
def vjp(
    func: Callable[..., R], *primals: Nested, has_aux: Literal[False] = False
) -> tuple[R, Pull]: ...
@overload
def vjp(
    func: Callable[..., tuple[R, A]], *primals: Nested, has_aux: Literal[True]
) -> tuple[R, Pull, A]: ...
def vjp(func: Callable[..., Any], *primals: Nested, has_aux: bool = False) -> tuple[Any, ...]:
    """The value of ``func`` at the primals, and the function that maps a cotangent of the output to
    cotangents of the inputs.

    >>> import chainrule
    >>> from chainrule.func import vjp
    >>> y, pull = vjp(chainrule.sin, chainrule.zeros(2))
    >>> pull(chainrule.tensor([1.0, 2.0]))
    (tensor([1., 2.]),)
    """
    traced = Traced(func, primals, has_aux)

    def pull(*cotangents: Nested) -> tuple[Any, ...]:
        given = cotangents[0] if len(cotangents) == 1 else cotangents
        leaves, structure = flatten(given)
        if structure != traced.out_structure and len(leaves) != len(traced.outputs):
            raise RuntimeError(
                f"vjp: expected cotangents of the structure of the output ({len(traced.outputs)} "
                f"tensors), got {len(leaves)}"
            )
        return traced.pull(leaves, retain=True)

    out = traced.value()
    return (out, pull, traced.aux) if has_aux else (out, pull)


@overload
def jvp(
    func: Callable[..., R],
    primals: tuple[Nested, ...],
    tangents: tuple[Nested, ...],
    *,
    has_aux: Literal[False] = False,
) -> tuple[R, R]: ...
@overload
def jvp(
    func: Callable[..., tuple[R, A]],
    primals: tuple[Nested, ...],
    tangents: tuple[Nested, ...],
    *,
    has_aux: Literal[True],
) -> tuple[R, R, A]: ...
def jvp(
    func: Callable[..., Any],
    primals: tuple[Nested, ...],
    tangents: tuple[Nested, ...],
    *,
    has_aux: bool = False,
) -> tuple[Any, ...]:
    """The value of ``func`` at the primals and its derivative in the direction of the tangents.

    >>> import chainrule
    >>> from chainrule.func import jvp
    >>> jvp(chainrule.sin, (chainrule.tensor(0.0),), (chainrule.tensor(2.0),))
    (tensor(0.), tensor(2.))
    """
    if not isinstance(primals, tuple) or not isinstance(tangents, tuple):
        raise RuntimeError("jvp: primals and tangents must be tuples, one entry for each argument")
    points, structure = flatten(primals)
    directions, _ = flatten(tangents)
    if len(points) != len(directions):
        raise RuntimeError(f"jvp: got {len(points)} primals and {len(directions)} tangents")
    for p, t in zip(points, directions, strict=True):
        check_tangent("jvp", p, t)
    return push_forward(func, points, directions, structure, has_aux)


def push_forward(
    func: Callable[..., Any],
    points: list[Tensor],
    directions: list[Tensor | None],
    structure: Structure,
    has_aux: bool,
) -> tuple[Any, ...]:
    """:func:`jvp` of flattened arguments; a direction is None for zero, which saves its work."""
    with new_level(Dual) as level:
        duals = [of_array(Dual(level, p, t)) for p, t in zip(points, directions, strict=True)]
        result, aux = split_aux(func(*unflatten(duals, structure)), has_aux)
        out = map_tree(lambda y: unpack(level, y)[0], result)
        tangent = map_tree(lambda y: tangent_of(level, y), result)
        aux = map_tree(lambda y: unpack(level, y)[0] if isinstance(y, Tensor) else y, aux)
    return (out, tangent, aux) if has_aux else (out, tangent)


def hvp(
    func: Callable[..., Tensor], primals: tuple[Nested, ...], tangents: tuple[Nested, ...]
) -> Any:
    """The Hessian of a scalar-valued ``func`` times a vector, without the Hessian.

    One forward pass through the gradient: the cost of a few evaluations. Returns a tuple like
    ``primals`` (its one entry if there is one argument).

    >>> import chainrule
    >>> from chainrule.func import hvp
    >>> x, v = chainrule.tensor([1.0, 2.0]), chainrule.tensor([1.0, 10.0])
    >>> hvp(lambda x: (x**3).sum(), (x,), (v,))
    tensor([  6., 120.])
    """
    argnums = tuple(range(len(primals)))
    product = jvp(grad(func, argnums), primals, tangents)[1]
    return product[0] if len(primals) == 1 else product

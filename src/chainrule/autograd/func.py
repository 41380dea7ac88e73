"""Derivatives as functions of functions: grad, vjp, jvp.

Arguments and results may be nested tuples, lists and dicts of tensors. Every transformation can be
applied to the result of every other.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from chainrule.autograd import engine
from chainrule.autograd.forward_ad import Dual, check_tangent, tangent_of, unpack
from chainrule.autograd.levels import innermost, lift, new_level
from chainrule.autograd.modes import enable_grad
from chainrule.autograd.nested import flatten, map_tree, unflatten
from chainrule.backend import K
from chainrule.ops.creation.conversion import clone
from chainrule.ops.core.apply import edge_of
from chainrule.graph import Node
from chainrule.tensor import Tensor

__all__ = [
    "Traced",
    "grad",
    "grad_and_value",
    "hvp",
    "jvp",
    "push_forward",
    "select",
    "substitute",
    "unpack_single",
    "value_and_grad",
    "vjp",
    "without_history",
]


def _fresh(x: Any) -> Any:
    """An input to differentiate with respect to: the same value, its own place in the graph."""
    if not isinstance(x, Tensor):
        raise TypeError(
            f"func: can only differentiate with respect to Tensors, got {type(x).__name__}"
        )
    x = lift(x)
    if edge_of(x) is not None:
        return clone(x)
    leaf = Tensor(x.array)
    leaf.needs_grad = x.array.dtype.kind in "fc"
    if not leaf.needs_grad:
        raise RuntimeError(
            f"func: only tensors of floating point dtype can be differentiated, got {x.dtype}"
        )
    return leaf


def _depends_on_others(outputs: list[Tensor], inputs: list[Tensor]) -> bool:
    """Whether a graph reaches beyond its inputs, so that its derivatives may be differentiated."""
    if innermost():
        return True
    own = {edge_of(x) for x in inputs}
    seen = {edge_of(y) for y in outputs} - {None}
    stack = list(seen)
    while stack:
        edge = stack.pop()
        if not isinstance(edge, Node):
            if edge in own or "closed" in edge.__dict__:
                continue
            return True
        if edge in own:
            return True
        for e in edge.edges:
            if e is not None and e not in seen:
                seen.add(e)
                stack.append(e)
    return False


class Traced:
    """A function evaluated with fresh inputs, ready for any number of pulls back."""

    def __init__(self, func: Callable[..., Any], primals: tuple[Any, ...], has_aux: bool):
        with enable_grad():
            leaves, self.structure = flatten(primals)
            self.inputs = [_fresh(x) for x in leaves]
            result = func(*unflatten(self.inputs, self.structure))
        for x in self.inputs:
            if x._node is None:
                x.__dict__["closed"] = True  # a variable for the function alone
        result, self.aux = _split_aux(result, has_aux)
        self.outputs, self.out_structure = flatten(result)
        for y in self.outputs:
            if not isinstance(y, Tensor):
                raise TypeError(f"func: the function must return Tensors, got {type(y).__name__}")
        self.create_graph = _depends_on_others(self.outputs, self.inputs)
        if not self.create_graph:
            self.aux = map_tree(without_history, self.aux)

    def value(self) -> Any:
        keep = self.create_graph
        return unflatten(
            [y if keep else without_history(y) for y in self.outputs], self.out_structure
        )

    def pull(self, cotangents: Sequence[Tensor | None], retain: bool) -> Any:
        """The gradients of the inputs for these gradients of the outputs (None for zero)."""
        pairs = [
            (y, g)
            for y, g in zip(self.outputs, cotangents, strict=True)
            if g is not None and edge_of(y) is not None
        ]
        if not pairs:
            zeros = [Tensor(K.zeros(x.array.shape, x.array.dtype)) for x in self.inputs]
            return unflatten(zeros, self.structure)
        gradients = engine.grad(
            [y for y, _ in pairs],
            self.inputs,
            [g for _, g in pairs],
            retain_graph=retain or self.create_graph,
            create_graph=self.create_graph or any(edge_of(g) is not None for _, g in pairs),
            materialize_grads=True,
        )
        return unflatten([self.settled(g) for g in gradients], self.structure)

    def settled(self, gradient: Tensor) -> Tensor:
        """A gradient with its history only if that reaches something outside."""
        if gradient.needs_grad and not _depends_on_others([gradient], self.inputs):
            return without_history(gradient)
        return gradient


def without_history(x: Any) -> Any:
    return Tensor(x.array) if isinstance(x, Tensor) else x


def _split_aux(result: Any, has_aux: bool) -> tuple[Any, Any]:
    if not has_aux:
        return result, None
    if not (isinstance(result, tuple) and len(result) == 2):
        raise RuntimeError("func: with has_aux=True the function must return (output, aux)")
    return result


def select(args: tuple[Any, ...], argnums: int | tuple[int, ...]) -> tuple[Any, ...]:
    numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    for n in numbers:
        if not -len(args) <= n < len(args):
            raise RuntimeError(
                f"func: got argnums={argnums}, but only {len(args)} positional inputs"
            )
    return tuple(args[n] for n in numbers)


def substitute(
    func: Callable[..., Any], args: tuple[Any, ...], argnums: int | tuple[int, ...], kwargs: Any
) -> Callable[..., Any]:
    """``func`` as a function of the selected arguments alone."""
    numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)

    def selected(*values: Any) -> Any:
        full = list(args)
        for n, value in zip(numbers, values, strict=True):
            full[n] = value
        return func(*full, **kwargs)

    return selected


def unpack_single(gradients: Any, argnums: int | tuple[int, ...]) -> Any:
    return gradients[0] if isinstance(argnums, int) else gradients


def grad_and_value(
    func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """The function that returns the gradient of ``func`` and its value (or ``(value, aux)``)."""

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        selected = substitute(func, args, argnums, kwargs)
        traced = Traced(selected, select(args, argnums), has_aux)
        if len(traced.outputs) != 1 or traced.outputs[0].array.shape != ():
            shapes = [tuple(y.shape) for y in traced.outputs]
            raise RuntimeError(
                "grad: expected the function given to grad to return a tensor with 0 dimensions, "
                f"got shapes {shapes}; reduce it, or use vjp or jacrev"
            )
        out = traced.outputs[0]
        gradients = traced.pull([Tensor(K.ones((), out.array.dtype))], retain=False)
        value = traced.value()
        return unpack_single(gradients, argnums), ((value, traced.aux) if has_aux else value)

    return wrapped


def grad(
    func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """The function that computes the gradient of a scalar-valued ``func``.

    >>> import chainrule
    >>> from chainrule.func import grad
    >>> grad(grad(lambda x: x**3))(chainrule.tensor(2.0))
    tensor(12.)
    """

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        gradient, value = grad_and_value(func, argnums, has_aux)(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return wrapped


def value_and_grad(
    func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """Like :func:`grad_and_value`, the value first."""

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        gradient, value = grad_and_value(func, argnums, has_aux)(*args, **kwargs)
        return value, gradient

    return wrapped


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """The value of ``func`` at the primals, and the function that maps a cotangent of the output to
    cotangents of the inputs.

    >>> import chainrule
    >>> from chainrule.func import vjp
    >>> y, pull = vjp(chainrule.sin, chainrule.zeros(2))
    >>> pull(chainrule.tensor([1.0, 2.0]))
    (tensor([1., 2.]),)
    """
    traced = Traced(func, primals, has_aux)

    def pull(*cotangents: Any) -> Any:
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


def jvp(
    func: Callable[..., Any],
    primals: tuple[Any, ...],
    tangents: tuple[Any, ...],
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
    structure: Any,
    has_aux: bool,
) -> tuple[Any, ...]:
    """:func:`jvp` of flattened arguments; a direction is None for zero, which saves its work."""
    with new_level(Dual) as level:
        duals = [Tensor(Dual(level, p, t)) for p, t in zip(points, directions, strict=True)]
        result, aux = _split_aux(func(*unflatten(duals, structure)), has_aux)
        out = map_tree(lambda y: unpack(level, y)[0], result)
        tangent = map_tree(lambda y: tangent_of(level, y), result)
        aux = map_tree(lambda y: unpack(level, y)[0] if isinstance(y, Tensor) else y, aux)
    return (out, tangent, aux) if has_aux else (out, tangent)


def hvp(func: Callable[..., Any], primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> Any:
    """The Hessian of a scalar-valued ``func`` times a vector, without the Hessian.

    One forward pass through the gradient: the cost of a few evaluations. Returns a tuple like
    ``primals`` (its one entry if there is one argument).
    """
    argnums = tuple(range(len(primals)))
    product = jvp(grad(func, argnums), primals, tangents)[1]
    return product[0] if len(primals) == 1 else product

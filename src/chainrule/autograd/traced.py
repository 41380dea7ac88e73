"""A function evaluated with fresh inputs, and its arguments and results taken apart."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, overload

from chainrule.ops.core.arguments import placed_like
from chainrule.autograd import engine
from chainrule.autograd.levels import innermost, lift
from chainrule.autograd.modes import enable_grad
from chainrule.autograd.nested import flatten, map_tree, unflatten
from chainrule.backend import K
from chainrule.graph import Node
from chainrule.ops.core.recording import edge_of
from chainrule.ops.creation.conversion import clone
from chainrule.tensor import OtherLayout, Tensor, of_array

T = TypeVar("T")

__all__ = ["Traced", "select", "split_aux", "substitute", "unpack_single", "without_history"]


def _fresh(x: object) -> Tensor:
    """An input to differentiate with respect to: the same value, its own place in the graph."""
    if not isinstance(x, Tensor):
        raise TypeError(
            f"func: can only differentiate with respect to Tensors, got {type(x).__name__}"
        )
    x = lift(x)
    if edge_of(x) is not None:
        return clone(x)
    leaf = of_array(x.array)
    leaf.needs_grad = K.kind_of(x.array.dtype) in "fc"
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
        result, self.aux = split_aux(result, has_aux)
        self.outputs, self.out_structure = flatten(result)
        for y in self.outputs:
            if not isinstance(y, Tensor):
                raise TypeError(f"func: the function must return Tensors, got {type(y).__name__}")
        self.create_graph = _depends_on_others(self.outputs, self.inputs)
        if not self.create_graph:
            self.aux = map_tree(without_history, self.aux)

    def value(self) -> Any:
        """What the function returned, with its history if derivatives may be taken outside."""
        keep = self.create_graph
        return unflatten(
            [y if keep else without_history(y) for y in self.outputs], self.out_structure
        )

    def pull(self, cotangents: Sequence[Tensor | None], retain: bool) -> tuple[Any, ...]:
        """The gradients of the inputs for these gradients of the outputs (None for zero)."""
        pairs = [
            (y, g)
            for y, g in zip(self.outputs, cotangents, strict=True)
            if g is not None and edge_of(y) is not None
        ]
        if not pairs:
            zeros = [
                placed_like(x, of_array(K.zeros(x.array.shape, x.array.dtype))) for x in self.inputs
            ]
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
        if isinstance(gradient, OtherLayout):
            return gradient.to_dense()
        if gradient.needs_grad and not _depends_on_others([gradient], self.inputs):
            return without_history(gradient)
        return gradient


@overload
def without_history(x: Tensor) -> Tensor: ...
@overload
def without_history(x: T) -> T: ...
def without_history(x: object) -> object:
    """The same value as a constant (anything but a tensor as it is)."""
    return of_array(x.array) if isinstance(x, Tensor) else x


def split_aux(result: object, has_aux: bool) -> tuple[Any, Any]:
    """What a function returned: its output, and what it hands out beside it (or None)."""
    if not has_aux:
        return result, None
    if not (isinstance(result, tuple) and len(result) == 2):
        raise RuntimeError("func: with has_aux=True the function must return (output, aux)")
    return result


def select(args: tuple[Any, ...], argnums: int | tuple[int, ...]) -> tuple[Any, ...]:
    """The arguments of these numbers."""
    numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    for n in numbers:
        if not -len(args) <= n < len(args):
            raise RuntimeError(
                f"func: got argnums={argnums}, but only {len(args)} positional inputs"
            )
    return tuple(args[n] for n in numbers)


def substitute(
    func: Callable[..., Any],
    args: tuple[Any, ...],
    argnums: int | tuple[int, ...],
    kwargs: Mapping[str, Any],
) -> Callable[..., Any]:
    """``func`` as a function of the selected arguments alone."""
    numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)

    def selected(*values: Any) -> Any:
        full = list(args)
        for n, value in zip(numbers, values, strict=True):
            full[n] = value
        return func(*full, **kwargs)

    return selected


def unpack_single(gradients: tuple[Any, ...], argnums: int | tuple[int, ...]) -> Any:
    """The one entry if one argument was asked for by its number, all if by a tuple."""
    return gradients[0] if isinstance(argnums, int) else gradients

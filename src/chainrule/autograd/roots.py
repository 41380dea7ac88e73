"""Where a backward pass starts: the outputs' places in the graph and their gradients."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias, TypeVar

from chainrule.autograd.modes import enable_grad, no_grad
from chainrule.backend import K
from chainrule.backend.devices import put
from chainrule.backend.placed import Placed
from chainrule.graph import Box, Edge, Mode, mode
from chainrule.ops.core.recording import edge_of
from chainrule.ops.core.pointwise import constant
from chainrule.tensor import OtherLayout, Tensor, of_array

__all__ = ["Cotangents", "any_boxed", "recording", "roots_of", "sequence"]

# The gradients of the outputs; None for that of a loss, 1.
Cotangents: TypeAlias = Tensor | Sequence[Tensor | None] | None
T = TypeVar("T")


def roots_of(
    op: str, tensors: Sequence[Tensor], cotangents: Cotangents, on_tensors: bool
) -> tuple[list[Edge], dict[Any, Any]]:
    """The edges of the outputs and their gradients."""
    if cotangents is None:
        if len(tensors) == 1 and not on_tensors and not tensors[0].array.ndim:  # a loss
            edge = edge_of(tensors[0])
            if edge is not None:
                return [edge], {edge: _ones_like(tensors[0].array)}
        cotangents = [None] * len(tensors)
    elif isinstance(cotangents, Tensor):
        cotangents = [cotangents]
    if len(cotangents) != len(tensors):
        raise RuntimeError(f"{op}: got {len(tensors)} tensors and {len(cotangents)} gradients")
    edges: list[Edge] = []
    gradients: dict[Any, Any] = {}
    for i, (t, g) in enumerate(zip(tensors, cotangents, strict=True)):
        edge = edge_of(t)
        if edge is None:
            raise RuntimeError(
                f"{op}: element {i} of tensors does not require grad and does not have a grad_fn; "
                "was it computed under no_grad, or does nothing it depends on require grad?"
            )
        g = _cotangent(op, t, g)
        if not on_tensors:
            g = g.array
        gradients[edge] = gradients[edge] + g if edge in gradients else g
        edges.append(edge)
    return edges, gradients


def _cotangent(op: str, t: Tensor, g: Tensor | None) -> Tensor:
    if g is None:
        if t.array.size != 1:
            raise RuntimeError(
                f"{op}: grad can be implicitly created only for scalar outputs, but the tensor has "
                f"shape {tuple(t.shape)}; reduce it (for example .sum()) or pass its gradient"
            )
        return of_array(_ones_like(t.array))
    if not isinstance(g, Tensor):
        raise TypeError(f"{op}: gradients must be Tensors or None, not {type(g).__name__}")
    if g.array.shape != t.array.shape:
        raise RuntimeError(
            f"{op}: mismatch in shape: the gradient has shape {tuple(g.shape)} and the output has "
            f"shape {tuple(t.shape)}"
        )
    return g


def _ones_like(a: Any) -> Any:
    """1 for each element, where these are."""
    if a.__class__ is Placed:
        return put(K.ones(a.shape, a.dtype), a.place, a)
    return constant(1.0, a.dtype) if a.shape == () else K.ones(a.shape, a.dtype)


def any_boxed(outputs: Sequence[Tensor], cotangents: Cotangents) -> bool:
    """Whether a transformation is involved: then the rules must run on tensors."""
    if not mode.flags & Mode.BOXED:
        return False
    tensors = [*outputs, *(() if cotangents is None else sequence(cotangents))]
    return any(isinstance(t.array, Box) for t in tensors if t is not None)


def recording(
    create_graph: bool, outputs: Sequence[Tensor], cotangents: Cotangents
) -> enable_grad | no_grad:
    """Whether rules on tensors record: if asked to, or if something outside may need it."""
    given = [] if cotangents is None else [g for g in sequence(cotangents) if g is not None]
    outside = any(isinstance(t.array, Box) for t in outputs) or any(_has_history(g) for g in given)
    return enable_grad() if create_graph or outside else no_grad()


def _has_history(t: Tensor) -> bool:
    """Whether a tensor, or one that it holds in a box, came from tensors that require grad."""
    if edge_of(t) is not None:
        return True
    return isinstance(t.array, Box) and any(_has_history(held) for held in t.array.held())


def sequence(x: Tensor | Iterable[T]) -> tuple[Tensor | T, ...]:
    """One tensor or several, as a sequence."""
    return (x,) if isinstance(x, (Tensor, OtherLayout)) else tuple(x)

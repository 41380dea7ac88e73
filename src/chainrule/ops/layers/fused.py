"""Operations that are often applied together, as one: one node, and one pass over the memory.

They are primitives like any other, with all their rules. Only the ordinary path makes nodes of
them: transformations and traces see the single operations, and what reads the graph (an account of
the backward pass, say) can be told of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chainrule.backend import K
from chainrule.graph import Edges, Node, Saved, mode
from chainrule.ops.core.batching import rule_of
from chainrule.ops.core.pointwise import F32, F64, Unary
from chainrule.ops.core.primitive import REGISTRY, Op
from chainrule.ops.core.recording import output_tensor, two
from chainrule.ops.linalg.matmul import LinearMap
from chainrule.ops.reduce.reductions import sum
from chainrule.tensor import Tensor
from chainrule.typing import Gradients, Tangents, Value

__all__ = [
    "ActivatedLinear",
    "SquaredError",
    "linear_relu",
    "linear_sigmoid",
    "linear_tanh",
    "squared_error",
    "squared_errors",
]

# --- a linear map and its activation --------------------------------------------------------------


class ActivatedLinear(Op):
    """f(x @ weight.T + bias) for an activation f whose slope follows from its value.

    What :class:`chainrule.nn.Sequential` makes of a linear layer and the activation after it.
    """

    saves_out = True

    def __init__(self, activation: str):
        super().__init__(f"linear_{activation}", _batch_of_activated)
        self.backward = f"{self.name}_backward"
        linear, f = REGISTRY["linear"], REGISTRY[activation]
        if not isinstance(linear, LinearMap) or not isinstance(f, Unary):
            raise TypeError(f"{activation} is no elementwise function")
        self.map, self.activation, self.differential = linear, f, f.differential

    def save(self, inputs: tuple[Tensor, ...], edges: Edges) -> Saved:
        return self.map.save(inputs, edges)

    def vjp(self, node: Node, g: Value, tensors: bool) -> Gradients:
        if tensors:
            return self.map.vjp(node, self.differential(g, output_tensor(node)), True)
        x, w, edges = node.saved[0], node.saved[1], node.edges
        parts = getattr(K, self.backward)(
            g,
            node.out,
            None if x is None else x.array,
            None if w is None else w.array,
            len(edges) > 2 and edges[2] is not None,
        )
        return parts if len(edges) > 2 else parts[:2]

    def jvp(
        self, tangents: Tangents, out: Value, inputs: Sequence[Value], params: dict[str, Any]
    ) -> Value:
        return self.differential(self.map.jvp(tangents, out, inputs, params), out)


def _batch_of_activated(
    op: Op, size: int, values: Sequence[Tensor], mapped: Sequence[bool], params: dict[str, Any]
) -> Tensor:
    """vmap: the two operations one after the other."""
    if not isinstance(op, ActivatedLinear):
        raise TypeError(f"{op.name} is no linear map with an activation")
    return op.activation(rule_of(op.map)(op.map, size, values, mapped, params))


linear_relu, linear_sigmoid, linear_tanh = map(ActivatedLinear, ("relu", "sigmoid", "tanh"))

# --- squared errors -------------------------------------------------------------------------------


class SquaredError(Op):
    """scale * sum((x - y)^2): the mean of squared errors, or their sum."""

    def vjp(self, node: Node, g: Value, tensors: bool) -> Gradients:
        (x, y), (edge_x, edge_y), scale = node.saved, node.edges, node.params["scale"]
        if tensors:
            gx = g * (2 * scale) * (x - y)
        else:
            gx = K.squared_error_backward(g, x.array, y.array, scale)
        return (None if edge_x is None else gx, None if edge_y is None else -gx)

    def jvp(
        self, tangents: Tangents, out: Value, inputs: Sequence[Value], params: dict[str, Any]
    ) -> Value:
        (x, y), (tx, ty) = inputs, tangents
        change = tx if ty is None else -ty if tx is None else tx - ty
        return sum((2 * params["scale"]) * (x - y) * change)


def _batch_of_errors(
    op: Op, size: int, values: Sequence[Tensor], mapped: Sequence[bool], params: dict[str, Any]
) -> Tensor:
    """vmap: a sum for each member."""
    d = values[0] - values[1]
    return params["scale"] * sum(d * d, tuple(range(1, d.ndim)))


squared_errors = SquaredError("squared_error", _batch_of_errors)


def squared_error(input: Tensor, target: Tensor, mean: bool) -> Tensor | None:
    """The mean or the sum of (input - target)^2; None where the case is not the ordinary one."""
    flags = mode.flags
    if flags > 1 or not isinstance(input, Tensor) or not isinstance(target, Tensor):
        return None
    x, y = input.array, target.array
    dtype = x.dtype
    if dtype is not y.dtype or (dtype is not F32 and dtype is not F64) or x.shape != y.shape:
        return None
    if not x.size:
        return None
    scale = 1.0 / x.size if mean else 1.0
    array = squared_errors.raw(x, y, scale)
    return two(squared_errors, input, target, array, flags, {"scale": scale})

"""Operations that are often applied together, as one: one node, and one pass over the memory.

Only the ordinary path makes nodes of them. Transformations and traces see the single operations,
and so does everybody who asks for second derivatives: the rules here say on tensors what those
of the single operations say, one after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chainrule.backend import K, bind
from chainrule.graph import Node, mode
from chainrule.ops.core.apply import edge_of, output_tensor
from chainrule.ops.linalg.matmul import LinearMap
from chainrule.ops.core.pointwise import F32, F64
from chainrule.ops.core.primitive import REGISTRY, Op
from chainrule.tensor import Tensor

__all__ = ["ActivatedLinear", "squared_error"]


class ActivatedLinear(Op):
    """The linear map, then an activation whose slope follows from its value: what
    :class:`chainrule.nn.Sequential` makes of a linear layer and the activation after it."""

    saves_out = True

    def __init__(self, activation: str):
        self.name = f"linear_{activation}"
        self.backward = f"{self.name}_backward"
        self.map: LinearMap = REGISTRY["linear"]  # type: ignore[assignment]
        self.differential = REGISTRY[activation].differentials[0]  # type: ignore[attr-defined]
        bind(self, self.name)

    def vjp(self, node: Node, g: Any, tensors: bool) -> Sequence[Any]:
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


class _SquaredError(Op):
    """scale * sum((x - y)^2): the mean of squared errors, or their sum."""

    name = "squared_error"

    def __init__(self) -> None:
        bind(self, self.name)

    def vjp(self, node: Node, g: Any, tensors: bool) -> Sequence[Any]:
        (x, y), (edge_x, edge_y), scale = node.saved, node.edges, node.params["scale"]
        if tensors:
            gx = g * (2 * scale) * (x - y)
        else:
            gx = K.squared_error_backward(g, x.array, y.array, scale)
        return (None if edge_x is None else gx, None if edge_y is None else -gx)


_squared_error = _SquaredError()


def squared_error(input: Any, target: Any, mean: bool) -> Tensor | None:
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
    array = _squared_error.raw(x, y, scale)
    out = Tensor(array if array.__class__ is K.Array else K.asarray(array))
    if flags:
        edges = (edge_of(input), edge_of(target))
        if edges[0] is not None or edges[1] is not None:
            out._node = Node(_squared_error, edges, (input, target), None, None, {"scale": scale})
            out.needs_grad = True
    return out

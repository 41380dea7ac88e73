"""What the nodes of a graph computed, as far as the graph still knows."""

from __future__ import annotations

from typing import Any

from chainrule.backend import K
from chainrule.graph import Node
from chainrule.tensor import Tensor

__all__ = ["NodeValues"]


class NodeValues:
    """The values of nodes: saved, or computed again from what their inputs saved."""

    def __init__(self) -> None:
        self.known: dict[Node, Any] = {}

    def of(self, node: Node) -> Any:
        """The output of a node, None if the graph does not keep enough to work it out."""
        stack = [node]
        while stack:
            top = stack[-1]
            if top in self.known:
                stack.pop()
                continue
            missing = [e for e in self._recomputed(top) if e not in self.known]
            if missing:
                stack += missing
                continue
            self.known[top] = self._compute(top)
            stack.pop()
        return self.known[node]

    def _recomputed(self, node: Node) -> list[Node]:
        """The nodes whose outputs are needed and were not saved."""
        if node.out is not None or node.op.name in ("overlay", "index_put"):
            return []
        # What the backward kernel of a fused operation reads stands behind the inputs.
        saved = (node.saved or (None,) * len(node.edges))[: len(node.edges)]
        return [
            e for e, s in zip(node.edges, saved, strict=True) if s is None and isinstance(e, Node)
        ]

    def _compute(self, node: Node) -> Any:
        if node.out is not None:
            return node.out
        raw = getattr(node.op, "raw", None)
        if raw is None:
            return None
        inputs = [self.input(node, i) for i in range(len(node.edges))]
        if any(x is None for x in inputs):
            return None
        return K.asarray(raw(*inputs, **(node.params or {})))

    def input(self, node: Node, i: int) -> Any:
        """The i-th input of a node, None if it is not known."""
        if node.saved is not None and node.saved[i] is not None:
            return node.saved[i].array
        edge = node.edges[i]
        if isinstance(edge, Tensor):
            return edge.array
        return (
            None
            if edge is None
            else self.known.get(edge, None)
            if edge in self.known
            else self.of(edge)
        )

"""Rows of a table whose gradient is sparse: an entry for each row that was read."""

from __future__ import annotations

from typing import Any

from chainrule.backend import K
from chainrule.graph import Node
from chainrule.ops.core.primitive import Op
from chainrule.ops.index.choice import FULL, Choice, index_batch, index_place
from chainrule.sparse.sparse_tensor import SparseTensor
from chainrule.sparse.structure import Structure
from chainrule.tensor import Tensor, of_array
from chainrule.typing import Gradients, Value

__all__ = ["sparse_rows"]


class SparseRows(Choice):
    """Rows of a matrix. Where nothing is recorded, the gradient of a leaf is a sparse tensor; a
    gradient that is differentiated itself, or that flows on, is dense."""

    def __init__(self, name: str):
        Op.__init__(self, name, index_batch, "index")
        self.transpose = lambda g, shape, index, **params: index_place(
            g, index, shape=shape, **params
        )

    def vjp(self, node: Node, g: Value, tensors: bool) -> Gradients:
        if tensors or not isinstance(node.edges[0], Tensor):
            return super().vjp(node, g, tensors)
        index, shape = node.saved[1].array, node.shapes[0]
        structure = Structure(K.owned(index.reshape(1, -1), True), shape)
        values: Any = g
        gradient: Any = SparseTensor.of(structure, of_array(values.reshape(-1, shape[1])))
        return gradient, None


_sparse_rows = SparseRows("sparse_rows")


def sparse_rows(weight: Tensor, index: Tensor) -> Tensor:
    """weight[index] for a matrix, with a sparse gradient."""
    return _sparse_rows(weight, index, entries=(..., FULL), tail=1, distinct=False)

"""How much memory a matrix may take, and how much work is done at once."""

from __future__ import annotations

from chainrule.backend import dtypes
from chainrule.graph import Node
from chainrule.ops.core.recording import edge_of
from chainrule.tensor import Tensor

__all__ = ["AT_ONCE", "CHUNK_BYTES", "MATRIX_LIMIT", "at_once", "check_matrix", "graph_bytes"]

MATRIX_LIMIT = 2 * 2**30  # bytes: the largest matrix that is formed; assign another to change it
CHUNK_BYTES = 2**28  # bytes: what the products that are made together may take, about
AT_ONCE = 64  # products made together: enough to hide the cost of a call


def check_matrix(op: str, rows: int, columns: int, dtype: dtypes.dtype, instead: str) -> None:
    """Raises MemoryError if a matrix takes more than ``MATRIX_LIMIT`` bytes.

    ``instead`` names what to use in its place.
    """
    size = rows * columns * dtype.itemsize
    if size > MATRIX_LIMIT:
        raise MemoryError(
            f"{op}: a matrix of {rows} x {columns} numbers of {dtype.name} takes {size} bytes "
            f"({size / 2**30:.1f} GiB), and the limit is {MATRIX_LIMIT} "
            f"(chainrule.curvature.memory.MATRIX_LIMIT). {instead}"
        )


def graph_bytes(*tensors: Tensor) -> int:
    """What the graphs of some tensors keep in memory for their derivatives, each array once."""
    stack = [edge_of(t) for t in tensors]
    seen: set[int] = set()
    arrays: dict[int, int] = {}
    while stack:
        node = stack.pop()
        if not isinstance(node, Node) or id(node) in seen:
            continue
        seen.add(id(node))
        kept = [t.array for t in node.saved or () if isinstance(t, Tensor)]
        for array in [*kept, *(node.out if isinstance(node.out, tuple) else [node.out])]:
            arrays[id(array)] = getattr(array, "nbytes", 0)
        stack += node.edges
    return sum(arrays.values())


def at_once(one: int, chunk_size: int | None = None) -> int:
    """How many of something that takes ``one`` bytes to make together, unless it is said."""
    if chunk_size is not None:
        return chunk_size
    return max(1, min(AT_ONCE, CHUNK_BYTES // max(one, 1)))

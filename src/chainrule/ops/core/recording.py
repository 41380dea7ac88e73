"""The one place where an operation on tensors becomes a node of the graph.

An operation that has a short way through (a guard for the ordinary case, then its kernel) hands the
array that came out to the variant for its inputs, which wraps it in a tensor and, if an input asks
for a gradient, records the node:

=============  ==========================================================  ========================
variant        inputs                                                      used by
=============  ==========================================================  ========================
``one``        one tensor                                                  unary, Linear, reductions
``two``        two tensors                                                 binary, losses
``affine``     two factors and a term, or None                             matmul, linear, conv
``several``    any number, and arrays that the backward kernel reads       normalization
``record``     any number, of any kind; what all others come down to       apply
=============  ==========================================================  ========================

Tensors and nodes are made without calling their classes: that takes half the time, and in a small
network it is most of what an operation costs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from chainrule.backend import K
from chainrule.graph import Box, Edge, Edges, Mode, Node, View, mode, next_seq
from chainrule.tensor import Tensor, of_array

if TYPE_CHECKING:
    from chainrule.typing import Array
    from chainrule.ops.core.primitive import Op

__all__ = [
    "SELECT",
    "affine",
    "edge_of",
    "keep_table",
    "note_view",
    "one",
    "output_tensor",
    "record",
    "restated",
    "saved_values",
    "several",
    "two",
]

ARRAY = K.Array
new = object.__new__

# --- edges and saved values -----------------------------------------------------------------------


def edge_of(t: Tensor) -> Edge | None:
    """Where a gradient for this tensor flows to: its node, the leaf itself, or nowhere."""
    if t._view is not None:
        t._refresh()
    if not t.needs_grad:
        return None
    return t if t._node is None else t._node


def keep_table(reads: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """Which of two inputs to save, by which of them have an edge.

    ``reads[i]`` are the inputs that the gradient of input i reads. The entry ``(x has an edge) +
    2 * (y has one)`` is 1 if x is to be saved, plus 2 if y is.
    """
    table = []
    for edges in range(4):
        read = {k for i in (0, 1) if edges >> i & 1 for k in reads[i]}
        table.append((0 in read) + 2 * (1 in read))
    return tuple(table)


def saved_values(node: Node, tensors: bool) -> list[Any]:
    """What the node saved, inputs first and the output last, as arrays or as tensors."""
    saved = (None,) * len(node.edges) if node.saved is None else node.saved
    if not tensors:
        values = [None if t is None else t.array for t in saved]
        values.append(node.out)
        return values
    values = list(saved)
    values.append(None if node.out is None else output_tensor(node))
    return values


def output_tensor(node: Node) -> Any:
    """The saved output as a tensor that knows its history again."""
    if isinstance(node.out, tuple):
        return tuple(
            a if isinstance(a, Tensor) else _selected(node, i, a) for i, a in enumerate(node.out)
        )
    return node.out if isinstance(node.out, Tensor) else _with_node(node.out, node)


def restated(node: Node, op: Op, saved: Any, out: Any) -> Node:
    """A node with the edges of another one, for a rule that reads other values than it saved."""
    return Node(op, node.edges, saved, out, node.shapes, node.params)


def _recipe(op: Op) -> tuple[bool, bool, tuple[int, ...], bool]:
    """What to record of an operation, looked up once."""
    op.recipe = (op.aligns, op.saves_input, op.keeps, op.saves_out)
    return op.recipe


# --- by the number of inputs ----------------------------------------------------------------------


def one(
    op: Op, x: Tensor, array: Array, flags: int, params: dict[str, Any] | None = None
) -> Tensor:
    """The output of an operation on one tensor."""
    if array.__class__ is not ARRAY:
        array = K.asarray(array)
    out = new(Tensor)
    out.array = array
    out._grad = out._store = out._view = None
    if flags:
        if x._view is not None:
            x._refresh()
        if x.needs_grad:
            edge: Edge = x if x._node is None else x._node
            aligns, saves_input, _, saves_out = op.recipe or _recipe(op)
            node = new(Node)
            node.op, node.edges, node.params = op, (edge,), params
            node.shapes = None if aligns else (x.array.shape,)
            node.saved = (x,) if saves_input else None
            node.out = array if saves_out else None
            node.extra = None
            node.seq = next_seq()
            out._node, out.needs_grad = node, True
            return out
    out._node, out.needs_grad = None, False
    return out


def two(
    op: Op,
    x: Tensor,
    y: Tensor,
    array: Array,
    flags: int,
    params: dict[str, Any] | None = None,
    kept: Array | None = None,
) -> Tensor:
    """The output of an operation on two tensors. Which of them it saves stands in ``op.keeps``;
    ``kept``, an array that the backward kernel reads, is saved behind both."""
    if array.__class__ is not ARRAY:
        array = K.asarray(array)
    out = new(Tensor)
    out.array = array
    out._grad = out._store = out._view = None
    if flags:
        if x._view is not None:
            x._refresh()
        edge_x: Edge | None = None
        if x.needs_grad:
            edge_x = x._node
            if edge_x is None:
                edge_x = x
        if y._view is not None:
            y._refresh()
        edge_y: Edge | None = None
        if y.needs_grad:
            edge_y = y._node
            if edge_y is None:
                edge_y = y
        if edge_x is not None or edge_y is not None:
            aligns, _, keeps, saves_out = op.recipe or _recipe(op)
            keep = keeps[(edge_x is not None) + 2 * (edge_y is not None)]
            node = new(Node)
            node.op, node.edges, node.params = op, (edge_x, edge_y), params
            shapes = (x.array.shape, y.array.shape)
            node.shapes = None if aligns and shapes[0] == shapes[1] else shapes
            node.saved = (x if keep & 1 else None, y if keep & 2 else None) if keep else None
            if kept is not None:
                node.saved = (x, y, of_array(kept))
            node.out = array if saves_out else None
            node.extra = None
            node.seq = next_seq()
            out._node, out.needs_grad = node, True
            return out
    out._node, out.needs_grad = None, False
    return out


def affine(
    op: Op,
    x: Tensor,
    w: Tensor,
    b: Tensor | None,
    array: Array,
    flags: int,
    params: dict[str, Any],
) -> Tensor:
    """The output of a product of two tensors with a term that may be absent: each factor's
    gradient reads the other factor, and nothing reads the term."""
    out = new(Tensor)
    out.array = array
    out._grad = out._store = out._view = None
    if flags:
        if x._view is not None:
            x._refresh()
        edge_x: Edge | None = None
        if x.needs_grad:
            edge_x = x._node
            if edge_x is None:
                edge_x = x
        if w._view is not None:
            w._refresh()
        edge_w: Edge | None = None
        if w.needs_grad:
            edge_w = w._node
            if edge_w is None:
                edge_w = w
        edge_b = None if b is None else edge_of(b)
        if edge_x is not None or edge_w is not None or edge_b is not None:
            node = new(Node)
            kept_x, kept_w = x if edge_w is not None else None, w if edge_x is not None else None
            if b is None:
                node.edges, node.saved = (edge_x, edge_w), (kept_x, kept_w)
                node.shapes = (x.array.shape, w.array.shape)
            else:
                node.edges, node.saved = (edge_x, edge_w, edge_b), (kept_x, kept_w, None)
                node.shapes = (x.array.shape, w.array.shape, b.array.shape)
            node.op, node.params = op, params
            node.out = array if op.saves_out else None
            node.extra = None
            node.seq = next_seq()
            out._node, out.needs_grad = node, True
            return out
    out._node, out.needs_grad = None, False
    return out


def several(
    op: Op,
    inputs: tuple[Tensor, ...],
    array: Array,
    flags: int,
    params: dict[str, Any],
    kept: Sequence[Array],
) -> Tensor:
    """The output of an operation whose backward kernel reads more than inputs and output:
    ``kept``, arrays that the forward kernel had at hand, are saved behind the inputs."""
    out = new(Tensor)
    out.array = array if array.__class__ is ARRAY else K.asarray(array)
    out._grad = out._store = out._view = None
    if flags:
        edges, wanted = [], False
        for t in inputs:
            edge = edge_of(t) if t.needs_grad or t._view is not None else None
            wanted = wanted or edge is not None
            edges.append(edge)
        if wanted:
            shapes = tuple([t.array.shape for t in inputs])
            out._node = Node(
                op, tuple(edges), (*inputs, *map(of_array, kept)), None, shapes, params
            )
            out.needs_grad = True
            return out
    out._node, out.needs_grad = None, False
    return out


# --- any operation --------------------------------------------------------------------------------


class Select:
    """Stands in the node of each one of several outputs; the engine knows it."""

    name = "select_output"


SELECT = Select()


def _with_node(array: Array | Box, node: Node) -> Tensor:
    out = of_array(array)
    out._node = node
    out.needs_grad = True
    return out


def _selected(node: Node, i: int, array: Array | Box) -> Tensor:
    if K.kind_of(array.dtype) not in "fc":
        return of_array(array)
    return _with_node(array, Node(SELECT, (node,), None, None, None, {"index": i}))


def record(
    op: Op, inputs: tuple[Tensor, ...], edges: Edges, params: dict[str, Any], out: Any
) -> Any:
    """The output as a tensor with a node that remembers how it was made."""
    if out.__class__ is not ARRAY and not isinstance(out, (tuple, Box)):
        out = K.asarray(out)
    shapes = tuple([t.array.shape for t in inputs])
    rule = op.on_complex_numbers() if out.__class__ is not tuple and out.dtype.kind == "c" else op
    node = Node(rule, edges, op.save(inputs, edges), out if op.saves_out else None, shapes, params)
    if out.__class__ is tuple:
        node.out = out
        return tuple([_selected(node, i, array) for i, array in enumerate(out)])
    result = _with_node(out, node)
    if op.is_view:
        note_view(result, inputs[0], op, params)
    return result


def note_view(out: Tensor, source: Tensor, op: Op, params: dict[str, Any]) -> None:
    """Remembers that the output shares the source's memory, if it does."""
    if op.may_copy and not K.may_share_memory(out.array, source.array):
        return
    steps = ((op, params),)
    base = source
    if source._view is not None:
        base, steps = source._view.base, source._view.steps + steps
    out._store = source._store or source.storage()
    if out._node is not None and out._node.out is not None:
        out._node.extras().store = out._store
    out._view = View(base, steps, not mode.flags & Mode.GRAD)

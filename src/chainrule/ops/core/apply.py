"""How an operation is applied to tensors, and what is remembered of it.

:func:`apply` computes an operation on the arrays of its inputs and, if one of them requires a
gradient, records it in a node. While a transformation, a trace or anomaly detection is on, it takes
a more general way; the functions of ``ops/core/pointwise.py`` have a shorter one for the simplest
case.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from chainrule.backend import K
from chainrule.graph import ORDINARY, Box, Mode, Node, Storage, View, mode
from chainrule.tensor import Tensor

if TYPE_CHECKING:
    from chainrule.ops.core.primitive import Op

__all__ = [
    "INFERENCE",
    "SELECT",
    "apply",
    "as_operand",
    "edge_of",
    "note_view",
    "on_applied",
    "on_recorded",
    "output_tensor",
    "record",
    "saved_values",
    "wrap",
]

Array = K.Array
# Tensors made in inference mode share this storage: written to in the future, so never saved.
INFERENCE = Storage()
INFERENCE.last_write = 1 << 62


class Select:
    """Stands in the node of each one of several outputs; the engine knows it."""

    name = "select_output"


SELECT = Select()


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
        return tuple(_selected(node, i, array) for i, array in enumerate(node.out))
    out = Tensor(node.out)
    out._node = node
    out.needs_grad = True
    return out


def _selected(node: Node, i: int, array: Any) -> Tensor:
    out = Tensor(array)
    if array.dtype.kind in "fc":
        out._node = Node(SELECT, (node,), None, None, None, {"index": i})
        out.needs_grad = True
    return out


def as_operand(x: Any) -> Tensor:
    """A tensor as it is, a bare array as a constant tensor."""
    return x if isinstance(x, Tensor) else Tensor(K.asarray(x))


def wrap(out: Any) -> Any:
    """Arrays that a kernel returned as tensors without history."""
    if out.__class__ is K.Array or isinstance(out, Box):
        return Tensor(out)
    if out.__class__ is tuple:
        return tuple([wrap(o) for o in out])
    return Tensor(K.asarray(out))


def edge_of(t: Tensor) -> Any:
    """Where a gradient for this tensor flows to: its node, the leaf itself, or nowhere."""
    if t._view is not None:
        t._refresh()
    if not t.needs_grad:
        return None
    return t if t._node is None else t._node


def apply(op: Op, inputs: tuple[Tensor, ...], params: dict[str, Any]) -> Any:
    """Computes an operation on tensors and records it if a gradient will be wanted."""
    flags = mode.flags
    if flags > 1:
        return _apply_general(op, inputs, params, flags)
    if op.takes_tensors:
        out = op.raw(*inputs)
    else:
        out = op.raw(*[t.array for t in inputs], **params)
    if flags and op.differentiable:
        for t in inputs:
            if t.needs_grad or t._view is not None:
                edges = tuple([edge_of(t) for t in inputs])
                if any([e is not None for e in edges]):
                    return record(op, inputs, edges, params, out)
                break
    result = wrap(out)
    if op.is_view:
        note_view(result, inputs[0], op, params)
    return result


def record(
    op: Op, inputs: tuple[Tensor, ...], edges: tuple[Any, ...], params: dict[str, Any], out: Any
) -> Any:
    """The output as a tensor with a node that remembers how it was made."""
    if out.__class__ is not K.Array and not isinstance(out, (tuple, Box)):
        out = K.asarray(out)
    if out.__class__ is not tuple and out.dtype.kind == "c":
        op = op.on_complex_numbers()
    shapes = tuple([t.array.shape for t in inputs])
    node = Node(op, edges, op.save(inputs, edges), out if op.saves_out else None, shapes, params)
    if out.__class__ is tuple:
        node.out = out
        return tuple([_selected(node, i, array) for i, array in enumerate(out)])
    result = Tensor(out)
    result._node = node
    result.needs_grad = True
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


# Called with each node that is recorded while tracing is on, to note the user's source line.
on_recorded: list[Callable[[Op, Any, tuple[Tensor, ...]], None]] = []
# Called likewise with all there is to know of an operation, so that it can be repeated.
on_applied: list[Callable[[Op, tuple[Tensor, ...], dict[str, Any], Any], None]] = []


def _edge_at(level: int, t: Tensor) -> Any:
    """The edge to record at a level: tensors from outside it keep their history there, where
    ``process`` computes with them; only what was boxed at this level is recorded at this level."""
    if level and not (isinstance(t.array, Box) and t.array.level == level):
        return None
    return edge_of(t)


def _apply_general(op: Op, inputs: tuple[Tensor, ...], params: dict[str, Any], flags: int) -> Any:
    """The way of every operation while a transformation, a trace or anomaly detection is on."""
    top, box, needs_grad = 0, None, False
    for t in inputs:
        if t._view is not None:
            t._refresh()  # in a box there is no memory through which it would see a change
        if t.needs_grad:
            needs_grad = True
        a = t.array
        if a.__class__ is not Array and isinstance(a, Box) and a.level > top:
            top, box = a.level, a
    if box is not None:
        out = box.process(op, inputs, params)
    else:
        operands = inputs if op.takes_tensors else [t.array for t in inputs]
        out = op.raw(*operands, **params)
    result = None
    if needs_grad and flags & Mode.GRAD and op.differentiable:
        edges = tuple([_edge_at(top, t) for t in inputs])
        if any([e is not None for e in edges]):
            if top and op.takes_tensors:
                op.raw(*inputs)  # so that what the user's operation saves belongs to this level
            result = record(op, inputs, edges, params, out)
    if result is None:
        result = wrap(out)
        if op.is_view:
            note_view(result, inputs[0], op, params)
    if flags <= ORDINARY:
        return result
    if flags & Mode.INFERENCE:
        for t in result if isinstance(result, tuple) else (result,):
            t._store = INFERENCE
    if flags & (Mode.TRACE | Mode.ANOMALY):
        for notify in on_recorded:
            notify(op, result, inputs)
        for note in on_applied:
            note(op, inputs, params, result)
    return result

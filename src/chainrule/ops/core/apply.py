"""How an operation is applied to tensors, and what is remembered of it.

:func:`apply` computes an operation on the arrays of its inputs and, if one of them requires a
gradient, records it in a node. While a transformation, a trace or anomaly detection is on, it takes
a more general way; the functions of ``ops/core/pointwise.py`` have a shorter one for the simplest
case.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, SupportsIndex

from chainrule.backend import K
from chainrule.graph import ORDINARY, Box, Edge, Mode, Storage, Watcher, mode
from chainrule.ops.core.recording import edge_of, note_view, record
from chainrule.tensor import Tensor, of_array
from chainrule.typing import Number, Value

if TYPE_CHECKING:
    from chainrule.ops.core.primitive import Op
    from chainrule.typing import ArrayDType

__all__ = [
    "INFERENCE",
    "apply",
    "as_operand",
    "mix_with",
    "round_with",
    "trace_with",
    "watching",
    "wrap",
]

Array = K.Array
# Tensors made in inference mode share this storage: written to in the future, so never saved.
INFERENCE = Storage()
INFERENCE.last_write = 1 << 62


def as_operand(x: Value | Number | SupportsIndex) -> Tensor:
    """A tensor as it is, a bare array as a constant tensor."""
    return x if isinstance(x, Tensor) else of_array(K.asarray(x))


def wrap(out: Any) -> Any:
    """Arrays that a kernel returned as tensors without history."""
    if out.__class__ is Array or isinstance(out, Box):
        return of_array(out)
    if out.__class__ is tuple:
        return tuple([wrap(o) for o in out])
    return of_array(K.asarray(out))


def apply(op: Op, inputs: tuple[Tensor, ...], params: dict[str, Any]) -> Any:
    """Computes an operation on tensors and records it if a gradient will be wanted."""
    flags = mode.flags
    if flags > 1:
        return _apply_general(op, inputs, params, flags)
    arrays, wanted = [], False
    for t in inputs:
        a = t.array
        if a.itemsize == 2 and K.is_narrow(a.dtype):
            return _apply_general(op, inputs, params, flags)
        arrays.append(a)
        if t.needs_grad or t._view is not None:
            wanted = True
    out = op.raw(*inputs) if op.takes_tensors else op.raw(*arrays, **params)
    if wanted and flags and op.differentiable:
        edges = tuple([edge_of(t) for t in inputs])
        for edge in edges:
            if edge is not None:
                return record(op, inputs, edges, params, out)
    result = of_array(out) if out.__class__ is Array else wrap(out)
    if op.is_view:
        note_view(result, inputs[0], op, params)
    return result


Rounding = Callable[["Op", "tuple[ArrayDType, ...]"], "Op"]
_rounding: list[Rounding] = []


def round_with(rounded: Rounding) -> Rounding:
    """Sets what becomes of an operation on inputs of which some are float16 or bfloat16."""
    _rounding[:] = [rounded]
    return rounded


Mixing = Callable[["Op", "tuple[Tensor, ...]"], "Op"]
_mixing: list[Mixing] = []


def mix_with(mixed: Mixing) -> Mixing:
    """Sets what becomes of an operation under autocast."""
    _mixing[:] = [mixed]
    return mixed


Trace = Callable[["Op", Any, tuple[Tensor, ...]], None]
_traces: list[Trace] = []


def trace_with(note: Trace) -> Trace:
    """Has a function called with every operation that is applied while a trace is on."""
    _traces.append(note)
    return note


@contextmanager
def watching(note: Watcher) -> Iterator[None]:
    """Calls a function with all there is to know of each operation that this thread applies
    inside: the operation, its inputs, its parameters and its result. What the function itself
    computes is not watched."""

    def unwatched(op: Op, inputs: tuple[Tensor, ...], params: dict[str, Any], result: Any) -> None:
        flags, watchers = mode.flags, mode.watchers
        mode.flags, mode.watchers = flags & ~Mode.TRACE, ()
        try:
            note(op, inputs, params, result)
        finally:
            mode.flags, mode.watchers = flags, watchers

    flags, watchers = mode.flags, mode.watchers
    mode.flags, mode.watchers = flags | Mode.TRACE, (*watchers, unwatched)
    try:
        yield
    finally:
        mode.flags, mode.watchers = flags, watchers


def _edge_at(level: int, t: Tensor) -> Edge | None:
    """The edge to record at a level: tensors from outside it keep their history there, where
    ``process`` computes with them; only what was boxed at this level is recorded at this level."""
    if level and not (isinstance(t.array, Box) and t.array.level == level):
        return None
    return edge_of(t)


def _apply_general(op: Op, inputs: tuple[Tensor, ...], params: dict[str, Any], flags: int) -> Any:
    """The way of every operation on float16 and bfloat16, and of every other while a
    transformation, a trace or anomaly detection is on."""
    top, box, needs_grad = 0, None, False
    for t in inputs:
        if t._view is not None:
            t._refresh()  # in a box there is no memory through which it would see a change
        if t.needs_grad:
            needs_grad = True
        a = t.array
        if a.__class__ is not Array and isinstance(a, Box) and a.level > top:
            top, box = a.level, a
    if op.rounds and any([K.is_narrow(t.array.dtype) for t in inputs]):
        op = _rounding[0](op, tuple([t.array.dtype for t in inputs]))
    elif flags & Mode.AUTOCAST:
        op = _mixing[0](op, inputs)
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
        for trace in _traces:
            trace(op, result, inputs)
        for note in mode.watchers:
            note(op, inputs, params, result)
    return result

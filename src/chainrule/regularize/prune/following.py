"""How units go through single operations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, overload

from chainrule.backend import K
from chainrule.nn.layers.linear import Linear as LinearLayer
from chainrule.nn.module.base import Module
from chainrule.ops.core.primitive import Elementwise, Op
from chainrule.regularize.prune.flow import (
    INTEGER,
    Flow,
    Link,
    Trace,
    distinct,
    shortened,
    varying,
)
from chainrule.tensor import Tensor
from chainrule.typing import Array

__all__ = ["follow", "link_rows"]

# Operations that move elements and look at no value.
MOVING = {"reshape", "permute", "flip", "cat", "broadcast_to", "pad_zeros", "spread"}
UNCHANGED = {"cast", "clone"}
REDUCING = {"sum", "mean", "amax", "amin", "var", "std", "prod", "logsumexp", "pnorm", "median"}
POOLING = {
    "avg_pool",
    "adaptive_avg_pool",
    "max_pool_indices",
    "adaptive_max_pool_indices",
    "pool_gather",
}
Boxes = Sequence[Any]  # for each input its Flow, or None


def follow(
    trace: Trace,
    op: Op,
    inputs: Sequence[Tensor],
    boxes: Boxes,
    params: dict[str, Any],
    out: Tensor | tuple[Tensor, ...],
) -> Flow | tuple[Flow, ...]:
    """The units of what an operation gives."""
    if isinstance(out, tuple):
        return _lost(trace, op, boxes, out)
    if op.name in UNCHANGED:
        return Flow(trace, out, boxes[0].labels, boxes[0].still)
    if op.name in MOVING:
        return _moved(trace, op, inputs, boxes, params, out)
    if op.name in ("slice", "index"):
        return _picked(trace, op, inputs, boxes, params, out)
    if isinstance(op, Elementwise):
        return _elementwise(trace, op, inputs, boxes, out)
    if op.name in REDUCING:
        return _reduced(trace, op, boxes, params, out)
    if op.name in POOLING:
        return _pooled(trace, boxes[0], params, out)
    if op.name in ("linear", "matmul"):
        return _multiplied(trace, op, inputs, boxes, out)
    return _lost(trace, op, boxes, out)


@overload
def _lost(trace: Trace, op: Op, boxes: Boxes, out: Tensor) -> Flow: ...
@overload
def _lost(trace: Trace, op: Op, boxes: Boxes, out: tuple[Tensor, ...]) -> tuple[Flow, ...]: ...
def _lost(
    trace: Trace, op: Op, boxes: Boxes, out: Tensor | tuple[Tensor, ...]
) -> Flow | tuple[Flow, ...]:
    """An operation that mixes units: they stay."""
    flows = [b for b in boxes if b is not None]
    for flow in flows:
        trace.pin(flow, f"the operation {op.name!r} in {trace.place}")
    still = all([bool(b.still.all()) for b in flows])
    parts = out if isinstance(out, tuple) else (out,)
    found = tuple(
        [
            Flow(trace, o, K.full(o.array.shape, -1, INTEGER), K.full(o.array.shape, still, bool))
            for o in parts
        ]
    )
    return found if isinstance(out, tuple) else found[0]


def _moved(
    trace: Trace,
    op: Op,
    inputs: Sequence[Tensor],
    boxes: Boxes,
    params: dict[str, Any],
    out: Tensor,
) -> Flow:
    flows = [trace.plain(t) if b is None else b for t, b in zip(inputs, boxes, strict=True)]
    labels = op.raw(*[b.labels + 1 for b in flows], **params) - 1  # what is padded gets -1
    still = op.raw(*[b.still for b in flows], **params)
    if op.name == "pad_zeros":
        still = still | (labels < 0)
    moved = Flow(trace, out, labels, still)
    if op.name == "reshape" and len(varying(labels)) > 1 >= len(varying(flows[0].labels)):
        trace.pin(moved, f"a reshape of them in {trace.place}")
    return moved


def _picked(
    trace: Trace,
    op: Op,
    inputs: Sequence[Tensor],
    boxes: Boxes,
    params: dict[str, Any],
    out: Tensor,
) -> Flow:
    """Elements chosen by their places: fine as long as no unit is left out."""
    flow = boxes[0]
    if flow is None or any([b is not None for b in boxes[1:]]):
        return _lost(trace, op, boxes, out)
    indices = [t.array for t in inputs[1:]]
    labels = op.raw(flow.labels, *indices, **params)
    still = op.raw(flow.still, *indices, **params)
    if op.name == "index" or distinct(labels) != distinct(flow.labels):
        trace.pin(flow, f"a choice by index in {trace.place}")
    return Flow(trace, out, labels, still)


# --- elementwise ----------------------------------------------------------------------------------


def _elementwise(trace: Trace, op: Op, inputs: Sequence[Tensor], boxes: Boxes, out: Tensor) -> Flow:
    shape = out.array.shape
    flows = [b for b in boxes if b is not None]
    still = K.full(shape, True, bool)
    for b in flows:
        still = still & b.still
    if op.name == "mul":
        for b in flows:
            still = still | (b.still & (b.value.array == 0))
    labels = K.broadcast_to(flows[0].labels, shape)
    for b in flows[1:]:
        labels = _meet(trace, labels, K.broadcast_to(b.labels, shape))
    result = Flow(trace, out, labels, still)
    for t, b in zip(inputs, boxes, strict=True):
        if b is None and t.array.size > 1:
            _with_constant(trace, t, result)
    return result


def _meet(trace: Trace, a: Array, b: Array) -> Array:
    """Units that meet element by element become one."""
    if not (a != b).any():
        return a
    dims = sorted({*varying(a), *varying(b)})
    pairs = [shortened(x, dims).reshape(-1).tolist() for x in (a, b)]
    for x, y in set(zip(*pairs, strict=True)):
        trace.join((x, y))
    return K.maximum(a, b) if (a < 0).any() else a


def _with_constant(trace: Trace, constant: Tensor, result: Flow) -> None:
    """A constant with several entries meets units: its entries are theirs, or the units stay."""
    offset = len(result.shape) - constant.ndim
    large = [d + offset for d, n in enumerate(constant.shape) if n > 1]
    among = [d for d in large if d in varying(result.labels)]
    if not among:
        return
    if id(constant) in trace.names and len(large) == 1:
        trace.bind(constant, among[0] - offset, trace.slots(result, among[0]))
    else:
        trace.pin(result, f"a constant tensor in {trace.place}")


# --- sums and windows -----------------------------------------------------------------------------


def _reduced(trace: Trace, op: Op, boxes: Boxes, params: dict[str, Any], out: Tensor) -> Flow:
    flow = boxes[0]
    dims = tuple(params["dim"])
    if {d % len(flow.shape) for d in dims} & set(varying(flow.labels)):
        return _lost(trace, op, boxes, out)
    keep = params["keepdim"]
    labels = flow.labels.max(axis=dims, keepdims=keep)
    return Flow(trace, out, labels, _resting(flow, dims, keep))


def _pooled(trace: Trace, flow: Flow | None, params: dict[str, Any], out: Tensor) -> Flow:
    """Windows in space, the last dimensions: what is in a channel stays there."""
    if flow is None:
        return trace.plain(out)
    nd = params["nd"] if "nd" in params else len(params["size"])
    space = tuple(range(out.ndim - nd, out.ndim))
    if set(space) & set(varying(flow.labels)):
        _tie(trace, flow, space)
    labels = flow.labels.max(axis=space, keepdims=True)
    still = _resting(flow, space, True)
    shape = out.array.shape
    return Flow(trace, out, K.broadcast_to(labels, shape), K.broadcast_to(still, shape))


def _resting(flow: Flow, dims: tuple[int, ...], keep: bool) -> Array:
    """Where everything along some dimensions is still and the same.

    Only then does a sum, mean or maximum not depend on how many elements there are.
    """
    still, values = K.asarray(flow.still.all(axis=dims, keepdims=keep)), flow.value.array
    if not still.any():
        return still
    same = values.max(axis=dims, keepdims=keep) == values.min(axis=dims, keepdims=keep)
    return K.asarray(still & same)


def _tie(trace: Trace, flow: Flow, dims: tuple[int, ...]) -> None:
    """Joins the units along these dimensions, the last ones."""
    count = flow.labels.ndim - len(dims)
    rows = flow.labels.reshape(*flow.shape[:count], -1)
    for row in rows.reshape(-1, rows.shape[-1]):
        trace.join(set(row.tolist()))


# --- weights --------------------------------------------------------------------------------------


def link_rows(trace: Trace, link: Link, constants: Sequence[float | None]) -> list[bool]:
    """Notes a link and binds its weight; which of the new units are still.

    Those are still that only places with a constant lead to.
    """
    trace.bind(link.weight, link.row_dim, link.rows)
    trace.bind(link.weight, link.column_dim, link.columns)
    if link.bias is not None:
        bias = getattr(*link.bias)
        if bias is not None:
            trace.bind(bias, 0, link.rows)
    link.module = trace.places[-1] if trace.places else ""
    trace.links.append(link)
    moving = K.asarray([c is None for c in constants])
    return (~(link.matrix() & moving).any(axis=1)).tolist()


def _multiplied(trace: Trace, op: Op, inputs: Sequence[Tensor], boxes: Boxes, out: Tensor) -> Flow:
    """x times a weight that is a parameter: ``linear(x, w, b)`` or ``x @ w``."""
    flow, weight = boxes[0], inputs[1]
    bias = inputs[2] if len(inputs) > 2 else None
    known = id(weight) in trace.names and weight.ndim == 2 and boxes[1] is None
    if flow is None or not known or (bias is not None and id(bias) not in trace.names):
        return _lost(trace, op, boxes, out)
    row, column = (0, 1) if op.name == "linear" else (1, 0)
    units = trace.new_units(int(weight.shape[row]), trace.name_of(weight))
    holder = _bias_of(trace, weight, bias) if op.name == "linear" else None
    constants = trace.constants(flow, -1)
    foldable = constants if holder else [c if c == 0 else None for c in constants]
    link = Link(weight, row, column, units, trace.slots(flow, -1), foldable, holder)
    still = link_rows(trace, link, constants)
    return trace.along(out, out.ndim - 1, units, still)


def _bias_of(trace: Trace, weight: Tensor, bias: Tensor | None) -> tuple[Module, str] | None:
    """Where the bias beside a weight is held, or where a Linear layer without one could hold it."""
    if bias is not None:
        return trace.owners[id(bias)][0]
    holders = trace.owners[id(weight)]
    own = isinstance(holders[0][0], LinearLayer) and holders[0][1] == "weight"
    return (holders[0][0], "bias") if own and len(holders) == 1 else None

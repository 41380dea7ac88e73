"""Sums, means and maxima of the rows of a table that bags of integers name.

Letters: L integers in all bags together, D features of a row. ``rows`` (L) are the integers and bag
n begins at ``offsets[n]``, or ``rows`` (N, M) has a bag in each row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chainrule.ops.core.arguments import placed_like
from chainrule.backend import K, dtypes
from chainrule.graph import Edges, Node, Saved, mode
from chainrule.ops.core.apply import apply
from chainrule.ops.core.batching import spread
from chainrule.ops.core.primitive import F32, F64, REGISTRY, Op
from chainrule.ops.core.promotion import cast
from chainrule.ops.core.recording import saved_values
from chainrule.ops.elementwise.functions import maximum
from chainrule.ops.elementwise.logic import isnan, ne, where
from chainrule.ops.index.choice import FULL, index_place, read
from chainrule.ops.reduce.reductions import sum
from chainrule.ops.shape.stacking import cat
from chainrule.ops.shape.views import reshape
from chainrule.tensor import Tensor, of_array
from chainrule.typing import Array, Gradients, Tangents, V, Value

__all__ = ["Bags", "bag_rows", "bags"]


def _numbers(n: int, like: V) -> Any:
    """0 to n - 1, as a tensor or bare array."""
    numbers = K.arange(0, n, 1, dtypes.int64.array_dtype)
    return placed_like(like, of_array(numbers)) if isinstance(like, Tensor) else numbers


def _entries(rows: V, others: Sequence[V], padding: int, last: bool) -> tuple[V, V, V, int]:
    """The integers (.., L), the bag of each, which of them count, and how many bags there are."""
    if others:
        (offsets,) = others
        bags, flat = offsets.shape[-1] - last, rows
        numbers = _numbers(rows.shape[-1], rows)
        if offsets.ndim > 1:
            numbers = numbers + 0 * rows
        bag = REGISTRY["searchsorted"](offsets, numbers, right=True, dtype=dtypes.int64.array_dtype)
        bag = bag - 1
    else:
        *lead, bags, each = rows.shape
        flat = reshape(rows, (*lead, bags * each))
        bag = _numbers(bags * each, rows) // max(each, 1)
    kept = ne(flat, padding) & (bag < bags)
    return flat, where(kept, bag, 0), kept, bags


def _place(x: V, at: V, n: int) -> V:
    """Zeros (n, D) with the rows of x added where the integers say."""
    shape = (n, *x.shape[1:])
    tail = len(shape) - 1
    return index_place(x, at, entries=(..., *[FULL] * tail), tail=tail, shape=shape, distinct=False)


def _read(x: V, at: V) -> V:
    tail = x.ndim - 1
    return read(x, at, entries=(..., *[FULL] * tail), tail=tail)


def _column(x: V) -> V:
    return reshape(x, (-1, 1))


class Bags(Op):
    """The rows of a table that each bag names, times their weights, summed up, averaged, or the
    largest: (N, D), without an array of all rows.

    Its inputs are the table, the rows, the offsets if ``offset``, and weights if there are more.
    ``padding`` is a row to leave out, -1 for none; with ``last`` the last offset is where the last
    bag ends. Of several largest elements each has the same part of the derivative.
    """

    saves_out = True

    @staticmethod
    def raw(
        table: Array,
        rows: Array,
        *others: Array,
        mode: str,
        offset: bool,
        padding: int = -1,
        last: bool = False,
    ) -> Array:
        """The output of arrays alone."""
        offsets = others[0] if offset else None
        weights = others[offset] if len(others) > offset else None
        out: Array = K.bag_rows(table, rows, offsets, weights, mode, padding, last)
        return out

    def save(self, inputs: tuple[Tensor, ...], edges: Edges) -> Saved:
        return inputs

    def vjp(self, node: Node, g: Value, tensors: bool) -> Gradients:
        table, rows, *others, out = saved_values(node, tensors)
        edges, params, count = node.edges, node.params, node.shapes[0][0]
        offset, pooling = params["offset"], params["mode"]
        padding, last = params.get("padding", -1), params.get("last", False)
        weights = others[offset] if len(others) > offset else None
        of_weights = None if weights is None else edges[-1]
        none = [None] * (len(edges) - 2)
        if not tensors and pooling != "max" and of_weights is None:
            offsets = others[0] if offset else None
            placed = K.bag_rows_backward(g, rows, offsets, weights, count, pooling, padding, last)
            return (placed, None, *none)
        flat, bag, kept, bags = _entries(rows, others[:offset], padding, last)
        divisor, among = _shares(pooling, table, out, flat, bag, kept, bags, weights)
        each = where(_column(kept), _read(g if divisor is None else g / divisor, bag), 0.0)
        each = each if among is None else each * among
        if weights is None:
            return (_place(each, flat, count), None, *none)
        gw = reshape(sum(each * _read(table, flat), -1), node.shapes[-1])
        gt = _place(each * _column(weights), flat, count)
        return (gt, None, *none[:-1], gw)

    def jvp(
        self, tangents: Tangents, out: Value, inputs: Sequence[Value], params: dict[str, Any]
    ) -> Value:
        table, rows, *others = inputs
        offset = params["offset"]
        weights = others[offset] if len(others) > offset else None
        flat, bag, kept, bags = _entries(
            rows, others[:offset], params.get("padding", -1), params.get("last", False)
        )
        divisor, among = _shares(params["mode"], table, out, flat, bag, kept, bags, weights)
        each: Any = None
        if tangents[0] is not None:
            each = _read(tangents[0], flat)
            each = each if weights is None else each * _column(weights)
        if weights is not None and tangents[-1] is not None:
            part = _read(table, flat) * _column(tangents[-1])
            each = part if each is None else each + part
        each = where(_column(kept), each if among is None else each * among, 0.0)
        total = _place(each, bag, bags)
        return total if divisor is None else total / divisor


def _shares(
    pooling: str,
    table: Value,
    out: Value,
    rows: Value,
    bag: Value,
    kept: Value,
    bags: int,
    weights: Value | None,
) -> tuple[Any, Any]:
    """What the derivative of each result is divided by, and which elements have a part of it."""
    if pooling == "sum":
        return None, None
    if pooling == "mean":
        return maximum(_place(_column(cast(kept, out.dtype)), bag, bags), 1.0), None
    each = _read(table, rows)
    each, largest = each if weights is None else each * _column(weights), _read(out, bag)
    same = ((each == largest) | (isnan(each) & isnan(largest))) & _column(kept)
    among = cast(same, out.dtype)
    return maximum(_place(among, bag, bags), 1.0), among


def _batch(
    op: Op, size: int, values: Sequence[Tensor], mapped: Sequence[bool], params: dict[str, Any]
) -> Tensor:
    """vmap: the tables below each other; what is left out is a row of zeros below them all."""
    values = [v if m else spread(v, size) for v, m in zip(values, mapped, strict=True)]
    table, rows, *others = values
    offset, (_, count, width) = params["offset"], table.shape
    padding, last = params.get("padding", -1), params.get("last", False)
    flat, _, kept, bags = _entries(rows, others[:offset], padding, last)
    member, length, none = reshape(_numbers(size, rows), (-1, 1)), flat.shape[-1], size * count
    flat = reshape(where(kept, flat + member * count, none), (-1,))
    if offset:
        starts = reshape(others[0][:, :bags] + member * length, (-1,))
    else:
        starts = _numbers(size * bags, rows) * rows.shape[-1]
    below = placed_like(table, of_array(K.zeros((1, width), table.array.dtype)))
    table = cat([reshape(table, (none, width)), below])
    weights = [reshape(w, (-1,)) for w in others[offset:]]
    out = op(table, flat, starts, *weights, mode=params["mode"], offset=True, padding=none)
    return reshape(out, (size, bags, width))


bags = Bags("bag_rows", _batch)


def bag_rows(
    table: Tensor,
    rows: Tensor,
    offsets: Tensor | None,
    weights: Tensor | None,
    pooling: str,
    padding: int | None,
    last: bool,
) -> Tensor | None:
    """The rows of each bag in one number; None where the case is not the ordinary one."""
    dtype = table.array.dtype
    if mode.flags > 1 or (dtype is not F32 and dtype is not F64) or not rows.array.size:
        return None
    inputs = [table, rows]
    if offsets is not None:
        inputs.append(offsets)
    if weights is not None:
        if weights.array.dtype is not dtype:
            return None
        inputs.append(weights)
    params = {"mode": pooling, "offset": offsets is not None}
    if padding is not None:
        params["padding"] = padding
    if last:
        params["last"] = True
    out: Tensor = apply(bags, tuple(inputs), params)
    return out

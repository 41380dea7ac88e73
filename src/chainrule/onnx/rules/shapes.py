"""Shapes, parts, and tensors put together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chainrule.backend import dtypes
from chainrule.onnx.graph import Quantity, is_fixed
from chainrule.onnx.site import Made, Rule, Site

__all__ = ["RULES"]

LAST = 2**62  # an end beyond every size


def _reshape(s: Site) -> Made:
    """Free sizes that stay in their place are written as 0, one more as -1."""
    target, have = s.out_shape(), s.shape()
    same = 0
    while same < min(len(target), len(have)) and list(target[same]) == list(have[same]):
        same += 1
    short = [0 if i < same and not is_fixed(d) else d[0] for i, d in enumerate(target)]
    free = [i for i, d in enumerate(target) if not is_fixed(d) and i >= same]
    if len(free) <= 1 and all(d[0] != 0 for d in target):
        for i in free:
            short[i] = -1
        return s.add("Reshape", s.x(), s.integers([int(n) for n in short]))
    return s.add("Reshape", s.x(), s.graph.sizes(target, s.what))


def _permute(s: Site) -> Made:
    dims = s.dims("dims")
    lead = [d for d in range(s.ndim()) if d not in dims]
    return s.add("Transpose", s.x(), perm=[*lead, *dims])


def _broadcast(s: Site) -> Made:
    target, have = s.out_shape(), s.shape()
    missing = len(target) - len(have)
    sizes: list[Quantity] = list(target[:missing])
    # A size that the input has itself is 1 here: it stays.
    sizes += [
        [1] * len(want) if list(want) == list(own) else want
        for want, own in zip(target[missing:], have, strict=True)
    ]
    if all(is_fixed(d) and d[0] == 1 for d in sizes) and not missing:
        return s.add("Identity", s.x())
    return s.add("Expand", s.x(), s.graph.sizes(sizes, s.what))


# --- parts ----------------------------------------------------------------------------------------


def _bound(s: Site, values: Sequence[Any], default: int) -> Quantity:
    """Where a slice begins or ends, in each pass."""
    return [default if v is None else v for v in values]


def _sliced(s: Site, entries: Sequence[tuple[Any, ...]]) -> str:
    """The subscript of slices, numbers and new dimensions, which count from the last dimension."""
    axes: list[int] = []
    starts: list[Quantity] = []
    ends: list[Quantity] = []
    steps: list[int] = []
    dropped: list[int] = []
    added: list[int] = []
    axis = s.ndim() - sum(e is not None for e in entries[0])
    place = axis  # among the dimensions of the result
    for many in zip(*entries, strict=True):
        first = many[0]
        if first is None:
            added.append(place)
            place += 1
            continue
        if isinstance(first, slice):
            step = 1 if first.step is None else first.step
            start = _bound(s, [e.start for e in many], 0 if step > 0 else LAST)
            end = _bound(s, [e.stop for e in many], LAST if step > 0 else -LAST)
            whole = step == 1 and is_fixed(start) and start[0] == 0 and _is_all(s, axis, end)
            place += 1
        else:
            step, start, whole = 1, many, False
            end = [LAST if n == -1 else n + 1 for n in many]
            dropped.append(axis)
        if not whole:
            axes.append(axis)
            starts.append(start)
            ends.append(end)
            steps.append(step)
        axis += 1
    found = s.x()
    if axes:
        where = (s.graph.sizes(starts, s.what), s.graph.sizes(ends, s.what))
        found = s.add("Slice", found, *where, s.integers(axes), s.integers(steps))
    if dropped:
        found = s.add("Squeeze", found, s.integers(dropped))
    if added:
        found = s.add("Unsqueeze", found, s.integers(added))
    return found if axes or added else s.add("Identity", found)


def _is_all(s: Site, axis: int, end: Quantity) -> bool:
    size = s.shape()[axis]
    return all(e >= n for e, n in zip(end, size, strict=True))


def _slice(s: Site) -> Made:
    source = s.source(0)
    if source is not None and source.name == "lstm_sequence" and s.step.inputs[0].k == 1:
        return _last_cell(s, source)
    return _sliced(s, s.many("entries"))


def _last_cell(s: Site, source: Site) -> str:
    """Of the states c of an LSTM, ONNX tells the last one."""
    length = source.shape()[0]
    wanted = [e[0] for e in s.many("entries")]
    rest = s.param("entries") if is_fixed(length) else s.many("entries")[0]
    plain = len(rest) == 3 and all(e == slice(None) for e in rest[1:])
    last = [0] * len(length) if source.param("reverse") else [n - 1 for n in length]
    whole = plain and all(isinstance(w, int) for w in wanted)
    if not whole or [w % n for w, n in zip(wanted, length, strict=True)] != last:
        s.fail("LSTM of ONNX tells the cell state of the last step only, not those of all steps")
    source.values.value(s.step.inputs[0]._replace(k=0))  # if it could not be written, that is why
    return s.add("Squeeze", s.graph.known["last cell", source.number], s.integers([0]))


def _index(s: Site) -> Made:
    """One tensor of integers between whole dimensions is a Gather."""
    entries, tail = s.param("entries"), s.param("tail")
    at = [i for i, e in enumerate(entries) if e is ...]
    others = [e for e in entries if e is not ...]
    if len(at) != 1 or any(e != slice(None) for e in others):
        s.fail(
            "several tensors of integers, or one beside numbers and slices, between the brackets; "
            "take one after the other"
        )
    axis = s.ndim() - len(entries) + at[0]
    if tail != len(entries) - at[0] - 1:
        s.fail("its indices stand in another place of the result")
    return s.add("Gather", s.x(), s.x(1), axis=axis)


def _index_put(s: Site) -> Made:
    """A part along one dimension replaced: what is before it, the value, and what is behind."""
    entries = s.param("entries")
    changed = [i for i, e in enumerate(entries) if e != slice(None)]
    if s.count != 2 or len(changed) != 1 or None in entries:
        s.fail("a part is assigned that is not a range of one dimension; use where() or cat()")
    entry, axis = entries[changed[0]], s.ndim() - len(entries) + changed[0]
    size = s.shape()[axis]
    if not is_fixed(size):
        s.fail("a part is assigned along a dynamic axis; use where() or cat()")
    single = isinstance(entry, int)
    bounds = slice(entry, None if entry == -1 else entry + 1) if single else entry
    start, stop, step = bounds.indices(int(size[0]))
    if step != 1:
        s.fail("a part is assigned with a step; use where() or cat()")
    region = s.shape()
    region[axis] = [stop - start] * len(s.steps)
    value, have = s.as_type(s.x(1), s.input_dtype(1), s.dtype), s.ndim(1)
    if single and have > s.ndim() - axis - 1:
        at = have - (s.ndim() - axis - 1)
        value = s.add("Unsqueeze", value, s.integers([at]))
    value = s.add("Expand", value, s.graph.sizes(region, s.what))
    parts = [
        s.add("Slice", s.x(), s.integers([a]), s.integers([b]), s.integers([axis]))
        for a, b in ((0, start), (stop, LAST))
    ]
    return s.add("Concat", parts[0], value, parts[1], axis=axis)


def _flip(s: Site) -> Made:
    dims = s.dims("dims")
    count = len(dims)
    bounds = (s.integers([-1] * count), s.integers([-LAST] * count))
    return s.add("Slice", s.x(), *bounds, s.integers(dims), s.integers([-1] * count))


# --- put together ---------------------------------------------------------------------------------


def _cat(s: Site) -> Made:
    axis = s.param("dim") % len(s.step.results[0].shape)
    parts = [s.as_type(s.x(i), s.input_dtype(i), s.dtype) for i in range(s.count)]
    return parts[0] if len(parts) == 1 else s.add("Concat", *parts, axis=axis)


def _pad(s: Site) -> Made:
    pads = s.param("pads")
    lead = s.ndim() - len(pads)
    both = [*[0] * lead, *[p[0] for p in pads]], [*[0] * lead, *[p[1] for p in pads]]
    if s.boolean():
        numbers = s.graph.cast(s.x(), dtypes.int32)
        return s.graph.cast(s.add("Pad", numbers, s.integers([*both[0], *both[1]])), dtypes.bool_)
    return s.add("Pad", s.x(), s.integers([*both[0], *both[1]]))


def _triangle(s: Site) -> Made:
    k, upper = s.number_of(s.param("diagonal"), dtypes.int64), int(s.param("upper"))
    if s.boolean():
        numbers = s.graph.cast(s.x(), dtypes.int64)
        return s.graph.cast(s.add("Trilu", numbers, k, upper=upper), dtypes.bool_)
    return s.add("Trilu", s.x(), k, upper=upper)


def _gather(s: Site) -> Made:
    return s.add("GatherElements", s.x(), s.x(1), axis=s.param("dim") % s.ndim())


def _time_steps(s: Site) -> Made:
    dim = s.param("dim") % s.ndim()
    axis = s.integers([dim])
    parts = [
        s.add("Slice", s.x(), s.integers([k]), s.integers([k + 1]), axis)
        for k in range(len(s.step.results))
    ]
    return tuple(s.add("Squeeze", part, axis) for part in parts)


RULES: dict[str, Rule] = {
    "broadcast_to": _broadcast,
    "cat": _cat,
    "flip": _flip,
    "gather": _gather,
    "index": _index,
    "index_put": _index_put,
    "pad_zeros": _pad,
    "permute": _permute,
    "reshape": _reshape,
    "slice": _slice,
    "time_steps": _time_steps,
    "triangle": _triangle,
}

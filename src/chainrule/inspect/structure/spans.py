"""Which inputs reach a unit: for each axis of a tensor, the places of an input that it depends on.

A :class:`Span` says of one axis of an input which of its places the units of a tensor see. If one
axis of the tensor (the ``carrier``) runs along it, as the rows of a feature map run along the rows
of the image, there is an entry for each place on that axis; else all units see the same. Rules
follow the operations of a trace; what no rule is written for sees all that its inputs see.

Statistics are not followed: a normalization works on each place by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any

from chainrule.graph import Node
from chainrule.inspect.core.tracing import Operation, Trace
from chainrule.ops.core.counting import COMPOSED, is_elementwise
from chainrule.ops.core.recording import SELECT
from chainrule.tensor import Tensor

__all__ = ["Field", "Places", "Span", "fields_of", "hull", "places"]

EXACT_UP_TO = 2048  # longer axes are followed by the first and last place alone


@dataclass(frozen=True)
class Hull:
    """Places from the first to the last; none if the first lies behind."""

    first: int
    last: int

    def __or__(self, other: Hull) -> Hull:
        if other.first > other.last:
            return self
        if self.first > self.last:
            return other
        return Hull(min(self.first, other.first), max(self.last, other.last))

    def __bool__(self) -> bool:
        return self.first <= self.last


Places = Any  # of an axis: a number with a bit for each place, or a Hull
NO_HULL = Hull(1, 0)


def hull(seen: Places) -> tuple[int, int] | None:
    """The first and the last place, None if there is none."""
    if not seen:
        return None
    if isinstance(seen, Hull):
        return seen.first, seen.last
    return (seen & -seen).bit_length() - 1, seen.bit_length() - 1


def places(seen: Places) -> list[int]:
    """All places."""
    if isinstance(seen, Hull):
        return list(range(seen.first, seen.last + 1))
    return [i for i in range(seen.bit_length()) if seen >> i & 1]


@dataclass(frozen=True)
class Span:
    """Places of one axis of an input. ``carrier`` is an axis of the tensor, from its end."""

    carrier: int | None
    seen: tuple[Places, ...]

    @property
    def all(self) -> Places:
        """What any unit sees."""
        return reduce(or_, self.seen)

    @property
    def none(self) -> Places:
        """No place."""
        return NO_HULL if isinstance(self.seen[0], Hull) else 0

    def collapsed(self) -> Span:
        """The same for all units: what any of them sees."""
        return self if self.carrier is None else Span(None, (self.all,))

    def taken(self, positions: Iterable[Iterable[int]], carrier: int | None = None) -> Span:
        """Each unit of the result sees what several units saw."""
        axis = self.carrier if carrier is None else carrier
        chosen = [reduce(or_, [self.seen[i] for i in each], self.none) for each in positions]
        return Span(axis, tuple(chosen))

    def __or__(self, other: Span) -> Span:
        a, b = self, other
        if a.carrier != b.carrier and a.carrier is not None and b.carrier is not None:
            a, b = a.collapsed(), b.collapsed()
        n = max(len(a.seen), len(b.seen))
        pairs = zip(_repeated(a.seen, n), _repeated(b.seen, n), strict=True)
        carrier = b.carrier if a.carrier is None else a.carrier
        return Span(carrier, tuple([x | y for x, y in pairs]))


def _repeated(seen: tuple[Places, ...], n: int) -> tuple[Places, ...]:
    return seen * n if len(seen) == 1 else seen


# By input and axis (from the front) of that input: what a tensor sees of it.
Field = dict[tuple[int, int], Span]


def fields_of(seen: Trace) -> dict[int, Field]:
    """What every tensor of a trace sees of the inputs, by the tensor's identity.

    Changes in place are seen in a trace with gradients: the history of a tensor knows of them.
    """
    fields: dict[int, Field] = {}
    histories: dict[int, Field] = {}
    for number, given in enumerate(seen.root.inputs):
        fields[id(given)] = _of_input(number, given)
    for op in seen.operations:
        edges = () if op.node is None else op.node.edges
        known = [fields.get(id(t), {}) for t in op.inputs]
        for i, edge in enumerate(edges[: len(known)]):
            if isinstance(edge, Node):
                known[i] = _history(edge, histories) or known[i]
        if not any(known):
            continue
        found = _followed(op, known)
        fields |= {id(out): found for out in op.outputs}
        if op.node is not None:
            histories[id(op.node)] = found
    for out in seen.root.outputs:
        if out._node is not None and id(out) in fields:
            fields[id(out)] = _history(out._node, histories) or fields[id(out)]
    return fields


def _history(node: Node, known: dict[int, Field]) -> Field:
    """What a node sees; of one that no operation was noted for (a part written in place), all
    that its edges see."""
    if node.op is SELECT:
        return _history(node.edges[0], known)
    if id(node) not in known:
        parts = [_history(e, known) for e in node.edges if isinstance(e, Node)]
        known[id(node)] = _merged(map(_collapsed, parts))
    return known[id(node)]


def _of_input(number: int, given: Tensor) -> Field:
    field: Field = {}
    for axis, n in enumerate(given.shape):
        each = [1 << i for i in range(n)] if n <= EXACT_UP_TO else [Hull(i, i) for i in range(n)]
        field[number, axis] = Span(axis - given.ndim, tuple(each))
    return {key: span for key, span in field.items() if span.seen}


def _followed(op: Operation, known: list[Field]) -> Field:
    rule = RULES.get(op.name)
    if rule is None:
        rule = _pointwise if is_elementwise(op.op) else _everything
    return rule(op, known)


def _merged(fields: Iterable[Field]) -> Field:
    total: Field = {}
    for field in fields:
        for key, span in field.items():
            total[key] = total[key] | span if key in total else span
    return total


Rule = Callable[[Operation, list[Field]], Field]


def _everything(op: Operation, known: list[Field]) -> Field:
    return _merged(map(_collapsed, known))


def _collapsed(field: Field) -> Field:
    return {key: span.collapsed() for key, span in field.items()}


def _pointwise(op: Operation, known: list[Field]) -> Field:
    """Aligned from the last axis, as in broadcasting."""
    return _merged(known)


def _first(op: Operation, known: list[Field]) -> Field:
    return known[0]


def _mapped(change: Callable[[Operation, Span], Span]) -> Rule:
    """A rule for each span of the first input; the others are collapsed."""

    def rule(op: Operation, known: list[Field]) -> Field:
        own = {key: change(op, span) for key, span in known[0].items()}
        return _merged([own, *map(_collapsed, known[1:])])

    return rule


# --- windows --------------------------------------------------------------------------------------


def _window(n: int, m: int, k: int, stride: int, padding: int, dilation: int) -> list[list[int]]:
    """The inputs of each of m outputs, of n inputs."""
    starts = [o * stride - padding for o in range(m)]
    return [[i for j in range(k) if 0 <= (i := s + j * dilation) < n] for s in starts]


def _window_back(
    n: int, m: int, k: int, stride: int, padding: int, dilation: int
) -> list[list[int]]:
    """Of a transposed convolution: output j sees input i where j = i stride + k dilation - pad."""
    back: list[list[int]] = [[] for _ in range(m)]
    for i in range(n):
        for j in range(k):
            o = i * stride + j * dilation - padding
            if 0 <= o < m:
                back[o].append(i)
    return back


def _grouped(n: int, m: int, groups: int) -> list[list[int]]:
    """The channels of its group, for each of m channels."""
    return [
        [*range(o // (m // groups) * (n // groups), (o // (m // groups) + 1) * (n // groups))]
        for o in range(m)
    ]


def _windows(places_of: Callable[..., list[list[int]]], mixes: bool) -> Callable[..., Span]:
    """Along the axes of space each output sees a window; of a convolution all channels of its
    group, too."""

    def change(op: Operation, span: Span) -> Span:
        c, p, nd = span.carrier, op.params, len(op.params["size"])
        if c is None:
            return span
        n, m = op.inputs[0].shape[c], op.outputs[0].shape[c]
        if c < -nd:
            mixed = mixes and c == -nd - 1
            return span.taken(_grouped(n, m, p["groups"])) if mixed else span
        k = op.inputs[1].shape[c] if mixes else p["kernel"][c]
        return span.taken(places_of(n, m, k, p["stride"][c], p["padding"][c], p["dilation"][c]))

    return change


def _adaptive(op: Operation, span: Span) -> Span:
    c = span.carrier
    if c is None or c < -len(op.params["size"]):
        return span
    n, m = op.inputs[0].shape[c], op.outputs[0].shape[c]
    return span.taken([[*range(i * n // m, -(-(i + 1) * n // m))] for i in range(m)])


def _pool_gather(op: Operation, known: list[Field]) -> Field:
    """What is read at the places of the largest: as far as these places were looked for."""
    return known[1] or _everything(op, known)


# --- arrangement ----------------------------------------------------------------------------------


def _permuted(op: Operation, span: Span) -> Span:
    if span.carrier is None:
        return span
    dims = [d if d < 0 else d - len(op.params["dims"]) for d in op.params["dims"]]
    return Span(dims.index(span.carrier) - len(dims), span.seen)


def _reshaped(op: Operation, span: Span) -> Span:
    """An axis that is neither split nor joined keeps its places."""
    if span.carrier is None or len(span.seen) == 1:
        return span.collapsed()
    old, new = tuple(op.inputs[0].shape), tuple(op.outputs[0].shape)
    before = _product(old[: len(old) + span.carrier])
    for axis, n in enumerate(new):
        if n == old[span.carrier] and _product(new[:axis]) == before:
            return Span(axis - len(new), span.seen)
    return span.collapsed()


def _product(numbers: Sequence[int]) -> int:
    return reduce(lambda a, b: a * b, numbers, 1)


def _broadcast(op: Operation, span: Span) -> Span:
    if span.carrier is None or len(span.seen) > 1:
        return span
    return span.collapsed()


def _sliced(op: Operation, span: Span) -> Span:
    """``x[entries]`` of numbers, slices, None and ``...``."""
    if span.carrier is None:
        return span
    x, entries = op.inputs[0], list(op.params["entries"])
    named = sum(e is not None and e is not Ellipsis for e in entries)
    at = entries.index(Ellipsis) if Ellipsis in entries else len(entries)
    entries[at : at + 1] = [slice(None)] * (x.ndim - named)
    axis, after = 0, 0
    found: Span | None = None
    for entry in entries:
        if entry is not None and axis == x.ndim + span.carrier:
            chosen = range(x.shape[axis])[entry]
            if isinstance(chosen, int):
                return Span(None, (span.seen[chosen],))
            found, after = span.taken([[i] for i in chosen]), 0
        elif not isinstance(entry, int):
            after += 1
        axis += entry is not None
    if found is None or not found.seen:
        return span.collapsed()
    return Span(-after - 1, found.seen)


def _indexed(op: Operation, known: list[Field]) -> Field:
    """Chosen along one axis by a list of numbers, as padding by reflection and upsampling do; or
    rows of a matrix by numbers that are inputs, as an embedding does."""
    entries, tail = op.params["entries"], op.params["tail"]
    simple = all(e is Ellipsis or e == slice(None) for e in entries) and len(op.inputs) == 2
    if not simple:
        return _everything(op, known)
    index = op.inputs[1]
    rows = {
        k: s if s.carrier is None else Span(s.carrier - tail, s.seen) for k, s in known[1].items()
    }
    own: Field = {}
    for key, span in known[0].items():
        if index.ndim != 1:
            own[key] = span.collapsed()
        elif span.carrier == -tail - 1:
            own[key] = span.taken([[i] for i in index.detach().tolist()])
        else:
            own[key] = span
    return _merged([own, rows])


def _joined(op: Operation, known: list[Field]) -> Field:
    """Along the axis of joining one part follows the other."""
    dim = op.params["dim"]
    dim = dim if dim < 0 else dim - op.outputs[0].ndim
    total: Field = {}
    for key in {k: None for field in known for k in field}:
        spans = [field.get(key) for field in known]
        none = next(s.none for s in spans if s is not None)
        parts = [
            _repeated(s.seen, t.shape[dim]) if s is not None else (none,) * t.shape[dim]
            for s, t in zip(spans, op.inputs, strict=True)
        ]
        found = [s for s in spans if s is not None]
        alike = len(found) == len(spans) and len({s.seen for s in found}) == 1
        if all(s.carrier in (dim, None) for s in found) and not (
            alike and found[0].carrier is None
        ):
            total[key] = Span(dim, tuple([p for part in parts for p in part]))
        else:
            held = [s.collapsed() if s.carrier == dim else s for s in found]
            total[key] = reduce(or_, held)
    return total


def _padded(op: Operation, span: Span) -> Span:
    pads = op.params["pads"]
    if span.carrier is None or span.carrier < -len(pads):
        return span
    before, after = pads[span.carrier]
    return Span(span.carrier, (span.none,) * before + span.seen + (span.none,) * after)


# --- sums -----------------------------------------------------------------------------------------


def _reduced(op: Operation, span: Span) -> Span:
    c, dims = span.carrier, op.params["dim"]
    dims = (dims,) if isinstance(dims, int) else dims
    dims = {d if d < 0 else d - op.inputs[0].ndim for d in dims}
    if c is None or c in dims:
        return span.collapsed()
    return span if op.params["keepdim"] else Span(c + sum(d > c for d in dims), span.seen)


def _mixed(op: Operation, span: Span) -> Span:
    """All along one axis depend on each other, as in a softmax."""
    dim = op.params["dim"]
    dim = dim if dim < 0 else dim - op.inputs[0].ndim
    return span.collapsed() if span.carrier == dim else span


def _linear(op: Operation, span: Span) -> Span:
    return span.collapsed() if span.carrier == -1 else span


def _matmul(op: Operation, known: list[Field]) -> Field:
    x, y = op.inputs
    if min(x.ndim, y.ndim) < 2:
        return _everything(op, known)
    left = {k: s.collapsed() if s.carrier == -1 else s for k, s in known[0].items()}
    right = {k: s.collapsed() if s.carrier == -2 else s for k, s in known[1].items()}
    return _merged([left, right])


def _recurrent(op: Operation, span: Span) -> Span:
    """A state sees all steps up to its own."""
    time, sample = -op.inputs[0].ndim, 1 - op.inputs[0].ndim
    if span.carrier == sample:
        return span
    if span.carrier != time:
        return span.collapsed()
    n = len(span.seen)
    reverse = op.params["reverse"]
    return span.taken([range(t, n) if reverse else range(t + 1) for t in range(n)])


RULES: dict[str, Rule] = {
    "convolution": _mapped(_windows(_window, True)),
    "biased_convolution": _mapped(_windows(_window, True)),
    "convolution_input": _mapped(_windows(_window_back, True)),
    "avg_pool": _mapped(_windows(_window, False)),
    "max_pool_indices": _mapped(_windows(_window, False)),
    "adaptive_avg_pool": _mapped(_adaptive),
    "adaptive_max_pool_indices": _mapped(_adaptive),
    "pool_gather": _pool_gather,
    "permute": _mapped(_permuted),
    "reshape": _mapped(_reshaped),
    "broadcast_to": _mapped(_broadcast),
    "slice": _mapped(_sliced),
    "index": _indexed,
    "cat": _joined,
    "pad_zeros": _mapped(_padded),
    "linear": _mapped(_linear),
    "matmul": _matmul,
    "normalize": _first,
}
RULES |= dict.fromkeys(("clone", "cast", "cast_to_integer", "arrange", "conj"), _first)
RULES |= dict.fromkeys(("linear_relu", "linear_sigmoid", "linear_tanh"), _mapped(_linear))
RULES |= dict.fromkeys(("softmax", "log_softmax"), _mapped(_mixed))
RULES |= dict.fromkeys(("sum", "mean", "amax", "amin", "var", "std", "prod"), _mapped(_reduced))
RULES |= dict.fromkeys(("rnn_sequence", "lstm_sequence", "gru_sequence"), _mapped(_recurrent))
RULES |= dict.fromkeys(COMPOSED, _everything)

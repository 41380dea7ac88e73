"""Where the units of a network go: a run of the model on values that know which unit they are of.

A :class:`Flow` stands where an array would stand in a tensor. Beside the value it has, for each
element, the number of the unit it belongs to (-1: of none) and whether it is *still*, that is,
independent of the model's input. Operations that move elements move both; elementwise operations
join the units that meet, as in a residual sum; layers with weights (``layers.py``) start new units
and note a :class:`Link` from the old to the new. What cannot be followed is *pinned*: its units
stay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from chainrule.backend import K, dtypes
from chainrule.graph import Box, Mode, mode
from chainrule.nn.module.base import Module
from chainrule.ops.core.apply import apply
from chainrule.ops.core.primitive import Op
from chainrule.tensor import Tensor
from chainrule.typing import Array

__all__ = [
    "Binding",
    "Flow",
    "Link",
    "Trace",
    "distinct",
    "front",
    "shortened",
    "unboxed",
    "varying",
]

INTEGER = dtypes.int64.array_dtype
INPUT = "input"  # the "layer" that the units of the model's input are of


class Flow(Box):
    """A value, the units of its elements, and which of them are still."""

    __slots__ = ("dtype", "labels", "level", "shape", "still", "trace", "value")
    transformation = "a trace of units"

    def __init__(self, trace: Trace, value: Tensor, labels: Array, still: Array):
        self.trace, self.level = trace, trace.level
        self.value, self.labels, self.still = value, labels, still
        self.shape, self.dtype = value.array.shape, value.array.dtype

    def process(
        self, op: Op, inputs: tuple[Tensor, ...], params: dict[str, Any]
    ) -> Flow | tuple[Flow, ...]:
        """The operation on the values; the trace's rule says where the units go."""
        boxes = [t.array if isinstance(t.array, Flow) else None for t in inputs]
        values = tuple([t if b is None else b.value for t, b in zip(inputs, boxes, strict=True)])
        flags = mode.flags
        mode.flags = flags & ~Mode.BOXED
        try:
            out = apply(op.inner(), values, params)
        finally:
            mode.flags = flags
        return self.trace.rule(self.trace, op, inputs, boxes, params, out)

    def held(self) -> tuple[Tensor, ...]:
        return (self.value,)

    def constant(self, value: Tensor) -> Flow:
        return self.trace.plain(value)

    def numbers(self, what: str) -> Array:
        return self.value._numbers(what)


def unboxed(x: object) -> Any:
    """The value of a traced tensor."""
    return x.array.value if isinstance(x, Tensor) and isinstance(x.array, Flow) else x


@dataclass
class Binding:
    """The entries along one dimension of a parameter or buffer belong to these units."""

    tensor: Tensor
    dim: int
    units: list[int]


@dataclass
class Link:
    """Weights from units to units: ``weight`` with rows of the new and columns of the old ones.

    ``constants`` has, for each column, the value that comes in if that is one and the same number
    for every input, and folding it into ``bias`` gives the same result; else None. ``bias`` is the
    module and the name of its bias, or None if it cannot have one.
    """

    weight: Tensor
    row_dim: int
    column_dim: int
    rows: list[int]
    columns: list[int]
    constants: list[float | None]
    bias: tuple[Module, str] | None = None
    module: str = ""

    def matrix(self) -> Array:
        """Whether there is a weight that is not zero: (rows, columns)."""
        a = self.weight.detach().array
        others = tuple([d for d in range(a.ndim) if d not in (self.row_dim, self.column_dim)])
        found = (a != 0).any(axis=others)
        return found if self.row_dim < self.column_dim else found.T

    def summed(self) -> Array:
        """The weights summed over all other dimensions, (rows, columns)."""
        a = self.weight.detach().array
        others = tuple([d for d in range(a.ndim) if d not in (self.row_dim, self.column_dim)])
        total = a.sum(axis=others)
        return total if self.row_dim < self.column_dim else total.T


@dataclass
class Trace:
    """The units of a model, found by one run; ``rule`` follows them through an operation."""

    rule: Callable[..., Flow | tuple[Flow, ...]]
    level: int = 0
    parent: list[int] = field(default_factory=list)
    made_by: list[tuple[str, int]] = field(default_factory=list)  # module and place in it
    pinned: dict[int, str] = field(default_factory=dict)  # unit -> why it has to stay
    blocked: list[tuple[int, str]] = field(default_factory=list)  # still units that are pinned
    bindings: dict[tuple[int, int], Binding] = field(default_factory=dict)
    links: list[Link] = field(default_factory=list)
    equal: list[list[list[int]]] = field(default_factory=list)  # as many of each have to stay
    counts: list[tuple[Module, str, list[int]]] = field(default_factory=list)  # without tensors
    places: list[str] = field(default_factory=list)  # the modules under way, innermost last
    names: dict[int, str] = field(default_factory=dict)  # id of a parameter or buffer -> name
    owners: dict[int, list[tuple[Module, str]]] = field(default_factory=dict)  # the same -> places
    kinds: dict[str, str] = field(default_factory=dict)  # name of a module -> its class

    # --- units ------------------------------------------------------------------------------------

    def new_units(self, count: int, made_by: str) -> list[int]:
        """Numbers for so many units that a module makes."""
        start = len(self.parent)
        self.parent.extend(range(start, start + count))
        self.made_by.extend([(made_by, i) for i in range(count)])
        return list(range(start, start + count))

    def is_input(self, unit: int) -> bool:
        """Whether a unit is one of the model's input."""
        return self.made_by[unit][0].startswith(INPUT)

    def root(self, unit: int) -> int:
        """The unit that stands for all that were joined with this one."""
        while self.parent[unit] != unit:
            self.parent[unit] = self.parent[self.parent[unit]]
            unit = self.parent[unit]
        return unit

    def join(self, units: Iterable[int]) -> int:
        """Makes one of several units (-1 counts for nothing)."""
        first = -1
        for unit in units:
            if unit < 0:
                continue
            unit = self.root(unit)
            if first < 0:
                first = unit
            elif unit != first:
                first, other = min(first, unit), max(first, unit)
                self.parent[other] = first
        return first

    def pin(self, flow: Flow, why: str, named: bool = True) -> None:
        """The units of a value have to stay."""
        for unit in distinct(flow.labels):
            if unit >= 0:
                self.pinned.setdefault(unit, why)
        if named and flow.still.any():
            held = {int(u) for u in set(flow.labels[flow.still].flat) if u >= 0}
            self.blocked.extend([(u, why) for u in sorted(held)])

    def slots(self, flow: Flow, dim: int) -> list[int]:
        """The unit at each place along a dimension.

        Inputs that meet at a place become one; hidden units that do are pinned.
        """
        found = []
        for row in front(flow.labels, dim):
            roots = {self.root(u) for u in set(row.tolist()) if u >= 0}
            hidden = len(roots) > 1 and any(not self.is_input(u) for u in roots)
            found.append(self.join(roots))
            if hidden:
                self.pinned.setdefault(found[-1], f"units that meet in {self.place}")
        return found

    def constants(self, flow: Flow, dim: int) -> list[float | None]:
        """At each place along a dimension the number that is always there, None if none is."""
        still = [bool(row.all()) for row in front(flow.still, dim)]
        values = front(flow.value.array, dim)
        low, high = values.min(axis=1), values.max(axis=1)
        room = 1e-13 if values.dtype.itemsize >= 8 else 1e-5
        return [
            float(a) if s and b - a <= room * max(abs(float(a)), abs(float(b))) else None
            for s, a, b in zip(still, low.tolist(), high.tolist(), strict=True)
        ]

    def bind(self, tensor: Tensor, dim: int, units: Sequence[int]) -> None:
        """The entries of a parameter or buffer along a dimension are of these units."""
        key = (id(tensor), dim)
        if key in self.bindings:
            pairs = zip(self.bindings[key].units, units, strict=True)
            for a, b in pairs:
                self.join((a, b))
        else:
            self.bindings[key] = Binding(tensor, dim, list(units))

    # --- values -----------------------------------------------------------------------------------

    def box(self, value: Tensor, labels: Array, still: Array) -> Flow:
        """A value with its units, and which of its elements are still."""
        return Flow(self, value, labels, still)

    def plain(self, value: Tensor) -> Flow:
        """A value that has nothing to do with units or inputs."""
        shape = value.array.shape
        return Flow(self, value, K.full(shape, -1, INTEGER), K.full(shape, True, bool))

    def unknown(self, value: Tensor) -> Flow:
        """A value of which nothing is known but that it may depend on the input."""
        shape = value.array.shape
        return Flow(self, value, K.full(shape, -1, INTEGER), K.full(shape, False, bool))

    def along(self, value: Tensor, dim: int, units: Sequence[int], still: Sequence[bool]) -> Flow:
        """A value with a unit at each place along a dimension."""
        shape = [1] * value.ndim
        shape[dim] = -1
        full = value.array.shape
        labels = K.broadcast_to(K.asarray(list(units), INTEGER).reshape(shape), full)
        return Flow(self, value, labels, K.broadcast_to(K.asarray(still).reshape(shape), full))

    def name_of(self, tensor: Tensor) -> str:
        """The module that holds a parameter."""
        return self.names[id(tensor)].rpartition(".")[0]

    @property
    def place(self) -> str:
        """The module under way, for messages."""
        name = self.places[-1] if self.places else ""
        return f"{name!r} ({self.kinds.get(name, 'Module')})" if name else "the model's forward"


def varying(labels: Array) -> list[int]:
    """The dimensions along which units differ."""
    found = []
    for d in range(labels.ndim):
        first = labels[(slice(None),) * d + (slice(0, 1),)]
        if (labels != first).any():
            found.append(d)
    return found


def distinct(labels: Array) -> set[int]:
    """The units of a value."""
    return set(shortened(labels, varying(labels)).reshape(-1).tolist())


def shortened(labels: Array, dims: Sequence[int]) -> Array:
    """The first place alone along all dimensions but these."""
    return labels[tuple([slice(None) if d in dims else slice(0, 1) for d in range(labels.ndim)])]


def front(array: Array, dim: int) -> Array:
    """An array as a matrix with a row for each place along a dimension."""
    dim %= array.ndim
    order = (dim, *[d for d in range(array.ndim) if d != dim])
    return array.transpose(order).reshape(array.shape[dim], -1)

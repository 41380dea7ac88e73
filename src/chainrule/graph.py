"""The graph behind tensors: nodes, what views share, values inside transformations, and what a
thread records."""

from __future__ import annotations

import itertools
import math
import threading
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias, Union

if TYPE_CHECKING:
    from chainrule.ops.core.recording import Select
    from chainrule.ops.core.primitive import Op
    from chainrule.tensor import Tensor
    from chainrule.typing import Array, V

__all__ = [
    "ORDINARY",
    "Box",
    "Edge",
    "Edges",
    "Extra",
    "Mode",
    "Node",
    "Saved",
    "Storage",
    "View",
    "Watcher",
    "mode",
    "next_seq",
    "repeated",
]

# What a gradient is handed to: the node that made a tensor, or the tensor itself if it is a leaf.
Edge: TypeAlias = Union["Node", "Tensor"]
Edges: TypeAlias = "tuple[Edge | None, ...]"  # one for each input, None where no gradient is asked
Saved: TypeAlias = "tuple[Tensor | None, ...] | None"  # None where the rule does not need one

# Numbers nodes and in-place writes in one order: a node is younger than its inputs, and a saved
# tensor is stale exactly if its memory was written after the node that saved it was made.
next_seq = itertools.count(1).__next__


# Called with an operation, its inputs, its parameters and its result.
Watcher = Callable[[Any, "tuple[Tensor, ...]", dict[str, Any], Any], None]


class Mode(threading.local):
    """What this thread records. ``flags`` is 0 or GRAD alone in ordinary programs.

    Any other flag sends every operation through the general path, so that the ordinary path has
    one comparison to make.
    """

    GRAD, BOXED, TRACE, ANOMALY, INFERENCE, AUTOCAST = 1, 2, 4, 8, 16, 32
    flags = GRAD
    watchers: tuple[Watcher, ...] = ()  # told of every operation while a trace is on
    autocast: Mapping[str, Any] = MappingProxyType({})  # types of operands, by kinds of devices


mode = Mode()
# Flags up to this one: values may be in boxes, but an operation on bare arrays is an ordinary one.
ORDINARY = Mode.GRAD | Mode.BOXED


class Storage:
    """What a tensor and its views share: when their memory was last written, and by what."""

    __slots__ = ("last_write", "rebased")

    def __init__(self) -> None:
        self.last_write = 0
        self.rebased = 0


class View:
    """How a view came from its base: the operations to repeat on the base to get it again."""

    __slots__ = ("base", "made_without_grad", "stamp", "steps")

    def __init__(self, base: Tensor, steps: tuple[Any, ...], made_without_grad: bool):
        self.base = base
        self.steps = steps
        self.stamp = next_seq()
        self.made_without_grad = made_without_grad

    def replay(self, base: Tensor) -> Tensor:
        """The view of another base."""
        return repeated(self.steps, base)


def repeated(steps: tuple[Any, ...], base: V) -> V:
    """What the steps of a view make of a base."""
    for op, params in steps:
        base = op(base, **params)
    return base


class Node:
    """One recorded operation: its rule (``op``), its inputs and what the rule will need.

    ``edges`` has, for each input, the node that made it, or the leaf tensor itself, or None where
    no gradient is asked for. ``saved`` holds input tensors (None where the rule does not need one)
    and ``out`` the output array, if the rule needs it. ``shapes`` are the shapes of the inputs, or
    None where all equal the output's. ``extra`` holds what few nodes have.
    """

    __slots__ = (
        "__weakref__",
        "edges",
        "extra",
        "op",
        "out",
        "params",
        "saved",
        "seq",
        "shapes",
    )

    # What there is of these depends on the operation, whose rule reads them.
    op: Any
    saved: Any
    out: Any
    shapes: Any
    params: Any

    def __init__(
        self,
        op: Op | Select,
        edges: tuple[Any, ...],
        saved: Saved,
        out: Array | tuple[Array, ...] | None,
        shapes: Sequence[tuple[int, ...]] | None = None,
        params: dict[str, Any] | None = None,
    ):
        self.op = op
        self.edges = edges
        self.saved = saved
        self.out = out
        self.shapes = shapes
        self.params = params
        self.seq = next_seq()
        self.extra: Extra | None = None

    def name(self) -> str:
        """The operation's name as PyTorch writes it, such as ``TanhBackward``."""
        return "".join(part.capitalize() for part in self.op.name.split("_")) + "Backward"

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        """The nodes (or leaf tensors) of the inputs, as PyTorch lists them."""
        return tuple((edge, 0) for edge in self.edges)

    def extras(self) -> Extra:
        """The place for what few nodes have, made when first asked for."""
        if self.extra is None:
            self.extra = Extra()
        return self.extra

    @property
    def trace(self) -> str | None:
        """The user's source line that made this node, if it was recorded."""
        return None if self.extra is None else self.extra.trace

    def __repr__(self) -> str:
        return f"<{self.name()}>"


class Extra:
    """What few nodes have: hooks, the user's source line, and the storage of a saved output."""

    __slots__ = ("hooks", "store", "trace")

    def __init__(self) -> None:
        self.hooks: dict[int, Any] = {}
        self.store: Storage | None = None
        self.trace: str | None = None


class Box:
    """A value inside a transformation (a dual number, a batch), standing where an array would.

    ``level`` numbers the transformation; the innermost has the highest. ``process`` computes one
    operation whose inputs hold boxes of this level, and returns a box.
    """

    __slots__ = ()
    level: int
    shape: tuple[int, ...]
    dtype: Any

    @property
    def ndim(self) -> int:
        """The number of dimensions, as of an array."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements, as of an array."""
        return math.prod(self.shape)

    def process(
        self, op: Op, inputs: tuple[Tensor, ...], params: dict[str, Any]
    ) -> Box | tuple[Box, ...]:
        """One operation on inputs that hold boxes of this level: a box, or one for each output."""
        raise TypeError(f"{type(self).__name__} cannot be computed with")

    def held(self) -> tuple[Tensor, ...]:
        """The tensors in this box."""
        return ()

    def constant(self, value: Tensor) -> Box:
        """A value that stays unchanged under this transformation, in a box of its level."""
        raise TypeError(f"{type(self).__name__} has no constants")

    def detached(self) -> Box:
        """The same value as a constant, of this transformation and of all that hold it."""
        return self

    def numbers(self, what: str) -> Array:
        """The values as a NumPy array, where they have one."""
        raise RuntimeError(
            f"{what}: the numbers of a tensor are not available inside {self.transformation}; "
            "return the tensor from the transformed function and look at it there"
        )

    transformation = "a transformation"

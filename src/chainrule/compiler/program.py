"""A recorded step: its values (slots), its calls of kernels (instructions), what belongs to it."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from chainrule.compiler.updates import Update
    from chainrule.tensor import Tensor

__all__ = ["Instruction", "Program", "Ref", "Slot", "map_arrays", "refs_in"]


_WAYS = {"python": "called by Python each time", "call": "compiled, but called each time"}


class Ref:
    """Stands for the value of a slot among the arguments of an instruction."""

    __slots__ = ("slot",)

    def __init__(self, slot: int):
        self.slot = slot

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ref) and other.slot == self.slot

    def __hash__(self) -> int:
        return hash(self.slot)

    def __repr__(self) -> str:
        return f"%{self.slot}"


@dataclass
class Slot:
    """A value of a program.

    ``kind`` is "input" (an argument), "state" (an array that lives on between calls: a parameter,
    a buffer, a moment), "constant", "made" (by an instruction) or "view" (of the memory of another
    slot, ``base``, from ``offset`` bytes on).
    """

    kind: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: Any
    value: Any = None  # the array of a state or constant
    base: int = -1
    offset: int = 0
    name: str = ""
    written: bool = False
    holders: list[Any] = field(default_factory=list)  # weak references to tensors of a state
    place: Any = None  # the device it is on; None is the host
    taken: Any = None  # how a view on a device comes from its base

    def form(self) -> tuple[Any, ...]:
        """What has to be the same for two slots to be the same."""
        memory = self.base, self.offset, self.place, self.taken
        return self.kind, self.shape, self.strides, self.dtype, *memory

    def span(self) -> int:
        """The bytes from its first element to the end of its last one."""
        if 0 in self.shape:
            return 0
        steps = [(n - 1) * stride for n, stride in zip(self.shape, self.strides, strict=True)]
        return int(sum(steps) + self.dtype.itemsize)

    def count(self) -> int:
        """How many elements it has."""
        return math.prod(self.shape)

    def is_contiguous(self) -> bool:
        """Whether its elements lie in one piece, in their order."""
        step = self.dtype.itemsize
        for n, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if n != 1 and stride != step:
                return False
            step *= n
        return True

    def told(self) -> str:
        """Type and shape, as they are printed: ``f32[5, 4]``."""
        letter = {"f": "f", "i": "i", "u": "u", "b": "b", "c": "c"}.get(self.dtype.kind, "v")
        size = "" if letter == "b" else str(8 * self.dtype.itemsize)
        return f"{letter}{size}[{','.join(map(str, self.shape))}]"


@dataclass
class Instruction:
    """One call of a kernel."""

    kernel: str
    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    out: Any  # the slots of its results, in the structure in which they come
    effect: str
    answer: Any = None  # of a check
    error: Callable[[], Exception] | None = None  # where a check fails, if that is known
    update: Update | None = None
    line: str = ""  # of the user's program
    # How a tape runs it: "kept" as a function, "call" by a call of its compiled kernel, "python";
    # "" if there is no tape.
    way: str = ""
    chain: int = 0  # the number of the chain that a tape computes it in, from 1 on

    @property
    def makes_values(self) -> bool:
        """Whether it makes new values, instead of changing others."""
        return self.effect != "writes"

    def lasting(self) -> tuple[Any, ...]:
        """The arguments that have to be the same at every call; an update's numbers need not."""
        if self.update is None:
            return self.args
        rule, params, grads, _, states, constants = self.args
        return rule, params, grads, states, tuple(constants)

    def precision(self) -> Any:
        """What products on a device are rounded to in it, None where that is nothing special."""
        return getattr(self.function, "precision", None)

    def reads(self) -> Iterator[int]:
        """The slots that it takes."""
        yield from refs_in(self.args)
        yield from refs_in(self.kwargs)

    def makes(self) -> Iterator[int]:
        """The slots that it fills."""
        yield from refs_in(self.out)


def refs_in(tree: Any) -> Iterator[int]:
    """The slots that stand in nested lists, tuples and dictionaries."""
    if isinstance(tree, Ref):
        yield tree.slot
    elif isinstance(tree, (list, tuple)):
        for part in tree:
            yield from refs_in(part)
    elif isinstance(tree, dict):
        for part in tree.values():
            yield from refs_in(part)


def map_arrays(tree: Any, kind: type | tuple[type, ...], function: Callable[[Any], Any]) -> Any:
    """The same tree with a function applied to its leaves of a class."""
    if isinstance(tree, kind):
        return function(tree)
    if tree.__class__ is list:
        return [map_arrays(part, kind, function) for part in tree]
    if isinstance(tree, tuple):
        parts = [map_arrays(part, kind, function) for part in tree]
        return tuple(parts) if tree.__class__ is tuple else tree.__class__(*parts)
    if tree.__class__ is dict:
        return {key: map_arrays(part, kind, function) for key, part in tree.items()}
    return tree


@dataclass
class Program:
    """What a step computes, to be repeated with other inputs and the state as it is then."""

    slots: list[Slot] = field(default_factory=list)
    instructions: list[Instruction] = field(default_factory=list)
    inputs: list[int] = field(default_factory=list)
    result: Any = None  # what the step returns, with slots in the place of tensors
    grads: list[tuple[Tensor, int]] = field(default_factory=list)  # leaves and their gradients
    written: list[Tensor] = field(default_factory=list)  # state that changes
    without_grads: list[Tensor] = field(default_factory=list)  # leaves that have none before
    modules: list[Any] = field(default_factory=list)  # that were called
    place: Any = None  # the device that it computes on; None is the host
    reason: str = ""  # why it cannot be repeated
    recorded: int = 0  # calls of kernels, those included that no instruction is left of
    folded: int = 0  # instructions that became constants
    reused: int = 0  # instructions whose values another one has made
    unused: int = 0  # instructions whose values nobody reads
    in_registers: int = 0  # values that chains have no memory for

    def check_early(self) -> None:
        """Moves checks up to behind what makes their values.

        A check of arguments comes first, then: where it fails nothing has been drawn or written,
        and the function itself can run from the beginning, up to its error. One whose error is
        known stays: all that the function does before it has been done.
        """
        order: list[Instruction] = []
        for step in self.instructions:
            place = len(order)
            if step.effect == "checks" and step.error is None:
                needed = {self.root(slot) for slot in step.reads()}
                while place and not self._concerns(order[place - 1], needed):
                    place -= 1
            order.insert(place, step)
        self.instructions = order

    def _concerns(self, step: Instruction, roots: set[int]) -> bool:
        """Whether an instruction makes or changes a value, or is another check."""
        touched = [*step.makes(), *(step.reads() if step.effect in ("writes", "python") else ())]
        return step.effect in ("checks", "python") or bool(roots & {*map(self.root, touched)})

    def root(self, number: int) -> int:
        """The slot whose memory a slot shows."""
        while self.slots[number].kind == "view":
            number = self.slots[number].base
        return number

    @property
    def state(self) -> list[int]:
        """The slots of arrays that live on between calls."""
        return [i for i, s in enumerate(self.slots) if s.kind == "state"]

    @functools.cached_property
    def updates(self) -> list[Update]:
        """The updates of parameters that are part of it."""
        return [step.update for step in self.instructions if step.update is not None]

    @functools.cached_property
    def optimizers(self) -> list[Any]:
        """Those whose steps are part of it."""
        return list({id(u.optimizer): u.optimizer for u in self.updates}.values())

    def explain(self) -> str:
        """What became of the calls of kernels that were recorded, in words."""
        views = sum([s.kind == "view" for s in self.slots])
        gone = self.folded + self.reused + self.unused
        lines = [
            f"{self.recorded} calls of kernels were recorded",
            f"{self.recorded - len(self.instructions) - gone} were dropped: they give "
            f"arguments back, or show memory in another shape ({views} views)",
            f"{self.folded} have no arguments that change, and became constants",
            f"{self.reused} compute what another one has computed, and {self.unused} what nobody "
            "reads",
            f"{len(self.instructions)} are left",
        ]
        if any([s.way for s in self.instructions]):
            kept = sum([s.way == "kept" for s in self.instructions])
            lines.append(f"{kept} of them are kept as functions, which need no Python")
        chained = [s.chain for s in self.instructions if s.chain]
        if chained:
            lines.append(
                f"{len(chained)} of them are elementwise and computed together, block by block, in "
                f"{len(set(chained))} chain{'s' * (len(set(chained)) != 1)}; "
                f"{self.in_registers} values exist only there"
            )
        for way, said in _WAYS.items():
            named = [s.kernel for s in self.instructions if s.way == way]
            if named:
                lines.append(f"{said}: {', '.join(named)}")
        return "\n".join(lines)

    def difference(self, other: Program) -> str:
        """In what another recording of the same step differs, "" if in nothing."""
        pairs = zip(self.instructions, other.instructions, strict=False)
        for a, b in pairs:
            if a.kernel != b.kernel:
                return f"{_at(b)} calls {b.kernel} where it called {a.kernel} the time before"
            if a.precision() != b.precision():
                return f"{_at(b)} calls {a.kernel} in another precision than the time before"
            if not _same(a.lasting(), b.lasting()) or not _same(a.kwargs, b.kwargs):
                return f"{_at(b)} calls {a.kernel} with {_first_difference(a, b)}"
        if len(self.instructions) != len(other.instructions):
            counts = f"{len(self.instructions)} and {len(other.instructions)}"
            return f"two calls came to different numbers of kernels ({counts})"
        for x, y in zip(self.slots, other.slots, strict=False):
            if x.form() != y.form():
                return f"a value is {y.kind} {y.told()} that was {x.kind} {x.told()} before"
            if x.kind == "state" and x.value is not y.value:
                return f"an array {x.told()} that lives on between calls was replaced by another"
            if x.kind == "constant" and x.value.tobytes() != y.value.tobytes():
                return f"a constant {x.told()} has changed its value"
        if not _same(self.result, other.result):
            return "what it returns has another structure"
        return ""

    def __str__(self) -> str:
        return "\n".join([self._head(), *[self.line(i) for i in range(len(self.instructions))]])

    def _head(self) -> str:
        size = sum([s.span() for s in self.slots if s.kind == "made"])
        inputs = ", ".join([self.slots[i].told() for i in self.inputs]) or "none"
        state = len(self.state)
        return (
            f"{len(self.instructions)} instructions, {size} bytes; inputs: {inputs}; "
            f"state: {state} array{'s' * (state != 1)}"
        )

    def line(self, number: int) -> str:
        """One instruction as it is printed."""
        step = self.instructions[number]
        made = [self.slots[i] for i in step.makes()]
        types = " ".join([s.told() for s in made]) or step.effect
        target = ", ".join([self._name(i) for i in step.makes()])
        args = [self._told(a) for a in step.args if not callable(a)]
        args += [f"{k}={self._told(v)}" for k, v in step.kwargs.items()]
        said = f"  # {_WAYS[step.way]}" if step.way in _WAYS else ""
        said = said or (f"  # chain {step.chain}" if step.chain else "")
        return f"{number:>3}  {target:<8} {types:<14} {step.kernel}({', '.join(args)}){said}"

    def _name(self, slot: int) -> str:
        return self.slots[slot].name or f"%{slot}"

    def _told(self, value: Any) -> str:
        if isinstance(value, Ref):
            return self._name(value.slot)
        if isinstance(value, (list, tuple)):
            left, right = "[]" if isinstance(value, list) else "()"
            return left + ", ".join([self._told(v) for v in value]) + right
        if isinstance(value, dict):
            return "{" + ", ".join([f"{k}: {self._told(v)}" for k, v in value.items()]) + "}"
        return str(value) if hasattr(value, "itemsize") else repr(value)


def _at(step: Instruction) -> str:
    return step.line or "the step"


def _same(a: Any, b: Any) -> bool:
    if a.__class__ is not b.__class__:
        return False
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all([_same(x, y) for x, y in zip(a, b, strict=True)])
    if isinstance(a, dict):
        return a.keys() == b.keys() and all([_same(a[k], b[k]) for k in a])
    if isinstance(a, float):
        return a == b or (a != a and b != b)
    return a is b or bool(a == b)


def _first_difference(a: Instruction, b: Instruction) -> str:
    before = [*a.lasting(), *a.kwargs.values()]
    after = [*b.lasting(), *b.kwargs.values()]
    for x, y in zip(before, after, strict=False):
        if not _same(x, y):
            return f"{y!r:.80} where it was {x!r:.80} the time before"
    return "other arguments than the time before"

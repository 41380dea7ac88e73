"""A recorded step: its values (slots), its calls of kernels (instructions), what belongs to it."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from chainrule.tensor import Tensor

__all__ = ["Instruction", "Program", "Ref", "Slot", "Update", "map_arrays", "refs_in"]


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

    def form(self) -> tuple[Any, ...]:
        """What has to be the same for two slots to be the same."""
        return self.kind, self.shape, self.strides, self.dtype, self.base, self.offset

    def span(self) -> int:
        """The bytes from its first element to the end of its last one."""
        if 0 in self.shape:
            return 0
        steps = [(n - 1) * stride for n, stride in zip(self.shape, self.strides, strict=True)]
        return int(sum(steps) + self.dtype.itemsize)

    def told(self) -> str:
        """Type and shape, as they are printed: ``f32[5, 4]``."""
        letter = {"f": "f", "i": "i", "u": "u", "b": "b", "c": "c"}.get(self.dtype.kind, "v")
        size = "" if letter == "b" else str(8 * self.dtype.itemsize)
        return f"{letter}{size}[{','.join(map(str, self.shape))}]"


@dataclass
class Update:
    """The step of an optimizer that an instruction belongs to: asked for its numbers each time."""

    optimizer: Any
    group: dict[str, Any]
    params: list[Tensor]
    held: list[Any]

    def __post_init__(self) -> None:
        self.names = self.optimizer.states(self.group)
        # Where each parameter has rates of its own they are arrays, which are part of the program.
        own = self.own_rates()
        self.rates = [r.array for r in own] if own else None
        self._bases: tuple[dict[str, Any], dict[str, float] | None] | None = None

    def own_rates(self) -> list[Tensor]:
        """The rates of each parameter; none, if one number is that of all."""
        rates = self.optimizer._rates(self.group, self.params)
        return [] if isinstance(rates, float) else rates

    def is_current(self) -> bool:
        """Whether the optimizer still keeps the states that this updates, and rates of the kind."""
        states = self.optimizer.state
        held = all([states.get(p) is h for p, h in zip(self.params, self.held, strict=True)])
        return held and self.has_form()

    def has_form(self) -> bool:
        """Whether the settings ask for the same states as when it was recorded, and rates of the
        same kind: one number, or the very arrays."""
        if self.optimizer.states(self.group) != self.names:
            return False
        own = self.own_rates()
        if self.rates is None or not own:
            return self.rates is None and not own
        return all([r.array is a for r, a in zip(own, self.rates, strict=True)])

    def numbers(self, key: Any) -> tuple[dict[str, Any], float | None]:
        """The constants of a step and its rate; None where the rates are arrays."""
        constants, rates = self.optimizer.numbers(self.group, self.params, key)
        return constants, rates if isinstance(rates, float) else None

    def next(self) -> tuple[Any, dict[str, Any], float | None]:
        """Counts a step; what tells it apart, its constants and its rate."""
        key = self.optimizer._count(self.held, [False] * len(self.held))[0]
        return key, *self.numbers(key)

    def foreseen(self, state: dict[str, Any]) -> tuple[dict[str, Any], float | None]:
        """The numbers of the step after a state of counts and scalars, which goes on by it."""
        step = state["step"] + 1 if self.optimizer.keeps_step else 2
        names = self.optimizer.scalar_states
        scalars = {name: state[name] for name in names}
        found = self.numbers((step, *scalars.values()) if names else step)
        if names:
            state.update(self.optimizer.advance(self.group, step, **scalars))
        state["step"] = step
        return found

    def advance(self, key: Any) -> None:
        """The scalar states after the step."""
        if self.optimizer.scalar_states:
            self.optimizer.advance_scalars(self.group, self.held, key)

    @contextlib.contextmanager
    def counted(self) -> Iterator[tuple[dict[str, Any], float | None]]:
        """Around a step: its constants and rate; it does not count if it raises an error."""
        key, constants, rate = self.next()
        try:
            yield constants, rate
        except BaseException:
            self.back(key)
            raise
        self.advance(key)

    def back(self, key: Any) -> None:
        """Takes back a step that was counted, and not taken."""
        self.skip(-1)
        names = self.optimizer.scalar_states
        if names:
            for state in self.held:
                state.update(zip(names, key[1:], strict=True))

    def skip(self, steps: int) -> None:
        """Counts steps that were taken elsewhere."""
        if self.optimizer.keeps_step:
            for state in self.held:
                state["step"] += steps

    def moving(self) -> dict[str, float] | None:
        """The constants that are 1 - base^t at step t, with their bases; None if others move."""
        if self.optimizer.scalar_states:
            return None
        if not self.optimizer.keeps_step:
            return {}
        first = self.optimizer.constants(self.group, 1)
        if self._bases is None or self._bases[0] != first:
            rows = [self.optimizer.constants(self.group, t) for t in PROBES]
            self._bases = first, _bases_in(rows)
        return self._bases[1]

    def prepare(self, tape: Any, number: int) -> int | None:
        """Tells a tape the numbers of the steps to come; the number of the last one.

        None if they have another form than was recorded.
        """
        if not self.has_form():
            return None
        first = {"step": 1, **self.held[0]}
        t = first["step"]
        self.tell(tape, number, *self.foreseen(first))
        tape.set_moving(number, float(t), self.moving() or {})
        return int(t)

    @staticmethod
    def tell(tape: Any, number: int, constants: dict[str, Any], rate: float | None) -> None:
        """Tells a tape the numbers of the next step."""
        if not tape.set_numbers(number, rate, constants):
            raise ZeroDivisionError("compile: an update divides by zero")


# Steps whose constants tell which of them move. Two steps after each other do not: 1 - 0.9^t stays
# where it is for some steps before it comes to 1.
PROBES = (1, 2, 3, 4, 6, 10, 30, 100, 300, 1000, 10_000, 100_000)


def _bases_in(rows: list[dict[str, Any]]) -> dict[str, float] | None:
    """The bases of the constants that move, from those of some steps."""
    found = {}
    for name, value in rows[0].items():
        if all([row[name] == value for row in rows]):
            continue
        pairs = [(t, row[name]) for t, row in zip(PROBES, rows, strict=True)]
        candidates = [b for b in rows[0].values() if isinstance(b, float)]
        bases = [b for b in candidates if all([value == 1 - b**t for t, value in pairs])]
        if not bases:
            return None
        found[name] = bases[0]
    return found


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
    reason: str = ""  # why it cannot be repeated
    recorded: int = 0  # calls of kernels, those included that no instruction is left of
    folded: int = 0  # instructions that became constants

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
        slot = self.slots[number]
        return slot.base if slot.kind == "view" else number

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
        lines = [
            f"{self.recorded} calls of kernels were recorded",
            f"{self.recorded - len(self.instructions) - self.folded} were dropped: they give "
            f"arguments back, or show memory in another shape ({views} views)",
            f"{self.folded} have no arguments that change, and became constants",
            f"{len(self.instructions)} are left",
        ]
        if any([s.way for s in self.instructions]):
            kept = sum([s.way == "kept" for s in self.instructions])
            lines.append(f"{kept} of them are kept as functions, which need no Python")
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

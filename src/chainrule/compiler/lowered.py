"""A program on a device: one function of XLA's, or a loop over it for many steps.

The instructions of the record are called once, on cells whose arrays XLA traces; what it compiles
takes the state, the inputs, the random numbers and the numbers of the updates, and gives the state
back. The old state is donated: the new one takes its memory.

Nothing waits for the device. Whether all checks of a step held is looked at when its answer is
there, at the latest ``LATE`` steps later, or when Python reads a number. A step whose check fails
changes nothing, and neither do those behind it: the state is that before the error.
"""

from __future__ import annotations

from collections.abc import Sequence
from sys import getrefcount
from typing import Any, NamedTuple

from chainrule.backend import xla_programs as xla
from chainrule.backend.placed import Placed
from chainrule.backend.tracing import NotLowered
from chainrule.compiler.program import Instruction, Program, Ref, map_arrays
from chainrule.compiler.rates import Numbers
from chainrule.compiler.values import Values

__all__ = ["LATE", "Call", "Lowered"]

LATE = 16  # steps whose checks may still be open
HELD = 1 << 28  # bytes of inputs that open steps may hold
MOST = 8  # functions of one program


class Call(NamedTuple):
    """A step whose checks are open: whether they held, and what it takes to do it again."""

    held: Any
    arguments: Any
    keys: list[Any]  # of its updates
    results: list[Placed]


class Lowered(Values):
    """The values of a program on a device, and the compiled functions that compute them."""

    marks: tuple[()] = ()

    def __init__(self, program: Program):
        super().__init__(program)
        self.place = program.place
        slots = program.slots
        self._refuse_what_stays_on_the_host()
        held = [i for i, s in enumerate(slots) if s.kind in ("state", "constant")]
        placed = [i for i in held if isinstance(slots[i].value, Placed)]
        self.changing = [i for i in placed if slots[i].written]
        self.fixed = [i for i in held if slots[i].kind == "state" and i not in self.changing]
        self.fixed += [i for i in placed if slots[i].kind == "constant"]
        self.draws = [s for s in program.instructions if s.effect == "draws"]
        self.updates = list(enumerate(program.updates))
        results = [r.slot for r in _refs(program.result)]
        grads = [slot for _, slot in program.grads]
        self.outs = list(dict.fromkeys([*results, *grads]))
        self.moving: list[list[str]] = [[] for _ in program.updates]
        self.fast: Any = None  # the compiled function,
        self.static: list[dict[str, Any]] = []  # for these numbers of the updates,
        self.many: dict[Any, Any] = {}  # and the loops over it
        self.lowerings = 0
        self.alive: Any = True
        self.open: list[Call] = []
        self.errors: list[Any] = []  # of the checks inside kernels, in their order
        self.out: dict[int, Any] = {}
        self.steps_done = 0

    def _refuse_what_stays_on_the_host(self) -> None:
        program = self.program
        for s in program.slots:
            if s.kind == "state" and s.written and s.place is None:
                raise NotLowered("it writes into a tensor on the CPU")
            if s.place not in (None, self.place):
                raise NotLowered(f"it computes on {self.place} and {s.place}")
        draws = [s for s in program.instructions if s.effect == "draws"]
        drawn = {slot for step in draws for slot in step.makes()}
        for step in draws:
            if not drawn.issuperset(step.reads()):
                raise NotLowered(f"{step.kernel} draws by numbers of a tensor")

    # --- what XLA traces --------------------------------------------------------------------------

    def _traced(
        self, changing: Any, fixed: Any, inputs: Any, drawn: Any, numbers: Any, alive: Any
    ) -> Any:
        """A step on arrays that are traced: the new state, what it hands out, and whether all
        checks held."""
        program = self.program
        arrays: list[Any] = [s.value for s in program.slots]
        given = [*zip(self.changing, changing, strict=True), *zip(self.fixed, fixed, strict=True)]
        given += zip(program.inputs, inputs, strict=True)
        for slot, raw in given:
            arrays[slot] = Placed(raw, self.place)
        self.arrays, self.out = arrays, {}
        checks: list[Any] = []
        self.errors = []

        def take(ok: Any, error: Any) -> None:
            checks.append(ok)
            self.errors.append(error)

        updates, draws = iter(self._cells_of(numbers)), iter(drawn)
        with xla.tracing(take):
            for step in program.instructions:
                self._trace(step, checks, updates, draws)
            held = xla.all_of(alive, checks)
            state = [
                xla.chosen(held, arrays[i].raw, old, program.slots[i].value)
                for i, old in zip(self.changing, changing, strict=True)
            ]
            out = [xla.raw_of(self.value(i)) for i in self.outs]
        self.arrays = [s.value for s in program.slots]
        return state, out, held

    def _trace(self, step: Instruction, checks: list[Any], updates: Any, draws: Any) -> None:
        if step.update is not None:
            rule, params, grads, rates, states, _ = step.args
            rate, constants = next(updates)
            rates = self.filled(rates) if rate is None else rate
            values = (rule, *self.filled((params, grads)), rates, self.filled(states), constants)
            step.function(*values)
        elif step.effect == "draws":
            self._keep(xla.drawn(step, next(draws), self.place), step.out)
        elif step.effect == "checks":
            ok = step.function(*self.filled(step.args), **self.filled(step.kwargs))
            checks.append(ok == step.answer)
        elif step.effect != "python":
            out = step.function(*self.filled(step.args), **self.filled(step.kwargs))
            if step.effect != "writes":
                self._keep(out, step.out)

    def _cells_of(self, numbers: Any) -> list[Any]:
        """The rate and the constants of each update, those that move as cells."""
        found, at = [], 0
        for u, names, static in zip(self.program.updates, self.moving, self.static, strict=True):
            constants = dict(static)
            for name in names:
                constants[name] = Placed(numbers[at], self.place)
                at += 1
            rate = Placed(numbers[at], self.place) if u.rates is None else None
            at += u.rates is None
            found.append((rate, constants))
        return found

    def _keep(self, out: Any, slots: Any) -> None:
        if isinstance(slots, Ref):
            self.arrays[slots.slot] = xla.in_cell(out, self.place)
        elif isinstance(slots, (list, tuple)):
            for part, slot in zip(out, slots, strict=True):
                self._keep(part, slot)

    def value(self, number: int) -> Any:
        """The array of a slot: while a step is traced, or what the last one handed out."""
        if number in self.out:
            return self.out[number]
        array = self.arrays[number]
        if array is None:
            slot = self.program.slots[number]
            if slot.taken is None:
                return super().value(number)
            array = self.arrays[number] = xla.view_of(self.value(slot.base), slot)
        return array

    # --- the numbers of a step --------------------------------------------------------------------

    def _count(self) -> tuple[list[Any], list[Any]]:
        """Counts the steps of optimizers, and does what Python does in between."""
        keys, found = [], []
        for step in self.program.instructions:
            if step.update is not None:
                key, constants, rate = step.update.next()
                step.update.advance(key)
                keys.append(key)
                found.append((constants, rate))
            elif step.effect == "python":
                step.function(*step.args)
        return keys, found

    def _numbers(self, found: Sequence[Any]) -> list[float]:
        """The numbers that move, in the order in which a step takes them; lowers it anew if others
        do than before."""
        stays = []
        for i, (constants, _) in enumerate(found):
            static = {k: v for k, v in constants.items() if k not in self.moving[i]}
            if self.fast is not None and static != self.static[i]:
                before = self.static[i]
                self.moving[i] += [k for k, v in static.items() if _moves(before.get(k), v)]
                static = {k: v for k, v in constants.items() if k not in self.moving[i]}
                self.fast = None
            stays.append(static)
        if self.fast is None:
            self._lower(stays)
        out: list[float] = []
        for i, (constants, rate) in enumerate(found):
            out += [constants[name] for name in self.moving[i]]
            out += [] if rate is None else [rate]
        return out

    def _lower(self, static: list[dict[str, Any]]) -> None:
        self.lowerings += 1
        if self.lowerings > MOST:
            raise NotLowered(f"the numbers of its updates had more than {MOST} forms")
        self.static, self.many = static, {}
        self.fast = xla.compiled(self._traced)

    # --- running ----------------------------------------------------------------------------------

    def feed(self, inputs: Sequence[Any]) -> None:
        """Sets what the next run computes with."""
        self._inputs = inputs

    def build(self, inputs: Sequence[Any]) -> int:
        """The first run."""
        self.feed(inputs)
        return self.run()

    def _state(self) -> tuple[list[Any], list[Any]]:
        """The arrays of the state, those that are donated first.

        An array that somebody else has is copied: its memory must stay.
        """
        slots = self.program.slots
        changing = []
        for i in self.changing:
            raw = slots[i].value.raw
            changing.append(raw if getrefcount(raw) <= ALONE else xla.copied(raw))
            raw = None
        return changing, [xla.raw_of(slots[i].value) for i in self.fixed]

    def run(self) -> int:
        """A step. -1: what fails shows later, see :meth:`failed`."""
        keys, found = self._count()
        drawn = [xla.draw(step) for step in self.draws]
        try:
            numbers = xla.numbers(self._numbers(found))
            inputs = [xla.on(a, self.place) for a in self._inputs]
            changing, fixed = self._state()
            changing, fixed, inputs = xla.together(changing, fixed, inputs)
            new, out, self.alive = xla.called(
                self.fast, self.program, changing, fixed, inputs, drawn, numbers, self.alive
            )
        except BaseException:
            for u, key in zip(self.program.updates, keys, strict=True):
                u.back(key)
            raise
        self._put_back(new)
        self.out = {i: Placed(a, self.place) for i, a in zip(self.outs, out, strict=True)}
        self.keys = keys
        return -1

    def _put_back(self, new: Sequence[Any]) -> None:
        slots = self.program.slots
        for i, raw in zip(self.changing, new, strict=True):
            slots[i].value.write(raw)

    def later(self, arguments: Any, results: list[Placed]) -> bool:
        """Notes the step that was just done, to look at its checks later; whether that is due."""
        self.open.append(Call(self.alive, arguments, self.keys, results))
        held = sum([a.nbytes for a in self._inputs])
        return len(self.open) > LATE or held * len(self.open) > HELD

    def failed(self, wait: bool) -> list[Call]:
        """The steps from the first one on whose checks did not hold; none, if all did.

        Those that are not decided yet stay open, unless it is to ``wait``.
        """
        if not self.open:
            return []
        if wait:
            known = len(self.open)
        else:
            known = max(len(self.open) - LATE // 2, 0)
        if not known or bool(self.open[known - 1].held):
            del self.open[:known]
            return []
        first = next(i for i, call in enumerate(self.open) if not bool(call.held))
        found, self.open = self.open[first:], []
        self.alive = True
        for call in reversed(found):
            for u, key in zip(reversed(self.program.updates), reversed(call.keys), strict=True):
                u.back(key)
        return found

    # --- many steps -------------------------------------------------------------------------------

    def epoch(
        self,
        times: int,
        sources: Sequence[Any],
        order: Any,
        batch: int,
        numbers: Numbers | None,
    ) -> tuple[Any, int, int]:
        """Runs so many steps in one call. Their losses, a row for each, how many came to their end,
        and the number of an instruction if the next one failed, else -1."""
        numbers = numbers or Numbers(self.updates, times)
        rows = self._rows(times, numbers)
        drawn = [xla.stacked([xla.draw(s) for _ in range(times)]) for s in self.draws]
        sources = [xla.on(a, self.place) for a in sources]
        order = None if order is None else xla.on(order, self.place)
        key = (times, batch, order is None)
        loop = self.many.get(key)
        if loop is None:
            slot = self.outs.index(_refs(self.program.result)[0].slot)
            loop = self.many[key] = xla.loop(self._traced, slot, times, batch)
        changing, fixed = self._state()
        given = [] if order is None else [order]
        changing, fixed, sources, given = xla.together(changing, fixed, sources, given)
        order = given[0] if given else None
        new, (out, losses, held) = xla.called(
            loop, self.program, changing, fixed, sources, order, drawn, rows, self.alive
        )
        self._put_back(new)
        done = xla.count(held)
        self.steps_done = done
        self.out = {i: Placed(a, self.place) for i, a in zip(self.outs, out, strict=True)}
        if done < times:
            self.alive = True
        for i, (_, u) in enumerate(self.updates):
            u.skip(done)
            numbers.leave(i, done)
        return Placed(losses.reshape(times, -1), self.place), done, -1 if done == times else 0

    def _rows(self, times: int, numbers: Numbers) -> Any:
        """The numbers of the steps to come, a row for each."""
        tables = {number: (names, table) for number, names, table in numbers.tables or ()}
        for i, (constants, _) in enumerate(numbers.first):
            known = {k for k, v in constants.items() if k in self.moving[i]}
            new = [n for n in tables[i][0] if n not in known and n != "lr"]
            if new:
                self.moving[i] += new
                self.fast = None
        self._numbers(numbers.first)
        columns: list[Any] = []
        for i, (constants, rate) in enumerate(numbers.first):
            names, table = tables[i]
            wanted = [*self.moving[i], *([] if rate is None else ["lr"])]
            given = {**constants, "lr": rate}
            for name in wanted:
                moves = name in names
                columns.append(table[:, list(names).index(name)] if moves else given[name])
        return xla.table(columns, times)


def _moves(before: Any, now: Any) -> bool:
    """Whether a constant is a number that has changed."""
    kinds = (float, int)
    return type(before) in kinds and type(now) in kinds and before != now


def _refs(tree: Any) -> list[Ref]:
    found: list[Ref] = []
    map_arrays(tree, Ref, found.append)
    return found


class _Holder:
    def __init__(self) -> None:
        self._raw = object()

    @property
    def raw(self) -> object:
        return self._raw


def _references() -> int:
    raw = _Holder().raw
    return getrefcount(raw)


ALONE = _references() + 1  # of an array that only its cell has, besides who looks at it

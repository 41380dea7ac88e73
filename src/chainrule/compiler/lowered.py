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
from typing import Any, NamedTuple

from chainrule.backend import xla_programs as xla
from chainrule.backend.placed import Placed
from chainrule.backend.tracing import NotLowered
from chainrule.compiler.ahead import Ahead
from chainrule.compiler.program import Program, Ref, map_arrays
from chainrule.compiler.rates import Numbers
from chainrule.compiler.together import FEWEST, Together, donated, worth_packing
from chainrule.compiler.traced import Traced

__all__ = ["LATE", "Call", "Lowered"]

LATE = 64  # steps whose checks may still be open
HELD = 1 << 28  # bytes of inputs that open steps may hold
MOST = 8  # functions of one program


class Call(NamedTuple):
    """A step whose checks are open: whether they held, and what it takes to do it again."""

    held: Any
    arguments: Any
    back: Any  # puts the streams that it drew from back
    keys: list[Any]  # of its updates
    results: list[Placed]


class Lowered(Traced):
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
        self.counted = [s for s in program.instructions if s.update or s.effect == "python"]
        results = [r.slot for r in _refs(program.result)]
        grads = [slot for _, slot in program.grads]
        self.results = list(dict.fromkeys(results))
        self.grads = [i for i in dict.fromkeys(grads) if i not in self.results]
        self.outs = [*self.results, *self.grads]
        self.moving = [list(u.moving() or ()) for u in program.updates]  # names of constants
        self.fast: Any = None  # the compiled function,
        self.static: list[dict[str, Any]] = []  # for these numbers of the updates,
        self.many: dict[Any, Any] = {}  # and the loops over it
        self.ahead = Ahead(program.updates, self._foreseen)
        self.at: Any = None  # the row of the table for the next step, on the device
        self.lowerings = 0
        self.alive: Any = xla.yes(self.place)
        self.open: list[Call] = []
        self.asked = 0  # of how many of these steps the answer is on its way
        self.joined = set()
        self.errors: list[Any] = []  # of the checks inside kernels, in their order
        self.out: dict[int, Any] = {}
        self.steps_done = 0
        self._back: Any = None  # puts the streams that the last step drew from back
        self._put_together()

    def _put_together(self) -> None:
        """Has the state lie in a list between steps, small arrays as one of each type, and small
        gradients, too."""
        self.state: Together | None = None
        self.gradients: Together | None = None
        self.apart = len(self.changing)
        if xla.on_meshes():
            return
        slots = self.program.slots
        packed = worth_packing([slots[i].value for i in self.changing])
        # Those that lie together come last.
        self.changing = [
            *[i for k, i in enumerate(self.changing) if k not in packed],
            *[self.changing[k] for k in packed],
        ]
        self.apart = len(self.changing) - len(packed)
        cells = [slots[i].value for i in self.changing]
        columns, order = self._columns() if packed else ([], [])
        if len({id(c) for c in cells}) == len(cells) and all([c.base is None for c in cells]):
            self.state = Together(cells, columns, self.apart)
        if len(order) >= FEWEST:  # in the order in which the update takes them
            self.grads = [*[i for i in self.grads if i not in order], *order]
            forms = [slots[i] for i in order]
            self.gradients = Together([xla.empty(s.shape, s.dtype, self.place) for s in forms])
        self.outs = [*self.results, *self.grads]

    def _columns(self) -> tuple[list[list[int]], list[int]]:
        """What lies together by the columns of the updates: numbers of small arrays, and the slots
        of their gradients."""
        place_of = {slot: k for k, slot in enumerate(self.changing[self.apart :])}
        columns: list[list[int]] = []
        order: list[int] = []
        for step in self.counted:
            if step.update is None:
                continue
            _, params, grads, _, states, _ = step.args
            small = [ref.slot in place_of for ref in _refs(params)]
            for column in (params, *states):
                found = [place_of.pop(ref.slot) for ref in _refs(column) if ref.slot in place_of]
                columns.append(found)
            mine = zip(_refs(grads), small, strict=True)
            order += [ref.slot for ref, one in mine if one and ref.slot in self.grads]
        return columns, order

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

    # --- the numbers of a step --------------------------------------------------------------------

    def _count(self) -> tuple[list[Any], list[Any]]:
        """Counts the steps of optimizers, and does what Python does in between."""
        keys, found = [], []
        for step in self.counted:
            if step.update is None:
                step.function(*step.args)
                continue
            key, constants, rate = step.update.next()
            step.update.advance(key)
            keys.append(key)
            found.append((constants, rate))
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
        return self._flat(found)

    def _flat(self, found: Sequence[Any]) -> list[float]:
        out: list[float] = []
        for names, (constants, rate) in zip(self.moving, found, strict=True):
            out += [constants[name] for name in names]
            out += [] if rate is None else [rate]
        return out

    def _foreseen(self, found: Sequence[Any]) -> list[float] | None:
        """The numbers of a step to come, if it is one of this form."""
        for names, static, (constants, _) in zip(self.moving, self.static, found, strict=True):
            if {k: v for k, v in constants.items() if k not in names} != static:
                return None
        return self._flat(found)

    def _lower(self, static: list[dict[str, Any]]) -> None:
        self.lowerings += 1
        if self.lowerings > MOST:
            raise NotLowered(f"the numbers of its updates had more than {MOST} forms")
        self.static, self.many = static, {}
        self.ahead.forget()
        self.fast = xla.compiled(self._step)

    # --- running ----------------------------------------------------------------------------------

    def feed(self, inputs: Sequence[Any]) -> None:
        """Sets what the next run computes with."""
        self._inputs = inputs

    def build(self, inputs: Sequence[Any]) -> int:
        """The first run. What cannot become a program has drawn no random numbers."""
        self.feed(inputs)
        try:
            return self.run()
        except NotLowered:
            self._back()
            raise

    def _state(self) -> tuple[list[Any], list[Any]]:
        """The arrays of the state, those that are donated first."""
        slots = self.program.slots
        fixed = [xla.raw_of(slots[i].value) for i in self.fixed]
        if self.state is not None:
            return self.state.take(), fixed
        return donated([slots[i].value for i in self.changing]), fixed

    def _apart(self) -> None:
        """Where arrays lie on several devices, each goes in and out by itself."""
        if self.state is not None and xla.on_meshes():
            self.state.hand_out()
            self.state = self.gradients = self.fast = None
            self.apart = len(self.changing)

    def run(self) -> int:
        """A step. -1: what fails shows later, see :meth:`failed`."""
        self._apart()
        keys, found = self._count()
        self._back = self.streams()
        drawn = [xla.draw(step) for step in self.draws]
        try:
            numbers = self._numbers(found)
            table = at = None
            if numbers:
                table, first = self.ahead.take(numbers, self.place)
                at = self.at if first is None else first
            inputs = [xla.on(a, self.place) for a in self._inputs]
            changing, fixed = self._state()
            changing, fixed, inputs = xla.together(changing, fixed, inputs)
            given = (changing, fixed, inputs, drawn, table, at, self.alive)
            new, out, self.alive, self.at = xla.called(self.fast, self.program, *given)
        except BaseException:
            self.ahead.forget()
            for u, key in zip(self.program.updates, keys, strict=True):
                u.back(key)
            raise
        self._put_back(new)
        self._hand_on(out)
        self.keys = keys
        return -1

    def _put_back(self, new: Sequence[Any]) -> None:
        if self.state is not None:
            self.state.put(new)
            return
        slots = self.program.slots
        for i, raw in zip(self.changing, new, strict=True):
            slots[i].value.write(raw)

    def _hand_on(self, out: Sequence[Any]) -> None:
        """What a step hands out, in cells."""
        results, grads = out[: len(self.results)], out[len(self.results) :]
        self.out = {i: Placed(a, self.place) for i, a in zip(self.results, results, strict=True)}
        together = self.gradients
        alone = len(self.grads) - (0 if together is None else len(together.cells))
        cells = [Placed(a, self.place) for a in grads[:alone]]
        if together is not None:
            together.put(grads[alone:])
            cells += together.cells
        self.out.update(zip(self.grads, cells, strict=True))

    def later(self, arguments: Any, results: list[Placed]) -> bool:
        """Notes the step that was just done, to look at its checks later; whether that is due."""
        self.open.append(Call(self.alive, arguments, self._back, self.keys, results))
        count = len(self.open)
        if count == LATE // 2:
            self._ask()
        return count >= LATE or sum([a.nbytes for a in self._inputs]) * count > HELD

    def _ask(self) -> None:
        """Has the answer of the last step's checks sent, to be there when it is looked at: to wait
        for one takes as long as some steps."""
        xla.send(self.open[-1].held)
        self.asked = len(self.open)

    def failed(self, wait: bool) -> list[Call]:
        """The steps from the first one on whose checks did not hold; none, if all did.

        Those that are not decided yet stay open, unless it is to ``wait``.
        """
        if not self.open:
            return []
        known = len(self.open) if wait else self.asked or (len(self.open) + 1) // 2
        self.asked = 0
        if bool(self.open[known - 1].held):
            del self.open[:known]
            if len(self.open) >= LATE // 2:
                self._ask()
            return []
        first = next(i for i, call in enumerate(self.open) if not bool(call.held))
        found, self.open = self.open[first:], []
        self.alive = xla.yes(self.place)
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
        self._apart()
        rows = self._rows(times) if numbers is None else self._told(times, numbers)
        back = self.streams()
        drawn = self._drawn(times)
        sources = [xla.on(a, self.place) for a in sources]
        order = None if order is None else xla.on(order, self.place)
        key = (times, batch, order is None)
        loop = self.many.get(key)
        if loop is None:
            slot = self.outs.index(_refs(self.program.result)[0].slot)
            loop = self.many[key] = xla.loop(
                self._one_of_many, slot, times, batch, self._begin, self._end
            )
        changing, fixed = self._state()
        given = [] if order is None else [order]
        changing, fixed, sources, given = xla.together(changing, fixed, sources, given)
        order = given[0] if given else None
        new, out, losses, held = xla.called(
            loop, self.program, changing, fixed, sources, order, drawn, rows, self.alive
        )
        self._put_back(new)
        self._hand_on(out)
        done = xla.count(held)
        self.steps_done = done
        if done < times:
            self.alive = xla.yes(self.place)
            back()
            self._drawn(done)
        for i, (_, u) in enumerate(self.updates):
            u.skip(done)
            if numbers is not None:
                numbers.leave(i, done)
        return Placed(losses, self.place), done, -1 if done == times else 0

    def streams(self) -> Any:
        """What puts the streams that a step draws from back to where they are now."""
        return xla.streams(self.draws)

    def _drawn(self, times: int) -> list[Any]:
        """What so many steps draw, in their order: an array for each call of a step."""
        steps = [[xla.draw(s) for s in self.draws] for _ in range(times)]
        return [xla.stacked(column) for column in zip(*steps, strict=True)]

    def _rows(self, times: int) -> Any:
        """The numbers of the steps to come, a row for each, where they follow from that of the
        step."""
        first = [u.foreseen(dict(u.held[0])) for u in self.program.updates]
        self._numbers(first)
        columns: list[Any] = []
        for names, u, (constants, rate) in zip(
            self.moving, self.program.updates, first, strict=True
        ):
            bases, t = u.moving() or {}, u.held[0].get("step", 0)
            for name in names:
                base = bases.get(name)
                steps = range(t + 1, t + times + 1)
                columns.append(
                    [1 - base**i for i in steps] if base is not None else constants[name]
                )
            columns += [] if rate is None else [rate]
        return xla.table(columns, times)

    def _told(self, times: int, numbers: Numbers) -> Any:
        """The same where they were asked of Python, step by step."""
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

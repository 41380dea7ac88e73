"""A program on a device: one function of XLA's, or a loop over it for many steps.

The instructions of the record are called once, on cells whose arrays XLA traces; what it compiles
takes the state, the inputs, the random numbers and the numbers of the updates, and gives the state
back. The old state is donated: the new one takes its memory.

Nothing waits for the device. Whether all checks of a step held is looked at when its answer is
there, at the latest ``LATE`` steps later, or when Python reads a number (``waiting.py``). A step
whose check fails changes nothing, and neither do those behind it: the state is that before the
error. State and gradients stay where they are from step to step, like on the CPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chainrule.backend import xla_programs as xla
from chainrule.backend.placed import Placed
from chainrule.backend.tracing import NotLowered
from chainrule.compiler.ahead import Ahead
from chainrule.compiler.program import Program, Ref, map_arrays
from chainrule.compiler.rates import Numbers
from chainrule.compiler.together import FEWEST, Together, donated, worth_packing
from chainrule.compiler.traced import Traced
from chainrule.compiler.waiting import Waiting
from chainrule.tensor import Tensor, of_array

__all__ = ["Lowered"]

MOST = 8  # functions of one program


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
        self.only_updates = bool(self.counted) and all([s.update for s in self.counted])
        results = [r.slot for r in _refs(program.result)]
        grads = [slot for _, slot in program.grads]
        self.results = list(dict.fromkeys(results))
        self.grads = [i for i in dict.fromkeys(grads) if i not in self.results]
        self.outs = [*self.results, *self.grads]
        self.moving = [list(u.moving() or ()) for u in program.updates]  # names of constants
        self.fast: Any = None  # the compiled function,
        self.static: list[dict[str, Any]] = []  # for these numbers of the updates,
        self.many: dict[Any, Any] = {}  # and the loops over it
        self.ahead = Ahead(program.updates, self._foreseen, self._moving_columns)
        self.at: Any = None  # the row of the table for the next step, on the device
        self.lowerings = 0
        self.waiting = Waiting(self.place)
        self.joined = set()
        self.errors: list[Any] = []  # of the checks inside kernels, in their order
        self.out = {}
        self.steps_done = 0
        self.left: list[tuple[Tensor, Tensor]] | None = None  # leaves, and their gradients
        self.tallied: Any = None  # by the device, after the last call of many steps
        self.held = sum([slots[i].span() for i in program.inputs])  # bytes that a step is given
        # Where all results are new ones: the slots, in the place of tensors.
        new = [not slots[i].holders for i in results]
        self.fresh = program.result if all(new) and len(set(results)) == len(results) else None
        self.keys: list[Any] = []  # of the updates of the last step
        self.back: Any = None  # puts the streams that the last call drew from back
        self._put_together()

    def _put_together(self) -> None:
        """Has the state lie in a list between steps, small arrays as one of each type, and small
        gradients, too."""
        self.state: Together | None = None
        self.gradients: Together | None = None
        self.apart = len(self.changing)
        self.stays_together = False
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
        if len(order) < FEWEST:
            order = []
        self.grads = [*[i for i in self.grads if i not in order], *order]
        forms = [slots[i] for i in self.grads]  # the last in the order in which the update is
        cells = [xla.empty(s.shape, s.dtype, self.place) for s in forms]
        self.gradients = Together(cells, apart=len(cells) - len(order))
        self.gradients.begin()
        self.out = dict(zip(self.grads, cells, strict=True))  # the same cells for all steps
        self.outs = [*self.results, *self.grads]
        # Also within a loop over many steps: copies cost more on a CPU.
        self.stays_together = bool(packed) and self.place.kind != "xla"

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
        return self.run()

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
            self.state = self.gradients = self.fast = self.left = None
            self.stays_together = False
            self.apart = len(self.changing)

    def run(self) -> int:
        """A step. -1: what fails shows later, see ``waiting``."""
        self._apart()
        foreseen = self.fast is not None and self.only_updates and self.ahead.follows()
        if foreseen:
            self.ahead.go_on()
            keys = [None] * len(self.program.updates)
        else:
            keys, found = self._count()
        back = self.streams()
        drawn = [xla.draw(step) for step in self.draws]
        try:
            table, at = self.ahead.table, self.at
            if not foreseen:
                table, at = self._row(self._numbers(found))
            inputs = [xla.on(a, self.place) for a in self._inputs]
            taken, fixed, inputs = self._taken(at, inputs)
            given = (taken, fixed, inputs, drawn, table)
            new, out = xla.called(self.fast, self.program, *given)
        except BaseException as error:
            self.ahead.forget()
            for u, key in zip(self.program.updates, keys, strict=True):
                u.back(key)
            if isinstance(error, NotLowered):
                back()
            raise
        self._put_back(new, out)
        self.keys, self.back = keys, back
        return -1

    def _row(self, numbers: list[float]) -> tuple[Any, Any]:
        """The table that has the numbers of a step, and its row."""
        if not numbers:
            return None, None
        table, first = self.ahead.take(numbers, self.place)
        return table, self.at if first is None else first

    def _taken(self, at: Any, *others: Sequence[Any]) -> list[Any]:
        """What a call takes and gives back: the state, how many steps there were, the row of the
        table, and the gradients; then what it only reads."""
        changing, fixed = self._state()
        changing, fixed, *rest = xla.together(changing, fixed, *others)
        grads = [] if self.gradients is None else self.gradients.take()
        return [(changing, self.waiting.ticks, at, grads), fixed, *rest]

    def _put_back(self, new: Any, out: Sequence[Any]) -> None:
        """What a call gives back, and what it hands out, in cells."""
        state, self.waiting.ticks, self.at, grads = new
        if self.state is not None:
            self.state.put(state)
        else:
            slots = self.program.slots
            for i, raw in zip(self.changing, state, strict=True):
                slots[i].value.write(raw)
        if self.gradients is None:
            self.out = {i: Placed(a, self.place) for i, a in zip(self.outs, out, strict=True)}
            return
        self.gradients.put(grads)
        for i, raw in zip(self.results, out, strict=True):
            self.out[i] = Placed(raw, self.place)

    def handed_out(self) -> Any:
        """What a call returns, where all of it is new."""
        fresh, out = self.fresh, self.out
        if fresh.__class__ is Ref:
            return of_array(out[fresh.slot])
        return map_arrays(fresh, Ref, lambda ref: of_array(out[ref.slot]))

    def leave_gradients(self) -> list[Tensor]:
        """Leaves have the gradients of the last call, in the same tensors each time."""
        if self.left is None:
            self.left = [(t, of_array(self.value(slot))) for t, slot in self.program.grads]
        for leaf, grad in self.left:
            if leaf._grad is not grad:
                leaf._grad = grad
        return [grad for _, grad in self.left]

    def untaken(self, keys: Sequence[Any], steps: int) -> None:
        """Takes steps back that were counted: one with what its optimizers knew before it, or many
        of optimizers that know how many there were, and nothing else."""
        updates = self.program.updates
        for i in reversed(range(len(updates))):
            if keys:
                updates[i].back(keys[i])
            else:
                updates[i].skip(-steps)

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
        and the number of an instruction if the next one failed, else -1.

        Where ``numbers`` were asked of Python this waits, for they would have to be asked again;
        else what fails shows later.
        """
        self._apart()
        rows = self._rows(times) if numbers is None else self._told(times, numbers)
        self.back = self.streams()
        drawn = self._drawn(times)
        sources = [xla.on(a, self.place) for a in sources]
        order = None if order is None else xla.on(order, self.place)
        key = (times, batch, order is None)
        loop = self.many.get(key)
        if loop is None:
            slot = self.outs.index(_refs(self.program.result)[0].slot)
            ways: Any = (self._one_of_many, self._begin, self._end)
            if self.stays_together:
                ways = (self._one_together, list, self._parted)
            loop = self.many[key] = xla.loop(slot, times, batch, *ways)
        taken, fixed, sources, given = self._taken(None, sources, [] if order is None else [order])
        order = given[0] if given else None
        row = self.at
        given = taken, fixed, sources, order, drawn, rows
        new, out, losses, counted = xla.called(loop, self.program, *given)
        self.tallied = xla.on_its_way(counted)
        self._put_back(new, out)
        self.at, self.keys = row, []
        done = self.steps_done = times if numbers is None else self.waiting.done_of(times)
        if done < times:
            self.rewind(self.back, done)
        for i, (_, u) in enumerate(self.updates):
            u.skip(done)
            if numbers is not None:
                numbers.leave(i, done)
        return Placed(losses, self.place), done, -1 if done == times else 0

    def rewind(self, back: Any, steps: int) -> None:
        """Has streams be where they were, and draw what so many steps draw."""
        back()
        self._drawn(steps)

    def streams(self) -> Any:
        """What puts the streams that a step draws from back to where they are now."""
        return xla.streams(self.draws) if self.draws else _nothing

    def _drawn(self, times: int) -> list[Any]:
        """What so many steps draw, in their order: an array for each call of a step."""
        steps = [[xla.draw(s) for s in self.draws] for _ in range(times)]
        return [xla.stacked(column) for column in zip(*steps, strict=True)]

    def _rows(self, times: int) -> Any:
        """The numbers of the steps to come, a row for each, where they follow from that of the
        step."""
        first = [u.foreseen(dict(u.held[0])) for u in self.program.updates]
        self._numbers(first)
        return xla.table(self._moving_columns(first, times), times)

    def _moving_columns(self, first: Sequence[Any], times: int) -> list[list[float]]:
        """Each number that a step takes, for so many steps from the ``first`` on."""
        columns: list[list[float]] = []
        for names, u, (constants, rate) in zip(
            self.moving, self.program.updates, first, strict=True
        ):
            bases, t = u.moving() or {}, u.held[0].get("step", 0)
            for name in names:
                base = bases.get(name)
                steps = range(t + 1, t + times + 1)
                same = [constants[name]] * times
                columns.append(same if base is None else [1 - base**i for i in steps])
            columns += [] if rate is None else [[rate] * times]
        return columns

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


def _nothing() -> None:
    """Where nothing is drawn."""


def _moves(before: Any, now: Any) -> bool:
    """Whether a constant is a number that has changed."""
    kinds = (float, int)
    return type(before) in kinds and type(now) in kinds and before != now


def _refs(tree: Any) -> list[Ref]:
    found: list[Ref] = []
    map_arrays(tree, Ref, found.append)
    return found

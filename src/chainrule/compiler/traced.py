"""What XLA traces of a program: its instructions, called once on cells whose arrays are traced."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chainrule.backend import xla_programs as xla
from chainrule.backend.placed import Placed
from chainrule.compiler.program import Instruction, Program, Ref
from chainrule.compiler.together import Together, update_joined
from chainrule.compiler.values import Values

__all__ = ["Traced"]


class Traced(Values):
    """The values of a program on a device while it is traced."""

    program: Program
    place: Any
    changing: list[int]  # slots of the state that is written to,
    apart: int  # how many of these come before those that lie together
    fixed: list[int]  # slots of what is only read
    results: list[int]  # slots that a step hands out
    outs: list[int]  # and gradients
    moving: list[list[str]]  # names of the numbers of each update that move
    static: Sequence[dict[str, Any]]  # the other ones
    state: Together | None
    gradients: Together | None
    out: dict[int, Any]
    joined: set[int]  # the cells, by identity, that are updated together
    errors: list[Any]  # of the checks inside kernels, in their order

    def _traced(
        self,
        changing: Any,
        fixed: Any,
        inputs: Any,
        drawn: Any,
        numbers: Any,
        alive: Any,
        joins: bool = False,
    ) -> Any:
        """A step on arrays that are traced: the new state if all checks hold, what it hands out,
        and whether they do. It ``joins`` what lies together for its updates."""
        program = self.program
        arrays: list[Any] = [s.value for s in program.slots]
        given = [*zip(self.changing, changing, strict=True), *zip(self.fixed, fixed, strict=True)]
        given += zip(program.inputs, inputs, strict=True)
        for slot, raw in given:
            arrays[slot] = Placed(raw, self.place)
        held_out, self.out = self.out, {}
        self.arrays = arrays
        checks: list[Any] = []
        self.errors = []
        self.joined = {id(arrays[i]) for i in self.changing[self.apart :]} if joins else set()

        def take(ok: Any, error: Any) -> None:
            checks.append(ok)
            self.errors.append(error)

        updates, draws = iter(self._cells_of(numbers)), iter(drawn)
        with xla.tracing(take):
            for step in program.instructions:
                self._trace(step, checks, updates, draws)
            held = xla.all_of(alive, checks)
            state = [arrays[i].raw for i in self.changing]
            out = [xla.raw_of(self.value(i)) for i in self.outs]
        self.arrays, self.out = [s.value for s in program.slots], held_out
        return state, out, held

    def _one_of_many(self, changing: Any, *given: Any) -> Any:
        """The same on a state that stays where a check does not hold, each array by itself."""
        slots = self.program.slots
        new, out, held = self._traced(changing, *given)
        rows = zip(new, changing, [slots[i].value for i in self.changing], strict=True)
        return [xla.chosen(held, after, before, cell) for after, before, cell in rows], out, held

    def _begin(self, changing: Any) -> list[Any]:
        """The state, each array by itself."""
        if self.state is None:
            return list(changing)
        return [*changing[: self.apart], *self.state.pack.unpack(changing[self.apart :])]

    def _end(self, state: Any, out: Any) -> tuple[Any, Any, Any]:
        """The state and the gradients as they go out, small arrays together; and the rest."""
        if self.state is not None:
            state = [*state[: self.apart], *self.state.pack.pack(state[self.apart :])]
        if self.gradients is None:
            return state, [], out
        count, apart = len(self.results), self.gradients.apart
        results, grads = out[:count], out[count:]
        grads = [*grads[:apart], *self.gradients.pack.pack(grads[apart:])]
        return state, grads, results

    def _step(self, taken: Any, fixed: Any, inputs: Any, drawn: Any, table: Any) -> Any:
        """A step whose numbers are a row of a table. It takes, and gives back: the state, how many
        steps there were, the row, and the gradients; and what it hands out."""
        changing, counts, at, _ = taken
        numbers = () if table is None else table[at]
        given = (fixed, inputs, drawn, numbers, xla.is_alive(counts))
        next_row = None if at is None else at + 1
        if self.state is None:
            new, out, held = self._one_of_many(changing, *given)
            state, grads, out = self._end(new, out)
            return (state, xla.ticked(counts, 1, held), next_row, grads), out
        state, out, held = self._one_together(changing, *given)
        grads, out = out[len(self.results) :], out[: len(self.results)]
        return (state, xla.ticked(counts, 1, held), next_row, grads), out

    def _one_together(
        self, changing: Any, fixed: Any, inputs: Any, drawn: Any, numbers: Any, alive: Any
    ) -> Any:
        """A step on a state as it lies between steps: columns that are updated as a whole are
        chosen as a whole."""
        first = self._begin(changing)
        new, out, held = self._traced(first, fixed, inputs, drawn, numbers, alive, joins=True)
        new, grads, out = self._end(new, out)
        cells = [self.program.slots[i].value for i in self.changing[: self.apart]]
        cells += [None] * (len(new) - self.apart)
        rows = zip(new, changing, cells, strict=True)
        state = [xla.chosen(held, after, before, cell) for after, before, cell in rows]
        return state, [*out, *grads], held

    def _parted(self, state: Any, out: Any) -> tuple[Any, Any, Any]:
        """What :meth:`_one_together` gives as :meth:`_end` does."""
        count = len(self.results)
        return state, out[count:], out[:count]

    def _trace(self, step: Instruction, checks: list[Any], updates: Any, draws: Any) -> None:
        if step.update is not None:
            rule, params, grads, rates, states, _ = step.args
            rate, constants = next(updates)
            rates = self.filled(rates) if rate is None else rate
            values = (rule, *self.filled((params, grads)), rates, self.filled(states), constants)
            if self.joined:
                update_joined(self.joined, step.function, *values)
            else:
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

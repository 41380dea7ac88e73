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
    errors: list[Any]  # of the checks inside kernels, in their order

    def _traced(
        self, changing: Any, fixed: Any, inputs: Any, drawn: Any, numbers: Any, alive: Any
    ) -> Any:
        """A step on arrays that are traced: the new state if all checks hold, what it hands out,
        and whether they do."""
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
            state = [arrays[i].raw for i in self.changing]
            out = [xla.raw_of(self.value(i)) for i in self.outs]
        self.arrays = [s.value for s in program.slots]
        return state, out, held

    def _whole(self, changing: Any, *given: Any) -> Any:
        """The same on a state that may lie together, which stays where a check does not hold; with
        gradients together as well."""
        slots = self.program.slots
        apart = changing[: self.apart]
        cells: list[Any] = [slots[i].value for i in self.changing[: self.apart]]
        if self.state is None:
            new, out, held = self._traced(apart, *given)
        else:
            pack = self.state.pack
            new, out, held = self._traced([*apart, *pack.unpack(changing[self.apart :])], *given)
            new = [*new[: self.apart], *pack.pack(new[self.apart :])]
            cells += [None] * len(pack.groups)
        rows = zip(new, changing, cells, strict=True)
        state = [xla.chosen(held, after, before, cell) for after, before, cell in rows]
        if self.gradients is not None:
            pack = self.gradients.pack
            alone = len(out) - len(pack.shapes)
            out = [*out[:alone], *pack.pack(out[alone:])]
        return state, out, held

    def _step(
        self, changing: Any, fixed: Any, inputs: Any, drawn: Any, table: Any, at: Any, alive: Any
    ) -> Any:
        """A step whose numbers are a row of a table: the new state, what it hands out, whether all
        checks held, and the next row."""
        numbers = () if table is None else table[at]
        state, out, held = self._whole(changing, fixed, inputs, drawn, numbers, alive)
        return state, out, held, None if at is None else at + 1

    def _trace(self, step: Instruction, checks: list[Any], updates: Any, draws: Any) -> None:
        if step.update is not None:
            rule, params, grads, rates, states, _ = step.args
            rate, constants = next(updates)
            rates = self.filled(rates) if rate is None else rate
            values = (rule, *self.filled((params, grads)), rates, self.filled(states), constants)
            if self.state is None:
                step.function(*values)
            else:
                cells = [self.arrays[i] for i in self.changing[self.apart :]]
                update_joined({id(c) for c in cells}, step.function, *values)
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

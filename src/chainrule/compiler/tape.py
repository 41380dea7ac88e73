"""A program in memory of its own, run from one call of the compiled module."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chainrule.backend import K, native_module
from chainrule.backend.recorded import place_of, view_at
from chainrule.compiler.chains import Chain, chains_of, in_order
from chainrule.compiler.copying import copies_of
from chainrule.compiler.arithmetic import called_with_place, kernel_for
from chainrule.compiler.memory import LINE, planned
from chainrule.compiler.program import Instruction, Program
from chainrule.compiler.updates import Update
from chainrule.compiler.rates import Numbers
from chainrule.compiler.values import Values
from chainrule.random import Generator

__all__ = ["Tape"]

# How a step runs, by the answers of the compiled tape.
WAYS = {None: "call", 0: "python", 1: "call", 2: "kept"}


class Tape(Values):
    """The steps of a program with their arrays, built while they are computed for the first time.

    What a compiled kernel computes is kept as a function over these arrays. Where its call cannot
    be kept (it copies an argument first), the kernel is called each time; where a kernel is not
    compiled, or leaves a call to NumPy, the step calls Python and copies.
    """

    def __init__(self, program: Program):
        program.instructions, program.in_registers = in_order(program), 0
        for step in program.instructions:
            step.chain = 0
        super().__init__(program)
        self.chains = {c.end - 1: c for c in chains_of(program)}
        plan = planned(program, list(self.chains.values()))
        self.plan = plan
        self.arena = K.zeros((plan.size + LINE,), "uint8")
        self._first = -place_of(self.arena) % LINE
        for slot, offset in plan.offsets.items():
            self.arrays[slot] = self._place(slot, offset)
        for slot in [t for c in self.chains.values() for t in c.temporaries]:
            self.arrays[slot] = K.zeros(program.slots[slot].shape, program.slots[slot].dtype)
        self.tape = native_module().Tape()  # type: ignore[union-attr]
        self.marks: list[Any] = []  # what Python does between ranges of steps
        self.generators: list[Any] = []  # steps that draw, which argument, and from what
        self.checks: dict[int, int] = {-1: -1}  # steps that check, and which instructions they are
        self.updates: list[Any] = []  # steps of the tape, and whose they are

    def _place(self, number: int, offset: int) -> Any:
        slot = self.program.slots[number]
        return view_at(self.arena, self._first + offset, slot.shape, slot.strides, slot.dtype)

    def feed(self, inputs: Sequence[Any]) -> None:
        """Copies the inputs to where the program reads them."""
        for slot, array in zip(self.program.inputs, inputs, strict=True):
            K.write(self.arrays[slot], array)

    # --- building ---------------------------------------------------------------------------------

    def build(self, inputs: Sequence[Any]) -> int:
        """Computes the program once, and keeps its steps. -1, or the instruction that failed."""
        self.feed(inputs)
        for number, step in enumerate(self.program.instructions):
            if step.update is not None:
                self._add_update(number, step, step.update)
            elif step.effect == "python":
                self._add_mark(number, step)
            elif not self._add(number, step):
                return number
            if number in self.chains:
                self._join(self.chains[number])
        return -1

    def _join(self, chain: Chain) -> None:
        """Makes one step of the last ones; what they alone need has no memory any more."""
        joined = self.program.instructions[chain.begin : chain.end]
        temporaries = tuple([self.arrays[slot] for slot in chain.temporaries])
        if not self.tape.join(len(self.tape) - len(joined), temporaries):
            return
        number = max([s.chain for s in self.program.instructions]) + 1
        for step in joined:
            step.chain = number
        gone = {*chain.temporaries}
        self.program.in_registers += len(gone)
        for slot, of in enumerate(self.program.slots):
            if slot in gone or of.base in gone:
                self.arrays[slot] = None

    def _add(self, number: int, step: Instruction) -> bool:
        args, kwargs = self.filled(step.args), self.filled(step.kwargs)
        if step.effect == "checks":
            if step.function(*args, **kwargs) != step.answer:
                return False
            self.checks[len(self.tape)] = number
            step.way = WAYS[self.tape.add_check(step.function, args, kwargs, step.answer)]
            return True
        places = tuple([self.value(slot) for slot in step.makes()])
        copies = copies_of(step, args, kwargs, places)
        if copies is not None:
            ways = [WAYS[self.tape.add_copy(*pair)] for pair in copies]
            step.way = "call" if "call" in ways else "kept"
            return True
        for place, g in enumerate(args):
            if isinstance(g, Generator):
                self.generators.append((len(self.tape), place, g))
        args = tuple([g.raw if isinstance(g, Generator) else g for g in args])
        function, args = kernel_for(step, args, places)
        given = places if step.makes_values else ()
        written = called_with_place(step, function, args, places)
        if written is not None:
            args, given = written, ()
        step.way = WAYS[self.tape.add(function, args, kwargs, given)]
        return True

    def _add_update(self, number: int, step: Instruction, u: Update) -> None:
        """An update: kept if it is the compiled kernel's, else called by Python each time."""
        rule, params, grads, given, states, _ = step.args
        with u.counted() as (constants, rate):
            rates = self.filled(given) if rate is None else rate
            values = (rule, *self.filled((params, grads)), rates, self.filled(states), constants)
            kept = None if self._follows_from_another(u) else self.tape.add_update(values)
            if kept is None:
                self.marks.append((len(self.tape), number, values))
                step.way = "python"
                step.function(*values)
            else:
                step.way = "kept"
                self.updates.append((kept, u))
                self.tape.run(kept, kept + 1)

    def _follows_from_another(self, u: Update) -> bool:
        """Whether its numbers are known only when an earlier update of the program is done."""
        held = {id(state) for _, other in self.updates for state in other.held}
        return bool(u.optimizer.scalar_states) and not held.isdisjoint([id(s) for s in u.held])

    def _add_mark(self, number: int, step: Instruction) -> None:
        """A call of Python's between steps."""
        self.marks.append((len(self.tape), number, None))
        step.way = "python"
        step.function(*step.args)

    @property
    def in_python(self) -> list[int]:
        """The instructions that call Python."""
        return [i for i, s in enumerate(self.program.instructions) if s.way == "python"]

    # --- running ----------------------------------------------------------------------------------

    def run(self) -> int:
        """All steps. -1, or the number of an instruction whose check failed."""
        tape = self.tape
        for number, place, g in self.generators:
            tape.set_argument(number, place, g.raw)
        keys = self._count()
        try:
            return self.checks[self._run_steps()]
        finally:
            end = tape.position()[1]  # steps from here on were not taken
            for (number, u), key in zip(self.updates, keys, strict=True):
                if number >= end:
                    u.back(key)

    def _count(self) -> list[Any]:
        """Counts the steps of optimizers, and sets their numbers."""
        keys: list[Any] = []
        try:
            for number, u in self.updates:
                key, constants, rate = u.next()
                keys.append(key)
                u.tell(self.tape, number, constants, rate)
                u.advance(key)  # now: the numbers of a step of Python's may follow from these
        except BaseException:
            for (_, u), key in zip(self.updates, keys, strict=False):
                u.back(key)
            raise
        return keys

    def _run_steps(self) -> int:
        tape, at = self.tape, 0
        for stop, number, values in self.marks:
            failed = tape.run(at, stop)
            if failed >= 0:
                return int(failed)
            self._between(self.program.instructions[number], values)
            at = stop
        return int(tape.run(at, len(tape)))

    def _between(self, step: Instruction, values: Any) -> None:
        if step.update is None:
            step.function(*step.args)
            return
        rule, params, grads, rates, states, _ = values
        with step.update.counted() as (constants, rate):
            step.function(rule, params, grads, rates if rate is None else rate, states, constants)

    def runs_alone(self) -> bool:
        """Whether it can run again without Python in between: its numbers follow by themselves."""
        return not self.marks and not Numbers.needed(self.updates)

    def epoch(
        self,
        times: int,
        sources: Sequence[Any],
        order: Any,
        loss: Any,
        losses: Any,
        numbers: Numbers | None = None,
    ) -> Any:
        """Runs all steps so many times; how often it was done, and the check that failed or -1.

        ``numbers`` are those of updates that do not follow from the number of the step. After an
        error ``steps_done`` says how often.
        """
        tape = self.tape
        for number, place, g in self.generators:
            tape.set_argument(number, place, g.raw)
        for i, (number, u) in enumerate(self.updates):
            if numbers is None:
                u.prepare(tape, number)
            else:
                u.tell(tape, number, *numbers.first[i])
        targets = tuple([self.arrays[i] for i in self.program.inputs])
        tables: Any = () if numbers is None else numbers.tables
        try:
            # The numbers of a step as one element: they are only copied.
            form = f"V{loss.nbytes}"
            one, all_ = view_at(loss, 0, (), (), form), view_at(losses, 0, (times,), None, form)
            done, failed = tape.epoch(times, targets, tuple(sources), order, one, all_, tables)
            return done, self.checks[failed]
        finally:
            done, at = tape.position()
            for i, (number, u) in enumerate(self.updates):
                taken = done + (number < at)
                u.skip(taken)
                if numbers is not None:
                    numbers.leave(i, taken)

    @property
    def steps_done(self) -> int:
        """How often the last epoch ran its steps to the end."""
        return int(self.tape.position()[0])

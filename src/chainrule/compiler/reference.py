"""The textbook executor: a program in plain Python, kernel by kernel.

It serves where there are no compiled kernels, and shows what the tape does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chainrule.backend import K
from chainrule.backend.recorded import view_at
from chainrule.compiler.program import Instruction, Program, Ref, Update, map_arrays
from chainrule.random import Generator

__all__ = ["Reference"]


class Reference:
    """The values of a program, and a loop over its instructions."""

    def __init__(self, program: Program):
        self.program = program
        self.arrays: list[Any] = []
        self._inputs: Sequence[Any] = ()

    def feed(self, inputs: Sequence[Any]) -> None:
        """Sets what the next run computes with."""
        self._inputs = inputs

    def build(self, inputs: Sequence[Any]) -> int:
        """The first run."""
        self.feed(inputs)
        return self.run()

    def value(self, number: int) -> Any:
        """The array of a slot; a view is made when it is first asked for."""
        array = self.arrays[number]
        if array is None:
            slot = self.program.slots[number]
            base = self.value(slot.base)
            array = view_at(base, slot.offset, slot.shape, slot.strides, slot.dtype)
            self.arrays[number] = array
        return array

    def run(self) -> int:
        """All instructions. -1, or the number of one whose check failed."""
        self.arrays = [s.value for s in self.program.slots]
        for slot, array in zip(self.program.inputs, self._inputs, strict=True):
            self.arrays[slot] = array
        for number, step in enumerate(self.program.instructions):
            if not self._done(step):
                return number
        return -1

    def _done(self, step: Instruction) -> bool:
        if step.update is not None:
            self._update(step, step.update)
            return True
        out = step.function(*self._filled(step.args), **self._filled(step.kwargs))
        if step.effect == "checks":
            return bool(out == step.answer)
        if step.effect not in ("writes", "python"):
            self._keep(out, step.out)
        return True

    def _filled(self, tree: Any) -> Any:
        """Arguments with the arrays in their places."""
        tree = map_arrays(tree, Ref, lambda ref: self.value(ref.slot))
        return map_arrays(tree, Generator, lambda g: g.raw)

    def _keep(self, out: Any, slots: Any) -> None:
        """Puts results into their slots."""
        if isinstance(slots, Ref):
            self.arrays[slots.slot] = K.asarray(out)
        elif isinstance(slots, (list, tuple)):
            for part, slot in zip(out, slots, strict=True):
                self._keep(part, slot)

    def _update(self, step: Instruction, update: Update) -> None:
        """The update of an optimizer, with the numbers of this step."""
        key, constants, rates = update.next()
        rule, params, grads, _, states, _ = step.args
        values = self._filled((params, grads, states))
        step.function(rule, values[0], values[1], rates, values[2], constants)
        update.advance(key)

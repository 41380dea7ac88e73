"""The textbook executor: a program in plain Python, kernel by kernel.

It serves where there are no compiled kernels, and shows what the tape does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chainrule.backend import K
from chainrule.compiler.program import Instruction, Program, Ref, map_arrays
from chainrule.compiler.updates import Update
from chainrule.compiler.values import Values
from chainrule.random import Generator

__all__ = ["Reference"]


class Reference(Values):
    """The values of a program, and a loop over its instructions."""

    def __init__(self, program: Program):
        super().__init__(program)
        self._inputs: Sequence[Any] = ()

    def feed(self, inputs: Sequence[Any]) -> None:
        """Sets what the next run computes with."""
        self._inputs = inputs

    def build(self, inputs: Sequence[Any]) -> int:
        """The first run."""
        self.feed(inputs)
        return self.run()

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
        out = step.function(*self._called(step.args), **self._called(step.kwargs))
        if step.effect == "checks":
            return bool(out == step.answer)
        if step.effect not in ("writes", "python"):
            self._keep(out, step.out)
        return True

    def _called(self, tree: Any) -> Any:
        """Arguments as the kernel gets them."""
        return map_arrays(self.filled(tree), Generator, lambda g: g.raw)

    def _keep(self, out: Any, slots: Any) -> None:
        """Puts results into their slots."""
        if isinstance(slots, Ref):
            self.arrays[slots.slot] = K.asarray(out)
        elif isinstance(slots, (list, tuple)):
            for part, slot in zip(out, slots, strict=True):
                self._keep(part, slot)

    def _update(self, step: Instruction, update: Update) -> None:
        """The update of an optimizer, with the numbers of this step."""
        rule, *arrays, _ = step.args
        params, grads, rates, states = self.filled(arrays)
        with update.counted() as (constants, rate):
            given = rates if rate is None else rate
            step.function(rule, params, grads, given, states, constants)

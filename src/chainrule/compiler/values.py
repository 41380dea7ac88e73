"""The arrays of a program while it runs."""

from __future__ import annotations

from typing import Any

from chainrule.backend.recorded import view_at
from chainrule.compiler.program import Program, Ref, map_arrays

__all__ = ["Values"]


class Values:
    """An array for each slot of a program; a view is made when it is first asked for."""

    def __init__(self, program: Program):
        self.program = program
        self.arrays: list[Any] = [s.value for s in program.slots]

    def value(self, number: int) -> Any:
        """The array of a slot."""
        array = self.arrays[number]
        if array is None:
            slot = self.program.slots[number]
            base = self.value(slot.base)
            array = view_at(base, slot.offset, slot.shape, slot.strides, slot.dtype)
            self.arrays[number] = array
        return array

    def filled(self, tree: Any) -> Any:
        """Arguments of an instruction with the arrays in their places."""
        return map_arrays(tree, Ref, lambda ref: self.value(ref.slot))

"""What calls of a program leave behind, and what they return."""

from __future__ import annotations

from typing import Any, TypeAlias

from chainrule.backend import K
from chainrule.compiler.lowered import Lowered
from chainrule.compiler.program import Program, Ref, map_arrays
from chainrule.compiler.reference import Reference
from chainrule.compiler.tape import Tape
from chainrule.ops.core.inplace import touch_all
from chainrule.tensor import Tensor, of_array

__all__ = ["Runner", "leave", "result_of", "set_gradients"]

Runner: TypeAlias = Tape | Lowered | Reference


def result_of(program: Program, runner: Runner) -> Any:
    """What a call returns."""
    if isinstance(runner, Lowered) and runner.fresh is not None:
        return runner.handed_out()
    return map_arrays(program.result, Ref, lambda ref: _returned(program, runner, ref.slot))


def leave(program: Program, runner: Runner, calls: int) -> None:
    """What calls leave behind besides their results."""
    if calls:
        set_gradients(program, runner)
    touch_all(program.written)
    for optimizer in program.optimizers:
        optimizer._steps_taken += calls


def set_gradients(program: Program, runner: Runner, made: set[int] | None = None) -> None:
    """The gradients of a call; of one that ended early, those that were made.

    They are memory of the program, which has changed: what was computed from those of the call
    before cannot be differentiated any more, and says so.
    """
    if made is None and isinstance(runner, Lowered) and runner.gradients is not None:
        touch_all(runner.leave_gradients())
        return
    changed = []
    for leaf, slot in program.grads:
        if made is None or program.root(slot) in made:
            array, held = runner.value(slot), leaf._grad
            if held is None or held.array is not array:
                leaf._grad = held = of_array(array)
            changed.append(held)
    touch_all(changed)


def _returned(program: Program, runner: Runner, slot: int) -> Tensor:
    """A tensor of the caller's own; the very one where the function returns one that lives on."""
    for ref in program.slots[slot].holders:
        t = ref()
        if t is not None:
            return t
    array = runner.value(slot)
    own = isinstance(runner, Lowered) and slot in runner.results  # made by this call
    return of_array(array if own else K.copy(array))

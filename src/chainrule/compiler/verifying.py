"""A call from a record beside one that runs as it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from chainrule.backend import K
from chainrule.compiler.capture import Recording
from chainrule.compiler.guards import owned_by, tensors_in
from chainrule.compiler.program import Program
from chainrule.compiler.reference import Reference
from chainrule.random import Generator
from chainrule.tensor import Tensor

if TYPE_CHECKING:
    from chainrule.compiler.compiled import Compiled

__all__ = ["verified"]


class _State:
    """All that lives on between calls, and can be put back."""

    def __init__(self, program: Program):
        self.slots = [s for s in program.slots if s.kind == "state"]
        self.held = [state for update in program.updates for state in update.held]
        self.generators = {
            id(a): a for step in program.instructions for a in step.args if isinstance(a, Generator)
        }

    def copy(self) -> tuple[Any, ...]:
        """What it is now."""
        numbers = [{k: v for k, v in h.items() if not isinstance(v, Tensor)} for h in self.held]
        streams = [g.get_state() for g in self.generators.values()]
        return [K.copy(s.value) for s in self.slots], numbers, streams

    def restore(self, copy: tuple[Any, ...]) -> None:
        """Puts a copy back."""
        arrays, numbers, streams = copy
        for slot, array in zip(self.slots, arrays, strict=True):
            K.write(slot.value, array)
        for held, kept in zip(self.held, numbers, strict=True):
            held.update(kept)
        for g, stream in zip(self.generators.values(), streams, strict=True):
            g.set_state(stream)


def _first_difference(
    compiled: Compiled, program: Program, args: Any, kwargs: Any, state: _State, start: Any
) -> str:
    """The first instruction whose value is not the one that the function itself computes."""
    recording = Recording(lambda: owned_by(compiled.function))
    recording.keeps_values = True
    inputs = list(tensors_in((args, kwargs)))
    recording.finish(recording.run(lambda: compiled.function(*args, **kwargs), inputs))
    state.restore(start)
    reference = Reference(program)
    reference.build([t.array for t in inputs])
    for number, step in enumerate(program.instructions):
        for slot in step.makes():
            expected = recording.values.get(slot)
            if expected is None or expected.tobytes() != reference.value(slot).tobytes():
                return f"the first is that of {step.line}: {program.line(number).strip()}"
    return "kernel by kernel (mode='reference') the program gives the function's own values"


def verified(compiled: Compiled, program: Program, args: Any, kwargs: Any) -> str:
    """Runs both ways from one state; an error if any bit of results or state differs."""
    state = _State(program)
    start = state.copy()
    outcomes = []
    ways: tuple[Callable[..., Any], ...] = (compiled.function, compiled)
    for run in ways:
        state.restore(start)
        result = [K.copy(t.array) for t in tensors_in((run(*args, **kwargs),))]
        grads = [K.copy(leaf.grad.array) for leaf, _ in program.grads if leaf.grad is not None]
        outcomes.append((result, grads, state.copy()[0]))
    for what, eager, repeated in zip(
        ("results", "gradients", "arrays of the state"), *outcomes, strict=True
    ):
        same = [a.tobytes() == b.tobytes() for a, b in zip(eager, repeated, strict=True)]
        if not all(same):
            state.restore(start)
            where = _first_difference(compiled, program, args, kwargs, state, start)
            raise AssertionError(
                f"compile: {same.count(False)} of {len(same)} {what} of {compiled.__name__} "
                f"differ; {where}"
            )
    count = len(program.instructions)
    return f"{compiled.__name__}: {count} instructions give the same bits as the function itself"

"""What is known of a form of arguments, and of steps that a device has not done yet."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from chainrule import backend
from chainrule.autograd.modes import no_grad
from chainrule.backend.placed import Placed, unsettled
from chainrule.backend.tracing import NotLowered
from chainrule.compiler.batches import Batches
from chainrule.compiler.guards import Guards, tensors_in
from chainrule.compiler.lowered import Lowered
from chainrule.compiler.program import Program
from chainrule.compiler.reference import Reference
from chainrule.compiler.tape import Tape
from chainrule.compiler.waiting import Call, Redo
from chainrule.graph import mode
from chainrule.tensor import Tensor, of_array

__all__ = ["Entry", "Settling", "place"]

WORTH = 20  # calls that a recording has to serve


@dataclass
class Entry:
    """What is known of one form of arguments."""

    calls: int = 0
    last: Program | None = None
    program: Program | None = None
    guards: Guards | None = None
    runner: Tape | Lowered | Reference | None = None
    reason: str = ""  # why it runs as it is
    changes: list[str] = field(default_factory=list)  # why it was recorded again
    shortcut: Any = None
    since: int = 0  # calls that the function had repeated when this was recorded
    in_vain: int = 0  # programs after each other that were hardly used

    def forget(self, change: str, repeated: int) -> None:
        """Something that the program depends on has changed."""
        self.in_vain = self.in_vain + 1 if repeated - self.since < WORTH else 0
        self.program, self.last, self.runner, self.calls = None, None, None, 1
        self.shortcut = None
        self.changes.append(change)


class Settling:
    """What runs programs, and steps on a device, whose checks are looked at when they are known."""

    function: Callable[..., Any]
    repeated: int
    mode: str
    _forget: Callable[[Entry, str], None]
    _tell: Callable[[str], None]

    def _built(self, entry: Entry, program: Program, arrays: list[Any]) -> Any:
        """What runs a program, and how its first run came out."""
        if program.place is not None and self.mode == "tape":
            try:
                entry.runner = Lowered(program)
                return entry.runner, entry.runner.build(arrays)
            except NotLowered as error:
                return self._by_kernels(entry, program, arrays, error)
        taped = program.place is None and self.mode == "tape" and backend.current() == "native"
        entry.runner = (Tape if taped else Reference)(program)
        return entry.runner, entry.runner.build(arrays)

    def _by_kernels(self, entry: Entry, program: Program, arrays: Any, error: NotLowered) -> Any:
        """Runs a program on a device that cannot become one of XLA's."""
        self._tell(f"from its record, kernel by kernel, for it is no program of XLA's: {error}")
        entry.runner = Reference(program)
        return entry.runner, entry.runner.build(arrays)

    def _sent(self, entry: Entry, runner: Lowered, args: Any, kwargs: Any, result: Any) -> Any:
        """The result of a step on a device, whose checks are looked at later."""
        given, modes = (args, kwargs), (mode.flags, mode.autocast)
        tensors = [result] if result.__class__ is Tensor else tensors_in(result)
        cells = [weakref.ref(t.array) for t in tensors if t.array.__class__ is Placed]
        self._note(
            entry, runner, Call(1, runner.held, given, modes, runner.keys, runner.back, cells)
        )
        return result

    def _sent_many(
        self, entry: Entry, runner: Lowered, times: int, taken: Batches | None, first: int, out: Any
    ) -> None:
        """The same for many steps, of batches from the ``first`` on, which are there anyway."""
        modes = mode.flags, mode.autocast
        call = Call(times, 0, taken, modes, (), runner.back, [weakref.ref(out)], first)
        self._note(entry, runner, call, runner.tallied)

    def _note(self, entry: Entry, runner: Lowered, call: Call, counted: Any = None) -> None:
        if runner.waiting.add(call, counted):
            self._settle(entry, wait=False)
        if id(entry) not in unsettled:
            unsettled[id(entry)] = functools.partial(self._settle, entry)

    def _settle(self, entry: Entry, wait: bool = True) -> None:
        """Looks at the checks of steps on a device.

        From the first one on that did not hold, steps changed nothing: they run as they are, until
        that check's error comes.
        """
        runner = entry.runner
        calls = runner.waiting.failed(wait) if isinstance(runner, Lowered) else []
        if not isinstance(runner, Lowered) or not runner.waiting.calls:
            unsettled.pop(id(entry), None)
        if not calls or entry.program is None or not isinstance(runner, Lowered):
            return
        left = sum([call.times - done for call, done in calls])
        for optimizer in entry.program.optimizers:
            optimizer._steps_taken -= left
        self.repeated -= left
        self._forget(entry, "a check of values, whose answer is no error")
        for call, done in reversed(calls):
            runner.untaken(call.keys, call.times - done)
        now = runner.streams()
        for redo in calls:
            runner.rewind(redo.call.back, redo.done)
            left = self._do_again(redo, left)
        now()

    def _do_again(self, redo: Redo, left: int) -> int:
        """Runs the steps of a call as they are; of how many that are ``left`` others remain."""
        call, done = redo
        for step in range(done, call.times):
            try:
                result = self._again(call, step)
            except Exception as error:
                if call.first is not None:
                    error.add_note(place(call.first + step, call.first + call.times))
                if left > call.times - step:
                    error.add_note(f"{left} calls ago; those after it did nothing")
                raise
            left -= 1
            made = [t.array for t in tensors_in(result) if t.array.__class__ is Placed]
            _replace(call, step, made)
        return left

    def _again(self, call: Call, step: int) -> Any:
        """A step in the modes in which it was called."""
        if call.first is None:
            args, kwargs = call.arguments
        else:
            args, kwargs = (), {}
            if call.arguments is not None:
                args = call.arguments[call.first + step]
        before, (mode.flags, mode.autocast) = (mode.flags, mode.autocast), call.modes
        try:
            return self.function(*args, **kwargs)
        finally:
            mode.flags, mode.autocast = before


def place(call: int, calls: int) -> str:
    """Which of many calls it was."""
    return f"in call {call} of {calls}, counted from 0"


@no_grad()
def _replace(call: Call, step: int, made: list[Any]) -> None:
    """Has the results of a call that was sent be those of one that ran as it is."""
    for ref, again in zip(call.results, made, strict=True):
        cell = ref()
        if cell is not None and call.first is None:
            cell.write(again.raw)
        elif cell is not None:
            of_array(cell)[step] = of_array(again).detach().reshape(cell.shape[1:])

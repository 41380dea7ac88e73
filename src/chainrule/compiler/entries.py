"""What is known of a form of arguments, and of steps that a device has not done yet."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from chainrule import backend
from chainrule.backend.placed import Placed, unsettled
from chainrule.backend.tracing import NotLowered
from chainrule.compiler.guards import Guards, tensors_in
from chainrule.compiler.lowered import Lowered
from chainrule.compiler.program import Program
from chainrule.compiler.reference import Reference
from chainrule.compiler.tape import Tape

__all__ = ["Entry", "Settling"]

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

    def _sent(self, entry: Entry, runner: Lowered, arguments: Any, result: Any) -> Any:
        """The result of a step on a device, whose checks are looked at later."""
        cells = [t.array for t in tensors_in((result,)) if isinstance(t.array, Placed)]
        if runner.later(arguments, cells):
            self._settle(entry, wait=False)
        unsettled[id(entry)] = functools.partial(self._settle, entry)
        return result

    def _settle(self, entry: Entry, wait: bool = True) -> None:
        """Looks at the checks of steps on a device.

        From the first one on that did not hold, steps changed nothing: they run as they are, until
        that check's error comes.
        """
        runner = entry.runner
        calls = runner.failed(wait) if isinstance(runner, Lowered) else []
        if not isinstance(runner, Lowered) or not runner.open:
            unsettled.pop(id(entry), None)
        if not calls or entry.program is None:
            return
        for optimizer in entry.program.optimizers:
            optimizer._steps_taken -= len(calls)
        self.repeated -= len(calls)
        self._forget(entry, "a check of values, whose answer is no error")
        now = runner.streams()
        for number, call in enumerate(calls):
            args, kwargs = call.arguments
            call.back()  # the random numbers that it had
            try:
                result = self.function(*args, **kwargs)
            except Exception as error:
                if number + 1 < len(calls):
                    error.add_note(f"{len(calls) - number} calls ago; those after it did nothing")
                raise
            made = [t.array for t in tensors_in((result,))]
            for cell, again in zip(call.results, made, strict=True):
                cell.write(again.raw)
        now()

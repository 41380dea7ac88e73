"""A function that is recorded once, and repeated from its record."""

from __future__ import annotations

import functools
import operator
import threading
import types
import warnings
import weakref
from collections.abc import Callable
from typing import Any, ClassVar

from chainrule.backend import K, native_module, precision, why_not_native
from chainrule.backend.tracing import NotLowered
from chainrule.backend.recorded import thread
from chainrule.compiler.batches import Batches
from chainrule.compiler.capture import Recording
from chainrule.compiler.guards import Guards, form_of, owned_by, tensors_in
from chainrule.compiler.entries import Entry, Settling, place
from chainrule.compiler.leaving import Runner, leave, result_of, set_gradients
from chainrule.compiler.lowered import Lowered
from chainrule.compiler.program import Program, Ref
from chainrule.compiler.rates import Numbers
from chainrule.compiler.shortcut import Ways, shortcut_of
from chainrule.compiler.tape import Tape
from chainrule.compiler.verifying import verified
from chainrule.graph import mode
from chainrule.ops.shape.stacking import cat
from chainrule.optim.lr_scheduler import LRScheduler
from chainrule.tensor import Tensor, of_array

__all__ = ["Compiled", "NotRepeatable", "Stance", "stance"]

TRIES = 4  # calls after which two recordings have to agree
MOST = 8  # programs of one function


class NotRepeatable(RuntimeError):
    """A function that was to be compiled as a whole (``fullgraph=True``) cannot be."""


class Stance(threading.local):
    """How compiled functions run in this thread: from their records, or as they are."""

    name = "default"
    known: ClassVar[weakref.WeakSet[Compiled]] = weakref.WeakSet()


stance = Stance()


class _ByPython:
    """A function that takes no shortcuts: where there are no compiled kernels."""

    repeated = 0

    def take(self, shortcut: None) -> None:
        """There are none."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._call(*args, **kwargs)  # type: ignore[attr-defined]


_Base: Any = _ByPython if why_not_native else native_module().Repeater  # type: ignore[union-attr]


class Compiled(_Base, Settling):
    """A function whose calls are repeated from a record of their kernels.

    The first call runs as it is; the next ones are recorded while they run, until two records after
    each other agree; all further calls with arguments of this form repeat them, with the same bits.
    What cannot be repeated runs as it is after one warning, which says why.
    """

    def __init__(self, function: Callable[..., Any], fullgraph: bool = False, mode: str = "tape"):
        functools.update_wrapper(self, function, updated=())
        self.__name__: str = getattr(function, "__name__", type(function).__name__)
        self.function, self.fullgraph = function, fullgraph
        self.mode = mode
        self.entries: dict[Any, Entry] = {}
        self.repeated = 0  # how many calls were
        self.taken: list[Tensor] = []  # rows of what the calls of an epoch returned, also of one
        # that ended with an error
        self._shortcut_of: Entry | None = None  # which the base class takes
        self._used: Entry | None = None
        self._told_of_forms = False
        self._lock = threading.RLock()
        stance.known.add(self)

    @property
    def program(self) -> Program:
        """The program that was used last.

        Raises:
            RuntimeError: there is none yet.
        """
        if self._used is None or self._used.program is None:
            raise RuntimeError(
                f"compile: {self.__name__} has no program yet: it takes three calls to make one"
            )
        return self._used.program

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def forget(self) -> None:
        """Forgets all records; they are made anew."""
        with self._lock:
            self.entries.clear()
            self.take(None)
            self._shortcut_of = self._used = None

    def _call(self, *args: Any, **kwargs: Any) -> Any:
        """A call for which there is no shortcut."""
        if stance.name != "default" or thread.recorder is not None:
            return self.function(*args, **kwargs)
        with self._lock:
            entry = self._entry((args, kwargs))
            if entry.reason:
                if self.fullgraph:
                    self._tell(entry.reason)
                return self.function(*args, **kwargs)
            if entry.program is not None:
                changed = entry.guards.changed() if entry.guards is not None else ""
                if not changed:
                    return self._repeat(entry, entry.program, args, kwargs)
                self._forget(entry, changed)
            entry.calls += 1
            if entry.calls == 1 or entry.reason:
                return self._as_it_is(entry, args, kwargs)
            return self._record(entry, args, kwargs)

    def _as_it_is(self, entry: Entry, args: Any, kwargs: Any) -> Any:
        """A call of the function; a form of arguments that it never took is not counted."""
        try:
            return self.function(*args, **kwargs)
        except BaseException:
            if entry.calls == 1 and not entry.changes:
                self.entries = {form: e for form, e in self.entries.items() if e is not entry}
            raise

    def _forget(self, entry: Entry, change: str) -> None:
        entry.forget(change, self.repeated)
        self.take(None)
        if entry.in_vain >= MOST:
            entry.reason = f"it was recorded {MOST} times in vain; the last time this changed: "
            entry.reason += change
            self._tell(entry.reason)

    def _entry(self, arguments: Any) -> Entry:
        types = sorted(mode.autocast.items()) if mode.autocast else ()
        form = (mode.flags, precision.current(), *types, form_of(arguments))
        entry = self.entries.get(form)
        if entry is None:
            entry = Entry()
            if len(self.entries) < MOST:
                self.entries[form] = entry
            else:
                entry.reason = f"it was called with more than {MOST} forms of arguments"
                if self.fullgraph or not self._told_of_forms:
                    self._told_of_forms = True
                    self._tell(f"{entry.reason}; further ones run as they are")
        return entry

    def _tell(self, reason: str) -> None:
        text = f"compile: {self.__name__} runs as it is: {reason}"
        if self.fullgraph:
            raise NotRepeatable(text)
        warnings.warn(text, UserWarning, stacklevel=4)

    # --- recording and repeating ------------------------------------------------------------------

    def _record(self, entry: Entry, args: Any, kwargs: Any) -> Any:
        recording = Recording(lambda: owned_by(self.function))
        before = [] if entry.last is None else [leaf for leaf, _ in entry.last.grads]
        had = {id(leaf) for leaf in before if leaf._grad is not None}
        inputs = list(tensors_in((args, kwargs)))
        result = recording.run(lambda: self.function(*args, **kwargs), inputs)
        program = recording.finish(result)
        if recording.passing and not program.reason:
            entry.calls -= 1
            return result
        program.without_grads = [leaf for leaf, _ in program.grads if id(leaf) not in had]
        different = "it is the first" if entry.last is None else entry.last.difference(program)
        if program.reason or (different and entry.calls >= TRIES):
            entry.reason, entry.last = program.reason or different, None
            self._tell(entry.reason)
        elif different:
            entry.last = program
        else:
            entry.program = program
            entry.guards = Guards(self.function, program, (args, kwargs))
            entry.last, self._used, entry.since = None, entry, self.repeated
        return result

    def _repeat(self, entry: Entry, program: Program, args: Any, kwargs: Any) -> Any:
        runner = entry.runner
        arrays = [t.array for t in _tensors(args, kwargs)]
        if runner is None:
            runner, failed = self._built(entry, program, arrays)
        else:
            runner.feed(arrays)
            try:
                failed = runner.run()
            except NotLowered as error:  # numbers that were part of it have begun to move
                self._settle(entry)
                runner, failed = self._by_kernels(entry, program, arrays, error)
        if failed >= 0:
            return self._failed(entry, program, runner, failed, args, kwargs)
        self.repeated += 1
        self._used = entry
        leave(program, runner, 1)
        if isinstance(runner, Lowered):
            return self._sent(entry, runner, args, kwargs, result_of(program, runner))
        if not kwargs:
            self._take_shortcut(entry, program, runner, args)
        return result_of(program, runner)

    def _take_shortcut(self, entry: Entry, program: Program, runner: Runner, args: Any) -> None:
        """Has the next calls of this form go without Python."""
        missed = self._shortcut_of is entry  # one that does not fit any more
        if isinstance(runner, Tape) and entry.guards is not None:
            if missed or entry.shortcut is None:
                ways = Ways(
                    self._lock.acquire,
                    self._lock.release,
                    lambda args, step: self._failed(
                        entry, program, runner, runner.checks[step], args, {}
                    ),
                    lambda: result_of(program, runner),
                    stance,
                )
                entry.shortcut = shortcut_of(ways, program, entry.guards, runner, args)
            self.take(entry.shortcut)
            self._shortcut_of = entry

    def _failed(
        self,
        entry: Entry,
        program: Program,
        runner: Runner,
        number: int,
        args: Any,
        kwargs: Any,
    ) -> Any:
        """A check came out otherwise than recorded: the error that the function itself raises."""
        entry.runner = entry.shortcut = None
        self.take(None)
        if program.place is not None:  # XLA does not say which check it was
            result = self.function(*args, **kwargs)
            self._forget(entry, "a check of values, whose answer is no error")
            return result
        error = program.instructions[number].error
        if error is not None:
            made = {slot for step in program.instructions[:number] for slot in step.makes()}
            roots = {program.root(slot) for slot in made}
            set_gradients(program, runner, roots)
            raise error()
        if program.grads:
            set_gradients(program, runner)
            for optimizer in program.optimizers:
                optimizer.check_gradients()
        result = self.function(*args, **kwargs)
        self._forget(entry, "a check of values, whose answer is no error")
        return result

    # --- many calls -------------------------------------------------------------------------------

    def epoch(
        self,
        *data: Tensor,
        batch_size: int,
        order: Tensor | None = None,
        schedule: LRScheduler | None = None,
    ) -> Tensor:
        """Calls a step for every whole batch of some samples, in one call of the compiled module.

        Args:
            data: the arguments of the step, each with a first dimension of samples.
            batch_size: samples in a batch; what is left over at the end is not used.
            order: the numbers of the samples in the order in which they are taken.
            schedule: of learning rates, which steps after each call.

        Returns:
            What the step returns, its loss, for each call: a tensor (calls,). Where it returns a
            vector, they are the rows of (calls, n).
        """
        taken = Batches(data, batch_size, order)
        return self._many(len(taken), taken, schedule)

    def repeat(self, times: int, schedule: LRScheduler | None = None) -> Tensor:
        """Calls a step without arguments so many times; what it returns for each call."""
        return self._many(operator.index(times), None, schedule)

    def _many(self, times: int, taken: Batches | None, schedule: LRScheduler | None) -> Tensor:
        if times < 1:
            raise ValueError(f"compile: there is not one whole call to be made (calls: {times})")
        first = 0
        one_by_one = False
        with self._lock:
            losses = self.taken = []
            while first < times:
                entry = self._entry((() if taken is None else taken.like(first), {}))
                alone = None if one_by_one else self._alone(entry, schedule is not None)
                numbers = None
                if alone is not None and (schedule is not None or Numbers.needed(alone[1].updates)):
                    numbers = Numbers(alone[1].updates, times - first, schedule)
                    one_by_one = numbers.tables is None
                if alone is None or one_by_one:
                    loss = self(*(() if taken is None else taken[first]))
                    if schedule is not None:
                        schedule.step()
                    if not isinstance(loss, Tensor) or loss.ndim > 1:
                        raise TypeError(
                            f"compile: {self.__name__} has to return one number, its loss, or a "
                            "vector"
                        )
                    losses.append(loss.detach().reshape(1, -1))
                    first += 1
                else:
                    self._at_once(entry, *alone, times - first, taken, first, numbers)
                    first = sum([len(t) for t in losses])
        if len(losses) == 1:
            (table,) = losses
            return table if table.ndim == 1 else _rows(table)
        return _rows(cat([t if t.ndim == 2 else t.reshape(-1, 1) for t in losses]))

    def _alone(self, entry: Entry, asks: bool) -> tuple[Program, Tape | Lowered] | None:
        """A program that can run many times without a look at Python in between; if that is asked
        for its numbers before, with nothing open."""
        tape = entry.runner
        if isinstance(tape, Lowered) and (asks or Numbers.needed(tape.updates)):
            self._settle(entry)
        program, tape = entry.program, entry.runner
        if program is None or not isinstance(tape, (Tape, Lowered)) or entry.guards is None:
            return None
        if program.without_grads or entry.guards.changed() or tape.marks:
            return None
        ref = program.result
        whole = isinstance(ref, Ref) and K.is_contiguous(tape.value(ref.slot))
        return (program, tape) if whole and len(program.slots[ref.slot].shape) <= 1 else None

    def _at_once(
        self,
        entry: Entry,
        program: Program,
        tape: Tape | Lowered,
        times: int,
        taken: Batches | None,
        first: int,
        numbers: Numbers | None,
    ) -> None:
        """As many calls as come to their end, and one more where a check fails without an error."""
        loss = tape.value(program.result.slot)
        losses = None if program.place else K.zeros((times, loss.size), loss.dtype)
        sources, order = ((), None) if taken is None else taken.rest(first)
        try:
            if isinstance(tape, Lowered):
                size = 0 if taken is None else taken.batch_size
                losses, done, failed = tape.epoch(times, sources, order, size, numbers)
            else:
                done, failed = tape.epoch(times, sources, order, loss, losses, numbers)
        except BaseException as error:
            entry.runner = entry.shortcut = None  # its memory holds the half of a step
            self.take(None)
            error.add_note(place(first + tape.steps_done, first + times))
            raise
        finally:
            if numbers is not None and tape.steps_done < times:
                numbers.put_back(tape.steps_done)
            leave(program, tape, tape.steps_done)
            self.repeated += tape.steps_done
            if losses is not None:
                done = tape.steps_done
                self.taken.append(of_array(losses if done == times else losses[:done]))
        if failed < 0:
            if isinstance(tape, Lowered) and numbers is None:
                self._sent_many(entry, tape, times, taken, first, losses)
            return
        args = () if taken is None else taken[first + done]
        try:
            rest = self._failed(entry, program, tape, failed, args, {})
            if numbers is not None and numbers.schedule is not None:
                numbers.schedule.step()
            self.taken.append(rest.detach().reshape(1, -1))
        except Exception as error:
            error.add_note(place(first + done, first + times))
            raise

    def verify(self, *args: Any, **kwargs: Any) -> str:
        """Compares a call from the record with one that runs as it is, bit for bit.

        Both start from the state as it is, and that of the second stays. Returns a sentence.

        Raises:
            AssertionError: they differ; says in what.
        """
        entry = self._entry((args, kwargs))
        for _ in range(TRIES + 1):
            if entry.runner is None and not entry.reason:
                self(*args, **kwargs)
        if entry.program is None:
            return f"{self.__name__} runs as it is: {entry.reason or 'it has no program yet'}"
        return verified(self, entry.program, args, kwargs)


def _tensors(args: Any, kwargs: Any) -> Any:
    """The tensors among the arguments."""
    if not kwargs and all([a.__class__ is Tensor for a in args]):
        return args
    return tensors_in((args, kwargs))


def _rows(table: Tensor) -> Tensor:
    """The rows of a table; of one column, their numbers."""
    return table.reshape(-1) if table.shape[1] == 1 else table

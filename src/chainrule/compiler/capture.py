"""Recording a step: the step runs as it is, and every call of a kernel is noted.

An array is known by its identity: all arrays of a recording are kept until it ends. An array that
nobody has seen before and that is not an argument lives on between calls (state), or is a constant;
which of the two shows when the tensors that hold it are looked for.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from chainrule.autograd import walk
from chainrule.backend import ARRAYS as HELD, K, precision
from chainrule.backend.effects import WRITES, effect_of
from chainrule.backend.placed import Placed
from chainrule.backend.recorded import (
    Recorded,
    as_array,
    place_of,
    plain,
    recording,
    thread,
)
from chainrule.compiler.drawing import Sources, stream_classes
from chainrule.compiler.guards import tensors_in
from chainrule.compiler.passes import drop_unused, reuse_equal, use_squares
from chainrule.compiler.program import (
    Instruction,
    Program,
    Ref,
    Slot,
    map_arrays,
    refs_in,
)
from chainrule.compiler.updates import Update
from chainrule.graph import Node
from chainrule.nn.module.noting import noting
from chainrule.ops.core.pointwise import is_constant
from chainrule.optim import optimizer
from chainrule.tensor import Tensor, of_array

__all__ = ["Recording"]

ARRAY, ARRAYS = K.Array, (*K.ArrayLike, Placed)
FUNCTION = type(lambda: None)
HERE = Path(__file__).parent.parent  # the library's own sources


def user_line() -> str:
    """The innermost line on the stack that is not the library's own."""
    frame = sys._getframe(1)
    while frame is not None:
        if not _is_own(frame.f_code.co_filename):
            return f"{Path(frame.f_code.co_filename).name} line {frame.f_lineno}"
        frame = frame.f_back  # type: ignore[assignment]
    return "the step"


@functools.cache
def _is_own(filename: str) -> bool:
    path = Path(filename)
    return HERE in path.parents or "contextlib" in path.name


_REASONS = {
    "reads": "it reads numbers of a tensor (by the kernel {kernel}), which a record cannot know; "
    "return the tensor and look at it outside, or use chainrule.where",
    "sized by data": "it makes a tensor whose size depends on values (by the kernel {kernel})",
    "outside": "it calls {kernel}, which is nothing to be repeated",
}
_UNNOTED = ("static", *_REASONS)


class Recording:
    """Notes the calls of one run of a step."""

    def __init__(self, owned: Callable[[], Iterable[Tensor]] = tuple) -> None:
        """``owned`` gives tensors that the step is likely to use."""
        self.program, self._owned = Program(), owned
        self._slots: dict[int, int] = {}  # by the identity of arrays
        self._kept: list[Any] = []  # whose identities these are
        self._made: dict[int, Any] = {}  # what kernels made, by slot
        self._plain: dict[int, Any] = {}  # what the watched arrays stand for
        self._views: dict[Any, int] = {}  # by their place in a slot and their form
        self._inside = False  # a kernel that calls others is one call
        self.reason = ""  # why the step cannot be repeated
        self.passing = False
        self.keeps_values = False  # whether to keep what kernels made, by slot:
        self.values: dict[int, Any] = {}
        self._walked: set[int] = set()  # nodes of graphs that were used
        self._update: Update | None = None  # what the next update of parameters belongs to
        self._sources = Sources()  # of random numbers

    # --- running ----------------------------------------------------------------------------------

    def run(self, function: Callable[[], Any], inputs: Sequence[Tensor]) -> Any:
        """Calls a function of no arguments that computes with the inputs."""
        self._inputs = list(inputs)
        for t in inputs:
            self.program.inputs.append(self._new("input", t.array))
        with (
            recording(self),
            noting(self.program.modules.append),
            _watching(walk.watchers, self._before_walk),
            _watching(optimizer.watchers, self._before_update),
        ):
            try:
                return function()
            except BaseException:
                self._unwatch(tensors_with(self._all_watched()))
                raise

    def call(self, kernel: str, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Computes a call of a kernel on plain arrays, and notes it."""
        noted = not (self._inside or self.reason)
        effect = effect_of(kernel)
        if noted and effect in _REASONS:
            self.refuse(_REASONS[effect].format(kernel=kernel))
        told = self._told(args, kwargs) if noted and effect not in _UNNOTED else None
        self.program.recorded += told is not None
        inside, self._inside = self._inside, True
        try:
            out = function(*self._plainly(args), **self._plainly(kwargs))
        finally:
            self._inside = inside
        return out if told is None else self._note(kernel, function, told, out, effect)

    def refuse(self, reason: str) -> None:
        """Notes why the step cannot be repeated, if that is not known yet."""
        self.reason = self.reason or f"{user_line()}: {reason}"

    def fails_with(self, error: Callable[[], Exception]) -> None:
        """Notes which error follows where the check that was made last fails."""
        steps = self.program.instructions
        if not (self._inside or self.reason) and steps and steps[-1].effect == "checks":
            steps[-1].error = error

    @contextlib.contextmanager
    def again(self, function: Callable[..., Any], args: Any) -> Iterator[None]:
        """Notes a call of Python's; what it comes to is not noted."""
        if not self._inside:
            step = Instruction(function.__qualname__, function, args, {}, None, "python")
            self.program.instructions.append(step)
        inside, self._inside = self._inside, True
        try:
            yield
        finally:
            self._inside = inside

    def _plainly(self, tree: Any) -> Any:
        """Arguments as the kernel itself gets them where nothing is recorded."""
        return map_arrays(_unhanded(tree), Recorded, lambda a: self._plain.get(id(a), plain(a)))

    def _told(self, args: Any, kwargs: Any) -> tuple[Any, Any]:
        """The arguments of a call as an instruction holds them: without arrays."""
        tree = map_arrays(_unhanded((args, kwargs)), ARRAYS, self._ref)
        return map_arrays(tree, stream_classes(), self._sources.of)

    def _note(self, kernel: str, function: Any, told: Any, out: Any, effect: str) -> Any:
        """The results of a call, which the program knows from now on."""
        if effect == "pure" and isinstance(out, HELD):
            known = self._known(out)
            if known is not None:  # an argument, or a view of it
                return self._seen(out, known)
            if kernel == "asarray":  # a number
                return out
        if self.program.place is not None:
            function = precision.held(function)
        step = Instruction(kernel, function, told[0], told[1], None, effect, line=user_line())
        self.program.instructions.append(step)
        if effect == "checks":
            step.answer = out
            return out
        if effect == "writes":
            self._note_written(kernel, told[0])
            if kernel == "write_updates":
                step.update, self._update = self._update, None
            if isinstance(out, HELD) and id(out) in self._slots:
                return out  # the array that was written to, which its tensor goes on to hold
        returned = map_arrays(out, ARRAYS, self._result)
        step.out = map_arrays(returned, ARRAYS, lambda a: Ref(self._slots[id(a)]))
        return returned

    def _note_written(self, kernel: str, args: tuple[Any, ...]) -> None:
        for place in WRITES[kernel]:
            for slot in refs_in(args[place]):
                self.program.slots[self.program.root(slot)].written = True

    def _before_update(self, *facts: Any) -> None:
        if thread.recorder is self:
            self._update = Update(*facts)

    def _before_walk(self, gradients: dict[Any, Any], order: list[Node], tensors: bool) -> None:
        """Has the rules of derivatives compute with arrays that are watched."""
        if thread.recorder is not self:
            return
        self._walked.update([id(node) for node in order])
        self._kept += order
        if tensors:
            return
        for key, g in gradients.items():
            gradients[key] = self._watched(g)
        for node in order:
            if node.saved.__class__ is tuple and node.saved is not walk.FREED:
                node.saved = tuple([None if t is None else self._twin(t) for t in node.saved])
            node.out = map_arrays(node.out, ARRAY, self._watched)

    def _twin(self, t: Tensor) -> Tensor:
        """A saved tensor over an array that is watched."""
        twin = of_array(self._watched(t.array))
        twin._node, twin.needs_grad, twin._store, twin._view = (
            t._node,
            t.needs_grad,
            t._store,
            t._view,
        )
        return twin

    # --- arrays -----------------------------------------------------------------------------------

    def _new(self, kind: str, a: Any, base: int = -1, offset: int = 0) -> int:
        number = len(self.program.slots)
        value = plain(a) if kind == "state" else None
        if kind == "made":
            self._made[number] = a
        form = (a.shape, a.strides, a.dtype)
        slot = Slot(kind, *form, value, base=base, offset=offset)
        if a.__class__ is Placed:
            slot.place = self.program.place = a.place
            slot.taken = a.taken if kind == "view" else None
        self.program.slots.append(slot)
        self._keep(a, number)
        return number

    def _keep(self, a: Any, slot: int) -> None:
        self._slots[id(a)] = slot
        self._kept.append(a)

    def _known(self, a: Any) -> int | None:
        """The slot of an array, or of the view that it is of a known one; None if it is new."""
        number = self._slots.get(id(a))
        if number is None and a.__class__ is Placed:
            return None if a.base is None else self._new("view", a, self._ref(a.base).slot)
        base = a
        while number is None and isinstance(base, ARRAY):
            found = self._slots.get(id(base))
            if found is not None:
                return self._view(a, base, found)
            base = base.base
        return number

    def _view(self, a: Any, base: Any, number: int) -> int:
        """The slot of an array that lies in the memory of a known one."""
        slot = self.program.slots[number]
        offset = place_of(a) - place_of(base)
        if slot.kind == "view":
            number, offset = slot.base, offset + slot.offset
        root = self.program.slots[number]
        form = (a.shape, a.strides, a.dtype)
        if offset == 0 and form == (root.shape, root.strides, root.dtype):
            found = number
        else:
            key = (number, offset, *form)
            found = self._views.get(key, -1)
            if found < 0:
                found = self._views[key] = self._new("view", a, number, offset)
        self._keep(a, found)
        return found

    def _ref(self, a: Any) -> Any:
        """What stands for an array among the arguments of an instruction."""
        if not isinstance(a, HELD):
            return a  # a number of NumPy's
        known = self._known(a)
        return Ref(self._new("state", a) if known is None else known)

    def _result(self, a: Any) -> Any:
        """What a kernel returned, as an array that is watched."""
        array = a if isinstance(a, HELD) else as_array(a)
        known = self._known(array)
        return self._seen(array, self._new("made", array) if known is None else known)

    def _seen(self, a: Any, slot: int) -> Any:
        if isinstance(a, Recorded) or a.__class__ is Placed:
            watched = a
        else:
            watched = a.view(Recorded)
            self._plain[id(watched)] = a
        self._keep(watched, slot)
        return watched

    def _watched(self, a: Any) -> Any:
        """An array that a rule computes with, as one whose arithmetic is seen."""
        return self._seen(a, self._ref(a).slot) if a.__class__ is ARRAY else a

    # --- the end ----------------------------------------------------------------------------------

    def finish(self, result: Any) -> Program:
        """The program, when the step has returned; what it left behind holds plain arrays again."""
        program = self.program
        program.result = map_arrays(result, Tensor, self._returned)
        for t in self._inputs:
            self._note_gradient(t)
        holders = self._holders()
        for slot in program.slots:
            if slot.kind != "state":
                continue
            tensors = holders.get(id(slot.value), [])
            slot.holders = [weakref.ref(t) for t in tensors]
            if not tensors:
                slot.kind = "constant"
                if slot.written:
                    self.refuse("it writes into an array that no tensor holds")
            elif slot.written:
                program.written += tensors
            for t in tensors:
                self._note_gradient(t)
        for t in [*tensors_in(result), *self._inputs, *[leaf for leaf, _ in program.grads]]:
            self._show_plainly(t)
            self._show_plainly(t._grad)
        for tensors in holders.values():
            for t in tensors:
                self._show_plainly(t)
        if any([s.kind == "input" and s.written for s in program.slots]):
            self.refuse("it changes an argument in place")
        if any([min(s.strides, default=0) < 0 for s in program.slots]):
            self.refuse("it steps through memory backwards")
        if self.keeps_values:
            self.values = {number: K.copy(plain(a)) for number, a in self._made.items()}
        self._fold()
        use_squares(program)
        reuse_equal(program)
        drop_unused(program)
        program.check_early()
        program.reason = self.reason
        self._let_go()
        return program

    def _holders(self) -> dict[int, list[Tensor]]:
        """The tensors that hold the arrays that live on, by the identity of the array.

        Those of the optimizers and of what the step names come first: a search among all objects
        of the program takes longer than everything else.
        """
        arrays = {id(s.value): s.value for s in self.program.slots if s.kind == "state"}
        found: dict[int, list[Tensor]] = {}
        updates = [step.update for step in self.program.instructions if step.update is not None]
        states = [t for u in updates for held in u.held for t in held.values()]
        params = [p for u in updates for p in (*u.params, *u.own_rates())]
        for t in {id(t): t for t in [*params, *states, *self._owned()]}.values():
            for candidate in (t, t._grad) if isinstance(t, Tensor) else ():
                if isinstance(candidate, Tensor) and id(candidate.array) in arrays:
                    found.setdefault(id(candidate.array), []).append(candidate)
        left = [a for key, a in arrays.items() if key not in found and not is_constant(a)]
        return found | tensors_with(left)

    def _show_plainly(self, t: Tensor | None) -> None:
        if isinstance(t, Tensor) and isinstance(t.array, Recorded):
            t.array = self._plainly(t.array)

    def _let_go(self) -> None:
        """Forgets all arrays; the watched ones that are still there have holders of their own."""
        watched = [weakref.ref(a) for a in self._all_watched()]
        self._kept, self._made, self._inputs = [], {}, []
        there = [a for ref in watched if (a := ref()) is not None]
        for tensors in tensors_with(there).values():
            for t in tensors:
                self._show_plainly(t)

    def _all_watched(self) -> list[Recorded]:
        return [a for a in self._kept if isinstance(a, Recorded)]

    def _unwatch(self, holders: dict[int, list[Tensor]]) -> None:
        """Tensors that live on hold plain arrays again."""
        for a in self._all_watched():
            for t in holders.get(id(a), ()):
                t.array = self._plainly(t.array)

    def _fold(self) -> None:
        """What is made of nothing that changes, and never changed, becomes a constant."""
        program, left = self.program, []
        for step in program.instructions:
            slots = list(step.makes())
            whole = step.effect == "pure" and len(slots) == 1
            kinds = {program.slots[program.root(s)].kind for s in step.reads()}
            if whole and kinds <= {"constant"} and _is_lasting(program, slots[0]):
                slot = program.slots[slots[0]]
                slot.kind, slot.value = "constant", self._made[slots[0]]
                program.folded += 1
            else:
                left.append(step)
        program.instructions = left

    def _returned(self, t: Tensor) -> Ref:
        ref = self._ref(t.array)
        if t._node is not None and id(t._node) not in self._walked:
            self.refuse(
                "it returns a tensor that a gradient can still be asked of; call backward() inside "
                "it, or call it under chainrule.no_grad()"
            )
        elif t._node is not None:
            t._node, t.needs_grad = None, False
        return ref

    def _note_gradient(self, leaf: Tensor) -> None:
        """A gradient that the step made; one that it added to is state, changed in place."""
        g = leaf._grad
        known = self._known(g.array) if isinstance(g, Tensor) else None
        if known is not None and self.program.slots[self.program.root(known)].kind == "made":
            self.program.grads.append((leaf, known))


def _is_lasting(program: Program, number: int) -> bool:
    """Whether a value is made by its kernel, never written to and not handed out."""
    slot = program.slots[number]
    out = [*refs_in(program.result), *[s for _, s in program.grads]]
    roots = [program.root(s) for s in out]
    return slot.kind == "made" and not slot.written and number not in roots


@contextlib.contextmanager
def _watching(watchers: list[Any], watcher: Any) -> Iterator[None]:
    watchers.append(watcher)
    try:
        yield
    finally:
        watchers.remove(watcher)


def tensors_with(arrays: Sequence[Any]) -> dict[int, list[Tensor]]:
    """The tensors there are that hold an array, by the identity of the array."""
    found: dict[int, list[Tensor]] = {}
    wanted = {id(a) for a in arrays}
    for t in gc.get_referrers(*arrays) if arrays else ():
        if isinstance(t, Tensor) and id(t.array) in wanted:
            found.setdefault(id(t.array), []).append(t)
    return found


def _unhanded(tree: Any) -> Any:
    """Arguments with the kernels themselves in the place of those that are recorded."""
    return map_arrays(tree, FUNCTION, lambda f: getattr(f, "recorded", f))

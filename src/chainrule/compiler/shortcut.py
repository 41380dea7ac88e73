"""What the compiled module has to know to repeat calls without any Python.

A *shortcut* (native/shortcut.cpp) belongs to one program: it looks whether the arguments have the
form that was recorded and whether all objects that the program depends on are the same ones, feeds
the tape, runs it and writes back what a call leaves behind. Whatever it does not know it leaves to
:meth:`Compiled._call`, which makes a new shortcut afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from chainrule import backend
from chainrule.backend import dtypes, native_module, recorded
from chainrule.compiler.guards import Guards
from chainrule.compiler.program import Program, Ref
from chainrule.compiler.updates import Update
from chainrule.compiler.tape import Tape
from chainrule.graph import Storage, mode, next_seq
from chainrule.nn.module.hooks import changes
from chainrule.ops.core.apply import INFERENCE
from chainrule.ops.core.inplace import touch_all
from chainrule.tensor import Tensor, of_array

__all__ = ["Ways", "shortcut_of"]


@dataclass
class Ways:
    """What a shortcut asks of Python, and the lock of its function."""

    acquire: Callable[[], Any]
    release: Callable[[], Any]
    failed: Callable[[Any, int], Any]  # a check came out otherwise; the arguments and its step
    finish: Callable[[], Any]  # what the function returns
    stance: Any


@dataclass
class _Spec:
    """What the constructor of the native class reads, by name."""

    tape: Any
    acquire: Any
    release: Any
    recheck: Any
    failed: Any
    finish: Any
    stance: Any
    flags: Any
    inputs: tuple[Any, ...]
    cells: tuple[Any, ...]
    entries: tuple[Any, ...]
    dicts: tuple[Any, ...]
    lists: tuple[Any, ...]
    states: tuple[Any, ...]
    without: tuple[Any, ...]
    updates: tuple[Any, ...]
    draws: tuple[Any, ...]
    gradients: tuple[Any, ...]
    written: tuple[Any, ...]
    optimizers: tuple[Any, ...]
    result: Any
    tensor: Any = Tensor
    storage: Any = Storage
    inference: Any = INFERENCE
    mode: Any = mode
    stance_name: str = "default"
    changes: Any = changes
    next_seq: Any = next_seq
    touch: Any = field(default=lambda t: touch_all([t]))


def shortcut_of(
    ways: Ways, program: Program, guards: Guards, tape: Tape, arguments: tuple[Any, ...]
) -> Any:
    """A shortcut for calls with arguments of this form; None if Python is needed in each."""
    plain = [t.__class__ is Tensor and t.array.flags.c_contiguous for t in arguments]
    if not all(plain) or len(arguments) != len(program.inputs) or not tape.runs_alone():
        return None
    gradients = [(leaf, _gradient(leaf, tape.value(slot))) for leaf, slot in program.grads]
    spec = _Spec(
        tape=tape.tape,
        acquire=ways.acquire,
        release=ways.release,
        recheck=lambda: recorded.thread.recorder is None and not guards.changed(),
        failed=ways.failed,
        finish=ways.finish,
        stance=ways.stance,
        flags=guards.flags[0],
        inputs=tuple(
            [(tape.value(i), t.needs_grad) for i, t in zip(program.inputs, arguments, strict=True)]
        ),
        cells=tuple(guards.names.closure),
        entries=(
            *[(guards.names.globals, name) for name in guards.names.used],
            (vars(backend), "_current"),
            (vars(dtypes), "_default"),
            (vars(recorded), "under_way"),
            *[(vars(o), name) for o in program.optimizers for name in ("state", "param_groups")],
        ),
        dicts=(
            *guards.names.dicts(),
            *[o.state for o in program.optimizers],
            *[c for c in guards.containers if isinstance(c, dict)],
        ),
        lists=(
            *[o.param_groups for o in program.optimizers],
            *[c for c in guards.containers if isinstance(c, list)],
        ),
        states=tuple(guards.state),
        without=tuple(guards.without_grads),
        updates=tuple([_update(tape, number, u) for number, u in tape.updates]),
        draws=tuple(tape.generators),
        gradients=tuple(gradients),
        written=(*program.written, *[grad for _, grad in gradients]),
        optimizers=tuple(program.optimizers),
        result=_result(program, tape),
    )
    return native_module().Shortcut(spec)  # type: ignore[union-attr]


def _gradient(leaf: Tensor, array: Any) -> Tensor:
    """The tensor with this memory of the program: that which the leaf has, if it has one."""
    held = leaf._grad
    return held if held is not None and held.array is array else of_array(array)


def _update(tape: Tape, number: int, u: Update) -> tuple[Any, ...]:
    counted = u.held if u.optimizer.keeps_step else None
    return number, lambda: u.prepare(tape.tape, number), u.group, counted


def _result(program: Program, tape: Tape) -> Any:
    """The array whose copy is returned; None if the result is anything but one new tensor."""
    ref = program.result
    if not isinstance(ref, Ref) or program.slots[program.root(ref.slot)].kind != "made":
        return None
    array = tape.value(ref.slot)
    return array if array.flags.c_contiguous and not program.slots[ref.slot].holders else None

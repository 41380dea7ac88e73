"""``chainrule.compile``, and the names of ``torch.compiler``.

A step is recorded as the calls of kernels that it comes to (``capture.py``: a ``Program``), checked
by a second record, and repeated from memory of its own (``tape.py``; ``reference.py`` in plain
Python) as long as nothing that it depends on has changed (``guards.py``).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Self, TypeVar

from chainrule.absent import absent
from chainrule.backend.recorded import cannot_repeat, thread
from chainrule.compiler.compiled import Compiled, NotRepeatable, stance
from chainrule.compiler.making import compile
from chainrule.compiler.program import Program

__all__ = [
    "Compiled",
    "NotRepeatable",
    "Program",
    "allow_in_graph",
    "assume_constant_result",
    "compile",
    "cudagraph_mark_step_begin",
    "disable",
    "is_compiling",
    "is_dynamo_compiling",
    "is_exporting",
    "list_backends",
    "reset",
    "set_stance",
]

F = TypeVar("F", bound=Callable[..., Any])


def disable(
    fn: Any = None, recursive: bool = True, *, reason: str | None = None, wrapping: bool = True
) -> Any:
    """Keeps a function, and whatever calls it, from being repeated from a record."""
    if fn is None:
        return functools.partial(disable, recursive=recursive, reason=reason, wrapping=wrapping)

    @functools.wraps(fn)
    def disabled(*args: Any, **kwargs: Any) -> Any:
        cannot_repeat(reason or "it calls a function that compiler.disable keeps from it")
        return fn(*args, **kwargs)

    return disabled


def allow_in_graph(fn: F) -> F:
    """Lets a function be part of a compiled one: the function itself, as all may be."""
    return fn


def assume_constant_result(fn: F) -> F:
    """Promises that a function always returns the same: the function itself."""
    return fn


def is_compiling() -> bool:
    """Whether a function is being recorded."""
    return thread.recorder is not None


def is_dynamo_compiling() -> bool:
    """Whether a function is being recorded."""
    return is_compiling()


def is_exporting() -> bool:
    """Whether a program is being exported: never."""
    return False


def list_backends(exclude_tags: tuple[str, ...] = ("debug", "experimental")) -> list[str]:
    """What runs a record."""
    return ["reference", "tape"]


def reset() -> None:
    """Forgets all records; they are made anew."""
    for compiled in list(stance.known):
        compiled.forget()


def cudagraph_mark_step_begin() -> None:
    """Marks the beginning of a step that a GPU repeats: nothing to mark."""


class set_stance:
    """How compiled functions run from now on, or in a block, or in a decorated function.

    "default", or "force_eager" for functions as they are.
    """

    def __init__(self, stance: str = "default", **options: Any):
        if stance not in ("default", "force_eager") or options:
            raise ValueError(
                f"set_stance: expected 'default' or 'force_eager', got {stance!r} {options or ''}"
            )
        self.stance, self.before = stance, _set_stance(stance)

    def __enter__(self) -> Self:
        _set_stance(self.stance)
        return self

    def __exit__(self, *error: object) -> None:
        _set_stance(self.before)

    def __call__(self, fn: F) -> F:
        _set_stance(self.before)

        @functools.wraps(fn)
        def within(*args: Any, **kwargs: Any) -> Any:
            with set_stance(self.stance):
                return fn(*args, **kwargs)

        return within  # type: ignore[return-value]


def _set_stance(name: str) -> str:
    before, stance.name = stance.name, name
    return before


ABSENT = dict.fromkeys(
    (
        "config",
        "get_default_backend",
        "keep_portable_guards_unsafe",
        "keep_tensor_guards_unsafe",
        "load_cache_artifacts",
        "load_compiled_function",
        "nested_compile_region",
        "save_cache_artifacts",
        "set_default_backend",
        "set_enable_guard_collectives",
        "skip_all_guards_unsafe",
        "skip_guard_on_all_nn_modules_unsafe",
        "skip_guard_on_globals_unsafe",
        "skip_guard_on_inbuilt_nn_modules_unsafe",
        "substitute_in_graph",
        "wrap_numpy",
    ),
    "chainrule.compile records functions and has no such setting; leave this out",
)


def __getattr__(name: str) -> Any:
    raise absent(__name__, name, ABSENT)

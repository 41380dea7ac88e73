"""``torch.compile`` and its module: functions pass through as they are.

There is no compiler here that would make a function faster; what there is to gain on a CPU lies in
the kernels, which compute every operation anyway.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from chainrule.absent import absent, warn_once

__all__ = [
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
PASSED = (
    "compile: functions and modules are returned as they are: chainrule has no compiler, its "
    "operations run in compiled kernels anyway"
)


def compile(model: Any = None, **options: Any) -> Any:
    """The function or module as it is; said once, as a warning.

    Without a function, as in ``@chainrule.compile(mode="max-autotune")``, a decorator that does so.
    The options are PyTorch's: ``fullgraph``, ``dynamic``, ``backend``, ``mode``, ``options`` and
    ``disable``.
    """
    known = {"backend", "disable", "dynamic", "fullgraph", "mode", "options"}
    unknown = sorted(set(options) - known)
    if unknown:
        raise TypeError(f"compile() got an unexpected keyword argument {unknown[0]!r}")
    if not options.get("disable"):
        warn_once(PASSED)
    return _same if model is None else model


def _same(function: F) -> F:
    return function


def disable(
    fn: Any = None, recursive: bool = True, *, reason: str | None = None, wrapping: bool = True
) -> Any:
    """Keeps a function from being compiled: the function itself, or a decorator."""
    return _same if fn is None else fn


def allow_in_graph(fn: F) -> F:
    """Lets a function be part of a compiled one: the function itself."""
    return fn


def assume_constant_result(fn: F) -> F:
    """Promises that a function always returns the same: the function itself."""
    return fn


def is_compiling() -> bool:
    """Whether a function is being compiled: never."""
    return False


def is_dynamo_compiling() -> bool:
    """Whether a function is being compiled: never."""
    return False


def is_exporting() -> bool:
    """Whether a program is being exported: never."""
    return False


def list_backends(exclude_tags: tuple[str, ...] = ("debug", "experimental")) -> list[str]:
    """The compilers there are: none."""
    return []


def reset() -> None:
    """Forgets what was compiled: nothing."""


def cudagraph_mark_step_begin() -> None:
    """Marks the beginning of a step that a GPU repeats: nothing to mark."""


class set_stance:
    """How to compile from now on, or in a block, or in a decorated function: not at all."""

    def __init__(self, stance: str = "default", **options: Any):
        self.stance = stance

    def __enter__(self) -> None:
        return None

    def __exit__(self, *error: object) -> None:
        return None

    def __call__(self, fn: F) -> F:
        return fn


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
    "chainrule has no compiler; leave this out",
)


def __getattr__(name: str) -> Any:
    raise absent(__name__, name, ABSENT)

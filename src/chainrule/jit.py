"""PyTorch's ``torch.jit``: functions and modules pass through as they are.

TorchScript is a second language that a program is translated to. Here the program is what runs:
``script`` and ``trace`` return what they are given and say so once; marks such as ``ignore`` and
``export`` mark nothing. Files of TorchScript can be neither read nor written.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, Final, Generic, NamedTuple, TypeVar

from chainrule.absent import Refused, absent, refused, warn_once
from chainrule.nn import Module

__all__ = [
    "Attribute",
    "CompilationUnit",
    "Error",
    "Final",
    "Future",
    "ScriptFunction",
    "ScriptModule",
    "annotate",
    "enable_onednn_fusion",
    "export",
    "fork",
    "freeze",
    "fuser",
    "ignore",
    "interface",
    "is_scripting",
    "is_tracing",
    "load",
    "onednn_fusion_enabled",
    "optimize_for_inference",
    "optimized_execution",
    "save",
    "script",
    "script_if_tracing",
    "script_method",
    "strict_fusion",
    "trace",
    "trace_module",
    "unused",
    "wait",
]

T = TypeVar("T")
PASSED = (
    "jit: functions and modules are returned as they are: chainrule has no TorchScript, the Python "
    "program is what runs"
)
NO_FILES = (
    "there is no TorchScript here; chainrule.save(model, path) and chainrule.load(path) keep whole "
    "models, state_dict() their weights"
)

# --- what would be translated ---------------------------------------------------------------------


def script(obj: T, *args: Any, **kwargs: Any) -> T:
    """The function, module or class as it is; said once, as a warning."""
    warn_once(PASSED)
    return obj


def trace(func: T, example_inputs: Any = None, *args: Any, **kwargs: Any) -> T:
    """The function or module as it is; said once, as a warning."""
    warn_once(PASSED)
    return func


def trace_module(mod: T, inputs: dict[str, Any], *args: Any, **kwargs: Any) -> T:
    """The module as it is; said once, as a warning."""
    warn_once(PASSED)
    return mod


def freeze(mod: T, *args: Any, **kwargs: Any) -> T:
    """A module in evaluation mode as it is."""
    if getattr(mod, "training", False):
        raise RuntimeError(
            "jit.freeze: Freezing is currently only implemented for modules in eval mode; call "
            ".eval() first"
        )
    return mod


def optimize_for_inference(mod: T, *args: Any, **kwargs: Any) -> T:
    """The module as it is."""
    return mod


class ScriptModule(Module):
    """The base of modules written for TorchScript: an ordinary Module."""


class ScriptFunction(Refused):
    """A function in TorchScript; there are none."""

    reason = PASSED.partition(": ")[2]


class CompilationUnit(Refused):
    """Functions in TorchScript; there are none."""

    reason = PASSED.partition(": ")[2]


class Error(RuntimeError):
    """What a program in TorchScript raises; nothing raises it here."""


load = refused("jit.load", NO_FILES)
save = refused("jit.save", NO_FILES)

# --- marks ----------------------------------------------------------------------------------------


def export(fn: T) -> T:
    """Marks a method to be translated: the method."""
    return fn


def script_method(fn: T) -> T:
    """Marks a method to be translated: the method."""
    return fn


def script_if_tracing(fn: T) -> T:
    """Marks a function to be translated while one that calls it is traced: the function."""
    return fn


def unused(fn: T) -> T:
    """Marks a method that is not to be translated: the method."""
    return fn


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """Marks a function that is not to be translated, with or without arguments: the function."""
    return drop if callable(drop) else unused


def interface(obj: T) -> T:
    """Marks a class as an interface: the class."""
    return obj


class Attribute(NamedTuple):
    """A value and its type in TorchScript."""

    value: Any
    type: Any


def annotate(the_type: object, the_value: T) -> T:
    """A value that is of a type in TorchScript: the value."""
    return the_value


def is_scripting() -> bool:
    """Whether this is TorchScript: never."""
    return False


def is_tracing() -> bool:
    """Whether a function is being traced: never."""
    return False


# --- at the same time -----------------------------------------------------------------------------


class Future(Generic[T]):
    """A result that :func:`fork` promised: it is there already."""

    def __init__(self, value: T):
        self._value = value

    def done(self) -> bool:
        """Whether the result is there: it is."""
        return True

    def wait(self) -> T:
        """The result."""
        return self._value

    def value(self) -> T:
        """The result."""
        return self._value

    def then(self, callback: Callable[[Future[T]], Any]) -> Future[Any]:
        """The result of a function of this one."""
        return Future(callback(self))


def fork(func: Callable[..., T], *args: Any, **kwargs: Any) -> Future[T]:
    """Computes a function, at once; :func:`wait` returns the result.

    >>> import chainrule as torch
    >>> torch.jit.wait(torch.jit.fork(torch.add, torch.ones(2), 1))
    tensor([2., 2.])
    """
    return Future(func(*args, **kwargs))


def wait(future: Future[T]) -> T:
    """The result that :func:`fork` promised."""
    return future.wait()


# --- how it would be compiled ---------------------------------------------------------------------


@contextlib.contextmanager
def fuser(name: str) -> Iterator[None]:
    """A block compiled in this way: it is not compiled."""
    yield


@contextlib.contextmanager
def optimized_execution(should_optimize: bool) -> Iterator[None]:
    """A block that is compiled, or not: it is not."""
    yield


@contextlib.contextmanager
def strict_fusion() -> Iterator[None]:
    """A block that has to be compiled as one: it is not compiled."""
    yield


def enable_onednn_fusion(enabled: bool) -> None:
    """Whether operations are joined for one of Intel's libraries: never."""


def onednn_fusion_enabled() -> bool:
    """Whether operations are joined for one of Intel's libraries: never."""
    return False


ABSENT = dict.fromkeys(
    ("export_opnames", "isinstance", "set_fusion_strategy"),
    "chainrule has no TorchScript, the Python program is what runs; leave this out",
)


def __getattr__(name: str) -> Any:
    raise absent(__name__, name, ABSENT)

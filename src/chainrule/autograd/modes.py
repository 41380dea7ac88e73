"""Whether operations are recorded: per thread, as context managers and decorators."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self, TypeVar, cast

from chainrule.graph import Mode, mode

__all__ = [
    "enable_grad",
    "inference_mode",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "no_grad",
    "set_grad_enabled",
]


F = TypeVar("F", bound=Callable[..., Any])


class _Flags:
    """Sets flags of this thread's mode inside a ``with`` block or a decorated function."""

    on = 0
    off = 0

    def __init__(self) -> None:
        self._before: list[int] = []

    def __enter__(self) -> Self:
        self._before.append(mode.flags)
        mode.flags = (mode.flags | self.on) & ~self.off
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        mode.flags = self._before.pop()

    def __call__(self, function: F) -> F:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with self.__class__.__new__(self.__class__)._like(self):
                return function(*args, **kwargs)

        return cast("F", wrapped)

    def _like(self, other: _Flags) -> _Flags:
        self._before = []
        self.on, self.off = other.on, other.off
        return self


class no_grad(_Flags):
    """Nothing computed inside is recorded.

    >>> import chainrule
    >>> w = chainrule.ones(2, requires_grad=True)
    >>> with chainrule.no_grad():
    ...     (w * 2).requires_grad
    False
    """

    off = Mode.GRAD


class enable_grad(_Flags):
    """Records again inside a :class:`no_grad` block.

    >>> import chainrule
    >>> w = chainrule.ones(2, requires_grad=True)
    >>> with chainrule.no_grad():
    ...     with chainrule.enable_grad():
    ...         (w * 2).requires_grad
    True
    """

    on = Mode.GRAD


class set_grad_enabled(_Flags):
    """Records or not, by a flag; acts at once, and as a context manager until its end.

    >>> import chainrule
    >>> w = chainrule.ones(2, requires_grad=True)
    >>> for training in (True, False):
    ...     with chainrule.set_grad_enabled(training):
    ...         (w * 2).requires_grad
    True
    False
    """

    def __init__(self, mode_: bool):
        super().__init__()
        if mode_:
            self.on = Mode.GRAD
        else:
            self.off = Mode.GRAD
        self._at_once = mode.flags
        mode.flags = (mode.flags | self.on) & ~self.off

    def __enter__(self) -> Self:
        mode.flags = self._at_once
        return super().__enter__()

    def __call__(self, function: F) -> F:
        mode.flags = self._at_once
        return super().__call__(function)


class inference_mode(_Flags):
    """Like :class:`no_grad`; moreover what is computed inside can never be part of a graph.

    >>> import chainrule
    >>> w = chainrule.ones(2, requires_grad=True)
    >>> with chainrule.inference_mode():
    ...     y = w * 2
    >>> y.requires_grad
    False
    """

    def __init__(self, mode: bool = True):
        super().__init__()
        if mode:
            self.on, self.off = Mode.INFERENCE, Mode.GRAD


def is_grad_enabled() -> bool:
    """Whether operations are recorded in this thread now."""
    return bool(mode.flags & Mode.GRAD)


def is_inference_mode_enabled() -> bool:
    """Whether :class:`inference_mode` is on in this thread now."""
    return bool(mode.flags & Mode.INFERENCE)

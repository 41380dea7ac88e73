"""What PyTorch has and this library has not: said in a sentence, never by a bare error.

A name that programs import at their top and use only where there is a GPU, or several processes, is
there to be imported, named in annotations and asked for with ``isinstance``; it refuses when it is
called. What is rarer is absent, and the error for it says why and what to do instead.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NoReturn

__all__ = ["Refused", "absent", "refused", "warn_once"]

_told: set[str] = set()


class Refused:
    """A class of which there can be no objects here; ``reason`` says why.

    >>> class Stream(Refused):
    ...     reason = "there is no GPU"
    >>> isinstance(3, Stream)
    False
    >>> Stream()
    Traceback (most recent call last):
    RuntimeError: Stream: there is no GPU
    """

    reason: ClassVar[str]

    def __new__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError(f"{cls.__name__}: {cls.reason}")


def refused(
    name: str, reason: str, error: type[Exception] = RuntimeError
) -> Callable[..., NoReturn]:
    """A function that refuses when it is called, with PyTorch's exception where it has one.

    >>> refused("load", "there is no network")("resnet18")
    Traceback (most recent call last):
    RuntimeError: load: there is no network
    """

    def refuse(*args: Any, **kwargs: Any) -> NoReturn:
        raise error(f"{name}: {reason}")

    refuse.__name__ = refuse.__qualname__ = name.rpartition(".")[2]
    refuse.__doc__ = f"Refuses: {reason}."
    return refuse


def absent(module: str, name: str, reasons: Mapping[str, str]) -> AttributeError:
    """The error for a name that a module lacks, with the reason if one is known.

    >>> absent("chainrule", "mps", {"mps": "there is no GPU"})
    AttributeError("module 'chainrule' has no attribute 'mps': there is no GPU")
    """
    reason = f": {reasons[name]}" if name in reasons else ""
    return AttributeError(f"module {module!r} has no attribute {name!r}{reason}")


def warn_once(message: str, stacklevel: int = 2) -> None:
    """Warns the first time; ``stacklevel`` counts from the caller, as in ``warnings.warn``."""
    if message not in _told:
        _told.add(message)
        warnings.warn(message, stacklevel=stacklevel + 1)

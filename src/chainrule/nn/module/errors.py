"""Where in a network an error came from: a note on the exception that names the layer."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from chainrule.tensor import Tensor

if TYPE_CHECKING:
    from chainrule.nn.module.base import Module

__all__ = ["tell_where"]

PLACE = "__chainrule_place__"  # on the exception: the innermost module, what it got, the note
LONGEST = 100  # letters of a layer, and of what it was called with


class _Place:
    """The innermost module that an error came through, and what is said of it so far."""

    def __init__(self, module: Module, args: tuple[Any, ...], kwargs: dict[str, Any]):
        self.module = module
        self.given = _shapes(args, kwargs)
        self.note: str | None = None

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        """An error that goes to another process takes the note along, not the network."""
        return str, (self.note or "",)


def tell_where(
    error: Exception, module: Module, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """Notes on an error that leaves a module's call from which layer it came.

    Each module on its way out knows a longer path to the innermost one, and writes the note anew;
    the outermost has the last word. Type and message of the error stay as they are, and whatever
    goes wrong here (a ``repr`` that fails) leaves the error alone.
    """
    if isinstance(error, RecursionError):
        return  # there is no room for more calls
    with contextlib.suppress(Exception):
        place = error.__dict__.get(PLACE)
        if not isinstance(place, _Place):
            place = error.__dict__[PLACE] = _Place(module, args, kwargs)
        said = _said(place, module)
        if said is None:
            return
        notes = getattr(error, "__notes__", [])
        if place.note in notes:
            notes[notes.index(place.note)] = said
        else:
            error.add_note(said)
        place.note = said


def _said(place: _Place, module: Module) -> str | None:
    """The note, None where the module has nothing to add: a layer by itself needs no path."""
    hint = "chainrule.inspect.summary(model, inputs) shows the shapes up to it"
    if place.module is module:
        if not module._modules:
            return None
        return f"in the forward of {type(module).__name__}, called with {place.given}; {hint}"
    path = next((p for p, m in module.named_modules() if m is place.module), None)
    if path is None:
        return None
    layer, model = _described(place.module), type(module).__name__
    return f"in layer '{path}' ({layer}) of {model}, called with {place.given}; {hint}"


def _described(module: Module) -> str:
    """A layer as it prints itself, a module made of others by its class."""
    text = type(module).__name__ if module._modules else " ".join(repr(module).split())
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def _shapes(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    parts = [_shape(a) for a in args] + [f"{k}={_shape(v)}" for k, v in kwargs.items()]
    text = ", ".join(parts) or "nothing"
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def _shape(value: Any) -> str:
    if isinstance(value, Tensor):
        return str(tuple(value.shape))
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{k}: {_shape(v)}' for k, v in value.items())}}}"
    if isinstance(value, (tuple, list)):
        return f"[{', '.join(map(_shape, value))}]"
    return (
        value if isinstance(value, str) else type(value).__name__ if value is not None else "None"
    )

"""Tensors in place of a module's own, for one thread and a while.

A module keeps its tensors in two dictionaries. While a thread sees others there, an
:class:`Overlay` stands in for the dictionary: that thread finds what it replaced, all others find
what the module holds. The last thread that ends puts the dictionary back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableMapping
from contextlib import contextmanager
from threading import Lock, get_ident
from typing import Any, NamedTuple

__all__ = ["Overlay", "Place", "replaced"]

_ABSENT: Any = object()
_lock = Lock()


class Place(NamedTuple):
    """Where a tensor is held: in a dictionary of its owner, or as a plain attribute (``""``)."""

    owner: Any
    holder: str
    key: str

    def get(self) -> Any:
        """What this thread finds there."""
        return self.dictionary()[self.key]

    def dictionary(self) -> Any:
        """The dictionary, or what stands in for it."""
        attributes = self.owner.__dict__
        return attributes[self.holder] if self.holder else attributes


class Overlay(MutableMapping[str, Any]):
    """A dictionary in which some threads see other values. A key that a thread sees another value
    of is written, and deleted, for that thread alone."""

    def __init__(self, held: dict[str, Any]):
        self.held = held
        self.views: dict[int, dict[str, Any]] = {}  # by thread

    def __getitem__(self, key: str) -> Any:
        view = self.views.get(get_ident())
        if view is None or key not in view:
            return self.held[key]
        value = view[key]
        if value is _ABSENT:
            raise KeyError(key)
        return value

    def __contains__(self, key: Any) -> bool:
        view = self.views.get(get_ident())
        return key in self.held and (view is None or view.get(key) is not _ABSENT)

    def __setitem__(self, key: str, value: Any) -> None:
        view = self.views.get(get_ident())
        (self.held if view is None or key not in view else view)[key] = value

    def __delitem__(self, key: str) -> None:
        view = self.views.get(get_ident())
        if view is None or key not in view:
            del self.held[key]
        else:
            view[key] = _ABSENT

    def __iter__(self) -> Iterator[str]:
        return iter([key for key in self.held if key in self])

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __repr__(self) -> str:
        return repr(dict(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self),)  # a copy of a module has dictionaries

    def replace(self, key: str, value: Any) -> Any:
        """Has this thread see another value; returns what it saw, for :meth:`restore`."""
        view = self.views.setdefault(get_ident(), {})
        before = (view[key],) if key in view else ()
        view[key] = value
        return before

    def restore(self, key: str, before: Any) -> bool:
        """Undoes :meth:`replace`; True if no thread sees anything else than what is held."""
        me = get_ident()
        view = self.views.get(me, {})
        if before:
            view[key] = before[0]
        else:
            view.pop(key, None)
        if not view:
            self.views.pop(me, None)
        return not self.views


@contextmanager
def replaced(values: Iterable[tuple[Place, Any]]) -> Iterator[None]:
    """Inside, this thread finds other values in these places; plain attributes, which no
    dictionary of a module holds, are changed for all threads."""
    undo: list[tuple[Place, Any, Any]] = []
    try:
        with _lock:
            for place, value in values:
                undo.append(_put(place, value))
        yield
    finally:
        with _lock:
            for place, overlay, before in reversed(undo):
                _put_back(place, overlay, before)


def _put(place: Place, value: Any) -> tuple[Place, Any, Any]:
    held = place.dictionary()
    if not place.holder:
        before, held[place.key] = held[place.key], value
        return place, None, before
    if not isinstance(held, Overlay):
        held = place.owner.__dict__[place.holder] = Overlay(held)
    return place, held, held.replace(place.key, value)


def _put_back(place: Place, overlay: Overlay | None, before: Any) -> None:
    if overlay is None:
        place.owner.__dict__[place.key] = before
    elif overlay.restore(place.key, before) and place.dictionary() is overlay:
        place.owner.__dict__[place.holder] = overlay.held

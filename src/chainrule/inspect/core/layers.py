"""Choosing a layer: by its name, or the one that is usually meant."""

from __future__ import annotations

import difflib
import fnmatch
from collections.abc import Iterable

from chainrule.inspect.core.tracing import Call, Trace

__all__ = ["find_layer", "matching", "no_such_layer"]


def no_such_layer(instrument: str, pattern: str, names: Iterable[str]) -> ValueError:
    """The error for a name that matches nothing, with the names that are near it."""
    known = list(dict.fromkeys(names))
    near = difflib.get_close_matches(pattern, known, 3, 0.5)
    listed = ", ".join(map(repr, known[:12])) + (", ..." if len(known) > 12 else "")
    hint = f"; did you mean {', '.join(map(repr, near))}? There" if near else "; there"
    return ValueError(f"{instrument}: no layer is called {pattern!r}{hint} are {listed}")


def matching(instrument: str, pattern: str, names: Iterable[str]) -> list[str]:
    """The names that a pattern such as ``"encoder.*"`` stands for.

    >>> matching("watch", "*.weight", ["0.weight", "0.bias", "2.weight"])
    ['0.weight', '2.weight']
    """
    known = list(names)
    found = [name for name in known if fnmatch.fnmatchcase(name, pattern)]
    if not found:
        raise no_such_layer(instrument, pattern, known)
    return found


def find_layer(instrument: str, seen: Trace, name: str | None) -> Call:
    """The last call of the layer of this name; without one, of what the last layer reads."""
    if name is None:
        return _before_the_last(seen)
    found = [call for call in seen.calls if call.path == name and call.finished]
    if not found:
        raise no_such_layer(instrument, name, [call.path for call in seen.calls if call.path])
    return found[-1]


def _before_the_last(seen: Trace) -> Call:
    """The call whose output the last layer with parameters is given, else the model's own."""
    own = [c for c in seen.calls if c.finished and c.module._parameters and not c.children]
    if own:
        given = {id(t) for t in own[-1].inputs}
        makers = [c for c in seen.calls if c.finished and any(id(t) in given for t in c.outputs)]
        if makers:
            return makers[-1]
    before = own[:-1]
    return before[-1] if before else seen.root

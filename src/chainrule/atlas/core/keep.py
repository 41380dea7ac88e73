"""Results that take long, and that entries share: each is kept as soon as it is there."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from chainrule.atlas.core.sources import key_of_function
from chainrule.files import write_atomically

__all__ = ["NOT_KEPT", "Keep"]


class Keep:
    """Results of functions by name; an interrupted run goes on behind those that are there.

    ``keep(name, function, *args)`` is ``function(*args)``, numbers in lists, or what it was when it
    was computed before, by the same source and version, for this entry or another one. The name
    tells all settings.

    Args:
        folder: where they are; without one, nothing is kept.
        interrupts: those that came since the run began. Training ends in order at an interrupt:
            what it gives back then is no result.
        device: where networks that take long are to be trained; None is the CPU.

    >>> keep = Keep()
    >>> keep("errors of two seeds", sorted, [0.8, 0.7])
    [0.7, 0.8]
    """

    def __init__(
        self,
        folder: Path | None = None,
        interrupts: Sequence[int] = (),
        device: str | None = None,
    ) -> None:
        self.folder, self.interrupts, self.device = folder, interrupts, device

    def __call__(self, name: str, function: Callable[..., Any], *args: Any) -> Any:
        if self.folder is None:
            return function(*args)
        path, key = self.folder / f"{name}.json", key_of_function(function)
        kept = _read(path, key)
        if kept is not None:
            return kept
        found = function(*args)
        if self.interrupts:
            raise KeyboardInterrupt
        write_atomically(path, json.dumps({"key": key, "found": found}).encode())
        return found


NOT_KEPT = Keep()


def _read(path: Path, key: str) -> Any:
    """What the file has, if it is whole and of this key."""
    try:
        told = json.loads(path.read_text("utf-8"))
        return told["found"] if told["key"] == key else None
    except (OSError, ValueError, TypeError, KeyError):
        return None

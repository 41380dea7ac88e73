"""What all processes do as one: a file is written once, a question has one answer."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from chainrule.backend.processes.arrays import Members, call, collective
from chainrule.backend.processes.world import World, is_writer, world

__all__ = ["agreed", "once", "wait_for_all"]

_members: list[tuple[World, Members]] = []  # of the present group, beside the calls of programs


def _ours() -> Members | None:
    ours = world()
    if ours is None or ours.size == 1:
        return None
    if not _members or _members[0][0] is not ours:
        _members[:] = [(ours, Members("library", tuple(range(ours.size))))]
    return _members[0][1]


def wait_for_all() -> None:
    """Returns when all processes have come to it."""
    ours = _ours()
    if ours is not None:
        collective(call("wait_for_all", ours), "barrier")


def agreed(value: Any) -> Any:
    """What process 0 says, in all processes; for what a clock or a disk decides.

    A plain value: a number, a text, a truth value, None, or a list of them.
    """
    ours = _ours()
    if ours is None:
        return value
    text = json.dumps(value if is_writer() else None).encode()
    return json.loads(collective(call("agreed", ours), "broadcast_bytes", text, 0))


def _text(name: Any) -> str | None:
    return None if name is None else str(name)


def once(write: Callable[[], object]) -> None:
    """Process 0 writes, and all go on when it is done.

    An OSError is raised in all of them.
    """
    if _ours() is None:
        write()
        return
    failed: OSError | None = None
    if is_writer():
        try:
            write()
        except OSError as error:
            failed = error
    said = agreed(
        None if failed is None else [failed.errno, failed.strerror, _text(failed.filename)]
    )
    if failed is not None:
        raise failed
    if said is not None:
        raise OSError(*said)

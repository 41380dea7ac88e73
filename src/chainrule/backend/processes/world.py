"""The processes that compute together: started, asked, ended."""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
from dataclasses import dataclass

from chainrule.backend.processes import joining
from chainrule.backend.processes.mail import Mailbox
from chainrule.backend.processes.meeting import Meeting, meet
from chainrule.backend.processes.watching import Watch

__all__ = ["World", "is_writer", "rank", "size", "start", "stop", "world"]


@dataclass
class World:
    """All processes, seen from one of them."""

    rank: int
    size: int
    local_rank: int
    backend: str  # "gloo" or "nccl"
    timeout: float
    meeting: Meeting
    mailbox: Mailbox
    watch: Watch


FOR_NEWS = 3.0  # seconds in which a process that was killed is heard of

_world: World | None = None


def world() -> World | None:
    """The processes that compute together, None where this one is alone."""
    return _world


def rank() -> int:
    """The number of this process; 0 where it is alone."""
    return 0 if _world is None else _world.rank


def size() -> int:
    """How many processes compute together; 1 where this one is alone."""
    return 1 if _world is None else _world.size


def is_writer() -> bool:
    """Whether this process writes what all processes have: files, reports, lines about progress."""
    return rank() == 0


def start(
    address: str,
    port: int,
    rank: int,
    size: int,
    local_rank: int,
    devices: list[int] | None,
    waits: tuple[float, float],
) -> World:
    """Finds the other processes and starts JAX among them.

    ``waits`` are the seconds that are waited for all to come, and later for each message.
    """
    global _world
    joining.check()
    meeting = meet(address, port, rank, size, waits[0])
    if meeting.server is None:
        raise RuntimeError("no server")
    places = [(p.host, p.port) for p in meeting.places]
    mailbox = Mailbox(rank, places, meeting.secret, meeting.server)
    watch = Watch(meeting, mailbox)
    platform = joining.join(address, meeting.port, rank, size, devices, waits[0])
    backend = "gloo" if platform == "cpu" else "nccl"
    _world = World(rank, size, local_rank, backend, waits[1], meeting, mailbox, watch)
    atexit.register(_at_exit, _world)
    return _world


def stop() -> None:
    """Waits until all processes want to end, and parts from them."""
    global _world
    ours = _world
    if ours is None:
        return
    _world = None
    ours.watch.tell("left")
    joining.leave()
    ours.watch.tell("done")
    ours.watch.over = True
    ours.mailbox.close()


def _at_exit(ours: World) -> None:
    """The end of the program: of one that failed at once, of others when all have come to it."""
    if _world is not ours:
        return
    error = getattr(sys, "last_value", None)
    if not ours.watch.lost and error is None:
        stop()
        return
    text = " ".join(f"{type(error).__name__}: {error}".split())
    if "Gloo" in text or "NCCL" in text:  # the connection to another process broke, or it did
        ours.watch.wait(FOR_NEWS)
    if not ours.watch.lost:
        ours.watch.tell("failed", f"failed: {text[:500]}")
    elif ours.watch.lost not in text:
        ours.watch.say_why(ours.watch.lost)
    # JAX would wait for the others, which end as well.
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(1)

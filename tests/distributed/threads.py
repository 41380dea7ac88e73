"""Several processes as threads of one: all that needs no JAX."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from chainrule.backend.processes import Members, World
from chainrule.backend.processes.arrays import Call, collective
from chainrule.backend.processes.mail import Mailbox
from chainrule.backend.processes.meeting import free_port, meet

__all__ = ["Thread", "together"]


class Thread:
    """One of them: its rank, and its calls."""

    def __init__(self, world: World, wait: float):
        self.world, self.wait = world, wait
        self.members = Members("world", tuple(range(world.size)))

    def __call__(self, kind: str, *args: Any, tag: int | None = None) -> Any:
        self.members.calls += 1
        key = f"{self.members.calls}" if tag is None else f"tag {tag}"
        name = kind if tag is None else "send"
        call = Call(name, self.world, self.members.ranks, key, self.wait)
        return collective(call, kind, *args)


def together(count: int, program: Callable[[Thread], Any], wait: float = 10.0) -> list[Any]:
    """What a program returns in each of them; the first error is raised."""
    port, found, errors = free_port("127.0.0.1"), [None] * count, []

    def run(rank: int) -> None:
        try:
            meeting = meet("127.0.0.1", port, rank, count, 10)
            assert meeting.server is not None
            places = [(p.host, p.port) for p in meeting.places]
            mailbox = Mailbox(rank, places, meeting.secret, meeting.server)
            watch: Any = None
            world = World(rank, count, rank, "gloo", wait, meeting, mailbox, watch)
            try:
                found[rank] = program(Thread(world, wait))
                end.wait(10)
            finally:
                mailbox.close()
                for line in meeting.lines.values():
                    line.close()
        except Exception as error:  # noqa: BLE001
            errors.append(error)

    end = threading.Barrier(count)
    threads = [threading.Thread(target=run, args=(r,)) for r in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    errors = [e for e in errors if not isinstance(e, threading.BrokenBarrierError)]
    if errors:
        raise errors[0]
    return found

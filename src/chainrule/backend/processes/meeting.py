"""How processes find each other: all come to process 0, which tells each where the others are."""

from __future__ import annotations

import contextlib
import errno
import os
import platform
import secrets
import socket
import time
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from chainrule.backend.processes.messages import (
    DistNetworkError,
    DistStoreError,
    is_loopback,
    listen,
    prepare,
    read_message,
    send_message,
)

__all__ = ["Meeting", "Place", "free_port", "meet"]

OP = "init_process_group"


class Place(NamedTuple):
    """Where a process is."""

    host: str
    port: int
    pid: int
    machine: str

    def __str__(self) -> str:
        return f"pid {self.pid} on {self.machine}"


@dataclass
class Meeting:
    """What each process knows when all have come."""

    address: str
    rank: int
    places: list[Place] = field(default_factory=list)
    secret: str = ""
    port: int = 0  # on which process 0 offers JAX's service
    lines: dict[int, socket.socket] = field(default_factory=dict)  # to 0; from 0 to all others
    server: socket.socket | None = None  # for messages


def free_port(address: str, port: int = 0) -> int:
    """A port of this machine that nobody uses now; OSError if it is to be one that is in use."""
    with listen(address, port) as server:
        return int(server.getsockname()[1])


def meet(address: str, port: int, rank: int, size: int, timeout: float) -> Meeting:
    """Waits until all processes have come."""
    meeting = Meeting(address, rank)
    end = time.monotonic() + timeout
    door = _door(address, port) if rank == 0 else None
    meeting.server = listen(address)
    try:
        if door is not None:
            with door:
                _wait_for_all(meeting, door, size, end, timeout)
        else:
            _go(meeting, port, size, end, timeout)
    except BaseException:
        for opened in (meeting.server, *meeting.lines.values()):
            opened.close()
        raise
    for line in meeting.lines.values():
        line.settimeout(None)
    return meeting


# --- process 0 ------------------------------------------------------------------------------------


def _door(address: str, port: int) -> socket.socket:
    try:
        return listen(address, port)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise DistNetworkError(
                f"{OP}: port {port} of {address} is taken by another program; choose another by "
                "MASTER_PORT or `chainrule launch --master-port` (which finds a free one by itself)"
            ) from None
        raise DistNetworkError(
            f"{OP}: process 0 cannot listen at {address}:{port} (MASTER_ADDR, MASTER_PORT): {error}"
        ) from None


def _wait_for_all(
    meeting: Meeting, door: socket.socket, size: int, end: float, timeout: float
) -> None:
    places = {0: _here(meeting, meeting.address)}
    try:
        while len(places) < size:
            door.settimeout(max(0.01, end - time.monotonic()))
            try:
                line, _ = door.accept()
            except TimeoutError:
                raise DistStoreError(_missing(places, size, timeout)) from None
            _greet(meeting, line, size, places)
    except DistStoreError as error:
        for line in meeting.lines.values():
            with contextlib.suppress(OSError):
                send_message(line, {"error": str(error)})
        raise
    meeting.places = [places[r] for r in range(size)]
    meeting.secret, meeting.port = secrets.token_hex(16), free_port(meeting.address)
    answer = {"places": meeting.places, "secret": meeting.secret, "port": meeting.port}
    for line in meeting.lines.values():
        send_message(line, answer)


def _missing(places: dict[int, Place], size: int, timeout: float) -> str:
    missing = [str(r) for r in range(size) if r not in places]
    names = ", ".join(missing[:8]) + (", ..." if missing[8:] else "")
    return (
        f"{OP}: {len(places)} of {size} processes have come within {timeout:.6g} s; missing: "
        f"{names}. Was each started, with WORLD_SIZE={size} and a RANK of its own, and can "
        "it reach MASTER_ADDR?"
    )


def _greet(meeting: Meeting, line: socket.socket, size: int, places: dict[int, Place]) -> None:
    """Lets a process in; strangers are sent away."""
    try:
        prepare(line).settimeout(2)
        head, _ = read_message(line, 0)
        rank, theirs, place = int(head["rank"]), int(head["size"]), Place(*head["place"])
    except (OSError, EOFError, ValueError, KeyError, TypeError):
        line.close()
        return
    was = meeting.lines.pop(rank, None)
    meeting.lines[rank] = line
    if theirs != size:
        raise DistStoreError(
            f"{OP}: process {rank} ({place}) was started for {theirs} processes and process 0 for "
            f"{size}; give all the same WORLD_SIZE"
        )
    if was is not None:
        meeting.lines[-1] = was  # who is told as well
        raise DistStoreError(
            f"{OP}: two processes have rank {rank}: {places[rank]} and {place}; give each a RANK "
            "of its own, from 0 to WORLD_SIZE - 1"
        )
    places[rank] = place


# --- all others -----------------------------------------------------------------------------------


def _here(meeting: Meeting, host: str) -> Place:
    server: Any = meeting.server
    return Place(host, server.getsockname()[1], os.getpid(), platform.node())


def _go(meeting: Meeting, port: int, size: int, end: float, timeout: float) -> None:
    line = meeting.lines[0] = _call(meeting, port, end, timeout)
    # By this address others reach this machine: its own one, if process 0 is elsewhere.
    own = line.getsockname()[0]
    place = _here(meeting, meeting.address if is_loopback(own) else own)
    try:
        send_message(line, {"rank": meeting.rank, "size": size, "place": place})
        line.settimeout(max(0.01, end - time.monotonic()) + 10)  # process 0 speaks first
        answer, _ = read_message(line, 0)
    except (OSError, EOFError, ValueError) as error:
        raise DistNetworkError(
            f"{OP}: process 0 at {meeting.address}:{port} took the call of process {meeting.rank} "
            f"and did not answer ({error or type(error).__name__}); did it fail, or is another "
            "program at this port?"
        ) from None
    if "error" in answer:
        raise DistStoreError(answer["error"])
    meeting.places = [Place(*p) for p in answer["places"]]
    meeting.secret, meeting.port = answer["secret"], answer["port"]


def _call(meeting: Meeting, port: int, end: float, timeout: float) -> socket.socket:
    """A connection to process 0, which may not be there yet."""
    pause = 0.02
    while True:
        left = end - time.monotonic()
        try:
            return prepare(
                socket.create_connection((meeting.address, port), timeout=max(0.01, min(left, 10)))
            )
        except OSError as error:
            if left <= pause:
                raise DistNetworkError(
                    f"{OP}: process {meeting.rank} has reached nobody at {meeting.address}:{port} "
                    f"(MASTER_ADDR, MASTER_PORT) within {timeout:.6g} s: {error}. Was process 0 "
                    "started there?"
                ) from None
            time.sleep(pause)
            pause = min(2 * pause, 0.5)

"""Messages between processes over sockets: a head of plain values, and bytes."""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Mapping
from typing import Any, TypeAlias

__all__ = [
    "Buffer",
    "DistBackendError",
    "DistError",
    "DistNetworkError",
    "DistStoreError",
    "is_loopback",
    "listen",
    "prepare",
    "read_message",
    "send_message",
]

Buffer: TypeAlias = bytes | bytearray | memoryview
PREFIX = struct.Struct("!4sIQ")  # the name of this protocol, how long the head is, and the body
NAME = b"crn1"
LONGEST_HEAD = 2**20
SILENCE = 20  # seconds without an answer of a machine after which a connection counts as broken


class DistError(RuntimeError):
    """What goes wrong between processes."""

    __module__ = "chainrule.distributed"


class DistBackendError(DistError):
    """What goes wrong while processes compute together."""

    __module__ = "chainrule.distributed"


class DistNetworkError(DistError):
    """A process that cannot be reached, or is gone."""

    __module__ = "chainrule.distributed"


class DistStoreError(DistError):
    """What goes wrong while processes find each other."""

    __module__ = "chainrule.distributed"


def prepare(connection: socket.socket) -> socket.socket:
    """A connection without delays for small messages, which notices that a machine is gone."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    settings = {
        "TCP_KEEPIDLE": SILENCE // 4,
        "TCP_KEEPINTVL": SILENCE // 4,
        "TCP_KEEPCNT": 3,
        "TCP_USER_TIMEOUT": SILENCE * 1000,
    }
    for name, value in settings.items():
        if hasattr(socket, name):  # not every system has them
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return connection


def is_loopback(address: str) -> bool:
    """Whether only this machine can be meant."""
    return address == "localhost" or address == "::1" or address.startswith("127.")


def listen(address: str, port: int = 0) -> socket.socket:
    """A socket that takes connections: of this machine alone where the address is local."""
    if is_loopback(address):
        family = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((address, port), family=family, backlog=1024)
    if socket.has_dualstack_ipv6():
        both = {"family": socket.AF_INET6, "dualstack_ipv6": True}
        return socket.create_server(("", port), backlog=1024, **both)  # type: ignore[arg-type]
    return socket.create_server(("", port), backlog=1024)


def send_message(connection: socket.socket, head: Mapping[str, Any], body: Buffer = b"") -> None:
    """Sends one message."""
    size = body.nbytes if isinstance(body, memoryview) else len(body)
    text = json.dumps(head).encode()
    start = PREFIX.pack(NAME, len(text), size) + text
    if size <= 2**16:
        connection.sendall(start + bytes(body))
    else:
        connection.sendall(start)
        connection.sendall(body)


def _exactly(connection: socket.socket, size: int) -> bytearray:
    data = bytearray(size)
    view, got = memoryview(data), 0
    while got < size:
        count = connection.recv_into(view[got:])
        if not count:
            raise EOFError("the connection was closed")
        got += count
    return data


def read_message(
    connection: socket.socket, longest: int | None = None
) -> tuple[dict[str, Any], bytearray]:
    """The next message: EOFError if the other side has gone, ValueError if it is a stranger."""
    name, length, size = PREFIX.unpack(_exactly(connection, PREFIX.size))
    if name != NAME or length > LONGEST_HEAD or (longest is not None and size > longest):
        raise ValueError("not a message of chainrule")
    head = json.loads(_exactly(connection, length))
    if not isinstance(head, dict):
        raise ValueError("not a message of chainrule")
    return head, _exactly(connection, size)

"""Messages from every process to every other, kept until somebody asks for them.

A connection is made when a process first sends something to another. What arrives is read by a
thread of its own, so that nobody who sends waits for somebody who computes.
"""

from __future__ import annotations

import contextlib
import hmac
import socket
import threading
import time
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from chainrule.backend.processes.messages import (
    Buffer,
    DistBackendError,
    DistNetworkError,
    prepare,
    read_message,
    send_message,
)

__all__ = ["Mailbox", "Message"]

ON_THE_WAY = 2.0  # seconds in which what a process sent before it left arrives


class Message(NamedTuple):
    """Who sent what."""

    source: int
    head: dict[str, Any]
    body: bytearray


class Mailbox:
    """The messages of one process.

    Args:
        rank: the number of this process.
        places: host and port of each process.
        secret: what all of them know, and nobody else.
        server: the socket on which this process takes connections.
    """

    def __init__(
        self, rank: int, places: Sequence[tuple[str, int]], secret: str, server: socket.socket
    ):
        self.rank, self.places, self.secret, self.server = rank, places, secret, server
        self._out: dict[int, tuple[socket.socket, threading.Lock]] = {}
        self._connecting = threading.Lock()
        self._in: list[socket.socket] = []
        self._kept: dict[str, dict[int, deque[Message]]] = defaultdict(lambda: defaultdict(deque))
        self._news = threading.Condition()
        self._left: dict[int, float] = {}
        self._lost = ""
        threading.Thread(target=self._accept, name="chainrule-mail", daemon=True).start()

    # --- sending ---------------------------------------------------------------------------------

    def send(self, to: int, key: str, head: Mapping[str, Any], body: Buffer = b"") -> None:
        """Sends a message under a key; what is sent to oneself is kept at once."""
        if to == self.rank:
            return self._keep(Message(to, {**head, "key": key}, bytearray(body)))
        try:
            connection, lock = self._connection(to)
            with lock:
                send_message(connection, {**head, "key": key}, body)
        except OSError as error:
            # Whoever watches knows more in a moment.
            with self._news:
                self._news.wait_for(lambda: self._lost, ON_THE_WAY)
            text = self._lost or f"process {to} cannot be reached: {error}"
            raise DistNetworkError(f"{head.get('name', 'send')}: {text}") from None

    def _connection(self, to: int) -> tuple[socket.socket, threading.Lock]:
        with self._connecting:
            if to not in self._out:
                connection = prepare(socket.create_connection(self.places[to], timeout=30))
                connection.settimeout(None)
                send_message(connection, {"rank": self.rank, "secret": self.secret})
                self._out[to] = connection, threading.Lock()
            return self._out[to]

    # --- receiving -------------------------------------------------------------------------------

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self.server.accept()
            except OSError:
                return  # closed
            threading.Thread(
                target=self._read, args=(connection,), name="chainrule-mail", daemon=True
            ).start()

    def _read(self, connection: socket.socket) -> None:
        """Keeps what one process sends, until it ends; strangers are sent away."""
        with contextlib.suppress(OSError, EOFError, ValueError, KeyError), connection:
            prepare(connection).settimeout(30)
            head, _ = read_message(connection, 0)
            if not hmac.compare_digest(str(head["secret"]), self.secret):
                return
            connection.settimeout(None)
            self._in.append(connection)
            source = int(head["rank"])
            while True:
                self._keep(Message(source, *read_message(connection)))

    def _keep(self, message: Message) -> None:
        with self._news:
            self._kept[message.head["key"]][message.source].append(message)
            self._news.notify_all()

    def receive(
        self, sources: Sequence[int], key: str, name: str, deadline: float, waited: float
    ) -> Message:
        """The next message under a key from one of these processes."""
        with self._news:
            while True:
                kept = self._kept.get(key, {})
                for source in sources:
                    if kept.get(source):
                        message = kept[source].popleft()
                        self._clean(key, source)
                        return message
                self._check(sources, name)
                now = time.monotonic()
                if now >= deadline:
                    who = " or ".join(map(str, sources[:8])) + ("..." if sources[8:] else "")
                    raise DistBackendError(
                        f"{name}: process {self.rank} waited {waited:.6g} s for process {who}, "
                        "which has not come to this call; do all processes make the same calls in "
                        "the same order? init_process_group(timeout=...) says how long to wait"
                    )
                self._news.wait(min(deadline - now, 1.0))

    def _clean(self, key: str, source: int) -> None:
        if not self._kept[key][source]:
            del self._kept[key][source]
            if not self._kept[key]:
                del self._kept[key]

    def _check(self, sources: Sequence[int], name: str) -> None:
        """An error where nothing will come any more."""
        if self._lost:
            raise DistNetworkError(f"{name}: {self._lost}")
        since = max((self._left.get(s, float("inf")) for s in sources), default=0.0)
        if time.monotonic() > since + ON_THE_WAY:
            who = ", ".join(map(str, sources))
            raise DistNetworkError(
                f"{name}: process {who} has left (its program ended, or called "
                "destroy_process_group) and will not come to this call"
            )

    # --- the end ---------------------------------------------------------------------------------

    def left(self, rank: int) -> None:
        """Notes that a process will send nothing more."""
        with self._news:
            self._left.setdefault(rank, time.monotonic())

    def lost(self, text: str) -> None:
        """Ends everybody's waiting: a process is gone."""
        with self._news:
            self._lost = self._lost or text
            self._news.notify_all()

    def close(self) -> None:
        """Closes all connections."""
        for connection in (self.server, *self._in, *[c for c, _ in self._out.values()]):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()

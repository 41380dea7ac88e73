"""The server that runs the application until it is told to end."""

from __future__ import annotations

import contextlib
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

from chainrule.serve.application import NEEDED, application
from chainrule.serve.limits import Limits, limits_for
from chainrule.train import FittedNetwork

__all__ = ["run"]

BACKLOG = 2048  # connections that wait to be accepted


def run(
    network: FittedNetwork,
    host: str = "127.0.0.1",
    port: int = 8000,
    limits: Limits | None = None,
    *,
    started: Callable[[str], None] | None = None,
) -> None:
    """Serves a network until SIGINT or SIGTERM, after which requests at work are still answered.

    Args:
        network: of ``fit_table`` or ``fit_images``, or loaded.
        host: the address to listen at; by default only this machine can reach it.
        port: 0 takes one that is free.
        limits: what it takes; see :class:`Limits`.
        started: is called with the address when requests can come.
    """
    try:
        import uvicorn
    except ImportError as error:
        raise ImportError(NEEDED) from error
    limits = limits or limits_for(network)
    app = application(network, limits)
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        lifespan="on",
        backlog=BACKLOG,
        timeout_graceful_shutdown=int(limits.timeout) + 1,
        server_header=False,
    )
    server: Any = uvicorn.Server(config)
    # Its own way raises the signal again at the end, as if nothing had been ended.
    server.capture_signals = lambda: _ends(server)
    with _bound(host, port) as listening:
        if started is not None:
            started(_address(listening))
        server.run(sockets=[listening])


def _bound(host: str, port: int) -> socket.socket:
    """A socket that listens."""
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listening = socket.socket(family, kind, protocol)
    except (OSError, OverflowError) as error:
        raise OSError(f"serve: cannot listen at {host}: {error}") from None
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(place)
        listening.listen(BACKLOG)
    except (OSError, OverflowError) as error:
        listening.close()
        raise OSError(
            f"serve: cannot listen at {host} port {port}: {error}; another --port may be free"
        ) from None
    return listening


def _address(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


@contextlib.contextmanager
def _ends(server: Any) -> Iterator[None]:
    """While it serves, SIGINT and SIGTERM end it in order."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, server.handle_exit) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

"""JAX in several processes: started by its own ``jax.distributed.initialize``.

JAX ends a process by ``abort()`` as soon as the connection to the service in process 0 breaks, with
forty lines about addresses in memory. The other processes therefore reach the service through a
relay in their own process, which holds the connection when process 0 is gone: what ends them then
is :class:`~chainrule.backend.processes.watching.Watch`, which says who is gone.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

from chainrule.backend.processes.messages import is_loopback, prepare

__all__ = ["check", "check_installed", "is_installed", "join", "leave"]

OP = "init_process_group"
HEARTBEAT = 100  # seconds: JAX's own watch is the last resort
FOREVER = 7 * 24 * 3600  # seconds that a process waits at its end for those that still work


def is_installed(plugin: str = "") -> bool:
    """Whether JAX can be imported (and its plugin for GPUs), without importing it."""
    if find_spec("jax") is None or find_spec("jaxlib") is None:
        return False
    return not plugin or any([find_spec(f"jax_{plugin}{n}_plugin") for n in (12, 13)])


def check_installed() -> None:
    """An error unless JAX is there."""
    if not is_installed():
        raise ModuleNotFoundError(
            f"{OP}: processes compute together through JAX, which is not installed: "
            "pip install 'chainrule[xla]'",
            name="jax",
        )


def check() -> None:
    """An error unless JAX can still be told about other processes."""
    import jax
    from jax._src import xla_bridge

    if jax.distributed.is_initialized():
        raise RuntimeError(
            f"{OP}: jax.distributed.initialize was called by somebody else; leave that to {OP}"
        )
    if xla_bridge.backends_are_initialized():
        raise RuntimeError(
            f"{OP}: JAX has computed in this process already, and can only be told of other "
            f"processes before; call {OP} first, before anything is put on a device"
        )


def join(
    address: str, port: int, rank: int, size: int, devices: list[int] | None, timeout: float
) -> str:
    """Starts JAX in this process as one of several, and returns what it computes on."""
    import jax

    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    # It would catch SIGTERM, and the process would not end.
    jax.config.update("jax_enable_preemption_service", False)
    jax.config.update("jax_check_proxy_envs", False)  # no proxy is asked: below
    host, own = address, port
    if rank:
        host, own = "127.0.0.1", Relay(address, port).port
    named = f"[{host}]:{own}" if ":" in host else f"{host}:{own}"
    with _no_proxy(host):
        jax.distributed.initialize(
            named,
            size,
            rank,
            devices,
            cluster_detection_method="deactivate",
            initialization_timeout=max(1, int(timeout)),
            heartbeat_timeout_seconds=HEARTBEAT,
            shutdown_timeout_seconds=FOREVER,
            coordinator_bind_address=named if is_loopback(host) else None,
        )
    return str(jax.devices()[0].platform)


def leave() -> None:
    """Waits until all processes want to end, and ends JAX's service."""
    import jax

    jax.distributed.shutdown()


@contextlib.contextmanager
def _no_proxy(host: str) -> Iterator[None]:
    """Connections between the processes do not go through a proxy for the Web."""
    before = os.environ.get("no_proxy")
    os.environ["no_proxy"] = host if before is None else f"{before},{host}"
    try:
        yield
    finally:
        if before is None:
            del os.environ["no_proxy"]
        else:
            os.environ["no_proxy"] = before


class Relay:
    """Connections to a port of this machine go on to another machine, and stay when it is gone."""

    def __init__(self, address: str, port: int):
        self.goal = address, port
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.server.getsockname()[1]
        self.held: list[Any] = []
        threading.Thread(target=self._accept, name="chainrule-relay", daemon=True).start()

    def _accept(self) -> None:
        while True:
            near, _ = self.server.accept()
            try:
                far = prepare(socket.create_connection(self.goal, timeout=10))
            except OSError:
                near.close()  # JAX tries again
                continue
            far.settimeout(None)
            prepare(near)
            self.held.append((near, far))
            for ends in ((near, far, True), (far, near, False)):
                threading.Thread(
                    target=self._carry, args=ends, name="chainrule-relay", daemon=True
                ).start()

    def _carry(self, source: socket.socket, goal: socket.socket, outward: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(2**16):
                goal.sendall(data)
            if outward:  # JAX is done
                goal.shutdown(socket.SHUT_RDWR)

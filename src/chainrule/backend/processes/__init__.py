"""Several processes: how they find each other, what they send, and what ends them.

JAX computes across processes on devices; arrays of NumPy and plain bytes go over sockets of the
processes' own, in an order that does not depend on the run. Nothing here imports JAX before
:func:`start` is called.
"""

from chainrule.backend.processes.arrays import (
    REDUCTIONS,
    Call,
    Members,
    call,
    collective,
    from_first,
)
from chainrule.backend.processes.joining import check_installed, is_installed
from chainrule.backend.processes.meeting import free_port
from chainrule.backend.processes.messages import (
    DistBackendError,
    DistError,
    DistNetworkError,
    DistStoreError,
)
from chainrule.backend.processes.together import agreed, once, wait_for_all
from chainrule.backend.processes.world import World, is_writer, rank, size, start, stop, world

__all__ = [
    "Call",
    "DistBackendError",
    "DistError",
    "DistNetworkError",
    "DistStoreError",
    "Members",
    "REDUCTIONS",
    "World",
    "agreed",
    "call",
    "check_installed",
    "collective",
    "free_port",
    "from_first",
    "is_installed",
    "is_writer",
    "once",
    "rank",
    "size",
    "start",
    "stop",
    "wait_for_all",
    "world",
]

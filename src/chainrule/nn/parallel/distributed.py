"""A module in several processes: refused."""

from __future__ import annotations

from chainrule.absent import Refused

__all__ = ["DistributedDataParallel"]


class DistributedDataParallel(Refused):
    """A module whose gradients are averaged over processes.

    It can be imported and asked for with ``isinstance``; it cannot be made.
    """

    reason = (
        "chainrule computes in one process and has no process groups; ask "
        "distributed.is_available() first, and use the module as it is"
    )

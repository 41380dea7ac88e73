"""Modules on several devices: there is one, so :class:`DataParallel` passes everything through."""

from typing import Any

from chainrule.absent import absent
from chainrule.nn.parallel.data_parallel import DataParallel, data_parallel
from chainrule.nn.parallel.distributed import DistributedDataParallel

__all__ = ["DataParallel", "DistributedDataParallel", "data_parallel"]

ABSENT = dict.fromkeys(
    ("gather", "parallel_apply", "replicate", "scatter"),
    "there is one device, so nothing is shared out; call the module",
)


def __getattr__(name: str) -> Any:
    raise absent(__name__, name, ABSENT)

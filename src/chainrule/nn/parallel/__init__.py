"""Modules on several devices: :class:`DistributedDataParallel`, in one process or many.

:class:`DataParallel`, which PyTorch advises against, passes everything through.
"""

from typing import Any

from chainrule.absent import absent
from chainrule.nn.parallel.data_parallel import DataParallel, data_parallel
from chainrule.nn.parallel.distributed import DistributedDataParallel

__all__ = ["DataParallel", "DistributedDataParallel", "data_parallel"]

ABSENT = dict.fromkeys(
    ("gather", "parallel_apply", "replicate", "scatter"),
    "DistributedDataParallel shares batches out; call the module",
)


def __getattr__(name: str) -> Any:
    raise absent(__name__, name, ABSENT)

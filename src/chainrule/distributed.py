"""PyTorch's ``torch.distributed`` where one process computes: what can be asked is answered.

``is_available()`` is False, so programs that ask take their way for one process. The rank is 0 and
the world has size 1; everything that needs a group of processes refuses.
"""

from __future__ import annotations

import enum
from typing import Any

from chainrule.absent import Refused, absent, refused

__all__ = [
    "Backend",
    "ProcessGroup",
    "ReduceOp",
    "all_gather",
    "all_gather_into_tensor",
    "all_gather_object",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "broadcast",
    "broadcast_object_list",
    "destroy_process_group",
    "gather",
    "gather_object",
    "get_backend",
    "get_rank",
    "get_world_size",
    "init_device_mesh",
    "init_process_group",
    "irecv",
    "is_available",
    "is_backend_available",
    "is_gloo_available",
    "is_initialized",
    "is_mpi_available",
    "is_nccl_available",
    "is_torchelastic_launched",
    "is_ucc_available",
    "is_xccl_available",
    "isend",
    "monitored_barrier",
    "new_group",
    "recv",
    "reduce",
    "reduce_op",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "scatter",
    "scatter_object_list",
    "send",
]

ALONE = (
    "chainrule computes in one process and has no process groups; ask distributed.is_available() "
    "first, and run on one process"
)
NO_GROUP = f"Default process group has not been initialized: {ALONE}"


def is_available() -> bool:
    """Whether processes can compute together: never here."""
    return False


def is_initialized() -> bool:
    """Whether there is a group of processes: never here."""
    return False


def get_rank(group: object = None) -> int:
    """The number of this process: 0."""
    return 0


def get_world_size(group: object = None) -> int:
    """How many processes there are: 1."""
    return 1


def is_backend_available(backend: str) -> bool:
    """Whether processes can exchange tensors in this way: never here."""
    return False


def is_gloo_available() -> bool:
    """Whether processes can exchange tensors through Gloo: never here."""
    return False


def is_mpi_available() -> bool:
    """Whether processes can exchange tensors through MPI: never here."""
    return False


def is_nccl_available() -> bool:
    """Whether GPUs can exchange tensors through NCCL: never here."""
    return False


def is_ucc_available() -> bool:
    """Whether processes can exchange tensors through UCC: never here."""
    return False


def is_xccl_available() -> bool:
    """Whether GPUs can exchange tensors through XCCL: never here."""
    return False


def is_torchelastic_launched() -> bool:
    """Whether this process was started by ``torchrun``: never here."""
    return False


class ReduceOp(enum.Enum):
    """How tensors of several processes are made one."""

    SUM = "sum"
    AVG = "avg"
    PRODUCT = "product"
    MIN = "min"
    MAX = "max"
    BAND = "band"
    BOR = "bor"
    BXOR = "bxor"


reduce_op = ReduceOp


class Backend:
    """The names of ways in which processes exchange tensors."""

    GLOO = "gloo"
    MPI = "mpi"
    NCCL = "nccl"
    UCC = "ucc"
    UNDEFINED = "undefined"


class ProcessGroup(Refused):
    """Processes that compute together."""

    reason = ALONE


init_process_group = refused("distributed.init_process_group", ALONE)
init_device_mesh = refused("distributed.init_device_mesh", ALONE)
destroy_process_group = refused("distributed.destroy_process_group", NO_GROUP, ValueError)
new_group = refused("distributed.new_group", NO_GROUP, ValueError)
get_backend = refused("distributed.get_backend", NO_GROUP, ValueError)
barrier = refused("distributed.barrier", NO_GROUP, ValueError)
monitored_barrier = refused("distributed.monitored_barrier", NO_GROUP, ValueError)
all_reduce = refused("distributed.all_reduce", NO_GROUP, ValueError)
all_gather = refused("distributed.all_gather", NO_GROUP, ValueError)
all_gather_into_tensor = refused("distributed.all_gather_into_tensor", NO_GROUP, ValueError)
all_gather_object = refused("distributed.all_gather_object", NO_GROUP, ValueError)
all_to_all = refused("distributed.all_to_all", NO_GROUP, ValueError)
all_to_all_single = refused("distributed.all_to_all_single", NO_GROUP, ValueError)
broadcast = refused("distributed.broadcast", NO_GROUP, ValueError)
broadcast_object_list = refused("distributed.broadcast_object_list", NO_GROUP, ValueError)
reduce = refused("distributed.reduce", NO_GROUP, ValueError)
reduce_scatter = refused("distributed.reduce_scatter", NO_GROUP, ValueError)
reduce_scatter_tensor = refused("distributed.reduce_scatter_tensor", NO_GROUP, ValueError)
gather = refused("distributed.gather", NO_GROUP, ValueError)
gather_object = refused("distributed.gather_object", NO_GROUP, ValueError)
scatter = refused("distributed.scatter", NO_GROUP, ValueError)
scatter_object_list = refused("distributed.scatter_object_list", NO_GROUP, ValueError)
send = refused("distributed.send", NO_GROUP, ValueError)
recv = refused("distributed.recv", NO_GROUP, ValueError)
isend = refused("distributed.isend", NO_GROUP, ValueError)
irecv = refused("distributed.irecv", NO_GROUP, ValueError)

ABSENT = dict.fromkeys(
    (
        "AllToAllOptions",
        "AllreduceCoalescedOptions",
        "AllreduceOptions",
        "BackendConfig",
        "BarrierOptions",
        "BroadcastOptions",
        "BuiltinCommHookType",
        "DebugLevel",
        "DeviceMesh",
        "DistBackendError",
        "DistError",
        "DistNetworkError",
        "DistStoreError",
        "FileStore",
        "GatherOptions",
        "GradBucket",
        "GroupMember",
        "GroupName",
        "HashStore",
        "Logger",
        "P2POp",
        "PrefixStore",
        "ProcessGroupGloo",
        "QueueEmptyError",
        "RankType",
        "ReduceOptions",
        "ReduceScatterOptions",
        "Reducer",
        "ScatterOptions",
        "Store",
        "TCPStore",
        "Work",
        "algorithms",
        "all_gather_coalesced",
        "all_gather_single",
        "all_reduce_coalesced",
        "autograd",
        "batch_isend_irecv",
        "breakpoint",
        "c10d_logger",
        "config",
        "constants",
        "default_pg_timeout",
        "device_mesh",
        "distributed_c10d",
        "elastic",
        "fsdp",
        "get_backend_config",
        "get_debug_level",
        "get_default_backend_for_device",
        "get_global_rank",
        "get_group_rank",
        "get_node_local_rank",
        "get_pg_count",
        "get_process_group_ranks",
        "group",
        "launch",
        "log",
        "logging_handlers",
        "new_subgroups",
        "new_subgroups_by_enumeration",
        "nn",
        "optim",
        "pipelining",
        "record_comm",
        "recv_object_list",
        "reduce_scatter_single",
        "register_rendezvous_handler",
        "remote_device",
        "rendezvous",
        "rpc",
        "run",
        "send_object_list",
        "set_debug_level",
        "set_debug_level_from_env",
        "shrink_group",
        "split_group",
        "supports_complex",
        "tensor",
        "utils",
    ),
    ALONE,
)


def __getattr__(name: str) -> Any:
    raise absent(__name__, name, ABSENT)

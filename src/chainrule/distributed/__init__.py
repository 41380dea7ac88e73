"""PyTorch's ``torch.distributed``: processes that compute together, on one machine or many.

    import chainrule
    from chainrule import distributed as dist

    dist.init_process_group()
    x = chainrule.ones(3) * dist.get_rank()
    dist.all_reduce(x)

``chainrule launch --processes 2 script.py`` starts it; torchrun and ``srun`` with the variables
RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT do so, too. JAX has to be installed
(``chainrule[xla]``); ``is_available()`` says whether it is. A process that is alone has rank 0 in a
world of 1 without being started in any way.
"""

from __future__ import annotations

from typing import Any

from chainrule.absent import absent
from chainrule.backend.processes import (
    DistBackendError,
    DistError,
    DistNetworkError,
    DistStoreError,
)
from chainrule.distributed.between import (
    P2POp,
    batch_isend_irecv,
    irecv,
    isend,
    recv,
    send,
)
from chainrule.distributed.collectives import (
    all_gather,
    all_gather_into_tensor,
    all_reduce,
    all_to_all,
    all_to_all_single,
    barrier,
    broadcast,
    gather,
    monitored_barrier,
    reduce,
    reduce_scatter,
    reduce_scatter_tensor,
    scatter,
)
from chainrule.distributed.device_mesh import DeviceMesh, init_device_mesh
from chainrule.distributed.groups import (
    Backend,
    GroupMember,
    ProcessGroup,
    ReduceOp,
    default_pg_timeout,
    get_backend,
    get_global_rank,
    get_group_rank,
    get_node_local_rank,
    get_pg_count,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    group,
    is_available,
    is_backend_available,
    is_gloo_available,
    is_initialized,
    is_mpi_available,
    is_nccl_available,
    is_torchelastic_launched,
    is_ucc_available,
    is_writer,
    is_xccl_available,
    reduce_op,
)
from chainrule.distributed.objects import (
    all_gather_object,
    broadcast_object_list,
    gather_object,
    recv_object_list,
    scatter_object_list,
    send_object_list,
)
from chainrule.distributed.starting import (
    destroy_process_group,
    init_process_group,
    new_group,
    new_subgroups,
    new_subgroups_by_enumeration,
)
from chainrule.distributed.tensor import (
    Placement,
    Replicate,
    Shard,
    distribute_module,
    distribute_tensor,
    placements_of,
)
from chainrule.distributed.work import Work

__all__ = [
    "Backend",
    "DeviceMesh",
    "DistBackendError",
    "DistError",
    "DistNetworkError",
    "DistStoreError",
    "GroupMember",
    "P2POp",
    "Placement",
    "ProcessGroup",
    "ReduceOp",
    "Replicate",
    "Shard",
    "Work",
    "all_gather",
    "all_gather_into_tensor",
    "all_gather_object",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "batch_isend_irecv",
    "broadcast",
    "broadcast_object_list",
    "default_pg_timeout",
    "destroy_process_group",
    "distribute_module",
    "distribute_tensor",
    "gather",
    "gather_object",
    "get_backend",
    "get_global_rank",
    "get_group_rank",
    "get_node_local_rank",
    "get_pg_count",
    "get_process_group_ranks",
    "get_rank",
    "get_world_size",
    "group",
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
    "is_writer",
    "is_xccl_available",
    "isend",
    "monitored_barrier",
    "new_group",
    "new_subgroups",
    "new_subgroups_by_enumeration",
    "placements_of",
    "recv",
    "recv_object_list",
    "reduce",
    "reduce_op",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "scatter",
    "scatter_object_list",
    "send",
    "send_object_list",
]

MISSING = "chainrule's processes exchange tensors by the functions of chainrule.distributed alone"
STARTED = "`chainrule launch --processes 2 script.py` starts processes; they meet at MASTER_ADDR"
ABSENT = {
    **dict.fromkeys(
        (
            "AllToAllOptions",
            "AllreduceCoalescedOptions",
            "AllreduceOptions",
            "BackendConfig",
            "BarrierOptions",
            "BroadcastOptions",
            "BuiltinCommHookType",
            "DebugLevel",
            "GatherOptions",
            "GradBucket",
            "GroupName",
            "Logger",
            "ProcessGroupGloo",
            "RankType",
            "ReduceOptions",
            "ReduceScatterOptions",
            "Reducer",
            "ScatterOptions",
            "algorithms",
            "all_gather_coalesced",
            "all_gather_single",
            "all_reduce_coalesced",
            "autograd",
            "breakpoint",
            "c10d_logger",
            "config",
            "constants",
            "distributed_c10d",
            "fsdp",
            "get_backend_config",
            "get_debug_level",
            "get_default_backend_for_device",
            "log",
            "logging_handlers",
            "nn",
            "optim",
            "pipelining",
            "record_comm",
            "reduce_scatter_single",
            "remote_device",
            "rpc",
            "set_debug_level",
            "set_debug_level_from_env",
            "shrink_group",
            "split_group",
            "supports_complex",
            "utils",
        ),
        MISSING,
    ),
    **dict.fromkeys(
        (
            "FileStore",
            "HashStore",
            "PrefixStore",
            "QueueEmptyError",
            "Store",
            "TCPStore",
            "elastic",
            "launch",
            "register_rendezvous_handler",
            "rendezvous",
            "run",
        ),
        STARTED,
    ),
}


def __getattr__(name: str) -> Any:
    raise absent(__name__, name, ABSENT)

"""PyTorch's ``torch.cuda``: GPUs through JAX. Without one, what can be asked is answered, and what
needs one refuses."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from chainrule.absent import Refused, absent, refused
from chainrule.backend import dtypes
from chainrule.cuda import amp
from chainrule.cuda.memory import (
    OutOfMemoryError,
    empty_cache,
    ipc_collect,
    max_memory_allocated,
    max_memory_cached,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_cached,
    memory_reserved,
    memory_stats,
    memory_summary,
    reset_max_memory_allocated,
    reset_max_memory_cached,
    reset_peak_memory_stats,
    set_per_process_memory_fraction,
)
from chainrule.cuda.places import (
    Event,
    can_device_access_peer,
    current_device,
    device,
    device_count,
    device_of,
    get_arch_list,
    get_device_capability,
    get_device_name,
    get_device_properties,
    init,
    is_available,
    is_bf16_supported,
    is_current_stream_capturing,
    is_initialized,
    set_device,
    synchronize,
    utilization,
)
from chainrule.cuda.streams import (
    Stream,
    StreamContext,
    current_stream,
    default_stream,
    set_stream,
    stream,
)
from chainrule.ops.creation.typed import TypedTensor
from chainrule.tensor import Tensor

__all__ = [
    "BFloat16Tensor",
    "BoolTensor",
    "ByteTensor",
    "CUDAGraph",
    "CharTensor",
    "DoubleTensor",
    "Event",
    "FloatTensor",
    "HalfTensor",
    "IntTensor",
    "LongTensor",
    "OutOfMemoryError",
    "ShortTensor",
    "Stream",
    "StreamContext",
    "amp",
    "can_device_access_peer",
    "current_device",
    "current_stream",
    "default_stream",
    "device",
    "device_count",
    "device_of",
    "empty_cache",
    "get_arch_list",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_rng_state",
    "get_rng_state_all",
    "init",
    "initial_seed",
    "ipc_collect",
    "is_available",
    "is_bf16_supported",
    "is_current_stream_capturing",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_cached",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_cached",
    "memory_reserved",
    "memory_stats",
    "memory_summary",
    "reset_max_memory_allocated",
    "reset_max_memory_cached",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "set_device",
    "set_per_process_memory_fraction",
    "set_rng_state",
    "set_rng_state_all",
    "set_stream",
    "stream",
    "synchronize",
    "utilization",
]

# --- graphs ---------------------------------------------------------------------------------------


class CUDAGraph(Refused):
    """Work recorded on a GPU, to be repeated: ``chainrule.compile`` does so."""

    reason = "chainrule.compile records a step and repeats it"


# --- seeds ----------------------------------------------------------------------------------------
# Random numbers are drawn on the host wherever tensors live, so that they are the same everywhere:
# chainrule.manual_seed seeds them.


def manual_seed(seed: int) -> None:
    """Seeds the generator of the GPU: there is none. ``chainrule.manual_seed`` seeds all."""
    int(seed)


def manual_seed_all(seed: int) -> None:
    """Seeds the generators of all GPUs: of none."""
    int(seed)


def seed() -> None:
    """Seeds the generator of the GPU by chance: there is none."""


def seed_all() -> None:
    """Seeds the generators of all GPUs by chance: of none."""


def get_rng_state_all() -> list[Tensor]:
    """The states of the generators of all GPUs: an empty list."""
    return []


def set_rng_state_all(new_states: Iterable[Tensor]) -> None:
    """Restores the states of the generators of all GPUs: of none."""
    if list(new_states):
        raise RuntimeError(f"cuda.set_rng_state_all: a state was given for a GPU: {NO_GENERATOR}")


NO_GENERATOR = "random numbers are drawn on the host; ask chainrule.get_rng_state()"
initial_seed = refused("cuda.initial_seed", NO_GENERATOR)
get_rng_state = refused("cuda.get_rng_state", NO_GENERATOR)
set_rng_state = refused("cuda.set_rng_state", NO_GENERATOR)

# --- tensors on a GPU -----------------------------------------------------------------------------


class _OnGpu(TypedTensor):
    kind = "cuda"


class FloatTensor(metaclass=_OnGpu):
    """A tensor of float32 on a GPU."""

    dtype = dtypes.float32


class DoubleTensor(metaclass=_OnGpu):
    """A tensor of float64 on a GPU."""

    dtype = dtypes.float64


class HalfTensor(metaclass=_OnGpu):
    """A tensor of float16 on a GPU."""

    dtype = dtypes.float16


class BFloat16Tensor(metaclass=_OnGpu):
    """A tensor of bfloat16 on a GPU."""

    dtype = dtypes.bfloat16


class ByteTensor(metaclass=_OnGpu):
    """A tensor of uint8 on a GPU."""

    dtype = dtypes.uint8


class CharTensor(metaclass=_OnGpu):
    """A tensor of int8 on a GPU."""

    dtype = dtypes.int8


class ShortTensor(metaclass=_OnGpu):
    """A tensor of int16 on a GPU."""

    dtype = dtypes.int16


class IntTensor(metaclass=_OnGpu):
    """A tensor of int32 on a GPU."""

    dtype = dtypes.int32


class LongTensor(metaclass=_OnGpu):
    """A tensor of int64 on a GPU."""

    dtype = dtypes.int64


class BoolTensor(metaclass=_OnGpu):
    """A tensor of bool on a GPU."""

    dtype = dtypes.bool_


ABSENT = dict.fromkeys(
    (
        "BFloat16Storage",
        "BoolStorage",
        "ByteStorage",
        "CUDAPluggableAllocator",
        "CharStorage",
        "ComplexDoubleStorage",
        "ComplexFloatStorage",
        "CudaError",
        "DeferredCudaCallError",
        "DoubleStorage",
        "ExternalStream",
        "FloatStorage",
        "GreenContext",
        "HalfStorage",
        "IntStorage",
        "LongStorage",
        "MemPool",
        "ShortStorage",
        "caching_allocator_alloc",
        "caching_allocator_delete",
        "caching_allocator_disabled",
        "caching_allocator_enable",
        "change_current_allocator",
        "check_error",
        "clock_rate",
        "cudaStatus",
        "cudart",
        "current_blas_handle",
        "current_solver_handle",
        "default_generators",
        "device_memory_used",
        "get_allocator_backend",
        "get_gencode_flags",
        "get_per_process_memory_fraction",
        "get_stream_from_external",
        "get_sync_debug_mode",
        "graph",
        "graph_pool_handle",
        "graphs",
        "has_half",
        "has_magma",
        "host_memory_stats",
        "host_memory_stats_as_nested_dict",
        "is_tf32_supported",
        "jiterator",
        "list_gpu_processes",
        "make_graphed_callables",
        "memory_snapshot",
        "memory_stats_as_nested_dict",
        "memory_usage",
        "nccl",
        "nvtx",
        "power_draw",
        "profiler",
        "random",
        "reset_accumulated_host_memory_stats",
        "reset_accumulated_memory_stats",
        "reset_peak_host_memory_stats",
        "set_sync_debug_mode",
        "sparse",
        "temperature",
        "tunable",
        "use_mem_pool",
    ),
    "it is part of CUDA's own interface, and GPUs are used through XLA, which has none of it",
)


def __getattr__(name: str) -> Any:
    raise absent(__name__, name, ABSENT)

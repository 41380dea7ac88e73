"""PyTorch's ``torch.cuda`` on a machine without a GPU: what can be asked is answered, what needs
one refuses."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from chainrule.absent import Refused, absent, refused
from chainrule.cuda import amp
from chainrule.tensor import Tensor, device as _device

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

NO_GPU = "chainrule computes on the CPU and uses no GPU; ask cuda.is_available() first"

# --- what is there --------------------------------------------------------------------------------


def is_available() -> bool:
    """Whether tensors can live on a GPU: never here.

    >>> import chainrule as torch
    >>> torch.device("cuda" if torch.cuda.is_available() else "cpu")
    device(type='cpu')
    """
    return False


def is_initialized() -> bool:
    """Whether a GPU is in use: never here."""
    return False


def device_count() -> int:
    """How many GPUs there are to compute on: none."""
    return 0


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether the GPU computes with bfloat16: there is none."""
    return False


def get_arch_list() -> list[str]:
    """The kinds of GPU that the library was compiled for: none."""
    return []


def is_current_stream_capturing() -> bool:
    """Whether work is being recorded for a graph of CUDA's: never here."""
    return False


init = refused("cuda.init", NO_GPU)
current_device = refused("cuda.current_device", NO_GPU)
get_device_name = refused("cuda.get_device_name", NO_GPU)
get_device_properties = refused("cuda.get_device_properties", NO_GPU)
get_device_capability = refused("cuda.get_device_capability", NO_GPU)
can_device_access_peer = refused("cuda.can_device_access_peer", NO_GPU)
utilization = refused("cuda.utilization", NO_GPU)


class device:
    """A block that computes on the GPU of this number; None and negative numbers change nothing."""

    def __init__(self, device: Any):
        self.idx = _index(device)

    def __enter__(self) -> None:
        set_device(self.idx)

    def __exit__(self, *error: object) -> None:
        return None


class device_of(device):
    """A block that computes where a tensor lives: on the CPU, where it would anyway."""

    def __init__(self, obj: object):
        super().__init__(None)


def set_device(device: Any) -> None:
    """Computes on the GPU of this number from now on; negative numbers change nothing."""
    if _index(device) >= 0:
        raise RuntimeError(f"cuda.set_device: there is no GPU {device!r}: {NO_GPU}")


def _index(device: Any) -> int:
    """The number of a GPU, -1 for none."""
    if device is None or isinstance(device, _device):
        return -1
    if isinstance(device, str):
        return int(device.removeprefix("cuda").removeprefix(":") or 0)
    return int(device)


# --- waiting --------------------------------------------------------------------------------------


def synchronize(device: object = None) -> None:
    """Waits until all is computed: it is, when a function returns."""


class Stream(Refused):
    """A queue of work on a GPU."""

    reason = NO_GPU


class Event(Refused):
    """A mark in a queue of work on a GPU. To measure time: ``time.perf_counter()``."""

    reason = f"{NO_GPU}. To measure time, time.perf_counter() is enough: nothing runs behind"


class CUDAGraph(Refused):
    """Work recorded on a GPU, to be repeated."""

    reason = NO_GPU


class StreamContext:
    """A block whose work goes into a queue; None, which is all there can be, changes nothing."""

    def __init__(self, stream: None):
        self.stream = stream

    def __enter__(self) -> None:
        return None

    def __exit__(self, *error: object) -> None:
        return None


def stream(stream: None) -> StreamContext:
    """A block whose work goes into a queue; None, which is all there can be, changes nothing."""
    return StreamContext(stream)


current_stream = refused("cuda.current_stream", NO_GPU)
default_stream = refused("cuda.default_stream", NO_GPU)
set_stream = refused("cuda.set_stream", NO_GPU)

# --- seeds ----------------------------------------------------------------------------------------


def manual_seed(seed: int) -> None:
    """Seeds the generator of the GPU: there is none. ``chainrule.manual_seed`` seeds the CPU's."""
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
        raise RuntimeError(f"cuda.set_rng_state_all: a state was given for a GPU: {NO_GPU}")


initial_seed = refused("cuda.initial_seed", NO_GPU)
get_rng_state = refused("cuda.get_rng_state", NO_GPU)
set_rng_state = refused("cuda.set_rng_state", NO_GPU)

# --- memory ---------------------------------------------------------------------------------------


class OutOfMemoryError(RuntimeError):
    """Raised when the memory of a GPU is used up; nothing raises it here."""


def empty_cache() -> None:
    """Hands memory of the GPU back: none is held."""


def ipc_collect() -> None:
    """Hands back memory of the GPU that other processes used: none is held."""


def memory_allocated(device: object = None) -> int:
    """Bytes of GPU memory that tensors use: none."""
    return 0


def max_memory_allocated(device: object = None) -> int:
    """The most bytes of GPU memory that tensors used: none."""
    return 0


def memory_reserved(device: object = None) -> int:
    """Bytes of GPU memory that are held: none."""
    return 0


def max_memory_reserved(device: object = None) -> int:
    """The most bytes of GPU memory that were held: none."""
    return 0


memory_cached, max_memory_cached = memory_reserved, max_memory_reserved


def memory_stats(device: object = None) -> dict[str, Any]:
    """The account of GPU memory: empty."""
    return {}


def reset_peak_memory_stats(device: object = None) -> None:
    """Starts the account of the most memory anew: nothing is in it."""


reset_max_memory_allocated = reset_max_memory_cached = reset_peak_memory_stats
mem_get_info = refused("cuda.mem_get_info", NO_GPU)
memory_summary = refused("cuda.memory_summary", NO_GPU)
set_per_process_memory_fraction = refused("cuda.set_per_process_memory_fraction", NO_GPU)

# --- tensors on a GPU -----------------------------------------------------------------------------


class _CudaTensor(Refused):
    reason = f"{NO_GPU}, and chainrule.tensor(..., dtype=...) instead"


class FloatTensor(_CudaTensor):
    """float32 on a GPU."""


class DoubleTensor(_CudaTensor):
    """float64 on a GPU."""


class HalfTensor(_CudaTensor):
    """float16 on a GPU."""


class BFloat16Tensor(_CudaTensor):
    """bfloat16 on a GPU."""


class ByteTensor(_CudaTensor):
    """uint8 on a GPU."""


class CharTensor(_CudaTensor):
    """int8 on a GPU."""


class ShortTensor(_CudaTensor):
    """int16 on a GPU."""


class IntTensor(_CudaTensor):
    """int32 on a GPU."""


class LongTensor(_CudaTensor):
    """int64 on a GPU."""


class BoolTensor(_CudaTensor):
    """bool on a GPU."""


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
        "memory",
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
        "streams",
        "temperature",
        "tunable",
        "use_mem_pool",
    ),
    NO_GPU,
)


def __getattr__(name: str) -> Any:
    raise absent(__name__, name, ABSENT)

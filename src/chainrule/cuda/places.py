"""Which GPUs there are, and which of them ``"cuda"`` means."""

from __future__ import annotations

from time import perf_counter
from typing import Any

from chainrule.absent import refused
from chainrule.backend import devices, gpus
from chainrule.placement import current_number, set_current_number
from chainrule.tensor import device as _device

__all__ = [
    "Event",
    "NO_GPU",
    "can_device_access_peer",
    "current_device",
    "device",
    "device_count",
    "device_of",
    "get_arch_list",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "init",
    "is_available",
    "is_bf16_supported",
    "is_current_stream_capturing",
    "is_initialized",
    "needed",
    "set_device",
    "synchronize",
    "utilization",
]

NO_GPU = (
    "there is no GPU: chainrule computes on the CPU, and on GPUs with JAX (pip install "
    "'chainrule[xla]' and JAX's plugin for CUDA); ask cuda.is_available() first"
)

# --- what is there --------------------------------------------------------------------------------


def is_available() -> bool:
    """Whether tensors can live on a GPU.

    >>> import chainrule as torch
    >>> place = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    """
    return devices.available("cuda")


def is_initialized() -> bool:
    """Whether a GPU is in use."""
    return devices.is_imported() and is_available()


def device_count() -> int:
    """How many GPUs there are to compute on."""
    return devices.count("cuda")


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether the GPU computes with bfloat16."""
    return is_available() and (including_emulation or get_device_capability() >= (8, 0))


def get_arch_list() -> list[str]:
    """The kinds of GPU that are there: XLA compiles for them."""
    return [f"sm_{major}{minor}" for major, minor in _capabilities()]


def _capabilities() -> list[tuple[int, int]]:
    return sorted({gpus.capability("cuda", i) for i in range(device_count())})


def is_current_stream_capturing() -> bool:
    """Whether work is being recorded for a graph of CUDA's: XLA does so by itself."""
    return False


def init() -> None:
    """Looks for GPUs now; otherwise that is done when one is first asked for."""
    needed("init")


def needed(name: str, device: Any = None) -> int:
    """The number of a GPU, by default of the current one; an error where there is none."""
    if not is_available():
        raise RuntimeError(f"cuda.{name}: {NO_GPU}")
    number = _index(device)
    number = current_number() if number < 0 else number
    return devices.find("cuda", number).number


def current_device() -> int:
    """The number of the GPU that ``"cuda"`` means."""
    return needed("current_device")


def get_device_name(device: Any = None) -> str:
    """What the maker calls a GPU."""
    return gpus.name("cuda", needed("get_device_name", device))


def get_device_properties(device: Any = None) -> gpus.Properties:
    """Name, generation and memory of a GPU."""
    return gpus.properties("cuda", needed("get_device_properties", device))


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """The generation of a GPU: (9, 0) of an H200."""
    return gpus.capability("cuda", needed("get_device_capability", device))


can_device_access_peer = refused(
    "cuda.can_device_access_peer", "XLA moves arrays between GPUs as is best; just use .to(...)"
)
utilization = refused("cuda.utilization", "nvidia-smi tells how busy a GPU is")


class device:
    """A block that computes on the GPU of this number; None and negative numbers change nothing."""

    def __init__(self, device: Any):
        self.idx = _index(device)

    def __enter__(self) -> None:
        self._before = current_number()
        set_device(self.idx)

    def __exit__(self, *error: object) -> None:
        set_current_number(self._before)


class device_of(device):
    """A block that computes where a tensor lives."""

    def __init__(self, obj: object):
        super().__init__(getattr(obj, "device", None))


def set_device(device: Any) -> None:
    """Has ``"cuda"`` mean the GPU of this number; negative numbers change nothing."""
    if _index(device) >= 0:
        set_current_number(needed("set_device", device))


def _index(device: Any) -> int:
    """The number of a GPU, -1 for none."""
    if device is None:
        return -1
    if isinstance(device, _device):
        index = device.index
        return -1 if device.type != "cuda" or index is None else index
    if isinstance(device, str):
        return int(device.removeprefix("cuda").removeprefix(":") or 0)
    return int(device)


# --- waiting --------------------------------------------------------------------------------------


def synchronize(device: Any = None) -> None:
    """Waits until a GPU has done what it was given. On the CPU all is done when a call returns."""
    if is_initialized():
        gpus.synchronize("cuda", needed("synchronize", device))


class Event:
    """A moment on a GPU, to measure time: when all is done that it was given before.

    Args:
        enable_timing: whether the time between two is asked for.
        blocking: as PyTorch's, which changes nothing.
        interprocess: likewise.
    """

    def __init__(
        self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False
    ):
        if not is_available():
            raise RuntimeError(f"Event: {NO_GPU}. To measure time: time.perf_counter()")
        self.enable_timing = enable_timing
        self._time: float | None = None

    def record(self, stream: Any = None) -> None:
        """Notes the moment; waits for it."""
        synchronize()
        self._time = perf_counter()

    def wait(self, stream: Any = None) -> None:
        """Lets a stream wait for the moment: it does."""

    def synchronize(self) -> None:
        """Waits for the moment: :meth:`record` has."""

    def query(self) -> bool:
        """Whether the moment has come."""
        return self._time is not None

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds to another moment."""
        if not (self.enable_timing and end_event.enable_timing):
            raise ValueError("Event.elapsed_time: both events need enable_timing=True")
        if self._time is None or end_event._time is None:
            raise ValueError("Event.elapsed_time: both events must be recorded")
        return 1e3 * (end_event._time - self._time)

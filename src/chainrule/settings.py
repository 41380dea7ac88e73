"""Settings of PyTorch's that have one value here, and names of things."""

from __future__ import annotations

from chainrule.backend.precision import LEVELS, current, set_levels
from chainrule.graph import Storage
from chainrule.placement import default_place, device, set_default_place
from chainrule.tensor import Tensor
from chainrule.typing import Device

__all__ = [
    "get_default_device",
    "get_deterministic_debug_mode",
    "get_float32_matmul_precision",
    "get_num_interop_threads",
    "is_deterministic_algorithms_warn_only_enabled",
    "is_storage",
    "is_warn_always_enabled",
    "set_default_device",
    "set_deterministic_debug_mode",
    "set_float32_matmul_precision",
    "set_flush_denormal",
    "set_num_interop_threads",
    "set_warn_always",
    "typename",
]

_device = device
_DEBUG_MODES = ("default", "warn", "error")
_set: dict[str, int | bool] = {"interop": 1, "warn": False, "mode": 0}


def set_float32_matmul_precision(precision: str) -> None:
    """How products of float32 matrices are computed on devices, in all threads.

    "highest", which holds at first, is float32. "high" is TF32 on NVIDIA's GPUs (11 bits of
    precision in the operands), three products of bfloat16 on TPUs. "medium" rounds the operands to
    bfloat16 (8 bits). Sums are of float32 numbers. On the CPU nothing changes.

    >>> import chainrule as torch
    >>> torch.set_float32_matmul_precision("high")
    >>> torch.backends.cuda.matmul.allow_tf32
    True
    >>> torch.set_float32_matmul_precision("highest")
    """
    if precision not in LEVELS:
        raise ValueError(
            f"set_float32_matmul_precision: expected one of {LEVELS}, got {precision!r}"
        )
    set_levels(matmul=precision)


def get_float32_matmul_precision() -> str:
    """What :func:`set_float32_matmul_precision` set, "highest" at first."""
    return current().matmul


def set_default_device(device: Device | None) -> None:
    """Makes tensors on this device from now on, in this thread; None is the CPU.

    >>> import chainrule as torch
    >>> torch.set_default_device("cpu")
    >>> torch.get_default_device()
    device(type='cpu')
    """
    set_default_place(None if device is None else _device(device))


def get_default_device() -> device:
    """Where this thread makes tensors."""
    return default_place()


def set_num_interop_threads(num: int) -> None:
    """How many operations may run at once: it is one here, whatever is set."""
    if not isinstance(num, int) or num < 1:
        raise RuntimeError(f"set_num_interop_threads: expects a positive integer, got {num!r}")
    _set["interop"] = num


def get_num_interop_threads() -> int:
    """What :func:`set_num_interop_threads` set, 1 at first."""
    return int(_set["interop"])


def set_flush_denormal(mode: bool) -> bool:
    """Whether numbers next to zero can be made zero: never here, so False."""
    return False


def set_warn_always(b: bool) -> None:
    """Whether PyTorch's own warnings come more than once; chainrule's follow Python's filters."""
    _set["warn"] = bool(b)


def is_warn_always_enabled() -> bool:
    """What :func:`set_warn_always` set."""
    return bool(_set["warn"])


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """What to do about an operation that gives other numbers every time: there is none."""
    names = dict(enumerate(_DEBUG_MODES))
    mode = names.get(debug_mode) if isinstance(debug_mode, int) else debug_mode
    if mode not in _DEBUG_MODES:
        raise RuntimeError(
            f"set_deterministic_debug_mode: expected one of {_DEBUG_MODES} or 0, 1, 2, got "
            f"{debug_mode!r}"
        )
    _set["mode"] = _DEBUG_MODES.index(mode)


def get_deterministic_debug_mode() -> int:
    """What :func:`set_deterministic_debug_mode` set, as a number, 0 at first."""
    return int(_set["mode"])


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Whether an operation that gives other numbers every time only warns: there is none."""
    return False


def is_storage(obj: object) -> bool:
    """Whether this is what a tensor shares with its views."""
    return isinstance(obj, Storage)


def typename(obj: object) -> str:
    """The full name of an object's type; of a class or function, its own.

    >>> import chainrule as torch
    >>> torch.typename(torch.zeros(2)), torch.typename(3)
    ('chainrule.FloatTensor', 'int')
    """
    if isinstance(obj, Tensor):
        return str(obj.type())
    named = obj if hasattr(obj, "__qualname__") else type(obj)
    module, name = getattr(named, "__module__", None), getattr(named, "__qualname__", "")
    return name if module in (None, "", "builtins") else f"{module}.{name}"

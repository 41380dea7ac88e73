"""``autocast``: a block in which PyTorch computes products in 16 bits, and chainrule does not.

PyTorch turns autocast off, with a warning, where the device or the dtype asked for is not there.
Here there is no dtype of 16 bits in which a product would be faster, so every block is of that
kind: it is computed in the dtypes of its tensors, more exactly than was asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self, TypeVar

from chainrule.absent import warn_once
from chainrule.backend import dtypes
from chainrule.typing import DType

__all__ = [
    "autocast",
    "autocast_decorator",
    "custom_bwd",
    "custom_fwd",
    "get_autocast_dtype",
    "is_autocast_available",
    "is_autocast_cache_enabled",
    "is_autocast_enabled",
    "set_autocast_enabled",
]

F = TypeVar("F", bound=Callable[..., Any])
DEVICES = ("cpu", "cuda", "hpu", "ipu", "maia", "mps", "mtia", "xla", "xpu")
NOTHING_CHANGES = (
    "autocast: nothing is computed in 16 bits here, so the block changes nothing: its results have "
    "the dtypes of its tensors, and their precision. enabled=False says the same without a warning"
)


class autocast:
    """A block, or a decorated function, that PyTorch would compute in mixed precision.

    Here it changes nothing. With ``enabled=True`` that is said once, as a warning.

    Args:
        device_type: ``"cpu"``, ``"cuda"`` or another of PyTorch's.
        dtype: the dtype to compute products in.
        enabled: whether to do so.
        cache_enabled: whether to keep parameters in that dtype.

    >>> import chainrule as torch
    >>> use_amp = torch.cuda.is_available()
    >>> with torch.autocast("cuda", dtype=torch.float16, enabled=use_amp):
    ...     (torch.ones(2, 2) @ torch.ones(2, 2)).dtype
    chainrule.float32
    """

    def __init__(
        self,
        device_type: str,
        dtype: DType | None = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ):
        _check("autocast", device_type)
        if not is_autocast_available(device_type):
            raise RuntimeError(
                f"autocast: User specified an unsupported autocast device_type {device_type!r}; "
                f"PyTorch has {', '.join(DEVICES)}"
            )
        if enabled:
            warn_once(NOTHING_CHANGES)
        self.device = device_type
        self.fast_dtype = dtype

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        return None

    def __call__(self, func: F) -> F:
        return func


def autocast_decorator(autocast_instance: autocast, func: F) -> F:
    """The function, as ``autocast_instance(func)`` gives it: itself."""
    return autocast_instance(func)


def is_autocast_available(device_type: str) -> bool:
    """Whether PyTorch knows autocast for a device of this type."""
    return device_type in DEVICES


def is_autocast_enabled(device_type: str | None = None) -> bool:
    """Whether products are being computed in 16 bits: never here."""
    return False


def is_autocast_cache_enabled() -> bool:
    """Whether parameters are kept in 16 bits: never here."""
    return False


def get_autocast_dtype(device_type: str) -> dtypes.dtype:
    """The dtype in which a product of default tensors is computed in a block: the default one."""
    return dtypes.get_default_dtype()


def set_autocast_enabled(device_type: str | bool, enabled: bool | None = None) -> None:
    """Turns autocast off, as it always is; turning it on changes nothing and warns once."""
    if enabled if enabled is not None else device_type:
        warn_once(NOTHING_CHANGES)


def custom_fwd(
    fwd: F | None = None, *, device_type: str, cast_inputs: DType | None = None
) -> F | Callable[[F], F]:
    """Decorates the forward of a ``Function``: outside autocast, as everything is, the function.

    ``cast_inputs`` is the dtype that autocast would give its inputs.
    """
    _check("custom_fwd", device_type)
    return _same if fwd is None else fwd


def custom_bwd(bwd: F | None = None, *, device_type: str) -> F | Callable[[F], F]:
    """Decorates the backward of a ``Function``: the function, as for :func:`custom_fwd`."""
    _check("custom_bwd", device_type)
    return _same if bwd is None else bwd


def _same(function: F) -> F:
    return function


def _check(op: str, device_type: str) -> None:
    if not isinstance(device_type, str):
        raise ValueError(
            f"{op}: Expected `device_type` of type `str`, got: `{type(device_type).__name__}`"
        )

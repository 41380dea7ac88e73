"""``autocast``: a block in which products on a device are computed of operands of 16 bits.

Inside, whatever multiplies matrices or convolves float32 tensors on a device of the kind named
rounds its operands to bfloat16 or float16 and sums in float32 (``ops/core/mixing.py``); so does its
derivative, wherever the backward pass is started. Tensors stay float32, and so does everything
else: norms, losses, sums.

On the CPU there is no type of 16 bits in which a product would be faster: such a block, and one for
a device that is not there, changes nothing, as PyTorch's does without the device.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Self, TypeVar

from chainrule.absent import warn_once
from chainrule.backend import devices, dtypes
from chainrule.graph import mode
from chainrule.ops.core.mixing import autocasting, set_autocast
from chainrule.tensor import Tensor
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
DEVICES = ("cpu", "cuda", "hpu", "ipu", "maia", "mps", "mtia", "tpu", "xla", "xpu")
DEFAULTS = {"cuda": dtypes.float16, "tpu": dtypes.bfloat16, "xla": dtypes.bfloat16}
NARROW = (dtypes.bfloat16, dtypes.float16)
NOTHING_CHANGES = (
    "autocast: nothing is computed in 16 bits here, so the block changes nothing: its results have "
    "the dtypes of its tensors, and their precision. enabled=False says the same without a warning"
)


class autocast:
    """A block, or a decorated function, with products in mixed precision on devices.

    Blocks may stand in each other, and count for the thread that is in them. Where there is no such
    device nothing changes; with ``enabled=True`` that is said once, as a warning.

    Args:
        device_type: "cuda", "tpu" or "xla", the devices that it is for; "cpu" changes nothing.
        dtype: the dtype that operands are rounded to: bfloat16, or float16, which is PyTorch's
            default for "cuda" and needs a :class:`~chainrule.amp.GradScaler`.
        enabled: whether to do so; False ends it for a part of an outer block.
        cache_enabled: nothing: XLA rounds a parameter once for all its uses.

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
                f"there are {', '.join(DEVICES)}"
            )
        self.device = device_type
        self.fast_dtype = get_autocast_dtype(device_type) if dtype is None else dtype
        self.enabled = enabled and _takes_effect(device_type, self.fast_dtype)
        self._blocks: list[Any] = []

    def __enter__(self) -> Self:
        self._blocks.append(autocasting(_with(self.device, self.fast_dtype, self.enabled)))
        self._blocks[-1].__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._blocks.pop().__exit__(*error)

    def __call__(self, func: F) -> F:
        if self.device not in DEFAULTS:
            return func

        @functools.wraps(func)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with autocasting(_with(self.device, self.fast_dtype, self.enabled)):
                return func(*args, **kwargs)

        return inside  # type: ignore[return-value]


def autocast_decorator(autocast_instance: autocast, func: F) -> F:
    """The function, as ``autocast_instance(func)`` gives it."""
    return autocast_instance(func)


def is_autocast_available(device_type: str) -> bool:
    """Whether autocast is known for a device of this type."""
    return device_type in DEVICES


def is_autocast_enabled(device_type: str | None = None) -> bool:
    """Whether products on such devices ("cuda", if none is named) are being rounded to 16 bits."""
    return (device_type or "cuda") in mode.autocast


def is_autocast_cache_enabled() -> bool:
    """Whether parameters are kept in 16 bits: never here."""
    return False


def get_autocast_dtype(device_type: str) -> dtypes.dtype:
    """The dtype that operands are rounded to in a block; on the CPU, the default one."""
    now = mode.autocast.get(device_type)
    if now is not None:
        return dtypes.from_array_dtype(now)
    return DEFAULTS.get(device_type) or dtypes.get_default_dtype()


def set_autocast_enabled(device_type: str | bool, enabled: bool | None = None) -> None:
    """Turns autocast for such devices on or off in this thread; one argument is for "cuda"."""
    kind = device_type if isinstance(device_type, str) else "cuda"
    wanted = bool(device_type if enabled is None else enabled)
    dtype = get_autocast_dtype(kind)
    set_autocast(_with(kind, dtype, wanted and _takes_effect(kind, dtype)))


def custom_fwd(
    fwd: F | None = None, *, device_type: str, cast_inputs: DType | None = None
) -> F | Callable[[F], F]:
    """Decorates the forward of a ``Function``: its backward will compute under the same autocast.

    With ``cast_inputs``, inside autocast, floating tensors on such devices are given to it in that
    dtype, and what it computes is outside of autocast.
    """
    _check("custom_fwd", device_type)
    if fwd is None:
        return lambda f: _forward(f, device_type, cast_inputs)
    return _forward(fwd, device_type, cast_inputs)


def _forward(inner: Any, device_type: str, cast_inputs: DType | None) -> Any:
    @functools.wraps(inner)
    def forward(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        types = dict(mode.autocast)
        if cast_inputs is not None and device_type in types:
            args = _cast(args, device_type, cast_inputs)
            kwargs = _cast(kwargs, device_type, cast_inputs)
            del types[device_type]
        ctx._autocast = types
        with autocasting(types):
            return inner(ctx, *args, **kwargs)

    return forward


def custom_bwd(bwd: F | None = None, *, device_type: str) -> F | Callable[[F], F]:
    """Decorates the backward of a ``Function``: under autocast as its forward was."""
    _check("custom_bwd", device_type)
    return _backward if bwd is None else _backward(bwd)


def _backward(inner: Any) -> Any:
    @functools.wraps(inner)
    def backward(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        with autocasting(getattr(ctx, "_autocast", {})):
            return inner(ctx, *args, **kwargs)

    return backward


def _with(kind: str, dtype: DType, enabled: bool) -> dict[str, Any]:
    """The types of autocast in this thread, with one for such devices, or without."""
    others = {k: t for k, t in mode.autocast.items() if k != kind}
    return {**others, kind: dtypes.to_array_dtype(dtype)} if enabled else others


def _takes_effect(device_type: str, dtype: DType) -> bool:
    """Whether there is such a device, and the dtype is one that it rounds to; warns if not."""
    if device_type not in DEFAULTS or not devices.available(device_type):
        warn_once(NOTHING_CHANGES, stacklevel=3)
        return False
    if dtypes.as_dtype(dtype) not in NARROW:
        warn_once(
            f"autocast: {device_type!r} rounds to bfloat16 or float16, got {dtype}; the block "
            "changes nothing",
            stacklevel=3,
        )
        return False
    return True


def _cast(tree: Any, kind: str, dtype: DType) -> Any:
    """Arguments with floating tensors on such devices in another dtype; float64 stays."""
    if isinstance(tree, Tensor):
        there = tree.device.type == kind and tree.is_floating_point()
        return tree.to(dtype) if there and tree.dtype is not dtypes.float64 else tree
    if isinstance(tree, (list, tuple)):
        return type(tree)([_cast(part, kind, dtype) for part in tree])
    if isinstance(tree, dict):
        return {key: _cast(part, kind, dtype) for key, part in tree.items()}
    return tree


def _check(op: str, device_type: str) -> None:
    if not isinstance(device_type, str):
        raise ValueError(
            f"{op}: Expected `device_type` of type `str`, got: `{type(device_type).__name__}`"
        )

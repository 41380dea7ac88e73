"""Mixed precision on a GPU, under its old name: see ``chainrule.amp``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from chainrule import amp
from chainrule.backend import devices
from chainrule.typing import DType

__all__ = [
    "GradScaler",
    "amp_definitely_not_available",
    "autocast",
    "custom_bwd",
    "custom_fwd",
]


class autocast(amp.autocast):
    """``amp.autocast("cuda")``."""

    def __init__(
        self, enabled: bool = True, dtype: DType | None = None, cache_enabled: bool = True
    ):
        super().__init__("cuda", dtype, enabled, cache_enabled)


class GradScaler(amp.GradScaler):
    """``amp.GradScaler("cuda")``."""

    def __init__(
        self,
        init_scale: float = 65536.0,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ):
        super().__init__(
            "cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled
        )


def custom_fwd(fwd: Callable[..., Any] | None = None, *, cast_inputs: DType | None = None) -> Any:
    """Decorates a Function's forward: :func:`chainrule.amp.custom_fwd` for a GPU."""
    return amp.custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)


def custom_bwd(bwd: Callable[..., Any]) -> Any:
    """Decorates a Function's backward: :func:`chainrule.amp.custom_bwd` for a GPU."""
    return amp.custom_bwd(bwd, device_type="cuda")


def amp_definitely_not_available() -> bool:
    """Whether there is no GPU to compute on in mixed precision."""
    return not devices.available("cuda")

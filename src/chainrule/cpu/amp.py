"""Mixed precision on the CPU, under its old name: see ``chainrule.amp``."""

from __future__ import annotations

from chainrule import amp
from chainrule.typing import DType

__all__ = ["GradScaler", "autocast"]


class autocast(amp.autocast):
    """``amp.autocast("cpu")``: changes nothing."""

    def __init__(
        self, enabled: bool = True, dtype: DType | None = None, cache_enabled: bool = True
    ):
        super().__init__("cpu", dtype, enabled, cache_enabled)


class GradScaler(amp.GradScaler):
    """``amp.GradScaler("cpu")``."""

    def __init__(
        self,
        init_scale: float = 65536.0,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ):
        super().__init__("cpu", init_scale, growth_factor, backoff_factor, growth_interval, enabled)

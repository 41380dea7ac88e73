"""Mixed precision: PyTorch's ``torch.amp``.

Under ``autocast`` products on a device are computed of operands of 16 bits, with float32 sums; on
the CPU it changes nothing, and says so once. :class:`GradScaler` scales losses everywhere.
"""

from chainrule.amp.autocast_mode import (
    autocast,
    autocast_decorator,
    custom_bwd,
    custom_fwd,
    get_autocast_dtype,
    is_autocast_available,
    is_autocast_cache_enabled,
    is_autocast_enabled,
    set_autocast_enabled,
)
from chainrule.amp.grad_scaler import GradScaler

__all__ = [
    "GradScaler",
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

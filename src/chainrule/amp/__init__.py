"""Mixed precision: PyTorch's ``torch.amp``, where nothing is gained by it.

Everything is computed in the dtype of its tensors. A block under ``autocast`` changes nothing, and
says so once; :class:`GradScaler` scales on the CPU as in PyTorch.
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

"""What the processor can do."""

from __future__ import annotations

from chainrule import backend

__all__ = ["get_cpu_capability"]


def get_cpu_capability() -> str:
    """The instruction set that the compiled kernels use, "DEFAULT" where there are none."""
    native = backend.native_module()
    return "DEFAULT" if native is None else str(native.get_isa()).upper()

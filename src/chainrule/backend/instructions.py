"""Which instructions the compiled kernels use: the best that the processor has, or those chosen.

Every kernel is compiled for several instruction sets (``native/isa.hpp``). ``CHAINRULE_ISA`` names
another one than the best: to see what a program costs on an older processor, or to compare.
"""

from __future__ import annotations

from typing import Any

__all__ = ["NAMES", "choose", "refuse", "supported"]

NAMES = ("baseline", "avx2", "avx512")  # from the least to the most, as in native/isa.hpp


def supported(native: Any) -> list[str]:
    """The sets that the processor has and the module was compiled for."""
    before = native.get_isa()
    found = [name for name in NAMES if native.set_isa(name)]
    native.set_isa(before)
    return found


def choose(native: Any, asked: str | None) -> None:
    """Uses the instruction set of this name, the best one if none is asked for."""
    if not asked:
        return
    _known(asked)
    if not native.set_isa(asked):
        raise ValueError(
            f"CHAINRULE_ISA={asked}: this processor has no {asked}; "
            f"set it to one of {', '.join(supported(native))}, or unset it for the best one"
        )


def refuse(asked: str | None, why_not_native: str) -> None:
    """An error if instructions are asked for, but no compiled kernels could use them."""
    if asked:
        _known(asked)
        raise ValueError(
            f"CHAINRULE_ISA={asked} chooses the instructions of compiled kernels, and there are "
            f"none: {why_not_native}; unset it"
        )


def _known(asked: str) -> None:
    if asked not in NAMES:
        raise ValueError(
            f"CHAINRULE_ISA={asked}: no such instruction set; set it to one of {', '.join(NAMES)}, "
            "or unset it for the best one"
        )

"""Numbers that have names, and the limits of the types of elements."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from chainrule.backend import dtypes

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["can_cast", "e", "finfo", "iinfo", "inf", "nan", "newaxis", "pi"]

e, inf, nan, pi = math.e, math.inf, math.nan, math.pi
newaxis = None  # x[:, newaxis] has a dimension more


class finfo:
    """What a floating type can hold, the default one if none is named.

    >>> import chainrule
    >>> chainrule.finfo(chainrule.float32).eps
    1.1920928955078125e-07
    """

    def __init__(self, type: dtypes.dtype | npt.DTypeLike | None = None):
        d = dtypes.get_default_dtype() if type is None else dtypes.as_dtype(type)
        if d.category < dtypes.FLOATING:
            raise TypeError(
                f"finfo(): requires a floating point type, got {d}; use iinfo to handle integers"
            )
        if d is dtypes.bfloat16:
            self._of_bfloat16()
            return
        known = np.finfo(d.array_dtype)
        self.bits = known.bits
        self.dtype = str(known.dtype)
        self.eps, self.tiny = float(known.eps), float(known.tiny)
        self.max, self.min = float(known.max), float(known.min)
        self.resolution = 10.0**-known.precision
        self.smallest_normal = self.tiny

    def _of_bfloat16(self) -> None:
        """The range of float32 with 8 bits of precision."""
        self.bits, self.dtype = 16, "bfloat16"
        self.eps, self.tiny = 2.0**-7, 2.0**-126
        self.max = (2 - self.eps) * 2.0**127
        self.min = -self.max
        self.resolution = 0.01
        self.smallest_normal = self.tiny

    def __repr__(self) -> str:
        names = ("resolution", "min", "max", "eps", "smallest_normal", "tiny")
        values = ", ".join(f"{name}={getattr(self, name):g}" for name in names)
        return f"finfo({values}, dtype={self.dtype})"


class iinfo:
    """What an integer type can hold.

    >>> import chainrule
    >>> chainrule.iinfo(chainrule.int8).max
    127
    """

    def __init__(self, type: dtypes.dtype | npt.DTypeLike):
        d = dtypes.as_dtype(type)
        if d.category != dtypes.INTEGER:
            raise TypeError(
                f"iinfo(): requires an integer type, got {d}; use finfo to handle floats"
            )
        known = np.iinfo(d.array_dtype)
        self.bits, self.dtype = known.bits, d.name
        self.max, self.min = int(known.max), int(known.min)

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"


def can_cast(from_: dtypes.dtype | npt.DTypeLike, to: dtypes.dtype | npt.DTypeLike) -> bool:
    """Whether a change in place may turn one type into the other: the kind may grow, not shrink.

    >>> import chainrule
    >>> chainrule.can_cast(chainrule.float64, chainrule.float32)
    True
    >>> chainrule.can_cast(chainrule.float32, chainrule.int64)
    False
    """
    return dtypes.as_dtype(from_).category <= dtypes.as_dtype(to).category

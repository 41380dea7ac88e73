"""Windows for spectra: weights that fade out at the ends of a piece of a signal."""

from __future__ import annotations

import math
from typing import Unpack

from chainrule.backend import dtypes
from chainrule.ops.core.arguments import check_device, placed, whole
from chainrule.ops.core.promotion import cast
from chainrule.ops.creation.patterns import arange, ones
from chainrule.ops.elementwise.complex_numbers import abs
from chainrule.ops.elementwise.functions import cos, sqrt
from chainrule.ops.elementwise.options import clamp
from chainrule.ops.elementwise.special import i0
from chainrule.tensor import Tensor
from chainrule.typing import Device, DType, Memory

__all__ = [
    "bartlett_window",
    "blackman_window",
    "hamming_window",
    "hann_window",
    "kaiser_window",
]
METHODS: tuple[str, ...] = ()
INPLACE: tuple[str, ...] = ()


def places(op: str, n: int, periodic: bool, device: Device | None, memory: Memory) -> Tensor:
    """0 to 1 in n places; without the last one, at which a period begins anew, if ``periodic``."""
    check_device(op, device, memory)
    if whole(op, "window_length", n) < 0:
        raise RuntimeError(f"{op}: requires non-negative window_length, got window_length={n}")
    if n <= 1:
        return ones(n, dtype=dtypes.float64) / 2
    return arange(n, dtype=dtypes.float64) / (n if periodic else n - 1)


def as_window(values: Tensor, dtype: DType | None, requires_grad: bool) -> Tensor:
    """The values in the type that was asked for."""
    out = cast(values, dtypes.get_default_dtype() if dtype is None else dtypes.as_dtype(dtype))
    return out.requires_grad_(requires_grad)


@placed
def hann_window(
    window_length: int,
    periodic: bool = True,
    *,
    dtype: DType | None = None,
    device: Device | None = None,
    requires_grad: bool = False,
    **memory: Unpack[Memory],
) -> Tensor:
    """sin^2 of half a period.

    >>> import chainrule
    >>> chainrule.hann_window(4)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    t = places("hann_window", window_length, periodic, device, memory)
    return as_window(0.5 - 0.5 * cos(2 * math.pi * t), dtype, requires_grad)


@placed
def hamming_window(
    window_length: int,
    periodic: bool = True,
    alpha: float = 0.54,
    beta: float = 0.46,
    *,
    dtype: DType | None = None,
    device: Device | None = None,
    requires_grad: bool = False,
    **memory: Unpack[Memory],
) -> Tensor:
    """alpha - beta cos(2 pi t)"""
    t = places("hamming_window", window_length, periodic, device, memory)
    return as_window(alpha - beta * cos(2 * math.pi * t), dtype, requires_grad)


@placed
def blackman_window(
    window_length: int,
    periodic: bool = True,
    *,
    dtype: DType | None = None,
    device: Device | None = None,
    requires_grad: bool = False,
    **memory: Unpack[Memory],
) -> Tensor:
    """0.42 - 0.5 cos(2 pi t) + 0.08 cos(4 pi t)"""
    t = places("blackman_window", window_length, periodic, device, memory)
    values = 0.42 - 0.5 * cos(2 * math.pi * t) + 0.08 * cos(4 * math.pi * t)
    return as_window(values, dtype, requires_grad)


@placed
def bartlett_window(
    window_length: int,
    periodic: bool = True,
    *,
    dtype: DType | None = None,
    device: Device | None = None,
    requires_grad: bool = False,
    **memory: Unpack[Memory],
) -> Tensor:
    """A triangle."""
    t = places("bartlett_window", window_length, periodic, device, memory)
    return as_window(1 - abs(2 * t - 1), dtype, requires_grad)


@placed
def kaiser_window(
    window_length: int,
    periodic: bool = True,
    beta: float = 12.0,
    *,
    dtype: DType | None = None,
    device: Device | None = None,
    requires_grad: bool = False,
    **memory: Unpack[Memory],
) -> Tensor:
    """i0(beta sqrt(1 - (2t - 1)^2)) / i0(beta)"""
    t = places("kaiser_window", window_length, periodic, device, memory)
    inside = sqrt(clamp(1 - (2 * t - 1) ** 2, min=0.0))
    return as_window(i0(beta * inside) / i0(beta * ones((), dtype=t.dtype)), dtype, requires_grad)

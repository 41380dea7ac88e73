"""Tensors to test with."""

from __future__ import annotations

import math
from collections.abc import Sequence

from chainrule.backend import dtypes
from chainrule.ops.core.arguments import check_device
from chainrule.ops.creation.sampling import rand, randint
from chainrule.ops.elementwise.complex_numbers import complex as complex_of
from chainrule.ops.elementwise.logic import where
from chainrule.tensor import Tensor
from chainrule.typing import Device, DType

__all__ = ["make_tensor"]

_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
_SMALLEST = {"float16": 2.0**-14, "float32": 2.0**-126, "float64": 2.0**-1022}


def make_tensor(
    *shape: int | Sequence[int],
    dtype: DType,
    device: Device,
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
) -> Tensor:
    """A tensor of random values from ``low`` to below ``high``.

    By default from -9 to 9, whole numbers to 9 included, and from 0 on without a sign.

    Args:
        noncontiguous: whether the elements lie apart in memory.
        exclude_zero: whether zeros are replaced: by 1, or the smallest normal number.

    >>> import chainrule as torch
    >>> torch.testing.make_tensor(2, 3, dtype=torch.float32, device="cpu").shape
    chainrule.Size([2, 3])
    """
    check_device("make_tensor", device)
    kind = dtypes.as_dtype(dtype)
    sizes = [n for part in shape for n in (part if isinstance(part, Sequence) else (part,))]
    if requires_grad and kind.category < dtypes.FLOATING:
        raise ValueError(
            "make_tensor: `requires_grad=True` is not supported for boolean and integral dtypes, "
            f"but got dtype={kind}"
        )
    apart = noncontiguous and math.prod(sizes) > 1
    if apart:
        sizes[-1] *= 2
    result = _drawn(kind, sizes, low, high)
    if apart:
        result = result[..., 1::2]
    if exclude_zero:
        tiny = _SMALLEST.get(_part(kind).name, 1)
        zero = result == 0
        result = where(zero, complex(tiny, tiny) if kind.is_complex else tiny, result).to(kind)
    return result.requires_grad_(requires_grad)


def _drawn(kind: dtypes.dtype, sizes: list[int], low: float | None, high: float | None) -> Tensor:
    if kind.category < dtypes.FLOATING:
        least, most = _range(kind)
        low, high = _limits(kind, low, high, 10, least, most)
        return randint(math.ceil(low), math.ceil(high), sizes, dtype=kind)
    low, high = _limits(kind, low, high, 9, -math.inf, math.inf)
    parts = 2 if kind.is_complex else 1
    values = [low + (high - low) * rand(sizes, dtype=_part(kind)) for _ in range(parts)]
    return complex_of(*values) if kind.is_complex else values[0]


def _part(kind: dtypes.dtype) -> dtypes.dtype:
    """The type of the real part."""
    return {"complex64": dtypes.float32, "complex128": dtypes.float64}.get(kind.name, kind)


def _range(kind: dtypes.dtype) -> tuple[int, int]:
    """The least whole number of a type, and the one behind the largest that can be drawn."""
    if kind.name in _BITS:
        half = 2 ** (_BITS[kind.name] - 1)
        return -half, half - (kind.name == "int64")
    return 0, 2 if kind.name == "bool" else 256


def _limits(
    kind: dtypes.dtype,
    low: float | None,
    high: float | None,
    default_high: float,
    least: float,
    most: float,
) -> tuple[float, float]:
    low = -9 if low is None else low
    high = default_high if high is None else high
    if low != low or high != high:
        raise ValueError(f"make_tensor: `low` and `high` cannot be NaN, but got {low=} and {high=}")
    if low >= high:
        raise ValueError(
            f"make_tensor: `low` must be less than `high`, but got {low} >= {high}; full() makes "
            "tensors of one value"
        )
    if high < least or low >= most:
        raise ValueError(
            f"make_tensor: The value interval specified by `low` and `high` is [{low}, {high}), "
            f"but {kind} only supports [{least}, {most})"
        )
    return max(low, least), min(high, most)

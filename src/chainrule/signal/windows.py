"""Windows: weights that fade out at both ends of M samples.

A window is symmetric unless ``sym=False`` asks for a periodic one: M samples of the symmetric one
of M + 1, for spectra. Older names of some are at the top: ``chainrule.hann_window``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, TypedDict, Unpack

from chainrule.backend import dtypes
from chainrule.ops.creation.patterns import arange, ones
from chainrule.ops.creation.windows import as_window, places
from chainrule.ops.elementwise.complex_numbers import abs
from chainrule.ops.elementwise.functions import cos, exp, sin, sqrt, square
from chainrule.ops.elementwise.options import clamp
from chainrule.ops.elementwise.special import i0
from chainrule.tensor import Tensor, strided
from chainrule.typing import Device, DType

__all__ = [
    "bartlett",
    "blackman",
    "cosine",
    "exponential",
    "gaussian",
    "general_cosine",
    "general_hamming",
    "hamming",
    "hann",
    "kaiser",
    "nuttall",
]


class Options(TypedDict, total=False):
    """What every window is told: whether it is symmetric, and about the tensor it is in."""

    sym: bool
    dtype: DType | None
    layout: Any
    device: Device | None
    requires_grad: bool


def _times(op: str, M: int, options: Options) -> Tensor:
    """0 to 1 in M places, of which a periodic window leaves out the last."""
    for name in options:
        if name not in Options.__annotations__:
            raise TypeError(f"{op}() got an unexpected keyword argument {name!r}")
    if options.get("layout", strided) is not strided:
        raise ValueError(
            f"{op}: is implemented for strided tensors only, got layout={options['layout']}"
        )
    if isinstance(M, int) and M < 0:
        raise ValueError(f"{op}: requires non-negative window length, got M={M}")
    d = options.get("dtype") or dtypes.get_default_dtype()
    if dtypes.as_dtype(d) not in (dtypes.float32, dtypes.float64):
        raise ValueError(f"{op}: expects float32 or float64 dtypes, got {d}")
    return places(op, M, not options.get("sym", True), options.get("device"), {})


def _samples(op: str, M: int, options: Options) -> Tensor:
    """0 to M - 1, after the checks of every window."""
    return arange(len(_times(op, M, options)), dtype=dtypes.float64)


def _span(M: int, options: Options) -> int:
    """How many steps the window takes from end to end."""
    return M if not options.get("sym", True) and M > 1 else M - 1


def _finished(values: Tensor, options: Options) -> Tensor:
    return as_window(values, options.get("dtype"), options.get("requires_grad", False))


def _sum_of_cosines(op: str, M: int, a: Iterable[float], options: Options) -> Tensor:
    coefficients = list(a)
    if not coefficients:
        raise ValueError(f"{op}: coefficients cannot be empty, got a={coefficients}")
    t = _times(op, M, options)
    if M == 1:
        return _finished(ones(1, dtype=dtypes.float64), options)
    values = 0 * t
    for i, c in enumerate(coefficients):
        values = values + (-1) ** i * c * cos(2 * math.pi * i * t)
    return _finished(values, options)


def general_cosine(M: int, *, a: Iterable[float], **options: Unpack[Options]) -> Tensor:
    """a[0] - a[1] cos(2 pi t) + a[2] cos(4 pi t) - ...

    >>> import chainrule
    >>> chainrule.signal.windows.general_cosine(4, a=[0.5, 0.5], sym=False)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    return _sum_of_cosines("general_cosine", M, a, options)


def general_hamming(M: int, *, alpha: float = 0.54, **options: Unpack[Options]) -> Tensor:
    """alpha - (1 - alpha) cos(2 pi t)"""
    return _sum_of_cosines("general_hamming", M, [alpha, 1 - alpha], options)


def hamming(M: int, **options: Unpack[Options]) -> Tensor:
    """0.54 - 0.46 cos(2 pi t)"""
    return _sum_of_cosines("hamming", M, [0.54, 0.46], options)


def hann(M: int, **options: Unpack[Options]) -> Tensor:
    """sin(pi t)^2

    >>> import chainrule
    >>> chainrule.signal.windows.hann(3)
    tensor([0., 1., 0.])
    """
    return _sum_of_cosines("hann", M, [0.5, 0.5], options)


def blackman(M: int, **options: Unpack[Options]) -> Tensor:
    """0.42 - 0.5 cos(2 pi t) + 0.08 cos(4 pi t)"""
    return _sum_of_cosines("blackman", M, [0.42, 0.5, 0.08], options)


def nuttall(M: int, **options: Unpack[Options]) -> Tensor:
    """The sum of four cosines with the smallest side lobes (Nuttall, 1981)."""
    return _sum_of_cosines("nuttall", M, [0.3635819, 0.4891775, 0.1365995, 0.0106411], options)


def bartlett(M: int, **options: Unpack[Options]) -> Tensor:
    """A triangle: 1 - |2 t - 1|"""
    return _finished(1 - abs(2 * _times("bartlett", M, options) - 1), options)


def cosine(M: int, **options: Unpack[Options]) -> Tensor:
    """sin(pi (m + 1/2) / M) at m = 0, ..., M - 1; a periodic window divides by M + 1."""
    m = _samples("cosine", M, options)
    return _finished(sin((m + 0.5) * (math.pi / (_span(M, options) + 1 or 1))), options)


def exponential(
    M: int, *, center: float | None = None, tau: float = 1.0, **options: Unpack[Options]
) -> Tensor:
    """exp(-|m - center| / tau) at m = 0, ..., M - 1; the center is in the middle if not given."""
    if tau <= 0:
        raise ValueError(f"exponential: tau must be positive, got {tau}")
    if options.get("sym", True) and center is not None:
        raise ValueError(
            f"exponential: center must be None for symmetric windows, got center={center}"
        )
    m = _samples("exponential", M, options)
    middle = _span(M, options) / 2 if center is None else center
    return _finished(exp(-abs(m - middle) / tau), options)


def gaussian(M: int, *, std: float = 1.0, **options: Unpack[Options]) -> Tensor:
    """exp(-((m - middle) / std)^2 / 2) at m = 0, ..., M - 1"""
    if std <= 0:
        raise ValueError(f"gaussian: standard deviation must be positive, got std={std}")
    m = _samples("gaussian", M, options)
    return _finished(exp(-0.5 * square((m - _span(M, options) / 2) / std)), options)


def kaiser(M: int, *, beta: float = 12.0, **options: Unpack[Options]) -> Tensor:
    """i0(beta sqrt(1 - (2 t - 1)^2)) / i0(beta)"""
    if beta < 0:
        raise ValueError(f"kaiser: beta must be non-negative, got {beta}")
    t = _times("kaiser", M, options)
    inside = sqrt(clamp(1 - square(2 * t - 1), min=0.0))
    return _finished(
        i0(beta * inside) / i0(beta * ones((), dtype=t.dtype, device=t.device)), options
    )

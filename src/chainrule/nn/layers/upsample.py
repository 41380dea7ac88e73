"""Resampling: signals, images and volumes at another size.

Every mode but "area" works along one dimension after another. Along a dimension, output i is a
combination of the inputs near its place x = (i + 1/2) n_in / n_out - 1/2 (with ``align_corners``:
x = i (n_in - 1) / (n_out - 1)): of one input, of the two around it or, for "bicubic", of four.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from chainrule.ops.core.arguments import placed_like
from chainrule.ops.core.rounding import rounds_once
from chainrule.backend import dtypes
from chainrule.graph import Mode, mode
from chainrule.nn.module.base import Module
from chainrule.ops.creation.patterns import arange
from chainrule.ops.elementwise.functions import floor
from chainrule.ops.elementwise.logic import where
from chainrule.ops.elementwise.options import clamp
from chainrule.ops.index.reading import index_select, one_hot
from chainrule.ops.linalg.matmul import linear, matmul
from chainrule.ops.layers.avg_pool import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
    repeated_pixels,
)
from chainrule.ops.core.promotion import cast
from chainrule.ops.shape.views import reshape, unsqueeze
from chainrule.tensor import Tensor, of_array
from chainrule.typing import Sizes

__all__ = ["Upsample", "UpsamplingBilinear2d", "UpsamplingNearest2d", "interpolate"]

# The numbers of spatial dimensions each mode is for.
_MODES = {
    "nearest": (1, 2, 3),
    "nearest-exact": (1, 2, 3),
    "area": (1, 2, 3),
    "linear": (1,),
    "bilinear": (2,),
    "trilinear": (3,),
    "bicubic": (2,),
}
Factors = float | Sequence[float]  # one for all dimensions, or one for each
_AREA = (adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d)


@rounds_once
def interpolate(
    input: Tensor,
    size: Sizes | None = None,
    scale_factor: Factors | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """``input`` (N, C, *) resampled to ``size``, or to ``scale_factor`` times its size.

    Along each dimension y[i] = sum over k of w(i, k) x[k], the weights being those of ``mode``.

    ``mode`` is "nearest", "nearest-exact" (which rounds half a pixel better), "area" (averages),
    "linear" (L), "bilinear" or "bicubic" (H, W) or "trilinear" (Z, H, W). With ``align_corners``
    the outermost elements' centers stay where they are, else their outer edges.
    ``recompute_scale_factor`` takes the ratio of the rounded sizes instead of ``scale_factor``.
    ``antialias`` (of "bilinear" and "bicubic") widens the filter where the image shrinks, so that
    every input counts.

    >>> import chainrule
    >>> from chainrule.nn.functional import interpolate
    >>> x = chainrule.tensor([[[0.0, 1.0]]])
    >>> interpolate(x, 4), interpolate(x, 4, mode="linear")
    (tensor([[[0., 0., 1., 1.]]]), tensor([[[0.0000, 0.2500, 0.7500, 1.0000]]]))
    """
    spatial = tuple(input.shape[2:])
    _check_mode(input, mode, align_corners, antialias)
    sizes, scales = _sizes(spatial, size, scale_factor, recompute_scale_factor or mode == "area")
    if mode == "area":
        return _AREA[len(spatial) - 1](input, sizes)
    if 0 in input.shape[1:] or min(sizes) < 1:
        raise RuntimeError(
            "interpolate: input and output sizes should be greater than 0, but got input of shape "
            f"{tuple(input.shape)} and output size {sizes}"
        )
    if mode.startswith("nearest"):
        out = _nearest(input, sizes, scales, mode == "nearest-exact")
        return out * 1 if out is input else out
    out = input
    for dim, n, scale in zip(range(-len(sizes), 0), sizes, scales, strict=True):
        make = _antialiased if antialias else _matrix
        out = _weighted(out, dim, n, scale, mode == "bicubic", bool(align_corners), make)
    return out * 1 if out is input else out


# --- arguments ------------------------------------------------------------------------------------


def _check_mode(input: Tensor, mode: str, align_corners: bool | None, antialias: bool) -> None:
    nd = input.ndim - 2
    if mode not in _MODES or nd not in (1, 2, 3):
        raise NotImplementedError(
            "interpolate: only 3D, 4D and 5D input tensors are supported, for the modes "
            f"{' | '.join(_MODES)}; got shape {tuple(input.shape)} and mode {mode!r}"
        )
    if nd not in _MODES[mode]:
        raise NotImplementedError(
            f"interpolate: got {nd + 2}D input, but mode {mode!r} needs {_MODES[mode][0] + 2}D"
        )
    if align_corners is not None and len(_MODES[mode]) == 3:
        raise ValueError(
            "interpolate: align_corners can only be set with the interpolating modes: linear | "
            f"bilinear | bicubic | trilinear, got mode {mode!r}"
        )
    if antialias and mode not in ("bilinear", "bicubic"):
        raise ValueError(
            "interpolate: antialias=True is restricted to the modes 'bilinear' and 'bicubic' and "
            f"needs 4D input, got mode {mode!r} and shape {tuple(input.shape)}"
        )


def _sizes(
    spatial: tuple[int, ...], size: Sizes | None, scale_factor: Factors | None, recompute: bool
) -> tuple[tuple[int, ...], Sequence[float | None]]:
    """The size of the output, and where they count the factors asked for."""
    nd = len(spatial)
    if (size is None) == (scale_factor is None):
        raise ValueError(
            "interpolate: exactly one of size and scale_factor should be defined, got "
            f"size={size}, scale_factor={scale_factor}"
        )
    given = size if scale_factor is None else scale_factor
    numbers: tuple[Any, ...] = tuple(given) if isinstance(given, (list, tuple)) else (given,) * nd
    if len(numbers) != nd:
        raise ValueError(
            "interpolate: input and output must have the same number of spatial dimensions, but "
            f"got input with spatial size {spatial} and {given} as size or scale_factor"
        )
    if size is not None:
        if not all(hasattr(n, "__index__") for n in numbers):
            raise TypeError(f"interpolate: expected size to be an int or ints, got {size!r}")
        return tuple([n.__index__() for n in numbers]), (None,) * nd
    factors = [float(f) for f in numbers]
    sizes = tuple([math.floor(n * f) for n, f in zip(spatial, factors, strict=True)])
    return sizes, (None,) * nd if recompute else factors


def _step(n_in: int, n_out: int, scale: float | None) -> float:
    """How far outputs are apart, in inputs."""
    return 1 / scale if scale is not None and scale > 0 else n_in / n_out


# --- the nearest ----------------------------------------------------------------------------------


def _nearest(
    x: Tensor, sizes: tuple[int, ...], scales: Sequence[float | None], exact: bool
) -> Tensor:
    """The pixels gathered along one dimension after another.

    Where each is repeated equally often, and nobody looks at the single operations, that is the
    transpose of a sum over windows.
    """
    spatial = tuple(x.shape[2:])
    if not exact and x.ndim == 4:  # PyTorch takes the ratio of the sizes here, for images alone
        known = zip(spatial, sizes, scales, strict=True)
        scales = [None if n in (n_in, 2 * n_in) else scale for n_in, n, scale in known]
    settings = tuple(zip(spatial, sizes, scales, strict=True))
    times = tuple([_repeats(*setting, exact) for setting in settings])
    if mode.flags <= Mode.GRAD and x.dtype.category == dtypes.FLOATING:
        if 0 not in times and max(times) > 1:
            return repeated_pixels(x, times)
    for dim, setting in zip(range(-len(sizes), 0), settings, strict=True):
        if setting[0] != setting[1] or setting[2] is not None:
            x = index_select(x, dim, _known(_places(*setting, exact), x))
    return x


def _known(numbers: Tensor, x: Tensor) -> Tensor:
    """Numbers that are kept on the host, where ``x`` is."""
    return placed_like(x, of_array(numbers.array))


@lru_cache(maxsize=64)  # the same sizes come again at every step of a training
def _places(n_in: int, n_out: int, scale: float | None, exact: bool) -> Tensor:
    """Which input each output is."""
    # In float32, as PyTorch: where a place falls between two inputs its rounding decides.
    place = arange(n_out, dtype=dtypes.float32, device="cpu")
    place = (place + 0.5 if exact else place) * _step(n_in, n_out, scale)
    return clamp(cast(floor(place), dtypes.int64), max=n_in - 1)


@lru_cache(maxsize=64)
def _repeats(n_in: int, n_out: int, scale: float | None, exact: bool) -> int:
    """How often each input comes, one after the other; 0 if not all come equally often."""
    times, rest = divmod(n_out, n_in)
    if rest:
        return 0
    places = _places(n_in, n_out, scale, exact).tolist()
    return times if places == [i // times for i in range(n_out)] else 0


# --- along one dimension --------------------------------------------------------------------------


def _weighted(
    x: Tensor,
    dim: int,
    n_out: int,
    scale: float | None,
    cubic: bool,
    align_corners: bool,
    make: Callable[..., Tensor],
) -> Tensor:
    """A product with the (n_out, n_in) matrix of weights: faster than to gather two or four
    neighbors and to scatter their gradients, at the price that a NaN or an infinity spreads along
    the dimension."""
    n_in = x.shape[dim]
    if n_out == n_in and not cubic:
        return x
    weights = _known(make(n_in, n_out, scale, cubic, align_corners, x.dtype), x)
    if dim == -1:
        return linear(x, weights)
    if dim == -2:
        return matmul(weights, x)
    lead, rest = tuple(x.shape[:dim]), tuple(x.shape[dim + 1 :])
    return reshape(matmul(weights, reshape(x, (*lead, n_in, -1))), (*lead, n_out, *rest))


@lru_cache(maxsize=64)  # the same sizes come again at every step of a training
def _matrix(
    n_in: int,
    n_out: int,
    scale: float | None,
    cubic: bool,
    align_corners: bool,
    dtype: dtypes.dtype,
) -> Tensor:
    """Row i holds the weights of all inputs in output i."""
    place = arange(n_out, dtype=dtypes.float32 if dtype.itemsize == 2 else dtype, device="cpu")
    if align_corners:
        place = place * ((n_in - 1) / (n_out - 1) if n_out > 1 else 0.0)
    else:
        place = (place + 0.5) * _step(n_in, n_out, scale) - 0.5
    if not cubic:
        place = clamp(place, min=0.0)
    first = clamp(floor(place), max=n_in - 1)
    t = clamp(place - first, 0.0, 1.0)
    taps = _cubic(t) if cubic else {0: 1 - t, 1: t}
    first = cast(first, dtypes.int64)
    total: Any = 0
    for offset, weight in taps.items():
        column = one_hot(clamp(first + offset, 0, n_in - 1), n_in)
        total = total + unsqueeze(weight, -1) * column
    return cast(total, dtype)


def _near(d: Tensor, a: float) -> Tensor:
    """Keys' cubic convolution kernel up to the distance 1."""
    return ((a + 2) * d - (a + 3)) * d * d + 1


def _far(d: Tensor, a: float) -> Tensor:
    """The same from the distance 1 to 2."""
    return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a


def _cubic(t: Tensor) -> dict[int, Tensor]:
    """Keys' kernel with a = -3/4, at the distances 1 + t, t, 1 - t and 2 - t."""
    a = -0.75
    return {-1: _far(1 + t, a), 0: _near(t, a), 1: _near(1 - t, a), 2: _far(2 - t, a)}


@lru_cache(maxsize=64)
def _antialiased(
    n_in: int,
    n_out: int,
    scale: float | None,
    cubic: bool,
    align_corners: bool,
    dtype: dtypes.dtype,
) -> Tensor:
    """The same with the kernel (a triangle, or Keys' with a = -1/2) stretched as outputs lie apart,
    and rows of sum 1 at the border too."""
    step = _step(n_in, n_out, scale)
    if align_corners:
        step = (n_in - 1) / (n_out - 1) if n_out > 1 else 0.0
    exact = dtypes.float64  # computed once for all steps of a training
    center = (arange(n_out, dtype=exact, device="cpu") + 0.5) * step
    d = (arange(n_in, dtype=exact, device="cpu") + 0.5 - unsqueeze(center, -1)).abs() / max(
        step, 1.0
    )
    if cubic:
        kernel = where(d < 1, _near(d, -0.5), where(d < 2, _far(d, -0.5), 0.0))
    else:
        kernel = clamp(1 - d, min=0.0)
    return cast(kernel / kernel.sum(-1, keepdim=True), dtype)


# --- layers ---------------------------------------------------------------------------------------


class Upsample(Module):
    """Signals, images or volumes resampled to another size.

    Along each dimension y[i] = sum over k of w(i, k) x[k], the weights being those of ``mode``
    around the place (i + 1 / 2) n_in / n_out - 1 / 2.

    Shape: (N, C, *) -> (N, C, *size).

    Args:
        size: the output's size, a number or one for each dimension; or
        scale_factor: what to multiply the size by.
        mode: "nearest", "nearest-exact", "area", "linear", "bilinear", "bicubic" or "trilinear".
        align_corners: whether the outermost elements' centers stay where they are.
        recompute_scale_factor: take the ratio of the rounded sizes for the scale.

    >>> from chainrule import nn, ones
    >>> nn.Upsample(scale_factor=2, mode="bilinear")(ones(1, 3, 4, 5)).shape
    chainrule.Size([1, 3, 8, 10])
    """

    def __init__(
        self,
        size: Sizes | None = None,
        scale_factor: float | tuple[float, ...] | None = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ):
        super().__init__()
        self.size = size
        self.scale_factor: float | tuple[float, ...] | None = None
        if isinstance(scale_factor, tuple):
            self.scale_factor = tuple([float(f) for f in scale_factor])
        elif scale_factor:
            self.scale_factor = float(scale_factor)
        self.mode = mode
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input: Tensor) -> Tensor:
        return interpolate(
            input,
            self.size,
            self.scale_factor,
            self.mode,
            self.align_corners,
            self.recompute_scale_factor,
        )

    def extra_repr(self) -> str:
        if self.scale_factor is not None:
            return f"scale_factor={self.scale_factor!r}, mode={self.mode!r}"
        return f"size={self.size!r}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """Images resampled by repeating pixels: y[i, j] = x[floor(i H / H_out), floor(j W / W_out)].

    Shape: (N, C, H, W) -> (N, C, H_out, W_out).

    Args:
        size: (H_out, W_out), or a number for both; or
        scale_factor: what to multiply the size by.

    >>> from chainrule import nn, tensor
    >>> nn.UpsamplingNearest2d(scale_factor=2)(tensor([[[[1.0, 2.0]]]]))
    tensor([[[[1., 1., 2., 2.],
              [1., 1., 2., 2.]]]])
    """

    def __init__(
        self, size: Sizes | None = None, scale_factor: float | tuple[float, ...] | None = None
    ):
        super().__init__(size, scale_factor, "nearest")


class UpsamplingBilinear2d(Upsample):
    """Images resampled by bilinear interpolation with aligned corners.

    Along each dimension y[i] = (1 - t) x[k] + t x[k + 1] with k + t = i (n_in - 1) / (n_out - 1).

    Shape: (N, C, H, W) -> (N, C, H_out, W_out).

    Args:
        size: (H_out, W_out), or a number for both; or
        scale_factor: what to multiply the size by.

    >>> from chainrule import nn, tensor
    >>> nn.UpsamplingBilinear2d(size=(1, 3))(tensor([[[[1.0, 2.0]]]]))
    tensor([[[[1.0000, 1.5000, 2.0000]]]])
    """

    def __init__(
        self, size: Sizes | None = None, scale_factor: float | tuple[float, ...] | None = None
    ):
        super().__init__(size, scale_factor, "bilinear", True)

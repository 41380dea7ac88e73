"""Sampling images and volumes at any places: the parts of a spatial transformer."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Sequence
from typing import Any

from chainrule.ops.core.rounding import rounds_once
from chainrule.backend import dtypes
from chainrule.nn.layers.upsample import _cubic
from chainrule.ops.creation.patterns import linspace, ones
from chainrule.ops.elementwise.functions import floor
from chainrule.ops.elementwise.logic import where
from chainrule.ops.elementwise.options import clamp, round
from chainrule.ops.index.reading import gather
from chainrule.ops.linalg.matmul import matmul
from chainrule.ops.core.promotion import cast
from chainrule.ops.shape.rearrange import meshgrid
from chainrule.ops.shape.views import expand, reshape
from chainrule.ops.shape.stacking import stack
from chainrule.tensor import Tensor

__all__ = ["affine_grid", "grid_sample"]

MODES, PADDINGS = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")


def _aligned(op: str, align_corners: bool | None) -> bool:
    if align_corners is None:
        warnings.warn(
            f"{op}: align_corners is not given and taken as False; give it to be sure", stacklevel=3
        )
    return bool(align_corners)


@rounds_once
def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """The places, from -1 to 1, where grid_sample finds the pixels of an image of this ``size``
    after the affine map theta: (x, y, 1) -> theta (x, y, 1).

    Shape: theta (N, 2, 3) and size (N, C, H, W) -> (N, H, W, 2); theta (N, 3, 4) and size
    (N, C, Z, H, W) -> (N, Z, H, W, 3).
    """
    aligned, nd = _aligned("affine_grid", align_corners), len(size) - 2
    if not theta.is_floating_point():
        raise ValueError(
            f"affine_grid: expected theta to have floating point type, but got {theta.dtype}"
        )
    if nd not in (2, 3):
        raise NotImplementedError(
            f"affine_grid: only supports 4D and 5D sizes, got size {tuple(size)}"
        )
    if theta.ndim != 3 or tuple(theta.shape[1:]) != (nd, nd + 1):
        raise ValueError(
            f"affine_grid: expected a batch of affine matrices of shape (N, {nd}, {nd + 1}) for "
            f"size {tuple(size)}, got {tuple(theta.shape)}"
        )
    if min(size) <= 0:
        raise ValueError(f"affine_grid: expected non-zero, positive output size, got {tuple(size)}")
    axes = [_axis(n, aligned, theta) for n in size[2:]]
    places = meshgrid(*axes, indexing="ij")[::-1]  # x, the last dimension, comes first
    points = stack([*places, ones(*size[2:], dtype=theta.dtype, device=theta.device)], -1)
    flat = matmul(reshape(points, (1, -1, nd + 1)), theta.mT)
    return reshape(flat, (theta.shape[0], *size[2:], nd))


def _axis(n: int, aligned: bool, like: Tensor) -> Tensor:
    """The centers of n pixels from -1 to 1, or of the outermost ones at -1 and 1."""
    if n == 1:
        return 0 * ones(1, dtype=like.dtype, device=like.device)
    edges = linspace(-1, 1, n, dtype=like.dtype, device=like.device)
    return edges if aligned else edges * ((n - 1) / n)


@rounds_once
def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """y[n, c, i, j] = input[n, c] at the place grid[n, i, j], given as (x, y) from -1 to 1.

    ``mode`` is "bilinear" (trilinear for volumes), "nearest" or, for images, "bicubic".
    ``padding_mode`` says what lies outside: "zeros", the "border", or a "reflection". With
    ``align_corners``, -1 and 1 are the outermost pixels' centers, else their outer edges.

    Shape: input (N, C, H, W), grid (N, H_out, W_out, 2) -> (N, C, H_out, W_out); likewise for
    volumes with one dimension more, and places (x, y, z).

    >>> import chainrule
    >>> from chainrule.nn.functional import grid_sample
    >>> x = chainrule.tensor([[[[0.0, 1.0], [2.0, 3.0]]]])
    >>> grid_sample(x, chainrule.zeros(1, 1, 1, 2), align_corners=True)
    tensor([[[[1.5000]]]])
    """
    _check(input, grid, mode, padding_mode)
    aligned, sizes = _aligned("grid_sample", align_corners), tuple(input.shape[2:])
    nd, (n, c) = len(sizes), input.shape[:2]
    taps = []
    for k, size in enumerate(sizes):
        u = grid[..., nd - 1 - k]
        place = (u + 1) / 2 * (size - 1) if aligned else ((u + 1) * size - 1) / 2
        taps.append(_taps(place, size, mode, padding_mode, aligned))
    flat = reshape(input, (n, c, math.prod(sizes)))
    total: Any = 0
    for corner in itertools.product(*taps):
        index, weight = _combined(corner, sizes)
        numbers = expand(reshape(index, (n, 1, -1)), (n, c, index.numel() // max(n, 1)))
        total = total + gather(flat, 2, numbers) * reshape(weight, (n, 1, -1))
    return reshape(total, (n, c, *grid.shape[1:-1]))


def _check(input: Tensor, grid: Tensor, mode: str, padding_mode: str) -> None:
    for name, value, allowed in (("mode", mode, MODES), ("padding_mode", padding_mode, PADDINGS)):
        if value not in allowed:
            raise ValueError(
                f"grid_sample: expected {name} to be one of {allowed}, but got {value!r}"
            )
    nd = input.ndim - 2
    shapes = f"input {tuple(input.shape)} and grid {tuple(grid.shape)}"
    if nd not in (2, 3) or grid.ndim != input.ndim:
        raise RuntimeError(
            "grid_sample: expected 4D or 5D input and grid with the same number of dimensions, but "
            f"got {shapes}"
        )
    if input.shape[0] != grid.shape[0] or grid.shape[-1] != nd:
        raise RuntimeError(
            f"grid_sample: expected grid to have the batch size of input and size {nd} in the last "
            f"dimension, but got {shapes}"
        )
    if 0 in input.shape[2:]:
        raise RuntimeError(f"grid_sample: expected input with non-empty images, but got {shapes}")
    if mode == "bicubic" and nd == 3:
        raise RuntimeError("grid_sample: bicubic interpolation only supports 4D input")


def _taps(place: Tensor, size: int, mode: str, padding: str, aligned: bool) -> list[Any]:
    """The (coordinate, weight) along one dimension whose sum is the value at ``place``."""
    if mode == "bicubic":
        first = floor(place).detach()
        weights = _cubic(place - first)
        return [(_inside(first + k, size, padding, aligned), w) for k, w in weights.items()]
    place = _inside(place, size, padding, aligned)
    if mode == "nearest":
        return [(round(place), None)]
    first = floor(place).detach()
    t = place - first
    return [(first, 1 - t), (first + 1, t)]


def _inside(place: Tensor, size: int, padding: str, aligned: bool) -> Tensor:
    """A coordinate brought into the image, unless zeros lie around it."""
    if padding == "zeros":
        return place
    if padding == "reflection":
        low, span = (0.0, size - 1) if aligned else (-0.5, size)
        if span == 0:
            return 0 * place
        far = (place - low).abs()
        flips = floor(far / span).detach()
        rest = far - flips * span
        place = where(flips % 2 == 0, rest, span - rest) + low
    # On the border itself the pixel does not move with the coordinate, as beyond it.
    return where((place > 0) & (place < size - 1), place, clamp(place, 0, size - 1).detach())


def _combined(corner: Sequence[Any], sizes: Sequence[int]) -> tuple[Tensor, Any]:
    """The flat index of a pixel and its weight, zero if it lies outside."""
    index: Any = 0
    weight: Any = 1
    for (place, w), size in zip(corner, sizes, strict=True):
        place = place.detach()
        inside = (place >= 0) & (place <= size - 1)
        index = index * size + cast(clamp(place, 0, size - 1), dtypes.int64)
        kept = cast(inside, place.dtype)
        weight = weight * (kept if w is None else w * kept)
    return index, weight

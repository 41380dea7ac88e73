"""Counts of the elements in intervals, along one dimension or several."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from chainrule.backend import K
from chainrule.ops.core.arguments import placed_like, whole
from chainrule.ops.core.promotion import cast
from chainrule.ops.elementwise.logic import where
from chainrule.ops.index.subscript import numbers_of
from chainrule.ops.reduce.reductions import sum
from chainrule.ops.reduce.sort import bincount, searchsorted
from chainrule.ops.shape.views import reshape
from chainrule.tensor import Tensor, of_array
from chainrule.typing import Sizes

__all__ = ["histogram", "histogramdd"]
METHODS = ("histogram",)
INPLACE: tuple[str, ...] = ()


class Histogram(NamedTuple):
    """How much lies in each interval, and the limits of the intervals."""

    hist: Tensor
    bin_edges: Tensor


class Histograms(NamedTuple):
    """How much lies in each cell, and the limits of the intervals along each dimension."""

    hist: Tensor
    bin_edges: tuple[Tensor, ...]


def histogram(
    input: Tensor,
    bins: int | Tensor,
    *,
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> Histogram:
    """How many elements lie in each interval; the last one includes its right end.

    ``bins`` is how many intervals there are between the limits ``range`` (the smallest and the
    largest element), or a tensor of all limits. With ``weight`` the weights are summed, with
    ``density`` the result is divided by their sum and by the widths.

    >>> import chainrule
    >>> chainrule.histogram(chainrule.tensor([1.0, 2.0, 1.0]), bins=4, range=(0.0, 3.0)).hist
    tensor([0., 2., 1., 0.])
    """
    flat = reshape(input, (input.numel(), 1))
    several: Any = bins if isinstance(bins, int) else (bins,)
    hist, edges = _counted("histogram", flat, several, range, weight, density)
    return Histogram(hist, edges[0])


def histogramdd(
    input: Tensor,
    bins: Sizes | Sequence[Tensor],
    *,
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> Histograms:
    """:func:`histogram` of points, the coordinates of which are the last dimension of ``input``."""
    if input.ndim < 2:
        raise RuntimeError(
            f"histogramdd: input tensor should have at least 2 dimensions, got {input.ndim}"
        )
    points = reshape(input, (math.prod(input.shape[:-1]), input.shape[-1]))
    return Histograms(*_counted("histogramdd", points, bins, range, weight, density))


def _counted(
    op: str,
    points: Tensor,
    bins: Sizes | Sequence[Tensor],
    limits: Sequence[float] | None,
    weight: Tensor | None,
    density: bool,
) -> tuple[Tensor, tuple[Tensor, ...]]:
    if not points.is_floating_point():
        raise NotImplementedError(f"{op}: not implemented for {points.dtype}; use .float()")
    numbers = numbers_of(points)
    if numbers is None:
        raise RuntimeError(
            f"{op}: the elements cannot be counted inside {points.array.transformation}"
        )
    edges = _edges(op, points, bins, limits)
    place = placed_like(points, of_array(K.zeros((points.shape[0],), "int64")))
    inside, sizes = None, []
    for d, limit in enumerate(edges):
        x, count = points[:, d].detach().contiguous(), limit.shape[0] - 1
        at = searchsorted(limit, x, right=True) - 1
        at = where(x == limit[-1], count - 1, at)
        here = (x >= limit[0]) & (x <= limit[-1])
        inside = here if inside is None else inside & here
        place = place * count + at
        sizes.append(count)
    hist = _summed(op, points, place, inside, weight, math.prod(sizes))
    hist = reshape(hist, tuple(sizes))
    if density:
        hist = hist / sum(hist)
        for d, limit in enumerate(edges):
            widths = limit[1:] - limit[:-1]
            hist = hist / reshape(widths, (-1, *[1] * (len(edges) - 1 - d)))
    return hist, edges


def _summed(
    op: str, points: Tensor, place: Tensor, inside: Any, weight: Tensor | None, cells: int
) -> Tensor:
    """The number of points, or the sum of their weights, in each cell."""
    if weight is None:
        return cast(bincount(place[inside], minlength=cells), points.dtype)
    if weight.numel() != points.shape[0]:
        raise RuntimeError(
            f"{op}: if weight is given it must have one element for each of the {points.shape[0]} "
            f"points, got shape {tuple(weight.shape)}"
        )
    if weight.dtype is not points.dtype:
        raise RuntimeError(f"{op}: expected weight of type {points.dtype}, but got {weight.dtype}")
    flat = reshape(weight, (-1,)).detach()
    return cast(bincount(place[inside], flat[inside], minlength=cells), points.dtype)


def _edges(
    op: str, points: Tensor, bins: Any, limits: Sequence[float] | None
) -> tuple[Tensor, ...]:
    """The limits of the intervals along each dimension."""
    n = points.shape[1]
    several: list[Any] = [bins] * n if isinstance(bins, int) else list(bins)
    if len(several) != n:
        raise RuntimeError(
            f"{op}: the size of bins must be equal to the innermost dimension of the input, {n}, "
            f"got {len(several)}"
        )
    if isinstance(several[0], Tensor):
        return tuple(_checked(op, points, edges) for edges in several)
    ends = _ends(op, points, limits)
    out = []
    for count, (low, high) in zip(several, ends, strict=True):
        if whole(op, "bins", count) < 1:
            raise RuntimeError(f"{op}: bins must be > 0, but got {count}")
        edges = K.linspace(low, high, count + 1, points.array.dtype)
        out.append(placed_like(points, of_array(edges)))
    return tuple(out)


def _checked(op: str, points: Tensor, edges: Tensor) -> Tensor:
    if edges.ndim != 1 or not edges.numel():
        raise RuntimeError(
            f"{op}: bins tensor should have one dimension and at least one element, got shape "
            f"{tuple(edges.shape)}"
        )
    if edges.dtype is not points.dtype:
        raise RuntimeError(
            f"{op}: input tensor and bins tensors should have the same dtype, but got input with "
            f"{points.dtype} and bins with {edges.dtype}"
        )
    return edges


def _ends(op: str, points: Tensor, limits: Sequence[float] | None) -> list[tuple[float, float]]:
    """The lowest and the highest limit along each dimension."""
    n = points.shape[1]
    numbers = numbers_of(points)
    if limits is not None:
        if len(limits) != 2 * n:
            raise RuntimeError(f"{op}: range should have {2 * n} elements, but got {len(limits)}")
        ends = [(float(limits[2 * d]), float(limits[2 * d + 1])) for d in range(n)]
    elif numbers is None or not numbers.shape[0]:
        ends = [(0.0, 1.0)] * n
    else:
        ends = [(float(numbers[:, d].min()), float(numbers[:, d].max())) for d in range(n)]
    for low, high in ends:
        if not (math.isfinite(low) and math.isfinite(high)):
            raise RuntimeError(f"{op}: range of [{low}, {high}] is not finite")
        if low > high:
            raise RuntimeError(f"{op}: min should not exceed max, but got [{low}, {high}]")
    return [(a - 0.5, b + 0.5) if a == b else (a, b) for a, b in ends]

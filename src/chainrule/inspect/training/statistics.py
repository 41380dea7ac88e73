"""What is kept of a tensor: its size, its shape as a distribution, and what is wrong with it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from chainrule.autograd.modes import no_grad
from chainrule.backend import dtypes
from chainrule.graph import Box
from chainrule.linalg import vector_norm
from chainrule.ops.core.promotion import cast
from chainrule.ops.creation.from_data import tensor
from chainrule.ops.elementwise.logic import isfinite
from chainrule.ops.linalg.products import dot
from chainrule.ops.reduce.order import amax, amin
from chainrule.ops.reduce.reductions import count_nonzero, mean
from chainrule.ops.reduce.sort import searchsorted, sort
from chainrule.ops.shape.views import reshape
from chainrule.tensor import Tensor
import itertools

__all__ = ["DETAILS", "QUANTILES", "Statistics", "as_values", "norm_of", "statistics"]

QUANTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
BINS = 32
# Quantiles and bins are counted over so many values at most, evenly spread over the tensor.
SAMPLE = 4096
# How much is computed: the norm alone, moments and ends, or the distribution as well.
DETAILS = ("norm", "moments", "full")


@dataclass
class Statistics:
    """The numbers that are kept of one tensor at one step.

    All but ``nonfinite`` are those of its finite values; what was not asked for is NaN or empty.
    """

    size: int
    norm: float  # of Frobenius
    mean: float = math.nan
    std: float = math.nan
    min: float = math.nan
    max: float = math.nan
    zeros: float = math.nan  # the share of values that are exactly 0
    nonfinite: int = 0
    ratio: float = math.nan  # of an update: its norm over that of the weight before it
    quantiles: tuple[float, ...] = ()  # at QUANTILES
    edges: tuple[float, ...] = ()  # of the bins, from min to max
    counts: tuple[int, ...] = ()  # values in each bin
    counted: int = 0  # how many values quantiles and bins are made of

    @property
    def density(self) -> list[float]:
        """The height of each bin, so that the area of all bins is 1."""
        total = sum(self.counts) or 1
        widths = [b - a for a, b in zip(self.edges, self.edges[1:], strict=False)]
        return [n / (total * w) if w else 0.0 for n, w in zip(self.counts, widths, strict=True)]


def as_values(x: Any) -> Tensor | None:
    """The values of a tensor as one row of numbers; None if it has no real numbers to look at."""
    if getattr(x, "is_sparse", False):
        x = x.to_dense()
    if not isinstance(x, Tensor) or isinstance(x.array, Box) or x.numel() == 0:
        return None  # nothing, or inside a transformation
    x = x.detach()
    if x.dtype.is_complex:
        x = abs(x)
    if not x.dtype.is_floating_point:
        return None
    if x.dtype.itemsize == 2:
        x = cast(x, dtypes.float32)
    return reshape(x, (-1,))


def statistics(x: Tensor, detail: str = "full", sample: int = SAMPLE) -> Statistics:
    """The statistics of a row of numbers.

    >>> from chainrule import arange
    >>> found = statistics(arange(0.0, 5.0))
    >>> found.mean, found.max, found.zeros, found.quantiles[3]
    (2.0, 4.0, 0.2, 2.0)
    """
    with no_grad():
        if detail == "norm":
            return Statistics(x.numel(), norm_of(x))
        size, low, high = x.numel(), float(amin(x)), float(amax(x))
        bad = 0
        if not (math.isfinite(low) and math.isfinite(high)):
            finite = isfinite(x)
            bad = size - int(count_nonzero(finite))
            x = x[finite]
            if bad == size:
                return Statistics(size, math.nan, nonfinite=bad)
            low, high = float(amin(x)), float(amax(x))
        count, average = x.numel(), float(mean(x))
        spread = norm_of(x - average) / math.sqrt(count)
        zeros = (count - int(count_nonzero(x))) / count if low <= 0 <= high else 0.0
        found = Statistics(size, norm_of(x), average, spread, low, high, zeros, bad)
        if detail == "full":
            _distribute(found, x, sample)
        return found


def norm_of(x: Tensor) -> float:
    """The norm of a row of numbers: from one product, unless its squares leave the numbers."""
    square = float(dot(x, x))
    if 1e-30 < square < 1e30:
        return math.sqrt(square)
    return float(vector_norm(cast(x, dtypes.float64)))


def _distribute(found: Statistics, x: Tensor, sample: int) -> None:
    """Adds quantiles and bins."""
    count = x.numel()
    if count > sample:
        step = -(-count // sample)
        while math.gcd(step, count) > 1:  # else only some columns of a matrix are seen
            step += 1
        x = x[::step]
    ordered, _ = sort(x)
    n = ordered.numel()
    found.counted = n
    found.quantiles = tuple(_quantiles(ordered, n))
    edges = _edges(found)
    inner = tensor(list(edges[1:-1]), dtype=x.dtype)
    below = [0, *searchsorted(ordered, inner).tolist(), n]
    found.edges = edges
    found.counts = tuple([b - a for a, b in itertools.pairwise(below)])


def _quantiles(ordered: Tensor, n: int) -> list[float]:
    """By linear interpolation between the two nearest values."""
    places = [q * (n - 1) for q in QUANTILES]
    low = [math.floor(p) for p in places]
    high = [min(i + 1, n - 1) for i in low]
    values = ordered[low + high].tolist()
    pairs = zip(values[: len(low)], values[len(low) :], places, low, strict=True)
    return [a + (p - i) * (b - a) for a, b, p, i in pairs]


def _edges(found: Statistics) -> tuple[float, ...]:
    """Bins of equal width where 98 % of the values lie, and one for each tail.

    So neither a mean far from zero nor a single large value hides the shape.
    """
    low, high, first, last = found.min, found.max, found.quantiles[0], found.quantiles[-1]
    if not last > first:
        first, last = low, high
    if not last > first:  # one value
        width = abs(low) * 1e-6 or 1e-12
        return (low - width, low + width)
    inner = [first + (last - first) * i / BINS for i in range(BINS + 1)]
    # A tail that rounding gave no width is no bin.
    before = [low] if low < inner[0] else []
    after = [high] if high > inner[-1] else []
    return (*before, *inner, *after)

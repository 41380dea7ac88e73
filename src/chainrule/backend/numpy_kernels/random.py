"""Random numbers.

``g`` is a NumPy generator, or what passes everything on to one; every function makes a new array.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from chainrule.backend import limits

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = [
    "all_finite_weights",
    "all_in_range",
    "all_rows_positive",
    "integer_limits",
    "pick_with_replacement",
    "pick_without_replacement",
    "random_binomial",
    "random_bits",
    "random_cauchy",
    "random_exponential",
    "random_geometric",
    "random_integers",
    "random_log_gamma",
    "random_log_normal",
    "random_mask",
    "random_normal",
    "random_permutation",
    "random_poisson",
    "random_uniform",
    "random_von_mises",
    "seed_global",
]

Shape = tuple[int, ...]
_DRAWN: dict[str, type[np.float32] | type[np.float64]] = {
    "e": np.float32,
    "E": np.float32,  # bfloat16
    "f": np.float32,
    "d": np.float64,
    "F": np.float32,
    "D": np.float64,
}


# How many numbers in [0, 1) at equal distances float16 and bfloat16 hold.
_STEPS = {"e": 2048, "E": 256}


def random_uniform(
    g: np.random.Generator, shape: Shape, dtype: npt.DTypeLike, low: float = 0.0, high: float = 1.0
) -> np.ndarray:
    """Numbers in [low, high), drawn in their own precision."""
    dtype = np.dtype(dtype)
    if dtype.kind == "c":
        return _complex(random_uniform, g, shape, dtype)
    out = g.random(shape, dtype=_DRAWN[dtype.char])
    if dtype.char in _STEPS:
        # Cut to the bits that a narrow type holds: rounding could give 1.
        out = np.floor(out * _STEPS[dtype.char]) / np.float32(_STEPS[dtype.char])
    return _scaled(np.asarray(out), high - low, low).astype(dtype, copy=False)


def random_normal(
    g: np.random.Generator, shape: Shape, dtype: npt.DTypeLike, mean: float = 0.0, std: float = 1.0
) -> np.ndarray:
    """mean + std z with z from the standard normal distribution, drawn in its own precision."""
    dtype = np.dtype(dtype)
    if dtype.kind == "c":
        # The variance is that of the complex number: one half for each part.
        return _scaled(_complex(random_normal, g, shape, dtype), std * 0.5**0.5, mean)
    out = np.asarray(g.standard_normal(shape, dtype=_DRAWN[dtype.char]))
    return _scaled(out, std, mean).astype(dtype, copy=False)


def _complex(
    draw: Callable[..., np.ndarray], g: np.random.Generator, shape: Shape, dtype: np.dtype
) -> np.ndarray:
    parts = draw(g, (*shape, 2), _DRAWN[dtype.char])
    return parts.view(dtype)[..., 0]


def _scaled(fresh: np.ndarray, scale: float, shift: float) -> np.ndarray:
    """scale * fresh + shift, in the memory of an array that was just drawn."""
    if scale != 1:
        fresh *= scale
    if shift != 0:
        fresh += shift
    return fresh


def random_exponential(
    g: np.random.Generator, shape: Shape, dtype: npt.DTypeLike, rate: float = 1.0
) -> np.ndarray:
    """Numbers with the density rate exp(-rate x)."""
    dtype = np.dtype(dtype)
    out = np.asarray(g.standard_exponential(shape, dtype=_DRAWN[dtype.char]))
    return _scaled(out, 1 / rate, 0).astype(dtype, copy=False)


def random_log_normal(
    g: np.random.Generator, shape: Shape, dtype: npt.DTypeLike, mean: float, std: float
) -> np.ndarray:
    """exp(x) for normal numbers x of this mean and standard deviation."""
    return np.exp(random_normal(g, shape, np.float64, mean, std)).astype(dtype)


def random_cauchy(
    g: np.random.Generator,
    shape: Shape,
    dtype: npt.DTypeLike,
    median: float = 0.0,
    sigma: float = 1.0,
) -> np.ndarray:
    """Numbers with the density sigma / (pi ((x - median)^2 + sigma^2))."""
    return _scaled(np.asarray(g.standard_cauchy(shape)), sigma, median).astype(dtype)


def random_geometric(
    g: np.random.Generator, shape: Shape, dtype: npt.DTypeLike, p: float
) -> np.ndarray:
    """How many trials with probability p it takes to the first success."""
    return np.asarray(g.geometric(p, shape)).astype(dtype)


def random_poisson(rate: np.ndarray, g: np.random.Generator) -> np.ndarray:
    """k with probability rate^k exp(-rate) / k!, one for each rate."""
    return np.asarray(g.poisson(rate)).astype(rate.dtype)


def random_binomial(count: np.ndarray, p: np.ndarray, g: np.random.Generator) -> np.ndarray:
    """How many of ``count`` trials with probability p succeed."""
    out = np.asarray(g.binomial(count.astype(np.int64), p.astype(np.float64)))
    return out.astype(np.result_type(count, p))


def random_log_gamma(a: np.ndarray, g: np.random.Generator) -> np.ndarray:
    """Logarithms of gamma numbers of shape a, one for each."""
    shape = a.astype(np.float64)
    out = np.asarray(np.log(g.standard_gamma(np.where(shape < 1, shape + 1, shape))))
    # A number of shape a is one of shape a + 1 times u^(1/a) with u uniform; -log u is exponential.
    small = shape < 1
    out[small] -= g.standard_exponential(np.count_nonzero(small)) / shape[small]
    return out.astype(a.dtype)


def random_von_mises(loc: np.ndarray, kappa: np.ndarray, g: np.random.Generator) -> np.ndarray:
    """Angles in [-pi, pi) with density proportional to exp(kappa cos(x - loc))."""
    angle = g.vonmises(0.0, kappa.astype(np.float64)) + loc
    return ((angle + np.pi) % (2 * np.pi) - np.pi).astype(np.result_type(loc, kappa))


def random_integers(
    g: np.random.Generator, shape: Shape, dtype: npt.DTypeLike, low: int, high: int
) -> np.ndarray:
    """Integers in [low, high)."""
    return np.asarray(g.integers(low, high, shape, dtype=np.int64)).astype(dtype, copy=False)


def random_bits(g: np.random.Generator, shape: Shape, p: float) -> np.ndarray:
    """True with probability p."""
    return np.asarray(g.random(shape, dtype=np.float32 if p in (0, 0.5, 1) else np.float64) < p)


def random_mask(
    g: np.random.Generator, shape: Shape, dtype: npt.DTypeLike, p: float, value: float
) -> np.ndarray:
    """``value`` with probability p, else 0.

    One number is drawn from the generator; the elements are hashes of it and of their position, so
    that they can be computed in any order.
    """
    key = int(g.bit_generator.random_raw())
    x = np.arange(math.prod(shape), dtype=np.uint32)
    x ^= np.uint32(key & 0xFFFFFFFF)
    _mix(x)
    x ^= np.uint32(key >> 32)
    _mix(x)
    out = (x.astype(np.uint64) < np.uint64(round(float(p) * 2**32))).astype(dtype)
    return _scaled(out, value, 0).reshape(shape)


def _mix(x: np.ndarray) -> None:
    """A permutation of the 32-bit integers without visible pattern (Wellons, lowbias32)."""
    x ^= x >> 16
    x *= np.uint32(0x7FEB352D)
    x ^= x >> 15
    x *= np.uint32(0x846CA68B)
    x ^= x >> 16


def random_permutation(g: np.random.Generator, shape: Shape, dtype: npt.DTypeLike) -> np.ndarray:
    """The numbers 0..n-1 in random order along the last dimension, anew for each row."""
    if len(shape) == 1:
        return g.permutation(shape[0]).astype(dtype, copy=False)
    rows = np.broadcast_to(np.arange(shape[-1]), shape)
    return g.permuted(rows, axis=-1).astype(dtype, copy=False)


def pick_with_replacement(weights: np.ndarray, uniform: np.ndarray) -> np.ndarray:
    """The index at which the cumulated weights first exceed each uniform number of the row."""
    cumulated = np.cumsum(weights, axis=-1, dtype=np.float64)
    # Below the total, so that rounding never lands on an index of weight zero at the end.
    targets = np.minimum(uniform, np.nextafter(1.0, 0.0)) * cumulated[..., -1:]
    out = np.empty(targets.shape, np.int64)
    rows = (-1, cumulated.shape[-1]), (-1, targets.shape[-1])
    pairs = zip(cumulated.reshape(rows[0]), targets.reshape(rows[1]), strict=True)
    for i, (row, target) in enumerate(pairs):
        out.reshape(rows[1])[i] = np.searchsorted(row, target, side="right")
    return out


def pick_without_replacement(
    weights: np.ndarray, exponential: np.ndarray, count: int
) -> np.ndarray:
    """A race of exponential clocks: the first to ring is i with probability weight i / total."""
    with np.errstate(divide="ignore"):
        times = exponential / weights
    order = np.argsort(times, axis=-1, kind="stable")
    return np.ascontiguousarray(order[..., :count])


# --- limits ---------------------------------------------------------------------------------------


def all_in_range(a: np.ndarray, low: float, high: float) -> bool:
    """Whether every element lies in [low, high]; NaN does not."""
    return bool(((a >= low) & (a <= high)).all())


def all_finite_weights(a: np.ndarray) -> bool:
    """Whether every element is finite and at least 0."""
    return bool((np.isfinite(a) & (a >= 0)).all())


def all_rows_positive(a: np.ndarray) -> bool:
    """Whether every row has a positive sum."""
    return bool((a.sum(axis=-1) > 0).all())


@functools.cache
def integer_limits(dtype: npt.DTypeLike) -> tuple[int, int]:
    """The integers that a type holds exactly (a floating type: those without gaps between them)."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return 0, 1
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return int(info.min), int(info.max)
    bound = round(2 / limits.finfo(dtype).eps)
    return -bound, bound


def seed_global(seed: int) -> None:
    """Seeds NumPy's own global stream, which a user's code may draw from."""
    np.random.seed(seed % 2**32)  # noqa: NPY002 (the global stream is what is meant)

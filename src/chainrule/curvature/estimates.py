"""The trace and the diagonal of a matrix from its products with random vectors, with their errors.

``multiply`` makes of rows (S, W) the rows times the matrix, (S, W). The random vectors v have
entries +1 and -1, so that the mean of v v^T is the identity and a diagonal matrix needs one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from chainrule.backend import dtypes
from chainrule.curvature.memory import AT_ONCE
from chainrule.ops.linalg.decompositions import qr
from chainrule.ops.linalg.matmul import matmul
from chainrule.ops.core.promotion import cast
from chainrule.ops.reduce.reductions import sum as sum_over
from chainrule.ops.creation.sampling import randint
from chainrule.tensor import Tensor
from chainrule.typing import Random

__all__ = [
    "Estimate",
    "Multiply",
    "average",
    "check_samples",
    "hutch_plus_plus",
    "hutchinson_diagonal",
    "hutchinson_trace",
    "random_signs",
]

Multiply = Callable[[Tensor], Tensor]


class Estimate(NamedTuple):
    """An estimate, its standard error, and the number of products it took."""

    value: Any
    error: Any
    products: int


def random_signs(count: int, size: int, dtype: dtypes.dtype, generator: Random = None) -> Tensor:
    """Rows of random signs, (count, size)."""
    return cast(2 * randint(0, 2, (count, size), generator=generator) - 1, dtype)


def check_samples(op: str, samples: int, least: int = 2) -> None:
    """Raises ValueError for fewer samples than a standard error needs."""
    if samples < least:
        raise ValueError(f"{op}: samples should be at least {least}, got {samples}")


def average(draw: Callable[[int], Tensor], samples: int, chunk_size: int) -> tuple[Any, Any]:
    """The mean of what ``draw(count)`` returns along dimension 0, and its standard error.

    Drawn in chunks that are forgotten, so that the memory does not grow with the samples.
    """
    count = 0
    center: float | Tensor = 0.0
    squares: float | Tensor = 0.0
    while count < samples:
        some = draw(min(chunk_size, samples - count))
        n = some.shape[0]
        mean = sum_over(some, 0) / n
        step = mean - center
        spread = some - mean
        squares = squares + sum_over(spread * spread, 0) + step * step * (count * n / (count + n))
        center = center + step * (n / (count + n))
        count += n
    return center, (squares / (max(count - 1, 1) * count)) ** 0.5


def hutchinson_trace(
    multiply: Multiply,
    size: int,
    samples: int,
    dtype: dtypes.dtype,
    *,
    generator: Random = None,
    chunk_size: int = AT_ONCE,
) -> Estimate:
    """The trace as the mean of v.A v; the variance of one sample is 2 sum_{i != j} A_ij^2.

    >>> import chainrule
    >>> from chainrule import curvature
    >>> d = chainrule.tensor([1.0, 2.0, 3.0])
    >>> curvature.hutchinson_trace(lambda rows: rows * d, 3, 10, chainrule.float32)
    Estimate(value=6.0, error=0.0, products=10)
    """
    check_samples("hutchinson_trace", samples)

    def draw(count: int) -> Tensor:
        v = random_signs(count, size, dtype, generator)
        return sum_over(v * multiply(v), 1)

    value, error = average(draw, samples, chunk_size)
    return Estimate(float(value), float(error), samples)


def hutch_plus_plus(
    multiply: Multiply,
    size: int,
    samples: int,
    dtype: dtypes.dtype,
    *,
    generator: Random = None,
    chunk_size: int = AT_ONCE,
) -> Estimate:
    """The trace, exact on the range of a third of the products and estimated on the rest.

    With an orthonormal basis Q of A S, S random: tr A = tr Q^T A Q + tr P A P, P = I - Q Q^T. Few
    large eigenvalues, as in the Hessians of networks, fall to the part that is exact. Meyer, Musco,
    Musco and Woodruff, Hutch++: optimal stochastic trace estimation, 2021.

    >>> import chainrule
    >>> from chainrule import curvature
    >>> d = chainrule.tensor([1.0, 2.0, 3.0])
    >>> found = curvature.hutch_plus_plus(lambda rows: rows * d, 3, 12, chainrule.float32)
    >>> round(found.value, 4), found.error, found.products
    (6.0, 0.0, 6)
    """
    check_samples("hutch_plus_plus", samples, 6)
    rank = min(samples // 3, size)
    sketch = multiply(random_signs(rank, size, dtype, generator))
    basis = qr(sketch.mT).Q.mT  # orthonormal rows
    exact = float(sum_over(basis * multiply(basis)))
    if rank == size:
        return Estimate(exact, 0.0, 2 * rank)

    def draw(count: int) -> Tensor:
        v = random_signs(count, size, dtype, generator)
        v = v - matmul(matmul(v, basis.mT), basis)
        return sum_over(v * multiply(v), 1)

    rest = samples - 2 * rank
    value, error = average(draw, rest, chunk_size)
    return Estimate(exact + float(value), float(error), samples)


def hutchinson_diagonal(
    multiply: Multiply,
    size: int,
    samples: int,
    dtype: dtypes.dtype,
    *,
    generator: Random = None,
    chunk_size: int = AT_ONCE,
) -> Estimate:
    """The diagonal as the mean of v * A v; the variance of sample entry i is sum_{j != i} A_ij^2.

    The error of each entry is estimated from the samples; it is NaN for one sample.

    >>> import chainrule
    >>> from chainrule import curvature
    >>> d = chainrule.tensor([1.0, 2.0, 3.0])
    >>> found = curvature.hutchinson_diagonal(lambda rows: rows * d, 3, 10, chainrule.float32)
    >>> found.value
    tensor([1., 2., 3.])
    """
    check_samples("hutchinson_diagonal", samples, 1)

    def draw(count: int) -> Tensor:
        v = random_signs(count, size, dtype, generator)
        return v * multiply(v)

    value, error = average(draw, samples, chunk_size)
    return Estimate(value, error if samples > 1 else error * math.nan, samples)

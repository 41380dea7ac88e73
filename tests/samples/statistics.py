"""Records of distances, covariances, slopes, LU factors, and of integers and parts of numbers."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import scipy.linalg
from samples.linalg import graded, note, spectral
from samples.record import Sample, normal
from scipy.spatial import distance

__all__ = ["SAMPLES"]

linear = partial(Sample, second_order=False)
integers = partial(Sample, differentiable=False)


def two(first: tuple[int, ...], second: tuple[int, ...]) -> Any:
    return lambda r: (r.normal(size=first), r.normal(size=second))


def distances(p: float) -> Any:
    return lambda x, y: distance.cdist(x, y, "minkowski", p=p)


def packed(a: np.ndarray) -> np.ndarray:
    return np.array(scipy.linalg.lu_factor(a)[0])


def factored(r: np.random.Generator, *shape: int) -> tuple[Any, ...]:
    """What an LU factorization may return: far from singular, the last rows exchanged."""
    pivots = np.array([2, 3, 3], np.int32)
    return r.normal(size=shape) + 3 * np.eye(*shape[-2:]), np.broadcast_to(
        pivots, (*shape[:-2], 3)
    ).copy()


def lower(a: Any) -> tuple[Any]:
    """A lower triangle: PyTorch reads no more."""
    return (a.tril() if hasattr(a, "tril") else np.tril(a),)


def first(out: Any) -> Any:
    return out[0]


def factors(out: Any) -> list[Any]:
    return list(out)


def one(axis: int, h: float = 1.0, edge: int = 1) -> Any:
    return lambda x, **kwargs: [np.gradient(x, h, axis=axis, edge_order=edge)]


LU_SHAPES = [(3, 3), (2, 3, 3), (4, 2), (2, 4), (1, 1)]
SAMPLES = [
    *[
        Sample("cdist", two((3, 4), (5, 4)), {"p": p}, reference=distances(p), note=f"p{p}")
        for p in (2.0, 1.0, 3.0)
    ],
    Sample("cdist", two((2, 3, 4), (2, 2, 4)), note="batch"),
    Sample("pdist", normal(4, 3), torch="nn.functional.pdist", reference=distance.pdist),
    Sample("cov", normal(3, 6), reference=np.cov),
    Sample("cov", normal(6), reference=np.cov, note="vector"),
    Sample(
        "Tensor.cov",
        normal(3, 6),
        {"correction": 0},
        reference=lambda x, correction: np.cov(x, ddof=correction),
    ),
    Sample("corrcoef", normal(3, 6), reference=np.corrcoef),
    linear("gradient", normal(6), reference=one(0)),
    linear(
        "gradient",
        normal(6, 3),
        {"dim": 0, "edge_order": 2},
        reference=one(0, 1.0, 2),
        note="parabola",
    ),
    linear(
        "gradient",
        normal(4, 5),
        {"spacing": 0.5},
        reference=lambda x, spacing: list(np.gradient(x, spacing)),
        note="spaced",
    ),
    linear(
        "gradient",
        normal(4, 3),
        {"spacing": (2.0, 0.5), "dim": (0, 1)},
        reference=lambda x, spacing, dim: list(np.gradient(x, *spacing)),
        note="each",
    ),
    *[Sample("linalg.lu", graded(*s), pick=factors, note=note(s)) for s in LU_SHAPES],
    *[Sample("linalg.lu_factor", graded(*s), pick=first, note=note(s)) for s in LU_SHAPES],
    Sample("lu", graded(3, 3), pick=first, reference=packed),
    Sample(
        "svd",
        graded(3, 3),
        reference=lambda a: np.linalg.svd(a)[1],
        pick=lambda out: out[1],
    ),
    Sample("qr", graded(4, 3), pick=lambda out: abs(out[1])),
    Sample("cholesky_inverse", spectral(3, 3), prepare=lower),
    Sample("lu_solve", lambda r: (r.normal(size=(3, 2)), *factored(r, 3, 3))),
    Sample("linalg.lu_solve", lambda r: (*factored(r, 2, 3, 3), r.normal(size=(2, 3, 2)))),
    *[
        Sample(
            "linalg.lu_solve",
            lambda r: (*factored(r, 3, 3), r.normal(size=(3, 3))),
            {"left": left, "adjoint": adjoint},
            note=f"left={left} adjoint={adjoint}",
        )
        for left, adjoint in ((True, True), (False, False), (False, True))
    ],
    linear("lu_unpack", lambda r: factored(r, 4, 3), pick=factors),
    integers("gcd", lambda r: (r.integers(-9, 9, 5), r.integers(-9, 9, 5)), reference=np.gcd),
    integers("lcm", lambda r: (r.integers(1, 9, 5), r.integers(1, 9, 5)), reference=np.lcm),
    linear("nextafter", two((4,), (4,)), reference=np.nextafter, float32=False),
    linear("ldexp", lambda r: (r.normal(size=4), r.integers(0, 4, 4)), reference=np.ldexp),
    linear("frexp", normal(5), reference=lambda x: np.frexp(x)[0], pick=first),
    Sample(
        "float_power",
        lambda r: (r.uniform(0.5, 2, size=4), r.normal(size=4)),
        reference=np.float_power,
        float32=False,
    ),
    integers("isreal", normal(3), reference=np.isreal),
]

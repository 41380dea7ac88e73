"""Records of the products over a pattern of entries, of which some stand at the same place."""

from __future__ import annotations

from typing import Any

import numpy as np
from samples.record import Args, Sample

import chainrule.ops.linalg.sparse
from chainrule.backend import K

__all__ = ["SAMPLES"]


def pattern(m: int, n: int, count: int) -> Any:
    r = np.random.default_rng(count)
    return K.SparsePattern(r.integers(0, m, count), r.integers(0, n, count), (m, n))


def dense(values: Any, pattern: Any) -> Any:
    out = np.zeros((*values.shape[:-1], *pattern.shape))
    np.add.at(out, (..., pattern.rows, pattern.cols), values)
    return out


def product(values: Any, x: Any, pattern: Any) -> Any:
    return dense(values, pattern) @ x


def sampled(x: Any, y: Any, pattern: Any) -> Any:
    return (x @ y.mT)[..., pattern.rows, pattern.cols]


def normals(*shapes: tuple[int, ...]) -> Args:
    return lambda r: tuple(r.normal(size=shape) for shape in shapes)


PATTERNS = {
    "some": pattern(4, 5, 9),
    "many at one place": pattern(2, 2, 12),
    "one column": pattern(3, 1, 4),
    "none": K.SparsePattern(np.zeros(0, int), np.zeros(0, int), (3, 2)),
}


def both(note: str, p: Any) -> list[Sample]:
    (m, n), count = p.shape, p.rows.size
    home = chainrule.ops.linalg.sparse.__name__.removeprefix("chainrule.") + ".sparse_"
    told: dict[str, Any] = {"kwargs": {"pattern": p}, "torch": "", "note": note}
    return [
        Sample(f"{home}product", normals((count,), (n, 3)), reference=product, **told),
        Sample(f"{home}sampled", normals((m, 3), (n, 3)), reference=sampled, **told),
    ]


SAMPLES = [
    *[sample for note, p in PATTERNS.items() for sample in both(note, p)],
    Sample(
        "ops.linalg.sparse.sparse_product",
        normals((2, 9), (2, 5, 3)),
        {"pattern": PATTERNS["some"]},
        reference=product,
        torch="",
        note="batch",
    ),
    Sample(
        "ops.linalg.sparse.sparse_sampled",
        normals((2, 4, 3), (2, 5, 3)),
        {"pattern": PATTERNS["some"]},
        reference=sampled,
        torch="",
        note="batch",
    ),
]

"""Records of products: matmul and its relatives, linear, einsum."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from samples.record import Sample, normal

__all__ = ["SAMPLES"]

Args = Callable[[np.random.Generator], tuple[Any, ...]]


def shapes(*sizes: tuple[int, ...]) -> Args:
    """Standard normal inputs of these shapes."""
    return lambda r: tuple(r.normal(size=s) for s in sizes)


def note(*sizes: tuple[int, ...]) -> str:
    return " ".join(str(s).replace(" ", "") for s in sizes)


# --- products -------------------------------------------------------------------------------------

MATMUL = [
    ((3,), (3,)),
    ((2, 3), (3,)),
    ((3,), (3, 2)),
    ((2, 3), (3, 4)),
    ((5, 2, 3), (3, 4)),
    ((5, 2, 3), (3,)),
    ((3,), (5, 3, 4)),
    ((2, 3), (5, 3, 4)),
    ((5, 2, 3), (5, 3, 4)),
    ((1, 2, 3), (5, 3, 4)),
    ((4, 1, 2, 3), (5, 3, 2)),
    ((4, 5, 2, 3), (3,)),
    ((0, 3), (3, 2)),
    ((2, 0), (0, 3)),
    ((2, 2, 0), (0, 3)),
    ((0, 2, 3), (3, 4)),
    ((1, 1), (1, 1)),
]
LINEAR = [
    ((2, 3), (4, 3), (4,)),
    ((2, 3), (4, 3)),
    ((3,), (4, 3), (4,)),
    ((3,), (4, 3)),
    ((5, 2, 3), (4, 3), (4,)),
    ((2, 3), (3,)),
    ((2, 3), (4, 3), (1,)),
    ((0, 3), (4, 3), (4,)),
]
INNER = [((3,), (3,)), ((2, 3), (3,)), ((2, 3), (4, 5, 3)), ((), (3,))]


def linear(x: Any, weight: Any, bias: Any = 0.0) -> Any:
    return x @ weight.T + bias


def cross_rows(a: Any, b: Any) -> Any:
    return np.cross(a, b, axis=-1)


PRODUCTS = [
    *[Sample("matmul", shapes(*s), reference=np.matmul, note=note(*s)) for s in MATMUL],
    *[
        Sample("linear", shapes(*s), reference=linear, torch="nn.functional.linear", note=note(*s))
        for s in LINEAR
    ],
    *[Sample("inner", shapes(*s), reference=np.inner, note=note(*s)) for s in INNER],
    Sample("mm", shapes((2, 3), (3, 4)), reference=np.matmul),
    Sample("bmm", shapes((5, 2, 3), (5, 3, 4)), reference=np.matmul),
    Sample("mv", shapes((2, 3), (3,)), reference=np.matmul),
    Sample("dot", shapes((3,), (3,)), reference=np.dot),
    Sample("vdot", shapes((3,), (3,)), reference=np.vdot),
    Sample("outer", shapes((3,), (4,)), reference=np.outer),
    Sample("ger", shapes((1,), (2,)), reference=np.outer),
    Sample("kron", shapes((2, 3), (3, 2)), reference=np.kron),
    Sample("kron", shapes((3,), (2, 1, 2)), reference=np.kron, note="ranks"),
    Sample("cross", shapes((4, 3), (4, 3)), {"dim": 1}, reference=cross_rows),
    Sample(
        "cross",
        shapes((3, 2), (3, 2)),
        {"dim": 0},
        reference=lambda a, b: np.cross(a, b, axis=0),
        note="first",
    ),
    Sample(
        "cross", shapes((4, 1, 3), (1, 5, 3)), {"dim": -1}, reference=cross_rows, note="broadcast"
    ),
    Sample("trace", normal(3, 3), reference=np.trace),
    Sample("trace", normal(2, 4), reference=np.trace, note="wide"),
]

# --- products added to a tensor -------------------------------------------------------------------

SCALES = {"beta": 2.0, "alpha": 0.5}
ADDED = [
    Sample("addmm", shapes((2, 4), (2, 3), (3, 4)), reference=lambda x, a, b: x + a @ b),
    Sample(
        "addmm",
        shapes((4,), (2, 3), (3, 4)),
        SCALES,
        reference=lambda x, a, b: 2 * x + 0.5 * a @ b,
        note="scaled",
    ),
    Sample(
        "addmm",
        shapes((4,), (2, 3), (3, 4)),
        {"beta": 0},
        reference=lambda x, a, b: a @ b,
        note="beta 0",
    ),
    Sample(
        "addmv", shapes((2,), (2, 3), (3,)), SCALES, reference=lambda x, a, b: 2 * x + 0.5 * a @ b
    ),
    Sample(
        "addr",
        shapes((2, 3), (2,), (3,)),
        SCALES,
        reference=lambda x, a, b: 2 * x + 0.5 * np.outer(a, b),
    ),
    Sample(
        "baddbmm",
        shapes((5, 2, 4), (5, 2, 3), (5, 3, 4)),
        SCALES,
        reference=lambda x, a, b: 2 * x + 0.5 * a @ b,
    ),
    Sample(
        "addbmm",
        shapes((2, 4), (5, 2, 3), (5, 3, 4)),
        SCALES,
        reference=lambda x, a, b: 2 * x + 0.5 * (a @ b).sum(0),
    ),
]

# --- einsum ---------------------------------------------------------------------------------------

EINSUM: list[tuple[str, tuple[tuple[int, ...], ...]]] = [
    ("ij,jk", ((2, 3), (3, 4))),
    ("ij,jk->ki", ((2, 3), (3, 4))),
    ("ij->", ((2, 3),)),
    ("ij->ji", ((2, 3),)),
    ("ii", ((3, 3),)),
    ("ii->i", ((3, 3),)),
    ("iij,jkk->ik", ((2, 2, 3), (3, 4, 4))),
    ("i,j", ((2,), (3,))),
    ("i,i", ((3,), (3,))),
    ("i,i->i", ((3,), (3,))),
    (",i", ((), (3,))),
    ("bij,bjk->bik", ((5, 2, 3), (5, 3, 4))),
    ("...ij,...jk->...ik", ((2, 1, 2, 3), (5, 3, 4))),
    ("...ij,jk", ((5, 2, 3), (3, 4))),
    ("b...,b...->...", ((2, 3, 4), (2, 3, 4))),
    ("bhqd,bhkd->bhqk", ((2, 2, 3, 2), (2, 2, 4, 2))),
    ("ijk,jil->kl", ((2, 3, 4), (3, 2, 2))),
    ("a,b,c->abc", ((2,), (3,), (2,))),
    ("ij,jk,kl,lm->im", ((2, 3), (3, 4), (4, 2), (2, 3))),
    ("ij,ij,ij->i", ((2, 3), (2, 3), (2, 3))),
    ("ij,kl->", ((2, 3), (3, 2))),
    (" i j , jk -> i k", ((2, 3), (3, 4))),
    ("ij,jk->ik", ((0, 3), (3, 2))),
]
# NumPy does not broadcast a letter of size 1, and has its own order of letters.
EINSUM_IN_TORCH: list[tuple[str, tuple[tuple[int, ...], ...]]] = [
    ("ij,ij->ij", ((2, 3), (1, 3))),
    ("ij,jk->ik", ((2, 1), (3, 4))),
    ("ij,jk", ((2, 3), (1, 4))),
    ("Ab,bC", ((2, 3), (3, 2))),
    ("ij->j...", ((2, 3),)),
    ("ij...->ij", ((2, 2, 3),)),
    ("ijij->ij", ((2, 3, 2, 3),)),
]


def equation(text: str, sizes: tuple[tuple[int, ...], ...]) -> Args:
    return lambda r: (text, *[np.asarray(r.normal(size=s)) for s in sizes])


def einsum_note(text: str, sizes: tuple[tuple[int, ...], ...]) -> str:
    return f"{text} {note(*sizes)}"


SUMS = [
    *[
        Sample("einsum", equation(text, s), reference=np.einsum, note=einsum_note(text, s))
        for text, s in EINSUM
    ],
    *[
        Sample("einsum", equation(text, s), note=einsum_note(text, s))
        for text, s in EINSUM_IN_TORCH
    ],
    Sample(
        "einsum",
        lambda r: (r.normal(size=(2, 3)), [0, 1], r.normal(size=(3, 4)), [1, 2], [2, 0]),
        reference=np.einsum,
        note="lists",
    ),
    Sample(
        "einsum",
        lambda r: (r.normal(size=(2, 3)), [..., 0], r.normal(size=(3, 4)), [0, 1]),
        reference=lambda x, i, y, j: x @ y,
        note="lists with ellipsis",
    ),
    Sample(
        "einsum",
        lambda r: ("ij,jk", [r.normal(size=(2, 3)), r.normal(size=(3, 4))]),
        reference=lambda text, operands: operands[0] @ operands[1],
        note="list of operands",
    ),
    *[
        Sample(
            "tensordot",
            shapes(a, b),
            {"dims": dims},
            reference=lambda a, b, dims: np.asarray(np.tensordot(a, b, dims)),
            note=str(dims),
        )
        for dims, a, b in [
            (1, (2, 3), (3, 4)),
            (2, (5, 2, 3), (2, 3, 4)),
            (0, (2,), (3,)),
            (([0], [1]), (3, 2), (4, 3)),
            (([1, 0], [0, 1]), (3, 2, 5), (2, 3, 4)),
            (([0, 1], [0, 1]), (2, 3), (2, 3)),
        ]
    ],
    Sample("tensordot", shapes((2, 3), (1, 4)), {"dims": 1}, note="broadcast"),
]

SAMPLES: list[Sample] = [*PRODUCTS, *ADDED, *SUMS]

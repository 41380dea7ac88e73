"""Records of factors as LAPACK keeps them, of tensors as matrices, and of random projections."""

from __future__ import annotations

from typing import Any

import numpy as np
from samples.linalg import (
    EQUATIONS,
    RECTANGULAR,
    SQUARE,
    graded,
    note,
    solve,
    spectral,
    symmetric,
    then,
)
from samples.record import Args, Sample, normal

import chainrule

__all__ = ["SAMPLES"]

# --- what LAPACK keeps, and says of where it stopped ----------------------------------------------

REFLECTED = [(3, 3), (4, 2), (2, 4, 3), (1, 1)]


def reflections(*shape: int, other: tuple[int, ...] | None = None) -> Args:
    """Householder vectors and factors, and what they are applied to."""

    def args(r: np.random.Generator) -> tuple[Any, ...]:
        drawn = [r.normal(size=shape), r.uniform(0.5, 1.5, size=(*shape[:-2], shape[-1]))]
        return (*drawn, *([] if other is None else [r.normal(size=other)]))

    return args


def householder(a: Any, tau: Any) -> Any:
    """The product of the reflections, as matrices."""
    m, n = a.shape[-2:]
    q = np.eye(m)
    for i in range(tau.shape[-1]):
        v = np.where(np.arange(m) > i, a[..., i], np.arange(m) == i)
        q = q @ (np.eye(m) - tau[..., i, None, None] * v[..., :, None] * v[..., None, :])
    return q[..., :n]


def indefinite(*shape: int) -> Args:
    """A symmetric matrix that has eigenvalues of both signs."""

    def args(r: np.random.Generator) -> tuple[Any, ...]:
        a = r.normal(size=shape)
        return ((a + a.mT) * (1 - np.eye(shape[-1])),)

    return args


def factored(*shape: int) -> Args:
    """The factors L and D of such a matrix as LAPACK has them, and a right side."""

    def args(r: np.random.Generator) -> tuple[Any, ...]:
        out = chainrule.linalg.ldl_factor(chainrule.from_numpy(*indefinite(*shape)(r)))
        return out.LD.numpy(), out.pivots.numpy(), r.normal(size=(*shape[:-1], 2))

    return args


def zero_info(a: Any) -> Any:
    return np.zeros(a.shape[:-2], np.int32)


def without_signs(out: Any) -> Any:
    """U, S and V without the signs of vectors; NumPy has V'."""
    return abs(out[0]), out[1], abs(out[2])


def reference_without_signs(a: Any) -> Any:
    u, s, vh = np.linalg.svd(a, full_matrices=False)
    return abs(u), s, abs(vh.mT)


LAPACK = [
    *[
        Sample(
            "linalg.cholesky_ex",
            spectral(*s),
            {"upper": upper},
            prepare=symmetric,
            pick=tuple,
            note=f"{note(s)} {upper}",
        )
        for s in [(3, 3), (2, 2, 2)]
        for upper in (False, True)
    ],
    *[
        Sample(
            "linalg.inv_ex",
            graded(*s),
            reference=lambda a: (np.linalg.inv(a), zero_info(a)),
            pick=tuple,
            note=note(s),
        )
        for s in SQUARE
    ],
    *[
        Sample(
            "linalg.solve_ex",
            then(graded(*a), b),
            reference=lambda a, b: (solve(a, b), zero_info(a)),
            pick=tuple,
            note=note(a, b),
        )
        for a, b in EQUATIONS
    ],
    *[
        Sample("linalg.lu_factor_ex", graded(*s), pick=lambda out: (out.LU, out.info), note=note(s))
        for s in [(3, 3), (2, 4, 2)]
    ],
    *[
        Sample("linalg.householder_product", reflections(*s), reference=householder, note=note(s))
        for s in REFLECTED
    ],
    Sample("orgqr", reflections(4, 2), reference=householder),
    *[
        Sample(
            "ormqr",
            reflections(*s, other=(*s[:-2], s[-2], 2) if left else (*s[:-2], 2, s[-2])),
            {"left": left, "transpose": transpose},
            note=f"{note(s)} left={left} transpose={transpose}",
        )
        for s in REFLECTED
        for left in (True, False)
        for transpose in (True, False)
    ],
    *[
        Sample("geqrf", graded(*s), differentiable=False, pick=tuple, note=note(s))
        for s in RECTANGULAR
    ],
    *[
        Sample(
            "linalg.ldl_factor_ex",
            indefinite(*s),
            prepare=symmetric,
            pick=tuple,
            differentiable=False,
            note=note(s),
        )
        for s in [(3, 3), (2, 4, 4)]
    ],
    Sample(
        "linalg.ldl_factor", spectral(3, 3), prepare=symmetric, pick=tuple, differentiable=False
    ),
    *[
        Sample("linalg.ldl_solve", factored(*s), differentiable=False, note=note(s))
        for s in [(3, 3), (2, 4, 4)]
    ],
]

# --- tensors and powers ---------------------------------------------------------------------------

TENSORS = [
    Sample(
        "linalg.tensorinv",
        lambda r: (np.eye(6).reshape(2, 3, 6) + 0.1 * r.normal(size=(2, 3, 6)),),
        reference=np.linalg.tensorinv,
    ),
    Sample(
        "linalg.tensorinv",
        lambda r: (np.eye(4).reshape(4, 2, 2) + 0.1 * r.normal(size=(4, 2, 2)),),
        {"ind": 1},
        reference=np.linalg.tensorinv,
        note="1",
    ),
    Sample(
        "linalg.tensorsolve",
        lambda r: (
            np.eye(6).reshape(2, 3, 6) + 0.1 * r.normal(size=(2, 3, 6)),
            r.normal(size=(2, 3)),
        ),
        reference=np.linalg.tensorsolve,
    ),
    Sample(
        "linalg.tensorsolve",
        lambda r: (
            np.eye(6).reshape(6, 2, 3).swapaxes(0, 1) + 0.1 * r.normal(size=(2, 6, 3)),
            r.normal(size=6),
        ),
        {"dims": (0, 2)},
        reference=lambda a, b, dims: np.linalg.tensorsolve(a, b, dims),
        note="dims",
    ),
    Sample("linalg.vander", normal(3), reference=lambda x: np.vander(x, increasing=True)),
    Sample("linalg.vander", normal(2, 3), {"N": 4}, note="batch"),
    # What is drawn does not matter where the rank is small enough; vmap refuses to draw.
    Sample(
        "svd_lowrank",
        graded(4, 3),
        {"q": 3},
        pick=without_signs,
        reference=lambda a, q: reference_without_signs(a),
        float32=False,
        vmap=False,
    ),
    Sample(
        "svd_lowrank",
        then(graded(2, 4), (2, 4)),
        prepare=lambda a, m: (a + m, 2, 2, m),
        pick=without_signs,
        reference=lambda a, q, niter, m: reference_without_signs(a - m),
        float32=False,
        vmap=False,
        note="less M",
    ),
    Sample(
        "pca_lowrank",
        graded(4, 2),
        {"q": 2},
        pick=lambda out: (out[1], abs(out[2])),
        reference=lambda a, q: reference_without_signs(a - a.mean(0))[1:],
        float32=False,
        vmap=False,
    ),
]

SAMPLES: list[Sample] = [*LAPACK, *TENSORS]

"""Records of linear algebra.

Singular and eigenvectors are determined up to sign, so their absolute values are compared. The
singular values of the samples are well apart, as are the eigenvalues: where they meet, there is no
derivative.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg
from samples.record import Sample, normal

__all__ = [
    "EQUATIONS",
    "RECTANGULAR",
    "SAMPLES",
    "SQUARE",
    "graded",
    "note",
    "solve",
    "spectral",
    "symmetric",
    "then",
]

Args = Callable[[np.random.Generator], tuple[Any, ...]]
INF = float("inf")

# --- arguments ------------------------------------------------------------------------------------


def graded(*shape: int) -> Args:
    """A matrix with singular values around 3, 2, 1."""
    return lambda r: (_graded(r, *shape),)


def _graded(r: np.random.Generator, *shape: int) -> np.ndarray:
    k = min(shape[-2:])
    u, _, vh = np.linalg.svd(r.normal(size=shape), full_matrices=False)
    values = np.arange(k, 0, -1) + r.uniform(-0.2, 0.2, size=(*shape[:-2], k))
    return (u * values[..., None, :]) @ vh


def spectral(*shape: int) -> Args:
    """A symmetric matrix with eigenvalues around 1, 2, 3: positive definite."""

    def args(r: np.random.Generator) -> tuple[Any, ...]:
        q, _ = np.linalg.qr(r.normal(size=shape))
        values = np.arange(1, shape[-1] + 1) + r.uniform(-0.2, 0.2, size=shape[:-1])
        return ((q * values[..., None, :]) @ q.mT,)

    return args


def symmetric(a: Any, *rest: Any) -> tuple[Any, ...]:
    """The symmetric part of any matrix, for functions that read one triangle."""
    return ((a + a.mT) / 2, *rest)


def then(args: Args, *shapes: tuple[int, ...]) -> Args:
    """A matrix, then standard normal inputs of these shapes."""
    return lambda r: (*args(r), *[r.normal(size=s) for s in shapes])


def note(*sizes: tuple[int, ...]) -> str:
    return " ".join(str(s).replace(" ", "") for s in sizes)


# --- solving --------------------------------------------------------------------------------------

SQUARE = [(3, 3), (2, 3, 3), (1, 1), (2, 0, 3, 3), (0, 0)]
EQUATIONS = [
    ((3, 3), (3,)),
    ((3, 3), (3, 2)),
    ((2, 3, 3), (2, 3)),
    ((2, 3, 3), (3,)),
    ((2, 3, 3), (3, 4)),
    ((3, 3), (2, 3, 2)),
    ((2, 3, 3), (4, 1, 3, 2)),
]


def of_square(name: str, reference: Callable[..., Any], **options: Any) -> list[Sample]:
    """A record for each shape of square matrices."""
    return [Sample(name, graded(*s), reference=reference, note=note(s), **options) for s in SQUARE]


def solve(a: Any, b: Any, left: bool = True) -> Any:
    if not left:
        return np.linalg.solve(a.mT, b.mT).mT
    if b.ndim == 1 or b.shape == a.shape[:-1]:
        return np.linalg.solve(a, b[..., None])[..., 0]
    return np.linalg.solve(a, b)


def triangular(a: Any, b: Any, upper: bool, left: bool = True, unitriangular: bool = False) -> Any:
    a = np.triu(a) if upper else np.tril(a)
    if unitriangular:
        a = a - a * np.eye(a.shape[-1]) + np.eye(a.shape[-1])
    return solve(a, b, left)


def cholesky_solve(b: Any, factor: Any, upper: bool = False) -> Any:
    return scipy.linalg.cho_solve((factor, not upper), b)


def dominant(*shape: int) -> Args:
    """A matrix that is well conditioned, and so are its triangles."""
    return lambda r: (r.normal(size=shape) * 0.3 + 2 * np.eye(shape[-1]),)


SOLVING = [
    *of_square("linalg.inv", np.linalg.inv),
    *of_square("linalg.det", np.linalg.det),
    *of_square("linalg.slogdet", lambda a: tuple(np.linalg.slogdet(a))),
    *[
        Sample("linalg.solve", then(graded(*a), b), reference=solve, note=note(a, b))
        for a, b in EQUATIONS
    ],
    Sample(
        "linalg.solve", then(graded(3, 3), (2, 3)), {"left": False}, reference=solve, note="right"
    ),
    *[
        Sample(
            "linalg.solve_triangular",
            then(dominant(*a), b),
            {"upper": upper, **more},
            reference=triangular,
            note=f"{note(a, b)} {'upper' if upper else 'lower'} {more}",
        )
        for a, b in EQUATIONS[1:]
        if b != (2, 3) and len(b) > 1
        for upper, more in [(True, {}), (False, {"unitriangular": True})]
    ],
    Sample(
        "linalg.solve_triangular",
        then(dominant(3, 3), (2, 3)),
        {"upper": False, "left": False},
        reference=triangular,
        note="right",
    ),
    # PyTorch gives the gradient of the triangle that is not read, too, as if it were.
    Sample(
        "cholesky_solve",
        lambda r: (r.normal(size=(3, 2)), *dominant(3, 3)(r)),
        reference=cholesky_solve,
        torch="",
    ),
    Sample(
        "cholesky_solve",
        lambda r: (r.normal(size=(3, 2)), *dominant(3, 3)(r)),
        {"upper": True},
        reference=cholesky_solve,
        torch="",
        note="upper",
    ),
    Sample("inverse", graded(2, 2), reference=np.linalg.inv),
    Sample("det", graded(2, 2), reference=np.linalg.det),
    Sample("slogdet", graded(2, 2), reference=lambda a: tuple(np.linalg.slogdet(a))),
    Sample("logdet", spectral(3, 3), reference=lambda a: np.linalg.slogdet(a)[1]),
    *[
        Sample("linalg.pinv", graded(*s), reference=np.linalg.pinv, note=note(s))
        for s in [(3, 3), (4, 2), (2, 3), (2, 3, 2)]
    ],
    Sample(
        "linalg.pinv",
        spectral(3, 3),
        {"hermitian": True},
        prepare=symmetric,
        reference=np.linalg.pinv,
        note="hermitian",
    ),
    Sample(
        "linalg.pinv",
        graded(4, 3),
        {"atol": 0.1, "rtol": 0.01},
        reference=np.linalg.pinv,
        note="tolerances",
    ),
    Sample("pinverse", graded(4, 2), reference=np.linalg.pinv),
    *[
        Sample("linalg.lstsq", then(graded(*a), b), pick=lambda out: out.solution, note=note(a, b))
        for a, b in [((4, 2), (4, 3)), ((4, 2), (4,)), ((2, 4), (2, 1)), ((2, 4, 2), (2, 4, 3))]
    ],
    Sample(
        "linalg.lstsq",
        then(graded(4, 2), (4, 3)),
        {"driver": "gelsd"},
        pick=lambda out: (out.solution, out.residuals, out.rank),
        note="gelsd",
    ),
    Sample(
        "linalg.lstsq",
        then(graded(4, 2), (4, 3)),
        {"driver": "gelss"},
        pick=lambda out: out.singular_values,
        reference=lambda a, b, driver: np.linalg.svdvals(a),
        differentiable=False,
        note="gelss",
    ),
    *[
        Sample("linalg.matrix_exp", normal(*s), reference=scipy.linalg.expm, note=note(s))
        for s in [(3, 3), (2, 2, 2), (1, 1)]
    ],
    Sample("matrix_exp", normal(2, 2), reference=scipy.linalg.expm),
]


# --- factorizations -------------------------------------------------------------------------------

RECTANGULAR = [(3, 3), (4, 2), (2, 4), (2, 3, 2), (2, 2, 3), (3, 1), (1, 1)]


def without_signs(out: Any) -> Any:
    """Singular vectors, of which only those that belong to a singular value are determined."""
    u, s, vh = out
    k = s.shape[-1]
    return abs(u[..., :k]), s, abs(vh[..., :k, :])


def projections(out: Any) -> Any:
    """What the singular vectors without singular values span is determined, too."""
    u, s, vh = out
    k = s.shape[-1]
    return u[..., k:] @ u[..., k:].mT, vh[..., k:, :].mT @ vh[..., k:, :]


def eigenvectors_without_signs(out: Any) -> Any:
    return out[0], abs(out[1])


def eigenvectors_without_phases(out: Any) -> Any:
    return out[0].real, out[0].imag, abs(out[1])


def rotating(*shape: int) -> Args:
    """A matrix with complex eigenvalues that are well apart."""

    def args(r: np.random.Generator) -> tuple[Any, ...]:
        n = shape[-1]
        turn = np.triu(np.ones((n, n)), 1) - np.tril(np.ones((n, n)), -1)
        return (np.diag(np.arange(1.0, n + 1)) + 2 * turn + 0.1 * r.normal(size=shape),)

    return args


def cholesky(a: Any, upper: bool = False) -> Any:
    factor = np.linalg.cholesky(a)
    return factor.mT if upper else factor


FACTORIZATIONS = [
    *[
        Sample("linalg.cholesky", spectral(*s), prepare=symmetric, reference=cholesky, note=note(s))
        for s in [(3, 3), (2, 3, 3), (1, 1)]
    ],
    Sample(
        "linalg.cholesky",
        spectral(3, 3),
        {"upper": True},
        prepare=symmetric,
        reference=cholesky,
        note="upper",
    ),
    Sample(
        "cholesky", spectral(2, 2), prepare=symmetric, reference=cholesky, torch="linalg.cholesky"
    ),
    *[
        Sample(
            "linalg.qr",
            graded(*s),
            reference=lambda a: tuple(np.linalg.qr(a)),
            pick=tuple,
            note=note(s),
        )
        for s in RECTANGULAR
    ],
    Sample(
        "linalg.qr",
        graded(2, 3),
        {"mode": "complete"},
        pick=tuple,
        reference=lambda a: tuple(np.linalg.qr(a, "complete")),
        note="complete, wide",
    ),
    Sample(
        "linalg.qr",
        graded(3, 2),
        {"mode": "complete"},
        pick=tuple,
        differentiable=False,
        reference=lambda a: tuple(np.linalg.qr(a, "complete")),
        note="complete, tall",
    ),
    # PyTorch refuses to differentiate this.
    Sample(
        "linalg.qr",
        graded(3, 2),
        {"mode": "r"},
        pick=lambda out: out[1],
        torch="",
        reference=lambda a: np.linalg.qr(a, "r"),
        note="r",
    ),
    *[
        Sample(
            "linalg.svd",
            graded(*s),
            {"full_matrices": full},
            pick=without_signs,
            reference=lambda a, full_matrices: without_signs(np.linalg.svd(a, full_matrices)),
            note=f"{note(s)} {'full' if full else 'reduced'}",
        )
        for s in RECTANGULAR
        for full in (False, True)
    ],
    # PyTorch ignores the gradients of these columns.
    Sample(
        "linalg.svd",
        graded(4, 2),
        pick=projections,
        torch="",
        reference=lambda a: projections(np.linalg.svd(a)),
        note="span, tall",
    ),
    Sample(
        "linalg.svd",
        graded(2, 3),
        pick=projections,
        torch="",
        reference=lambda a: projections(np.linalg.svd(a)),
        note="span, wide",
    ),
    *[
        Sample("linalg.svdvals", graded(*s), reference=np.linalg.svdvals, note=note(s))
        for s in RECTANGULAR
    ],
    *[
        Sample(
            "linalg.eigh",
            spectral(*s),
            {"UPLO": uplo},
            prepare=symmetric,
            pick=eigenvectors_without_signs,
            reference=lambda a: eigenvectors_without_signs(np.linalg.eigh(a)),
            note=f"{note(s)} {uplo}",
        )
        for s in [(3, 3), (2, 3, 3), (1, 1)]
        for uplo in "LU"
    ],
    Sample("linalg.eigvalsh", spectral(2, 3, 3), prepare=symmetric, reference=np.linalg.eigvalsh),
    Sample(
        "linalg.eigvalsh",
        spectral(2, 2),
        {"UPLO": "U"},
        prepare=symmetric,
        reference=np.linalg.eigvalsh,
        note="upper",
    ),
    *[
        Sample(
            "linalg.eig",
            rotating(*s),
            pick=eigenvectors_without_phases,
            reference=lambda a: eigenvectors_without_phases(np.linalg.eig(a)),
            note=note(s),
        )
        for s in [(3, 3), (2, 2, 2), (1, 1)]
    ],
    *[
        Sample(
            "linalg.eigvals",
            rotating(*s),
            pick=lambda out: (out.real, out.imag),
            reference=lambda a: (np.linalg.eigvals(a).real, np.linalg.eigvals(a).imag),
            note=note(s),
        )
        for s in [(3, 3), (2, 2, 2)]
    ],
]

# --- norms ----------------------------------------------------------------------------------------

MATRIX_NORMS = ["fro", "nuc", INF, -INF, 1, -1, 2, -2]
PIECEWISE_LINEAR = {INF, -INF, 1, -1, 0}


def matrix_norm(a: Any, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False) -> Any:
    return np.linalg.norm(a, ord, dim, keepdim)


def vector_norm(x: Any, ord: Any = 2, dim: Any = None, keepdim: bool = False) -> Any:
    return np.linalg.vector_norm(x, ord=ord, axis=dim, keepdims=keepdim)


def norm(a: Any, ord: Any = None, dim: Any = None, keepdim: bool = False) -> Any:
    return np.linalg.norm(a, ord, dim, keepdim)


def cond(a: Any, p: Any = None) -> Any:
    return np.linalg.cond(a, p)


NORMS = [
    *[
        Sample(
            "linalg.matrix_norm",
            graded(3, 2),
            {"ord": ord},
            reference=matrix_norm,
            second_order=ord not in PIECEWISE_LINEAR,
            note=f"{ord}",
        )
        for ord in MATRIX_NORMS
    ],
    *[
        Sample(
            "linalg.matrix_norm",
            graded(2, 3, 4),
            {"ord": ord, "dim": (2, 0), "keepdim": True},
            reference=matrix_norm,
            second_order=ord not in PIECEWISE_LINEAR,
            note=f"{ord} dims",
        )
        for ord in MATRIX_NORMS
    ],
    *[
        Sample(
            "linalg.vector_norm",
            normal(3, 4),
            {"ord": ord},
            reference=vector_norm,
            second_order=ord not in PIECEWISE_LINEAR,
            note=f"{ord}",
        )
        for ord in [2, 1, INF, -INF, 3, 0.5, -1, 1.5]
    ],
    Sample(
        "linalg.vector_norm",
        normal(3, 4),
        {"ord": 3, "dim": 1, "keepdim": True},
        reference=vector_norm,
        note="dim",
    ),
    Sample(
        "linalg.vector_norm", normal(2, 3, 4), {"dim": (0, 2)}, reference=vector_norm, note="dims"
    ),
    Sample("linalg.norm", normal(2, 3, 4), reference=norm),
    Sample("linalg.norm", normal(3, 4), {"dim": 0}, reference=norm, note="dim"),
    Sample("linalg.norm", graded(3, 2), {"ord": 2}, reference=norm, note="2"),
    Sample("linalg.norm", normal(3), {"ord": 3}, reference=norm, note="vector"),
    Sample(
        "linalg.norm",
        graded(2, 3, 2),
        {"ord": "nuc", "dim": (0, 1), "keepdim": True},
        reference=norm,
        note="nuc dims",
    ),
    *[
        # PyTorch fails in the backward pass of the others.
        Sample("linalg.cond", graded(2, 3, 3), {"p": p}, reference=cond, torch=name, note=f"{p}")
        for p, name in [
            (None, None),
            (2, None),
            (-2, None),
            ("nuc", None),
            ("fro", ""),
            (INF, ""),
            (-1, ""),
        ]
    ],
    Sample("linalg.cond", graded(4, 2), reference=cond, note="tall"),
    Sample(
        "linalg.matrix_rank",
        lambda r: (r.normal(size=(4, 2)) @ r.normal(size=(2, 3)),),
        differentiable=False,
        reference=lambda a: np.asarray(np.linalg.matrix_rank(a)),
    ),
    Sample(
        "linalg.matrix_rank",
        spectral(2, 3, 3),
        {"hermitian": True, "atol": 1.5},
        differentiable=False,
        reference=lambda a: np.array([2, 2]),
        note="hermitian",
    ),
]

# --- products and powers --------------------------------------------------------------------------


def multi_dot(operands: Any) -> Any:
    return np.linalg.multi_dot(operands)


def chain(*shapes: tuple[int, ...]) -> Args:
    return lambda r: ([r.normal(size=s) for s in shapes],)


PRODUCTS = [
    *[
        Sample(
            "linalg.matrix_power",
            graded(2, 3, 3),
            {"n": n},
            reference=np.linalg.matrix_power,
            note=str(n),
        )
        for n in (-2, -1, 1, 2, 5)
    ],
    Sample(
        "matrix_power",
        graded(2, 2),
        {"n": 0},
        second_order=False,
        reference=np.linalg.matrix_power,
        note="0",
    ),
    Sample("matrix_power", graded(2, 2), {"n": 3}, reference=np.linalg.matrix_power),
    Sample("linalg.multi_dot", chain((2, 3), (3, 5), (5, 1), (1, 4)), reference=multi_dot),
    Sample(
        "linalg.multi_dot", chain((2,), (2, 5), (5, 3), (3,)), reference=multi_dot, note="vectors"
    ),
    Sample("linalg.multi_dot", chain((2, 3), (3, 2)), reference=multi_dot, note="two"),
    Sample(
        "chain_matmul",
        lambda r: (r.normal(size=(2, 3)), r.normal(size=(3, 4)), r.normal(size=(4, 2))),
        torch_call=lambda torch, a, b, c: a @ b @ c,
        reference=lambda a, b, c: a @ b @ c,
    ),
    Sample(
        "linalg.matmul",
        lambda r: (r.normal(size=(2, 3)), r.normal(size=(3, 4))),
        reference=np.matmul,
    ),
    Sample(
        "linalg.vecdot",
        lambda r: (r.normal(size=(2, 3)), r.normal(size=3)),
        reference=np.linalg.vecdot,
    ),
    Sample(
        "linalg.vecdot",
        lambda r: (r.normal(size=(2, 3)), r.normal(size=(2, 3))),
        {"dim": 0},
        reference=lambda a, b: (a * b).sum(0),
        note="dim",
    ),
    Sample(
        "linalg.cross", lambda r: (r.normal(size=(4, 3)), r.normal(size=(1, 3))), reference=np.cross
    ),
    Sample("linalg.diagonal", normal(2, 3, 4), reference=lambda a: np.linalg.diagonal(a)),
    Sample(
        "linalg.diagonal",
        normal(3, 2, 4),
        {"offset": 1, "dim1": 0, "dim2": 2},
        reference=lambda a: a.diagonal(1, 0, 2),
        note="dims",
    ),
]

SAMPLES: list[Sample] = [*SOLVING, *FACTORIZATIONS, *NORMS, *PRODUCTS]

"""Factorizations: Cholesky, QR, singular values, eigenvalues of Hermitian matrices.

Rules are after M. Giles (2008), I. Murray, "Differentiation of the Cholesky decomposition" (2016),
M. Seeger et al., "Auto-differentiating linear algebra" (2017) and D. Roberts and L. Roberts, "QR
and LQ decomposition matrix backpropagation algorithms" (2020); ``t`` is a tangent, ``g`` a
gradient, ``x*`` an adjoint. Singular and eigenvectors are determined up to sign (complex ones: up
to a factor of size 1) only: what is computed from them has a derivative if it does not depend on
that choice, and none where values coincide.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, NoReturn

from chainrule.ops.core.arguments import placed_like
from chainrule.backend import K
from chainrule.ops.core.synonyms import also_named
from chainrule.ops.shape.diagonal import diag_embed, diagonal, tril, triu
from chainrule.ops.elementwise.complex_numbers import imag
from chainrule.ops.elementwise.logic import where
from chainrule.ops.index.reading import narrow
from chainrule.ops.core.promotion import is_complex_value
from chainrule.ops.core.primitive import Primitive
from chainrule.ops.linalg.adjoint import (
    WithAdjoints,
    adjoint,
    check_phase,
    hermitian,
    real_diagonal,
)
from chainrule.ops.shape.views import unsqueeze
from chainrule.ops.shape.stacking import cat
from chainrule.ops.linalg.solving import check_matrix, solve_by_substitution
from chainrule.tensor import Tensor, of_array
from chainrule.typing import V, Value

__all__ = [
    "Eigen",
    "QR",
    "SVD",
    "cholesky",
    "eigh",
    "eigvalsh",
    "gaps_of",
    "over_gaps",
    "qr",
    "svd",
    "svdvals",
]


def _solve(a: V, b: V, upper: bool) -> V:
    return solve_by_substitution(a, b, upper=upper, unitriangular=False)


# --- Cholesky: dL = L phi(L^-1 dA L^-*) -----------------------------------------------------------


def _phi(x: V) -> V:
    """The lower triangle with half the diagonal."""
    return 0.5 * (tril(x) + tril(x, -1))


def _cholesky_vjp(g: Value, out: Value, x: Value, needs: Sequence[bool]) -> tuple[Value]:
    adj = adjoint(out)
    half = _solve(adj, _phi(adj @ g), upper=True)
    return (hermitian(_solve(adj, adjoint(half), upper=True)),)


def _cholesky_jvp(tangents: Sequence[Value], out: Value, x: Value) -> Value:
    half = _solve(out, hermitian(tangents[0]), upper=False)
    return out @ _phi(_solve(out, adjoint(half), upper=False))


_cholesky = WithAdjoints("cholesky", _cholesky_vjp, _cholesky_jvp, batch="carry")


@also_named(input="A")
def cholesky(A: V, *, upper: bool = False) -> V:
    """The lower triangular L with LL* = A, for a Hermitian positive definite A (L* if ``upper``).

    The lower triangle of A is read (the upper one if ``upper``); the gradient is Hermitian. Raises
    :class:`LinAlgError` if A is not positive definite.
    """
    check_matrix("linalg.cholesky", A, square=True)
    return _cholesky(A.mT).mT if upper else _cholesky(A)  # conj(A) has the factor conj(L)


# --- QR: dQ = (dA - Q dR) R^-1, Q* dQ skew-Hermitian, dR triangular with a real diagonal ----------


class QR(NamedTuple):
    """What :func:`qr` returns."""

    Q: Tensor
    R: Tensor


def _qr_vjp(
    g: tuple[Value, Value],
    out: tuple[Value, Value],
    x: Value,
    needs: Sequence[bool],
    complete: bool,
) -> tuple[Value]:
    (gq, gr), (q, r) = g, out
    m = r @ adjoint(gr) - adjoint(gq) @ q
    both = gq + q @ _from_below(m)
    return (adjoint(_solve(r, adjoint(both), upper=True)),)


def _qr_jvp(
    tangents: Sequence[Value], out: tuple[Value, Value], x: Value, complete: bool
) -> tuple[Value, Value]:
    q, r = out
    scaled = _solve(r.mT, tangents[0].mT, upper=False).mT
    inside = adjoint(q) @ scaled
    change = triu(inside + adjoint(tril(inside, -1)))
    if is_complex_value(change):
        change = change - 1j * diag_embed(imag(diagonal(change, 0, -2, -1)))
    return scaled - q @ change, change @ r


def _from_below(m: V) -> V:
    """The Hermitian matrix with this lower triangle and the real part of the diagonal."""
    below = tril(m, -1)
    if is_complex_value(m):
        return below + adjoint(below) + diag_embed(real_diagonal(m))
    return tril(m) + below.mT


def _not_differentiable(*args: object, **kwargs: object) -> NoReturn:
    raise RuntimeError(
        "linalg.qr: the QR decomposition is not differentiable when mode='complete' and there are "
        "more rows than columns; use mode='reduced'"
    )


_qr = WithAdjoints("qr", _qr_vjp, _qr_jvp, batch="carry")
_qr_complete = Primitive(
    "qr_complete", _not_differentiable, _not_differentiable, batch="carry", kernel="qr"
)


def qr(A: Tensor, mode: str = "reduced") -> QR:
    """Q with orthonormal columns and the upper triangular R, with QR = A.

    ``mode`` is ``"reduced"`` (Q has as many columns as R has rows, the smaller size of A),
    ``"complete"`` (Q is square; differentiable if A has no more rows than columns) or ``"r"`` (Q is
    empty).
    """
    check_matrix("linalg.qr", A)
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(
            f"linalg.qr: unrecognized mode {mode!r}, expected one of 'reduced' (default), 'r', or "
            "'complete'"
        )
    rows, columns = A.shape[-2:]
    if rows >= columns:
        op = _qr_complete if mode == "complete" and rows > columns else _qr
        q, r = op(A, complete=op is _qr_complete)
    else:
        # The first square block is factorized, the rest of R is Q* times the rest of A.
        q, first = _qr(narrow(A, -1, 0, rows), complete=False)
        r = cat([first, adjoint(q) @ narrow(A, -1, rows, columns - rows)], -1)
    return QR(placed_like(A, of_array(K.zeros((0,), A.array.dtype))) if mode == "r" else q, r)


# --- what singular and eigenvectors have in common ------------------------------------------------


def gaps_of(values: V) -> V:
    """v_j - v_i, and infinity on the diagonal: a vector does not turn into itself."""
    same = K.eye(values.shape[-1], dtype=bool)
    same = placed_like(values, of_array(same)) if isinstance(values, Tensor) else same
    return where(same, math.inf, unsqueeze(values, -2) - unsqueeze(values, -1))


def over_gaps(x: V, gaps: V) -> V:
    """x / gaps, and 0 for 0 / 0: values that coincide matter only to what depends on vectors."""
    hole = (x == 0) & (gaps == 0)
    return where(hole, 0.0, x / where(hole, 1.0, gaps))


# --- singular values: A = U S V* ------------------------------------------------------------------


class SVD(NamedTuple):
    """What :func:`svd` returns."""

    U: Tensor
    S: Tensor
    Vh: Tensor


def _padded(x: V, n: int) -> V:
    """The last dimension filled up with zeros to size n."""
    missing = n - x.shape[-1]
    if missing == 0:
        return x
    dtype = (x.array if isinstance(x, Tensor) else x).dtype
    zeros = K.zeros((*x.shape[:-1], missing), dtype)
    return cat([x, placed_like(x, of_array(zeros)) if isinstance(x, Tensor) else zeros], -1)


def _first(x: V, k: int) -> V:
    return x if x.shape[-1] == k else narrow(x, -1, 0, k)


def _square_gaps(s: V, n: int) -> V:
    """s_j^2 - s_i^2, filled up with zeros for the vectors without a value to size n.

    It is infinite on the diagonal and among those vectors, which are free to turn into each other.
    """
    free = K.arange(0, n, 1, "int64") >= s.shape[-1]
    apart = K.eye(n, dtype=bool) | (free & free[:, None])
    apart = placed_like(s, of_array(apart)) if isinstance(s, Tensor) else apart
    v = _padded(s, n)
    across, down = unsqueeze(v, -2), unsqueeze(v, -1)
    return where(apart, math.inf, (across - down) * (across + down))


def _rotation(p: V, s: V) -> V:
    """U* dU from p = U* dA V: (p S + S p*)_ij / (s_j^2 - s_i^2), skew-Hermitian.

    Vectors of complex numbers may turn in themselves, those in U and V in opposite directions by
    what p says of the sum: i Im(p_jj) / (2 s_j).
    """
    scaled = _padded(_first(p, s.shape[-1]) * unsqueeze(s, -2), p.shape[-2])
    out = over_gaps(scaled + adjoint(scaled), _square_gaps(s, p.shape[-2]))
    if not is_complex_value(p):
        return out
    turn = over_gaps(imag(diagonal(p, 0, -2, -1)), s + s)
    return out + 1j * diag_embed(_padded(turn, p.shape[-2]))


def _rotation_adjoint(g: V, s: V, n: int) -> V:
    """The adjoint of :func:`_rotation` for a p with n columns."""
    k = s.shape[-1]
    turned = over_gaps(g - adjoint(g), _square_gaps(s, g.shape[-1]))
    out = _first(turned, k) * unsqueeze(s, -2)
    if is_complex_value(g):
        turn = over_gaps(_first(imag(diagonal(g, 0, -2, -1)), k), s + s)
        out = out + 1j * _first(diag_embed(_padded(turn, out.shape[-2])), k)
    return _padded(out, n)


def _outside(u: V, x: V) -> V:
    """The part of x outside the space of the columns of u."""
    return x - u @ (adjoint(u) @ x)


def _svd_vjp(
    g: tuple[Value, Value, Value],
    out: tuple[Value, Value, Value],
    x: Value,
    needs: Sequence[bool],
    full: bool,
) -> tuple[Value]:
    """U [rot*(U* gU) + rot*(V* gV)* + gS] V*, and what U and V lack to be square."""
    (gu, gs, gvh), (u, s, vh) = g, out
    v, gv, k = adjoint(vh), adjoint(gvh), s.shape[-1]
    inside_u, inside_v = adjoint(u) @ gu, vh @ gv
    if is_complex_value(x):
        turn = _first(imag(diagonal(inside_u, 0, -2, -1)), k)
        check_phase("linalg.svd", turn + _first(imag(diagonal(inside_v, 0, -2, -1)), k))
    core = _rotation_adjoint(inside_u, s, v.shape[-1])
    core = core + adjoint(_rotation_adjoint(inside_v, s, u.shape[-1]))
    gx = u @ core @ vh + (_first(u, k) * unsqueeze(gs, -2)) @ adjoint(_first(v, k))
    if u.shape[-2] > u.shape[-1]:
        gx = gx + _outside(u, gu / unsqueeze(s, -2)) @ vh
    if v.shape[-2] > v.shape[-1]:
        gx = gx + u @ adjoint(_outside(v, gv / unsqueeze(s, -2)))
    return (gx,)


def _svd_jvp(
    tangents: Sequence[Value], out: tuple[Value, Value, Value], x: Value, full: bool
) -> tuple[Value, Value, Value]:
    (t,), (u, s, vh) = tangents, out
    v = adjoint(vh)
    p = adjoint(u) @ t @ v
    tu, tv = u @ _rotation(p, s), v @ _rotation(adjoint(p), s)
    if u.shape[-2] > u.shape[-1]:
        tu = tu + _outside(u, t @ v) / unsqueeze(s, -2)
    if v.shape[-2] > v.shape[-1]:
        tv = tv + _outside(v, adjoint(t) @ u) / unsqueeze(s, -2)
    return tu, real_diagonal(p), adjoint(tv)


_svd = WithAdjoints("svd", _svd_vjp, _svd_jvp, batch="carry")


def svd(A: Tensor, full_matrices: bool = True) -> SVD:
    """U, S and Vh with A = U diag(S) Vh and S in descending order.

    U and Vh are square, or, with ``full_matrices=False``, have only the columns (rows) that belong
    to a singular value.
    """
    check_matrix("linalg.svd", A)
    full = full_matrices and A.shape[-1] != A.shape[-2]
    return SVD(*_svd(A, full=full))


def _svdvals_vjp(g: Value, out: Value, x: Value, needs: Sequence[bool]) -> tuple[Value]:
    u, _, vh = _svd(x, full=False)
    return ((u * unsqueeze(g, -2)) @ vh,)


def _svdvals_jvp(tangents: Sequence[Value], out: Value, x: Value) -> Value:
    u, _, vh = _svd(x, full=False)
    return real_diagonal(adjoint(u) @ tangents[0] @ adjoint(vh))


_svdvals = WithAdjoints("svdvals", _svdvals_vjp, _svdvals_jvp, batch="carry", saves_out=False)


def svdvals(A: V) -> V:
    """The singular values, in descending order."""
    check_matrix("linalg.svdvals", A)
    return _svdvals(A)


# --- eigenvalues of Hermitian matrices: A = V diag(L) V* ------------------------------------------


class Eigen(NamedTuple):
    """What :func:`eigh` and :func:`chainrule.linalg.eig` return."""

    eigenvalues: Tensor
    eigenvectors: Tensor


def _eigh_vjp(
    g: tuple[Value, Value], out: tuple[Value, Value], x: Value, needs: Sequence[bool], uplo: str
) -> tuple[Value]:
    (gl, gv), (values, v) = g, out
    vh = adjoint(v)
    inside = vh @ gv
    if is_complex_value(x):
        check_phase("linalg.eigh", imag(diagonal(inside, 0, -2, -1)))
    turned = over_gaps(inside, gaps_of(values))
    return (hermitian(v @ (turned + diag_embed(gl)) @ vh),)


def _eigh_jvp(
    tangents: Sequence[Value], out: tuple[Value, Value], x: Value, uplo: str
) -> tuple[Value, Value]:
    values, v = out
    p = adjoint(v) @ hermitian(tangents[0]) @ v
    return real_diagonal(p), v @ over_gaps(p, gaps_of(values))


_eigh = WithAdjoints("eigh", _eigh_vjp, _eigh_jvp, batch="carry")


def _triangle_name(op: str, uplo: str) -> str:
    if uplo.upper() not in ("L", "U"):
        raise RuntimeError(f"{op}: expected UPLO to be 'L' or 'U', but got {uplo!r}")
    return uplo.upper()


def eigh(A: Tensor, UPLO: str = "L") -> Eigen:
    """The eigenvalues (ascending) and eigenvectors (columns) of a symmetric or Hermitian matrix.

    Only the lower (``"L"``) or upper (``"U"``) triangle is read; the gradient is Hermitian.
    """
    check_matrix("linalg.eigh", A, square=True)
    return Eigen(*_eigh(A, uplo=_triangle_name("linalg.eigh", UPLO)))


def _eigvalsh_vjp(g: Value, out: Value, x: Value, needs: Sequence[bool], uplo: str) -> tuple[Value]:
    v = _eigh(x, uplo=uplo)[1]
    return ((v * unsqueeze(g, -2)) @ adjoint(v),)


def _eigvalsh_jvp(tangents: Sequence[Value], out: Value, x: Value, uplo: str) -> Value:
    v = _eigh(x, uplo=uplo)[1]
    return real_diagonal(adjoint(v) @ hermitian(tangents[0]) @ v)


_eigvalsh = WithAdjoints("eigvalsh", _eigvalsh_vjp, _eigvalsh_jvp, batch="carry", saves_out=False)


def eigvalsh(A: V, UPLO: str = "L") -> V:
    """The eigenvalues of a symmetric or Hermitian matrix, in ascending order."""
    check_matrix("linalg.eigvalsh", A, square=True)
    return _eigvalsh(A, uplo=_triangle_name("linalg.eigvalsh", UPLO))

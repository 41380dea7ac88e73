"""Products of matrices, and what LAPACK solves: inverses, determinants, factorizations.

Everything works on the last two dimensions and treats those before them as a batch.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from chainrule.backend.openblas import before_loading
from chainrule.backend.numpy_kernels.elementwise import relu, tanh
from chainrule.backend.numpy_kernels.lapack import cholesky_info, lu_info
from chainrule.backend.numpy_kernels.slopes import relu_backward, sigmoid_backward, tanh_backward
from chainrule.backend.numpy_kernels.special import sigmoid
from chainrule.backend.numpy_kernels.operands import Operand, Result

__all__ = [
    "LinAlgError",
    "cholesky",
    "cofactor",
    "cross",
    "det",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "linear",
    "linear_backward",
    "linear_relu",
    "linear_relu_backward",
    "linear_sigmoid",
    "linear_sigmoid_backward",
    "linear_tanh",
    "linear_tanh_backward",
    "matmul",
    "matrix_exp",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "solve_triangular",
    "svd",
    "svdvals",
]


class LinAlgError(RuntimeError):
    """A matrix that has no result: singular, not positive definite, not finite."""


# --- products -------------------------------------------------------------------------------------


def matmul(a: np.ndarray, b: np.ndarray) -> Result:
    """The product of matrices (..., n, k) and (..., k, m), of vectors (k,), or of both."""
    if a.ndim <= 2 and b.ndim <= 2:
        # Half the overhead of np.matmul, which counts for small matrices.
        return a.dot(b)
    if b.ndim == 2 and a.flags.c_contiguous:
        # One large product instead of one for each matrix of the batch.
        rows = a.reshape(math.prod(a.shape[:-1]), a.shape[-1])
        return rows.dot(b).reshape(*a.shape[:-1], b.shape[1])
    return np.matmul(a, b)


Gradients = tuple[np.ndarray | None, np.ndarray | None, np.ndarray | None]


def linear(x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None = None) -> np.ndarray:
    """x @ weight.T + bias; a stack of weights (and biases) is one of independent layers."""
    if weight.ndim > 2:
        out = np.matmul(x, weight.swapaxes(-1, -2))
        bias = None if bias is None else bias[..., None, :]
    else:
        out = x.dot(weight.T) if x.ndim <= 2 else matmul(x, weight.T)
    if bias is not None:
        out += bias
    return out


def linear_backward(
    g: np.ndarray, x: np.ndarray | None, weight: np.ndarray | None, with_bias: bool
) -> Gradients:
    """The gradients of x (None without weight), of weight (None without x) and of the bias.

    Those of a stack of layers are of one each; x may be the same for all.
    """
    if g.ndim > 2:
        return (
            None if weight is None else np.matmul(g, weight),
            None if x is None else np.matmul(g.swapaxes(-1, -2), x),
            np.add.reduce(g, -2) if with_bias else None,
        )
    return (
        None if weight is None else g.dot(weight),
        None if x is None else g.T.dot(x),
        np.add.reduce(g, 0) if with_bias else None,
    )


def linear_relu(x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None = None) -> np.ndarray:
    """relu(x @ weight.T + bias)"""
    return relu(linear(x, weight, bias))


def linear_tanh(x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None = None) -> np.ndarray:
    """tanh(x @ weight.T + bias)"""
    return tanh(linear(x, weight, bias))


def linear_sigmoid(x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None = None) -> np.ndarray:
    """sigmoid(x @ weight.T + bias)"""
    return sigmoid(linear(x, weight, bias))


def linear_relu_backward(
    g: np.ndarray,
    out: np.ndarray,
    x: np.ndarray | None,
    weight: np.ndarray | None,
    with_bias: bool,
) -> Gradients:
    """``linear_backward`` of ``linear_relu``, from its output."""
    return linear_backward(relu_backward(g, out), x, weight, with_bias)


def linear_tanh_backward(
    g: np.ndarray,
    out: np.ndarray,
    x: np.ndarray | None,
    weight: np.ndarray | None,
    with_bias: bool,
) -> Gradients:
    """``linear_backward`` of ``linear_tanh``, from its output."""
    return linear_backward(tanh_backward(g, out), x, weight, with_bias)


def linear_sigmoid_backward(
    g: np.ndarray,
    out: np.ndarray,
    x: np.ndarray | None,
    weight: np.ndarray | None,
    with_bias: bool,
) -> Gradients:
    """``linear_backward`` of ``linear_sigmoid``, from its output."""
    return linear_backward(sigmoid_backward(g, out), x, weight, with_bias)


def cross(a: np.ndarray, b: np.ndarray, dim: int) -> np.ndarray:
    """a x b of vectors of three elements along ``dim``; the other dimensions broadcast."""
    a, b = np.broadcast_arrays(a, b)
    return np.cross(a, b, axis=dim)


# --- solving --------------------------------------------------------------------------------------


def _first_bad(info: np.ndarray, otherwise: int) -> tuple[int | None, int]:
    """The batch element where LAPACK stopped (None without a batch), and at which row."""
    bad = np.flatnonzero(info)
    if not bad.size:  # by a hair: another of its algorithms went through
        return None, otherwise
    return (int(bad[0]) if info.ndim else None), int(info.flat[bad[0]])


def _where(element: int | None) -> str:
    return "" if element is None else f"(batch element {element}) "


def _singular(op: str, a: np.ndarray) -> LinAlgError:
    element, pivot = _first_bad(lu_info(a), a.shape[-1])
    return LinAlgError(
        f"linalg.{op}: {_where(element)}the matrix is singular: the diagonal element {pivot} of "
        f"its LU factorization is zero (the input has shape {a.shape}). linalg.pinv and "
        "linalg.lstsq accept singular matrices; adding a small multiple of the identity makes it "
        "invertible"
    )


def inv(a: np.ndarray, check: bool) -> np.ndarray:
    """The inverse. A singular matrix is refused, or, without ``check``, gets infinities."""
    try:
        return np.linalg.inv(a)
    except np.linalg.LinAlgError:
        if check:
            raise _singular("inv", a) from None
    if a.ndim == 2:
        return np.full_like(a, np.inf)
    return np.stack([inv(matrix, check) for matrix in a])


def solve(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The solution x of a x = b, for b (..., n) or (..., n, k); a singular matrix is refused."""
    try:
        return np.linalg.solve(a, b)
    except np.linalg.LinAlgError:
        raise _singular("solve", a) from None


def solve_triangular(a: np.ndarray, b: np.ndarray, upper: bool, unitriangular: bool) -> np.ndarray:
    """The solution of ``a x = b`` by substitution; reads one triangle of ``a``."""
    before_loading("scipy.linalg")
    from scipy.linalg import blas

    (trsm,) = blas.get_blas_funcs(("trsm",), (a, b))

    def one(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        # BLAS stores columns: the transpose of a is what lies in its memory.
        return trsm(1.0, a.T, b, lower=upper, trans_a=1, diag=unitriangular)

    if a.size == 0 or b.size == 0:
        return np.zeros(np.broadcast_shapes(a.shape[:-2], b.shape[:-2]) + b.shape[-2:], b.dtype)
    if a.ndim == 2 and b.ndim == 2:
        return np.ascontiguousarray(one(a, b))
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a, b = np.broadcast_to(a, batch + a.shape[-2:]), np.broadcast_to(b, batch + b.shape[-2:])
    out = np.empty(b.shape, b.dtype)
    for i in np.ndindex(batch):
        out[i] = one(a[i], b[i])
    return out


def det(a: np.ndarray) -> Result:
    """The determinant of each matrix (..., n, n)."""
    return np.linalg.det(a)


def cofactor(a: np.ndarray) -> np.ndarray:
    """The matrix of cofactors, det(a) * inv(a).T where that exists.

    With a = U S V', the cofactors of a are det(U) det(V) U C V', where C holds for each singular
    value the product of all others: no division, so singular matrices are fine.
    """
    if a.shape[-1] == 0:
        return np.zeros_like(a)
    if not np.isfinite(a).all():
        return np.full_like(a, np.nan)
    u, s, vh = np.linalg.svd(a)
    others = np.where(np.eye(s.shape[-1], dtype=bool), s.dtype.type(1), s[..., None, :]).prod(-1)
    orientation = np.linalg.det(u) * np.linalg.det(vh)
    return (u.conj() * (orientation[..., None] * others)[..., None, :]) @ vh.conj()


def slogdet(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The sign of the determinant and the logarithm of its size, which does not overflow."""
    sign, log = np.linalg.slogdet(a)
    return np.asarray(sign), np.asarray(log)


def pinv(a: np.ndarray, rtol: Operand, atol: Operand, hermitian: bool) -> np.ndarray:
    """The pseudoinverse: singular values at or below max(atol, rtol * largest) count as zero."""
    if a.size == 0:
        return np.zeros((*a.shape[:-2], a.shape[-1], a.shape[-2]), a.dtype)
    if hermitian:
        s, u = eigh(a, "L")
        size, vh = np.abs(s), u.conj().mT
    else:
        u, s, vh = svd(a, False)
        size = s
    limit = np.maximum(atol, rtol * size.max(-1))
    keep = size > np.asarray(limit)[..., None]
    inverse = np.where(keep, 1 / np.where(keep, s, 1), 0).astype(a.dtype)
    return (vh.conj().mT * inverse[..., None, :]) @ u.conj().mT


def matrix_exp(a: np.ndarray) -> np.ndarray:
    """sum_k a^k / k!, by scaling and squaring."""
    before_loading("scipy.linalg")
    from scipy.linalg import expm

    return expm(a) if a.size else a.copy()


# --- factorizations -------------------------------------------------------------------------------


def cholesky(a: np.ndarray) -> np.ndarray:
    """The lower factor; reads the lower triangle of ``a``."""
    try:
        out = np.linalg.cholesky(a)
    except np.linalg.LinAlgError:
        raise _not_positive(a) from None
    if np.isnan(out.diagonal(0, -2, -1)).any():
        raise _not_positive(a)
    return out


def _not_positive(a: np.ndarray) -> LinAlgError:
    element, order = _first_bad(cholesky_info(a), 1)
    return LinAlgError(
        f"linalg.cholesky: {_where(element)}the matrix is not positive-definite: its leading minor "
        f"of order {order} is not positive (the input has shape {a.shape}). Adding a small "
        "multiple of the identity often helps against rounding"
    )


def qr(a: np.ndarray, complete: bool) -> tuple[np.ndarray, np.ndarray]:
    """a = q r for a (..., m, n): q has min(m, n) orthonormal columns, m if ``complete``."""
    q, r = np.linalg.qr(a, mode="complete" if complete else "reduced")
    return q, r


def _no_convergence(op: str, a: np.ndarray) -> LinAlgError:
    finite = np.isfinite(a).all()
    reason = "is probably ill-conditioned" if finite else "contains values that are not finite"
    return LinAlgError(
        f"linalg.{op}: the algorithm failed to converge; the input {reason} (shape {a.shape})"
    )


def _refuse_not_finite(op: str, a: np.ndarray) -> None:
    """LAPACK may search for the singular values of an infinite number for ever."""
    if not np.isfinite(a).all():
        raise _no_convergence(op, a)


def _triangle(a: np.ndarray, uplo: Literal["L", "U"]) -> np.ndarray:
    return np.tril(a) if uplo == "L" else np.triu(a)


def svd(a: np.ndarray, full: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """a = u diag(s) vh, the largest of s first; u and vh are square if ``full``."""
    _refuse_not_finite("svd", a)
    try:
        u, s, vh = np.linalg.svd(a, full_matrices=full)
    except np.linalg.LinAlgError:
        raise _no_convergence("svd", a) from None
    return u, s, vh


def svdvals(a: np.ndarray) -> np.ndarray:
    """The singular values (..., min(m, n)), the largest first."""
    _refuse_not_finite("svdvals", a)
    try:
        return np.linalg.svd(a, compute_uv=False)
    except np.linalg.LinAlgError:
        raise _no_convergence("svdvals", a) from None


def eigh(a: np.ndarray, uplo: Literal["L", "U"]) -> tuple[np.ndarray, np.ndarray]:
    """The eigenvalues (ascending) and eigenvectors (columns) of a Hermitian matrix.

    Reads its lower (``uplo`` "L") or upper ("U") triangle.
    """
    _refuse_not_finite("eigh", _triangle(a, uplo))
    try:
        values, vectors = np.linalg.eigh(a, UPLO=uplo)
    except np.linalg.LinAlgError:
        raise _no_convergence("eigh", a) from None
    return values, vectors


def eigvalsh(a: np.ndarray, uplo: Literal["L", "U"]) -> np.ndarray:
    """The eigenvalues of ``eigh``."""
    _refuse_not_finite("eigvalsh", _triangle(a, uplo))
    try:
        return np.linalg.eigvalsh(a, UPLO=uplo)
    except np.linalg.LinAlgError:
        raise _no_convergence("eigvalsh", a) from None


def _complex_of(a: np.ndarray) -> np.dtype:
    return np.result_type(a.dtype, np.complex64)


def eig(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The eigenvalues and eigenvectors (columns) of any square matrix, always complex."""
    try:
        values, vectors = np.linalg.eig(a)
    except np.linalg.LinAlgError:
        raise _no_convergence("eig", a) from None
    return values.astype(_complex_of(a)), vectors.astype(_complex_of(a))


def eigvals(a: np.ndarray) -> np.ndarray:
    """The eigenvalues of ``eig``."""
    try:
        return np.linalg.eigvals(a).astype(_complex_of(a))
    except np.linalg.LinAlgError:
        raise _no_convergence("eigvals", a) from None

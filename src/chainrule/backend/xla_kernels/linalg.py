"""Products of matrices, and what LAPACK (or its like on the device) solves."""

from __future__ import annotations

from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from chainrule.backend.numpy_kernels import linalg as on_host
from chainrule.backend.xla_kernels import checks
from chainrule.backend.xla_kernels.elementwise import relu
from chainrule.backend.xla_kernels.products import matmul
from chainrule.backend.xla_kernels.slopes import relu_backward, sigmoid_backward, tanh_backward
from chainrule.backend.xla_kernels.special import sigmoid

__all__ = [
    "cholesky",
    "cofactor",
    "cross",
    "det",
    "eigh",
    "eigvalsh",
    "fft_c2c",
    "fft_c2r",
    "fft_r2c",
    "first_zero",
    "inv",
    "inverse_order",
    "linear",
    "linear_backward",
    "linear_relu",
    "linear_relu_backward",
    "linear_sigmoid",
    "linear_sigmoid_backward",
    "linear_tanh",
    "linear_tanh_backward",
    "matrix_exp",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "solve_triangular",
    "svd",
    "svdvals",
]

Array = Any
Gradients = tuple[Array | None, Array | None, Array | None]


# --- products -------------------------------------------------------------------------------------


def linear(x: Array, weight: Array, bias: Array | None = None) -> Array:
    """x @ weight.T + bias; a stack of weights (and biases) is one of independent layers."""
    out = matmul(x, weight.swapaxes(-1, -2))
    if bias is None:
        return out
    return out + (bias[..., None, :] if weight.ndim > 2 else bias)


def linear_backward(g: Array, x: Array | None, weight: Array | None, with_bias: bool) -> Gradients:
    """The gradients of x (None without weight), of weight (None without x) and of the bias."""
    return (
        None if weight is None else matmul(g, weight),
        None if x is None else matmul(g.swapaxes(-1, -2), x),
        jnp.sum(g, -2) if with_bias else None,
    )


def linear_relu(x: Array, weight: Array, bias: Array | None = None) -> Array:
    """relu(x @ weight.T + bias)"""
    return relu(linear(x, weight, bias))


def linear_tanh(x: Array, weight: Array, bias: Array | None = None) -> Array:
    """tanh(x @ weight.T + bias)"""
    return jnp.tanh(linear(x, weight, bias))


def linear_sigmoid(x: Array, weight: Array, bias: Array | None = None) -> Array:
    """sigmoid(x @ weight.T + bias)"""
    return sigmoid(linear(x, weight, bias))


def linear_relu_backward(
    g: Array, out: Array, x: Array | None, weight: Array | None, with_bias: bool
) -> Gradients:
    """``linear_backward`` of ``linear_relu``, from its output."""
    return linear_backward(relu_backward(g, out), x, weight, with_bias)


def linear_tanh_backward(
    g: Array, out: Array, x: Array | None, weight: Array | None, with_bias: bool
) -> Gradients:
    """``linear_backward`` of ``linear_tanh``, from its output."""
    return linear_backward(tanh_backward(g, out), x, weight, with_bias)


def linear_sigmoid_backward(
    g: Array, out: Array, x: Array | None, weight: Array | None, with_bias: bool
) -> Gradients:
    """``linear_backward`` of ``linear_sigmoid``, from its output."""
    return linear_backward(sigmoid_backward(g, out), x, weight, with_bias)


def cross(a: Array, b: Array, dim: int) -> Array:
    """a x b of vectors of three elements along ``dim``; the other dimensions broadcast."""
    a, b = jnp.broadcast_arrays(a, b)
    return jnp.cross(a, b, axis=dim)


# --- solving --------------------------------------------------------------------------------------


def _told_by_host(op: str, *arrays: Array, **settings: Any) -> Any:
    """The error that the NumPy kernel raises for such matrices, which says where it stopped."""

    def error() -> Exception:
        if not any([isinstance(a, jax.core.Tracer) for a in arrays]):
            try:
                getattr(on_host, op)(*[np.asarray(a) for a in arrays], **settings)
            except on_host.LinAlgError as found:
                return found
        return on_host.LinAlgError(
            f"linalg.{op}: a matrix has no result: it is singular, not positive-definite or not "
            f"finite (the input has shape {tuple(arrays[0].shape)})"
        )

    return error


def _is_singular(a: Array) -> Array:
    """Whether LU factorization meets a zero on the diagonal of U."""
    lu = jax.lax.linalg.lu(a)[0]
    return jnp.any(jnp.diagonal(lu, 0, -2, -1) == 0) if a.size else np.False_


def inv(a: Array, check: bool) -> Array:
    """The inverse. A singular matrix is refused, or, without ``check``, gets infinities."""
    singular = jnp.any(jnp.diagonal(jax.lax.linalg.lu(a)[0], 0, -2, -1) == 0, -1)
    if check:
        _refuse(singular, _told_by_host("inv", a, check=True))
        return jnp.linalg.inv(a)
    return jnp.where(singular[..., None, None], jnp.asarray(np.inf, a.dtype), jnp.linalg.inv(a))


def _refuse(bad: Array, error: Any) -> None:
    checks.check(~jnp.any(bad), error)


def solve(a: Array, b: Array) -> Array:
    """The solution x of a x = b, for b (..., n) or (..., n, k); a singular matrix is refused."""
    _refuse(_is_singular(a), _told_by_host("solve", a, b))
    return jnp.linalg.solve(a, b)


def solve_triangular(a: Array, b: Array, upper: bool, unitriangular: bool) -> Array:
    """The solution of ``a x = b`` by substitution; reads one triangle of ``a``."""
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    if a.size == 0 or b.size == 0:
        return jnp.zeros(batch + b.shape[-2:], b.dtype)
    a = jnp.broadcast_to(a, batch + a.shape[-2:])
    b = jnp.broadcast_to(b, batch + b.shape[-2:])
    return jax.lax.linalg.triangular_solve(
        a, b, left_side=True, lower=not upper, unit_diagonal=unitriangular
    )


def det(a: Array) -> Array:
    """The determinant of each matrix (..., n, n)."""
    sign, log = slogdet(a)
    return (sign * jnp.exp(log)).astype(a.dtype) if a.shape[-1] > 3 else jnp.linalg.det(a)


def cofactor(a: Array) -> Array:
    """The matrix of cofactors, det(a) * inv(a).T where that exists; see the NumPy kernel."""
    if a.shape[-1] == 0:
        return jnp.zeros_like(a)
    finite = jnp.all(jnp.isfinite(a))
    u, s, vh = jnp.linalg.svd(jnp.where(finite, a, jnp.ones((), a.dtype)))
    one = jnp.ones((), s.dtype)
    others = jnp.prod(jnp.where(np.eye(s.shape[-1], dtype=bool), one, s[..., None, :]), -1)
    orientation = jnp.linalg.det(u) * jnp.linalg.det(vh)
    out = (u.conj() * (orientation[..., None] * others)[..., None, :]) @ vh.conj()
    return jnp.where(finite, out, jnp.asarray(np.nan, a.dtype))


def slogdet(a: Array) -> tuple[Array, Array]:
    """The sign of the determinant and the logarithm of its size, which does not overflow."""
    sign, log = jnp.linalg.slogdet(a)
    return sign, log


def pinv(a: Array, rtol: Any, atol: Any, hermitian: bool) -> Array:
    """The pseudoinverse: singular values at or below max(atol, rtol * largest) count as zero."""
    if a.size == 0:
        return jnp.zeros((*a.shape[:-2], a.shape[-1], a.shape[-2]), a.dtype)
    if hermitian:
        s, u = eigh(a, "L")
        size, vh = jnp.abs(s), u.conj().mT
    else:
        u, s, vh = svd(a, False)
        size = s
    limit = jnp.maximum(atol, rtol * size.max(-1))
    keep = size > limit[..., None]
    inverse = jnp.where(keep, 1 / jnp.where(keep, s, 1), 0).astype(a.dtype)
    return (vh.conj().mT * inverse[..., None, :]) @ u.conj().mT


def matrix_exp(a: Array) -> Array:
    """sum_k a^k / k!, by scaling and squaring."""
    return jax.scipy.linalg.expm(a, max_squarings=64) if a.size else a


# --- factorizations -------------------------------------------------------------------------------


def cholesky(a: Array) -> Array:
    """The lower factor; reads the lower triangle of ``a``."""
    out = jax.lax.linalg.cholesky(a, symmetrize_input=False)
    _refuse(jnp.isnan(jnp.diagonal(out, 0, -2, -1)), _told_by_host("cholesky", a))
    return jnp.tril(out)


def qr(a: Array, complete: bool) -> tuple[Array, Array]:
    """a = q r for a (..., m, n): q has min(m, n) orthonormal columns, m if ``complete``."""
    q, r = jnp.linalg.qr(a, mode="complete" if complete else "reduced")
    return q, r


def _refuse_not_finite(op: str, a: Array, read: Array) -> None:
    def error() -> on_host.LinAlgError:
        return on_host.LinAlgError(
            f"linalg.{op}: the algorithm failed to converge; the input contains values that are "
            f"not finite (shape {tuple(a.shape)})"
        )

    checks.check(jnp.all(jnp.isfinite(read)), error)


def svd(a: Array, full: bool) -> tuple[Array, Array, Array]:
    """a = u diag(s) vh, the largest of s first; u and vh are square if ``full``."""
    _refuse_not_finite("svd", a, a)
    u, s, vh = jnp.linalg.svd(a, full_matrices=full)
    return u, s, vh


def svdvals(a: Array) -> Array:
    """The singular values (..., min(m, n)), the largest first."""
    _refuse_not_finite("svdvals", a, a)
    return jnp.linalg.svd(a, compute_uv=False)


def _triangle(a: Array, uplo: Literal["L", "U"]) -> Array:
    return jnp.tril(a) if uplo == "L" else jnp.triu(a)


def eigh(a: Array, uplo: Literal["L", "U"]) -> tuple[Array, Array]:
    """The eigenvalues (ascending) and eigenvectors (columns) of a Hermitian matrix."""
    _refuse_not_finite("eigh", a, _triangle(a, uplo))
    values, vectors = jnp.linalg.eigh(a, UPLO=uplo, symmetrize_input=False)
    return values, vectors


def eigvalsh(a: Array, uplo: Literal["L", "U"]) -> Array:
    """The eigenvalues of ``eigh``."""
    _refuse_not_finite("eigvalsh", a, _triangle(a, uplo))
    return jnp.linalg.eigh(a, UPLO=uplo, symmetrize_input=False)[0]


def inverse_order(rows: Array) -> Array:
    """The order that undoes this one."""
    return jnp.argsort(rows, axis=-1, stable=True)


def first_zero(a: Array) -> Array:
    """The place (from 1) of the first zero on the diagonal of each matrix; 0 if there is none."""
    zero = jnp.diagonal(a, 0, -2, -1) == 0
    if not zero.shape[-1]:
        return jnp.zeros(a.shape[:-2], np.int32)
    return jnp.where(jnp.any(zero, -1), jnp.argmax(zero, -1) + 1, 0).astype(np.int32)


# --- Fourier transforms ---------------------------------------------------------------------------

Norm = Literal["backward", "ortho", "forward"]


def fft_c2c(a: Array, dims: tuple[int, ...], inverse: bool, norm: Norm) -> Array:
    """sum_j a[j] exp(-2 pi i j k / n) along these dimensions; with +i if ``inverse``."""
    return (jnp.fft.ifftn if inverse else jnp.fft.fftn)(a, axes=dims, norm=norm)


def fft_r2c(a: Array, dim: int, norm: Norm) -> Array:
    """The first n // 2 + 1 terms of the transform of real numbers: the others are conjugates."""
    return jnp.fft.rfft(a, axis=dim, norm=norm)


def fft_c2r(a: Array, n: int, dim: int, norm: Norm) -> Array:
    """The n real numbers whose transform begins with these terms."""
    return jnp.fft.irfft(a, n, axis=dim, norm=norm)

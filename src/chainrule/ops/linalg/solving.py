"""Inverses, linear equations and determinants: primitives with their published rules.

The matrices are the last two dimensions; those before them are a batch. Rules are after M. Giles,
"An extended collection of matrix derivative results for forward and reverse mode algorithmic
differentiation" (2008); ``t`` is a tangent, ``g`` a gradient, ``x'`` a transpose, ``x*`` an
adjoint. Rules of holomorphic functions are written with transposes, the others with adjoints.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from chainrule.backend import ARRAYS, K, dtypes
from chainrule.backend.numpy_kernels.linalg import LinAlgError
from chainrule.ops.core.synonyms import also_named
from chainrule.ops.core.batching import RULES
from chainrule.ops.shape.diagonal import tril, triu
from chainrule.ops.elementwise.complex_numbers import conj, imag, real
from chainrule.ops.elementwise.functions import zeros_like_of
from chainrule.ops.index.reading import narrow
from chainrule.ops.linalg.adjoint import WithAdjoints, adjoint
from chainrule.ops.linalg.matmul import check_batch
from chainrule.ops.core.promotion import is_complex_value
from chainrule.ops.core.primitive import Op, Primitive
from chainrule.ops.reduce.reductions import sum
from chainrule.ops.shape.views import movedim, reshape, squeeze, unsqueeze
from chainrule.ops.shape.stacking import cat
from chainrule.tensor import Tensor, check_layout
from chainrule.typing import Gradients, Tangents, V, Value

__all__ = [
    "LinAlgError",
    "Slogdet",
    "check_matrix",
    "cholesky_solve",
    "det",
    "inv",
    "matrix_exp",
    "pinv",
    "slogdet",
    "solve",
    "solve_triangular",
]

# --- arguments ------------------------------------------------------------------------------------


# In PyTorch these refuse float16 and bfloat16 by themselves, the others have no kernel for them.
_SAYS_SO_ITSELF = (
    "linalg.inv",
    "linalg.lstsq",
    "linalg.matrix_norm",
    "linalg.matrix_rank",
    "linalg.pinv",
    "linalg.slogdet",
)


def check_matrix(
    op: str, A: Value, *, square: bool = False, name: str = "A", few_bits: bool = False
) -> None:
    """Refuses what is not a batch of (square) floating-point or complex matrices.

    Only an operation for ``few_bits`` takes float16 and bfloat16.
    """
    if not isinstance(A, (Tensor, *ARRAYS)):
        check_layout(op, A)
        raise TypeError(
            f"{op}(): argument {name!r} must be Tensor, not {type(A).__name__}; convert it with "
            "chainrule.tensor(...)"
        )
    d = (A.array if isinstance(A, Tensor) else A).dtype
    if K.kind_of(d) not in "fc" or (K.is_narrow(d) and not few_bits):
        error = (
            NotImplementedError if K.is_narrow(d) and op not in _SAYS_SO_ITSELF else RuntimeError
        )
        raise error(
            f"{op}: expected a tensor of float32, float64, complex64 or complex128, got "
            f"{dtypes.from_array_dtype(d)}; convert it with .float() first"
        )
    if A.ndim < 2:
        raise RuntimeError(
            f"{op}: {name} must have at least 2 dimensions, got shape {tuple(A.shape)}"
        )
    if square and A.shape[-1] != A.shape[-2]:
        raise RuntimeError(
            f"{op}: {name} must be batches of square matrices, but they are {A.shape[-2]} by "
            f"{A.shape[-1]} matrices (shape {tuple(A.shape)})"
        )


def _check_equation(op: str, A: Value, B: Value, left: bool) -> None:
    if A.dtype != B.dtype:
        raise RuntimeError(
            f"{op}: expected A and B to have the same dtype, but found {A.dtype} and {B.dtype}"
        )
    if B.ndim < 2 or A.shape[-1] != B.shape[-2 if left else -1]:
        raise RuntimeError(
            f"{op}: incompatible shapes of A and B for the equation "
            f"{'AX = B' if left else 'XA = B'}: {tuple(A.shape)} and {tuple(B.shape)}"
        )
    check_batch(op, A, B)


def _same_rank(a: V, b: V) -> tuple[V, V]:
    """Both with the same number of dimensions, so that a batch in front of both lines up."""
    rank = max(a.ndim, b.ndim)
    if a.ndim < rank:
        a = reshape(a, (*[1] * (rank - a.ndim), *a.shape))
    if b.ndim < rank:
        b = reshape(b, (*[1] * (rank - b.ndim), *b.shape))
    return a, b


def _as_factor(x: V) -> V:
    """A number for each matrix, ready to multiply it."""
    return unsqueeze(unsqueeze(x, -1), -1)


def _total(x: V) -> V:
    """The sum over each matrix."""
    return sum(x, (-2, -1))


# --- inverse: d(X^-1) = -X^-1 dX X^-1 -------------------------------------------------------------

inverse_of = Primitive(
    "inv",
    lambda g, out, x, needs, check: (-(out.mT @ g @ out.mT),),
    lambda t, out, x, check: -(out @ t[0] @ out),
    batch="carry",
)


@also_named(input="A")
def inv(A: V) -> V:
    """The inverse of a square matrix. Raises :class:`LinAlgError` if it is singular.

    >>> import chainrule
    >>> chainrule.linalg.inv(chainrule.tensor([[2.0, 0.0], [0.0, 4.0]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]])
    """
    check_matrix("linalg.inv", A, square=True)
    return inverse_of(A, check=True)


# --- equations: A X = B, A dX = dB - dA X ---------------------------------------------------------


def _batch_of_equations(
    op: Op, size: int, values: Sequence[Tensor], mapped: Sequence[bool], params: dict[str, Any]
) -> Tensor:
    """vmap: if all samples share one matrix, their right sides are columns of one equation."""
    a, b = values
    if mapped[0] or a.ndim > 2:
        return RULES["carry"](op, size, values, mapped, params)
    rows, columns = b.shape[1:]
    out = op(a, reshape(movedim(b, 0, 1), (rows, size * columns)), **params)
    return movedim(reshape(out, (rows, size, columns)), 1, 0)


def _solve_vjp(g: Value, out: Value, a: Value, b: Value, needs: Sequence[bool]) -> Gradients:
    gb = _solve(a.mT, g)
    return (-(gb @ out.mT) if needs[0] else None), gb


def _right_side(tangents: Tangents, out: Value, change: Value | None) -> Value | None:
    """dB - dA X, where either may be missing."""
    tb = tangents[1]
    if change is None:
        return tb
    return -(change @ out) if tb is None else tb - change @ out


_solve = Primitive(
    "solve",
    _solve_vjp,
    lambda t, out, a, b: _solve(a, _right_side(t, out, t[0])),
    _batch_of_equations,
)


def solve(A: V, B: V, *, left: bool = True) -> V:
    """The solution X of AX = B, or of XA = B with ``left=False``.

    ``B`` is a matrix, or a vector (a batch of vectors if its shape is that of ``A`` without the
    last dimension). Raises :class:`LinAlgError` if ``A`` is singular.
    """
    check_matrix("linalg.solve", A, square=True)
    vector = B.ndim == 1 or (B.ndim == A.ndim - 1 and tuple(B.shape) == tuple(A.shape[:-1]))
    if vector and not left:
        raise RuntimeError(
            "linalg.solve: vectors are not supported with left=False; pass B as a matrix of one row"
        )
    if vector:
        B = unsqueeze(B, -1)
    _check_equation("linalg.solve", A, B, left)
    if not left:
        return solve(A.mT, B.mT).mT
    out = _solve(*_same_rank(A, B))
    return squeeze(out, -1) if vector else out


def _triangle(x: V, upper: bool, unitriangular: bool) -> V:
    """The part of a matrix that the triangular solver reads."""
    return triu(x, int(unitriangular)) if upper else tril(x, -int(unitriangular))


def _triangular_vjp(
    g: Value,
    out: Value,
    a: Value,
    b: Value,
    needs: Sequence[bool],
    upper: bool,
    unitriangular: bool,
) -> Gradients:
    gb = solve_by_substitution(a.mT, g, upper=not upper, unitriangular=unitriangular)
    return (_triangle(-(gb @ out.mT), upper, unitriangular) if needs[0] else None), gb


def _triangular_jvp(
    tangents: Tangents, out: Value, a: Value, b: Value, upper: bool, unitriangular: bool
) -> Value:
    ta = tangents[0]
    change = None if ta is None else _triangle(ta, upper, unitriangular)
    side = _right_side(tangents, out, change)
    return solve_by_substitution(a, side, upper=upper, unitriangular=unitriangular)


solve_by_substitution = Primitive(
    "solve_triangular", _triangular_vjp, _triangular_jvp, _batch_of_equations
)


def solve_triangular(
    A: V, B: V, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> V:
    """The solution X of AX = B (of XA = B with ``left=False``) for a triangular A.

    Only the triangle named by ``upper`` is read, and not its diagonal if ``unitriangular``. A zero
    on the diagonal gives infinities, not an error.
    """
    check_matrix("linalg.solve_triangular", A, square=True)
    check_matrix("linalg.solve_triangular", B, name="B")
    _check_equation("linalg.solve_triangular", A, B, left)
    if not left:
        return solve_triangular(A.mT, B.mT, upper=not upper, unitriangular=unitriangular).mT
    a, b = _same_rank(A, B)
    return solve_by_substitution(a, b, upper=upper, unitriangular=unitriangular)


@also_named(input="B", input2="L")
def cholesky_solve(B: V, L: V, upper: bool = False) -> V:
    """The solution X of AX = B, given the Cholesky factor ``L`` of A (LL* = A, or L*L if upper)."""
    first, second = (adjoint(L), L) if upper else (L, adjoint(L))
    half = solve_triangular(first, B, upper=False)
    return solve_triangular(second, half, upper=True)


# --- determinant: d det(X) = <cofactors of X, dX> -------------------------------------------------

_det = Primitive(
    "det",
    lambda g, out, x, needs: (_as_factor(g) * _cofactor(x),),
    lambda t, out, x: _total(_cofactor(x) * t[0]),
    batch="carry",
    saves_out=False,
)


def _cofactor_vjp(g: Value, out: Value, x: Value, needs: Sequence[bool]) -> tuple[Value]:
    inverse = inverse_of(x, check=True).mT
    return (inverse * _as_factor(_total(g * out)) - out @ g.mT @ inverse,)


def _cofactor_jvp(tangents: Sequence[Value], out: Value, x: Value) -> Value:
    (t,) = tangents
    inverse = inverse_of(x, check=True).mT
    return out * _as_factor(_total(inverse * t)) - inverse @ t.mT @ out


# A primitive so that the gradient of the determinant exists for singular matrices, too. Its own
# derivative, d C = <X^-T, dX> C - X^-T dX' C, is that of det(X) X^-T: for invertible ones.
_cofactor = Primitive("cofactor", _cofactor_vjp, _cofactor_jvp, batch="carry")


@also_named(input="A")
def det(A: V) -> V:
    """The determinant. Its gradient, the matrix of cofactors, is exact for singular matrices, too.

    >>> import chainrule
    >>> chainrule.linalg.det(chainrule.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor(-2.)
    """
    check_matrix("linalg.det", A, square=True)
    return _det(A)


class Slogdet(NamedTuple):
    """What :func:`slogdet` returns."""

    sign: Tensor
    logabsdet: Tensor


def _slogdet_vjp(
    g: tuple[Value, Value], out: tuple[Value, Value], x: Value, needs: Sequence[bool]
) -> tuple[Value]:
    (gs, gl), inverse = g, inverse_of(x, check=False).mT
    if is_complex_value(x):
        gl, inverse = gl + 1j * imag(gs * conj(out[0])), conj(inverse)
    return (_as_factor(gl) * inverse,)


def _slogdet_jvp(
    tangents: Sequence[Value], out: tuple[Value, Value], x: Value
) -> tuple[Value, Value]:
    change = _total(inverse_of(x, check=False).mT * tangents[0])
    if is_complex_value(x):
        return 1j * imag(change) * out[0], real(change)
    return zeros_like_of(out[0]), change


# d log det(X) = tr(X^-1 dX): its real part changes the size, its imaginary part the sign.
_slogdet = WithAdjoints("slogdet", _slogdet_vjp, _slogdet_jvp, batch="carry")


@also_named(input="A")
def slogdet(A: Tensor) -> Slogdet:
    """The sign of the determinant and the logarithm of its absolute value (-inf if singular).

    The sign of a complex number x is x / |x|.
    """
    check_matrix("linalg.slogdet", A, square=True)
    return Slogdet(*_slogdet(A))


# --- pseudoinverse --------------------------------------------------------------------------------
# dP = -P dX P + P P* dX* (I - X P) + (I - P X) dX* P* P  (Golub and Pereyra, 1973), where the rank
# does not change.


def _pinv_vjp(
    g: Value, p: Value, x: Value, needs: Sequence[bool], rtol: Any, atol: Any, hermitian: bool
) -> tuple[Value]:
    ph, gh = adjoint(p), adjoint(g)
    left, right = gh @ (p @ ph), (ph @ p) @ gh
    return (left - x @ (p @ left) + right - (right @ p) @ x - ph @ g @ ph,)


def _pinv_jvp(
    tangents: Sequence[Value], p: Value, x: Value, rtol: Any, atol: Any, hermitian: bool
) -> Value:
    (t,) = tangents
    ph, th = adjoint(p), adjoint(t)
    left, right = (p @ ph) @ th, th @ (ph @ p)
    return left - (left @ x) @ p + right - p @ (x @ right) - p @ t @ p


_pinv = WithAdjoints("pinv", _pinv_vjp, _pinv_jvp, batch="carry")


def tolerances(
    A: Value, atol: float | Tensor | None, rtol: float | Tensor | None
) -> tuple[Any, Any]:
    """The limits below which a singular value counts as zero, by PyTorch's defaults."""
    atol, rtol = (x.array if isinstance(x, Tensor) else x for x in (atol, rtol))
    atol = 0.0 if atol is None else atol
    if rtol is None:
        single = dtypes.as_dtype(A.dtype) in (dtypes.float32, dtypes.complex64)
        rtol = max(A.shape[-2:]) * (2.0**-23 if single else 2.0**-52) * (atol <= 0)
    return atol, rtol


def pinv(
    A: V,
    rcond: float | Tensor | None = None,
    hermitian: bool = False,
    *,
    atol: float | Tensor | None = None,
    rtol: float | Tensor | None = None,
) -> V:
    """The Moore-Penrose pseudoinverse.

    Singular values at or below max(atol, rtol * largest) count as zero; ``rcond`` is another name
    for ``rtol``. With ``hermitian`` the matrix is taken to be Hermitian and its lower triangle is
    read; the gradient is that of a matrix of which all elements count.
    """
    check_matrix("linalg.pinv", A, square=hermitian)
    atol, rtol = tolerances(A, atol, rcond if rtol is None else rtol)
    return _pinv(A, rtol=rtol, atol=atol, hermitian=hermitian)


# --- exponential ----------------------------------------------------------------------------------


def _exp_change(x: V, t: V) -> V:
    """The derivative of exp at x in direction t: the upper right block of exp([[x, t], [0, x]])."""
    n = x.shape[-1]
    block = cat([cat([x, t], -1), cat([zeros_like_of(x), x], -1)], -2)
    return narrow(narrow(_matrix_exp(block), -2, 0, n), -1, n, n)


_matrix_exp = Primitive(
    "matrix_exp",
    lambda g, out, x, needs: (_exp_change(x.mT, g),),
    lambda t, out, x: _exp_change(x, t[0]),
    batch="carry",
    saves_out=False,
)


@also_named(input="A")
def matrix_exp(A: V) -> V:
    """The matrix exponential I + A + A A / 2 + A A A / 6 + ..."""
    check_matrix("linalg.matrix_exp", A, square=True, few_bits=True)
    return _matrix_exp(A)

"""LU factorization: A = P L U with a permutation P, L below and U above the diagonal.

Which rows are exchanged is a choice without derivative. What is left, a factorization of the
permuted matrix without exchanges, has dL = L tril(M, -1) and dU = triu(M) U for
M = L^-1 dA U^-1 (S. Walter and L. Lehmann, "Algorithmic differentiation of linear algebra functions
with application in optimum experimental design", 2010).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from chainrule.ops.core.arguments import placed_like, same_place
from chainrule.backend import K
from chainrule.graph import Box
from chainrule.ops.core.primitive import Nondifferentiable, Primitive
from chainrule.ops.core.promotion import cast
from chainrule.ops.creation.patterns import eye
from chainrule.ops.elementwise.complex_numbers import conj
from chainrule.ops.index.reading import narrow, one_hot, take_along_dim
from chainrule.ops.linalg.solving import (
    LinAlgError,
    check_matrix,
    solve_by_substitution,
    solve_triangular,
)
from chainrule.ops.shape.diagonal import tril, triu
from chainrule.ops.shape.stacking import cat
from chainrule.ops.shape.views import expand, unsqueeze
from chainrule.tensor import Tensor, of_array
from chainrule.typing import Value

__all__ = [
    "LU",
    "LUFactor",
    "LUFactorEx",
    "lu",
    "lu_factor",
    "lu_factor_ex",
    "lu_packed",
    "lu_solve",
    "lu_unpack",
]


class LU(NamedTuple):
    """What :func:`lu` returns."""

    P: Tensor
    L: Tensor
    U: Tensor


class LUFactor(NamedTuple):
    """What :func:`lu_factor` returns: both factors in one matrix, and the exchanges of rows."""

    LU: Tensor
    pivots: Tensor


class LUFactorEx(NamedTuple):
    """What :func:`lu_factor_ex` returns."""

    LU: Tensor
    pivots: Tensor
    info: Tensor


def _change(packed: Value, t: Value) -> Value:
    """M = L^-1 dA U^-1"""
    half = solve_by_substitution(packed, t, upper=False, unitriangular=True)
    return solve_by_substitution(packed.mT, half.mT, upper=False, unitriangular=False).mT


def _lu_jvp(tangents: Sequence[Value], out: Value, a: Value) -> Value:
    m = _change(out, tangents[0])
    lower, upper = tril(out, -1), triu(out)
    below = tril(m, -1)
    return tril(lower @ below, -1) + below + triu(m) @ upper


def _lu_vjp(g: Value, out: Value, a: Value, needs: Sequence[bool]) -> tuple[Value]:
    lower, upper = tril(out, -1), triu(out)
    gl, gu = tril(g, -1), triu(g)
    m = tril(gl + lower.mT @ gl, -1) + triu(gu @ upper.mT)
    # L^-T M U^-T
    half = solve_by_substitution(out.mT, m, upper=True, unitriangular=True)
    return (solve_by_substitution(out, half.mT, upper=True, unitriangular=False).mT,)


_factors = Primitive("lu_factors", _lu_vjp, _lu_jvp, batch="carry")
_pivots = Nondifferentiable("lu_pivots", batch="carry")
_rows = Nondifferentiable("lu_rows", batch="carry")
_first_zero = Nondifferentiable("first_zero", batch="carry")


def _permuted(x: Tensor, rows: Tensor) -> Tensor:
    """The rows of ``x`` in this order."""
    order = unsqueeze(rows, -1)
    return take_along_dim(x, expand(order, (*order.shape[:-1], x.shape[-1])), -2)


def lu_packed(op: str, A: Tensor, pivot: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Both factors in one matrix, the exchanges of rows, and the order of rows they come to."""
    check_matrix(op, A)
    pivots = _pivots(A.detach(), pivot=pivot)
    m, n = A.shape[-2:]
    rows = _rows(pivots, size=m)
    b = _permuted(A, rows)
    batch = tuple(A.shape[:-2])
    if m > n:  # identity columns make it square
        edge = eye(m, dtype=A.dtype, device=A.device)[:, n:]
        b = cat([b, expand(edge, (*batch, m, m - n))], -1)
    elif m < n:
        edge = eye(n, dtype=A.dtype, device=A.device)[m:]
        b = cat([b, expand(edge, (*batch, n - m, n))], -2)
    return narrow(narrow(_factors(b), -2, 0, m), -1, 0, n), pivots, rows


def _split(packed: Tensor) -> tuple[Tensor, Tensor]:
    m, n = packed.shape[-2:]
    k = min(m, n)
    ones = eye(m, k, dtype=packed.dtype, device=packed.device)
    return tril(narrow(packed, -1, 0, k), -1) + ones, triu(narrow(packed, -2, 0, k))


def _permutation(rows: Tensor, like: Tensor) -> Tensor:
    return cast(one_hot(rows, like.shape[-2]), like.dtype).mT


def lu(A: Tensor, *, pivot: bool = True) -> LU:
    """The factors P, L and U of A = P L U; without exchanges of rows if not ``pivot``.

    >>> import chainrule
    >>> P, L, U = chainrule.linalg.lu(chainrule.tensor([[1.0, 2.0], [4.0, 4.0]]))
    >>> U
    tensor([[4., 4.],
            [0., 1.]])
    """
    packed, _, rows = lu_packed("linalg.lu", A, pivot)
    lower, upper = _split(packed)
    p = _permutation(rows, A) if pivot else placed_like(A, of_array(K.zeros((0,), A.array.dtype)))
    return LU(p, lower, upper)


def lu_factor(A: Tensor, *, pivot: bool = True) -> LUFactor:
    """L (without its diagonal of ones) and U in one matrix, and the rows that were exchanged: in
    step i the rows i and ``pivots[i] - 1``.

    Raises :class:`LinAlgError` if U has a zero on its diagonal, with which nothing can be solved;
    :func:`lu` and :func:`lu_factor_ex` do not.
    """
    packed, pivots, _ = lu_packed("linalg.lu_factor", A, pivot)
    _refuse_zeros(packed)
    return LUFactor(packed, pivots)


def lu_factor_ex(A: Tensor, *, pivot: bool = True, check_errors: bool = False) -> LUFactorEx:
    """What :func:`lu_factor` returns, and ``info``: for each matrix the place (from 1) of the first
    zero on the diagonal of U, or 0. With ``check_errors`` such a zero is an error."""
    packed, pivots, _ = lu_packed("linalg.lu_factor", A, pivot)
    if check_errors:
        _refuse_zeros(packed)
    return LUFactorEx(packed, pivots, _first_zero(packed.detach()))


def _refuse_zeros(packed: Tensor) -> None:
    """Raises an error if U has a zero on its diagonal (inside vmap that cannot be seen)."""
    array = packed.array
    if not isinstance(array, Box) and int(_first_zero.raw(array).max(initial=0)):
        raise LinAlgError(
            f"linalg.lu_factor: the element {int(_first_zero.raw(array).max())} on the diagonal of "
            f"U is zero, with which lu_solve would divide (the input has shape {array.shape}); "
            "linalg.lu and linalg.lu_factor_ex return the factors all the same"
        )


def lu_unpack(
    LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True
) -> LU:
    """P, L and U from what :func:`lu_factor` returns."""
    same_place("lu_unpack", LU_data, LU_pivots)
    nothing = placed_like(LU_data, of_array(K.zeros((0,), LU_data.array.dtype)))
    p = lower = upper = nothing
    if unpack_pivots:
        p = _permutation(_rows(LU_pivots, size=LU_data.shape[-2]), LU_data)
    if unpack_data:
        lower, upper = _split(LU_data)
    return LU(p, lower, upper)


def lu_solve(
    LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False
) -> Tensor:
    """The solution of AX = B (XA = B if not ``left``, with A* for A if ``adjoint``) from the
    factors of A by :func:`lu_factor`."""
    check_matrix("linalg.lu_solve", LU, square=True)
    if not left:
        return conj(lu_solve(LU, pivots, conj(B).mT, adjoint=not adjoint).mT)
    rows = _rows(pivots, size=LU.shape[-1])
    if not adjoint:
        half = solve_triangular(LU, _permuted(B, rows), upper=False, unitriangular=True)
        return solve_triangular(LU, half, upper=True)
    turned = conj(LU).mT
    half = solve_triangular(turned, B, upper=False)
    back = _rows_back(rows)
    return _permuted(solve_triangular(turned, half, upper=True, unitriangular=True), back)


_inverse_order = Nondifferentiable("inverse_order", batch="carry")


def _rows_back(rows: Tensor) -> Tensor:
    return _inverse_order(rows)

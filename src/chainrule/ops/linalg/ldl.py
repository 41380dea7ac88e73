"""The factorization L D L' of symmetric, L D L* of Hermitian matrices, definite or not.

D has blocks of size 1 and 2. Both factors are in one matrix, as LAPACK has them, and without
derivative; a solution is linear in the right side and has one there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, NoReturn

from chainrule.graph import Box
from chainrule.ops.core.primitive import Primitive
from chainrule.ops.core.promotion import broadcast_shapes
from chainrule.ops.linalg.adjoint import WithAdjoints
from chainrule.ops.elementwise.complex_numbers import conj
from chainrule.ops.linalg.solving import LinAlgError, check_matrix
from chainrule.ops.shape.views import expand
from chainrule.tensor import Tensor
from chainrule.typing import Gradients, Tangents, Value

__all__ = ["LDLFactor", "LDLFactorEx", "ldl_factor", "ldl_factor_ex", "ldl_solve"]


class LDLFactor(NamedTuple):
    """What :func:`ldl_factor` returns."""

    LD: Tensor
    pivots: Tensor


class LDLFactorEx(NamedTuple):
    """What :func:`ldl_factor_ex` returns."""

    LD: Tensor
    pivots: Tensor
    info: Tensor


def _not_differentiable(*args: object, **kwargs: object) -> NoReturn:
    raise NotImplementedError(
        "linalg.ldl_factor: the derivative of the factors is not implemented; linalg.solve and "
        "linalg.eigh have one"
    )


_ldl_factor = Primitive("ldl_factor", _not_differentiable, _not_differentiable, batch="carry")


def ldl_factor_ex(A: Tensor, *, hermitian: bool = False, check_errors: bool = False) -> LDLFactorEx:
    """What :func:`ldl_factor` returns, and ``info``: for each matrix the place (from 1) of the
    first zero in D, or 0. With ``check_errors`` such a zero is an error."""
    check_matrix("linalg.ldl_factor", A, square=True)
    out = LDLFactorEx(*_ldl_factor(A, hermitian=hermitian))
    if check_errors and not isinstance(out.info.array, Box) and out.info.array.any():
        raise LinAlgError(
            f"linalg.ldl_factor: the block {int(out.info.array.max())} of D is zero, with which "
            f"ldl_solve would divide (the input has shape {tuple(A.shape)}); linalg.ldl_factor_ex "
            "returns the factors all the same"
        )
    return out


def ldl_factor(A: Tensor, *, hermitian: bool = False) -> LDLFactor:
    """L and D of A = L D L' (L D L* if ``hermitian``) in one matrix, and the exchanges of rows, for
    a symmetric (Hermitian) matrix, of which the lower triangle is read. Without derivative."""
    packed, pivots, _ = ldl_factor_ex(A, hermitian=hermitian, check_errors=True)
    return LDLFactor(packed, pivots)


def _solve_vjp(
    g: Value,
    out: Value,
    packed: Value,
    pivots: Value,
    b: Value,
    needs: Sequence[bool],
    hermitian: bool,
) -> Gradients:
    if needs[0]:
        _not_differentiable()
    if hermitian:  # A* = A
        return None, None, _ldl_solve(packed, pivots, g, hermitian=True)
    return None, None, conj(_ldl_solve(packed, pivots, conj(g), hermitian=False))


def _solve_jvp(
    tangents: Tangents, out: Value, packed: Value, pivots: Value, b: Value, hermitian: bool
) -> Value:
    if tangents[0] is not None:
        _not_differentiable()
    return _ldl_solve(packed, pivots, tangents[2], hermitian=hermitian)


_ldl_solve = WithAdjoints("ldl_solve", _solve_vjp, _solve_jvp, batch="carry", saves_out=False)


def ldl_solve(LD: Tensor, pivots: Tensor, B: Tensor, *, hermitian: bool = False) -> Tensor:
    """The solution X of AX = B from the factors of A by :func:`ldl_factor`.

    >>> import chainrule
    >>> a, b = chainrule.tensor([[0.0, 1.0], [1.0, 0.0]]), chainrule.tensor([[2.0], [3.0]])
    >>> chainrule.linalg.ldl_solve(*chainrule.linalg.ldl_factor(a), b)
    tensor([[3.],
            [2.]])
    """
    check_matrix("linalg.ldl_solve", LD, square=True, name="LD")
    check_matrix("linalg.ldl_solve", B, name="B")
    if B.dtype is not LD.dtype or B.shape[-2] != LD.shape[-1]:
        raise RuntimeError(
            f"linalg.ldl_solve: expected B to have the dtype of LD and {LD.shape[-1]} rows, got "
            f"{B.dtype} {tuple(B.shape)}"
        )
    if pivots.array.dtype.kind not in "iu" or tuple(pivots.shape) != tuple(LD.shape[:-1]):
        raise RuntimeError(
            "linalg.ldl_solve: expected pivots to be integers of shape "
            f"{tuple(LD.shape[:-1])}, got {pivots.dtype} {tuple(pivots.shape)}"
        )
    batch = broadcast_shapes(LD.shape[:-2], B.shape[:-2], op="linalg.ldl_solve")
    return _ldl_solve(
        expand(LD, (*batch, *LD.shape[-2:])),
        expand(pivots, (*batch, LD.shape[-1])),
        expand(B, (*batch, *B.shape[-2:])),
        hermitian=hermitian,
    )

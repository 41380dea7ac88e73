"""Factorizations that say where they stopped (``info``) instead of raising an error."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from chainrule.backend import ARRAYS
from chainrule.ops.core.primitive import Nondifferentiable
from chainrule.ops.creation.patterns import eye
from chainrule.ops.elementwise.logic import where
from chainrule.ops.linalg.decompositions import cholesky
from chainrule.ops.linalg.solving import check_matrix, inv, solve
from chainrule.ops.shape.views import reshape
from chainrule.tensor import Tensor

__all__ = ["CholeskyEx", "InvEx", "SolveEx", "cholesky_ex", "inv_ex", "solve_ex"]

_cholesky_info = Nondifferentiable("cholesky_info", batch="carry")
_lu_info = Nondifferentiable("lu_info", batch="carry")


class CholeskyEx(NamedTuple):
    """What :func:`cholesky_ex` returns."""

    L: Tensor
    info: Tensor


class InvEx(NamedTuple):
    """What :func:`inv_ex` returns."""

    inverse: Tensor
    info: Tensor


class SolveEx(NamedTuple):
    """What :func:`solve_ex` returns."""

    result: Tensor
    info: Tensor


def _where_possible(function: Callable[[Tensor], Tensor], A: Tensor, info: Tensor) -> Tensor:
    """The result of the matrices that have one, NaN for the others."""
    if isinstance(info.array, ARRAYS) and not info.array.any():
        return function(A)
    bad = reshape(info != 0, (*info.shape, 1, 1))
    out = function(where(bad, eye(A.shape[-1], dtype=A.dtype, device=A.device), A))
    return where(reshape(bad, bad.shape[: out.ndim]), math.nan, out)


def cholesky_ex(A: Tensor, *, upper: bool = False, check_errors: bool = False) -> CholeskyEx:
    """:func:`cholesky` and ``info``: for each matrix the order of the first leading minor that is
    not positive, or 0. Without ``check_errors`` such a matrix has NaN for a factor.

    >>> import chainrule
    >>> chainrule.linalg.cholesky_ex(chainrule.tensor([[1.0, 2.0], [2.0, 1.0]])).info
    tensor(2, dtype=chainrule.int32)
    """
    check_matrix("linalg.cholesky_ex", A, square=True)
    info = _cholesky_info(A.detach().mT if upper else A.detach())
    if check_errors:
        return CholeskyEx(cholesky(A, upper=upper), info)
    return CholeskyEx(_where_possible(lambda a: cholesky(a, upper=upper), A, info), info)


def inv_ex(A: Tensor, *, check_errors: bool = False) -> InvEx:
    """:func:`inv` and ``info``: for each matrix the place of the first zero on the diagonal of its
    LU factorization, or 0. Without ``check_errors`` such a matrix has NaN for an inverse."""
    check_matrix("linalg.inv_ex", A, square=True)
    info = _lu_info(A.detach())
    return InvEx(inv(A) if check_errors else _where_possible(inv, A, info), info)


def solve_ex(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False) -> SolveEx:
    """:func:`solve` and ``info``: for each matrix the place of the first zero on the diagonal of
    its LU factorization, or 0. Without ``check_errors`` such a matrix has NaN for a solution."""
    check_matrix("linalg.solve_ex", A, square=True)
    info = _lu_info(A.detach())
    if check_errors:
        return SolveEx(solve(A, B, left=left), info)
    return SolveEx(_where_possible(lambda a: solve(a, B, left=left), A, info), info)

"""Linear algebra under the names that PyTorch had before ``linalg``, which programs still use."""

from __future__ import annotations

from chainrule.ops.core.synonyms import also_named
from chainrule.ops.creation.patterns import eye
from chainrule.ops.elementwise.complex_numbers import conj
from chainrule.ops.linalg.decompositions import QR, SVD
from chainrule.ops.linalg.decompositions import qr as _qr
from chainrule.ops.linalg.decompositions import svd as _svd
from chainrule.ops.linalg.householder import geqrf, orgqr, ormqr
from chainrule.ops.linalg.lu import LUFactor, lu_factor_ex, lu_unpack
from chainrule.ops.linalg.lu import lu_solve as _lu_solve
from chainrule.ops.linalg.solving import check_matrix, cholesky_solve
from chainrule.tensor import Tensor

__all__ = [
    "cholesky_inverse",
    "geqrf",
    "lu",
    "lu_solve",
    "lu_unpack",
    "orgqr",
    "ormqr",
    "qr",
    "svd",
]
METHODS = ("cholesky_inverse", "geqrf", "lu", "lu_solve", "orgqr", "ormqr", "qr", "svd")
INPLACE: tuple[str, ...] = ()


def svd(input: Tensor, some: bool = True, compute_uv: bool = True) -> SVD:
    """U, S and V (not its adjoint, as :func:`linalg.svd`) with input = U diag(S) V*."""
    u, s, vh = _svd(input, full_matrices=not some)
    return SVD(u, s, conj(vh).mT)


def qr(input: Tensor, some: bool = True) -> QR:
    """Q and R of :func:`linalg.qr`; Q is square if not ``some``."""
    return _qr(input, mode="reduced" if some else "complete")


def lu(
    A: Tensor, pivot: bool = True, get_infos: bool = False
) -> LUFactor | tuple[Tensor, Tensor, Tensor]:
    """What :func:`linalg.lu_factor` returns: both factors in one matrix, and the pivots; with
    ``get_infos`` also, for each matrix, the first pivot that is zero, from 1, or 0."""
    packed, pivots, info = lu_factor_ex(A, pivot=pivot, check_errors=not get_infos)
    return (packed, pivots, info) if get_infos else LUFactor(packed, pivots)


@also_named(input="b")
def lu_solve(b: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
    """:func:`linalg.lu_solve` with the right side first."""
    return _lu_solve(LU_data, LU_pivots, b)


@also_named(input="L")
def cholesky_inverse(L: Tensor, upper: bool = False) -> Tensor:
    """The inverse of LL* from its Cholesky factor (of L*L if ``upper``)."""
    check_matrix("cholesky_inverse", L, square=True)
    return cholesky_solve(eye(L.shape[-1], dtype=L.dtype, device=L.device), L, upper)

"""The largest singular values of a matrix from random projections.

N. Halko, P. Martinsson and J. Tropp, "Finding structure with randomness" (2009), algorithm 4.4.
"""

from __future__ import annotations

from chainrule.ops.core.promotion import cast
from chainrule.ops.creation.sampling import randn
from chainrule.ops.elementwise.complex_numbers import real
from chainrule.ops.linalg.adjoint import adjoint
from chainrule.ops.linalg.decompositions import qr, svd
from chainrule.ops.linalg.solving import check_matrix
from chainrule.ops.reduce.reductions import mean
from chainrule.tensor import Tensor

__all__ = ["pca_lowrank", "svd_lowrank"]
METHODS: tuple[str, ...] = ()
INPLACE: tuple[str, ...] = ()


def _basis(A: Tensor, q: int, niter: int) -> Tensor:
    """q orthonormal columns that nearly span the columns of A."""
    start = randn(A.shape[-1], q, dtype=real(A.detach()).dtype, device=A.device)
    out = qr(A @ cast(start, A.dtype)).Q
    for _ in range(niter):
        out = qr(A @ qr(adjoint(A) @ out).Q).Q
    return out


def svd_lowrank(
    A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """U, S and V with A = U diag(S) V* nearly, for the ``q`` largest singular values.

    ``q`` should be a little more than the rank that is looked for; ``niter`` subspace iterations
    make it more precise. ``M`` is subtracted from A first.

    >>> import chainrule
    >>> a = chainrule.outer(chainrule.ones(5), chainrule.ones(4))
    >>> U, S, V = chainrule.svd_lowrank(a, q=2)
    >>> chainrule.allclose(U * S @ V.mT, a, atol=1e-5)
    True
    """
    check_matrix("svd_lowrank", A)
    q, niter = 6 if q is None else q, 2 if niter is None else niter
    rows, columns = A.shape[-2:]
    if not 0 <= q <= min(rows, columns) or niter < 0:
        raise ValueError(
            f"svd_lowrank: expected 0 <= q <= {min(rows, columns)} for a matrix of shape "
            f"{tuple(A.shape)} and niter >= 0, got q={q} and niter={niter}"
        )
    if M is not None:
        A = A - M
    if rows < columns:
        u, s, v = _of_tall(adjoint(A), q, niter)
        return v, s, u
    return _of_tall(A, q, niter)


def _of_tall(A: Tensor, q: int, niter: int) -> tuple[Tensor, Tensor, Tensor]:
    basis = _basis(A, q, niter)
    u, s, vh = svd(adjoint(basis) @ A, full_matrices=False)
    return basis @ u, s, adjoint(vh)


def pca_lowrank(
    A: Tensor, q: int | None = None, center: bool = True, niter: int = 2
) -> tuple[Tensor, Tensor, Tensor]:
    """The ``q`` principal components of the rows of A: U, S and V of :func:`svd_lowrank` after the
    mean of the rows is subtracted (unless not ``center``); q is min(6, m, n) if not given.

    ``A @ V[:, :k]`` are the rows in k dimensions.
    """
    check_matrix("pca_lowrank", A)
    size = min(A.shape[-2:])
    q = min(6, size) if q is None else q
    if not 0 <= q <= size:
        raise ValueError(f"q(={q}) must be non-negative integer and not greater than {size}")
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    return svd_lowrank(A - mean(A, -2, keepdim=True) if center else A, q, niter)

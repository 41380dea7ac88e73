"""What weight decay does to a minimum."""

from __future__ import annotations

from typing import NamedTuple

from chainrule.ops.linalg.decompositions import eigh
from chainrule.ops.linalg.matmul import matmul
from chainrule.regularize.penalty import check_strength
from chainrule.tensor import Tensor

__all__ = ["L2Optimum", "l2_optimum"]


class L2Optimum(NamedTuple):
    """The minimum with the penalty, and what was left of w0 along each axis of the curvature."""

    weights: Tensor
    kept: Tensor  # eigenvalue / (eigenvalue + strength)
    eigenvalues: Tensor
    eigenvectors: Tensor  # in columns


def l2_optimum(hessian: Tensor, w0: Tensor, strength: float) -> L2Optimum:
    """The minimum of 1/2 (w - w0)^T H (w - w0) + strength / 2 |w|^2, in the eigenbasis of H.

    With H = Q L Q^T it is Q (L + strength)^-1 L Q^T w0: along a direction of large curvature the
    weights stay, along one of small curvature (below the strength) they go to zero.

    Args:
        hessian: H (W, W), symmetric; at a minimum it has no negative eigenvalues.
        w0: the minimum without the penalty (W,).
        strength: of :class:`L2`.

    >>> from chainrule import diag, regularize, tensor
    >>> regularize.l2_optimum(diag(tensor([9.0, 1.0])), tensor([1.0, 1.0]), strength=1.0).weights
    tensor([0.9000, 0.5000])
    """
    check_strength("l2_optimum", strength)
    if hessian.ndim != 2 or tuple(hessian.shape) != (*w0.shape, *w0.shape):
        raise RuntimeError(
            f"l2_optimum: expected a Hessian (W, W) and weights (W,), got {tuple(hessian.shape)} "
            f"and {tuple(w0.shape)}"
        )
    values, vectors = eigh(hessian)
    lowest = float(values[0].detach())
    if lowest + strength <= 0:
        raise ValueError(
            f"l2_optimum: there is no minimum: the Hessian has the eigenvalue {lowest:.4g} and the "
            f"strength is {strength}; it must be larger than minus the lowest eigenvalue"
        )
    kept = values / (values + strength)
    weights = matmul(vectors, kept * matmul(w0, vectors))
    return L2Optimum(weights, kept, values, vectors)

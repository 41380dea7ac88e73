"""Penalties of weights as matrices: near an orthogonal one, or with a small largest gain.

They are meant for recurrent weights, whose powers decide whether gradients vanish or explode. The
weight of a recurrent layer with G gates, (G H, H), is G square matrices. Any other weight is one
matrix with a row for each output: (out, in * kernel).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chainrule.nn.module.names import Where
from chainrule.ops.creation.patterns import eye
from chainrule.ops.linalg.decompositions import svdvals
from chainrule.ops.elementwise.functions import relu
from chainrule.ops.linalg.matmul import matmul
from chainrule.ops.reduce.reductions import sum
from chainrule.ops.shape.views import reshape, transpose
from chainrule.regularize.penalty import SumPenalty
from chainrule.tensor import Tensor

__all__ = ["Orthogonality", "Spectral"]

Strength = float | Mapping[str, float]


def _matrices(op: str, name: str, weight: Tensor) -> Tensor:
    """A weight as a batch of matrices (G, rows, columns)."""
    if weight.ndim < 2:
        raise ValueError(
            f"{op}: {name} has shape {tuple(weight.shape)} and is no matrix; leave it out with "
            "where=..."
        )
    rows, columns = weight.shape[:2]
    recurrent = name.rpartition(".")[2].startswith("weight_hh") and rows % columns == 0
    gates = rows // columns if recurrent else 1
    return reshape(weight, (gates, rows // gates, -1))


class Orthogonality(SumPenalty):
    """strength / 2 ||W^T W - I||^2, summed over the matrices: all singular values near 1.

    For a matrix with fewer rows than columns, W W^T takes the place of W^T W.

    Args:
        strength: see :class:`Penalty`.
        where: likewise; by default the recurrent weights, "*weight_hh*".

    >>> from chainrule import eye, nn, regularize
    >>> cell = nn.RNNCell(3, 2)
    >>> _ = nn.init.orthogonal_(cell.weight_hh)
    >>> bool(regularize.Orthogonality(1.0)(cell) < 1e-10)
    True
    """

    default_where = "*weight_hh*"

    def of(self, name: str, weight: Tensor) -> Tensor:
        w = _matrices("Orthogonality", name, weight)
        if w.shape[1] < w.shape[2]:
            w = transpose(w, 1, 2)
        excess = matmul(transpose(w, 1, 2), w) - eye(w.shape[2], dtype=w.dtype, device=w.device)
        return 0.5 * sum(excess * excess)


class Spectral(SumPenalty):
    """strength / 2 max(0, s - limit)^2, summed over the matrices; s is the largest singular value.

    Repeated multiplication with W cannot make anything grow if s <= 1; that the spectral radius is
    at most 1 is not enough. At two equal largest singular values the gradient is that of one.

    Args:
        strength: see :class:`Penalty`.
        where: likewise; by default the recurrent weights, "*weight_hh*".
        limit: up to where the largest singular value costs nothing.

    >>> from chainrule import nn, regularize, tensor
    >>> model = nn.RNN(1, 2)
    >>> model.weight_hh_l0.data = tensor([[3.0, 0.0], [0.0, 1.0]])
    >>> regularize.Spectral(1.0, limit=1.0)(model).detach()
    tensor(2.)
    """

    default_where = "*weight_hh*"

    def __init__(
        self,
        strength: Strength,
        where: Where = None,
        limit: float = 0.0,
        name: str | None = None,
    ):
        super().__init__(strength, where, name)
        if not limit >= 0:
            raise ValueError(f"Spectral: limit must be >= 0, got {limit}")
        self.limit = limit

    def of(self, name: str, weight: Tensor) -> Tensor:
        excess = relu(svdvals(_matrices("Spectral", name, weight))[:, 0] - self.limit)
        return 0.5 * sum(excess * excess)

    def settings(self) -> dict[str, Any]:
        return {"limit": self.limit}

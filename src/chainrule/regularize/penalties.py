"""Penalties of the size of weights: L2, L1, Cauchy, weight elimination, group lasso."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from chainrule.nn.module.names import Where
from chainrule.ops.elementwise.complex_numbers import abs
from chainrule.ops.elementwise.functions import log1p
from chainrule.ops.linalg.matrices import vector_norm
from chainrule.ops.reduce.reductions import sum
from chainrule.ops.shape.views import movedim, reshape
from chainrule.regularize.penalty import Penalty, SumPenalty, added
from chainrule.tensor import Tensor

__all__ = ["Cauchy", "GroupLasso", "L1", "L2", "WeightElimination"]

Strength = float | Mapping[str, float]


class L2(SumPenalty):
    """strength / 2 ||w||^2: the gradient is strength w, as of an optimizer's ``weight_decay``.

    Without other forces the weights decay, w_t = (1 - lr strength)^t w_0.

    >>> from chainrule import nn, regularize
    >>> model = nn.Sequential(nn.Linear(2, 1, bias=False))
    >>> _ = nn.init.constant_(model[0].weight, 3.0)
    >>> penalty = regularize.L2(0.1, where="*.weight")
    >>> penalty, penalty(model).detach()
    (L2(0.1, where='*.weight'), tensor(0.9000))
    """

    def of(self, name: str, weight: Tensor) -> Tensor:
        return 0.5 * sum(weight * weight)


class L1(SumPenalty):
    """strength sum_i |w_i|: pulls each weight with the same force, so that many end near zero.

    At 0 the gradient is 0. Steps of a gradient jump over zero; ``prune`` sets what is left there.

    >>> from chainrule import nn, regularize
    >>> model = nn.Linear(2, 1)
    >>> _ = nn.init.constant_(model.weight, -3.0)
    >>> regularize.L1(0.5)(model).detach()
    tensor(3.)
    """

    def of(self, name: str, weight: Tensor) -> Tensor:
        return sum(abs(weight))


class Cauchy(Penalty):
    """strength log(1 + w.w / scale^2): large weights are hardly pulled at all.

    With ``joint`` w is the vector of all weights (of a pattern), without it each weight by itself,
    strength sum_i log(1 + w_i^2 / scale^2): the negative logarithm of a Cauchy prior.

    >>> from chainrule import nn, regularize
    >>> model = nn.Linear(2, 1, bias=False)
    >>> _ = nn.init.constant_(model.weight, 1.0)
    >>> regularize.Cauchy(1.0)(model).detach(), regularize.Cauchy(1.0, joint=False)(model).detach()
    (tensor(1.0986), tensor(1.3863))
    """

    def __init__(
        self,
        strength: Strength,
        where: Where = None,
        scale: float = 1.0,
        joint: bool = True,
        name: str | None = None,
    ):
        super().__init__(strength, where, name)
        _check_positive("Cauchy", scale=scale)
        self.scale, self.joint = scale, joint

    def measure(self, weights: dict[str, Tensor]) -> Tensor:
        squares = [(w / self.scale) ** 2 for w in weights.values()]
        if self.joint:
            return log1p(added([sum(s) for s in squares]))
        return added([sum(log1p(s)) for s in squares])

    def settings(self) -> dict[str, Any]:
        return {"scale": self.scale, "joint": self.joint}


class WeightElimination(SumPenalty):
    """strength sum_i (w_i/w0)^2 / (1 + (w_i/w0)^2), where w0 is the threshold.

    Weights far below the threshold are pulled as by :class:`L2`; each one far above costs about
    ``strength`` and is not pulled: the penalty counts the weights in use.

    Weigend, Rumelhart and Huberman, "Generalization by weight-elimination" (1991).

    >>> from chainrule import nn, regularize
    >>> model = nn.Linear(2, 1)
    >>> _ = nn.init.constant_(model.weight, 100.0)  # two weights in use
    >>> regularize.WeightElimination(1.0)(model).detach()
    tensor(2.0000)
    """

    def __init__(
        self,
        strength: Strength,
        where: Where = None,
        threshold: float = 0.2,
        name: str | None = None,
    ):
        super().__init__(strength, where, name or "weight_elimination")
        _check_positive("WeightElimination", threshold=threshold)
        self.threshold = threshold

    def of(self, name: str, weight: Tensor) -> Tensor:
        square = (weight / self.threshold) ** 2
        return sum(square / (1 + square))

    def settings(self) -> dict[str, Any]:
        return {"threshold": self.threshold}


class GroupLasso(SumPenalty):
    """strength sum_g sqrt(n_g) ||w_g||: whole groups of n_g weights go to zero together.

    At a group of zeros the gradient is 0.

    Args:
        strength: see :class:`Penalty`.
        where: likewise.
        groups: "rows" (all weights into an output unit or channel: dimension 0), "columns" (all
            that read an input unit or channel: dimension 1), "kernels" (each pair of channels)
            or "tensors" (each parameter as a whole).

    >>> from chainrule import nn, regularize, tensor
    >>> model = nn.Linear(2, 2, bias=False)
    >>> _ = model.load_state_dict({"weight": tensor([[3.0, 4.0], [0.0, 0.0]])})
    >>> regularize.GroupLasso(1.0)(model).detach()  # sqrt(2) * 5
    tensor(7.0711)
    """

    def __init__(
        self,
        strength: Strength,
        where: Where = None,
        groups: str = "rows",
        name: str | None = None,
    ):
        super().__init__(strength, where, name or "group_lasso")
        if groups not in ("rows", "columns", "kernels", "tensors"):
            raise ValueError(
                "GroupLasso: groups must be 'rows', 'columns', 'kernels' or 'tensors', got "
                f"{groups!r}"
            )
        self.partition = groups

    def of(self, name: str, weight: Tensor) -> Tensor:
        rows = self._rows(name, weight)
        return math.sqrt(rows.shape[1]) * sum(vector_norm(rows, dim=1))

    def _rows(self, name: str, weight: Tensor) -> Tensor:
        """The weight as a matrix with a row for each group."""
        least = {"rows": 1, "columns": 2, "kernels": 2, "tensors": 0}[self.partition]
        if weight.ndim < least:
            raise ValueError(
                f"GroupLasso: {name} has shape {tuple(weight.shape)} and no {self.partition}; "
                "leave it out with where=..."
            )
        if self.partition == "tensors":
            return reshape(weight, (1, -1))
        if self.partition == "columns":
            weight = movedim(weight, 1, 0)
        count = weight.shape[0] * (weight.shape[1] if self.partition == "kernels" else 1)
        return reshape(weight, (count, -1))

    def settings(self) -> dict[str, Any]:
        return {"groups": self.partition}


def _check_positive(op: str, **values: float) -> None:
    for key, value in values.items():
        if not 0 < value < math.inf:
            raise ValueError(f"{op}: {key} must be positive, got {value}")

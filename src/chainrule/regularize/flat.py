"""Flat minimum search: weights that may be changed much while the outputs change little."""

from __future__ import annotations

import math

from chainrule.autograd.functional_call import functional_call
from chainrule.autograd.jacobian import jacrev
from chainrule.autograd.vmap import vmap
from chainrule.nn.module.base import Module
from chainrule.nn.module.evaluation import evaluating
from chainrule.nn.module.names import Where, check_where, describe
from chainrule.ops.elementwise.complex_numbers import abs
from chainrule.ops.creation.patterns import ones_like, zeros_like
from chainrule.ops.elementwise.functions import log, sqrt
from chainrule.ops.elementwise.logic import where
from chainrule.ops.reduce.reductions import sum
from chainrule.ops.shape.views import reshape, unsqueeze
from chainrule.ops.shape.stacking import cat
from chainrule.regularize.penalty import check_strength
from chainrule.regularize.where import select
from chainrule.tensor import Tensor

__all__ = ["FlatMinimum", "flat_box"]


def flat_box(jacobian: Tensor, tolerance: float) -> Tensor:
    """How far each weight may be moved: the largest box in which the outputs move little.

    dw_i = sqrt(tolerance) / (r_i sqrt(sum_k (sum_j |J_kj| / r_j)^2)) with r_i = sqrt(sum_k J_ki^2).
    Within the box sum_k (change of output k)^2 <= tolerance to first order, and all weights
    contribute alike. A weight on which no output depends may be moved by any amount: inf.

    Shape: ``jacobian`` (K, W), of the outputs by the weights; the result (W,).

    >>> from chainrule import regularize, tensor
    >>> regularize.flat_box(tensor([[1.0, 2.0]]), tolerance=0.01)
    tensor([0.0500, 0.0250])
    """
    if jacobian.ndim != 2:
        raise RuntimeError(
            f"flat_box: expected a Jacobian of shape (K, W), got {tuple(jacobian.shape)}"
        )
    _check_tolerance("flat_box", tolerance)
    square, used, total = _sizes(jacobian)
    return math.sqrt(tolerance) / where(used, sqrt(square * total), zeros_like(square))


def _sizes(jacobian: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """r_i^2 (1 where it is zero), where it is not zero, and sum_k (sum_i |J_ki| / r_i)^2."""
    square = sum(jacobian * jacobian, -2)
    used = square > 0
    square = where(used, square, ones_like(square))
    parts = sum(abs(jacobian) / unsqueeze(sqrt(square), -2), -1)
    return square, used, sum(parts * parts, -1)


def _check_tolerance(op: str, tolerance: float) -> None:
    if not 0 < tolerance < math.inf:
        raise ValueError(f"{op}: tolerance must be positive, got {tolerance}")


class FlatMinimum:
    """strength B, where B = -sum_i log dw_i is the description length of the weights, in nats.

    B = 1/2 (-W log eps + sum_i log sum_k J_ki^2 + W log sum_k (sum_i |J_ki| / r_i)^2) with
    r_i^2 = sum_k J_ki^2, the mean over the samples of the batch. J_ki is the derivative of output k
    by weight i, W the number of weights, eps the tolerance, and dw the sides of :func:`flat_box`:
    the flatter the minimum, the fewer digits of the weights matter. Weights on which no output
    depends for a sample (those of silent units) need no digits there and are left out of all
    sums and of W.

    The gradient is exact: one pass through the derivatives of each of K outputs, of O(K W)
    operations per sample; nothing of the size W^2 is formed. The memory is that of N K W numbers,
    or with ``chunk_size`` samples at a time, of so many. The network is taken as in evaluation.

    It needs the inputs: a ``Trainer`` gives it those of each batch; by hand, ``penalty(model, x)``.

    Hochreiter and Schmidhuber, "Flat minima" (1997).

    Args:
        strength: what the penalty is multiplied with.
        where: which parameters; see :class:`Penalty`.
        tolerance: how far the outputs may move, squared and summed.
        chunk_size: how many samples are treated at once; by default all.
        name: the name of its column.

    >>> from chainrule import nn, ones, regularize
    >>> model = nn.Linear(1, 1, bias=False)  # y = w x: x^2 dw^2 <= tolerance
    >>> penalty = regularize.FlatMinimum(1.0, tolerance=0.1)
    >>> penalty(model, ones(4, 1)).detach()  # -log sqrt(0.1)
    tensor(1.1513)
    """

    needs_inputs = True

    def __init__(
        self,
        strength: float,
        where: Where = None,
        tolerance: float = 0.1,
        chunk_size: int | None = None,
        name: str = "flat_minimum",
    ):
        check_strength("FlatMinimum", strength)
        check_where("FlatMinimum", where)
        _check_tolerance("FlatMinimum", tolerance)
        self.strength, self.where, self.tolerance = strength, where, tolerance
        self.chunk_size, self.name = chunk_size, name

    def weights(self, model: Module) -> dict[str, Tensor]:
        """The parameters that are penalized, by name."""
        return select("FlatMinimum", model, self.where)

    def jacobian(self, model: Module, *inputs: Tensor) -> Tensor:
        """The derivatives of each sample's outputs by the weights, of shape (N, K, W)."""
        weights = self.weights(model)

        def outputs(w: dict[str, Tensor], sample: tuple[Tensor, ...]) -> Tensor:
            y = functional_call(model, w, tuple(unsqueeze(x, 0) for x in sample))
            if not isinstance(y, Tensor):
                raise TypeError(
                    f"FlatMinimum: the model must return one Tensor, got {type(y).__name__}"
                )
            return reshape(y, (-1,))

        def of_one(*sample: Tensor) -> Tensor:
            found = jacrev(outputs)(weights, sample)
            return cat([reshape(j, (j.shape[0], -1)) for j in found.values()], 1)

        if not inputs:
            raise ValueError("FlatMinimum: needs the inputs; call it as penalty(model, x)")
        with evaluating(model):
            return vmap(of_one, chunk_size=self.chunk_size)(*inputs)

    def __call__(self, model: Module, *inputs: Tensor) -> Tensor:
        """The penalty at these inputs."""
        square, used, total = _sizes(self.jacobian(model, *inputs))
        size = sum(used, -1)
        any_used = size > 0
        total = where(any_used, total, ones_like(total))
        nats = sum(log(square), -1) + size * (log(total) - math.log(self.tolerance))
        return (0.5 * self.strength / square.shape[0]) * sum(nats)

    def __repr__(self) -> str:
        chosen = "" if self.where is None else f"where={describe(self.where)}, "
        return f"FlatMinimum({self.strength}, {chosen}tolerance={self.tolerance})"

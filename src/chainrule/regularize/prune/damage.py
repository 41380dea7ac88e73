"""Optimal Brain Damage: pruning by the curvature of the loss along each weight."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from chainrule.nn.module.base import Module
from chainrule.nn.module.names import Where
from chainrule.regularize.prune.choosing import Step, prune_lowest, remaining
from chainrule.regularize.prune.problem import Problem
from chainrule.tensor import Tensor

__all__ = ["obd", "obd_saliency"]

DIAGONALS = ("auto", "exact", "hutchinson", "gauss-newton")
EXACT_BELOW = 2000  # weights: the exact diagonal takes a product with the Hessian for each


def obd_saliency(
    model: Module,
    loss: Callable[[Any, Any], Tensor],
    data: tuple[Any, Any],
    *,
    diagonal: str = "auto",
    samples: int = 100,
    seed: int | None = None,
    where: Where = None,
) -> dict[str, Tensor]:
    """1/2 H_ii w_i^2 for each weight, by name: what the loss rises if that weight alone goes.

    This is the change at a minimum, where the gradient is zero and H semidefinite, to second order.

    Args:
        model: any module; it is looked at in evaluation mode.
        loss: ``loss(output, target)``.
        data: ``(inputs, target)``; the saliencies are those of the loss on these samples.
        diagonal: where H_ii comes from. "exact": one product with the Hessian for each weight;
            "hutchinson": an unbiased estimate from ``samples`` products; "gauss-newton": the exact
            diagonal of the Gauss-Newton matrix, which is never negative, from the gradients of
            single samples, one for each output; "auto": exact up to 2000 weights, else
            "gauss-newton".
        samples: how many products for "hutchinson".
        seed: of their random vectors.
        where: which weights, as in :func:`magnitude`.

    >>> import chainrule
    >>> from chainrule import nn
    >>> from chainrule.regularize import prune
    >>> net = nn.Linear(2, 1, bias=False)
    >>> net.weight.data = chainrule.tensor([[1.0, 2.0]])
    >>> x = chainrule.tensor([[3.0, 0.0], [0.0, 1.0]])
    >>> half_squares = lambda y, t: 0.5 * ((y - t) ** 2).sum()  # H = diag(9, 1)
    >>> prune.obd_saliency(net, half_squares, (x, net(x).detach()))
    {'weight': tensor([[4.5000, 2.0000]])}
    """
    return _saliency(Problem("obd_saliency", model, loss, data, where), diagonal, samples, seed)


def _saliency(problem: Problem, diagonal: str, samples: int, seed: int | None) -> dict[str, Tensor]:
    if diagonal not in DIAGONALS:
        raise ValueError(f"{problem.op}: diagonal must be one of {DIAGONALS}, got {diagonal!r}")
    if diagonal == "auto":
        diagonal = "exact" if problem.count <= EXACT_BELOW else "gauss-newton"
    w = problem.vector()
    parts = problem.spread(0.5 * problem.diagonal(diagonal, samples, seed) * w * w)
    return {weight.name: part for weight, part in zip(problem.weights, parts, strict=True)}


def obd(
    model: Module,
    loss: Callable[[Any, Any], Tensor],
    data: tuple[Any, Any],
    sparsity: float | None = None,
    *,
    count: int | None = None,
    diagonal: str = "auto",
    samples: int = 100,
    seed: int | None = None,
    scope: str = "global",
    where: Where = None,
) -> Step:
    """Optimal Brain Damage (LeCun, Denker, Solla 1990): prunes the weights of lowest saliency.

    The predicted change of the loss is the sum of the saliencies, which is blind to what weights
    do together: of two that do the same it knows only that each is needed. Retrain after it.

    The arguments are those of :func:`obd_saliency` and :func:`magnitude`.

    >>> import chainrule
    >>> from chainrule import nn
    >>> from chainrule.regularize import prune
    >>> net = nn.Linear(2, 1, bias=False)
    >>> net.weight.data = chainrule.tensor([[1.0, 2.0]])
    >>> x = chainrule.tensor([[3.0, 0.0], [0.0, 1.0]])
    >>> half_squares = lambda y, t: 0.5 * ((y - t) ** 2).sum()  # saliencies 9/2 and 4/2
    >>> step = prune.obd(net, half_squares, (x, net(x).detach()), count=1)
    >>> net.weight.detach(), step.predicted
    (tensor([[1., 0.]]), 2.0)
    """
    problem = Problem("obd", model, loss, data, where)
    saliency = _saliency(problem, diagonal, samples, seed)
    before = problem.value()
    scores = [saliency[w.name] for w in problem.weights]
    pruned, predicted = prune_lowest("obd", problem.weights, scores, sparsity, count, scope)
    left = remaining(problem.weights)
    return Step("obd", pruned, left, problem.size, predicted, before, problem.value())

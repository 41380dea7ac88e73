"""Optimal Brain Surgeon: pruning with the whole Hessian, the other weights making up for it."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

from chainrule.autograd.modes import no_grad
from chainrule.backend import dtypes
from chainrule.nn.module.base import Module
from chainrule.nn.module.names import Where
from chainrule.ops.creation.patterns import ones_like, zeros
from chainrule.ops.elementwise.logic import where as choose
from chainrule.ops.creation.from_data import tensor
from chainrule.ops.linalg.matmul import matmul
from chainrule.ops.reduce.order import argmin
from chainrule.ops.core.promotion import cast
from chainrule.ops.index.scatter import scatter
from chainrule.regularize.prune.choosing import Step, remaining, to_prune
from chainrule.regularize.prune.inverses import Inverse, inverse_of
from chainrule.regularize.prune.masks import put_mask
from chainrule.regularize.prune.problem import Problem
from chainrule.tensor import Tensor

__all__ = ["obs", "obs_cost"]


def obs_cost(
    model: Module,
    loss: Callable[[Any, Any], Tensor],
    data: tuple[Any, Any],
    *,
    method: str = "auto",
    damping: float | None = None,
    beta: float = 1e-2,
    memory_limit: float = 2.0,
    where: Where = None,
) -> dict[str, Tensor]:
    """w_i^2 / (2 [H^-1]_ii) for each weight, by name: what the loss rises without that weight.

    Other than the saliencies of :func:`obd_saliency` this is the cost after all other weights have
    made up for it as well as they can. Pruned weights have cost 0. The arguments are those of
    :func:`obs`.
    """
    problem = Problem("obs_cost", model, loss, data, where)
    inverse = inverse_of(problem, method, damping, beta, memory_limit)
    w = cast(problem.vector(), dtypes.float64)
    costs = problem.spread(w * w / (2 * inverse.diagonal()))
    return {weight.name: part for weight, part in zip(problem.weights, costs, strict=True)}


def obs(
    model: Module,
    loss: Callable[[Any, Any], Tensor],
    data: tuple[Any, Any],
    sparsity: float | None = None,
    *,
    count: int | None = None,
    method: str = "auto",
    gradient: bool = True,
    damping: float | None = None,
    beta: float = 1e-2,
    gamma: float | None = 0.5,
    memory_limit: float = 2.0,
    where: Where = None,
) -> Step:
    """Optimal Brain Surgeon (Hassibi, Stork 1993): prunes weights and changes the others.

    The change dw = -w_i / [H^-1]_ii H^-1 e_i is the one that costs least, w_i^2 / (2 [H^-1]_ii), of
    all that make weight i zero. The weight of least cost goes, then the next with those before it
    held at zero; H is computed once. What keeps this safe, beside retraining after it:

    - the gradient: away from a minimum g.dw counts. With ``gradient``, the weights first take the
      step -H^-1 g to the minimum of the quadratic, which together is the least g.dw + 1/2 dw^T H dw
      with dw_i = -w_i.
    - the inverse: a singular or indefinite H is damped, and a warning says so; ``beta`` bounds
      ||I - H^-1 H|| / ||I||, beyond which there is more damping.
    - the size of changes: if a weight that stays would change by more than ``gamma`` (None: any),
      all their changes are scaled down to that.

    Args:
        model: any module; it is looked at in evaluation mode.
        loss: ``loss(output, target)``, a mean over samples.
        data: ``(inputs, target)``.
        sparsity, count: as in :func:`magnitude`.
        method: "exact" inverts the Hessian; "layerwise" inverts the block of each weight tensor,
            "fisher" takes H = damping I + 1/N sum_n g_n g_n^T from the gradients of the samples,
            for a likelihood as the loss, without a W x W matrix; "auto" chooses by size.
        gradient: see above.
        damping: added to the diagonal of H, but no less than makes it positive definite; None for
            just that, for "fisher" a hundredth of its mean eigenvalue.
        beta, gamma: see above.
        memory_limit: GiB that the matrices may take; beyond it a MemoryError.
        where: which weights, as in :func:`magnitude`.

    >>> import chainrule
    >>> from chainrule import nn
    >>> from chainrule.regularize import prune
    >>> net = nn.Linear(2, 1, bias=False).double()
    >>> net.weight.data = chainrule.tensor([[1.0, 1.0]], dtype=chainrule.float64)
    >>> x = chainrule.tensor([[1.0, 1.0], [1.0, 0.9]], dtype=chainrule.float64)
    >>> mse = nn.MSELoss()
    >>> step = prune.obs(net, mse, (x, net(x).detach()), count=1, gamma=None)
    >>> net.weight.round(decimals=2).tolist()  # the twin takes over
    [[1.95, 0.0]]
    """
    problem = Problem("obs", model, loss, data, where)
    number = to_prune("obs", sparsity, count, problem.count, problem.size)
    if gamma is not None and not gamma > 0:
        raise ValueError(f"obs: gamma must be None or greater than 0, got {gamma}")
    before = problem.value()
    inverse = inverse_of(problem, method, damping, beta, memory_limit)
    note = _told(inverse, damping)
    g = cast(problem.gradient(), dtypes.float64)
    w = cast(problem.vector(), dtypes.float64)
    with no_grad():
        change, gone = _changes(inverse, w, g if gradient else None, number)
        change, scaled = _scaled(change, gone, w, gamma)
        predicted = float(matmul(change, g) + 0.5 * matmul(change, inverse.hessian_times(change)))
        _apply(problem, w + change, gone)
    if scaled:
        note = "; ".join([*filter(None, [note]), f"changes scaled by {scaled:.2g}"])
    left = remaining(problem.weights)
    return Step("obs", number, left, problem.size, predicted, before, problem.value(), note)


def _changes(
    inverse: Inverse, w: Tensor, g: Tensor | None, number: int
) -> tuple[Tensor, list[int]]:
    """The change of all weights that makes so many of them zero, one after the other."""
    new = w if g is None else w - inverse.times(g)
    gone: list[int] = []
    alive = cast(ones_like(w), dtypes.bool_)
    for _ in range(number):
        spread = choose(alive, inverse.diagonal(), 1.0)
        cost = choose(alive, new * new / (2 * spread.clamp(min=1e-300)), math.inf)
        i = int(argmin(cost))
        new = new - (float(new[i]) / float(spread[i])) * inverse.column(i)
        inverse.take_out(i)
        gone.append(i)
        alive = scatter(alive, 0, tensor([i]), tensor([False]))
        new = choose(alive, new, 0.0)
    return new - w, gone


def _scaled(
    change: Tensor, gone: list[int], w: Tensor, gamma: float | None
) -> tuple[Tensor, float]:
    """The changes of the weights that stay, made smaller if one is too large; and the factor."""
    if gamma is None or not gone:
        at, kept = None, change
    else:
        at = tensor(gone)
        kept = scatter(change, 0, at, zeros(len(gone), dtype=change.dtype, device=change.device))
    largest = float(abs(kept).amax())
    if gamma is None or largest <= gamma:
        return change, 0.0
    kept = kept * (gamma / largest)
    if at is not None:
        kept = scatter(kept, 0, at, -w[at])
    return kept, gamma / largest


def _apply(problem: Problem, vector: Tensor, gone: list[int]) -> None:
    """Writes the weights, and masks those that are gone."""
    if gone:
        vector = scatter(
            vector, 0, tensor(gone), zeros(len(gone), dtype=vector.dtype, device=vector.device)
        )
    problem.write(vector)
    if not gone:
        return
    flags = zeros(problem.count, dtype=dtypes.float64) + 1.0
    flags = scatter(flags, 0, tensor(gone), zeros(len(gone), dtype=dtypes.float64))
    for weight, stays in zip(problem.weights, problem.spread(flags), strict=True):
        if weight.function is not None or not bool((stays > 0).all()):
            put_mask(weight, stays > 0)


def _told(inverse: Inverse, asked: float | None) -> str:
    """Says that the Hessian was damped, if that was not asked for."""
    if asked is not None and inverse.damping <= asked:
        return ""
    if inverse.damping == 0.0:
        return ""
    note = f"damping {inverse.damping:.3g}"
    if not hasattr(inverse, "g"):  # the low-rank one is always damped
        warnings.warn(
            f"obs: the Hessian is singular or not positive definite, so {inverse.damping:.3g} was "
            "added to its diagonal; damping=... asks for more",
            stacklevel=3,
        )
    return note

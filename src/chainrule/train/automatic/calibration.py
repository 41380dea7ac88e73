"""After training: how much the network counts beside the linear model, and how sure it may be."""

from __future__ import annotations

import math
from typing import Any

from chainrule.autograd.modes import inference_mode
from chainrule.data import TargetEncoder
from chainrule.models import TabularNetwork
from chainrule.nn.module.evaluation import evaluating
from chainrule.ops.reduce.sort import sort
from chainrule.ops.shape.stacking import cat
from chainrule.ops.shape.views import flatten, transpose
from chainrule.tensor import Tensor
from chainrule.train.automatic.members import HeldOutBatches
from chainrule.train.losses import LossLike, WeightedLoss

__all__ = ["calibrate", "interval_width"]

SHARES = [i / 10 for i in range(11)]
KEPT = 1000  # errors of held-out rows that are kept for intervals, at most


def calibrate(
    model: TabularNetwork, held_out: HeldOutBatches, target: TargetEncoder, loss: LossLike
) -> dict[str, Any]:
    """Weighs the network against its linear models by what predicts held-out rows best.

    Returns the facts: the share of the network, and for numbers the errors of held-out rows.
    """
    with evaluating(model), inference_mode():
        network, linear, truth, weight = _held_out(model, held_out)
    share = _share(network, linear, truth, weight, loss)
    model.multiply(share)
    facts: dict[str, Any] = {"share": share, "rows": len(truth)}
    if target.task == "regression":
        errors = abs(share * network + linear - truth)
        facts["errors"] = [_kept(sort(column)[0]) for column in errors.mT]
    return facts


def _held_out(
    model: TabularNetwork, held_out: HeldOutBatches
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """The outputs of the networks and linear models for the rows they hold out, and the truth."""
    found: list[tuple[Tensor, ...]] = []
    for x, *rest in held_out:
        parts = [flatten(transpose(p, 0, 1), 0, 1) for p in model.parts(x)]
        found.append((*parts, *[flatten(t, 0, 1) for t in rest]))
    network, linear, truth, *weight = [cat(list(column)) for column in zip(*found, strict=True)]
    return network, linear, truth, weight[0] if weight else None


def _share(
    network: Tensor, linear: Tensor, truth: Tensor, weight: Tensor | None, loss: LossLike
) -> float:
    """By what to multiply the network's part, from 0 to 1."""
    mean = WeightedLoss(loss)
    losses = [float(mean(share * network + linear, truth, weight)) for share in SHARES]
    return SHARES[losses.index(min(losses))]


def _kept(errors: Tensor) -> list[float]:
    """Sorted errors, or so many of them that lie evenly among all, from above."""
    n = len(errors)
    if n <= KEPT:
        return errors.tolist()
    return [float(errors[math.ceil((i + 1) * n / KEPT) - 1]) for i in range(KEPT)]


def interval_width(errors: list[float], rows: int, level: float) -> float:
    """The conformal half width: the ceil((n + 1) level)-th smallest error; infinite for too few."""
    rank = math.ceil((rows + 1) * level) / rows
    if rank > 1:
        return math.inf
    return errors[max(0, math.ceil(rank * len(errors)) - 1)]

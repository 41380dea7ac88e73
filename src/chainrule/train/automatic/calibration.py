"""After training: how much a network counts beside its linear models, and how sure it may be."""

from __future__ import annotations

from typing import Any, NamedTuple

from chainrule import nn
from chainrule.autograd.modes import inference_mode, no_grad
from chainrule.data import TargetEncoder
from chainrule.models import TabularNetwork
from chainrule.nn.module.evaluation import evaluating
from chainrule.ops.shape.stacking import cat
from chainrule.ops.shape.views import flatten, transpose
from chainrule.tensor import Tensor
from chainrule.train.automatic.members import HeldOutBatches
from chainrule.train.intervals import kept_errors
from chainrule.train.losses import LossLike, WeightedLoss

__all__ = ["HeldOut", "facts_of_errors", "soften", "weigh"]

SHARES = [i / 10 for i in range(11)]
TEMPERATURES = [2 ** (i / 8) for i in range(-8, 17)]  # from 1/2 to 4
HELPS = 0.995  # a temperature is taken where it lowers the loss to this part of it


class HeldOut(NamedTuple):
    """Outputs for rows that were not learned from, their targets, and their weights if any."""

    output: Tensor
    truth: Tensor
    weight: Tensor | None

    def loss(self, loss: LossLike, output: Tensor | None = None) -> float:
        """The mean loss of these outputs, or of others for the same rows."""
        shown = self.output if output is None else output
        return float(WeightedLoss(loss)(shown, self.truth, self.weight))


def weigh(model: TabularNetwork, held_out: HeldOutBatches, loss: LossLike) -> tuple[float, HeldOut]:
    """Multiplies the network's part of the outputs by what predicts held-out rows best, 0 to 1.

    Returns that factor, and the outputs for the rows that each member holds out.
    """
    found: list[tuple[Tensor, ...]] = []
    with evaluating(model), inference_mode():
        for x, *rest in held_out:
            parts = [flatten(transpose(p, 0, 1), 0, 1) for p in model.parts(x)]
            found.append((*parts, *[flatten(t, 0, 1) for t in rest]))
        network, linear, truth, *weight = [cat(list(column)) for column in zip(*found, strict=True)]
        seen = HeldOut(linear, truth, weight[0] if weight else None)
        losses = [seen.loss(loss, share * network + linear) for share in SHARES]
        share = SHARES[losses.index(min(losses))]
        seen = seen._replace(output=share * network + linear)
    model.multiply(share)
    return share, seen


def facts_of_errors(seen: HeldOut, target: TargetEncoder) -> dict[str, Any]:
    """What intervals need, for numbers; and how many rows were looked at."""
    facts: dict[str, Any] = {"rows": len(seen.truth)}
    if target.task == "regression":
        facts["errors"] = kept_errors(seen.output, seen.truth)
    return facts


@no_grad()
def soften(model: nn.Module, seen: HeldOut, loss: LossLike) -> float:
    """Divides the logits of a network by the temperature that suits held-out rows, if it helps.

    The division is done in the last layer, where that is linear; returns the temperature.
    """
    last = list(model.children())[-1] if isinstance(model, nn.Sequential) else None
    if not isinstance(last, nn.Linear):
        return 1.0
    losses = {t: seen.loss(loss, seen.output / t) for t in TEMPERATURES}
    best = min(losses, key=lambda t: losses[t])
    if losses[best] > HELPS * losses[1.0]:
        return 1.0
    for p in last.parameters():
        p.div_(best)
    return best

"""The schedule of the learning rate that goes with averages of the weights."""

from __future__ import annotations

import math

from chainrule.optim.lr_scheduler.base import LRScheduler, per_group
from chainrule.optim.optimizer import Optimizer
from chainrule.typing import Rate, Rates

__all__ = ["SWALR"]


class SWALR(LRScheduler):
    """From the rate as it is to a constant one: lr = swa_lr a + lr_0 (1 - a).

    a = (1 - cos(pi t)) / 2, or a = t with ``anneal_strategy="linear"``; t = step / anneal_epochs,
    at most 1.

    Args:
        optimizer: whose rates are changed.
        swa_lr: the rate at the end, or one for each group.
        anneal_epochs: how long the way there takes.
        anneal_strategy: "cos" or "linear".
        last_epoch: the epoch to go on from, -1 to start.

    >>> import chainrule
    >>> from chainrule import optim
    >>> optimizer = optim.SGD([chainrule.zeros(1, requires_grad=True)], lr=0.4)
    >>> swa = optim.swa_utils.SWALR(optimizer, 0.2, anneal_epochs=2, anneal_strategy="linear")
    >>> [round(lr, 3) for lr in optim.lr_scheduler.preview(swa, 4)]
    [0.4, 0.3, 0.2, 0.2]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: Rates,
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ):
        rates = per_group("SWALR", "swa_lr", optimizer, swa_lr)
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}"
            )
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        for rate, group in zip(rates, optimizer.param_groups, strict=True):
            group["swa_lr"] = rate
        self.anneal_epochs, self._anneal_strategy = anneal_epochs, anneal_strategy
        super().__init__(optimizer, last_epoch)

    def _share(self, step: int) -> float:
        """How much of the last rate there is at a step."""
        t = max(0.0, min(1.0, step / max(1, self.anneal_epochs)))
        return (1 - math.cos(math.pi * t)) / 2 if self._anneal_strategy == "cos" else t

    def next_lr(self, lr: Rate, base: Rate, i: int) -> Rate:
        last = self.optimizer.param_groups[i]["swa_lr"]
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self._share(step - 1), self._share(step)
        # What the first rate was, seen from the rate as it is: a change by hand stays.
        first = last if before == 1 else (lr - before * last) / (1 - before)
        return last * now + first * (1 - now)

"""Rates that fall when a measurement stops improving."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import SupportsFloat, TypedDict, Unpack

from chainrule.autograd.modes import no_grad
from chainrule.ops.elementwise.functions import maximum
from chainrule.ops.elementwise.logic import where
from chainrule.optim.lr_scheduler.base import EPOCH_WARNING, LRScheduler, check_optimizer, each
from chainrule.optim.optimizer import Optimizer, check_range
from chainrule.tensor import Tensor
from chainrule.typing import Rate

__all__ = ["HalveOnPlateau", "ReduceLROnPlateau"]


class ReduceLROnPlateau(LRScheduler):
    """Multiplies the rate by factor once a metric has not improved for more than patience epochs.

    lr <- max(factor lr, min_lr)

    ``step`` takes the metric, such as the loss of the validation data.

    Args:
        optimizer: whose rates are changed.
        mode: "min" if the metric should fall, "max" if it should rise.
        factor: by which the rate is multiplied.
        patience: how many epochs without improvement are allowed.
        threshold: what counts as an improvement: by this part of the best value or by this amount.
        threshold_mode: "rel" or "abs".
        cooldown: how many epochs to wait after a reduction before counting again.
        min_lr: the lowest rate, or one for each group.
        eps: a reduction by no more than this is not made.

    >>> import chainrule
    >>> from chainrule import optim
    >>> optimizer = optim.SGD([chainrule.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=1)
    >>> for loss in (3.0, 2.0, 2.0, 2.0):
    ...     schedule.step(loss)
    >>> schedule.get_last_lr()
    [0.1]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float | Sequence[float] = 0,
        eps: float = 1e-8,
    ):
        check_optimizer(self._name, optimizer)
        if not 0 <= factor < 1:
            raise ValueError(f"{self._name}: Factor should be < 1.0 and not negative, got {factor}")
        check_range(self._name, patience=patience, cooldown=cooldown, min_lr=min_lr, eps=eps)
        count = len(optimizer.param_groups)
        self.default_min_lr = None if isinstance(min_lr, Sequence) else min_lr
        self.min_lrs = list(min_lr) if isinstance(min_lr, Sequence) else [min_lr] * count
        if len(self.min_lrs) != count:
            raise ValueError(f"{self._name}: expected {count} min_lrs, got {len(self.min_lrs)}")
        if mode not in ("min", "max"):
            raise ValueError(f"{self._name}: mode {mode} is unknown! It is 'min' or 'max'")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError(
                f"{self._name}: threshold mode {threshold_mode} is unknown! It is 'rel' or 'abs'"
            )
        self.optimizer, self.mode, self.factor, self.patience = optimizer, mode, factor, patience
        self.threshold, self.threshold_mode = threshold, threshold_mode
        self.cooldown, self.eps, self.last_epoch = cooldown, eps, 0
        self.mode_worse = math.inf if mode == "min" else -math.inf
        self._reset()
        self._keep_last_lr()

    def _reset(self) -> None:
        self.best = self.mode_worse
        self.cooldown_counter = 0
        self.num_bad_epochs = 0

    @property
    def in_cooldown(self) -> bool:
        """Whether epochs are not counted yet after a reduction."""
        return self.cooldown_counter > 0

    def step(self, metrics: SupportsFloat, epoch: int | None = None) -> None:  # type: ignore[override]
        """Takes the metric of an epoch, and reduces the rates if it is time to."""
        current = float(metrics)
        if epoch is not None:
            warnings.warn(EPOCH_WARNING, UserWarning, stacklevel=2)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self._is_better(current, self.best):
            self.best, self.num_bad_epochs = current, 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce_lr()
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._keep_last_lr()

    def _is_better(self, a: float, best: float) -> bool:
        if self.threshold_mode == "rel":
            margin = best * (1.0 - self.threshold if self.mode == "min" else 1.0 + self.threshold)
        else:
            margin = best - self.threshold if self.mode == "min" else best + self.threshold
        return a < margin if self.mode == "min" else a > margin

    def _reduce_lr(self) -> None:
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                raise RuntimeError(
                    f"{self._name}: The number of param groups in the `optimizer` ({len(groups)}) "
                    f"differs from when `{self._name}` was initialized ({len(self.min_lrs)}); "
                    "give `min_lrs` a value for each group"
                )
            self.min_lrs = [self.default_min_lr] * len(groups)
        with no_grad():
            rates = [
                each(lambda lr, low=low: self._reduced(lr, low), group["lr"])
                for group, low in zip(groups, self.min_lrs, strict=True)
            ]
        self._write(rates)

    def _reduced(self, lr: Rate, low: float) -> Rate:
        if isinstance(lr, Tensor):
            lowered = maximum(lr * self.factor, lr * 0 + low)
            return where(lr - lowered > self.eps, lowered, lr)
        new = max(lr * self.factor, low)
        return new if lr - new > self.eps else lr


class _Settings(TypedDict, total=False):
    threshold: float
    threshold_mode: str
    cooldown: int
    min_lr: float | Sequence[float]
    eps: float


class HalveOnPlateau(ReduceLROnPlateau):
    """Halves the rate as soon as a metric stops improving: lr <- max(lr / 2, min_lr).

    Args:
        optimizer: whose rates are changed.
        mode: "min" if the metric should fall, "max" if it should rise.
        patience: how many epochs without improvement are allowed.
        settings: those of :class:`ReduceLROnPlateau`.

    >>> import chainrule
    >>> from chainrule import optim
    >>> optimizer = optim.SGD([chainrule.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = optim.lr_scheduler.HalveOnPlateau(optimizer)
    >>> for loss in (3.0, 2.0, 2.0):
    ...     schedule.step(loss)
    >>> schedule.get_last_lr()
    [0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        patience: int = 0,
        **settings: Unpack[_Settings],
    ):
        super().__init__(optimizer, mode, 0.5, patience, **settings)

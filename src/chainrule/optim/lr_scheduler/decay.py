"""Rates that fall (or rise) along a formula."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable

from chainrule.optim.lr_scheduler.base import LRScheduler
from chainrule.optim.optimizer import Optimizer, check_range
from chainrule.typing import Rate

__all__ = [
    "ConstantLR",
    "CosineAnnealingLR",
    "ExponentialLR",
    "HalveEvery",
    "InverseTimeLR",
    "LinearDecayLR",
    "LinearLR",
    "MultiStepLR",
    "PolynomialLR",
    "StepLR",
]


class StepLR(LRScheduler):
    """Multiplies the rate by gamma every step_size epochs: lr_i = base gamma^floor(i / step_size).

    >>> import chainrule
    >>> from chainrule import optim
    >>> optimizer = optim.SGD([chainrule.zeros(1, requires_grad=True)], lr=1.0)
    >>> optim.lr_scheduler.preview(optim.lr_scheduler.StepLR(optimizer, 2, gamma=0.5), 5)
    [1.0, 1.0, 0.5, 0.5, 0.25]
    """

    def __init__(
        self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1
    ):
        check_range(self._name, closed=False, step_size=step_size)
        check_range(self._name, gamma=gamma)
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def next_lr(self, lr: Rate, base: Rate, i: int) -> Rate:
        stays = self.last_epoch == 0 or self.last_epoch % self.step_size
        return lr if stays else lr * self.gamma

    def closed_form(self, base: Rate) -> Rate:
        return base * self.gamma ** (self.last_epoch // self.step_size)


class HalveEvery(StepLR):
    """Halves the rate every step_size epochs: lr_i = base / 2^floor(i / step_size).

    >>> import chainrule
    >>> from chainrule import optim
    >>> optimizer = optim.SGD([chainrule.zeros(1, requires_grad=True)], lr=1.0)
    >>> optim.lr_scheduler.preview(optim.lr_scheduler.HalveEvery(optimizer, 2), 5)
    [1.0, 1.0, 0.5, 0.5, 0.25]
    """

    def __init__(self, optimizer: Optimizer, step_size: int, last_epoch: int = -1):
        super().__init__(optimizer, step_size, 0.5, last_epoch)


class MultiStepLR(LRScheduler):
    """Multiplies the rate by gamma at each milestone: lr_i = base gamma^(milestones up to i).

    >>> import chainrule
    >>> from chainrule import optim
    >>> optimizer = optim.SGD([chainrule.zeros(1, requires_grad=True)], lr=1.0)
    >>> optim.lr_scheduler.preview(optim.lr_scheduler.MultiStepLR(optimizer, [1, 3], 0.5), 5)
    [1.0, 0.5, 0.5, 0.25, 0.25]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        milestones: Iterable[int],
        gamma: float = 0.1,
        last_epoch: int = -1,
    ):
        check_range(self._name, gamma=gamma)
        self.milestones, self.gamma = Counter(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def next_lr(self, lr: Rate, base: Rate, i: int) -> Rate:
        times = self.milestones.get(self.last_epoch, 0)
        return lr * self.gamma**times if times else lr

    def closed_form(self, base: Rate) -> Rate:
        passed = bisect_right(sorted(self.milestones.elements()), self.last_epoch)
        return base * self.gamma**passed


class ConstantLR(LRScheduler):
    """A smaller rate at first: lr_i = base factor for i < total_iters, then base.

    >>> import chainrule
    >>> from chainrule import optim
    >>> optimizer = optim.SGD([chainrule.zeros(1, requires_grad=True)], lr=1.0)
    >>> optim.lr_scheduler.preview(optim.lr_scheduler.ConstantLR(optimizer, 0.5, 2), 4)
    [0.5, 0.5, 1.0, 1.0]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        factor: float = 1.0 / 3,
        total_iters: int = 5,
        last_epoch: int = -1,
    ):
        if not 0 <= factor <= 1:
            raise ValueError(
                f"{self._name}: Constant multiplicative factor expected to be between 0 and 1, got "
                f"factor={factor}"
            )
        check_range(self._name, closed=False, total_iters=total_iters)
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def next_lr(self, lr: Rate, base: Rate, i: int) -> Rate:
        if self.last_epoch == 0:
            return lr * self.factor
        if self.last_epoch != self.total_iters:
            return lr
        return lr * (1.0 / self.factor) if self.factor else base

    def closed_form(self, base: Rate) -> Rate:
        return base * (1.0 if self.last_epoch >= self.total_iters else self.factor)


class LinearLR(LRScheduler):
    """A factor on a line, from the start to the end in total_iters epochs.

    lr_i = base (start_factor + (end_factor - start_factor) min(i, total_iters) / total_iters)

    >>> import chainrule
    >>> from chainrule import optim
    >>> optimizer = optim.SGD([chainrule.zeros(1, requires_grad=True)], lr=1.0)
    >>> optim.lr_scheduler.preview(optim.lr_scheduler.LinearLR(optimizer, 0.5, 1.0, 2), 4)
    [0.5, 0.75, 1.0, 1.0]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ):
        if not 0 < start_factor <= 1:
            raise ValueError(
                f"{self._name}: Starting multiplicative factor expected to be greater than 0 and "
                f"less or equal to 1, got start_factor={start_factor}"
            )
        if not 0 <= end_factor <= 1:
            raise ValueError(
                f"{self._name}: Ending multiplicative factor expected to be between 0 and 1, got "
                f"end_factor={end_factor}"
            )
        check_range(self._name, closed=False, total_iters=total_iters)
        self.start_factor, self.end_factor = start_factor, end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def next_lr(self, lr: Rate, base: Rate, i: int) -> Rate:
        if self.last_epoch == 0:
            return lr * self.start_factor
        if self._is_initial or self.last_epoch > self.total_iters:
            return lr
        rise = self.end_factor - self.start_factor
        before = self.total_iters * self.start_factor + (self.last_epoch - 1) * rise
        return lr * (1.0 + rise / before)

    def closed_form(self, base: Rate) -> Rate:
        done = min(self.total_iters, self.last_epoch) / self.total_iters
        return base * (self.start_factor + (self.end_factor - self.start_factor) * done)


class LinearDecayLR(LRScheduler):
    """A line from the rate of the group (a0) to final_lr (af) in total_iters epochs.

    lr_i = a0 + (af - a0) min(i, total_iters) / total_iters

    >>> import chainrule
    >>> from chainrule import optim
    >>> optimizer = optim.SGD([chainrule.zeros(1, requires_grad=True)], lr=1.0)
    >>> optim.lr_scheduler.preview(optim.lr_scheduler.LinearDecayLR(optimizer, 0.5, 2), 4)
    [1.0, 0.75, 0.5, 0.5]
    """

    def __init__(
        self, optimizer: Optimizer, final_lr: float, total_iters: int, last_epoch: int = -1
    ):
        check_range(self._name, final_lr=final_lr)
        check_range(self._name, closed=False, total_iters=total_iters)
        self.final_lr, self.total_iters = final_lr, total_iters
        super().__init__(optimizer, last_epoch)

    def next_lr(self, lr: Rate, base: Rate, i: int) -> Rate:
        return self.closed_form(base)

    def closed_form(self, base: Rate) -> Rate:
        done = min(self.total_iters, self.last_epoch) / self.total_iters
        return base * (1 - done) + self.final_lr * done


class ExponentialLR(LRScheduler):
    """Multiplies the rate by gamma every epoch: lr_i = base gamma^i.

    >>> import chainrule
    >>> from chainrule import optim
    >>> optimizer = optim.SGD([chainrule.zeros(1, requires_grad=True)], lr=1.0)
    >>> optim.lr_scheduler.preview(optim.lr_scheduler.ExponentialLR(optimizer, 0.5), 4)
    [1.0, 0.5, 0.25, 0.125]
    """

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1):
        check_range(self._name, gamma=gamma)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def next_lr(self, lr: Rate, base: Rate, i: int) -> Rate:
        return lr if self._is_initial else lr * self.gamma

    def closed_form(self, base: Rate) -> Rate:
        return base * self.gamma**self.last_epoch


class InverseTimeLR(LRScheduler):
    """Inverse-time decay: lr_i = base / (1 + decay i); after 1 / decay epochs it is half.

    The rates fall from the first epoch on; for a warm-up before them see :class:`WarmupLR`.

    >>> import chainrule
    >>> from chainrule import optim
    >>> optimizer = optim.SGD([chainrule.zeros(1, requires_grad=True)], lr=1.0)
    >>> optim.lr_scheduler.preview(optim.lr_scheduler.InverseTimeLR(optimizer, 1.0), 4)
    [1.0, 0.5, 0.333..., 0.25]
    """

    def __init__(self, optimizer: Optimizer, decay: float, last_epoch: int = -1):
        check_range(self._name, decay=decay)
        self.decay = decay
        super().__init__(optimizer, last_epoch)

    def next_lr(self, lr: Rate, base: Rate, i: int) -> Rate:
        if self._is_initial:
            return lr
        before = 1 + self.decay * (self.last_epoch - 1)
        return lr * (before / (1 + self.decay * self.last_epoch))

    def closed_form(self, base: Rate) -> Rate:
        return base / (1 + self.decay * self.last_epoch)


class PolynomialLR(LRScheduler):
    """Down to zero in total_iters epochs: lr_i = base (1 - i / total_iters)^power, then 0.

    >>> import chainrule
    >>> from chainrule import optim
    >>> optimizer = optim.SGD([chainrule.zeros(1, requires_grad=True)], lr=1.0)
    >>> optim.lr_scheduler.preview(optim.lr_scheduler.PolynomialLR(optimizer, 4, power=2), 4)
    [1.0, 0.5625, 0.25, 0.0625]
    """

    def __init__(
        self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1
    ):
        check_range(self._name, closed=False, total_iters=total_iters)
        check_range(self._name, power=power)
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def next_lr(self, lr: Rate, base: Rate, i: int) -> Rate:
        if self._is_initial or self.last_epoch > self.total_iters:
            return lr
        left = 1.0 - self.last_epoch / self.total_iters
        before = 1.0 - (self.last_epoch - 1) / self.total_iters
        return lr * (left / before) ** self.power

    def closed_form(self, base: Rate) -> Rate:
        left = 1.0 - min(self.total_iters, self.last_epoch) / self.total_iters
        return base * left**self.power


class CosineAnnealingLR(LRScheduler):
    """Half a cosine wave down to eta_min in T_max epochs, and up again in the next T_max.

    lr_i = eta_min + (base - eta_min) (1 + cos(pi i / T_max)) / 2. Loshchilov and Hutter, 2017.

    >>> import chainrule
    >>> from chainrule import optim
    >>> optimizer = optim.SGD([chainrule.zeros(1, requires_grad=True)], lr=1.0)
    >>> rates = optim.lr_scheduler.preview(optim.lr_scheduler.CosineAnnealingLR(optimizer, 2), 4)
    >>> [round(rate, 4) for rate in rates]
    [1.0, 0.5, 0.0, 0.5]
    """

    def __init__(
        self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1
    ):
        check_range(self._name, closed=False, T_max=T_max)
        check_range(self._name, eta_min=eta_min)
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def next_lr(self, lr: Rate, base: Rate, i: int) -> Rate:
        if self._is_initial:
            return lr
        if self._step_count == 1 and self.last_epoch > 0:
            return self.closed_form(base)
        if (self.last_epoch - 1 - self.T_max) % (2 * self.T_max) == 0:
            # The rate is at eta_min, from which no factor leads up.
            return lr + (base - self.eta_min) * (1 - math.cos(math.pi / self.T_max)) / 2
        before = 1 + math.cos(math.pi * (self.last_epoch - 1) / self.T_max)
        now = 1 + math.cos(math.pi * self.last_epoch / self.T_max)
        return now / before * (lr - self.eta_min) + self.eta_min

    def closed_form(self, base: Rate) -> Rate:
        wave = (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / 2
        return self.eta_min + (base - self.eta_min) * wave

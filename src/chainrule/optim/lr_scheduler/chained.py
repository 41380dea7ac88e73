"""Schedules made of schedules: one after another, several at once, a warm-up first."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from chainrule.optim.lr_scheduler.base import LRScheduler, copied, write_rate
from chainrule.optim.lr_scheduler.decay import ConstantLR, LinearLR
from chainrule.optim.lr_scheduler.plateau import ReduceLROnPlateau
from chainrule.optim.optimizer import Optimizer, check_range

__all__ = ["ChainedScheduler", "SequentialLR", "WarmupLR"]


class _Composed(LRScheduler):
    """A schedule that leaves the rates to others."""

    _schedulers: list[LRScheduler]

    def _check_parts(self, schedulers: Sequence[Any], optimizer: Optimizer) -> None:
        for i, scheduler in enumerate(schedulers):
            kind = type(scheduler).__name__
            if not hasattr(scheduler, "optimizer"):
                raise TypeError(
                    f"{self._name}: the scheduler at index {i} should have `optimizer` as its "
                    f"attribute, got {kind}"
                )
            if isinstance(scheduler, ReduceLROnPlateau):
                raise ValueError(
                    f"{self._name}: does not support `ReduceLROnPlateau` scheduler as it requires "
                    "additional kwargs to be specified when calling `step`, but got one at index "
                    f"{i}; step it on its own"
                )
            if scheduler.optimizer is not optimizer:
                raise ValueError(
                    f"{self._name}: expects all schedulers to belong to the same optimizer, but "
                    f"the {kind} at index {i} has another one"
                )

    def state_dict(self) -> dict[str, Any]:
        """The state, with those of the parts."""
        return {**super().state_dict(), "_schedulers": [s.state_dict() for s in self._schedulers]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        parts = state_dict["_schedulers"]
        if len(parts) != len(self._schedulers):
            raise ValueError(
                f"{self._name}.load_state_dict: the state has {len(parts)} schedulers, this one "
                f"has {len(self._schedulers)}"
            )
        super().load_state_dict({**state_dict, "_schedulers": self._schedulers})
        for scheduler, state in zip(self._schedulers, parts, strict=True):
            scheduler.load_state_dict(state)

    def _initial_rates(self) -> None:
        for group in self.optimizer.param_groups:
            write_rate(group, copied(group["initial_lr"]))

    def _begin(self) -> None:
        """Goes to epoch 0; all parts are before theirs."""
        raise NotImplementedError

    def _initial_step(self) -> None:
        """Called by a schedule that this one is a part of, as the next method."""
        for scheduler in self._schedulers:
            if not isinstance(scheduler, _Composed):
                scheduler.last_epoch = -1
        self._begin()

    def _update_lr(self, epoch: int | None = None) -> None:
        self._initial_step()


class SequentialLR(_Composed):
    """One schedule after another: each begins, at its epoch 0, with the milestone before it.

    lr_i = rate of schedulers[k] at its epoch i - milestones[k - 1], for the last k with that >= 0

    Args:
        optimizer: whose rates are changed.
        schedulers: the schedules, all of this optimizer.
        milestones: the epochs at which the second, third ... schedule begins.
        last_epoch: the epoch to go on from, -1 to start.

    >>> import chainrule
    >>> from chainrule import optim
    >>> from chainrule.optim.lr_scheduler import ConstantLR, ExponentialLR, SequentialLR
    >>> optimizer = optim.SGD([chainrule.zeros(1, requires_grad=True)], lr=1.0)
    >>> parts = [ConstantLR(optimizer, 0.1, 9), ExponentialLR(optimizer, 0.5)]
    >>> optim.lr_scheduler.preview(SequentialLR(optimizer, parts, milestones=[2]), 5)
    [0.1, 0.1, 1.0, 0.5, 0.25]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        schedulers: Sequence[LRScheduler],
        milestones: Sequence[int],
        last_epoch: int = -1,
    ):
        if len(schedulers) < 1:
            raise ValueError(f"{self._name}: expects at least one scheduler, but got no scheduler.")
        self._check_parts(schedulers, optimizer)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                f"{self._name}: expects number of schedulers provided to be one more than the "
                f"number of milestone points, but got {len(schedulers)} schedulers and "
                f"{len(milestones)} milestones"
            )
        if list(milestones) != sorted(milestones):
            raise ValueError(f"{self._name}: milestones must not fall, got {list(milestones)}")
        self._schedulers, self._milestones = list(schedulers), list(milestones)
        self.optimizer = optimizer
        for scheduler in schedulers:
            if not isinstance(scheduler, _Composed):
                scheduler.last_epoch -= 1  # takes back the step that its constructor made
        self._begin()
        self.last_epoch = last_epoch + 1

    def _begin(self) -> None:
        self._initial_rates()
        self.last_epoch = 0
        first = self._schedulers[bisect_right(self._milestones, 0)]
        first._initial_step()
        self._last_lr = first.get_last_lr()

    def step(self) -> None:  # type: ignore[override]
        """Goes to the next epoch."""
        self.last_epoch += 1
        number = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[number]
        if number > 0 and self._milestones[number - 1] == self.last_epoch:
            scheduler._update_lr(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()


class ChainedScheduler(_Composed):
    """Several schedules at once: the factors of all of them are multiplied.

    lr_i = base f_1(i) f_2(i) ..., where the k-th schedule alone would make base f_k(i) of it

    Args:
        schedulers: the schedules, all of one optimizer.
        optimizer: that optimizer; the first schedule's if None.

    >>> import chainrule
    >>> from chainrule import optim
    >>> from chainrule.optim.lr_scheduler import ChainedScheduler, ConstantLR, ExponentialLR
    >>> optimizer = optim.SGD([chainrule.zeros(1, requires_grad=True)], lr=1.0)
    >>> parts = [ConstantLR(optimizer, 0.1, 2), ExponentialLR(optimizer, 0.5)]
    >>> rates = optim.lr_scheduler.preview(ChainedScheduler(parts), 4)
    >>> [round(rate, 4) for rate in rates]
    [0.1, 0.05, 0.25, 0.125]
    """

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None):
        if len(schedulers) < 1:
            raise ValueError(
                f"{self._name}: expects at least one scheduler to be chained, but got no scheduler."
            )
        optimizer = getattr(schedulers[0], "optimizer", None) if optimizer is None else optimizer
        self._check_parts(schedulers, optimizer)  # type: ignore[arg-type]
        self._schedulers = list(schedulers)
        self.optimizer = optimizer  # type: ignore[assignment]
        self._keep_last_lr()

    def _begin(self) -> None:
        self._initial_rates()
        for scheduler in self._schedulers:
            scheduler._initial_step()
        self._keep_last_lr()

    def step(self) -> None:  # type: ignore[override]
        """Goes to the next epoch in all schedules."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._keep_last_lr()


class WarmupLR(SequentialLR):
    """A warm-up on a line, then another schedule from its epoch 0 on.

    lr_i = base (start_factor + (1 - start_factor) i / warmup_iters) for i < warmup_iters

    Args:
        optimizer: whose rates are changed.
        warmup_iters: how many steps the warm-up lasts.
        schedule: what follows, a schedule of the same optimizer; the initial rate if None.
        start_factor: where it starts, as a part of the initial rate; 1 / (warmup_iters + 1) if
            None, so that the rates lie on a line through zero.

    >>> import chainrule
    >>> from chainrule import optim
    >>> from chainrule.optim.lr_scheduler import InverseTimeLR, WarmupLR
    >>> optimizer = optim.SGD([chainrule.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = WarmupLR(optimizer, 3, InverseTimeLR(optimizer, 1.0))
    >>> optim.lr_scheduler.preview(schedule, 6)
    [0.25, 0.5, 0.75, 1.0, 0.5, 0.333...]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        warmup_iters: int,
        schedule: LRScheduler | None = None,
        start_factor: float | None = None,
    ):
        check_range(self._name, closed=False, warmup_iters=warmup_iters)
        start = 1 / (warmup_iters + 1) if start_factor is None else start_factor
        following = ConstantLR(optimizer, 1.0, 1) if schedule is None else schedule
        warmup = LinearLR(optimizer, start, 1.0, warmup_iters)
        super().__init__(optimizer, [warmup, following], [warmup_iters])

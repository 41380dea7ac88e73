"""Rates that go up and down, with the momentum going the other way."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from chainrule.optim.lr_scheduler.base import (
    LRScheduler,
    check_optimizer,
    one_number,
    per_group,
    write_rate,
)
from chainrule.optim.lr_scheduler.functions import kept
from chainrule.optim.optimizer import Optimizer, check_range
from chainrule.typing import Rate, Rates

__all__ = ["CosineAnnealingWarmRestarts", "CyclicLR", "OneCycleLR"]

PerGroup = float | Sequence[float]


# --- the momentum ---------------------------------------------------------------------------------


def _uses_beta1(name: str, optimizer: Optimizer) -> bool:
    """Whether the momentum is the first beta; refuses optimizers that have none."""
    if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
        raise ValueError(
            f"{name}: optimizer must support momentum or beta1 with `cycle_momentum` option "
            f"enabled; {type(optimizer).__name__} has neither, so set cycle_momentum=False"
        )
    return "betas" in optimizer.defaults


def _set_momentum(group: dict[str, Any], value: float, use_beta1: bool) -> None:
    if use_beta1:
        group["betas"] = (value, *group["betas"][1:])
    else:
        group["momentum"] = value


def _start_momentum(
    optimizer: Optimizer, bases: list[float], tops: list[float], use_beta1: bool
) -> None:
    """A cycle begins with the largest momentum."""
    for base, top, group in zip(bases, tops, optimizer.param_groups, strict=True):
        _set_momentum(group, top, use_beta1)
        group["max_momentum"], group["base_momentum"] = top, base


# --- the schedules --------------------------------------------------------------------------------


class CosineAnnealingWarmRestarts(LRScheduler):
    """Half a cosine wave down to eta_min, again and again; each lasts T_mult times the one before.

    lr = eta_min + (base - eta_min) (1 + cos(pi T_cur / T_i)) / 2 with T_cur epochs since the last
    restart and T_i from one to the next (SGDR, Loshchilov and Hutter, 2017).

    ``step(epoch)`` takes fractions, too: ``step(epoch + batch / batches)`` after every batch.

    >>> import chainrule
    >>> from chainrule import optim
    >>> optimizer = optim.SGD([chainrule.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 2, T_mult=2)
    >>> [round(rate, 3) for rate in optim.lr_scheduler.preview(schedule, 7)]
    [1.0, 0.5, 1.0, 0.854, 0.5, 0.146, 1.0]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        T_0: int,
        T_mult: int = 1,
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ):
        if not isinstance(T_0, int) or T_0 <= 0:
            raise ValueError(f"{self._name}: Expected positive integer T_0, but got {T_0}")
        if not isinstance(T_mult, int) or T_mult < 1:
            raise ValueError(f"{self._name}: Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, (float, int)):
            raise ValueError(
                f"{self._name}: Expected float or int eta_min, but got {eta_min} of type "
                f"{type(eta_min)}"
            )
        self.T_0, self.T_i, self.T_mult, self.eta_min = T_0, T_0, T_mult, eta_min
        self.T_cur: float = last_epoch
        if last_epoch >= 0:
            self._go_to(last_epoch)
        super().__init__(optimizer, last_epoch)

    def next_lr(self, lr: Rate, base: Rate, i: int) -> Rate:
        wave = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return self.eta_min + (base - self.eta_min) * wave

    def step(self, epoch: float | None = None) -> None:
        """Goes to the next epoch, or to any point in time."""
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur, self.T_i = self.T_cur % self.T_i, self.T_i * self.T_mult
        elif not epoch >= 0:
            raise ValueError(f"{self._name}: Expected non-negative epoch, but got {epoch}")
        else:
            self._go_to(epoch)
        self.last_epoch = math.floor(epoch)
        with self._within_step():
            rates = self.get_lr()
        self._write(rates)

    def _update_lr(self, epoch: float | None = None) -> None:
        self.step(epoch)

    def _go_to(self, epoch: float) -> None:
        start, length = 0, self.T_0
        if self.T_mult == 1:
            start = self.T_0 * int(epoch // self.T_0)
        else:
            while epoch >= start + length:
                start, length = start + length, length * self.T_mult
        self.T_cur, self.T_i = epoch - start, length


class CyclicLR(LRScheduler):
    """A triangle between base_lr and max_lr, stepped after every batch.

    With the cycle c = floor(1 + i / T), T = step_size_up + step_size_down, the height h goes from 0
    to 1 in step_size_up steps and back to 0 in step_size_down:

    lr_i = base_lr + (max_lr - base_lr) h scale_fn(c),
    momentum_i = max_momentum - (max_momentum - base_momentum) h scale_fn(c).

    The scale is 1 ("triangular"), 1 / 2^(c - 1) ("triangular2"), gamma^i ("exp_range"), or what
    ``scale_fn`` says of the cycle or, with scale_mode="iterations", of i. Smith, 2017.

    Args:
        optimizer: whose rates are changed.
        base_lr: the lower rate, or one for each group.
        max_lr: the upper rate, or one for each group.
        step_size_up: how many steps it goes up.
        step_size_down: how many steps it goes down; as many if None.
        mode: "triangular", "triangular2" or "exp_range".
        gamma: for "exp_range".
        scale_fn: takes the place of the scale that ``mode`` says.
        scale_mode: whether ``scale_fn`` takes the "cycle" or the number of "iterations".
        cycle_momentum: whether the momentum (or beta1) goes the other way.
        base_momentum: its lower value, or one for each group.
        max_momentum: its upper value, or one for each group.
        last_epoch: the number of the last batch, -1 to start.

    >>> import chainrule
    >>> from chainrule import optim
    >>> optimizer = optim.SGD([chainrule.zeros(1, requires_grad=True)], lr=1.0, momentum=0.9)
    >>> schedule = optim.lr_scheduler.CyclicLR(optimizer, 1.0, 2.0, step_size_up=2)
    >>> optim.lr_scheduler.preview(schedule, 6)
    [1.0, 1.5, 2.0, 1.5, 1.0, 1.5]
    """

    _takes_new_groups = False

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: PerGroup,
        max_lr: PerGroup,
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: PerGroup = 0.8,
        max_momentum: PerGroup = 0.9,
        last_epoch: int = -1,
    ):
        check_optimizer(self._name, optimizer)
        one_number(self._name, optimizer)
        check_range(self._name, base_lr=base_lr, max_lr=max_lr)
        down = step_size_up if step_size_down is None else step_size_down
        check_range(self._name, closed=False, step_size_up=step_size_up, step_size_down=down)
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError(
                f"{self._name}: mode is invalid and scale_fn is None; mode must be 'triangular', "
                f"'triangular2' or 'exp_range', got {mode!r}"
            )
        if scale_mode not in ("cycle", "iterations"):
            raise ValueError(
                f"{self._name}: scale_mode must be 'cycle' or 'iterations', got {scale_mode!r}"
            )
        base_lrs = per_group(self._name, "base_lr", optimizer, base_lr)
        self.max_lrs = per_group(self._name, "max_lr", optimizer, max_lr)
        self.total_size = float(step_size_up) + float(down)
        self.step_ratio = float(step_size_up) / self.total_size
        self.mode, self.gamma, self._scale_fn_custom = mode, gamma, scale_fn
        self.scale_mode = scale_mode
        if scale_fn is None:
            self.scale_mode = "iterations" if mode == "exp_range" else "cycle"
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.use_beta1 = _uses_beta1(self._name, optimizer)
            self.base_momentums = per_group(self._name, "base_momentum", optimizer, base_momentum)
            self.max_momentums = per_group(self._name, "max_momentum", optimizer, max_momentum)
        if last_epoch == -1:
            for lr, group in zip(base_lrs, optimizer.param_groups, strict=True):
                write_rate(group, lr)
            if cycle_momentum:
                _start_momentum(optimizer, self.base_momentums, self.max_momentums, self.use_beta1)
        super().__init__(optimizer, last_epoch)
        if self.base_lrs != base_lrs:  # the groups remember the rates of an earlier schedule
            self.base_lrs = base_lrs
            self._update_lr(self.last_epoch)

    def scale_fn(self, x: float) -> float:
        """The height of a cycle (or iteration) as a fraction of the whole."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        if self.mode == "exp_range":
            return self.gamma**x
        return 1 / 2.0 ** (x - 1) if self.mode == "triangular2" else 1.0

    def _height(self) -> float:
        """Where in its cycle, times the scale: 0 at the bottom, 1 at the top."""
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        up = x <= self.step_ratio
        height = x / self.step_ratio if up else (x - 1) / (self.step_ratio - 1)
        return height * self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)

    def next_lr(self, lr: Rate, base: Rate, i: int) -> Rate:
        return base + (self.max_lrs[i] - base) * self._height()

    def get_lr(self) -> list[Rates]:
        rates = super().get_lr()
        if self.cycle_momentum:
            height = self._height()
            settings = zip(
                self.base_momentums, self.max_momentums, self.optimizer.param_groups, strict=True
            )
            for base, top, group in settings:
                _set_momentum(group, top - (top - base) * height, self.use_beta1)
        return rates

    def state_dict(self) -> dict[str, Any]:
        """The state; of ``scale_fn`` only that of a callable object, as in PyTorch."""
        f = self._scale_fn_custom
        return {**super().state_dict(), "_scale_fn_custom": None if f is None else kept(f)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        f = self._scale_fn_custom
        super().load_state_dict({**state_dict, "_scale_fn_custom": f})
        if f is not None and state_dict.get("_scale_fn_custom") is not None:
            f.__dict__.update(state_dict["_scale_fn_custom"])


class OneCycleLR(LRScheduler):
    """One cycle over the whole training, stepped after every batch.

    Up from initial_lr = max_lr / div_factor to max_lr in pct_start of the steps, then down to
    min_lr = initial_lr / final_div_factor; with three_phase first down to initial_lr, in as many
    steps as up. The momentum goes the other way. The way from a to b is
    b + (a - b) (1 + cos(pi x)) / 2 or, with anneal_strategy="linear", a + (b - a) x. Smith and
    Topin, 2018.

    Args:
        optimizer: whose rates are changed.
        max_lr: the upper rate, or one for each group.
        total_steps: the length of the cycle; or ``epochs`` times ``steps_per_epoch``.
        epochs: how many epochs the cycle lasts.
        steps_per_epoch: how many batches an epoch has.
        pct_start: the part of the cycle in which the rate goes up.
        anneal_strategy: "cos" or "linear".
        cycle_momentum: whether the momentum (or beta1) goes the other way.
        base_momentum: its lower value, or one for each group.
        max_momentum: its upper value, or one for each group.
        div_factor: max_lr over the first rate.
        final_div_factor: the first rate over the last.
        three_phase: whether to go up, down and further down, instead of up and down.
        last_epoch: the number of the last batch, -1 to start.

    >>> import chainrule
    >>> from chainrule import optim
    >>> optimizer = optim.SGD([chainrule.zeros(1, requires_grad=True)], lr=1.0, momentum=0.9)
    >>> schedule = optim.lr_scheduler.OneCycleLR(
    ...     optimizer, 1.0, total_steps=8, pct_start=0.5, anneal_strategy="linear", div_factor=4
    ... )
    >>> [round(rate, 3) for rate in optim.lr_scheduler.preview(schedule, 8)]
    [0.25, 0.5, 0.75, 1.0, 0.75, 0.5, 0.25, 0.0]
    """

    _takes_new_groups = False

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: PerGroup,
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: PerGroup = 0.85,
        max_momentum: PerGroup = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ):
        check_optimizer(self._name, optimizer)
        one_number(self._name, optimizer)
        self.total_steps = self._length(total_steps, epochs, steps_per_epoch)
        if not isinstance(pct_start, float) or not 0 <= pct_start <= 1:
            raise ValueError(
                f"{self._name}: Expected float between 0 and 1 pct_start, but got {pct_start}"
            )
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"{self._name}: anneal_strategy must be one of 'cos' or 'linear', instead got "
                f"{anneal_strategy}"
            )
        check_range(self._name, max_lr=max_lr)
        check_range(
            self._name, closed=False, div_factor=div_factor, final_div_factor=final_div_factor
        )
        self._schedule_phases = _phases(pct_start * self.total_steps, self.total_steps, three_phase)
        self._anneal_func_type = anneal_strategy
        tops = per_group(self._name, "max_lr", optimizer, max_lr)
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.use_beta1 = _uses_beta1(self._name, optimizer)
            max_momentums = per_group(self._name, "max_momentum", optimizer, max_momentum)
            base_momentums = per_group(self._name, "base_momentum", optimizer, base_momentum)
        if last_epoch == -1:
            for top, group in zip(tops, optimizer.param_groups, strict=True):
                group["initial_lr"], group["max_lr"] = top / div_factor, top
                group["min_lr"] = group["initial_lr"] / final_div_factor
            if cycle_momentum:
                _start_momentum(optimizer, base_momentums, max_momentums, self.use_beta1)
        super().__init__(optimizer, last_epoch)

    def _length(self, total: int | None, epochs: int | None, steps_per_epoch: int | None) -> int:
        if total is None and (epochs is None or steps_per_epoch is None):
            raise ValueError(
                f"{self._name}: You must define either total_steps OR (epochs AND steps_per_epoch)"
            )
        if total is not None:
            numbers = {"total_steps": total}
        else:
            numbers = {"epochs": epochs, "steps_per_epoch": steps_per_epoch}  # type: ignore[dict-item]
        for name, value in numbers.items():
            if not isinstance(value, int) or value <= 0:
                raise ValueError(f"{self._name}: Expected positive integer {name}, but got {value}")
        return math.prod(numbers.values())

    def _way(self, group: dict[str, Any], what: str, phase: dict[str, Any], x: float) -> Any:
        """The rate or momentum at the fraction x of a phase."""
        start, end = group[phase[f"start_{what}"]], group[phase[f"end_{what}"]]
        if self._anneal_func_type == "linear":
            return (end - start) * x + start
        return end + (start - end) / 2.0 * (math.cos(math.pi * x) + 1)

    def _where(self) -> tuple[dict[str, Any], float]:
        """The phase of this step, and the fraction of it that has passed."""
        start = 0.0
        for phase in self._schedule_phases[:-1]:
            if self.last_epoch <= phase["end_step"]:
                break
            start = phase["end_step"]
        else:
            phase = self._schedule_phases[-1]
        return phase, (self.last_epoch - start) / (phase["end_step"] - start)

    def get_lr(self) -> list[Rates]:
        if self.last_epoch > self.total_steps:
            raise ValueError(
                f"{self._name}: Tried to step {self.last_epoch} times. The specified number of "
                f"total steps is {self.total_steps}"
            )
        rates = super().get_lr()
        if self.cycle_momentum:
            phase, x = self._where()
            for group in self.optimizer.param_groups:
                _set_momentum(group, self._way(group, "momentum", phase, x), self.use_beta1)
        return rates

    def next_lr(self, lr: Rate, base: Rate, i: int) -> Rate:
        return self._way(self.optimizer.param_groups[i], "lr", *self._where())


def _phases(top: float, total: int, three_phase: bool) -> list[dict[str, Any]]:
    """When the phases end, and between which settings of the group they lead."""
    up = {
        "end_step": float(top) - 1,
        "start_lr": "initial_lr",
        "end_lr": "max_lr",
        "start_momentum": "max_momentum",
        "end_momentum": "base_momentum",
    }
    down = {
        "end_step": total - 1,
        "start_lr": "max_lr",
        "end_lr": "min_lr",
        "start_momentum": "base_momentum",
        "end_momentum": "max_momentum",
    }
    if not three_phase:
        return [up, down]
    back = {**down, "end_step": float(2 * top) - 2, "end_lr": "initial_lr"}
    out = {**down, "start_lr": "initial_lr", "start_momentum": "max_momentum"}
    return [up, back, out]

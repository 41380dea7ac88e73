"""What all schedules have in common: epochs, the rates of the groups, files.

A schedule is one equation: :meth:`LRScheduler.next_lr`, the new rate from the rate as it is (lr)
and the one it started from (base). Where the equation is written from the rate as it is, schedules
can be chained, and a rate changed by hand stays changed. ``closed_form`` is the same rate computed
from base alone, for schedules that go back to an epoch.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from chainrule.autograd.modes import no_grad
from chainrule.backend.recorded import called_again
from chainrule.ops.creation.conversion import clone
from chainrule.ops.creation.from_data import tensor
from chainrule.optim.optimizer import Optimizer
from chainrule.tensor import Tensor
from chainrule.typing import Rate, Rates

__all__ = ["LRScheduler"]

EPOCH_WARNING = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where "
    "possible. Please use `scheduler.step()` to step the scheduler. With an epoch the closed form "
    "is used instead of the chainable one, where there is one."
)
ORDER_WARNING = (
    "Detected call of `lr_scheduler.step()` before `optimizer.step()`. Call them in the opposite "
    "order, `optimizer.step()` before `lr_scheduler.step()`; otherwise the first value of the "
    "schedule is skipped."
)


# --- rates ----------------------------------------------------------------------------------------


def each(f: Callable[..., Rate], *rates: Rates) -> Rates:
    """f of rates, entry by entry where they are lists."""
    lengths = {len(r) for r in rates if isinstance(r, (list, tuple))}
    if not lengths:
        return f(*rates)
    return [
        f(*[r[i] if isinstance(r, (list, tuple)) else r for r in rates])
        for i in range(max(lengths))
    ]


def copied(rate: Rates) -> Rates:
    """The rate in memory of its own."""
    return each(lambda r: clone(r.detach()) if isinstance(r, Tensor) else r, rate)


def write_rate(group: dict[str, Any], rate: Rates) -> None:
    """Sets the rate of a group; a tensor stays the same tensor and gets new values."""
    group["lr"] = each(_written, group["lr"], rate)


def _written(old: Rate, new: Rate) -> Rate:
    if not isinstance(old, Tensor):
        return new
    if new is not old:
        with no_grad():
            old.copy_(new) if isinstance(new, Tensor) else old.fill_(new)
    return old


def one_number(name: str, optimizer: Optimizer) -> None:
    """Refuses rates of single parameters, for schedules that set the rate of a group anew."""
    for i, group in enumerate(optimizer.param_groups):
        lr = group["lr"]
        if isinstance(lr, (list, tuple)) or (isinstance(lr, Tensor) and lr.numel() != 1):
            raise ValueError(
                f"{name}: sets the rate of a whole group to one number, but group {i} has rates of "
                "its own for its parameters; put these into groups, or use a schedule that scales "
                "rates (LambdaLR, say)"
            )


def per_group(name: str, argument: str, optimizer: Optimizer, value: Rates) -> list[Any]:
    """A setting for every group, given once or as a list."""
    count = len(optimizer.param_groups)
    if not isinstance(value, (list, tuple)):
        return [copied(value) for _ in range(count)]
    if len(value) != count:
        raise ValueError(
            f"{name}: {argument} must have the same length as optimizer.param_groups. {argument} "
            f"has {len(value)} values, param_groups has {count}."
        )
    return [copied(v) for v in value]


# --- the base class -------------------------------------------------------------------------------


class LRScheduler:
    """The base of all schedules.

    A subclass defines :meth:`next_lr` (or, as in PyTorch, ``get_lr()``, the rates of all groups).
    Creating a schedule makes its step to epoch 0; then ``step()`` belongs after the optimizer's.
    The rate of a group may be a number, a tensor or a list with one for each parameter: every one
    is scaled.

    Args:
        optimizer: whose rates are changed. Its groups get the key "initial_lr".
        last_epoch: the epoch to go on from, -1 to start.

    >>> import chainrule
    >>> from chainrule import optim
    >>> class Halved(optim.lr_scheduler.LRScheduler):
    ...     def next_lr(self, lr, base, i):
    ...         return base / 2**self.last_epoch
    >>> optimizer = optim.SGD([chainrule.zeros(1, requires_grad=True)], lr=0.8)
    >>> optim.lr_scheduler.preview(Halved(optimizer), 4)
    [0.8, 0.4, 0.2, 0.1]
    """

    _step_count = 0
    _is_initial = False  # whether this is the step that the constructor makes
    _get_lr_called_within_step = False
    _takes_new_groups = True  # whether groups may be added; not with settings for each of them
    _last_lr: list[Rates]
    base_lrs: list[Rates]

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1):
        check_optimizer(self._name, optimizer)
        self.optimizer = optimizer
        for i, group in enumerate(optimizer.param_groups):
            if "lr" not in group:
                raise ValueError(f"{self._name}: {type(optimizer).__name__} has no learning rate")
            if last_epoch == -1:
                group.setdefault("initial_lr", copied(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(
                    f"{self._name}: param 'initial_lr' is not specified in param_groups[{i}] when "
                    f"resuming with last_epoch = {last_epoch}; load the optimizer's state_dict "
                    "first, or start with last_epoch = -1"
                )
        self.base_lrs = [copied(group["initial_lr"]) for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        # As in PyTorch, steps of the optimizer count from its first schedule on.
        optimizer.__dict__.setdefault("_first_scheduled", optimizer._steps_taken)
        self._initial_step()

    @property
    def _name(self) -> str:
        return type(self).__name__

    # --- what a subclass says ---------------------------------------------------------------------

    def next_lr(self, lr: Rate, base: Rate, i: int) -> Rate:
        """The rate of group i at ``last_epoch``, from the rate as it is and the initial one."""
        raise NotImplementedError(f"{self._name}: a schedule defines next_lr(lr, base, i)")

    def closed_form(self, base: Rate) -> Rate:
        """The rate at ``last_epoch`` from the initial one alone."""
        raise NotImplementedError

    # --- steps ------------------------------------------------------------------------------------

    def get_lr(self) -> list[Rates]:
        """The rates of the groups at ``last_epoch``; to be called by ``step`` alone."""
        if not self._get_lr_called_within_step:
            warnings.warn(
                "To get the last learning rate computed by the scheduler, please use "
                "`get_last_lr()`.",
                UserWarning,
                stacklevel=2,
            )
        self._meet_new_groups()
        groups = self.optimizer.param_groups
        with no_grad():
            return [
                copied(each(lambda lr, base, i=i: self.next_lr(lr, base, i), group["lr"], base))
                for i, (group, base) in enumerate(zip(groups, self.base_lrs, strict=True))
            ]

    def _meet_new_groups(self) -> None:
        """A group added since starts from its rate as it is."""
        for group in self.optimizer.param_groups[len(self.base_lrs) :]:
            if not self._takes_new_groups:
                raise ValueError(
                    f"{self._name}: has settings of {len(self.base_lrs)} groups, but the optimizer "
                    f"has {len(self.optimizer.param_groups)} by now; make a new schedule after "
                    "add_param_group"
                )
            initial = group.setdefault("initial_lr", copied(group["lr"]))
            self.base_lrs = [*self.base_lrs, copied(initial)]

    def _get_closed_form_lr(self) -> list[Rates]:
        if type(self).closed_form is LRScheduler.closed_form:
            return self.get_lr()
        self._meet_new_groups()
        with no_grad():
            return [each(self.closed_form, base) for base in self.base_lrs]

    def get_last_lr(self) -> list[Any]:
        """The rates of the groups as this schedule set them last: as they were given to them."""
        return self._last_lr

    def step(self, epoch: int | None = None) -> None:
        """Goes to the next epoch, or to the given one by the closed form where there is one."""
        with called_again(self.step, epoch):
            self._step(epoch)

    def _step(self, epoch: int | None) -> None:
        if self._step_count == 1 and skips_the_first_rate(self.optimizer):
            warnings.warn(ORDER_WARNING, UserWarning, stacklevel=3)
        self._step_count += 1
        if epoch is not None:
            warnings.warn(EPOCH_WARNING, UserWarning, stacklevel=3)
        self._update_lr(epoch)

    def _initial_step(self) -> None:
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def _update_lr(self, epoch: int | None = None) -> None:
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        with self._within_step():
            rates = self.get_lr() if epoch is None else self._get_closed_form_lr()
        self._write(rates)

    @contextlib.contextmanager
    def _within_step(self) -> Iterator[None]:
        self._get_lr_called_within_step = True
        try:
            yield
        finally:
            self._get_lr_called_within_step = False

    def _write(self, rates: list[Rates]) -> None:
        # All rates are known before one is written: groups may share a tensor.
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            write_rate(group, rate)
        self._keep_last_lr()

    def _keep_last_lr(self) -> None:
        self._last_lr = [copied(group["lr"]) for group in self.optimizer.param_groups]

    # --- files ------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """All that the schedule knows but its optimizer, with PyTorch's names."""
        return {k: v for k, v in self.__dict__.items() if k != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over a state, also one of PyTorch's schedule of the same name."""
        own = {k for k in self.__dict__ if not k.startswith("_") and k != "optimizer"}
        given = {k for k in state_dict if not k.startswith("_") and k != "verbose"}
        if given - own and own - given:
            raise ValueError(
                f"{self._name}.load_state_dict: the state of another schedule; it has "
                f"{sorted(given - own)}, where {sorted(own - given)} are needed"
            )
        rates = state_dict.get("base_lrs", self.optimizer.param_groups)
        if len(rates) > len(self.optimizer.param_groups):
            raise ValueError(
                f"{self._name}.load_state_dict: the state has rates of {len(rates)} groups, the "
                f"optimizer has {len(self.optimizer.param_groups)}"
            )
        self.__dict__.update({k: _converted(v) for k, v in state_dict.items()})


def _converted(value: Any) -> Any:
    """A loaded value, tensors of PyTorch made our own."""
    if type(value) is list:
        return [_converted(v) for v in value]
    is_foreign = hasattr(value, "__array__") and not isinstance(value, (Tensor, float, int))
    return tensor(value.__array__()) if is_foreign else value


def check_optimizer(name: str, optimizer: object) -> None:
    """Refuses what is no optimizer."""
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{name}: {type(optimizer).__name__} is not an Optimizer")


def skips_the_first_rate(optimizer: Optimizer) -> bool:
    """Whether no step was made since the first schedule.

    A step written by a user need not count itself, so nothing is said about those.
    """
    counts = (type(optimizer).step.__module__ or "").startswith("chainrule.")
    return counts and optimizer._steps_taken == optimizer.__dict__.get("_first_scheduled", 0)

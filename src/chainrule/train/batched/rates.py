"""The learning rates of networks that are trained together: each has its own, and its schedule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from chainrule import nn, optim
from chainrule.ops.creation.from_data import tensor
from chainrule.ops.shape.views import expand, reshape
from chainrule.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau
from chainrule.optim.names import OptimizerLike, make_optimizer
from chainrule.tensor import Tensor

__all__ = ["OwnRates", "ScheduleMaker", "StackedRates"]

ScheduleMaker = Callable[[optim.Optimizer], LRScheduler]


class OwnRates:
    """The rates of one network, as if it were trained alone.

    They are those of an optimizer of its own, which makes no steps: any schedule can change them.

    Args:
        model: the network.
        optimizer: makes the optimizer.
        lr: the rate of the first group, in place of the optimizer's; others are scaled with it.
        schedule: makes the schedule, if there is one.
    """

    def __init__(
        self,
        model: nn.Module,
        optimizer: OptimizerLike | None,
        lr: float | None,
        schedule: ScheduleMaker | None,
    ):
        learned = [p for p in model.parameters() if p.requires_grad]
        self.optimizer = make_optimizer("fit_many", optimizer, learned)
        if lr is not None:
            _scale_to(self.optimizer, lr)
        self.schedule = None if schedule is None else schedule(self.optimizer)
        if self.schedule is not None and not hasattr(self.schedule, "step"):
            raise TypeError(
                "fit_many: schedule must make a learning-rate schedule for an optimizer, got "
                f"{type(self.schedule).__name__}"
            )
        self.optimizer._steps_taken += 1  # the steps before the schedule's are another's

    @property
    def now(self) -> list[float]:
        """The rate of each group."""
        return [float(group["lr"]) for group in self.optimizer.param_groups]

    def step(self, loss: float) -> None:
        """The schedule goes on; one that waits for a loss to fall sees this one."""
        if isinstance(self.schedule, ReduceLROnPlateau):
            self.schedule.step(loss)
        elif self.schedule is not None:
            self.schedule.step()


def _scale_to(made: optim.Optimizer, lr: float) -> None:
    if any(["lr" not in group for group in made.param_groups]):
        raise ValueError(f"fit_many: {type(made).__name__} has no learning rate to set")
    first = made.param_groups[0]["lr"]
    for group in made.param_groups:
        group["lr"] = lr if group["lr"] == first else lr * (group["lr"] / first)
        made.check_settings(group)


class StackedRates:
    """The rates of all networks, in an optimizer of their stacked parameters."""

    def __init__(self, made: optim.Optimizer, networks: Sequence[OwnRates]):
        self.optimizer, self.networks = made, list(networks)
        self.groups: list[Tensor | None] = []
        now = [n.now for n in networks]
        for i, group in enumerate(made.param_groups):
            rates = [own[i] for own in now]
            alike = len(set(rates)) == 1
            self.groups.append(None if alike else tensor(rates, dtype=group["params"][0].dtype))
            group["lr"] = (
                rates[0] if alike else [_spread(self.groups[-1], p) for p in group["params"]]
            )
            made.check_settings(group)

    def step(self, losses: Sequence[float]) -> None:
        """All schedules go on, each with the loss of its network."""
        pairs = zip(self.networks, losses, strict=True)
        for n, loss in {id(n): (n, loss) for n, loss in pairs}.values():
            n.step(loss)
        now = [n.now for n in self.networks]
        for i, group in enumerate(self.optimizer.param_groups):
            rates, held = [own[i] for own in now], self.groups[i]
            if held is not None:
                held.copy_(
                    tensor(rates, dtype=held.dtype, device=held.device)
                )  # and so into what is spread from it
            elif len(set(rates)) == 1:
                group["lr"] = rates[0]
            else:
                self.groups[i] = held = tensor(rates, dtype=group["params"][0].dtype)
                group["lr"] = [_spread(held, p) for p in group["params"]]

    def repeat(self, i: int, j: int) -> None:
        """Has the i-th network have the rates of the j-th from now on."""
        self.networks[i] = self.networks[j]
        for held in self.groups:
            if held is not None:
                held[i] = held[j]


def _spread(rates: Any, p: Tensor) -> Tensor:
    """One learning rate for each network, along the first dimension of its stacked parameter."""
    return expand(reshape(rates, (-1, *[1] * (p.ndim - 1))), *p.shape)

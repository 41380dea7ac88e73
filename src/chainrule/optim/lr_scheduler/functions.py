"""Rates by a function of the user's, and by the size of the batches."""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from typing import Any, overload

from chainrule.optim.lr_scheduler.base import each, LRScheduler
from chainrule.optim.optimizer import Optimizer, check_range
from chainrule.tensor import Tensor
from chainrule.typing import Rate, Rates

__all__ = ["LambdaLR", "MultiplicativeLR", "batch_scaled_lr"]

Factor = Callable[[int], float]


class _ByFunctions(LRScheduler):
    """A schedule with a function for every group."""

    _takes_new_groups = False

    def __init__(
        self, optimizer: Optimizer, lr_lambda: Factor | Sequence[Factor], last_epoch: int = -1
    ):
        count = len(getattr(optimizer, "param_groups", ()))
        functions = list(lr_lambda) if isinstance(lr_lambda, Sequence) else [lr_lambda] * count
        if len(functions) != count:
            raise ValueError(
                f"{self._name}: Expected {count} lr_lambdas, but got {len(functions)}; give one "
                "function, or one for each group"
            )
        for f in functions:
            if not callable(f):
                raise TypeError(
                    f"{self._name}: lr_lambda should be a function, but got {type(f).__name__}"
                )
        self.lr_lambdas: list[Factor] = functions
        super().__init__(optimizer, last_epoch)

    def state_dict(self) -> dict[str, Any]:
        """The state; of functions only that of callable objects, as in PyTorch."""
        return {**super().state_dict(), "lr_lambdas": [kept(f) for f in self.lr_lambdas]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        own = self.lr_lambdas
        super().load_state_dict({**state_dict, "lr_lambdas": own})
        for f, state in zip(own, state_dict["lr_lambdas"], strict=True):
            if state is not None:
                f.__dict__.update(state)


def kept(f: Callable[..., object]) -> dict[str, Any] | None:
    """What a state_dict keeps of a callable: the attributes of an object, nothing of a function."""
    return None if isinstance(f, types.FunctionType) else dict(getattr(f, "__dict__", {}))


class LambdaLR(_ByFunctions):
    """The initial rate times a function of the epoch: lr_i = base lr_lambda(i).

    Args:
        optimizer: whose rates are changed.
        lr_lambda: a function of the epoch, or one for each group.
        last_epoch: the epoch to go on from, -1 to start.

    >>> import chainrule
    >>> from chainrule import optim
    >>> optimizer = optim.SGD([chainrule.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = optim.lr_scheduler.LambdaLR(optimizer, lambda i: 1 / (1 + i))
    >>> optim.lr_scheduler.preview(schedule, 3)
    [1.0, 0.5, 0.333...]
    """

    def next_lr(self, lr: Rate, base: Rate, i: int) -> Rate:
        return base * self.lr_lambdas[i](self.last_epoch)


class MultiplicativeLR(_ByFunctions):
    """The rate times a function of the epoch: lr_i = lr_(i-1) lr_lambda(i), lr_0 = base.

    Args:
        optimizer: whose rates are changed.
        lr_lambda: a function of the epoch, or one for each group.
        last_epoch: the epoch to go on from, -1 to start.

    >>> import chainrule
    >>> from chainrule import optim
    >>> optimizer = optim.SGD([chainrule.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = optim.lr_scheduler.MultiplicativeLR(optimizer, lambda i: 0.5)
    >>> optim.lr_scheduler.preview(schedule, 3)
    [1.0, 0.5, 0.25]
    """

    def next_lr(self, lr: Rate, base: Rate, i: int) -> Rate:
        return lr if self._is_initial else lr * self.lr_lambdas[i](self.last_epoch)


@overload
def batch_scaled_lr(lr: float, batch_size: int, new_batch_size: int) -> float: ...
@overload
def batch_scaled_lr(lr: Tensor, batch_size: int, new_batch_size: int) -> Tensor: ...
@overload
def batch_scaled_lr(lr: Sequence[Rate], batch_size: int, new_batch_size: int) -> list[Rate]: ...
def batch_scaled_lr(lr: Rates, batch_size: int, new_batch_size: int) -> Rates:
    """The rate for batches of another size that keeps lr / (2 b), the noise of the steps.

    new lr = lr new_batch_size / batch_size, for a number, a tensor or a list of them. For batches
    that grow while training, see :class:`LambdaLR` with ``lambda i: size(i) / size(0)``.

    >>> from chainrule import optim
    >>> optim.lr_scheduler.batch_scaled_lr(0.1, 32, 256)
    0.8
    """
    check_range("batch_scaled_lr", lr=lr)
    sizes = {"batch_size": batch_size, "new_batch_size": new_batch_size}
    check_range("batch_scaled_lr", closed=False, **sizes)
    return each(lambda rate: rate * (new_batch_size / batch_size), lr)

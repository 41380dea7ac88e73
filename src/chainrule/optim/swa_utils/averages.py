"""Models whose weights are averages over the steps of training."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from itertools import chain
from typing import Any

from chainrule.autograd.modes import no_grad
from chainrule.backend.dtypes import int64
from chainrule.nn.layers.norm import _BatchNorm
from chainrule.nn.module.base import Module
from chainrule.ops.creation.from_data import tensor
from chainrule.tensor import Tensor
from chainrule.typing import Device

__all__ = [
    "AveragedModel",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]

Average = Callable[[Tensor, Tensor, Tensor], Tensor]  # mean, new value, how many are in the mean
Averages = Callable[[Sequence[Tensor], Sequence[Tensor], Tensor], None]  # the same, in place


def get_ema_avg_fn(decay: float = 0.999) -> Average:
    """The moving average m <- decay m + (1 - decay) p, for ``AveragedModel(avg_fn=...)``."""
    if not 0.0 <= decay <= 1.0:
        raise ValueError(
            f"Invalid decay value {decay} provided. Please provide a value in [0,1] range."
        )

    def ema_update(mean: Tensor, value: Tensor, count: Tensor) -> Tensor:
        return decay * mean + (1 - decay) * value

    return ema_update


def get_swa_avg_fn() -> Average:
    """The mean of all: m <- m + (p - m) / (n + 1), for ``AveragedModel(avg_fn=...)``."""

    def swa_update(mean: Tensor, value: Tensor, count: Tensor) -> Tensor:
        return mean + (value - mean) / (count + 1)

    return swa_update


def _in_place(average: Average) -> Averages:
    def update(means: Sequence[Tensor], values: Sequence[Tensor], count: Tensor) -> None:
        with no_grad():
            for mean, value in zip(means, values, strict=True):
                mean.copy_(average(mean, value, count))

    return update


def get_ema_multi_avg_fn(decay: float = 0.999) -> Averages:
    """The moving average of a list of tensors, for ``AveragedModel(multi_avg_fn=...)``."""
    return _in_place(get_ema_avg_fn(decay))


def get_swa_multi_avg_fn() -> Averages:
    """The mean of a list of tensors, for ``AveragedModel(multi_avg_fn=...)``."""
    return _in_place(get_swa_avg_fn())


class AveragedModel(Module):
    """A copy of a model whose weights are an average: m = (p_1 + ... + p_n) / n by default.

    ``update_parameters(model)`` takes the present weights in. Buffers are those of the model at the
    last update, unless ``use_buffers`` asks for their average too; see :func:`update_bn`.

    Args:
        model: the model that is trained.
        device: "cpu".
        avg_fn: the average of a tensor instead, such as that of :func:`get_ema_avg_fn`.
        multi_avg_fn: the average of lists of tensors instead, in place.
        use_buffers: whether buffers are averaged.

    >>> import chainrule
    >>> from chainrule import nn, optim
    >>> net = nn.Linear(1, 1, bias=False)
    >>> averaged = optim.swa_utils.AveragedModel(net)
    >>> for value in (1.0, 2.0, 6.0):
    ...     _ = nn.init.constant_(net.weight, value)
    ...     averaged.update_parameters(net)
    >>> averaged(chainrule.ones(1)).item()
    3.0
    """

    n_averaged: Tensor

    def __init__(
        self,
        model: Module,
        device: Device | None = None,
        avg_fn: Average | None = None,
        multi_avg_fn: Averages | None = None,
        use_buffers: bool = False,
    ):
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = deepcopy(model)
        self.register_buffer("n_averaged", tensor(0, dtype=int64, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Takes the present weights of the model into the average."""
        means, values = self._tensors(self.module), self._tensors(model)
        with no_grad():
            if int(self.n_averaged) == 0:
                for mean, value in zip(means, values, strict=True):
                    mean.copy_(value)
            else:
                self._average(means, values)
            if not self.use_buffers:
                for mean, value in zip(self.module.buffers(), model.buffers(), strict=True):
                    mean.detach().copy_(value.detach())
            self.n_averaged += 1

    def _average(self, means: list[Tensor], values: list[Tensor]) -> None:
        update = self.multi_avg_fn or _in_place(self.avg_fn or get_swa_avg_fn())
        for dtype in dict.fromkeys(m.dtype for m in means):
            some = [i for i, m in enumerate(means) if m.dtype is dtype]
            update([means[i] for i in some], [values[i] for i in some], self.n_averaged)

    def _tensors(self, model: Module) -> list[Tensor]:
        held = chain(model.parameters(), model.buffers() if self.use_buffers else ())
        return [t.detach() for t in held]


def update_bn(loader: Iterable[Any], model: Module, device: Device | None = None) -> None:
    """Computes the statistics of batch normalization anew, as means over all batches.

    A batch is a tensor, or a tuple or list that begins with one. For models whose weights are an
    average: no batch has passed through them in training.
    """
    norms = [m for m in model.modules() if isinstance(m, _BatchNorm)]
    if not norms:
        return
    momenta, training = [m.momentum for m in norms], model.training
    model.train()
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None
    with no_grad():
        for batch in loader:
            x = batch[0] if isinstance(batch, (list, tuple)) else batch
            model(x if device is None else x.to(device))
    for norm, momentum in zip(norms, momenta, strict=True):
        norm.momentum = momentum
    model.train(training)

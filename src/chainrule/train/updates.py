"""An update from a group of batches, and what an epoch of them sums up to."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from chainrule import optim
from chainrule.backend import K
from chainrule.backend.recorded import check_fails_with
from chainrule.nn.utils.clip_grad import clip_grad_norm_, clip_grad_value_
from chainrule.optim.minimizer import Minimizer
from chainrule.tensor import Tensor
from chainrule.train.batches import Batch
from chainrule.train.evaluation import measure
from chainrule.train.placing import on_host
from chainrule.train.penalties import after_backward, changes_gradient
from chainrule.train.structures import on_tensors

if TYPE_CHECKING:
    from chainrule.train.trainer import Trainer

__all__ = ["LossNotFinite", "Parts", "Sums", "calls_closures", "take_step"]


class LossNotFinite(RuntimeError):
    """The loss of a batch is not finite; ``place`` is that of the batch in its group."""

    def __init__(self, place: int):
        super().__init__(f"the loss of batch {place} of a group is not finite")
        self.place = place


class Parts(NamedTuple):
    """What an update leaves of each batch: its loss and penalties, and its output for metrics."""

    losses: list[Tensor]
    penalties: list[dict[str, Tensor]]
    outputs: list[Any]


def calls_closures(optimizer: optim.Optimizer) -> bool:
    """Whether an optimizer looks at the loss itself, as often as it likes."""
    return isinstance(optimizer, (Minimizer, optim.LBFGS))


def take_step(trainer: Trainer, group: list[Batch], late: bool = False) -> Parts:
    """One update from the batches of a group; with ``late``, who sees gradients is called later."""
    optimizer = trainer.optimizer
    if calls_closures(optimizer):
        looks: list[Parts] = []

        def closure() -> Tensor:
            looks[:], whole = _differentiated(trainer, group)
            return whole

        optimizer.step(closure)
        trainer._call("on_backward_end")  # the gradients are those of the last look at the loss
        return looks[0]
    (parts,), _ = _differentiated(trainer, group)
    after_backward(trainer.penalties, trainer.model, group)
    if not late:
        trainer._call("on_backward_end")
    if trainer.clip_value is not None:
        clip_grad_value_(trainer.model.parameters(), trainer.clip_value)
    if trainer.clip_norm is not None:
        clip_grad_norm_(trainer.model.parameters(), trainer.clip_norm)
    optimizer.step()
    return parts


def _differentiated(trainer: Trainer, group: list[Batch]) -> tuple[list[Parts], Tensor]:
    """The loss of a group, with its gradient unless the optimizer takes derivatives itself."""
    trainer.optimizer.zero_grad()
    later = isinstance(trainer.optimizer, Minimizer)
    count = sum([b.size for b in group])
    parts, whole = Parts([], [], []), None
    for place, batch in enumerate(group):
        output, loss, penalties = trainer._loss(batch)
        if not K.all_finite([loss.array]):
            raise LossNotFinite(place)
        check_fails_with(functools.partial(LossNotFinite, place))
        parts.losses.append(loss.detach())
        parts.penalties.append({name: value.detach() for name, value in penalties.items()})
        if trainer.metrics:
            parts.outputs.append(on_tensors(Tensor.detach, output))
        for name, value in penalties.items():
            if not changes_gradient(trainer.penalties[name]):
                loss = loss + value
        part = loss if len(group) == 1 else loss * (batch.size / count)
        if not later:
            part.backward()
            part = part.detach()
        whole = part if whole is None else whole + part
    return [parts], whole  # type: ignore[return-value]


class Sums:
    """The losses and penalties of an epoch so far, and what its metrics are computed from."""

    def __init__(self, metrics: Mapping[str, Callable[[Any, Any], Any]], penalties: Sequence[str]):
        self.metrics = metrics
        self.totals = dict.fromkeys(("loss", *penalties), 0.0)
        self.samples = 0
        self.outputs: list[Any] = []
        self.targets: list[Any] = []
        self.sizes: list[int] = []  # samples of each of these outputs

    def add(self, group: list[Batch], parts: Parts) -> float:
        """Takes in an update; the mean loss of its samples."""
        own: dict[str, float] = {}
        count = 0
        for batch, loss, penalties in zip(group, parts.losses, parts.penalties, strict=True):
            size = batch.size
            count += size
            own["loss"] = own.get("loss", 0.0) + float(loss) * size
            for name, value in penalties.items():
                own[name] = own.get(name, 0.0) + float(value) * size
        self.add_values(own, count)
        if parts.outputs:
            self.outputs += on_host(parts.outputs)
            self.targets += [on_host(batch.target) for batch in group]
            self.sizes += [batch.size for batch in group]
        return own["loss"] / max(1, count)

    def add_values(self, values: Mapping[str, float], samples: int) -> None:
        """Takes in the sums over the samples of an update."""
        for name, value in values.items():
            self.totals[name] += value
        self.samples += samples

    def measured(self) -> dict[str, float]:
        """The metrics so far."""
        return measure(self.metrics, self.outputs, self.targets, self.sizes) if self.outputs else {}

    def means(self) -> dict[str, float]:
        """The means of the losses and penalties, and the metrics."""
        if self.samples == 0:
            raise ValueError("fit: the training data has no batches")
        return {key: value / self.samples for key, value in self.totals.items()} | self.measured()

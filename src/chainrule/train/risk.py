"""The empirical risk of a model, and that of data with augmented data beside it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from chainrule import nn
from chainrule.tensor import Tensor
from chainrule.train.batches import Batch, DataLike, as_loader, batches
from chainrule.train.losses import LossLike, WeightedLoss

__all__ = ["augmented_risk", "empirical_risk"]


def empirical_risk(
    model: nn.Module, data: DataLike, loss: LossLike, *, batch_size: int = 256
) -> Tensor:
    """The mean loss over the samples: 1/N sum_n loss(model(x_n), y_n), differentiable.

    Batches count by their sizes, samples by their weights where the data have any. The model is
    used in the mode it is in; ``Trainer.evaluate`` gives the same number in evaluation mode.

    Args:
        model: a module.
        data: (x, y), (x, y, sample_weight), a Dataset or a DataLoader.
        loss: a name, a function ``loss(output, target)`` that takes the mean, or a module.
        batch_size: for data that is not a loader.

    >>> from chainrule import nn, tensor, train
    >>> model = nn.Linear(1, 1, bias=False)
    >>> _ = nn.init.ones_(model.weight)
    >>> risk = train.empirical_risk(model, (tensor([[1.0], [2.0]]), tensor([[2.0], [5.0]])), "mse")
    >>> risk.backward()
    >>> risk.item(), model.weight.grad
    (5.0, tensor([[-7.]]))
    """
    return _risk("empirical_risk", model, batches(as_loader(data, model, batch_size)), loss)


def augmented_risk(
    model: nn.Module,
    data: DataLike,
    augmented: DataLike | Callable[[Any], Any],
    loss: LossLike,
    *,
    weight: float = 1.0,
    copies: int = 1,
    batch_size: int = 256,
) -> Tensor:
    """The objective of data with augmented data: 1/N sum_n loss_n + weight 1/L sum_l loss_l.

    Each part is a mean of its own, so that many augmented samples do not outweigh the data.

    Args:
        model: a module.
        data: the N samples, see :func:`empirical_risk`.
        augmented: the L augmented samples, in the same forms; or a function that makes inputs of
            inputs (a batch at a time, with the same targets), as transforms do.
        loss: see :func:`empirical_risk`.
        weight: of the second part.
        copies: how often the function is applied to all data, L = copies N.
        batch_size: for data that is not a loader.

    >>> from chainrule import nn, tensor, train
    >>> model, data = nn.Linear(1, 1), (tensor([[1.0], [2.0]]), tensor([[2.0], [5.0]]))
    >>> risk = train.augmented_risk(model, data, lambda x: -x, "mse")
    >>> both = [train.empirical_risk(model, (s * data[0], data[1]), "mse") for s in (1, -1)]
    >>> bool((risk - both[0] - both[1]).abs() < 1e-5)
    True
    """
    first = empirical_risk(model, data, loss, batch_size=batch_size)
    if not callable(augmented):
        return first + weight * empirical_risk(model, augmented, loss, batch_size=batch_size)
    if copies < 1:
        raise ValueError(f"augmented_risk: copies must be positive, got {copies}")
    loader = as_loader(data, model, batch_size)
    changed = (
        Batch(tuple(augmented(part) for part in b.inputs), b.target, b.weight)
        for _ in range(copies)
        for b in batches(loader)
    )
    return first + weight * _risk("augmented_risk", model, changed, loss)


def _risk(op: str, model: nn.Module, given: Any, loss: LossLike) -> Tensor:
    mean_loss = WeightedLoss(loss)
    total, n = None, 0.0
    for batch in given:
        value = mean_loss(model(*batch.inputs), batch.target, batch.weight)
        size = batch.size if batch.weight is None else float(batch.weight.detach().sum())
        total = value * size if total is None else total + value * size
        n += size
    if total is None or n == 0:
        raise ValueError(f"{op}: the data has no samples")
    return total / n

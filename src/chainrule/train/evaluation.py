"""What a model makes of data, in evaluation mode: its loss and metrics, its outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from chainrule import nn
from chainrule.autograd.modes import inference_mode
from chainrule.nn.module.evaluation import evaluating
from chainrule.ops.creation.conversion import clone
from chainrule.ops.shape.stacking import cat
from chainrule.tensor import Tensor
from chainrule.train.batches import batches, floating_dtype, to_tensor
from chainrule.train.losses import WeightedLoss
from chainrule.typing import Features

__all__ = ["evaluate", "measure", "predict"]

Metrics = Mapping[str, Callable[[Tensor, Tensor], Any]]


def evaluate(
    model: nn.Module, loader: Iterable[Any], loss: WeightedLoss, metrics: Metrics
) -> dict[str, float]:
    """The mean loss and the metrics on some batches."""
    total, n = 0.0, 0.0
    outputs, targets = [], []
    with evaluating(model), inference_mode():
        for batch in batches(loader):
            output = model(*batch.inputs)
            size = batch.size if batch.weight is None else float(batch.weight.sum())
            total += float(loss(output, batch.target, batch.weight)) * size
            n += size
            outputs.append(output)
            targets.append(batch.target)
        if n == 0:
            raise ValueError("evaluate: the data has no batches")
        measured = measure(metrics, cat(outputs), cat(targets)) if metrics else {}
    return {"loss": total / n, **measured}


def measure(metrics: Metrics, output: Tensor, target: Tensor) -> dict[str, float]:
    """The metrics of an output."""
    return {name: float(metric(output, target)) for name, metric in metrics.items()}


def predict(model: nn.Module, x: Features, batch_size: int) -> Tensor:
    """The outputs of a model for inputs x, a batch at a time."""
    several = x if isinstance(x, tuple) else (x,)
    inputs = [to_tensor(part, floating_dtype(model)) for part in several]
    with evaluating(model), inference_mode():
        parts = [
            model(*[t[i : i + batch_size] for t in inputs])
            for i in range(0, max(1, int(inputs[0].shape[0])), batch_size)
        ]
    return clone(parts[0] if len(parts) == 1 else cat(parts))

"""What a model makes of data, in evaluation mode: its loss and metrics, its outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from chainrule import nn
from chainrule.autograd.modes import inference_mode
from chainrule.autograd.nested import flatten, map_tree
from chainrule.nn.module.evaluation import evaluating
from chainrule.ops.creation.conversion import clone
from chainrule.train.batches import batches, to_features
from chainrule.tensor import Tensor
from chainrule.train.losses import WeightedLoss
from chainrule.train.placing import Placing, on_host
from chainrule.train.structures import joined, on_tensors
from chainrule.typing import Features

__all__ = ["evaluate", "measure", "predict"]

Metrics = Mapping[str, Callable[[Any, Any], Any]]


def evaluate(
    model: nn.Module, loader: Iterable[Any], loss: WeightedLoss, metrics: Metrics
) -> dict[str, float]:
    """The mean loss and the metrics on some batches."""
    total, n, placing = 0.0, 0.0, Placing(model)
    outputs, targets, sizes = [], [], []
    with evaluating(model), inference_mode():
        for batch in placing.batches(batches(loader), loader):
            output = model(*batch.inputs)
            size = batch.size if batch.weight is None else float(batch.weight.sum())
            total += float(loss(output, batch.target, batch.weight)) * size
            n += size
            outputs.append(on_host(output) if metrics else None)
            targets.append(on_host(batch.target) if metrics else None)
            sizes.append(batch.size)
        if n == 0:
            raise ValueError("evaluate: the data has no batches")
        measured = measure(metrics, outputs, targets, sizes) if metrics else {}
    return {"loss": total / n, **measured}


def measure(
    metrics: Metrics, outputs: list[Any], targets: list[Any], sizes: list[int]
) -> dict[str, float]:
    """The metrics of the outputs of batches of these sizes, joined."""
    output, target = joined(outputs, sizes), joined(targets, sizes)
    return {name: float(metric(output, target)) for name, metric in metrics.items()}


def predict(model: nn.Module, x: Features | Mapping[str, Features], batch_size: int) -> Any:
    """The outputs of a model for inputs x, a batch at a time; on the CPU if these are."""
    inputs = to_features(x if isinstance(x, tuple) else (x,), model)
    n = int(flatten(inputs)[0][0].shape[0])
    starts, placing = range(0, max(1, n), batch_size), Placing(model)
    hosted = all([t.is_cpu for t in flatten(inputs)[0] if isinstance(t, Tensor)])

    def batch(start: int) -> Any:
        return map_tree(lambda t: t[start : start + batch_size], inputs)

    with evaluating(model), inference_mode():
        parts = [model(*placing.put(batch(i))) for i in starts]
        if hosted:
            parts = [on_host(part) for part in parts]
    return on_tensors(clone, joined(parts, [min(batch_size, n - i) for i in starts]))

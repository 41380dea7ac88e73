"""One forward and backward pass, with what every layer made and which gradient came back to it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from chainrule.autograd import grad
from chainrule.autograd.modes import enable_grad
from chainrule.inspect.core.arguments import Inputs, call, tensors
from chainrule.inspect.core.tracing import Call, Operation, Trace, recorded
from chainrule.inspect.health.objectives import Loss, Objective, look_at
from chainrule.nn.module.base import Module
from chainrule.optim import Optimizer
from chainrule.tensor import Tensor

__all__ = ["Layer", "Pass", "by_unit", "is_weighted", "passed", "rms"]


def rms(t: Tensor) -> float:
    """The root of the mean square."""
    return math.sqrt(float(t.detach().double().square().mean())) if t.numel() else 0.0


def by_unit(out: Tensor) -> Tensor:
    """Values by unit: channels of pictures, else the last dimension. Shape: (values, units)."""
    t = out.detach()
    if t.ndim >= 4:
        t = t.movedim(1, -1)
    return t.reshape(-1, t.shape[-1]) if t.ndim else t.reshape(1, 1)


def is_weighted(module: Module) -> bool:
    """Whether a module itself holds a weight with two or more dimensions."""
    return any(p is not None and p.ndim >= 2 for p in module._parameters.values())


@dataclass(frozen=True)
class Layer:
    """A layer in a pass: the size of what it made, and of the gradient that came back to it."""

    name: str
    kind: str
    activation: float  # root mean square of its output
    gradient: float  # norm of the loss's gradient with respect to its output; NaN where none came


@dataclass(eq=False)
class Pass:
    """What rules about the network look at."""

    model: Module
    optimizer: Optimizer | None
    inputs: Inputs
    targets: Any
    trace: Trace
    objective: Objective
    gradients: dict[str, Tensor | None]  # of the parameters that want one
    returned: dict[int, Tensor | None]  # of the outputs of calls, by number of the call
    fresh: bool = True  # whether the parameters are those of the start
    weighted: bool = False
    _makers: dict[int, Operation] = field(default_factory=dict)

    @cached_property
    def size(self) -> int:
        """The number of samples."""
        found = tensors(self.inputs)
        return int(found[0].shape[0]) if found and found[0].ndim else 1

    @cached_property
    def leaves(self) -> list[Call]:
        """The calls of layers, in which no other was called."""
        return [c for c in self.trace.calls if not c.children and c.finished]

    @cached_property
    def weighted_calls(self) -> list[Call]:
        """The calls of layers with weights, in order."""
        return [c for c in self.trace.calls if c.finished and is_weighted(c.module) and c.outputs]

    @cached_property
    def layers(self) -> list[Layer]:
        """The layers in the order of their calls."""
        found = []
        for c in self.weighted_calls or self.leaves:
            back = self.returned.get(c.number)
            size = math.nan if back is None else rms(back) * math.sqrt(back.numel())
            found.append(Layer(c.path, c.kind, rms(c.outputs[0]), size))
        return found

    def operations(self, *names: str) -> Iterator[Operation]:
        """The operations of these names."""
        return (o for o in self.trace.operations if o.name in names)

    def feeding(self, operation: Operation) -> str:
        """The layer with weights whose output an operation was given, else the call it ran in."""
        for _ in range(8):  # through norms, views and dropout
            maker = self._makers.get(id(operation.inputs[0])) if operation.inputs else None
            if maker is None:
                break
            if is_weighted(maker.call.module):
                return maker.call.path
            operation = maker
        return operation.call.path

    @cached_property
    def learned(self) -> bool:
        """Whether the loss is well below that of the best constant."""
        chance = self.objective.chance()
        value = float(self.objective.value.detach().double().mean())
        return chance is not None and value < 0.5 * chance


def passed(
    instrument: str,
    model: Module,
    loss: Loss,
    inputs: Inputs,
    targets: Any,
    optimizer: Optimizer | None = None,
) -> Pass:
    """Runs the model in training mode and the loss, forward and backward."""
    model.train()
    with enable_grad():
        with recorded(model) as trace:
            output = call(model, instrument, inputs)
        objective = look_at(loss, output, targets)
    if not trace.calls:
        raise TypeError(f"{instrument}: the model was not called as a module")
    named = {n: p for n, p in model.named_parameters() if p.requires_grad}
    calls = [c for c in trace.calls if c.outputs and c.outputs[0].requires_grad]
    wanted = [*named.values(), *(c.outputs[0] for c in calls)]
    value = objective.value
    value = value if value.ndim == 0 else value.mean()
    if value.requires_grad and wanted:
        found = grad(value, wanted, allow_unused=True, retain_graph=True)
    else:
        found = (None,) * len(wanted)
    gradients = dict(zip(named, found, strict=False))
    returned = {c.number: g for c, g in zip(calls, found[len(named) :], strict=True)}
    makers = {id(t): o for o in trace.operations for t in o.outputs}
    return Pass(
        model,
        optimizer,
        inputs,
        targets,
        trace,
        objective,
        gradients,
        returned,
        _is_fresh(optimizer),
        _makers=makers,
    )


def _is_fresh(optimizer: Optimizer | None) -> bool:
    return optimizer is None or not (optimizer.state or optimizer._steps_taken)

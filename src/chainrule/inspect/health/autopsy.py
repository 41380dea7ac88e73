"""Where the first NaN or infinity of a training step came from: layer, operation, sample."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from chainrule import nn
from chainrule.autograd.anomaly import detect_anomaly
from chainrule.autograd.modes import enable_grad, no_grad
from chainrule.ops.creation.conversion import clone
from chainrule.ops.shape.views import flatten
from chainrule.random import fork_rng
from chainrule.tensor import Tensor

__all__ = ["Autopsy", "autopsy"]


@dataclass
class Autopsy:
    """The findings of :func:`autopsy`: what is not finite, first things first.

    ``where`` is "input", "target", "parameter", "forward", "loss" or "backward", or "" if all was
    finite; ``layer`` the name of the module or parameter; ``samples`` the rows of the batch.
    """

    where: str = ""
    layer: str = ""
    samples: list[int] = field(default_factory=list)
    message: str = "everything is finite: forward, loss and backward"

    def __str__(self) -> str:
        return self.message


def autopsy(
    model: nn.Module,
    inputs: Tensor | Sequence[Tensor],
    target: Any = None,
    loss: Callable[[Any, Any], Tensor] | None = None,
) -> Autopsy:
    """Runs a step once more and finds where its first NaN or infinity appears.

    Args:
        model: a module.
        inputs: its arguments, a tensor or a tuple.
        target: what the loss takes beside the output.
        loss: ``loss(output, target)``; without it only the forward pass is examined.

    >>> from chainrule import inspect, nn, tensor
    >>> net = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
    >>> report = inspect.autopsy(net, tensor([[1.0, 2.0], [float("nan"), 0.0]]))
    >>> report.where, report.samples
    ('input', [1])
    """
    given = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    for found in (
        lambda: _in_data(given, "input"),
        lambda: _in_data((target,), "target"),
        lambda: _in_parameters(model),
        lambda: _in_forward(model, given),
        lambda: _in_loss(model, given, target, loss),
    ):
        with _left_as_it_was(model):
            report = found()
        if report is not None:
            return report
    return Autopsy()


@contextlib.contextmanager
def _left_as_it_was(model: nn.Module) -> Iterator[None]:
    """Restores buffers (running statistics) and the random state."""
    before = [(b, clone(b.detach())) for b in model.buffers()]
    with fork_rng():
        yield
    with no_grad():
        for buffer, value in before:
            buffer.copy_(value)


def _is_bad(value: Any) -> bool:
    return (
        isinstance(value, Tensor)
        and value.dtype.is_floating_point
        and not bool(value.detach().isfinite().all())
    )


def _rows(value: Tensor) -> list[int]:
    """The samples with an entry that is not finite."""
    if value.ndim == 0:
        return []
    bad = ~value.detach().isfinite()
    if bad.ndim > 1:
        bad = flatten(bad, 1).any(dim=1)
    return bad.nonzero().reshape(-1).tolist()


def _listed(rows: Sequence[int]) -> str:
    if not rows:
        return ""
    shown = ", ".join(map(str, rows[:8])) + (", ..." if len(rows) > 8 else "")
    return f" in {len(rows)} sample{'s' if len(rows) > 1 else ''} of the batch (rows {shown})"


def _kind(value: Tensor) -> str:
    return "NaN" if bool(value.detach().isnan().any()) else "an infinite value"


def _in_data(values: Sequence[Any], where: str) -> Autopsy | None:
    for i, value in enumerate(values):
        if _is_bad(value):
            rows = _rows(value)
            which = f"{where} {i}" if len(values) > 1 else where
            return Autopsy(
                where,
                "",
                rows,
                f"the {which} already has {_kind(value)}{_listed(rows)}; clean the data (drop or "
                "impute these samples)",
            )
    return None


def _in_parameters(model: nn.Module) -> Autopsy | None:
    for name, p in model.named_parameters():
        if _is_bad(p):
            return Autopsy(
                "parameter",
                name,
                [],
                f"the parameter {name!r} of shape {tuple(p.shape)} has {_kind(p)} before this "
                "step: an earlier update destroyed it; lower the learning rate or clip gradients",
            )
    return None


def _in_forward(model: nn.Module, inputs: tuple[Tensor, ...]) -> Autopsy | None:
    """The first layer that turns finite inputs into something that is not."""
    found: list[Autopsy] = []

    def look(name: str, module: nn.Module) -> Callable[..., None]:
        def hook(_: Any, given: Any, output: Any) -> None:
            outputs = output if isinstance(output, (tuple, list)) else (output,)
            bad = next((o for o in outputs if _is_bad(o)), None)
            if found or bad is None or any(_is_bad(g) for g in given):
                return
            rows = _rows(bad)
            largest = max(
                [float(g.detach().abs().max()) for g in given if _has_numbers(g)], default=0.0
            )
            message = (
                f"the layer {name or 'model'!r}, {type(module).__name__}, turned finite inputs "
                f"(largest {largest:.3g}) into {_kind(bad)}{_listed(rows)}"
            )
            found.append(Autopsy("forward", name, rows, message))

        return hook

    handles = [m.register_forward_hook(look(name, m)) for name, m in model.named_modules()]
    try:
        with no_grad():
            model(*inputs)
    finally:
        for handle in handles:
            handle.remove()
    return found[0] if found else None


def _has_numbers(value: Any) -> bool:
    return isinstance(value, Tensor) and value.numel() > 0 and value.dtype.is_floating_point


def _in_loss(
    model: nn.Module,
    inputs: tuple[Tensor, ...],
    target: Any,
    loss: Callable[[Any, Any], Tensor] | None,
) -> Autopsy | None:
    """The loss of finite outputs, and the operation in the backward pass."""
    if loss is None:
        return None
    with enable_grad():
        output = model(*inputs)
        value = loss(output, target)
    if _is_bad(value):
        top = float(output.detach().abs().max()) if _has_numbers(output) else 0.0
        return Autopsy(
            "loss",
            "",
            [],
            f"the outputs are finite (largest {top:.3g}), but the loss is {float(value.detach())}: "
            "a logarithm of zero or an overflow in it; use a loss that takes logits",
        )
    before = [(p, p.grad) for p in model.parameters()]
    try:
        with detect_anomaly(), enable_grad():
            loss(model(*inputs), target).backward()
    except RuntimeError as error:
        return Autopsy("backward", "", [], f"the gradient is not finite: {error}")
    finally:
        for p, grad in before:
            p.grad = grad
    return None

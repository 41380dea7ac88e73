"""Where the first NaN or infinity of a training step came from: operation, layer, line, sample."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from chainrule.autograd import grad
from chainrule.autograd.anomaly import user_line
from chainrule.autograd.modes import enable_grad, no_grad
from chainrule.inspect.core.arguments import Inputs, arguments, as_targets, tensors
from chainrule.inspect.core.registry import instrument
from chainrule.inspect.core.results import Result
from chainrule.inspect.core.tracing import Trace, recorded
from chainrule.nn.module.base import Module
from chainrule.ops.core.apply import watching
from chainrule.ops.reduce.reductions import mean
from chainrule.ops.shape.views import flatten
from chainrule.optim import NotFiniteError, Optimizer
from chainrule.optim.minimizer import Minimizer
from chainrule.tensor import Tensor

__all__ = ["Autopsy", "autopsy"]


@dataclass(repr=False)
class Autopsy(Result):
    """The findings of :func:`autopsy`: what is not finite, first things first.

    ``where`` is "input", "target", "parameter", "forward", "loss", "backward" or "update", or "" if
    all was finite; ``layer`` the name of the module or parameter, ``operation`` that of the
    operation, ``line`` the user's line that ran it (empty where only ready layers did), ``samples``
    the rows of the batch, and ``remedy`` what to do.
    """

    where: str = ""
    layer: str = ""
    samples: list[int] = field(default_factory=list)
    message: str = "everything is finite: forward, loss, backward and update"
    operation: str = ""
    line: str = ""
    remedy: str = ""

    def __str__(self) -> str:
        lines = [self.message]
        lines += [f"  in the line {self.line}"] if self.line else []
        lines += [f"  remedy: {self.remedy}"] if self.remedy else []
        return "\n".join(lines)


@instrument("Y05", needs=("model", "inputs"))
def autopsy(
    model: Module,
    inputs: Inputs,
    target: Any = None,
    loss: Callable[[Any, Any], Tensor] | None = None,
    optimizer: Optimizer | None = None,
) -> Autopsy:
    """Runs a step once more and finds where its first NaN or infinity appears.

    It looks at the data, the parameters, every operation of the forward pass and the loss, every
    operation on the way back, and the parameters after the step of a copy.

    Args:
        model: a module.
        inputs: its arguments, a tensor, a tuple or a dict.
        target: what the loss takes beside the output.
        loss: ``loss(output, target)``; without it only the forward pass is examined.
        optimizer: with it, the update is examined, too.

    >>> from chainrule import inspect, nn, tensor
    >>> net = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
    >>> report = inspect.autopsy(net, tensor([[1.0, 2.0], [float("nan"), 0.0]]))
    >>> report.where, report.samples
    ('input', [1])
    """
    several = isinstance(inputs, (tuple, list))  # whatever they are: the model will say
    args, kwargs = (tuple(inputs), {}) if several else arguments("autopsy", inputs)
    target = as_targets(target)
    report = (
        _in_data(tensors((args, kwargs)), "input")
        or _in_data([t for t in tensors(target) if isinstance(t, Tensor)], "target")
        or _in_parameters(model)
    )
    if report is not None:
        return report
    step = _Step(model, args, kwargs, target, loss)
    return step.forward() or step.backward() or _in_update(step, optimizer) or Autopsy()


# --- words ----------------------------------------------------------------------------------------


def _is_bad(value: Any) -> bool:
    return (
        isinstance(value, Tensor)
        and value.dtype.is_floating_point
        and not bool(value.detach().isfinite().all())
    )


def _rows(value: Tensor, size: int | None = None) -> list[int]:
    """The samples with an entry that is not finite; none where the rows are no samples."""
    if value.ndim == 0 or (size is not None and value.shape[0] != size):
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


def _largest(found: Sequence[Tensor]) -> float:
    sizes = [t.detach().abs().max() for t in found if t.numel() and t.dtype.is_floating_point]
    return max([float(s) for s in sizes], default=0.0)


# --- before the step ------------------------------------------------------------------------------


def _in_data(values: Sequence[Tensor], where: str) -> Autopsy | None:
    for i, value in enumerate(values):
        if _is_bad(value):
            rows = _rows(value)
            which = f"{where} {i}" if len(values) > 1 else where
            return Autopsy(
                where,
                "",
                rows,
                f"the {which} already has {_kind(value)}{_listed(rows)}",
                remedy="clean the data (drop or impute these samples)",
            )
    return None


def _in_parameters(model: Module) -> Autopsy | None:
    for name, p in model.named_parameters():
        if _is_bad(p):
            return Autopsy(
                "parameter",
                name,
                [],
                f"the parameter {name!r} of shape {tuple(p.shape)} has {_kind(p)} before this "
                "step: an earlier update destroyed it",
                remedy="lower the learning rate or clip gradients",
            )
    return None


# --- the step -------------------------------------------------------------------------------------


@dataclass(eq=False)
class _Ran:
    """An operation that ran: where, and in which line of the user's program."""

    name: str
    inputs: tuple[Tensor, ...]
    outputs: list[Tensor]
    layer: str | None  # None in the loss
    kind: str
    line: str


class _Step:
    """One step, run with all its operations written down."""

    def __init__(
        self,
        model: Module,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        target: Any,
        loss: Callable[[Any, Any], Tensor] | None,
    ):
        self.model, self.args, self.kwargs = model, args, kwargs
        self.target, self.loss = target, loss
        given = tensors((args, kwargs))
        self.size = int(given[0].shape[0]) if given and given[0].ndim else None
        self.ran: list[_Ran] = []
        self.value: Tensor | None = None
        self._run()

    def _run(self) -> None:
        called_from = user_line()  # says nothing of the model
        with (
            enable_grad(),
            recorded(self.model) as trace,
            watching(lambda op, i, params, out: self._note(trace, op, i, out, called_from)),
        ):
            self.output = self.model(*self.args, **self.kwargs)
            if self.loss is not None:
                self.value = mean(self.loss(self.output, self.target))

    def _note(
        self, trace: Trace, op: Any, inputs: tuple[Tensor, ...], out: Any, called_from: str
    ) -> None:
        call, line = trace.failed, user_line()
        self.ran.append(
            _Ran(
                str(op.name),
                inputs,
                tensors(out),
                None if call is None else call.path,
                "" if call is None else call.kind,
                "" if line == called_from else line,
            )
        )

    def forward(self) -> Autopsy | None:
        """The first operation that turns finite inputs into something that is not."""
        for ran in self.ran:
            bad = next((t for t in ran.outputs if _is_bad(t)), None)
            if bad is None or any(_is_bad(t) for t in ran.inputs):
                continue
            rows = _rows(bad, self.size)
            if ran.layer is None:
                return self._in_loss(ran, rows)
            return Autopsy(
                "forward",
                ran.layer,
                rows,
                f"the layer {ran.layer or 'model'!r}, {ran.kind}, turned finite inputs (largest "
                f"{_largest(ran.inputs):.3g}) into {_kind(bad)}{_listed(rows)}, by the operation "
                f"{ran.name}",
                ran.name,
                ran.line,
                "smaller weights or inputs, a lower rate, or a form of the operation that does not "
                "overflow",
            )
        return None

    def _in_loss(self, ran: _Ran, rows: list[int]) -> Autopsy:
        value = float("nan") if self.value is None else float(self.value.detach())
        top = _largest(tensors(self.output))
        return Autopsy(
            "loss",
            "",
            rows,
            f"the outputs are finite (largest {top:.3g}), but the loss is {value}{_listed(rows)}: "
            f"a logarithm of zero or an overflow in {ran.name}",
            ran.name,
            ran.line,
            "use a loss that takes logits, or smaller outputs (a lower rate)",
        )

    def backward(self) -> Autopsy | None:
        """The last operation whose rule turns a finite gradient into one that is not."""
        if self.value is None or not self.value.requires_grad:
            return None
        made = [t for ran in self.ran for t in ran.outputs if t.requires_grad]
        back = grad(self.value, made, retain_graph=True, allow_unused=True)
        arrived = {id(t): g for t, g in zip(made, back, strict=True)}
        for ran in reversed(self.ran):
            found = self._gradients_in(ran, arrived)
            bad = next((g for g in found if _is_bad(g)), None)
            if bad is None:
                continue
            rows = _rows(bad, self.size)
            place = f"the layer {ran.layer or 'model'!r}, {ran.kind}" if ran.kind else "the loss"
            given = [g for t in ran.outputs if (g := arrived.get(id(t))) is not None]
            return Autopsy(
                "backward",
                ran.layer or "",
                rows,
                f"the gradient is not finite: in {place}, the operation {ran.name} turned a finite "
                f"gradient (largest {_largest(given):.3g}) into {_kind(bad)}{_listed(rows)}",
                ran.name,
                ran.line,
                f"the derivative of {ran.name} has no finite value there (a root or a logarithm at "
                "0, a quotient by 0): move its input away from that point",
            )
        return None

    def _gradients_in(self, ran: _Ran, arrived: dict[int, Tensor | None]) -> list[Any]:
        """What an operation alone gives to its inputs, if what came to its output was finite."""
        given = [(t, g) for t in ran.outputs if (g := arrived.get(id(t))) is not None]
        wanted = [t for t in ran.inputs if t.requires_grad]
        if not given or not wanted or any(_is_bad(g) for _, g in given):
            return []
        outputs, gradients = zip(*given, strict=True)
        return list(grad(outputs, wanted, gradients, retain_graph=True, allow_unused=True))


def _in_update(step: _Step, optimizer: Optimizer | None) -> Autopsy | None:
    """Whether the parameters of a copy survive the step."""
    if optimizer is None or step.loss is None or isinstance(optimizer, Minimizer):
        return None
    own, stepper = copy.deepcopy((step.model, optimizer))

    def closure() -> Tensor:
        stepper.zero_grad()
        with enable_grad():
            value = mean(step.loss(own(*step.args, **step.kwargs), step.target))  # type: ignore[misc]
        value.backward()
        return value

    try:
        stepper.step(closure)
    except NotFiniteError as error:
        return Autopsy("backward", "", [], f"the gradient is not finite: {error}")
    with no_grad():
        for name, p in own.named_parameters():
            if _is_bad(p):
                rate = stepper.param_groups[0].get("lr")
                grown = [] if p.grad is None else [p.grad]
                return Autopsy(
                    "update",
                    name,
                    [],
                    f"the gradient of {name!r} is finite (largest {_largest(grown):.3g}), but the "
                    f"step of {type(stepper).__name__} at rate {rate} makes {_kind(p)} of it",
                    type(stepper).__name__,
                    remedy="lower the learning rate or clip gradients",
                )
    return None

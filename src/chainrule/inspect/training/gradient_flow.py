"""How the gradient flows back through a network: its size at each layer, from one backward pass."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from chainrule.autograd.engine import grad
from chainrule.autograd.modes import enable_grad
from chainrule.inspect.core.arguments import arguments, check_samples, of_batch
from chainrule.charts import COLORS, grid_of_axes
from chainrule.inspect.core.registry import instrument
from chainrule.inspect.core.results import Result
from chainrule.inspect.core.tracing import Call, Trace, recorded
from chainrule.inspect.training.choosing import label
from chainrule.inspect.training.statistics import as_values, norm_of
from chainrule.nn.module.base import Module
from chainrule.ops.elementwise.logic import isfinite
from chainrule.printing import text_table
from chainrule.tensor import Tensor

__all__ = ["GradientFlow", "LayerFlow", "ParameterFlow", "gradient_flow", "loss_with_gradients"]

# A layer whose gradient is this much smaller or larger than that of the last layer.
FAR = 1000.0


@dataclass
class LayerFlow:
    """The gradient of the loss by the output of one layer."""

    name: str
    kind: str
    norm: float
    rms: float  # per element: the norm over the root of their number
    relative: float  # to that of the last layer
    verdict: str


@dataclass
class ParameterFlow:
    """The gradient of the loss by one parameter; NaN where there is none."""

    name: str
    size: int
    norm: float
    weight_norm: float
    state: str  # "", "frozen", "unused", "zero" or "not finite"


@dataclass(repr=False, eq=False)
class GradientFlow(Result):
    """The sizes of all gradients in the order of the layers, and what they mean.

    ``factor`` is by how much the gradient grows on average from a layer to the one before it.
    """

    loss: float
    layers: list[LayerFlow]
    parameters: list[ParameterFlow]
    factor: float
    verdict: str  # of the whole: "vanishing", "stable", "exploding", "dead" or "not finite"

    def __str__(self) -> str:
        rows = [
            [f.name, f.kind, f"{f.norm:.3g}", f"{f.rms:.3g}", f"{f.relative:.3g}", f.verdict]
            for f in self.layers
        ]
        header = ["layer", "kind", "norm of dL/dy", "per element", "to the last", "verdict"]
        layers = text_table(header, rows, left=2, rule=True)
        found = [
            [p.name, str(p.size), _number(p.norm), f"{p.weight_norm:.3g}", p.state]
            for p in self.parameters
        ]
        header = ["parameter", "size", "norm of dL/dw", "norm of w", ""]
        parameters = text_table(header, found, left=1, rule=True)
        said = (
            f"{self.verdict}: loss {self.loss:.4g}, the gradient takes the factor "
            f"{self.factor:.3g} per layer on its way back"
        )
        return "\n\n".join([layers, parameters, "\n".join([said, *self.remedies()])])

    def remedies(self) -> list[str]:
        """What to do."""
        advice = {
            "vanishing": "use ReLU or SELU instead of saturating activations, normalization, "
            "residual links, or weights of larger variance (nn.init.preserve_variance_)",
            "exploding": "clip gradients (clip_norm), use normalization, or weights of smaller "
            "variance (nn.init.preserve_variance_)",
            "dead": "all units of a layer are switched off: lower the rate, use leaky ReLU, and "
            "look at inspect.activations",
            "not finite": "look at inspect.autopsy, scale the inputs, lower the learning rate",
        }
        found = [advice[self.verdict]] if self.verdict in advice else []
        unused = [p.name for p in self.parameters if p.state == "unused"]
        if unused:
            found.append(
                f"{', '.join(unused[:6])}: the loss does not depend on them; is a layer left out "
                "of forward, or detached?"
            )
        return found

    def plot(self, *, axes: Any = None, **style: Any) -> list[Any]:
        """Draws the gradient at each layer's output and at each parameter, on logarithmic axes."""
        made = grid_of_axes(axes, 2, 2, (4.8, max(2.6, 0.24 * self._rows + 1.2)))
        _bars(made[0], [f.name for f in self.layers], [f.rms for f in self.layers], style)
        made[0].set(xlabel="root mean square of dL/dy", title="Gradient at each layer's output")
        seen = [p for p in self.parameters if p.norm > 0]
        _bars(
            made[1], [p.name for p in seen], [p.norm for p in seen], {"color": COLORS[1], **style}
        )
        made[1].set(xlabel="norm of dL/dw", title="Gradient of each parameter")
        return made

    @property
    def _rows(self) -> int:
        return max(len(self.layers), len(self.parameters))


def _bars(ax: Any, names: list[str], values: list[float], style: dict[str, Any]) -> None:
    """Horizontal bars, the first layer on top; values of zero have no bar."""
    places = range(len(names))
    known = [v for v in values if v > 0 and math.isfinite(v)]
    low = 10 ** (math.floor(math.log10(min(known))) - 0.5) if known else 1e-3
    shown = [v if v > 0 and math.isfinite(v) else low for v in values]
    ax.barh(places, [v - low for v in shown], left=low, **{"color": COLORS[0], **style})
    ax.set_yticks(places, names, fontsize=8)
    ax.invert_yaxis()
    if known:
        ax.set_xscale("log")
        ax.set_xlim(left=low)
        ax.xaxis.set_minor_formatter(lambda value, place: "")  # between decades there is no room
    ax.grid(True, axis="x", alpha=0.3)


def loss_with_gradients(
    instrument_name: str, model: Module, loss: Callable[[Any, Any], Tensor], data: Any
) -> tuple[Tensor, Trace]:
    """The loss of a batch with its graph, and the trace of the pass it was made in."""
    inputs, targets = of_batch(instrument_name, data)
    check_samples(instrument_name, inputs)
    args, kwargs = arguments(instrument_name, inputs)
    with enable_grad():
        with recorded(model) as seen:
            output = model(*args, **kwargs)
        value = loss(output, targets)
    if not isinstance(value, Tensor) or value.numel() != 1:
        shape = tuple(value.shape) if isinstance(value, Tensor) else type(value).__name__
        raise ValueError(
            f"{instrument_name}: the loss must be one number, got {shape}; reduce it, by mean or "
            "by sum"
        )
    if not value.requires_grad:
        raise ValueError(
            f"{instrument_name}: the loss does not depend on anything that asks for a gradient; "
            "are all parameters frozen, or is the output detached?"
        )
    return value, seen


@instrument("V18", "V19", needs=("model", "loss", "data"))
def gradient_flow(model: Module, loss: Callable[[Any, Any], Tensor], data: Any) -> GradientFlow:
    """The size of the gradient at each layer and each parameter, from one backward pass.

    Args:
        model: any module, in the mode that it is in.
        loss: a function of the model's output and the targets that gives one number.
        data: a pair (inputs, targets), or a loader of which the first batch is taken.

    >>> import chainrule
    >>> from chainrule import inspect, nn
    >>> _ = chainrule.manual_seed(0)
    >>> layers = [layer for _ in range(12) for layer in (nn.Linear(6, 6), nn.Sigmoid())]
    >>> batch = chainrule.randn(20, 6), chainrule.randn(20, 6)
    >>> inspect.gradient_flow(nn.Sequential(*layers), nn.functional.mse_loss, batch).verdict
    'vanishing'
    """
    value, seen = loss_with_gradients("gradient_flow", model, loss, data)
    calls = [c for c in seen.calls if not c.children and _output(c) is not None]
    outputs: list[Any] = [_output(c) for c in calls]
    parameters = [(n, p) for n, p in model.named_parameters() if p.requires_grad]
    wanted = [*outputs, *[p for _, p in parameters]]
    found = grad(value, wanted, allow_unused=True)
    layers = _layers(model, calls, found[: len(calls)])
    by_name = dict(zip([n for n, _ in parameters], found[len(calls) :], strict=True))
    sizes = [_parameter(n, p, by_name) for n, p in model.named_parameters()]
    return GradientFlow(float(value.detach()), layers, sizes, _factor(layers), _whole(layers))


def _output(call: Call) -> Tensor | None:
    return next((t for t in call.outputs if t.requires_grad), None)


def _layers(model: Module, calls: list[Call], gradients: tuple[Any, ...]) -> list[LayerFlow]:
    found = []
    counts: dict[str, int] = {}
    for call, g in zip(calls, gradients, strict=True):
        values = None if g is None else as_values(g)
        if values is None:  # what it returned was not used
            continue
        name = label(call.path, model)
        counts[name] = counts.get(name, 0) + 1
        name += f"#{counts[name]}" if counts[name] > 1 else ""
        norm = norm_of(values) if bool(isfinite(values).all()) else math.nan
        rms = norm / math.sqrt(values.numel())
        found.append(LayerFlow(name, call.kind, norm, rms, math.nan, ""))
    last = next((f.rms for f in reversed(found) if f.rms > 0), math.nan)
    for f in found:
        f.relative = f.rms / last
        f.verdict = _verdict(f)
    return found


def _verdict(layer: LayerFlow) -> str:
    if math.isnan(layer.norm):
        return "not finite"
    if layer.norm == 0:
        return "dead"
    if layer.relative < 1 / FAR:
        return "vanishing"
    return "exploding" if layer.relative > FAR else "stable"


def _whole(layers: list[LayerFlow]) -> str:
    verdicts = [f.verdict for f in layers]
    order = ("not finite", "dead", "exploding", "vanishing")
    return next((v for v in order if v in verdicts), "stable")


def _factor(layers: list[LayerFlow]) -> float:
    known = [f.rms for f in layers if f.rms > 0]
    if len(known) < 2:
        return 1.0
    return math.exp(math.log(known[0] / known[-1]) / (len(known) - 1))


def _parameter(name: str, p: Tensor, gradients: dict[str, Any]) -> ParameterFlow:
    values = as_values(p)
    weight = 0.0 if values is None else norm_of(values)
    if name not in gradients:
        return ParameterFlow(name, p.numel(), math.nan, weight, "frozen")
    g = None if gradients[name] is None else as_values(gradients[name])
    if g is None:
        return ParameterFlow(name, p.numel(), math.nan, weight, "unused")
    if not bool(isfinite(g).all()):
        return ParameterFlow(name, p.numel(), math.nan, weight, "not finite")
    norm = norm_of(g)
    return ParameterFlow(name, p.numel(), norm, weight, "" if norm else "zero")


def _number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.3g}"

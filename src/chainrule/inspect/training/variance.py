"""How second moments pass from layer to layer: as theory says, and as measured."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from chainrule.autograd.engine import grad
from chainrule.autograd.modes import enable_grad
from chainrule.inspect.core.arguments import Inputs, arguments, check_finite, main_tensor
from chainrule.charts import COLORS, grid_of_axes, log_if_wide
from chainrule.inspect.core.registry import instrument
from chainrule.inspect.core.results import Result
from chainrule.inspect.core.tracing import Call, Trace, recorded
from chainrule.inspect.training.choosing import has_sums, label
from chainrule.inspect.training.passes import NONLINEAR
from chainrule.nn.activations.moments import gaussian_expectation, slope
from chainrule.nn.init.tensors import fan_in_and_fan_out
from chainrule.nn.module.base import Module
from chainrule.ops.core.apply import apply
from chainrule.ops.creation.sampling import randn
from chainrule.ops.reduce.reductions import sum as sum_over
from chainrule.printing import text_table
from chainrule.tensor import Tensor

__all__ = ["LayerVariance", "VariancePropagation", "variance_propagation"]

SAME = frozenset(("reshape", "flatten", "view", "squeeze", "unsqueeze", "contiguous", "movedim"))
FAR = 10.0  # growth or decay over all layers that is worth a word

Function = Callable[[Tensor], Tensor]


@dataclass
class LayerVariance:
    """Second moments at one layer with weights: J inputs, I outputs, weights w, sums s.

    ``predicted`` is F(q) = J E[w^2] E[f(sqrt(q) Z)^2] + E[b^2] from what was predicted for the
    layer below, where an activation function f alone lies between them; else (``chained`` False)
    J E[w^2] E[x^2] + E[b^2] from the inputs as measured. Gradients g are those of a random
    direction of the output: I E[w^2] E[f'(sqrt(q) Z)^2] times that of the layer above.
    """

    name: str
    fan_in: int
    fan_out: int
    weight_variance: float  # J E[w^2]
    input_moment: float
    measured: float
    predicted: float
    chained: bool
    gradient_measured: float
    gradient_predicted: float  # NaN where there is no chain to the layer above


@dataclass(repr=False, eq=False)
class VariancePropagation(Result):
    """Measured and predicted second moments by layer."""

    layers: list[LayerVariance]

    @property
    def growth(self) -> float:
        """The factor of E[s^2] from the first to the last layer."""
        return self.layers[-1].measured / self.layers[0].measured

    @property
    def verdict(self) -> str:
        """Whether signals keep their size."""
        if not math.isfinite(self.growth) or self.growth > FAR:
            return "growing"
        return "shrinking" if self.growth < 1 / FAR else "kept"

    def __str__(self) -> str:
        header = ["layer", "J", "J E[w^2]", "E[s^2]", "predicted", "E[g^2]", "predicted"]
        rows = [
            [f.name + ("" if f.chained else " *"), str(f.fan_in)]
            + [f"{v:.3g}" for v in (f.weight_variance, f.measured, f.predicted)]
            + [f"{v:.3g}" if v == v else "" for v in (f.gradient_measured, f.gradient_predicted)]
            for f in self.layers
        ]
        table = text_table(header, rows, left=1, rule=True)
        lines = [table, "* predicted from its inputs as measured, not from the layer below"]
        lines.append(f"signals are {self.verdict}: a factor {self.growth:.3g} over all layers")
        if self.verdict != "kept":
            lines.append(
                "draw the weights so that J E[w^2] = nn.init.gain(activation): "
                "nn.init.preserve_variance_(model, activation)"
            )
        return "\n".join(lines)

    def plot(self, *, axes: Any = None, **style: Any) -> list[Any]:
        """Draws measured and predicted second moments of sums and of gradients, by layer."""
        made = grid_of_axes(axes, 2, 2, (4.6, 3.4))
        names = [f.name for f in self.layers]
        for ax, measured, predicted, title in (
            (
                made[0],
                [f.measured for f in self.layers],
                [f.predicted for f in self.layers],
                "Sums: E[s^2]",
            ),
            (
                made[1],
                [f.gradient_measured for f in self.layers],
                [f.gradient_predicted for f in self.layers],
                "Gradients: E[g^2]",
            ),
        ):
            places = range(len(names))
            ax.plot(places, measured, "o", **{"color": COLORS[0], "label": "measured", **style})
            ax.plot(places, predicted, color=COLORS[1], marker="x", label="predicted")
            log_if_wide(ax, [v for v in (*measured, *predicted) if math.isfinite(v)])
            ax.set_xticks(places, names, rotation=60, ha="right", fontsize=8)
            ax.set(xlabel="layer", ylabel="second moment", title=title)
            ax.legend(fontsize=8, frameon=False)
            ax.grid(True, alpha=0.3)
        return made


@instrument("N09", "N10", needs=("model", "inputs"))
def variance_propagation(model: Module, inputs: Inputs) -> VariancePropagation:
    """Second moments of sums and gradients at each layer, beside what the theory predicts.

    The theory is that of wide layers with independent weights: exact on average at the start of
    training. Padding and weights that have learned lead away from it.

    Args:
        model: any module with layers that have weights (linear, convolutional).
        inputs: what it is called with.

    >>> import chainrule
    >>> from chainrule import inspect, nn
    >>> _ = chainrule.manual_seed(0)
    >>> layers = [layer for _ in range(4) for layer in (nn.Linear(400, 400), nn.ReLU())]
    >>> model = nn.init.preserve_variance_(nn.Sequential(*layers), "relu")
    >>> found = inspect.variance_propagation(model, chainrule.randn(50, 400))
    >>> all(0.8 < layer.measured / layer.predicted < 1.25 for layer in found.layers)
    True
    """
    check_finite("variance_propagation", model, inputs)
    args, kwargs = arguments("variance_propagation", inputs)
    with enable_grad():
        with recorded(model) as seen:
            output = main_tensor("variance_propagation", model(*args, **kwargs))
        calls = [c for c in seen.calls if has_sums(c.module) and c.outputs and c.inputs]
        if not calls:
            raise ValueError(
                f"variance_propagation: no layer with a weight matrix ran in "
                f"{type(model).__name__}; recurrent layers are shown by through_time"
            )
        sums = [c.outputs[0] for c in calls]
        wanted = [s for s in sums if s.requires_grad]
        noise = randn(output.shape, dtype=output.dtype)
        gradients: list[Any] = [None] * len(sums)
        if wanted and output.requires_grad:
            found = grad(sum_over(output * noise), wanted, allow_unused=True)
            by_id = {id(s): g for s, g in zip(wanted, found, strict=True)}
            gradients = [by_id.get(id(s)) for s in sums]
    return VariancePropagation(_compared(model, seen, calls, gradients))


def _compared(
    model: Module, seen: Trace, calls: list[Call], gradients: list[Any]
) -> list[LayerVariance]:
    found: list[LayerVariance] = []
    between: list[Function | None] = [None]
    counts: dict[str, int] = {}
    for i, call in enumerate(calls):
        name = label(call.path, model)
        counts[name] = counts.get(name, 0) + 1
        name += f"#{counts[name]}" if counts[name] > 1 else ""
        weight: Any = call.module._parameters["weight"]
        bias = call.module._parameters.get("bias")
        fan_in, fan_out = fan_in_and_fan_out(weight)
        scale = fan_in * _moment(weight)
        shift = 0.0 if bias is None else _moment(bias)
        x = _moment(call.inputs[0])
        f = _function_between(seen, calls[i - 1], call) if i else None
        between.append(f)
        below = _expected(f, found[-1].predicted) if f is not None else x
        g = math.nan if gradients[i] is None else _moment(gradients[i])
        found.append(
            LayerVariance(
                name,
                fan_in,
                fan_out,
                scale,
                x,
                _moment(call.outputs[0]),
                scale * below + shift,
                f is not None,
                g,
                math.nan,
            )
        )
    for lower, upper, f in zip(found, found[1:], between[2:], strict=False):
        if f is not None:
            back = upper.fan_out * upper.weight_variance / upper.fan_in
            lower.gradient_predicted = (
                back * _expected(slope(f), lower.predicted) * upper.gradient_measured
            )
    return found


def _moment(x: Tensor) -> float:
    return float(x.detach().double().square().mean())


def _expected(f: Function, q: float) -> float:
    """E[f(sqrt(q) Z)^2], also where q has died out or has overflowed."""
    if not 1e-300 < q < 1e300:
        return math.nan
    return gaussian_expectation(lambda s: f(s) ** 2, 0.0, q)


def _function_between(seen: Trace, lower: Call, upper: Call) -> Function | None:
    """The activation function through which the sums of one layer reach the next; None where
    something else lies between them."""
    users: dict[int, list[Any]] = {}
    for op in seen.operations:
        for t in op.inputs:
            users.setdefault(id(t), []).append(op)
    here, target = lower.outputs[0], upper.inputs[0]
    steps: list[Any] = []
    while here is not target:
        using = users.get(id(here), [])
        if len(using) != 1 or len(using[0].outputs) != 1:
            return None
        op = using[0]
        if op.name in NONLINEAR and len(op.inputs) == 1:
            steps.append(op)
        elif op.name not in SAME:
            return None
        here = op.outputs[0]

    def function(x: Tensor) -> Tensor:
        for op in steps:
            x = apply(op.op, (x,), op.params)
        return x

    return function

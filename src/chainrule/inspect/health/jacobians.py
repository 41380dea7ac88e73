"""Whether gradients shrink or grow in each layer, by the norm of its Jacobian against 1."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from chainrule.autograd import grad
from chainrule.autograd.modes import enable_grad
from chainrule.backend import dtypes
from chainrule import charts
from chainrule.inspect.core.arguments import Inputs, arguments, check_finite, main_tensor, tensors
from chainrule.inspect.core.registry import instrument
from chainrule.inspect.core.results import Result
from chainrule.inspect.core.tracing import Call, Operation, Trace, recorded
from chainrule.inspect.health.passes import is_weighted
from chainrule.linalg import svdvals
from chainrule.nn.module.base import Module
from chainrule.nn.recurrent.base import RNNBase
from chainrule.ops.creation.patterns import eye, ones_like, zeros_like
from chainrule.ops.creation.sampling import randn_like
from chainrule.printing import text_table
from chainrule.tensor import Tensor

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["LayerGain", "LayerJacobians", "layer_jacobians"]

EXACT = 256  # outputs of a sample up to which all singular values are computed
ITERATIONS, PROBES = 30, 8
ACTIVATIONS = ("relu", "sigmoid", "tanh", "elu", "gelu", "silu", "softplus", "prelu", "mish")
# Rounding, and the last digits of a power iteration, are no growth.
SLACK = 0.05


@dataclass(frozen=True)
class LayerGain:
    """A layer with what follows it up to the next layer.

    ``norm`` is the largest singular value of its Jacobian, the most by which a gradient can grow on
    its way back; ``gain`` the root of the mean square over all directions, by which it grows on the
    average; both are means over the samples. ``slope`` is the largest derivative of the activation
    (NaN without one). A gradient of any direction shrinks where ``norm`` is below 1 ("vanishing"),
    and grows on the average where ``gain`` is above 1 ("exploding").
    """

    name: str
    kind: str
    norm: float
    gain: float
    slope: float
    exact: bool

    @property
    def verdict(self) -> str:
        """ "vanishing", "stable" or "exploding"."""
        if self.gain > 1 + SLACK:
            return "exploding"
        return "vanishing" if self.norm < 1 - SLACK else "stable"


@dataclass(repr=False)
class LayerJacobians(Result):
    """The Jacobians of all layers, from the input to the output."""

    layers: list[LayerGain]
    samples: int

    @property
    def verdicts(self) -> list[str]:
        """The verdict of each layer."""
        return [x.verdict for x in self.layers]

    @property
    def product(self) -> float:
        """The gains of all layers multiplied: in a chain, what becomes of a gradient."""
        return math.prod(x.gain for x in self.layers)

    def __str__(self) -> str:
        rows = [
            [
                x.name or "(model)",
                x.kind,
                f"{x.norm:.3g}{'' if x.exact else ' ~'}",
                f"{x.gain:.3g}",
                "" if math.isnan(x.slope) else f"{x.slope:.3g}",
                x.verdict,
            ]
            for x in self.layers
        ]
        table = text_table(["layer", "kind", "norm", "gain", "max f'", "verdict"], rows, left=2)
        return f"{table}\n{self._summary()}"

    def _summary(self) -> str:
        n = len(self.layers)
        text = f"the gains of {n} layer{'s' * (n > 1)} multiply to {self.product:.2g}"
        if self.product < 1e-4:
            return f"{text}: gradients vanish; use ReLU with kaiming_normal_, norms, or skip links"
        if self.product > 1e3:
            return f"{text}: gradients explode; start with smaller weights, or use norms"
        return text

    def plot(self, ax: Axes | None = None, **style: Any) -> Axes:
        """Draws norm and gain of each layer, with the line at 1 that decides."""
        ax = charts.axes_for(ax, (6.8, 4.0))
        places = list(range(len(self.layers)))
        names = [x.name or "(model)" for x in self.layers]
        for label, mark, color, values in (
            ("largest singular value", "^-", charts.COLORS[0], [x.norm for x in self.layers]),
            ("mean over directions", "o-", charts.COLORS[2], [x.gain for x in self.layers]),
        ):
            ax.plot(places, values, mark, label=label, **{"color": color, **style})
        ax.axhline(1.0, color="#555", linewidth=1, linestyle="--", label="1: no change")
        charts.log_if_wide(ax, [v for x in self.layers for v in (x.norm, x.gain)])
        few = max(1, math.ceil(len(names) / 12))
        ax.set_xticks(places[::few], names[::few], rotation=30, ha="right")
        counts = {v: self.verdicts.count(v) for v in self.verdicts}
        found = ", ".join(f"{n} {v}" for v, n in counts.items())
        ax.set(xlabel="layer", ylabel="factor", title=f"Jacobian of each layer: {found}")
        ax.margins(y=0.15)
        ax.legend(loc="best", fontsize="small")
        return ax


@instrument("V19", needs=("model", "inputs"))
def layer_jacobians(model: Module, inputs: Inputs, *, samples: int = 8) -> LayerJacobians:
    """How much gradients shrink or grow in each layer, with a verdict by its Jacobian's norm.

    A layer is taken with everything that follows it up to the input of the next one: for W x and
    an activation f the Jacobian is diag(f') W. It is read off the recorded graph, so that
    functional code and skip links count as they run. Layers of up to 256 outputs are computed
    exactly, larger ones by power iteration (marked ~). The model is in evaluation mode, in which
    samples do not touch each other.

    Args:
        model: any module with at least one layer that has weights.
        inputs: what it is called with.
        samples: of how many samples of the batch the mean is taken.

    >>> import chainrule
    >>> from chainrule import inspect, nn
    >>> net = nn.Sequential(nn.Linear(3, 3, bias=False), nn.Sigmoid(), nn.Linear(3, 1))
    >>> _ = nn.init.eye_(net[0].weight)
    >>> first = inspect.layer_jacobians(net, chainrule.zeros(1, 3)).layers[0]
    >>> first.norm, first.slope, first.verdict
    (0.25, 0.25, 'vanishing')
    """
    if samples < 1:
        raise ValueError(f"layer_jacobians: samples must be positive, got {samples}")
    check_finite("layer_jacobians", model, inputs)
    model.eval()
    args, kwargs = arguments("layer_jacobians", inputs)
    args = tuple(_leaf(a, samples) for a in args)
    kwargs = {name: _leaf(a, samples) for name, a in kwargs.items()}
    with enable_grad(), recorded(model) as trace:
        output = main_tensor("layer_jacobians", model(*args, **kwargs))
    calls = [c for c in trace.calls if c.finished and is_weighted(c.module) and c.outputs]
    if not calls:
        raise ValueError(
            f"layer_jacobians: {type(model).__name__} has no layer with weights that was called; "
            "modules that hold a weight of two or more dimensions are layers"
        )
    found = []
    for call, after in zip(calls, [*calls[1:], None], strict=True):
        end = output if after is None else _float(after.inputs)
        gain = _gain(trace, call, end)
        if gain is not None:
            found.append(gain)
    first = tensors((args, kwargs))
    return LayerJacobians(found, int(first[0].shape[0]) if first and first[0].ndim else 1)


def _leaf(value: Any, samples: int) -> Any:
    """The first samples, as a tensor whose derivative can be asked for."""
    if not isinstance(value, Tensor) or value.ndim == 0:
        return value
    part = value.detach()[:samples]
    return part.clone().requires_grad_() if part.dtype.is_floating_point else part


def _float(found: list[Tensor]) -> Tensor | None:
    return next((t for t in found if t.dtype.is_floating_point and t.ndim), None)


def _gain(trace: Trace, call: Call, end: Tensor | None) -> LayerGain | None:
    """The gain from the input of a call to the input of the next layer, or to its own output where
    that one does not depend on it."""
    start = _float(call.inputs)
    if start is None or not start.requires_grad:
        return None  # an embedding: its input has no derivative
    for stop in (end, call.outputs[0]):
        if stop is None or not stop.requires_grad or stop is start:
            continue
        block = _Block(start, stop, _mixes_samples(call.module))
        if not block.connected:
            continue
        norm, gain, exact = block.norms()
        return LayerGain(call.path, call.kind, norm, gain, _slope(trace, call, stop), exact)
    return None


def _mixes_samples(module: Module) -> bool:
    """Whether the first dimension is time."""
    return isinstance(module, RNNBase) and not module.batch_first


class _Block:
    """The derivative of one tensor by another, sample by sample where both have the samples."""

    def __init__(self, start: Tensor, stop: Tensor, mixed: bool):
        self.start, self.stop = start, stop
        together = not mixed and start.ndim > 1 and stop.ndim > 1
        self.samples = start.shape[0] if together and start.shape[0] == stop.shape[0] else 1
        self.outputs = stop.numel() // self.samples
        self.connected = self._back(ones_like(stop)) is not None

    def _back(self, v: Tensor, create_graph: bool = False) -> Tensor | None:
        (found,) = grad(
            self.stop,
            self.start,
            v,
            retain_graph=True,
            create_graph=create_graph,
            allow_unused=True,
        )
        return found

    def norms(self) -> tuple[float, float, bool]:
        """The largest singular value, the root mean square over directions, and if they are exact:
        means over the samples."""
        if self.outputs <= EXACT:
            values = svdvals(self._matrix())
            gain = (values.square().sum(-1) / self.outputs).sqrt()
            return float(values[:, 0].mean()), float(gain.mean()), True
        return self._largest(), self._average(), False

    def _matrix(self) -> Tensor:
        """The Jacobian of every sample, row by row. Shape: (samples, outputs, inputs)."""
        units = eye(self.outputs, dtype=self.stop.dtype).unsqueeze(1)
        each = units.expand(self.outputs, self.samples, self.outputs)
        (rows,) = grad(
            self.stop,
            self.start,
            each.reshape(self.outputs, *self.stop.shape),
            retain_graph=True,
            is_grads_batched=True,
        )
        flat = rows.detach().reshape(self.outputs, self.samples, -1)
        return flat.transpose(0, 1).to(dtypes.float64)

    def _along(self, u: Tensor) -> Tensor:
        """J u, as the derivative of v J by v."""
        v = zeros_like(self.stop).requires_grad_()
        back = self._back(v, create_graph=True)
        if back is None or not back.requires_grad:
            return zeros_like(self.stop)
        (found,) = grad(back, v, u, allow_unused=True)
        return zeros_like(self.stop) if found is None else found.detach()

    def _largest(self) -> float:
        """By power iteration on J^T J."""
        u = randn_like(self.start.detach())
        size = ones_like(u.reshape(self.samples, -1)[:, :1])
        for _ in range(ITERATIONS):
            u = self._unit(u)[0]
            forward = self._along(u)
            back = self._back(forward)
            if back is None:
                return 0.0
            size = self._unit(forward)[1]
            u = back.detach()
        return float(size.mean())

    def _unit(self, t: Tensor) -> tuple[Tensor, Tensor]:
        flat = t.reshape(self.samples, -1)
        norms = flat.square().sum(1, keepdim=True).sqrt()
        return (flat / norms.clamp(min=1e-30)).reshape(*t.shape), norms

    def _average(self) -> float:
        """E |J^T v|^2 / |v|^2 over random directions v."""
        total = 0.0
        for _ in range(PROBES):
            v = self._unit(randn_like(self.stop.detach()))[0]
            back = self._back(v)
            total += 0.0 if back is None else float(self._unit(back.detach())[1].square().mean())
        return math.sqrt(total / PROBES)


def _slope(trace: Trace, call: Call, stop: Tensor) -> float:
    """The largest derivative of the activations between a layer and the next one."""
    numbers = [o.number for o in call.operations]
    first = max(numbers, default=-1)
    until = next((o.number for o in trace.operations if any(t is stop for t in o.outputs)), None)
    last = first if until is None else until
    slopes = [
        _largest_slope(o)
        for o in trace.operations[: last + 1]
        if o.number > first and o.name in ACTIVATIONS and o.inputs[0].requires_grad
    ]
    return max(slopes, default=math.nan)


def _largest_slope(operation: Operation) -> float:
    out = operation.outputs[0]
    (found,) = grad(out, operation.inputs[0], ones_like(out), retain_graph=True, allow_unused=True)
    return math.nan if found is None else float(found.detach().abs().max())

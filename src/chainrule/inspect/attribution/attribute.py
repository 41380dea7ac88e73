"""What each input contributed to an output, and whether the contributions add up."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from chainrule.autograd.modes import no_grad
from chainrule.inspect.attribution.methods import METHODS
from chainrule.inspect.attribution.outputs import Explained
from chainrule import charts
from chainrule.inspect.core.arguments import Inputs
from chainrule.inspect.core.registry import instrument
from chainrule.inspect.core.results import Result
from chainrule.nn.module.base import Module
from chainrule.ops.creation.from_data import as_tensor
from chainrule.ops.creation.patterns import zeros_like
from chainrule.printing import text_table
from chainrule.tensor import Tensor

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Attribution", "attribute"]


@dataclass(repr=False, eq=False)
class Attribution(Result):
    """The contributions of every input: ``values`` in the shapes of the inputs.

    ``change`` is f(x) - f(baseline) of each sample, ``sums`` the sum of its contributions. A method
    that explains completely has no ``gap`` between them.
    """

    method: str
    names: list[str]
    inputs: list[Tensor]
    values: list[Tensor]
    target: Tensor
    outputs: Tensor
    change: Tensor
    sums: Tensor
    complete: bool

    @property
    def gap(self) -> float:
        """The largest part of a change that the contributions miss, relative to it."""
        scale = self.change.abs().clamp(min=1e-6 * float(self.outputs.abs().max()) + 1e-12)
        return float(((self.sums - self.change).abs() / scale).max())

    def __str__(self) -> str:
        sizes = [float(v.abs().mean()) for v in self.values]
        rows = []
        for name, value, size in zip(self.names, self.values, sizes, strict=True):
            rows += [[f"{name} {tuple(value.shape[1:])}", f"{size:.4g}", self._largest(value)]]
        table = text_table(["input", "mean |contribution|", "largest at"], rows, left=1, rule=True)
        return f"{self.method} of {len(self.target)} samples\n{table}\n{self._verdict()}"

    def _largest(self, value: Tensor) -> str:
        mean = value.abs().mean(0)
        place, shape = int(mean.reshape(-1).argmax()), tuple(mean.shape)
        index = []
        for size in reversed(shape):
            index.append(place % size)
            place //= size
        return str(index[0] if len(index) == 1 else tuple(reversed(index)))

    def _verdict(self) -> str:
        if self.method == "sensitivity":
            return "Sensitivities are sizes of slopes: they do not add up to the output."
        if self.method == "occlusion":
            return (
                "Each number is what the output loses without its window: windows that share or "
                "repeat what matters do not add up to the output."
            )
        text = f"The contributions miss {self.gap:.2%} of the change of the output at most"
        if self.gap <= 0.01:
            return f"{text}: they add up."
        remedy = {
            "integrated_gradients": "raise steps=",
            "deeplift": "compare with integrated_gradients",
        }.get(self.method, "use integrated_gradients or deeplift, which add up")
        return f"{text}: they do not add up; {remedy}."

    def plot(self, ax: Axes | None = None, *, sample: int = 0, input: int = 0, **style: Any) -> Any:
        """Draws one sample: an image with its contributions, a table's features, a series."""
        if not -len(self.target) <= sample < len(self.target):
            raise IndexError(f"plot: there is no sample {sample}; there are {len(self.target)}")
        if not -len(self.names) <= input < len(self.names):
            raise IndexError(f"plot: there is no input {input}; there are {self.names}")
        value = self.values[input][sample]
        ax = charts.axes_for(ax, (5.2, 4.0))
        kind = self.method.replace("_", " ")
        of = f", {self.names[input]}" if len(self.names) > 1 else ""
        ax.set_title(f"{kind} for output {int(self.target[sample])} of sample {sample}{of}")
        if value.ndim == 3 or (value.ndim == 2 and min(value.shape) > 1):
            self._image(ax, value, **style)
        else:
            self._bars(ax, value.reshape(-1), **style)
        return ax

    def _image(self, ax: Axes, value: Tensor, **style: Any) -> None:
        flat = value.sum(0) if value.ndim == 3 else value
        top = float(flat.abs().max()) or 1.0
        signed = self.method != "sensitivity"
        looks: dict[str, Any] = {
            "cmap": charts.DIVERGING if signed else charts.SEQUENTIAL,
            "vmin": -top if signed else 0.0,
            "vmax": top,
            "interpolation": "nearest",
        }
        drawn = ax.imshow(flat.numpy(), **looks | style)
        charts.add_colorbar(ax, drawn, "contribution" if signed else "|dy / dx|")
        if value.ndim == 3:
            ax.set(xticks=[], yticks=[])
        else:
            ax.set(xlabel="feature", ylabel="step")

    def _bars(self, ax: Axes, value: Tensor, most: int = 20, **style: Any) -> None:
        order = value.abs().argsort(descending=True)[:most].tolist()[::-1]
        heights = [float(value[i]) for i in order]
        colors = [charts.COLORS[0] if h >= 0 else charts.COLORS[1] for h in heights]
        ax.barh(range(len(order)), heights, **{"color": colors} | style)
        ax.set_yticks(range(len(order)), [f"feature {i}" for i in order])
        ax.axvline(0, color="black", linewidth=0.8)
        ax.set_xlabel("|dy / dx|" if self.method == "sensitivity" else "contribution")


@instrument("V33", needs=("model", "inputs"))
def attribute(
    model: Module | Callable[..., Any],
    inputs: Inputs,
    target: Any = None,
    *,
    method: str = "integrated_gradients",
    baseline: Any = None,
    steps: int | None = None,
    window: int | Sequence[int] | None = None,
    stride: int | Sequence[int] | None = None,
    output: Callable[[Any], Tensor] | None = None,
) -> Attribution:
    """What each input contributed to an output, and whether the contributions add up to it.

    =======================  =================================================================
    method                   contribution of an input
    =======================  =================================================================
    "sensitivity"            ``|dy / dx|``
    "gradient_x_input"       ``dy / dx (x - baseline)``
    "integrated_gradients"   ``(x - baseline)`` times the mean gradient on the way there
    "deeplift"               ``(x - baseline)`` times the multiplier of differences (rescale)
    "occlusion"              what is lost when a window of the input becomes the baseline
    =======================  =================================================================

    Args:
        model: any module, run in evaluation mode; or a function of the inputs.
        inputs: a batch of float inputs; a tuple or a dict for several.
        target: which output, a number or one for each sample; by default the largest of each.
        method: see the table.
        baseline: what stands for "nothing": a number, or tensors like the inputs; 0 by default.
        steps: points of the integral, for "integrated_gradients"; 50 by default.
        window, stride: of "occlusion", in the dimensions of a sample.
        output: picks the tensor to explain from what the model returns.

    >>> from chainrule import inspect, nn, tensor
    >>> net = nn.Linear(2, 1, bias=False)
    >>> net.load_state_dict({"weight": tensor([[2.0, -1.0]])})
    <All keys matched successfully>
    >>> inspect.attribute(net, tensor([[1.0, 3.0]]), method="deeplift").values[0]
    tensor([[ 2., -3.]])
    """
    if method not in METHODS:
        raise ValueError(f"attribute: there is no method {method!r}; select from {list(METHODS)}")
    if steps is not None and method != "integrated_gradients":
        raise ValueError(f"attribute: steps belong to 'integrated_gradients', not to {method!r}")
    if steps is not None and steps < 1:
        raise ValueError(f"attribute: steps must be positive, got {steps}")
    if method != "occlusion" and (window is not None or stride is not None):
        raise ValueError(f"attribute: window and stride belong to 'occlusion', not to {method!r}")
    explained = Explained("attribute", model, inputs, target, output)
    start = _baseline(baseline, explained)
    with no_grad():
        now, before = explained(explained.inputs), explained(start)
    for what, seen in (("inputs", now), ("baseline", before)):
        if not bool(seen.isfinite().all()):
            raise ValueError(
                f"attribute: the output for the {what} is not finite; "
                + ("find where with inspect.autopsy" if what == "inputs" else "give another one")
            )
    compute, complete = METHODS[method]
    settings: dict[str, object] = {"steps": steps or 50, "window": window, "stride": stride}
    values = [v.detach() for v in compute(explained, start, settings)]
    change = now - before
    sums = sum((v.reshape(len(v), -1).sum(1) for v in values), zeros_like(now))
    return Attribution(
        method, explained.names, explained.inputs, values, explained.target, now, change, sums,
        complete,
    )  # fmt: skip


def _baseline(given: Any, explained: Explained) -> list[Tensor]:
    if given is None or isinstance(given, (int, float)):
        if given is not None and not math.isfinite(given):
            raise ValueError(f"attribute: the baseline must be finite, got {given}")
        return [zeros_like(x) + (given or 0.0) for x in explained.inputs]
    parts = list(given.values()) if isinstance(given, dict) else given
    parts = list(parts) if isinstance(parts, (list, tuple)) else [parts]
    if len(parts) != len(explained.inputs):
        raise ValueError(
            f"attribute: {len(parts)} baselines for {len(explained.inputs)} inputs; give one each"
        )
    found = []
    for x, part, name in zip(explained.inputs, parts, explained.names, strict=True):
        try:
            found.append(zeros_like(x) + as_tensor(part).to(dtype=x.dtype).detach())
        except RuntimeError:
            raise ValueError(
                f"attribute: the baseline of {name} has shape {tuple(as_tensor(part).shape)}, "
                f"which does not fit its shape {tuple(x.shape)}"
            ) from None
        if found[-1].shape != x.shape:
            raise ValueError(
                f"attribute: the baseline of {name} is larger than it: {tuple(found[-1].shape)} "
                f"against {tuple(x.shape)}"
            )
    return found

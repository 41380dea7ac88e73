"""The data as a layer of the network sees them: hidden space."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from chainrule import charts
from chainrule.inspect.core.arguments import Inputs, main_tensor
from chainrule.inspect.core.layers import find_layer
from chainrule.inspect.core.registry import instrument
from chainrule.inspect.core.results import Result
from chainrule.inspect.core.tracing import trace
from chainrule.nn.module.base import Module
from chainrule.ops.creation.from_data import as_tensor
from chainrule.ops.linalg.decompositions import eigh
from chainrule.printing import text_table
from chainrule.tensor import Tensor

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["HiddenSpace", "hidden_space"]


@dataclass(repr=False, eq=False)
class HiddenSpace(Result):
    """The outputs of a layer for each sample: ``activations`` (N, D), in two coordinates
    ``points`` (N, 2), which hold the share ``explained`` of their variance.

    ``separation`` is how well the classes lie apart there: the variance between the classes' means
    over the whole (0 not at all, 1 completely); None where targets are numbers.
    """

    layer: str
    activations: Tensor
    points: Tensor
    targets: Tensor | None
    explained: float
    separation: float | None

    def __str__(self) -> str:
        rows = [
            ["samples", str(len(self.activations))],
            ["units", str(self.activations.shape[1])],
            ["shown by two coordinates", f"{self.explained:.1%} of the variance"],
        ]
        if self.separation is not None:
            rows.append(["between the classes", f"{self.separation:.1%} of the variance"])
        return text_table([f"outputs of layer {self.layer!r}", ""], rows)

    def plot(self, ax: Axes | None = None, **style: Any) -> Axes:
        """Draws each sample where the layer puts it, in the color of its class or target."""
        ax = charts.axes_for(ax, (5.2, 4.4))
        if self.targets is not None and self.separation is None:
            looks: dict[str, Any] = {"cmap": charts.SEQUENTIAL, "s": 20} | style
            x, y = self.points[:, 0].numpy(), self.points[:, 1].numpy()
            charts.add_colorbar(ax, ax.scatter(x, y, c=self.targets.numpy(), **looks), "target")
        else:
            self._plot_classes(ax, style)
        whole = self.activations.shape[1] <= 2
        word = "unit" if whole else "component"
        ax.set(
            title=f"Hidden space of layer {self.layer!r}"
            + ("" if whole else f" ({self.explained:.0%} of the variance)"),
            xlabel=f"{word} 1",
            ylabel=f"{word} 2" if self.activations.shape[1] > 1 else "",
        )
        return ax

    def _plot_classes(self, ax: Axes, style: dict[str, Any]) -> None:
        groups: list[tuple[str, Any]] = [("", slice(None))]
        if self.targets is not None:
            levels = sorted(set(self.targets.tolist()))
            groups = [(f"{v:g}", self.targets == v) for v in levels]
        for k, (name, chosen) in enumerate(groups):
            points = self.points[chosen]
            looks: dict[str, Any] = {
                "color": charts.COLORS[k % len(charts.COLORS)],
                "marker": charts.marker_of(k),
                "linestyle": "",
                "markersize": 5,
            } | style
            ax.plot(points[:, 0].numpy(), points[:, 1].numpy(), alpha=0.7, label=name, **looks)
        if len(groups) > 1:
            ax.legend(title="class")


@instrument("V04", needs=("model", "inputs"))
def hidden_space(
    model: Module, inputs: Inputs, targets: Any = None, *, layer: str | None = None
) -> HiddenSpace:
    """Where a layer puts each sample, in the plane in which its outputs vary most.

    Args:
        model: any module; it is run in evaluation mode.
        inputs: what it is called with.
        targets: for colors; whole numbers mean classes.
        layer: the name of a module; by default the last one before the output with parameters
            behind it, so that what is seen is what the last layer has to separate.

    >>> from chainrule import inspect, nn, randn
    >>> net = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 2))
    >>> seen = inspect.hidden_space(net, randn(10, 4))
    >>> seen.layer, seen.points.shape
    ('1', chainrule.Size([10, 2]))
    """
    model.eval()
    seen = trace("hidden_space", model, inputs)
    call = find_layer("hidden_space", seen, layer)
    out = main_tensor("hidden_space", call.output).detach()
    if out.ndim < 2:
        out = out.reshape(-1, 1)
    flat = out.reshape(out.shape[0], -1).double()
    if not bool(flat.isfinite().all()):
        raise ValueError(
            f"hidden_space: layer {call.path!r} puts out values that are not finite; find where "
            "they come from with inspect.autopsy"
        )
    y = None if targets is None else as_tensor(targets).detach().reshape(-1)
    if y is not None and len(y) != len(flat):
        raise ValueError(
            f"hidden_space: layer {call.path!r} has {len(flat)} rows and there are {len(y)} "
            "targets; is the batch its first dimension?"
        )
    points, explained = _two(flat)
    return HiddenSpace(call.path, flat, points, y, explained, _separation(flat, y))


def _two(flat: Tensor) -> tuple[Tensor, float]:
    """Two coordinates of rows: the units themselves if there are no more, else components."""
    if flat.shape[1] == 2:
        return flat, 1.0
    if flat.shape[1] == 1:
        return (flat @ as_tensor([[1.0, 0.0]]).double()), 1.0
    offset = flat - flat.mean(0)
    gram = offset @ offset.T if len(flat) < flat.shape[1] else offset.T @ offset
    values, vectors = eigh(gram)
    values = values.clamp(min=0)
    total = float(values.sum())
    if gram.shape[0] < 2 or total == 0:
        return flat[:, :2] * 0, 1.0
    top = vectors[:, [-1, -2]]
    points = top * values[[-1, -2]].sqrt() if len(flat) < flat.shape[1] else offset @ top
    return points, float(values[-2:].sum()) / total


def _separation(flat: Tensor, targets: Tensor | None) -> float | None:
    if targets is None or not bool((targets == targets.round()).all()):
        return None
    mean = flat.mean(0)
    whole = float(((flat - mean) ** 2).sum())
    between = 0.0
    for level in set(targets.tolist()):
        own = flat[targets == level]
        between += len(own) * float(((own.mean(0) - mean) ** 2).sum())
    return between / whole if whole > 0 else 0.0

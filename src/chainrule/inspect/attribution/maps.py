"""What convolutions learned and what they see: filters, feature maps, and back to the image."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from chainrule.autograd.engine import grad as gradients_of
from chainrule.inspect.attribution.images import draw_grid
from chainrule.inspect.attribution.outputs import Explained
from chainrule.inspect.attribution.rules import deconvolution, guided, rectifiers_replaced
from chainrule.inspect.core.arguments import Inputs, arguments, main_tensor
from chainrule.inspect.core.layers import no_such_layer
from chainrule.inspect.core.registry import instrument
from chainrule.inspect.core.results import Result
from chainrule.inspect.core.tracing import Call, Trace, recorded, trace
from chainrule.nn.module.base import Module
from chainrule.ops.creation.from_data import tensor
from chainrule.printing import text_table
from chainrule.tensor import Tensor

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Deconvnet", "FeatureMaps", "Filters", "deconvnet", "feature_maps", "filters"]


def _maps_of(instrument: str, seen: Trace, layer: str | None) -> Call:
    """The call of a layer that makes feature maps: the named one, or the first."""
    able = [c for c in seen.calls if c.finished and _is_maps(c) and not c.children]
    if layer is not None:
        named = [c for c in seen.calls if c.path == layer and c.finished]
        if not named:
            raise no_such_layer(instrument, layer, [c.path for c in seen.calls if c.path])
        able = [c for c in named if _is_maps(c)]
        if not able:
            shape = tuple(main_tensor(instrument, named[-1].output).shape)
            raise ValueError(
                f"{instrument}: the output of layer {layer!r} has shape {shape} and is no feature "
                "map (samples, channels, rows, columns); name a convolution or a pooling layer"
            )
        return able[-1]
    convolutions = [c for c in able if any("conv" in op.name for op in c.operations)]
    others = [c for c in seen.calls if c.finished and any("conv" in op.name for op in c.operations)]
    if others and not convolutions:
        shape = tuple(main_tensor(instrument, others[0].output).shape)
        raise ValueError(
            f"{instrument}: the output of layer {others[0].path!r} has shape {shape}; pictures are "
            "drawn of convolutions in two dimensions (samples, channels, rows, columns): look at "
            "convolution_steps or attribute instead"
        )
    if not convolutions:
        raise ValueError(
            f"{instrument}: the model has no convolution whose output is a map (samples, channels, "
            "rows, columns); look at hidden_space or attribute instead"
        )
    return convolutions[0]


def _is_maps(call: Call) -> bool:
    return len(call.outputs) == 1 and call.outputs[0].ndim == 4


@dataclass(repr=False, eq=False)
class FeatureMaps(Result):
    """The output of a layer for each sample: ``maps`` (samples, channels, rows, columns).

    ``dead`` are the channels that are zero everywhere on all samples.
    """

    layer: str
    kind: str
    maps: Tensor
    dead: list[int]

    def __str__(self) -> str:
        channels = self.maps.shape[1]
        flat = self.maps.permute(1, 0, 2, 3).reshape(channels, -1)
        rows = [
            [
                str(k),
                f"{float(row.mean()):.4g}",
                f"{float(row.min()):.4g}",
                f"{float(row.max()):.4g}",
            ]
            for k, row in enumerate(flat)
        ]
        shown = rows if channels <= 20 else [*rows[:19], ["...", "", "", ""]]
        table = text_table(["channel", "mean", "smallest", "largest"], shown, left=1, rule=True)
        size = " x ".join(map(str, self.maps.shape[2:]))
        title = f"layer {self.layer!r} ({self.kind}): {channels} maps of {size}"
        dead = f"\ndead on all samples: channels {self.dead}" if self.dead else ""
        return f"{title}\n{table}{dead}"

    def plot(
        self, axes: Sequence[Axes] | None = None, *, sample: int = 0, most: int = 16, **style: Any
    ) -> list[Axes]:
        """Draws the maps of one sample."""
        maps = self.maps[sample][:most]
        titles = [f"{k}{' dead' if k in self.dead else ''}" for k in range(len(maps))]
        made = draw_grid(axes, list(maps), titles, **{"cmap": "viridis"} | style)
        made[0].figure.suptitle(f"Maps of layer {self.layer!r}, sample {sample}", fontsize=10)
        return made


@instrument("V26", "V27", needs=("model", "inputs"))
def feature_maps(model: Module, inputs: Inputs, *, layer: str | None = None) -> FeatureMaps:
    """What a convolution or pooling layer makes of each sample, channel by channel.

    Args:
        model: any module with convolutions; it is run in evaluation mode.
        inputs: what it is called with.
        layer: the name of the layer; by default the first convolution.

    >>> from chainrule import inspect, nn, randn
    >>> seen = inspect.feature_maps(nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU()), randn(2, 1, 8, 8))
    >>> seen.layer, seen.maps.shape
    ('0', chainrule.Size([2, 4, 6, 6]))
    """
    model.eval()
    call = _maps_of("feature_maps", trace("feature_maps", model, inputs), layer)
    maps = call.outputs[0].detach()
    if not bool(maps.isfinite().all()):
        raise ValueError(
            f"feature_maps: layer {call.path!r} puts out values that are not finite; find where "
            "they come from with inspect.autopsy"
        )
    still = (maps == 0).permute(1, 0, 2, 3).reshape(maps.shape[1], -1).all(1)
    return FeatureMaps(call.path, call.kind, maps, [k for k, z in enumerate(still.tolist()) if z])


@dataclass(repr=False, eq=False)
class Filters(Result):
    """The weights of a layer as pictures: ``weights`` (filters, channels, rows, columns)."""

    layer: str
    weights: Tensor

    def __str__(self) -> str:
        norms = self.weights.reshape(len(self.weights), -1).norm(dim=1)
        order = norms.argsort(descending=True).tolist()
        rows = [[str(k), f"{float(norms[k]):.4g}"] for k in order[:10]]
        size = " x ".join(map(str, self.weights.shape[1:]))
        return f"layer {self.layer!r}: {len(self.weights)} filters of {size}\n" + text_table(
            ["largest filters", "norm"], rows, left=1, rule=True
        )

    def plot(
        self, axes: Sequence[Axes] | None = None, *, most: int = 32, **style: Any
    ) -> list[Axes]:
        """Draws the filters: red positive, blue negative; those of colors in color."""
        shown = list(self.weights[:most])
        made = draw_grid(axes, shown, [str(k) for k in range(len(shown))], signed=True, **style)
        made[0].figure.suptitle(f"Filters of layer {self.layer!r}", fontsize=10)
        return made


@instrument("V30")
def filters(
    model: Module, *, layer: str | None = None, shape: Sequence[int] | None = None
) -> Filters:
    """The learned filters of a layer as pictures.

    Args:
        model: any module.
        layer: the name of the layer; by default the first convolution.
        shape: of the picture, for a dense layer whose inputs are pixels: ``(28, 28)``.

    >>> from chainrule import inspect, nn
    >>> inspect.filters(nn.Linear(6, 2), shape=(2, 3)).weights.shape
    chainrule.Size([2, 1, 2, 3])
    """
    named = {
        n: m for n, m in model.named_modules() if isinstance(m._parameters.get("weight"), Tensor)
    }
    if layer is not None and layer not in named:
        raise no_such_layer("filters", layer, named)
    wanted = 2 if shape is not None else 4
    able = [n for n, m in named.items() if m.weight.ndim == wanted and (layer in (None, n))]
    if not able:
        what = "weights of a dense layer" if shape is not None else "convolution in two dimensions"
        raise ValueError(
            f"filters: {'the model' if layer is None else repr(layer)} has no {what}; name a "
            "convolution, or give a dense layer of pixels with shape=(rows, columns)"
        )
    weights = named[able[0]].weight.detach()
    if shape is not None:
        sizes = tuple(shape) if len(shape) == 3 else (1, *shape)
        rows = weights.shape[1]
        if len(sizes) != 3 or sizes[0] * sizes[1] * sizes[2] != rows:
            raise ValueError(
                f"filters: shape {tuple(shape)} has not the {rows} inputs of layer {able[0]!r}"
            )
        weights = weights.reshape(len(weights), *sizes)
    return Filters(able[0], weights)


@dataclass(repr=False, eq=False)
class Deconvnet(Result):
    """The part of each image that drives a unit: ``pictures`` like the inputs, and the
    ``activations`` that they explain."""

    layer: str
    unit: list[int]
    rule: str
    inputs: Tensor
    pictures: Tensor
    activations: Tensor

    def __str__(self) -> str:
        sizes = self.pictures.reshape(len(self.pictures), -1).norm(dim=1).tolist()
        rows = [
            [str(i), str(unit), f"{a:.4g}", f"{size:.4g}"]
            for i, (unit, a, size) in enumerate(
                zip(self.unit, self.activations.tolist(), sizes, strict=True)
            )
        ]
        head = ["sample", "unit", "activation", "norm of the picture"]
        silent = "\nA unit that is 0 sends nothing back." if 0.0 in sizes else ""
        return f"{self.rule} of layer {self.layer!r}\n{text_table(head, rows, left=1)}{silent}"

    def plot(
        self, axes: Sequence[Axes] | None = None, *, most: int = 8, **style: Any
    ) -> list[Axes]:
        """Draws each image, and below it what drives the unit."""
        count = min(most, len(self.pictures))
        shown = [*self.inputs[:count], *self.pictures[:count]]
        titles = [f"sample {i}" for i in range(count)]
        titles += [f"unit {self.unit[i]}" for i in range(count)]
        made = draw_grid(axes, shown, titles, columns=count, **style)
        made[0].figure.suptitle(f"{self.rule} of layer {self.layer or 'output'!r}", fontsize=10)
        return made


@instrument("V31", needs=("model", "inputs"))
def deconvnet(
    model: Module,
    inputs: Inputs,
    *,
    layer: str | None = None,
    unit: int | None = None,
    rule: str = "deconvnet",
) -> Deconvnet:
    """What in each image drives a unit, sent back through the layers.

    A backward pass from the unit's strongest activation in which rectifiers hand back what is
    positive ("deconvnet", Zeiler and Fergus 2014), or what is positive where they were open
    ("guided"), and pooling hands back to where its maximum was.

    Args:
        model: any module; it is run in evaluation mode.
        inputs: one batch of images.
        layer: the name of a layer; without it the output.
        unit: the channel of the layer, or the output; by default the strongest of each sample.
        rule: "deconvnet" or "guided".
    """
    rules = {"deconvnet": deconvolution, "guided": guided}
    if rule not in rules:
        raise ValueError(f"deconvnet: rule must be 'deconvnet' or 'guided', got {rule!r}")
    model.eval()
    args, kwargs = arguments("deconvnet", inputs)
    if len(args) != 1 or kwargs:
        raise TypeError("deconvnet: give one batch of images; other inputs cannot be drawn")
    explained = Explained("deconvnet", model, inputs, None, None)
    x = explained.inputs[0].requires_grad_()
    with rectifiers_replaced(rules[rule]), recorded(model) as seen:
        output = model(x)
    out = _output_of(seen, output, layer)
    flat = out.reshape(out.shape[0], out.shape[1], -1)
    if unit is not None and not 0 <= unit < flat.shape[1]:
        raise ValueError(f"deconvnet: there is no unit {unit}; layer has {flat.shape[1]}")
    best = flat.detach().amax(2).argmax(1).tolist() if unit is None else [unit] * len(flat)
    strongest = [flat[i, k, int(flat[i, k].detach().argmax())] for i, k in enumerate(best)]
    total = sum(strongest[1:], strongest[0])
    (pictures,) = gradients_of([total], [x], allow_unused=True, materialize_grads=True)
    values = [float(s.detach()) for s in strongest]
    return Deconvnet(layer or "", best, rule, x.detach(), pictures.detach(), tensor(values))


def _output_of(seen: Trace, output: Any, layer: str | None) -> Tensor:
    out = main_tensor("deconvnet", output)
    if layer is not None:
        named = [c for c in seen.calls if c.path == layer and c.finished]
        if not named:
            raise no_such_layer("deconvnet", layer, [c.path for c in seen.calls if c.path])
        out = main_tensor("deconvnet", named[-1].output)
    if out.ndim < 2:
        raise ValueError(
            f"deconvnet: the output of layer {layer!r} has shape {tuple(out.shape)}; it must have "
            "a row for each sample"
        )
    return out

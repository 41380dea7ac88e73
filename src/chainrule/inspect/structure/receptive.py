"""What a unit sees of the input: its receptive field, layer by layer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from chainrule import charts
from chainrule.inspect.core.arguments import Inputs
from chainrule.inspect.core.registry import instrument
from chainrule.inspect.core.results import Result
from chainrule.inspect.core.tracing import Call, Trace, trace
from chainrule.inspect.structure.amounts import round_numbers
from chainrule.inspect.structure.inputs import inputs_or_made, settled
from chainrule.inspect.structure.rows import spatial_axes
from chainrule.inspect.structure.spans import Field, Places, Span, fields_of, hull, places
from chainrule.nn.module.base import Module
from chainrule.printing import text_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["LayerField", "ReceptiveField", "receptive_field"]


@dataclass
class LayerField:
    """The field of one unit of a layer: ``unit`` is its place, and for each axis of space ``first``
    and ``last`` are the places of the input that it sees. ``stride`` is how far the next unit's
    field lies; ``size`` is the largest field of all units."""

    path: str
    kind: str
    unit: tuple[int, ...]
    first: tuple[int, ...]
    last: tuple[int, ...]
    size: tuple[int, ...]
    stride: tuple[int, ...]


@dataclass(repr=False)
class ReceptiveField(Result):
    """What one unit of a layer sees of the input, and what units of the layers before it see that
    look at the same middle.

    ``seen`` has for each axis of space all places that reach the unit; with dilation there are
    gaps. Units of the border see less, since what is padded is no input.
    """

    model: str
    layer: str
    unit: tuple[int, ...]
    input_shape: tuple[int, ...]
    space: tuple[int, ...]
    seen: list[list[int]]
    layers: list[LayerField]

    def __str__(self) -> str:
        rows = [
            [
                layer.path or self.model,
                layer.kind,
                _by(layer.size),
                _by(layer.stride),
                _ranges(layer.first, layer.last),
            ]
            for layer in self.layers
        ]
        header = ["layer", "kind", "sees", "stride", "of the unit"]
        held = [str(len(axis)) for axis in self.seen]
        told = (
            f"unit {_place(self.unit)} of {self._of} sees {' x '.join(held)} of "
            f"{' x '.join(map(str, self.space))} places"
        )
        return f"{told}\n{text_table(header, rows, rule=True)}"

    @property
    def _of(self) -> str:
        return f"layer {self.layer}" if self.layer else self.model

    def _growing(self) -> list[LayerField]:
        """The layers whose units see more than those before, the last ten of them."""
        pairs = zip([None, *self.layers], self.layers, strict=False)
        return [b for a, b in pairs if a is None or a.size != b.size][-10:]

    def plot(self, ax: Axes | None = None, **style: Any) -> Axes:
        """The fields of the units behind each other, drawn into the input."""
        ax = charts.axes_for(ax, (5.6, 4.4))
        width = self.space[-1]
        height = self.space[-2] if len(self.space) > 1 else 1
        ax.set_xlim(-0.5, width - 0.5)
        shown = self._growing()
        for i, layer in enumerate(shown):
            color = charts.COLORS[i % len(charts.COLORS)]
            left, right = layer.first[-1] - 0.5, layer.last[-1] + 0.5
            if len(self.space) > 1:
                low, high = layer.first[-2] - 0.5, layer.last[-2] + 0.5
            else:
                low, high = i + 0.1, i + 0.9
            inset = 0.0 if len(self.space) == 1 else 0.06 * (len(shown) - i)
            box = {"fill": len(self.space) == 1, "lw": 1.6, "color": color, **style}
            corner = (left + inset, low + inset)
            size = (right - left - 2 * inset, high - low - 2 * inset)
            label = f"{layer.path or self.model}: {_by(layer.size)}"
            ax.add_patch(_rectangle(corner, size, label=label, **box))
        ax.set_ylim((height - 0.5, -0.5) if len(self.space) > 1 else (len(shown), 0))
        ax.set_xticks(round_numbers(width - 1))
        ax.set_yticks(round_numbers(height - 1) if len(self.space) > 1 else [])
        if len(self.space) > 1:
            ax.set_aspect("equal")
            ax.set_ylabel("row of the input")
        ax.set_xlabel("column of the input" if len(self.space) > 1 else "place in the input")
        ax.set_title(f"What unit {_place(self.unit)} of {self._of} sees")
        ax.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False)
        return ax


def _rectangle(corner: tuple[float, float], size: tuple[float, float], **style: Any) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle(corner, *size, **style)


def _by(numbers: Sequence[int]) -> str:
    return "x".join(map(str, numbers))


def _place(unit: Sequence[int]) -> str:
    return str(unit[0]) if len(unit) == 1 else f"({', '.join(map(str, unit))})"


def _ranges(first: Sequence[int], last: Sequence[int]) -> str:
    return " x ".join(f"{a}..{b}" for a, b in zip(first, last, strict=True))


@instrument("L17", needs=("model", "inputs"))
def receptive_field(
    model: Module,
    inputs: Inputs = None,
    *,
    input_size: Any = None,
    layer: str | None = None,
    unit: int | Sequence[int] | None = None,
) -> ReceptiveField:
    """Finds the places of the input that reach a unit, from the operations of a forward pass.

    Convolutions (strided, dilated, transposed), pooling, padding, upsampling, joined and added
    branches are followed exactly; a normalization counts as working on each place by itself. The
    field is where the gradient of the unit with respect to the input can differ from zero.

    Args:
        model: any module with convolutions or pooling.
        inputs: what it is called with.
        input_size: instead of inputs, their sizes with the batch, such as (1, 3, 32, 32).
        layer: the name of a module; by default the last with units in space.
        unit: its place in space, the middle by default.

    >>> from chainrule import inspect, nn
    >>> net = nn.Sequential(nn.Conv2d(1, 6, 5), nn.ReLU(), nn.MaxPool2d(2))
    >>> print(inspect.receptive_field(net, input_size=(1, 1, 12, 12)))
    unit (1, 1) of layer 2 sees 6 x 6 of 12 x 12 places
    layer  kind       sees  stride  of the unit
    -----  ---------  ----  ------  -----------
    0      Conv2d     5x5   1x1     2..6 x 2..6
    1      ReLU       5x5   1x1     2..6 x 2..6
    2      MaxPool2d  6x6   2x2     2..7 x 2..7
    """
    model = settled(model)
    given = inputs_or_made("receptive_field", model, inputs, input_size)
    seen = trace("receptive_field", model, given, gradients=True)
    fields = fields_of(seen)
    axes = spatial_axes(seen, fields)
    if not axes:
        raise ValueError(
            f"receptive_field: {type(model).__name__} has no convolution or pooling; every unit "
            "of a dense layer sees its whole input"
        )
    chosen = _chosen(seen, fields, axes, layer)
    spans = [fields[id(chosen.outputs[0])][axis] for axis in axes]
    where = _unit(spans, unit)
    whole = seen.root.inputs[axes[0][0]].shape
    before = [c for c in seen.calls if not c.children and c.number < chosen.number]
    middles = [_middle(s.seen[u]) for s, u in zip(spans, where, strict=True)]
    listed = [_of_call(c, fields, axes, None, middles) for c in before]
    return ReceptiveField(
        model=type(model).__name__,
        layer=chosen.path,
        unit=where,
        input_shape=tuple(whole),
        space=tuple(whole[axis] for _, axis in axes),
        seen=[places(s.seen[u]) for s, u in zip(spans, where, strict=True)],
        layers=[f for f in (*listed, _of_call(chosen, fields, axes, where, middles)) if f],
    )


def _in_space(call: Call, fields: dict[int, Field], axes: list[tuple[int, int]]) -> bool:
    """Whether the units of a call's output lie in space."""
    field = fields.get(id(call.outputs[0]), {}) if call.outputs else {}
    return all(axis in field and field[axis].carrier is not None for axis in axes)


def _chosen(
    seen: Trace, fields: dict[int, Field], axes: list[tuple[int, int]], layer: str | None
) -> Call:
    usable = [c for c in seen.calls if _in_space(c, fields, axes)]
    if layer is None:
        leaves = [c for c in usable if not c.children]
        return (leaves or usable)[-1]
    found = [c for c in usable if c.path == layer]
    if not found:
        names = [c.path for c in usable if c.path]
        raise ValueError(
            f"receptive_field: there is no layer {layer!r} with units in space; there are {names}"
        )
    return found[-1]


def _unit(spans: list[Span], unit: int | Sequence[int] | None) -> tuple[int, ...]:
    sizes = [len(s.seen) for s in spans]
    if unit is None:
        return tuple((n - 1) // 2 for n in sizes)
    given = (unit,) * len(sizes) if isinstance(unit, int) else tuple(unit)
    if len(given) != len(sizes) or any(not 0 <= u < n for u, n in zip(given, sizes, strict=True)):
        raise ValueError(
            f"receptive_field: unit must be a place among {' x '.join(map(str, sizes))}, got {unit}"
        )
    return given


def _of_call(
    call: Call,
    fields: dict[int, Field],
    axes: list[tuple[int, int]],
    unit: tuple[int, ...] | None,
    middles: list[float],
) -> LayerField | None:
    """Of the unit, or of the one that looks at the same middle; None where the units do not lie
    in space, or where it sees nothing."""
    if not _in_space(call, fields, axes):
        return None
    spans = [fields[id(call.outputs[0])][axis] for axis in axes]
    where = unit or tuple(_looking_at(s, m) for s, m in zip(spans, middles, strict=True))
    hulls = [hull(s.seen[u]) for s, u in zip(spans, where, strict=True)]
    known = [h for h in hulls if h is not None]
    if len(known) < len(hulls):
        return None
    return LayerField(
        path=call.path,
        kind=call.kind,
        unit=where,
        first=tuple(h[0] for h in known),
        last=tuple(h[1] for h in known),
        size=tuple(_largest(s) for s in spans),
        stride=tuple(_stride(s) for s in spans),
    )


def _middle(seen: Places) -> float:
    found = hull(seen)
    return -1.0 if found is None else sum(found) / 2


def _looking_at(span: Span, middle: float) -> int:
    """The unit whose field lies around a place."""
    return min(range(len(span.seen)), key=lambda i: abs(_middle(span.seen[i]) - middle))


def _largest(span: Span) -> int:
    hulls = [h for h in map(hull, span.seen) if h is not None]
    return max(h[1] - h[0] + 1 for h in hulls)


def _stride(span: Span) -> int:
    """How far the fields of neighbors mostly lie apart; 0 where several units see the same."""
    starts = [h[0] for h in map(hull, span.seen) if h is not None]
    steps = Counter(b - a for a, b in pairwise(starts))
    inner = Counter({step: n for step, n in steps.items() if step or len(steps) == 1})
    return inner.most_common(1)[0][0] if inner else 1

"""Which numbers a normalization takes together, as a picture."""

from __future__ import annotations

import copy
import itertools
from dataclasses import dataclass
from html import escape

from chainrule.autograd.engine import grad as gradients_of
from chainrule.autograd.modes import enable_grad
from chainrule import charts
from chainrule.inspect.core.registry import instrument
from chainrule.inspect.core.results import Diagram
from chainrule.nn.module.base import Module
from chainrule.ops.creation.sampling import randn
from chainrule.printing import text_table
from chainrule.random import Generator
from chainrule.tensor import Tensor

__all__ = ["NormalizationGroups", "normalization_groups"]


@dataclass(repr=False, eq=False)
class NormalizationGroups(Diagram):
    """The groups of a batch (samples, channels, places) that share a mean and a variance.

    ``groups[n, c, l]`` is the number of the group of an entry.
    """

    layer: str
    groups: Tensor
    svg: str

    def __str__(self) -> str:
        count = int(self.groups.max()) + 1
        size = self.groups.numel() // count
        n, c, places = self.groups.shape
        rows = [
            ["groups", str(count)],
            ["numbers in each", str(size)],
            ["shared along", ", ".join(self.shared) or "nothing"],
        ]
        return f"{self.layer} on ({n}, {c}, {places})\n{text_table(['', ''], rows).lstrip()}"

    @property
    def shared(self) -> list[str]:
        """Along which of samples, channels and places numbers are taken together."""
        names = ("samples", "channels", "places")
        return [
            name
            for dim, name in enumerate(names)
            if bool((self.groups.select(dim, 0) == self.groups.select(dim, -1)).all())
            and self.groups.shape[dim] > 1
        ]


@instrument("V25", needs=("layer",))
def normalization_groups(
    layer: Module, *, samples: int = 3, channels: int | None = None, places: int = 4
) -> NormalizationGroups:
    """Which numbers of a batch a normalization takes together, found from the layer itself.

    Two numbers belong together where the output at one depends on the input at the other.

    Args:
        layer: ``nn.BatchNorm1d``, ``LayerNorm``, ``GroupNorm``, ``InstanceNorm1d`` and their like.
        samples, channels, places: the size of the batch that is drawn; the layer's own number of
            channels by default.

    >>> from chainrule import inspect, nn
    >>> inspect.normalization_groups(nn.BatchNorm1d(4)).shared
    ['samples', 'places']
    """
    count = channels or int(getattr(layer, "num_features", 0) or getattr(layer, "num_channels", 4))
    shape = getattr(layer, "normalized_shape", None)
    if shape is not None:
        if len(shape) > 2:
            raise ValueError(
                f"normalization_groups: a norm over {len(shape)} dimensions has no plane picture; "
                "give one over (channels, places) or (places,)"
            )
        places, count = int(shape[-1]), int(shape[0]) if len(shape) == 2 else count
    x = randn(samples, count, places, generator=Generator().manual_seed(0), dtype="float64")
    groups = _groups(copy.deepcopy(layer).double().train(), x)
    name = f"{type(layer).__name__}({layer.extra_repr()})"
    return NormalizationGroups(name, groups, _svg(name, groups))


def _groups(layer: Module, x: Tensor) -> Tensor:
    """Numbers the connected parts of the derivative's support."""
    leaf = x.requires_grad_()
    with enable_grad():
        out = layer(leaf)
        if tuple(out.shape) != tuple(x.shape):
            raise ValueError(
                f"normalization_groups: {type(layer).__name__} gives shape {tuple(out.shape)} for "
                f"{tuple(x.shape)}; give a normalization layer"
            )
    number = (x.detach() * 0).long() - 1
    found = 0
    for place in itertools.product(*map(range, x.shape)):
        if int(number[place]) >= 0:
            continue
        (g,) = gradients_of([out[place]], [leaf], retain_graph=True)
        number[g.detach().abs() > 1e-12] = found
        found += 1
    return number


def _svg(name: str, groups: Tensor) -> str:
    """One sheet for each sample: channels across, places down, a color for each group."""
    n, c, places = groups.shape
    size, gap, top = 22, 26, 52
    width = max(gap + n * (c * size + gap), 8 * len(name) + 2 * gap)
    height = top + places * size + 34
    parts = [
        f'<text x="{gap}" y="20" font-weight="600">{escape(name)}</text>',
        f'<text x="{gap}" y="{height - 10}" class="soft">channels across, places down; one color '
        "shares a mean and a variance</text>",
    ]
    for i in range(n):
        x = gap + i * (c * size + gap)
        parts.append(f'<text x="{x}" y="{top - 8}">sample {i}</text>')
        for k, p in itertools.product(range(c), range(places)):
            group = int(groups[i, k, p])
            color = charts.COLORS[group % len(charts.COLORS)]
            parts.append(
                f'<rect x="{x + k * size}" y="{top + p * size}" width="{size}" height="{size}" '
                f'fill="{color}" fill-opacity="0.75" stroke="#fff"><title>group {group}</title>'
                "</rect>"
            )
    style = "<style>text{font:12px system-ui,sans-serif;fill:#222}.soft{fill:#666}</style>"
    width = max(width, 460)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="img" aria-label="{escape(name)}">{style}'
        f'<rect width="100%" height="100%" fill="#fff"/>{"".join(parts)}</svg>'
    )

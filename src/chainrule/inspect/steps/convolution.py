"""A convolution, transposed convolution or pooling, number by number, from a real layer."""

from __future__ import annotations

import copy
import itertools
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chainrule.autograd.engine import grad as gradients_of
from chainrule.autograd.modes import enable_grad, no_grad
from chainrule import charts
from chainrule.inspect.core.pages import Frames, steps_page
from chainrule.inspect.core.registry import instrument
from chainrule.inspect.core.results import Result
from chainrule.inspect.steps.scenes import Cell, Scene, Words, number, shade
from chainrule.nn.layers.conv import Convolutional
from chainrule.nn.layers.pooling import Pool, _AvgPool, _MaxPool
from chainrule.nn.module.base import Module
from chainrule.ops.creation.from_data import as_tensor, tensor
from chainrule.ops.creation.patterns import ones
from chainrule.ops.layers.spatial import padding_of
from chainrule.printing import text_table
from chainrule.tensor import Tensor

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["ConvolutionSteps", "Term", "convolution_steps"]

LARGEST = 1024  # numbers of the output that are worked out


@dataclass(frozen=True)
class Term:
    """One input that an output reads: its channel, row and column, its value, and the weight that
    it is multiplied by."""

    channel: int
    row: int
    column: int
    value: float
    weight: float


@dataclass(repr=False, eq=False)
class ConvolutionSteps(Result):
    """All steps of a layer over an image: ``terms[k]`` is what output number k reads.

    ``input`` is (channels, rows, columns), ``output`` (rows, columns) of one output channel, and
    each of its numbers is ``bias`` plus the sum of weight times value over its terms (of a max
    pooling the largest value, whose weight is 1).
    """

    layer: str
    kind: str
    channel: int
    channels: int  # of the output
    input: Tensor
    output: Tensor
    kernel: Tensor | None
    bias: float
    terms: list[list[Term]]
    padding: list[list[tuple[int, int]]]  # rows and columns beyond the edge that an output reads
    # Channel, row and column of the numbers of the kernel that meet the image at each step.
    used: list[set[tuple[int, int, int]]]

    def __len__(self) -> int:
        return len(self.terms)

    def sentence(self, step: int) -> str:
        """One output number as the sum that it is."""
        terms, place = self.terms[step], self._place(step)
        start = f"output{list(place)} = "
        if self.kind == "max":
            values = ", ".join(number(t.value) for t in terms[:12])
            return f"{start}max({values}{', ...' if len(terms) > 12 else ''}) = {self._value(step)}"
        shown = " + ".join(f"{number(t.value)}·{number(t.weight)}" for t in terms[:9])
        more = " + ..." if len(terms) > 9 else ""
        bias = f" + {number(self.bias)}" if self.bias else ""
        return f"{start}{shown or '0'}{more}{bias} = {self._value(step)}".replace("+ -", "- ")

    def _value(self, step: int) -> str:
        return number(float(self.output[self._place(step)]))

    def _place(self, step: int) -> tuple[int, int]:
        columns = self.output.shape[1]
        return step // columns, step % columns

    def __str__(self) -> str:
        size = " x ".join(map(str, self.input.shape))
        out = " x ".join(map(str, self.output.shape))
        rows = [[str(k), self.sentence(k)] for k in range(min(len(self), 12))]
        if len(self) > 12:
            rows.append(["...", f"{len(self)} steps in all"])
        return f"{self.layer}: {size} -> {out}\n{text_table(['step', 'sum'], rows)}"

    def plot(self, ax: Axes | None = None, *, step: int = 0, **style: Any) -> Axes:
        """Draws one step: the input with what is read, the kernel, the output up to there."""
        scene = self.scene(self._checked(step))
        ax = charts.axes_for(ax, (scene.width / 80, scene.height / 80 + 0.4))
        scene.draw(ax)
        ax.set_title(self.layer, **{"fontsize": 9} | style)
        return ax

    def _checked(self, step: int) -> int:
        if not -len(self) <= step < len(self):
            raise IndexError(f"plot: there is no step {step}; there are {len(self)}")
        return step % len(self)

    def save(self, path: str | os.PathLike[str], seconds_per_frame: float = 0.7) -> Path:
        """Writes all steps as a page (``*.html``) or a film (``*.gif``)."""
        target = Path(path)
        if target.suffix in (".html", ".htm"):
            target.write_text(self.to_html(seconds_per_frame), "utf-8")
            return target
        size = self.scene(0).width / 80, self.scene(0).height / 80
        frames = Frames(self.layer, len(self), lambda f, i: self.scene(i).draw(f.subplots()), size)
        return frames.save(target, seconds_per_frame)

    def to_html(self, seconds_per_frame: float = 0.7) -> str:
        """A page that steps through all outputs by the arrow keys."""
        frames = [f'<div class="frame">{self.scene(k).to_svg()}</div>' for k in range(len(self))]
        return steps_page(self.layer, frames, seconds_per_frame=seconds_per_frame)

    def _repr_html_(self) -> str:
        return f"<div>{self.scene(0).to_svg()}</div>"

    # --- drawing ----------------------------------------------------------------------------------

    def scene(self, step: int) -> Scene:
        """One step as cells and words."""
        channels, rows, columns = self.input.shape
        low_r, high_r, low_c, high_c = self._reach(rows, columns)
        size, gap, top = 30.0, 26.0, 34.0
        scene, x = Scene(0, 0), gap
        read = {(t.channel, t.row, t.column): t for t in self.terms[step]}
        largest = float(self.input.abs().max())
        for c in range(channels):
            name = "input" if channels == 1 else f"input channel {c}"
            scene.words.append(Words(x, top - 10, name, bold=True))
            for r, k in itertools.product(range(low_r, high_r), range(low_c, high_c)):
                at = x + (k - low_c) * size, top + (r - low_r) * size
                inside = 0 <= r < rows and 0 <= k < columns
                value = float(self.input[c, r, k]) if inside else 0.0
                seen = (c, r, k) in read or (r, k) in self.padding[step]
                mark = charts.COLORS[1] if seen else ""
                fill = shade(value, largest) if inside else "#f4f4f4"
                scene.cells.append(Cell(*at, size, number(value), fill, mark, not inside))
            x += (high_c - low_c) * size + gap
        height = (high_r - low_r) * size
        if self.kernel is not None:
            x, height = self._add_kernel(scene, x, top, size, gap, height, self.used[step])
        x, height = self._add_output(scene, x, top, size, gap, height, step)
        scene.words.append(Words(gap, top + height + 26, self.sentence(step)))
        words = max(len(self.sentence(step)), len(self.layer)) * 6.2 + 2 * gap
        scene.width, scene.height = max(x, words), top + height + 44
        return scene

    def _reach(self, rows: int, columns: int) -> tuple[int, int, int, int]:
        """What is drawn of the input: all of it, and the padding that is read."""
        beyond = [place for places in self.padding for place in places]
        r, c = [row for row, _ in beyond], [column for _, column in beyond]
        return (
            min([0, *r]), max([rows, *[v + 1 for v in r]]),
            min([0, *c]), max([columns, *[v + 1 for v in c]]),
        )  # fmt: skip

    def _add_kernel(
        self,
        scene: Scene,
        x: float,
        top: float,
        size: float,
        gap: float,
        height: float,
        used: set[tuple[int, int, int]],
    ) -> tuple[float, float]:
        kernel = self.kernel
        if kernel is None:
            return x, height
        largest = float(kernel.abs().max())
        some = len(used) < kernel.numel()  # where all are used no mark tells anything
        y = top
        for c, part in enumerate(kernel):
            name = "kernel" if len(kernel) == 1 else f"kernel of channel {c}"
            scene.words.append(Words(x, y - 10, name, bold=True))
            for r, k in itertools.product(range(part.shape[0]), range(part.shape[1])):
                value = float(part[r, k])
                at = x + k * size, y + r * size
                mark = charts.COLORS[1] if some and (c, r, k) in used else ""
                scene.cells.append(Cell(*at, size, number(value), shade(value, largest), mark))
            y += part.shape[0] * size + gap
        width = max(kernel.shape[2] * size, 110.0 if len(kernel) > 1 else 50.0)
        return x + width + gap, max(height, y - gap - top)

    def _add_output(
        self,
        scene: Scene,
        x: float,
        top: float,
        size: float,
        gap: float,
        height: float,
        step: int,
    ) -> tuple[float, float]:
        rows, columns = self.output.shape
        largest = float(self.output.abs().max())
        name = "output" if self.channels == 1 else f"output channel {self.channel}"
        scene.words.append(Words(x, top - 10, name, bold=True))
        for k in range(rows * columns):
            r, c = self._place(k)
            value = float(self.output[r, c])
            text, fill = (number(value), shade(value, largest)) if k <= step else ("", "#ffffff")
            mark = charts.COLORS[1] if k == step else ""
            scene.cells.append(Cell(x + c * size, top + r * size, size, text, fill, mark))
        return x + max(columns * size, 6.2 * len(name)) + gap, max(height, rows * size)


@instrument("V28", "V29", needs=("layer",))
def convolution_steps(
    layer: Module, input: Tensor | Sequence[Any] | int, *, channel: int = 0
) -> ConvolutionSteps:
    """A real layer over an image, number by number: what each output reads, and its sum.

    Works for convolutions and transposed convolutions of signals and images, with any stride,
    padding, dilation and groups, and for max and average pooling.

    Args:
        layer: ``nn.Conv1d``, ``Conv2d``, their transposed forms, or a pooling layer.
        input: an image (rows, columns) or (channels, rows, columns), for a signal (steps) or
            (channels, steps); or its size, for small whole numbers to look at.
        channel: of the output.

    >>> from chainrule import inspect, nn, ones
    >>> seen = inspect.convolution_steps(nn.AvgPool2d(2), ones(4, 4))
    >>> seen.sentence(0)
    'output[0, 0] = 1·0.25 + 1·0.25 + 1·0.25 + 1·0.25 = 1'
    """
    if not isinstance(layer, (Convolutional, _MaxPool, _AvgPool)):
        raise TypeError(
            f"convolution_steps: {type(layer).__name__} is no convolution and no max or average "
            "pooling; give the layer itself: model[0], say"
        )
    nd = _dimensions(layer)
    x = _image(layer, input, nd)
    with no_grad():
        out = layer(x[None])[0]
    if not 0 <= channel < len(out):
        raise ValueError(f"convolution_steps: there is no output channel {channel} of {len(out)}")
    if out[channel].numel() > LARGEST:
        raise ValueError(
            f"convolution_steps: an output of {tuple(out.shape[1:])} has more than {LARGEST} "
            "steps; give a smaller image"
        )
    terms = _terms(layer, x, channel, nd)
    rows = x if nd == 2 else x[:, None]
    bias = getattr(layer, "bias", None)
    offset = float(bias[channel].detach()) if isinstance(bias, Tensor) else 0.0
    picture = out[channel] if nd == 2 else out[channel][None]
    kind = "max" if isinstance(layer, _MaxPool) else "sum"
    found = ConvolutionSteps(
        f"{type(layer).__name__}({layer.extra_repr()})", kind, channel, len(out), rows, picture,
        _kernel(layer, channel, nd), offset, terms, _padding(layer, x, tuple(out.shape[1:])),
        _used(layer, x, channel, nd),
    )  # fmt: skip
    _check(found)
    return found


def _dimensions(layer: Module) -> int:
    nd = int(type(layer).__name__[-2])
    if nd not in (1, 2):
        raise ValueError(
            f"convolution_steps: {type(layer).__name__} has three dimensions, which no plane "
            "shows; look at a Conv2d"
        )
    return nd


def _image(layer: Module, given: Any, nd: int) -> Tensor:
    channels = getattr(layer, "in_channels", None)
    if isinstance(given, int) or (
        isinstance(given, (tuple, list)) and all(isinstance(n, int) for n in given)
    ):
        sizes = (given,) * nd if isinstance(given, int) else tuple(given)
        sizes = sizes if len(sizes) > nd else (channels or 1, *sizes)
        count = math.prod(sizes)
        if count < 1 or len(sizes) != nd + 1:
            raise ValueError(f"convolution_steps: {given} is not the size of a picture")
        x = tensor([float((7 * i + 3) % 10) for i in range(count)]).reshape(sizes)
    else:
        x = as_tensor(given).detach()
    x = x[None] if x.ndim == nd else x
    if x.ndim != nd + 1 or not x.numel():
        raise ValueError(
            f"convolution_steps: {type(layer).__name__} takes ({'channels, ' if nd else ''}"
            f"{'rows, columns' if nd == 2 else 'steps'}), got shape {tuple(x.shape)}"
        )
    weight = getattr(layer, "weight", None)
    if isinstance(weight, Tensor):
        return x.to(dtype=weight.dtype)
    return x if x.dtype.is_floating_point else x.float()


def _kernel(layer: Module, channel: int, nd: int) -> Tensor | None:
    weight = getattr(layer, "weight", None)
    return _part(layer, weight.detach(), channel, nd) if isinstance(weight, Tensor) else None


def _part(layer: Module, w: Tensor, channel: int, nd: int) -> Tensor:
    """The part of something like the weights that belongs to an output channel."""
    groups = int(layer.groups)
    if getattr(layer, "transposed", False):
        per = w.shape[1]
        group, inner = channel // per, channel % per
        count = len(w) // groups
        w = w[group * count : (group + 1) * count, inner]
    else:
        w = w[channel]
    return w if nd == 2 else w[:, None]


def _used(layer: Module, x: Tensor, channel: int, nd: int) -> list[set[tuple[int, int, int]]]:
    """Which numbers of the kernel meet the image at each step: those of which the output depends
    when all of the image is 1."""
    weight = getattr(layer, "weight", None)
    if not isinstance(weight, Tensor):
        return []
    with enable_grad():
        twin = copy.deepcopy(layer).requires_grad_()
        out = twin(ones(1, *x.shape, dtype=x.dtype))[0][channel].reshape(-1)
        found = [gradients_of([v], [twin.weight], retain_graph=True)[0].detach() for v in out]
    places = [_part(layer, g, channel, nd).nonzero().tolist() for g in found]
    return [{(c, r, k) for c, r, k in step} for step in places]


def _terms(layer: Module, x: Tensor, channel: int, nd: int) -> list[list[Term]]:
    """What each output of a channel reads: the support of its derivative, and its weights there."""
    if isinstance(layer, _MaxPool):
        return _pooled_terms(layer, x, channel, nd)
    weights = _jacobian(layer, x, channel)
    reads = weights
    if isinstance(getattr(layer, "weight", None), Tensor):
        equal = copy.deepcopy(layer)
        with no_grad():
            equal.weight.fill_(1.0)
        reads = _jacobian(equal, x, channel)
    found = []
    for row, support in zip(weights, reads, strict=True):
        places = support.nonzero().tolist()
        found.append([_term(x, row, place, nd) for place in places])
    return found


def _term(x: Tensor, weights: Tensor, place: list[int], nd: int) -> Term:
    channel, *rest = place
    row, column = (rest[0], rest[1]) if nd == 2 else (0, rest[0])
    return Term(channel, row, column, float(x[tuple(place)]), float(weights[tuple(place)]))


def _jacobian(layer: Module, x: Tensor, channel: int) -> list[Tensor]:
    """The derivative of each output of a channel with respect to the image."""
    leaf = x.detach().requires_grad_()
    with enable_grad():
        out = layer(leaf[None])[0][channel].reshape(-1)
        return [gradients_of([value], [leaf], retain_graph=True)[0].detach() for value in out]


def _windows(layer: Any, sizes: tuple[int, ...]) -> list[list[tuple[int, ...]]]:
    """The places that each output of a layer reads, also those beyond the edge."""
    nd = len(sizes)
    kernel, stride, dilation = (
        (v,) * nd if isinstance(v, int) else tuple(v)
        for v in (layer.kernel_size, layer.stride, getattr(layer, "dilation", 1))
    )
    before, _ = padding_of(type(layer).__name__, layer.padding, kernel, stride, dilation)
    return [
        [
            tuple(
                a * s - p + d * k
                for a, s, p, d, k in zip(at, stride, before, dilation, step, strict=True)
            )
            for step in itertools.product(*map(range, kernel))
        ]
        for at in itertools.product(*map(range, sizes))
    ]


def _padding(layer: Module, x: Tensor, sizes: tuple[int, ...]) -> list[list[tuple[int, int]]]:
    """The zeros beyond the edge that each output reads; other modes of padding read the image."""
    zeros = getattr(layer, "padding_mode", "zeros") == "zeros"
    if getattr(layer, "transposed", False) or not zeros:
        return [[] for _ in range(math.prod(sizes))]
    return [
        [((0, *at)[-2], at[-1]) for at in window if not _inside(at, x)]
        for window in _windows(layer, sizes)
    ]


def _inside(place: tuple[int, ...], x: Tensor) -> bool:
    return all(0 <= q < size for q, size in zip(place, x.shape[1:], strict=True))


def _pooled_terms(layer: Pool, x: Tensor, channel: int, nd: int) -> list[list[Term]]:
    with no_grad():
        sizes = tuple(layer(x[None]).shape[2:])
    found = []
    for window in _windows(layer, sizes):
        terms = [
            Term(channel, (0, *at)[-2], at[-1], float(x[(channel, *at)]), 0.0)
            for at in window
            if _inside(at, x)
        ]
        best = max(range(len(terms)), key=lambda i: terms[i].value)
        top = terms[best]
        terms[best] = Term(top.channel, top.row, top.column, top.value, 1.0)
        found.append(terms)
    return found


def _check(found: ConvolutionSteps) -> None:
    """The sums are the layer's own output, or nothing is shown."""
    for k, terms in enumerate(found.terms):
        total = found.bias + sum(t.weight * t.value for t in terms)
        value = float(found.output[found._place(k)])
        scale = sum(abs(t.weight * t.value) for t in terms) + abs(found.bias) + 1e-9
        if abs(total - value) > 1e-5 * scale:
            raise RuntimeError(
                f"convolution_steps: the terms of step {k} sum to {total}, the layer gives {value}"
            )

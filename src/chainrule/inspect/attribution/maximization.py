"""Pictures that a unit answers to most: activation maximization and dreams."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from chainrule.autograd.engine import grad as gradients_of
from chainrule.autograd.modes import enable_grad, no_grad
from chainrule.inspect.attribution.images import draw_grid
from chainrule.inspect.attribution.outputs import Explained
from chainrule.inspect.core.arguments import Inputs, main_tensor
from chainrule.inspect.core.layers import no_such_layer
from chainrule.inspect.core.registry import instrument
from chainrule.inspect.core.results import Result
from chainrule.inspect.core.tracing import recorded
from chainrule.nn.module.base import Module
from chainrule.ops.creation.sampling import randint, randn
from chainrule.ops.shape.rearrange import roll
from chainrule.printing import text_table
from chainrule.random import manual_seed
from chainrule.tensor import Tensor

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Dream", "Maximized", "deep_dream", "maximize"]


@dataclass(repr=False, eq=False)
class Maximized(Result):
    """Inputs that units answer to most: ``pictures`` (one for each unit), the ``activations``
    reached, the largest that the given data reach (``on_data``), and for classes the
    ``probabilities`` that the network gives the pictures. ``dead`` units answer to nothing.
    """

    layer: str
    units: list[int]
    pictures: Tensor
    activations: list[float]
    on_data: list[float]
    probabilities: list[float] | None
    dead: list[int]

    def __str__(self) -> str:
        rows = []
        for i, unit in enumerate(self.units):
            chance = "" if self.probabilities is None else f"{self.probabilities[i]:.4f}"
            note = "dead: nothing drives it" if unit in self.dead else ""
            rows.append(
                [str(unit), f"{self.activations[i]:.4g}", f"{self.on_data[i]:.4g}", chance, note]
            )
        header = ["unit", "activation", "largest on the data", "probability", ""]
        where = "the output" if not self.layer else f"layer {self.layer!r}"
        table = text_table(header, rows, left=1, rule=True)
        advice = "\nDead units learn nothing more: lower the rate, or use a leaky rectifier."
        return f"pictures that drive {where} most\n{table}{advice if self.dead else ''}"

    def plot(self, axes: Sequence[Axes] | None = None, **style: Any) -> Any:
        """Draws the pictures; of inputs that are no pictures, their values."""
        titles = []
        for i, unit in enumerate(self.units):
            chance = "" if self.probabilities is None else f"  p {self.probabilities[i]:.2f}"
            titles.append(f"{unit} dead" if unit in self.dead else f"{unit}{chance}")
        made = draw_grid(axes, list(self.pictures), titles, columns=5, **style)
        made[0].figure.suptitle(
            f"What drives {'the outputs' if not self.layer else 'layer ' + repr(self.layer)}",
            fontsize=10,
        )
        return made


class _Ascent:
    """The activation of units of a layer, one for each picture of a batch."""

    def __init__(self, instrument: str, model: Module, inputs: Inputs, layer: str | None):
        self.instrument, self.layer = instrument, layer
        self.explained = Explained(instrument, model, inputs, None, None)
        if len(self.explained.inputs) != 1:
            raise TypeError(
                f"{instrument}: the model takes {len(self.explained.inputs)} inputs; give a "
                "function of one of them, with the others held fixed, as a module"
            )
        self.model, self.data = model, self.explained.inputs[0]
        names = [name for name, _ in model.named_modules()]
        if layer is not None and layer not in names:
            raise no_such_layer(instrument, layer, [n for n in names if n])

    def table(self, x: Tensor) -> Tensor:
        """The units' activations: the mean over positions of a channel."""
        if self.layer is None:
            return self.explained.all_outputs([x])
        with recorded(self.model) as seen:
            self.model(x)
        named = [c for c in seen.calls if c.path == self.layer and c.finished]
        out = main_tensor(self.instrument, named[-1].output)
        if out.ndim < 2:
            raise ValueError(
                f"{self.instrument}: the output of layer {self.layer!r} has shape "
                f"{tuple(out.shape)}; it must have a row for each sample"
            )
        return out.reshape(out.shape[0], out.shape[1], -1).mean(2)


@instrument("V32", needs=("model", "inputs"))
def maximize(
    model: Module,
    inputs: Inputs,
    units: int | Sequence[int] | None = None,
    *,
    layer: str | None = None,
    steps: int = 200,
    rate: float = 0.05,
    smoothness: float = 0.05,
    jitter: int | None = None,
    seed: int = 0,
) -> Maximized:
    """Inputs that drive units most, found by ascent from noise.

    Gradient ascent alone finds noise. The picture is kept in the range of the data, smooth (a
    penalty on differences of neighbors) and is shifted by a pixel or so at every step. For an
    output it is the logit against the others that is raised, so that the class becomes likely.

    Args:
        model: any module; it is run in evaluation mode.
        inputs: some data: they say the shape and the range, and which units are dead.
        units: channels of the layer, or outputs; by default the first ten.
        layer: the name of a layer; without it the output.
        steps, rate: of the ascent, in units of the data's range.
        smoothness: of the picture; it falls to a twentieth on the way.
        jitter: the largest shift; by default one pixel, none of pictures below 16 pixels.
        seed: of the noise.
    """
    if steps < 1 or rate <= 0 or smoothness < 0 or (jitter or 0) < 0:
        raise ValueError(
            "maximize: steps and rate must be positive, smoothness and jitter not negative, got "
            f"steps={steps}, rate={rate}, smoothness={smoothness}, jitter={jitter}"
        )
    ascent = _Ascent("maximize", model, inputs, layer)
    manual_seed(seed)
    with no_grad():
        on_data = ascent.table(ascent.data)
    chosen = _units(units, on_data.shape[1])
    x = _climbed(ascent, chosen, steps, rate, smoothness, jitter)
    with no_grad():
        table = ascent.table(x)
        shares = table.softmax(1) if layer is None and table.shape[1] > 1 else None
    reached = [float(table[i, k]) for i, k in enumerate(chosen)]
    largest = [float(on_data[:, k].max()) for k in chosen]
    dead = [k for i, k in enumerate(chosen) if _is_dead(on_data[:, k], reached[i])]
    likely = None if shares is None else [float(shares[i, k]) for i, k in enumerate(chosen)]
    return Maximized(layer or "", chosen, x, reached, largest, likely, dead)


def _is_dead(on_data: Tensor, reached: float) -> bool:
    """The same on all data, and no ascent moved it."""
    return bool((on_data == on_data[0]).all()) and reached == float(on_data[0])


def _units(units: int | Sequence[int] | None, count: int) -> list[int]:
    if units is None:
        return list(range(min(10, count)))
    chosen = [units] if isinstance(units, int) else list(units)
    wrong = [k for k in chosen if not 0 <= k < count]
    if wrong or not chosen:
        raise ValueError(f"maximize: there is no unit {wrong or chosen}; there are {count}")
    return chosen


def _climbed(
    ascent: _Ascent,
    units: list[int],
    steps: int,
    rate: float,
    smoothness: float,
    jitter: int | None,
) -> Tensor:
    data = ascent.data
    low, high = data.amin(0, keepdim=True), data.amax(0, keepdim=True)
    least, most = float(low.min()), float(high.max())
    span = most - least or 1.0
    middle = data.mean(0, keepdim=True)
    x = middle + 0.05 * span * randn(len(units), *data.shape[1:], dtype=data.dtype)
    first, second = x * 0, x * 0
    for step in range(1, steps + 1):
        shifts = _shifts(jitter, x)
        # First the rough shape, then what the unit asks for in detail.
        smooth = smoothness / span * (1 - 0.95 * step / steps)
        g = _uphill(ascent, roll(x, shifts, _space(x)) if shifts else x, units, smooth)
        g = roll(g, tuple(-s for s in shifts), _space(x)) if shifts else g
        # Adam's rule: every pixel moves by about the rate, however small its gradient.
        first, second = 0.9 * first + 0.1 * g, 0.99 * second + 0.01 * g * g
        scale = (second / (1 - 0.99**step)).sqrt() + 1e-12
        x = (x + rate * span * (first / (1 - 0.9**step)) / scale).clamp(least, most)
    return x


def _space(x: Tensor) -> tuple[int, ...]:
    """The dimensions of rows and columns."""
    return (-2, -1) if x.ndim == 4 else (-1,)


def _shifts(jitter: int | None, x: Tensor) -> tuple[int, ...]:
    """How far a picture is moved; what is no picture stays."""
    if jitter is None:
        jitter = int(min(x.shape[-2:]) >= 16)
    if not jitter or x.ndim != 4:
        return ()
    return tuple(int(k) for k in randint(-jitter, jitter + 1, (2,)).tolist())


def _uphill(ascent: _Ascent, x: Tensor, units: list[int], smoothness: float) -> Tensor:
    """The gradient of each unit's activation with respect to its own picture."""
    leaf = x.detach().requires_grad_()
    with enable_grad():
        table = ascent.table(leaf)
        if ascent.layer is None and table.shape[1] > 1:
            table = table.log_softmax(1) + 0.05 * table
        total = table[0, units[0]]
        for i, unit in enumerate(units[1:], 1):
            total = total + table[i, unit]
        if leaf.ndim == 4:
            across, along = leaf[..., 1:] - leaf[..., :-1], leaf[..., 1:, :] - leaf[..., :-1, :]
            total = total - smoothness * (across.square().sum() + along.square().sum())
    (g,) = gradients_of([total], [leaf], allow_unused=True, materialize_grads=True)
    return g.detach()


@dataclass(repr=False, eq=False)
class Dream(Result):
    """Images before and after a layer's activations were raised, and the mean square of them."""

    layer: str
    before: Tensor
    after: Tensor
    activity: tuple[float, float]

    def __str__(self) -> str:
        start, end = self.activity
        moved = float((self.after - self.before).square().mean().sqrt())
        return (
            f"dream of layer {self.layer!r}: mean square activation {start:.4g} -> {end:.4g}, "
            f"pixels moved by {moved:.3g} (root mean square)"
        )

    def plot(
        self, axes: Sequence[Axes] | None = None, *, most: int = 6, **style: Any
    ) -> list[Axes]:
        """Draws the images, and the dreams below them."""
        count = min(most, len(self.before))
        shown = [*self.before[:count], *self.after[:count]]
        titles = [*[f"sample {i}" for i in range(count)], *["dream"] * count]
        made = draw_grid(axes, shown, titles, columns=count, **style)
        made[0].figure.suptitle(f"Dream of layer {self.layer!r}", fontsize=10)
        return made


@instrument("V32", needs=("model", "inputs"))
def deep_dream(
    model: Module,
    inputs: Inputs,
    layer: str | None = None,
    *,
    steps: int = 50,
    rate: float = 0.02,
    jitter: int | None = None,
    seed: int = 0,
) -> Dream:
    """Images changed so that a layer sees more of whatever it sees.

    Ascends the mean square of the layer's activations from the images themselves, each step of the
    same size, shifted by a pixel or so.

    Args:
        model: any module; it is run in evaluation mode.
        inputs: one batch of images.
        layer: the name of a layer; by default the last convolution or hidden layer.
        steps, rate: of the ascent, in units of the data's range.
        jitter: the largest shift; by default one pixel, none of pictures below 16 pixels.
        seed: of the shifts.
    """
    if steps < 1 or rate <= 0 or (jitter or 0) < 0:
        raise ValueError(
            f"deep_dream: steps and rate must be positive and jitter not negative, got "
            f"steps={steps}, rate={rate}, jitter={jitter}"
        )
    ascent = _Ascent("deep_dream", model, inputs, layer)
    name = layer if layer is not None else _hidden_layer(model, ascent.data)
    manual_seed(seed)
    low, high = float(ascent.data.min()), float(ascent.data.max())
    span = high - low or 1.0
    x, start = ascent.data, _activity(model, ascent.data, name)[0]
    for _ in range(steps):
        shifts = _shifts(jitter, x)
        _, g = _activity(model, roll(x, shifts, _space(x)) if shifts else x, name)
        g = roll(g, tuple(-s for s in shifts), _space(x)) if shifts else g
        size = g.abs().reshape(len(g), -1).mean(1).reshape(-1, *[1] * (g.ndim - 1)) + 1e-12
        x = (x + rate * span * g / size).clamp(low, high)
    return Dream(name, ascent.data, x, (start, _activity(model, x, name)[0]))


def _hidden_layer(model: Module, data: Tensor) -> str:
    """The last layer without children but one whose output is no smaller than a map or a row."""
    with recorded(model) as seen, no_grad():
        model(data)
    able = [c for c in seen.calls if c.finished and c.path and not c.children and c.outputs]
    maps = [c for c in able if c.outputs[0].ndim == 4]
    if maps:
        return maps[-1].path
    return able[-2].path if len(able) > 1 else able[-1].path


def _activity(model: Module, x: Tensor, layer: str) -> tuple[float, Tensor]:
    leaf = x.detach().requires_grad_()
    with enable_grad(), recorded(model) as seen:
        model(leaf)
    call = [c for c in seen.calls if c.path == layer and c.finished][-1]
    with enable_grad():
        value = main_tensor("deep_dream", call.output).square().mean()
    (g,) = gradients_of([value], [leaf], allow_unused=True, materialize_grads=True)
    return float(value.detach()), g.detach()

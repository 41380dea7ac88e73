"""Ways to say how much each input contributed to an output."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

from chainrule.autograd.engine import grad as gradients_of
from chainrule.autograd.modes import enable_grad, no_grad
from chainrule.inspect.attribution.outputs import Explained
from chainrule.inspect.attribution.rules import Differences, points_between
from chainrule.ops.creation.conversion import clone
from chainrule.ops.creation.patterns import zeros_like
from chainrule.tensor import Tensor

__all__ = ["METHODS"]

Settings = dict[str, object]


def _gradients(model: Explained, inputs: Sequence[Tensor]) -> list[Tensor]:
    """The gradient of each sample's number with respect to its own inputs."""
    leaves = [t.detach().requires_grad_() for t in inputs]
    with enable_grad():
        total = model(leaves).sum()
    found = gradients_of([total], leaves, allow_unused=True)
    return [zeros_like(t) if g is None else g for t, g in zip(leaves, found, strict=True)]


def sensitivity(model: Explained, baseline: list[Tensor], settings: Settings) -> list[Tensor]:
    """|dy / dx|."""
    return [g.abs() for g in _gradients(model, model.inputs)]


def gradient_x_input(model: Explained, baseline: list[Tensor], settings: Settings) -> list[Tensor]:
    """dy / dx (x - x0): the contributions if the model were linear."""
    found = _gradients(model, model.inputs)
    return [g * (x - b) for g, x, b in zip(found, model.inputs, baseline, strict=True)]


def integrated_gradients(
    model: Explained, baseline: list[Tensor], settings: Settings
) -> list[Tensor]:
    """(x - x0) times the mean of the gradient on the way from x0 to x (Sundararajan 2017)."""
    change = [x - b for x, b in zip(model.inputs, baseline, strict=True)]
    total = [zeros_like(c) for c in change]
    for share, weight in points_between(int(str(settings["steps"]))):
        at = [b + share * c for b, c in zip(baseline, change, strict=True)]
        total = [t + weight * g for t, g in zip(total, _gradients(model, at), strict=True)]
    return [c * t for c, t in zip(change, total, strict=True)]


def deeplift(model: Explained, baseline: list[Tensor], settings: Settings) -> list[Tensor]:
    """(x - x0) times the multipliers of differences, node by node (Shrikumar 2017, rescale)."""
    differences = Differences(model.instrument)
    with differences.baseline():
        model(baseline)
    leaves = [t.detach().requires_grad_() for t in model.inputs]
    with differences.compared():
        y = model(leaves)
    found = gradients_of([y.sum()], leaves, allow_unused=True)
    return [
        zeros_like(x) if m is None else m * (x - b)
        for m, x, b in zip(found, model.inputs, baseline, strict=True)
    ]


def occlusion(model: Explained, baseline: list[Tensor], settings: Settings) -> list[Tensor]:
    """What is lost when a window of the input is replaced by the baseline (Zeiler 2014); where
    windows overlap, the mean."""
    with no_grad():
        whole = model(model.inputs)
        return [_occluded(model, baseline, i, whole, settings) for i in range(len(model.inputs))]


def _occluded(
    model: Explained, baseline: list[Tensor], i: int, whole: Tensor, settings: Settings
) -> Tensor:
    x = model.inputs[i]
    sizes = tuple(x.shape[1:])
    window = _per_dimension("window", settings["window"], sizes, _window(sizes))
    stride = _per_dimension("stride", settings["stride"], sizes, window)
    starts = [  # the last window ends beyond the edge where the stride does not divide
        range(0, -(-(size - w) // s) * s + 1, s)
        for size, w, s in zip(sizes, window, stride, strict=True)
    ]
    total, count = zeros_like(x), zeros_like(x)
    for corner in itertools.product(*starts):
        at = (slice(None), *[slice(c, c + w) for c, w in zip(corner, window, strict=True)])
        changed = clone(x)
        changed[at] = baseline[i][at]
        inputs = [*model.inputs[:i], changed, *model.inputs[i + 1 :]]
        lost = (whole - model(inputs)).reshape(-1, *[1] * len(sizes))
        total[at] += lost
        count[at] += 1
    return total / count.clamp(min=1)


def _window(sizes: tuple[int, ...]) -> tuple[int, ...]:
    """One feature of a table; a seventh of an image in all its channels; one step of a series."""
    if len(sizes) == 3:
        return sizes[0], max(1, sizes[1] // 7), max(1, sizes[2] // 7)
    return (1, sizes[1]) if len(sizes) == 2 else (1,) * len(sizes)


def _per_dimension(
    name: str, given: object, sizes: tuple[int, ...], otherwise: tuple[int, ...]
) -> tuple[int, ...]:
    if given is None:
        return otherwise
    found = (given,) * len(sizes) if isinstance(given, int) else given
    if (
        not isinstance(found, (tuple, list))
        or len(found) != len(sizes)
        or not all(isinstance(n, int) and 1 <= n <= s for n, s in zip(found, sizes, strict=True))
    ):
        raise ValueError(
            f"attribute: {name} must have a number from 1 up for each of the dimensions "
            f"{sizes} of a sample, no larger than it, got {given}"
        )
    return tuple(found)


# Each with whether its contributions ought to sum to the change of the output.
METHODS: dict[str, tuple[Callable[[Explained, list[Tensor], Settings], list[Tensor]], bool]] = {
    "sensitivity": (sensitivity, False),
    "gradient_x_input": (gradient_x_input, True),
    "integrated_gradients": (integrated_gradients, True),
    "deeplift": (deeplift, True),
    "occlusion": (occlusion, False),
}

"""What transforms of images have in common.

They are modules, so that a model can hold them and a file keep them. A transform takes an image
(C, H, W) or a batch (N, C, H, W); a random one draws for every image of a batch anew.
"""

from __future__ import annotations

from collections.abc import Sequence

from chainrule.backend import dtypes
from chainrule.data.geometry import check_choice
from chainrule.data.image_arguments import Span, check_image
from chainrule.nn.module.base import Module
from chainrule.ops.creation.sampling import rand, randint
from chainrule.ops.shape.views import reshape
from chainrule.random import Generator
from chainrule.tensor import Tensor

__all__ = [
    "ImageTransform",
    "InterpolationMode",
    "RandomTransform",
    "check_probability",
    "chosen",
    "integers",
    "interval",
    "uniform",
]


class InterpolationMode:
    """Names of the ways to find a value between pixels; the text itself can be given as well."""

    NEAREST = "nearest"
    NEAREST_EXACT = "nearest-exact"
    BILINEAR = "bilinear"
    BICUBIC = "bicubic"


class ImageTransform(Module):
    """A transform that takes an image or a batch of them.

    ``batched`` says that a batch is transformed as its images would be one by one; a dataset in
    memory then transforms whole batches. A subclass of which this is not true sets it to False.
    """

    batched = True


class RandomTransform(ImageTransform):
    """A transform that draws random numbers, from ``generator`` or from the default one.

    In evaluation (after ``model.eval()``) nothing is drawn and the image passes as it is, cut or
    resized without chance where the size depends on it. On its own a transform is in training and
    always draws, as in torchvision.
    """

    def forward(self, input: Tensor, generator: Generator | None = None) -> Tensor:
        check_image(type(self).__name__, input)
        if not self.training:
            return self.steady(input)
        if input.ndim == 4:
            return self.varied(input, generator)
        return self.varied(input[None], generator)[0]

    def varied(self, x: Tensor, generator: Generator | None) -> Tensor:
        """The batch (N, C, H, W) with a draw for each of its images."""
        raise NotImplementedError(f"{type(self).__name__} should define varied(x, generator)")

    def steady(self, x: Tensor) -> Tensor:
        """The image, or the batch, in evaluation."""
        return x


# --- drawing --------------------------------------------------------------------------------------


def uniform(n: int, low: float, high: float, generator: Generator | None) -> list[float]:
    """n numbers between low and high."""
    u = rand(n, generator=generator, dtype=dtypes.float64)
    return (low + (high - low) * u).tolist()


def integers(n: int, end: int, generator: Generator | None) -> Tensor:
    """n numbers out of 0, ..., end - 1."""
    return randint(0, end, (n,), generator=generator)


def chosen(x: Tensor, p: float, generator: Generator | None) -> Tensor:
    """Which images of a batch are chosen with probability p, as (N, 1, 1, 1)."""
    return reshape(rand(x.shape[0], generator=generator) < p, (-1, 1, 1, 1))


# --- arguments ------------------------------------------------------------------------------------


def check_probability(op: str, p: float) -> float:
    """p, or an error if it is no probability."""
    if not 0 <= p <= 1:
        raise ValueError(f"{op}: p must be a probability, in [0, 1], got {p}")
    return p


def interval(
    op: str,
    name: str,
    value: Span,
    center: float = 0.0,
    low: float = float("-inf"),
    high: float = float("inf"),
) -> tuple[float, float]:
    """(a, b) as it is, or one number d as (center - d, center + d); within the bounds."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        ends = tuple([float(v) for v in value])
    elif isinstance(value, (int, float)):
        if value < 0:
            raise ValueError(f"{op}: {name} as a single number must be non-negative, got {value}")
        ends = (max(center - value, low), center + value)
    else:
        raise TypeError(f"{op}: {name} must be a number or (from, to), got {value!r}")
    if len(ends) != 2 or not low <= ends[0] <= ends[1] <= high:
        bounds = "" if (low, high) == (float("-inf"), float("inf")) else f" in [{low:g}, {high:g}]"
        raise ValueError(
            f"{op}: {name} must be a number or (from, to) in this order{bounds}, got {value!r}"
        )
    return ends[0], ends[1]


def resampling(op: str, value: str, allowed: Sequence[str]) -> str:
    """The name of an interpolation."""
    return check_choice(op, "interpolation", value, allowed)

"""Random places, angles and sizes for training images: torchvision's classes and arguments.

Each draws for every image of a batch anew, where torchvision draws once for a batch.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from chainrule.data import geometry as G
from chainrule.data.image_arguments import Fill, Span, floating, pair
from chainrule.data.image_transform import (
    RandomTransform,
    check_probability,
    chosen,
    integers,
    interval,
    resampling,
    uniform,
)
from chainrule.ops.creation.patterns import arange
from chainrule.ops.elementwise.logic import where
from chainrule.ops.creation.from_data import tensor
from chainrule.ops.shape.joining import unbind
from chainrule.ops.core.promotion import cast
from chainrule.ops.creation.sampling import randn_like
from chainrule.ops.shape.views import reshape
from chainrule.ops.shape.stacking import stack
from chainrule.random import Generator
from chainrule.tensor import Tensor
from chainrule.typing import Sizes

__all__ = [
    "RandomAffine",
    "RandomCrop",
    "RandomErasing",
    "RandomResizedCrop",
    "RandomRotation",
]

Pair = tuple[float, float]


class RandomAffine(RandomTransform):
    """The image turned, shifted, scaled and sheared by random amounts.

    Args:
        degrees: the angle, drawn from (-degrees, degrees) or (from, to).
        translate: (a, b): shifts of up to a times the width and b times the height, in whole
            pixels.
        scale: (from, to).
        shear: degrees, as a number or (from, to) along x, or (from, to, from, to) along x and y.
        interpolation: "nearest" or "bilinear".
        fill: what lies around the image, a number or one for each channel.
        center: (x, y) of the point that stays, from the upper left corner; else the middle.

    >>> import chainrule
    >>> from chainrule.data import transforms
    >>> shifted = transforms.RandomAffine(0, translate=(0.1, 0.1))(chainrule.rand(8, 1, 28, 28))
    >>> shifted.shape
    chainrule.Size([8, 1, 28, 28])
    """

    def __init__(
        self,
        degrees: Span,
        translate: Sequence[float] | None = None,
        scale: Sequence[float] | None = None,
        shear: Span | None = None,
        interpolation: str = "nearest",
        fill: Fill = 0,
        center: Sequence[float] | None = None,
    ):
        super().__init__()
        op = type(self).__name__
        self.degrees = interval(op, "degrees", degrees)
        self.translate: Pair = (0.0, 0.0)
        if translate is not None:
            if len(translate) != 2 or not all([0 <= t <= 1 for t in translate]):
                raise ValueError(
                    f"{op}: translate must be two fractions of the size, in [0, 1], got "
                    f"{translate!r}"
                )
            self.translate = (float(translate[0]), float(translate[1]))
        self.scale: Pair = (1.0, 1.0)
        if scale is not None:
            self.scale = interval(op, "scale", tuple(scale))
            if self.scale[0] <= 0:
                raise ValueError(f"{op}: scale must be positive, got {scale!r}")
        self.shear = _shears(op, shear)
        self.interpolation = resampling(op, interpolation, G.WARPING)
        self.fill = fill
        self.center = None if center is None else tuple(center)

    def varied(self, x: Tensor, generator: Generator | None) -> Tensor:
        n, _, h, w = x.shape
        center = G.middle(type(self).__name__, x, self.center)

        def draw(low: float, high: float) -> list[float]:
            return uniform(n, low, high, generator) if low < high else [low] * n

        angles = draw(*self.degrees)
        (a, b), (a_max, b_max) = self.translate, (self.translate[0] * w, self.translate[1] * h)
        right = [round(t) for t in draw(-a_max, a_max)] if a else [0] * n
        down = [round(t) for t in draw(-b_max, b_max)] if b else [0] * n
        scales = draw(*self.scale)
        shears = list(zip(draw(*self.shear[:2]), draw(*self.shear[2:]), strict=True))
        drawn = zip(angles, zip(right, down, strict=True), scales, shears, strict=True)
        matrices = [G.inverse_affine_matrix(center, *parameters) for parameters in drawn]
        return G.warp(x, matrices, self.interpolation, self.fill)

    def extra_repr(self) -> str:
        return (
            f"degrees={self.degrees}, translate={self.translate}, scale={self.scale}, "
            f"shear={self.shear}, interpolation={self.interpolation!r}, fill={self.fill}, "
            f"center={self.center}"
        )


def _shears(op: str, shear: Span | None) -> tuple[float, float, float, float]:
    """(from, to) along x and (from, to) along y."""
    if shear is None:
        return 0.0, 0.0, 0.0, 0.0
    if isinstance(shear, Sequence) and len(shear) == 4:
        along = (*interval(op, "shear", shear[:2]), *interval(op, "shear", shear[2:]))
    else:
        along = (*interval(op, "shear", shear), 0.0, 0.0)
    if max(map(abs, along)) >= 90:
        raise ValueError(f"{op}: shear must be angles below 90 degrees, got {shear!r}")
    return along


class RandomRotation(RandomTransform):
    """The image turned by an angle in degrees, drawn from (-degrees, degrees) or (from, to).

    With ``expand`` the image grows as the turned one needs: that is for single images, as those of
    a batch have one size. See :class:`RandomAffine` for the other arguments.
    """

    def __init__(
        self,
        degrees: Span,
        interpolation: str = "nearest",
        expand: bool = False,
        center: Sequence[float] | None = None,
        fill: Fill = 0,
    ):
        super().__init__()
        self.degrees = interval("RandomRotation", "degrees", degrees)
        self.interpolation = resampling("RandomRotation", interpolation, G.WARPING)
        G.check_expand("RandomRotation", expand, center)
        self.expand = bool(expand)
        self.center = None if center is None else tuple(center)
        self.fill = fill
        self.batched = not self.expand

    def varied(self, x: Tensor, generator: Generator | None) -> Tensor:
        angles = uniform(x.shape[0], *self.degrees, generator)
        if self.expand:
            if len(angles) != 1:
                raise ValueError(
                    "RandomRotation: with expand=True every image gets a size of its own, so it "
                    f"takes single images; got a batch of {len(angles)}"
                )
            return G.rotate(x, angles[0], self.interpolation, True, None, self.fill)
        center = G.middle("RandomRotation", x, self.center)
        matrices = [G.inverse_affine_matrix(center, -a, (0, 0), 1, (0, 0)) for a in angles]
        return G.warp(x, matrices, self.interpolation, self.fill)

    def extra_repr(self) -> str:
        return (
            f"degrees={self.degrees}, interpolation={self.interpolation!r}, "
            f"expand={self.expand}, center={self.center}, fill={self.fill}"
        )


class RandomCrop(RandomTransform):
    """A part of this size from a random place of the image; in evaluation from its middle.

    Args:
        size: (height, width), or one number for both.
        padding: a border put around the image first (see functional.pad).
        pad_if_needed: put a border around images that are too small.
        fill: the value of the border.
        padding_mode: "constant", "edge", "reflect" or "symmetric".
    """

    def __init__(
        self,
        size: Sizes,
        padding: Sizes | None = None,
        pad_if_needed: bool = False,
        fill: float = 0,
        padding_mode: str = "constant",
    ):
        super().__init__()
        self.size = pair("RandomCrop", "size", size)
        self.padding = None if padding is None else G.border(padding)
        self.pad_if_needed = bool(pad_if_needed)
        self.fill = fill
        self.padding_mode = G.check_choice(
            "RandomCrop", "padding_mode", padding_mode, tuple(G.PADDING)
        )

    def varied(self, x: Tensor, generator: Generator | None) -> Tensor:
        if self.padding is not None:
            x = G.pad(x, self.padding, self.fill, self.padding_mode)
        height, width = self.size
        if self.pad_if_needed:
            missing = (max(width - x.shape[-1], 0), max(height - x.shape[-2], 0))
            if any(missing):
                x = G.pad(x, missing, self.fill, self.padding_mode)
        n, c, h, w = x.shape
        if height > h or width > w:
            raise ValueError(
                f"RandomCrop: a part of {height} by {width} is larger than the image of {h} by {w} "
                "(with its padding); pass pad_if_needed=True or resize first"
            )
        top, left = (integers(n, e + 1, generator) for e in (h - height, w - width))
        if n == 1:
            return G.crop(x, int(top), int(left), height, width)
        rows = reshape(top, (n, 1, 1, 1)) + reshape(arange(height), (1, 1, height, 1))
        columns = reshape(left, (n, 1, 1, 1)) + arange(width)
        return x[reshape(arange(n), (n, 1, 1, 1)), reshape(arange(c), (1, c, 1, 1)), rows, columns]

    def steady(self, x: Tensor) -> Tensor:
        return G.center_crop(x, self.size)

    def extra_repr(self) -> str:
        return (
            f"size={self.size}, padding={self.padding}, pad_if_needed={self.pad_if_needed}, "
            f"fill={self.fill}, padding_mode={self.padding_mode!r}"
        )


class RandomResizedCrop(RandomTransform):
    """A random part of the image, brought to a size; in evaluation the whole image.

    Args:
        size: (height, width), or one number for both.
        scale: (from, to) of the part's share of the area.
        ratio: (from, to) of its width divided by its height.
        interpolation: "bilinear", "bicubic", "nearest" or "nearest-exact".
        antialias: average over all pixels where the image shrinks.
    """

    def __init__(
        self,
        size: Sizes,
        scale: Pair = (0.08, 1.0),
        ratio: Pair = (3 / 4, 4 / 3),
        interpolation: str = "bilinear",
        antialias: bool = True,
    ):
        super().__init__()
        self.size = pair("RandomResizedCrop", "size", size)
        self.scale, self.ratio = _shares("RandomResizedCrop", scale, ratio)
        self.interpolation = resampling("RandomResizedCrop", interpolation, G.RESIZING)
        self.antialias = bool(antialias)

    def varied(self, x: Tensor, generator: Generator | None) -> Tensor:
        n, _, h, w = x.shape
        boxes = [self._box(h, w, generator) for _ in range(n)]
        parts = [
            G.resized_crop(image, *box, self.size, self.interpolation, self.antialias)
            for image, box in zip(unbind(x), boxes, strict=True)
        ]
        return stack(parts) if parts else self.steady(x)

    def _box(self, h: int, w: int, generator: Generator | None) -> tuple[int, int, int, int]:
        """(top, left, height, width); if ten draws do not fit, as much of the middle as may be."""
        for height, width in _drawn_sizes(h, w, self.scale, self.ratio, generator):
            if 0 < height <= h and 0 < width <= w:
                return *_drawn_place(h - height, w - width, generator), height, width
        low, high = self.ratio
        height = min(h, round(w / low))
        width = min(w, round(h * high))
        return (h - height) // 2, (w - width) // 2, height, width

    def steady(self, x: Tensor) -> Tensor:
        return G.resize(x, self.size, self.interpolation, antialias=self.antialias)

    def extra_repr(self) -> str:
        return (
            f"size={self.size}, scale={self.scale}, ratio={self.ratio}, "
            f"interpolation={self.interpolation!r}, antialias={self.antialias}"
        )


def _shares(op: str, scale: Pair, ratio: Pair) -> tuple[Pair, Pair]:
    shares = interval(op, "scale", tuple(scale), low=0.0, high=1.0)
    ratios = interval(op, "ratio", tuple(ratio), low=0.0)
    if ratios[0] <= 0:
        raise ValueError(f"{op}: ratio must be positive, got {ratio!r}")
    return shares, ratios


def _drawn_sizes(
    h: int, w: int, scale: Pair, ratio: Pair, generator: Generator | None
) -> list[tuple[int, int]]:
    """Ten random (height, width): the area uniform, the ratio uniform in its logarithm."""
    areas = uniform(10, scale[0] * h * w, scale[1] * h * w, generator)
    logs = uniform(10, math.log(ratio[0]), math.log(ratio[1]), generator)
    return [
        (round(math.sqrt(area / math.exp(log))), round(math.sqrt(area * math.exp(log))))
        for area, log in zip(areas, logs, strict=True)
    ]


def _drawn_place(rows: int, columns: int, generator: Generator | None) -> tuple[int, int]:
    """(top, left) at most these far from the corner."""
    return int(integers(1, rows + 1, generator)), int(integers(1, columns + 1, generator))


class RandomErasing(RandomTransform):
    """A random rectangle of the image erased, with probability p.

    Args:
        p: the probability.
        scale: (from, to) of the rectangle's share of the area.
        ratio: (from, to) of its height divided by its width.
        value: what is put there: a number, one for each channel, or "random" for normal noise.
    """

    def __init__(
        self,
        p: float = 0.5,
        scale: Pair = (0.02, 0.33),
        ratio: Pair = (0.3, 3.3),
        value: float | Sequence[float] | str = 0,
    ):
        super().__init__()
        self.p = check_probability("RandomErasing", p)
        self.scale, self.ratio = _shares("RandomErasing", scale, ratio)
        if isinstance(value, str) and value != "random":
            raise ValueError(
                "RandomErasing: value must be a number, one for each channel, or 'random'; got "
                f"{value!r}"
            )
        self.value = value

    def varied(self, x: Tensor, generator: Generator | None) -> Tensor:
        n, c, h, w = x.shape
        which = chosen(x, self.p, generator)
        boxes = [self._box(h, w, generator) if b else (0, 0, 0, 0) for b in which.ravel().tolist()]
        corners = reshape(tensor([v for box in boxes for v in box]).long(), (n, 4, 1, 1, 1))
        top, left, bottom, right = (corners[:, k] for k in range(4))
        rows, columns = reshape(arange(h), (1, 1, h, 1)), reshape(arange(w), (1, 1, 1, w))
        inside = (rows >= top) & (rows < bottom) & (columns >= left) & (columns < right)
        return where(inside, self._values(x, c, generator), x)

    def _box(self, h: int, w: int, generator: Generator | None) -> tuple[int, int, int, int]:
        """(top, left, bottom, right); nothing, if ten draws do not fit."""
        for width, height in _drawn_sizes(w, h, self.scale, self.ratio, generator):
            if height < h and width < w:
                top, left = _drawn_place(h - height, w - width, generator)
                return top, left, top + height, left + width
        return 0, 0, 0, 0

    def _values(self, x: Tensor, channels: int, generator: Generator | None) -> Tensor:
        if self.value == "random":
            return randn_like(
                floating("RandomErasing(value='random')", x).detach(), generator=generator
            )
        numbers = list(self.value) if isinstance(self.value, (tuple, list)) else [self.value]
        if len(numbers) not in (1, channels):
            raise ValueError(
                f"RandomErasing: value must be one number or one for each of the {channels} "
                f"channels, got {len(numbers)}"
            )
        return cast(reshape(tensor(numbers), (1, -1, 1, 1)), x.dtype)

    def extra_repr(self) -> str:
        return f"p={self.p}, scale={self.scale}, ratio={self.ratio}, value={self.value!r}"

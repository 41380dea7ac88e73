"""Random mirror images, colors and noise for training images: torchvision's classes and arguments.

Each draws for every image of a batch anew, where torchvision draws once for a batch.
"""

from __future__ import annotations

from collections.abc import Callable

from chainrule.data import color
from chainrule.data import geometry as G
from chainrule.data.image_arguments import Span
from chainrule.data.image_transform import (
    RandomTransform,
    check_probability,
    chosen,
    interval,
    uniform,
)
from chainrule.ops.elementwise.logic import where
from chainrule.ops.creation.from_data import tensor
from chainrule.ops.creation.sampling import randperm
from chainrule.random import Generator
from chainrule.tensor import Tensor

__all__ = [
    "ColorJitter",
    "GaussianNoise",
    "RandomGrayscale",
    "RandomHorizontalFlip",
    "RandomVerticalFlip",
]

Pair = tuple[float, float]


class _WithProbability(RandomTransform):
    """Something done to each image with probability p."""

    change: Callable[[Tensor], Tensor]

    def __init__(self, p: float):
        super().__init__()
        self.p = check_probability(type(self).__name__, p)

    def varied(self, x: Tensor, generator: Generator | None) -> Tensor:
        return where(chosen(x, self.p, generator), type(self).change(x), x)

    def extra_repr(self) -> str:
        return f"p={self.p}"


class RandomHorizontalFlip(_WithProbability):
    """The mirror image, left for right, with probability p.

    Where left and right matter, as in letters (b, d) and digits, it makes wrong examples.
    """

    change = staticmethod(G.hflip)

    def __init__(self, p: float = 0.5):
        super().__init__(p)


class RandomVerticalFlip(_WithProbability):
    """The mirror image, top for bottom, with probability p."""

    change = staticmethod(G.vflip)

    def __init__(self, p: float = 0.5):
        super().__init__(p)


class RandomGrayscale(_WithProbability):
    """The image without its colors, with probability p; the channels stay as many."""

    def __init__(self, p: float = 0.1):
        super().__init__(p)

    @staticmethod
    def change(x: Tensor) -> Tensor:
        return color.rgb_to_grayscale(x, x.shape[-3])


# --- color ----------------------------------------------------------------------------------------


class ColorJitter(RandomTransform):
    """Brightness, contrast, saturation and hue changed by random factors, in random order.

    Args:
        brightness, contrast, saturation: factors, drawn from (1 - v, 1 + v) or (from, to).
        hue: the turn around the color wheel, drawn from (-v, v) or (from, to), in [-1/2, 1/2].

    Every image has factors of its own; the order is drawn for the whole batch.
    """

    def __init__(
        self, brightness: Span = 0, contrast: Span = 0, saturation: Span = 0, hue: Span = 0
    ):
        super().__init__()

        def factors(name: str, value: Span) -> Pair:
            return interval("ColorJitter", name, value, 1.0, 0.0)

        self.brightness = factors("brightness", brightness)
        self.contrast = factors("contrast", contrast)
        self.saturation = factors("saturation", saturation)
        if isinstance(hue, (int, float)) and hue > 0.5:
            raise ValueError(f"ColorJitter: hue must be in [0, 0.5], got {hue}")
        self.hue = interval("ColorJitter", "hue", hue, 0.0, -0.5, 0.5)

    def varied(self, x: Tensor, generator: Generator | None) -> Tensor:
        changes = (
            (color.adjust_brightness, self.brightness, 1.0),
            (color.adjust_contrast, self.contrast, 1.0),
            (color.adjust_saturation, self.saturation, 1.0),
            (color.adjust_hue, self.hue, 0.0),
        )
        for k in randperm(len(changes), generator=generator).tolist():
            change, (low, high), nothing = changes[k]
            if low != high:
                drawn = uniform(x.shape[0], low, high, generator)
                dtype = x.dtype if x.is_floating_point() else None
                x = change(x, tensor(drawn, dtype=dtype))
            elif low != nothing:
                x = change(x, low)
        return x

    def extra_repr(self) -> str:
        return (
            f"brightness={self.brightness}, contrast={self.contrast}, "
            f"saturation={self.saturation}, hue={self.hue}"
        )


class GaussianNoise(RandomTransform):
    """A noisy copy: the image plus mean + sigma n, n normal; ``clip`` cuts it to [0, 1].

    >>> import chainrule
    >>> from chainrule.data import transforms
    >>> g = chainrule.Generator().manual_seed(0)
    >>> x = transforms.GaussianNoise(sigma=0.1)(chainrule.zeros(1, 28, 28), generator=g)
    >>> bool((x >= 0).all())
    True
    """

    def __init__(self, mean: float = 0.0, sigma: float = 0.1, clip: bool = True):
        super().__init__()
        if not sigma >= 0:
            raise ValueError(f"GaussianNoise: sigma must be non-negative, got {sigma}")
        self.mean, self.sigma, self.clip = mean, sigma, bool(clip)

    def varied(self, x: Tensor, generator: Generator | None) -> Tensor:
        return color.gaussian_noise(x, self.mean, self.sigma, self.clip, generator)

    def extra_repr(self) -> str:
        return f"mean={self.mean}, sigma={self.sigma}, clip={self.clip}"

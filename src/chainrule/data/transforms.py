"""Transforms of images: torchvision's ``transforms``.

>>> import chainrule
>>> from chainrule.data import transforms
>>> transform = transforms.Compose([
...     transforms.ToTensor(),
...     transforms.Normalize((0.5, 0.5, 0.5), (0.5, 0.5, 0.5)),
... ])
>>> transform(chainrule.zeros(3, 1, 2, dtype=chainrule.uint8)).tolist()
[[[-1.0, -1.0]], [[-1.0, -1.0]], [[-1.0, -1.0]]]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from chainrule.data import color, geometry, images
from chainrule.data import transforms_functional as functional
from chainrule.data.augment import (
    ColorJitter,
    GaussianNoise,
    RandomGrayscale,
    RandomHorizontalFlip,
    RandomVerticalFlip,
)
from chainrule.data.augment_geometry import (
    RandomAffine,
    RandomCrop,
    RandomErasing,
    RandomResizedCrop,
    RandomRotation,
)
from chainrule.data.augment_policy import AutoAugment, RandAugment
from chainrule.data.image_arguments import PerChannel, pair
from chainrule.data.image_transform import (
    ImageTransform,
    InterpolationMode,
    RandomTransform,
    check_probability,
    chosen,
    resampling,
)
from chainrule.nn.module.base import Module
from chainrule.ops.shape.stacking import cat
from chainrule.random import Generator
from chainrule.tensor import Tensor
from chainrule.typing import Array, Sizes

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = [
    "AutoAugment",
    "CenterCrop",
    "ColorJitter",
    "Compose",
    "GaussianNoise",
    "Grayscale",
    "ImageTransform",
    "InterpolationMode",
    "Normalize",
    "Pad",
    "RandAugment",
    "RandomAffine",
    "RandomApply",
    "RandomCrop",
    "RandomErasing",
    "RandomGrayscale",
    "RandomHorizontalFlip",
    "RandomResizedCrop",
    "RandomRotation",
    "RandomTransform",
    "RandomVerticalFlip",
    "Resize",
    "ToPILImage",
    "ToTensor",
    "functional",
]


class Compose(ImageTransform):
    """Transforms one after the other.

    Args:
        transforms: modules, or functions of an image (a file can only keep modules).

    ``generator`` is handed on to the random ones.

    >>> import chainrule
    >>> from chainrule.data import transforms
    >>> t = transforms.Compose([transforms.RandomCrop(24), transforms.RandomHorizontalFlip()])
    >>> g = chainrule.Generator().manual_seed(0)
    >>> t(chainrule.rand(1, 28, 28), generator=g).shape
    chainrule.Size([1, 24, 24])
    """

    def __init__(self, transforms: Sequence[Any]):
        super().__init__()
        self.transforms = list(transforms)
        for i, transform in enumerate(self.transforms):
            if not callable(transform):
                raise TypeError(
                    f"{type(self).__name__}: transform {i} is a {type(transform).__name__}, which "
                    "cannot be called"
                )
            if isinstance(transform, Module):
                self.add_module(str(i), transform)

    @property
    def batched(self) -> bool:  # type: ignore[override]
        """Whether all transforms take batches."""
        return all([getattr(t, "batched", False) for t in self.transforms])

    def forward(self, input: Any, generator: Generator | None = None) -> Any:
        for transform in self.transforms:
            takes_generator = isinstance(transform, (RandomTransform, Compose))
            input = transform(input, generator) if takes_generator else transform(input)
        return input

    def extra_repr(self) -> str:
        return "\n".join(
            f"({i}): {t!r}" for i, t in enumerate(self.transforms) if not isinstance(t, Module)
        )


class RandomApply(Compose):
    """Transforms one after the other, all of them with probability p, or none.

    Args:
        transforms: what to apply; the size and the type of the image must stay.
        p: the probability.
    """

    def __init__(self, transforms: Sequence[Any], p: float = 0.5):
        super().__init__(transforms)
        self.p = check_probability("RandomApply", p)

    def forward(self, input: Tensor, generator: Generator | None = None) -> Tensor:
        if not self.training:
            return input
        if input.ndim != 4:
            return self.forward(input[None], generator)[0]
        which = chosen(input, self.p, generator).ravel().tolist()
        parts = [
            super(RandomApply, self).forward(image, generator) if apply else image
            for image, apply in zip(input.split(1), which, strict=True)
        ]
        return cat(parts) if parts else input

    def extra_repr(self) -> str:
        return "\n".join(line for line in (f"p={self.p}", super().extra_repr()) if line)


class ToTensor(ImageTransform):
    """A Pillow image, an array (H, W, C) or a tensor of bytes as floating numbers in [0, 1]."""

    def forward(self, input: Image | Array | Tensor) -> Tensor:
        return images.to_tensor(input)


class ToPILImage(ImageTransform):
    """An image (C, H, W) as a Pillow image."""

    batched = False

    def forward(self, input: Tensor) -> Image:
        return images.to_pil_image(input)


class Normalize(ImageTransform):
    """y = (x - mean) / std, with one mean and one standard deviation for each channel.

    ``inverse`` undoes it.

    >>> import chainrule
    >>> from chainrule.data import transforms
    >>> t = transforms.Normalize(0.5, 0.5)
    >>> x = chainrule.tensor([[[0.0, 0.25]]])
    >>> t(x), t.inverse(t(x))
    (tensor([[[-1.0000, -0.5000]]]), tensor([[[0.0000, 0.2500]]]))
    """

    def __init__(self, mean: PerChannel, std: PerChannel):
        super().__init__()
        self.mean, self.std = _numbers("mean", mean), _numbers("std", std)
        if 0 in self.std:
            raise ValueError(f"Normalize: std contains zero, which cannot be divided by; got {std}")

    def forward(self, input: Tensor) -> Tensor:
        return images.normalize(input, self.mean, self.std)

    def inverse(self, input: Tensor) -> Tensor:
        """What was before: y * std + mean."""
        return images.unnormalize(input, self.mean, self.std)

    def extra_repr(self) -> str:
        return f"mean={self.mean}, std={self.std}"


def _numbers(name: str, value: PerChannel) -> list[float]:
    given: Any = value.tolist() if hasattr(value, "tolist") else value
    numbers = list(given) if isinstance(given, (list, tuple)) else [given]
    if not numbers or not all([isinstance(v, (int, float)) for v in numbers]):
        raise TypeError(
            f"Normalize: {name} must be a number or one for each channel, got {value!r}"
        )
    return [float(v) for v in numbers]


class Resize(ImageTransform):
    """The image in another size.

    Args:
        size: (height, width), or one number for the shorter edge; the longer one follows.
        interpolation: "bilinear", "bicubic", "nearest" or "nearest-exact".
        max_size: the most that the longer edge may have.
        antialias: average over all pixels where a "bilinear" or "bicubic" image shrinks.
    """

    def __init__(
        self,
        size: Sizes,
        interpolation: str = "bilinear",
        max_size: int | None = None,
        antialias: bool = True,
    ):
        super().__init__()
        geometry.check_size("Resize", size, max_size)
        self.size = size
        self.interpolation = resampling("Resize", interpolation, geometry.RESIZING)
        self.max_size = max_size
        self.antialias = bool(antialias)

    def forward(self, input: Tensor) -> Tensor:
        return geometry.resize(input, self.size, self.interpolation, self.max_size, self.antialias)

    def extra_repr(self) -> str:
        return (
            f"size={self.size}, interpolation={self.interpolation!r}, max_size={self.max_size}, "
            f"antialias={self.antialias}"
        )


class CenterCrop(ImageTransform):
    """The middle of the image, (height, width) large; zeros around it if it is too small."""

    def __init__(self, size: Sizes):
        super().__init__()
        self.size = pair("CenterCrop", "size", size)

    def forward(self, input: Tensor) -> Tensor:
        return geometry.center_crop(input, self.size)

    def extra_repr(self) -> str:
        return f"size={self.size}"


class Pad(ImageTransform):
    """The image with a border, as ``functional.pad`` makes it."""

    def __init__(self, padding: Sizes, fill: float = 0, padding_mode: str = "constant"):
        super().__init__()
        self.padding = geometry.border(padding)
        self.fill = fill
        self.padding_mode = geometry.check_choice(
            "Pad", "padding_mode", padding_mode, tuple(geometry.PADDING)
        )

    def forward(self, input: Tensor) -> Tensor:
        return geometry.pad(input, self.padding, self.fill, self.padding_mode)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, fill={self.fill}, padding_mode={self.padding_mode!r}"


class Grayscale(ImageTransform):
    """The image without its colors, in one channel or in three that are equal."""

    def __init__(self, num_output_channels: int = 1):
        super().__init__()
        if num_output_channels not in (1, 3):
            raise ValueError(
                f"Grayscale: num_output_channels must be 1 or 3, got {num_output_channels}"
            )
        self.num_output_channels = num_output_channels

    def forward(self, input: Tensor) -> Tensor:
        return color.rgb_to_grayscale(input, self.num_output_channels)

    def extra_repr(self) -> str:
        return f"num_output_channels={self.num_output_channels}"

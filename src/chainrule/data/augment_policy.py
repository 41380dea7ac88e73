"""Augmentation by policies: which changes, how likely, and how strong.

AutoAugment (Cubuk et al., 2019) learned lists of 25 pairs of changes; RandAugment (Cubuk et al.,
2020) draws changes of one strength from a list.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from chainrule.data import color
from chainrule.data import geometry as G
from chainrule.data.image_arguments import Fill, bound
from chainrule.data.image_transform import RandomTransform, integers, resampling, uniform
from chainrule.ops.shape.joining import unbind
from chainrule.ops.shape.stacking import stack
from chainrule.random import Generator
from chainrule.tensor import Tensor

__all__ = ["CHANGES", "POLICIES", "AutoAugment", "RandAugment"]

Settings = dict[str, Any]
Change = Callable[[Tensor, float, Settings], Tensor]
Step = tuple[str, float, int | None]


def _shear(x: Tensor, along_x: float, along_y: float, settings: Settings) -> Tensor:
    """Rows (columns) shifted by this many pixels from one to the next, from the upper left on."""
    angles = [math.degrees(math.atan(s)) for s in (along_x, along_y)]
    return G.affine(x, 0, (0, 0), 1, angles, center=(0, 0), **settings)


def _shift(x: Tensor, right: float, down: float, settings: Settings) -> Tensor:
    return G.affine(x, 0, (int(right), int(down)), 1, 0, **settings)


def _width(x: Tensor) -> int:
    return x.shape[-1]


def _height(x: Tensor) -> int:
    return x.shape[-2]


# A change by its name: what it does at a magnitude, and the magnitude of a strength s from 0 to 1
# for an image. Those of the first table get a random sign.
SIGNED: dict[str, tuple[Change, Callable[[float, Tensor], float]]] = {
    "ShearX": (lambda x, m, k: _shear(x, m, 0, k), lambda s, x: 0.3 * s),
    "ShearY": (lambda x, m, k: _shear(x, 0, m, k), lambda s, x: 0.3 * s),
    "TranslateX": (lambda x, m, k: _shift(x, m, 0, k), lambda s, x: 150 / 331 * _width(x) * s),
    "TranslateY": (lambda x, m, k: _shift(x, 0, m, k), lambda s, x: 150 / 331 * _height(x) * s),
    "Rotate": (lambda x, m, k: G.rotate(x, m, **k), lambda s, x: 30 * s),
    "Brightness": (lambda x, m, k: color.adjust_brightness(x, 1 + m), lambda s, x: 0.9 * s),
    "Color": (lambda x, m, k: color.adjust_saturation(x, 1 + m), lambda s, x: 0.9 * s),
    "Contrast": (lambda x, m, k: color.adjust_contrast(x, 1 + m), lambda s, x: 0.9 * s),
    "Sharpness": (lambda x, m, k: color.adjust_sharpness(x, 1 + m), lambda s, x: 0.9 * s),
}
UNSIGNED: dict[str, tuple[Change, Callable[[float, Tensor], float]]] = {
    "Posterize": (lambda x, m, k: color.posterize(x, int(m)), lambda s, x: 8 - round(4 * s)),
    "Solarize": (lambda x, m, k: color.solarize(x, m), lambda s, x: bound("Solarize", x) * (1 - s)),
    "AutoContrast": (lambda x, m, k: color.autocontrast(x), lambda s, x: 0),
    "Equalize": (lambda x, m, k: color.equalize(x), lambda s, x: 0),
    "Invert": (lambda x, m, k: color.invert(x), lambda s, x: 0),
    "Identity": (lambda x, m, k: x, lambda s, x: 0),
}
CHANGES = SIGNED | UNSIGNED


def _changed(x: Tensor, name: str, strength: float, negative: bool, settings: Settings) -> Tensor:
    change, magnitude_of = CHANGES[name]
    magnitude = magnitude_of(strength, x)
    return change(x, -magnitude if negative and name in SIGNED else magnitude, settings)


class _Policy(RandomTransform):
    """Changes drawn for one image after the other."""

    def __init__(self, interpolation: str, fill: Fill):
        super().__init__()
        self.interpolation = resampling(type(self).__name__, interpolation, G.WARPING)
        self.fill = fill

    def varied(self, x: Tensor, generator: Generator | None) -> Tensor:
        settings = {"interpolation": self.interpolation, "fill": self.fill}
        images = [self.one(image, generator, settings) for image in unbind(x)]
        return stack(images) if images else x

    def one(self, x: Tensor, generator: Generator | None, settings: Settings) -> Tensor:
        raise NotImplementedError


class RandAugment(_Policy):
    """``num_ops`` changes, drawn from the 14 of RandAugment, all of one strength.

    Args:
        num_ops: how many changes, one after the other.
        magnitude: their strength, from 0 to num_magnitude_bins - 1.
        num_magnitude_bins: how many strengths there are.
        interpolation: "nearest" or "bilinear".
        fill: what lies around a turned or shifted image.

    >>> import chainrule
    >>> from chainrule.data import transforms
    >>> transforms.RandAugment()(chainrule.rand(3, 32, 32)).shape
    chainrule.Size([3, 32, 32])
    """

    NAMES = (
        "Identity",
        "ShearX",
        "ShearY",
        "TranslateX",
        "TranslateY",
        "Rotate",
        "Brightness",
        "Color",
        "Contrast",
        "Sharpness",
        "Posterize",
        "Solarize",
        "AutoContrast",
        "Equalize",
    )

    def __init__(
        self,
        num_ops: int = 2,
        magnitude: int = 9,
        num_magnitude_bins: int = 31,
        interpolation: str = "nearest",
        fill: Fill = None,
    ):
        super().__init__(interpolation, fill)
        if num_ops < 0 or not 0 <= magnitude < num_magnitude_bins or num_magnitude_bins < 2:
            raise ValueError(
                "RandAugment: num_ops must be non-negative and magnitude from 0 to "
                f"num_magnitude_bins - 1, got {num_ops=}, {magnitude=}, {num_magnitude_bins=}"
            )
        self.num_ops = num_ops
        self.magnitude = magnitude
        self.num_magnitude_bins = num_magnitude_bins

    def one(self, x: Tensor, generator: Generator | None, settings: Settings) -> Tensor:
        strength = self.magnitude / (self.num_magnitude_bins - 1)
        names = integers(self.num_ops, len(self.NAMES), generator).tolist()
        signs = integers(self.num_ops, 2, generator).tolist()
        for name, sign in zip(names, signs, strict=True):
            x = _changed(x, self.NAMES[name], strength, bool(sign), settings)
        return x

    def extra_repr(self) -> str:
        return (
            f"num_ops={self.num_ops}, magnitude={self.magnitude}, "
            f"num_magnitude_bins={self.num_magnitude_bins}, "
            f"interpolation={self.interpolation!r}, fill={self.fill}"
        )


class AutoAugment(_Policy):
    """Two changes, a pair drawn from a policy, each with its probability and strength.

    Args:
        policy: "imagenet", "cifar10" or "svhn", the policies learned on these; or a list of pairs
            of (name, probability, strength from 0 to 9 or None), as in ``POLICIES``.
        interpolation: "nearest" or "bilinear".
        fill: what lies around a turned or shifted image.
    """

    def __init__(
        self,
        policy: str | Sequence[Sequence[Step]] = "imagenet",
        interpolation: str = "nearest",
        fill: Fill = None,
    ):
        super().__init__(interpolation, fill)
        self.policy = policy
        self.pairs = _pairs(policy)

    def one(self, x: Tensor, generator: Generator | None, settings: Settings) -> Tensor:
        pair = self.pairs[int(integers(1, len(self.pairs), generator))]
        draws = uniform(len(pair), 0, 1, generator)
        signs = integers(len(pair), 2, generator).tolist()
        for (name, p, level), drawn, sign in zip(pair, draws, signs, strict=True):
            if drawn < p:
                x = _changed(x, name, (level or 0) / 9, bool(sign), settings)
        return x

    def extra_repr(self) -> str:
        return f"policy={self.policy!r}, interpolation={self.interpolation!r}, fill={self.fill}"


def _pairs(policy: str | Sequence[Sequence[Step]]) -> list[tuple[Step, ...]]:
    if isinstance(policy, str):
        if policy not in POLICIES:
            raise ValueError(
                f"AutoAugment: there is no policy {policy!r}; there are {sorted(POLICIES)}"
            )
        return POLICIES[policy]
    pairs = [tuple([_step(step) for step in pair]) for pair in policy]
    if not pairs:
        raise ValueError("AutoAugment: the policy is empty")
    return pairs


def _step(step: Sequence[Any]) -> Step:
    if len(step) != 3 or step[0] not in CHANGES or not 0 <= step[1] <= 1:
        raise ValueError(
            "AutoAugment: a step of a policy is (name, probability, strength), the name one of "
            f"{', '.join(CHANGES)}; got {step!r}"
        )
    if step[2] is not None and step[2] not in range(10):
        raise ValueError(f"AutoAugment: strengths are from 0 to 9, or None; got {step!r}")
    return step[0], step[1], step[2]


def _read(table: str) -> list[tuple[Step, ...]]:
    """Pairs separated by semicolons, steps by commas: "Rotate 0.7 2, TranslateX 0.3 9; ..."."""
    pairs = [pair.split(",") for pair in table.split(";")]
    return [tuple([_read_step(step.split()) for step in pair]) for pair in pairs]


def _read_step(words: Sequence[str]) -> Step:
    return words[0], float(words[1]), int(words[2]) if len(words) > 2 else None


# The policies of the paper.
POLICIES = {
    "imagenet": _read("""
        Posterize 0.4 8, Rotate 0.6 9; Solarize 0.6 5, AutoContrast 0.6;
        Equalize 0.8, Equalize 0.6; Posterize 0.6 7, Posterize 0.6 6;
        Equalize 0.4, Solarize 0.2 4; Equalize 0.4, Rotate 0.8 8; Solarize 0.6 3, Equalize 0.6;
        Posterize 0.8 5, Equalize 1.0; Rotate 0.2 3, Solarize 0.6 8;
        Equalize 0.6, Posterize 0.4 6; Rotate 0.8 8, Color 0.4 0; Rotate 0.4 9, Equalize 0.6;
        Equalize 0.0, Equalize 0.8; Invert 0.6, Equalize 1.0; Color 0.6 4, Contrast 1.0 8;
        Rotate 0.8 8, Color 1.0 2; Color 0.8 8, Solarize 0.8 7; Sharpness 0.4 7, Invert 0.6;
        ShearX 0.6 5, Equalize 1.0; Color 0.4 0, Equalize 0.6; Equalize 0.4, Solarize 0.2 4;
        Solarize 0.6 5, AutoContrast 0.6; Invert 0.6, Equalize 1.0; Color 0.6 4, Contrast 1.0 8;
        Equalize 0.8, Equalize 0.6"""),
    "cifar10": _read("""
        Invert 0.1, Contrast 0.2 6; Rotate 0.7 2, TranslateX 0.3 9;
        Sharpness 0.8 1, Sharpness 0.9 3; ShearY 0.5 8, TranslateY 0.7 9;
        AutoContrast 0.5, Equalize 0.9; ShearY 0.2 7, Posterize 0.3 7;
        Color 0.4 3, Brightness 0.6 7; Sharpness 0.3 9, Brightness 0.7 9;
        Equalize 0.6, Equalize 0.5; Contrast 0.6 7, Sharpness 0.6 5;
        Color 0.7 7, TranslateX 0.5 8; Equalize 0.3, AutoContrast 0.4;
        TranslateY 0.4 3, Sharpness 0.2 6; Brightness 0.9 6, Color 0.2 8;
        Solarize 0.5 2, Invert 0.0; Equalize 0.2, AutoContrast 0.6; Equalize 0.2, Equalize 0.6;
        Color 0.9 9, Equalize 0.6; AutoContrast 0.8, Solarize 0.2 8;
        Brightness 0.1 3, Color 0.7 0; Solarize 0.4 5, AutoContrast 0.9;
        TranslateY 0.9 9, TranslateY 0.7 9; AutoContrast 0.9, Solarize 0.8 3;
        Equalize 0.8, Invert 0.1; TranslateY 0.7 9, AutoContrast 0.9"""),
    "svhn": _read("""
        ShearX 0.9 4, Invert 0.2; ShearY 0.9 8, Invert 0.7; Equalize 0.6, Solarize 0.6 6;
        Invert 0.9, Equalize 0.6; Equalize 0.6, Rotate 0.9 3; ShearX 0.9 4, AutoContrast 0.8;
        ShearY 0.9 8, Invert 0.4; ShearY 0.9 5, Solarize 0.2 6; Invert 0.9, AutoContrast 0.8;
        Equalize 0.6, Rotate 0.9 3; ShearX 0.9 4, Solarize 0.3 3; ShearY 0.8 8, Invert 0.7;
        Equalize 0.9, TranslateY 0.6 6; Invert 0.9, Equalize 0.6; Contrast 0.3 3, Rotate 0.8 4;
        Invert 0.8, TranslateY 0.0 2; ShearY 0.7 6, Solarize 0.4 8; Invert 0.6, Rotate 0.8 4;
        ShearY 0.3 7, TranslateX 0.9 3; ShearX 0.1 6, Invert 0.6;
        Solarize 0.7 2, TranslateY 0.6 7; ShearY 0.8 4, Invert 0.8;
        ShearX 0.7 9, TranslateY 0.8 3; ShearY 0.8 5, AutoContrast 0.7;
        ShearX 0.7 2, Invert 0.1"""),
}

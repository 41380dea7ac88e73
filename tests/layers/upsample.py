"""Records of resampling and rearranging layers."""

from __future__ import annotations

from typing import Any

from layers.record import Layer

__all__ = ["LAYERS"]


def record(note: str, shape: tuple[int, ...], **kwargs: Any) -> Layer:
    return Layer("Upsample", lambda nn: nn.Upsample(**kwargs), normal(*shape), note=note)


def normal(*shape: int) -> Any:
    return lambda r: (r.normal(size=shape),)


LAYERS: list[Layer] = [
    record("nearest 1d", (2, 2, 5), size=8),
    record("nearest 2d", (2, 2, 4, 3), scale_factor=2),
    record("nearest 3d", (1, 2, 3, 2, 3), scale_factor=(2.0, 1.0, 3.0)),
    record("exact", (2, 2, 4, 3), size=(7, 5), mode="nearest-exact"),
    record("area", (2, 2, 7, 6), size=(3, 4), mode="area"),
    record("linear", (2, 2, 5), scale_factor=1.7, mode="linear"),
    record("bilinear", (2, 2, 4, 5), size=(7, 3), mode="bilinear"),
    record("bilinear aligned", (2, 2, 4, 5), scale_factor=2.5, mode="bilinear", align_corners=True),
    record("bicubic", (2, 2, 4, 5), size=(7, 3), mode="bicubic"),
    record("bicubic aligned", (2, 2, 4, 5), size=(3, 9), mode="bicubic", align_corners=True),
    record(
        "trilinear", (1, 2, 3, 2, 4), scale_factor=2, mode="trilinear", recompute_scale_factor=True
    ),
    Layer(
        "UpsamplingNearest2d", lambda nn: nn.UpsamplingNearest2d(scale_factor=2), normal(1, 2, 3, 4)
    ),
    Layer("UpsamplingBilinear2d", lambda nn: nn.UpsamplingBilinear2d((5, 6)), normal(1, 2, 3, 4)),
    Layer("PixelShuffle", lambda nn: nn.PixelShuffle(2), normal(2, 8, 3, 2)),
    Layer("PixelUnshuffle", lambda nn: nn.PixelUnshuffle(2), normal(2, 2, 4, 6)),
    Layer("ChannelShuffle", lambda nn: nn.ChannelShuffle(2), normal(2, 6, 3, 2)),
    Layer("Unfold", lambda nn: nn.Unfold((2, 3), padding=1, stride=2), normal(2, 3, 5, 6)),
    Layer("Fold", lambda nn: nn.Fold((4, 5), 2, dilation=(1, 2)), normal(2, 8, 9)),
]

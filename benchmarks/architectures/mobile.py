"""VGG, and networks of depthwise convolutions: MobileNet, EfficientNet, ShuffleNet, ConvNeXt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from architectures.task import Task, classifying

__all__ = ["convnext", "efficientnet", "mobilenet", "mobilenet_v2", "shufflenet_v2", "vgg11"]


def vgg11(lib: Any, batch: int, size: int, width: int = 64) -> Task:
    """VGG-11 of Simonyan and Zisserman, 2015, with a head for small images."""
    nn = lib.nn
    layers: list[Any] = []
    into = 3
    for convolutions, factor in ((1, 1), (1, 2), (2, 4), (2, 8), (2, 8)):
        for _ in range(convolutions):
            layers += [nn.Conv2d(into, factor * width, 3, padding=1), nn.ReLU(inplace=True)]
            into = factor * width
        layers.append(nn.MaxPool2d(2))
    head = [nn.Flatten(), nn.Linear(into * (size // 32) ** 2, into), nn.ReLU(), nn.Linear(into, 10)]
    return classifying(lib, nn.Sequential(*layers, *head), (3, size, size), batch)


def _conv(
    nn: Any, into: int, out: int, kernel: int, stride: int = 1, groups: int = 1, act: str = ""
) -> list[Any]:
    """A convolution without bias, batch normalization, an activation."""
    conv = nn.Conv2d(into, out, kernel, stride, kernel // 2, groups=groups, bias=False)
    return [conv, nn.BatchNorm2d(out), *([getattr(nn, act)(inplace=True)] if act else [])]


def _head(nn: Any, width: int) -> list[Any]:
    return [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 10)]


def mobilenet(lib: Any, batch: int, size: int, width: int = 32) -> Task:
    """MobileNet of Howard et al., 2017, for small images: depthwise and 1x1 convolutions."""
    nn = lib.nn
    layers, into = _conv(nn, 3, width, 3, act="ReLU"), width
    stages = [(2, 1), (4, 2), (4, 1), (8, 2), (8, 1), (16, 2), *[(16, 1)] * 5, (32, 2), (32, 1)]
    for factor, stride in stages:
        layers += _conv(nn, into, into, 3, stride, into, "ReLU")
        layers += _conv(nn, into, factor * width, 1, act="ReLU")
        into = factor * width
    return classifying(lib, nn.Sequential(*layers, *_head(nn, into)), (3, size, size), batch)


def _added(nn: Any) -> Any:
    class Added(nn.Module):  # type: ignore[misc, name-defined]
        """x + path(x)."""

        def __init__(self, *path: Any) -> None:
            super().__init__()
            self.path = nn.Sequential(*path)

        def forward(self, x: Any) -> Any:
            return x + self.path(x)

    return Added


def _gate(nn: Any) -> Any:
    class Gate(nn.Module):  # type: ignore[misc, name-defined]
        """Squeeze and excitation: each channel times a number between 0 and 1."""

        def __init__(self, width: int, squeezed: int) -> None:
            super().__init__()
            self.pool = nn.AdaptiveAvgPool2d(1)
            self.down, self.up = nn.Conv2d(width, squeezed, 1), nn.Conv2d(squeezed, width, 1)

        def forward(self, x: Any) -> Any:
            squeezed = nn.functional.silu(self.down(self.pool(x)))
            return x * self.up(squeezed).sigmoid()

    return Gate


def _inverted(
    nn: Any, into: int, out: int, kernel: int, stride: int, expand: int, act: str, gated: bool
) -> list[Any]:
    """An inverted residual block: wider, depthwise, narrower."""
    wide = into * expand
    layers = _conv(nn, into, wide, 1, act=act) if expand > 1 else []
    layers += _conv(nn, wide, wide, kernel, stride, wide, act)
    if gated:
        layers.append(_gate(nn)(wide, max(1, into // 4)))
    layers += _conv(nn, wide, out, 1)
    return [_added(nn)(*layers)] if (into, stride) == (out, 1) else layers


Stage = tuple[int, int, int, int, int]  # expansion, width, blocks, stride, kernel


def _inverted_network(
    lib: Any, stages: Sequence[Stage], first: int, last: int, act: str, gated: bool, stride: int
) -> Any:
    nn = lib.nn
    layers, into = _conv(nn, 3, first, 3, stride, act=act), first
    for expand, out, blocks, step, kernel in stages:
        for i in range(blocks):
            layers += _inverted(nn, into, out, kernel, 1 if i else step, expand, act, gated)
            into = out
    return nn.Sequential(*layers, *_conv(nn, into, last, 1, act=act), *_head(nn, last))


def _scaled(stages: Sequence[Stage], width: float) -> list[Stage]:
    return [(e, max(4, round(out * width)), n, s, k) for e, out, n, s, k in stages]


def mobilenet_v2(lib: Any, batch: int, size: int, width: float = 1.0) -> Task:
    """MobileNetV2 of Sandler et al., 2018, with the first strides of small images."""
    stages = [(1, 16, 1, 1, 3), (6, 24, 2, 1, 3), (6, 32, 3, 2, 3), (6, 64, 4, 2, 3)]
    stages += [(6, 96, 3, 1, 3), (6, 160, 3, 2, 3), (6, 320, 1, 1, 3)]
    first, last = round(32 * width), round(1280 * width)
    stages = _scaled(stages, width)
    model = _inverted_network(lib, stages, first, last, "ReLU6", False, 1)
    return classifying(lib, model, (3, size, size), batch)


def efficientnet(lib: Any, batch: int, size: int, width: float = 1.0) -> Task:
    """EfficientNet-B0 of Tan and Le, 2019."""
    stages = [(1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3)]
    stages += [(6, 112, 3, 1, 5), (6, 192, 4, 2, 5), (6, 320, 1, 1, 3)]
    first, last = round(32 * width), round(1280 * width)
    stages = _scaled(stages, width)
    model = _inverted_network(lib, stages, first, last, "SiLU", True, 2)
    return classifying(lib, model, (3, size, size), batch)


def shufflenet_v2(
    lib: Any, batch: int, size: int, widths: Sequence[int] = (24, 116, 232, 464, 1024)
) -> Task:
    """ShuffleNetV2 of Ma et al., 2018: halves of the channels, shuffled."""
    nn = lib.nn

    class Unit(nn.Module):  # type: ignore[misc, name-defined]
        """One half as it is (or made smaller), one half through three convolutions."""

        def __init__(self, into: int, out: int, stride: int) -> None:
            super().__init__()
            self.halved, half = stride == 1, out // 2
            into = half if self.halved else into
            depthwise = _conv(nn, into, into, 3, stride, into)
            left = [] if self.halved else [*depthwise, *_conv(nn, into, half, 1, act="ReLU")]
            self.left = nn.Sequential(*left)
            self.right = nn.Sequential(
                *_conv(nn, into, half, 1, act="ReLU"),
                *_conv(nn, half, half, 3, stride, half),
                *_conv(nn, half, half, 1, act="ReLU"),
            )

        def forward(self, x: Any) -> Any:
            left, right = x.chunk(2, 1) if self.halved else (x, x)
            x = lib.cat([self.left(left), self.right(right)], 1)
            n, c, h, w = x.shape
            return x.view(n, 2, c // 2, h, w).transpose(1, 2).reshape(n, c, h, w)

    first, *stages, last = widths
    layers, into = _conv(nn, 3, first, 3, act="ReLU"), first
    for out, units in zip(stages, (4, 8, 4), strict=True):
        for i in range(units):
            layers.append(Unit(into, out, 1 if i else 2))
            into = out
    layers += [*_conv(nn, into, last, 1, act="ReLU"), *_head(nn, last)]
    return classifying(lib, nn.Sequential(*layers), (3, size, size), batch)


def convnext(
    lib: Any,
    batch: int,
    size: int,
    widths: Sequence[int] = (40, 80, 160, 320),
    depths: Sequence[int] = (2, 2, 6, 2),
) -> Task:
    """ConvNeXt of Liu et al., 2022 (the size called atto): 7x7 depthwise, layer norm, GELU."""
    nn = lib.nn

    class Channels(nn.LayerNorm):  # type: ignore[misc, name-defined]
        """Layer normalization over the channels of images."""

        def forward(self, x: Any) -> Any:
            return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)

    class Block(nn.Module):  # type: ignore[misc, name-defined]
        """x + scale * W2 GELU(W1 norm(depthwise(x)))."""

        def __init__(self, width: int) -> None:
            super().__init__()
            self.depthwise = nn.Conv2d(width, width, 7, padding=3, groups=width)
            self.norm = nn.LayerNorm(width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
            self.scale = nn.Parameter(lib.full((width,), 1e-2))

        def forward(self, x: Any) -> Any:
            y = self.norm(self.depthwise(x).permute(0, 2, 3, 1))
            y = self.scale * self.down(nn.functional.gelu(self.up(y)))
            return x + y.permute(0, 3, 1, 2)

    layers: list[Any] = [nn.Conv2d(3, widths[0], 4, 4), Channels(widths[0])]
    for stage, (width, depth) in enumerate(zip(widths, depths, strict=True)):
        if stage:
            before = widths[stage - 1]
            layers += [Channels(before), nn.Conv2d(before, width, 2, 2)]
        layers += [Block(width) for _ in range(depth)]
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.LayerNorm(widths[-1])]
    model = nn.Sequential(*layers, *head, nn.Linear(widths[-1], 10))
    return classifying(lib, model, (3, size, size), batch, optimizer="AdamW", options={})

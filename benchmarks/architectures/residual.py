"""Networks of residual and dense blocks: ResNet-18, bottlenecks, ResNeXt, DenseNet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from architectures.task import Task, classifying

__all__ = ["densenet", "resnet18", "resnet50", "resnext"]


def _normed(nn: Any, into: int, out: int, kernel: int, stride: int = 1, groups: int = 1) -> Any:
    """A convolution without bias and its batch normalization."""
    padding = kernel // 2
    conv = nn.Conv2d(into, out, kernel, stride, padding, groups=groups, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(out))


def _residual(nn: Any) -> Any:
    class Residual(nn.Module):  # type: ignore[misc, name-defined]
        """ReLU(path(x) + shortcut(x))."""

        def __init__(self, path: Any, shortcut: Any) -> None:
            super().__init__()
            self.path, self.shortcut, self.relu = path, shortcut, nn.ReLU(inplace=True)

        def forward(self, x: Any) -> Any:
            return self.relu(self.path(x) + self.shortcut(x))

    return Residual


def _shortcut(nn: Any, into: int, out: int, stride: int) -> Any:
    return nn.Identity() if (into, stride) == (out, 1) else _normed(nn, into, out, 1, stride)


def _basic(nn: Any, into: int, width: int, stride: int, groups: int) -> tuple[Any, int]:
    path = nn.Sequential(
        *_normed(nn, into, width, 3, stride), nn.ReLU(inplace=True), *_normed(nn, width, width, 3)
    )
    return _residual(nn)(path, _shortcut(nn, into, width, stride)), width


def _bottleneck(nn: Any, into: int, width: int, stride: int, groups: int) -> tuple[Any, int]:
    out = 4 * width if groups == 1 else 2 * width
    path = nn.Sequential(
        *_normed(nn, into, width, 1),
        nn.ReLU(inplace=True),
        *_normed(nn, width, width, 3, stride, groups),
        nn.ReLU(inplace=True),
        *_normed(nn, width, out, 1),
    )
    return _residual(nn)(path, _shortcut(nn, into, out, stride)), out


def _stem(nn: Any, width: int, size: int) -> list[Any]:
    """For photographs a convolution and a pooling by two each, for small images neither."""
    if size < 128:
        return [*_normed(nn, 3, width, 3), nn.ReLU(inplace=True)]
    pool = nn.MaxPool2d(3, 2, 1)
    return [*_normed(nn, 3, width, 7, 2), nn.ReLU(inplace=True), pool]


def _resnet(
    lib: Any,
    block: Any,
    depths: Sequence[int],
    batch: int,
    size: int,
    width: int = 64,
    groups: int = 1,
    stem: int = 64,
) -> Task:
    """Stages of blocks: half the size and twice the width from one to the next."""
    nn = lib.nn
    layers, into = _stem(nn, stem, size), stem
    for stage, depth in enumerate(depths):
        for i in range(depth):
            stride = 2 if stage and not i else 1
            made, into = block(nn, into, width << stage, stride, groups)
            layers.append(made)
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(into, 10)]
    return classifying(lib, nn.Sequential(*layers, *head), (3, size, size), batch)


def resnet18(lib: Any, batch: int, size: int, width: int = 64) -> Task:
    """ResNet-18 of He et al., 2016."""
    return _resnet(lib, _basic, [2, 2, 2, 2], batch, size, width, stem=width)


def resnet50(lib: Any, batch: int, size: int, width: int = 64, depths: Any = (3, 4, 6, 3)) -> Task:
    """ResNet-50: bottlenecks of 1x1, 3x3 and 1x1 convolutions."""
    return _resnet(lib, _bottleneck, depths, batch, size, width, stem=width)


def resnext(lib: Any, batch: int, size: int, width: int = 64, groups: int = 8) -> Task:
    """ResNeXt-29 for small images, Xie et al., 2017: 3x3 convolutions in groups."""
    return _resnet(lib, _bottleneck, [3, 3, 3], batch, size, width, groups)


def densenet(
    lib: Any, batch: int, size: int, growth: int = 12, depths: Sequence[int] = (6, 12, 24, 16)
) -> Task:
    """DenseNet-121 with a growth of 12, Huang et al., 2017, for small images."""
    nn = lib.nn

    class Dense(nn.Module):  # type: ignore[misc, name-defined]
        """Its own features behind those that it was given."""

        def __init__(self, into: int) -> None:
            super().__init__()
            self.path = nn.Sequential(
                nn.BatchNorm2d(into),
                nn.ReLU(inplace=True),
                nn.Conv2d(into, 4 * growth, 1, bias=False),
                nn.BatchNorm2d(4 * growth),
                nn.ReLU(inplace=True),
                nn.Conv2d(4 * growth, growth, 3, padding=1, bias=False),
            )

        def forward(self, x: Any) -> Any:
            return lib.cat([x, self.path(x)], 1)

    width = 2 * growth
    layers: list[Any] = [nn.Conv2d(3, width, 3, padding=1, bias=False)]
    for stage, depth in enumerate(depths):
        if stage:
            half = width // 2
            layers += [nn.BatchNorm2d(width), nn.ReLU(), nn.Conv2d(width, half, 1, bias=False)]
            layers.append(nn.AvgPool2d(2))
            width = half
        for _ in range(depth):
            layers.append(Dense(width))
            width += growth
    head = [nn.BatchNorm2d(width), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    model = nn.Sequential(*layers, *head, nn.Linear(width, 10))
    return classifying(lib, model, (3, size, size), batch)

"""Residual networks of chosen depth."""

from __future__ import annotations

from chainrule import nn
from chainrule.tensor import Tensor

__all__ = ["ResNet"]


class ResNet(nn.Module):
    """A residual network for small images: three stages of blocks x + F(x) (He et al. 2016).

    y = fc(avgpool(layer3(layer2(layer1(relu(bn1(conv1(x)))))))), logits

    Shape: (N, in_channels, H, W) -> (N, num_classes).

    Args:
        depth: layers with weights on the longest way, 6 n + 2 for n blocks in each stage: 20, 32,
            44, 56, 110, 200 and so on.
        num_classes: how many classes there are.
        in_channels: channels of the images.
        width: channels of the first stage; the next ones have twice and four times as many.

    >>> from chainrule import models, zeros
    >>> models.ResNet(8, width=4)(zeros(2, 3, 16, 16)).shape
    chainrule.Size([2, 10])
    """

    def __init__(
        self, depth: int = 20, num_classes: int = 10, in_channels: int = 3, width: int = 16
    ):
        super().__init__()
        blocks, rest = divmod(depth - 2, 6)
        if blocks < 1 or rest:
            raise ValueError(
                f"ResNet: depth must be 6 n + 2 with n at least 1 (8, 14, 20, ...), got {depth}"
            )
        self.conv1 = nn.Conv2d(in_channels, width, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU()
        self.layer1 = _stage(width, width, blocks, stride=1)
        self.layer2 = _stage(width, 2 * width, blocks, stride=2)
        self.layer3 = _stage(2 * width, 4 * width, blocks, stride=2)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(4 * width, num_classes)

    def forward(self, input: Tensor) -> Tensor:
        x = self.relu(self.bn1(self.conv1(input)))
        x = self.layer3(self.layer2(self.layer1(x)))
        return self.fc(self.avgpool(x).flatten(1))


def _stage(inplanes: int, planes: int, blocks: int, stride: int) -> nn.Sequential:
    """Blocks of one width; the first one may halve the image and widen the channels."""
    downsample = None
    if stride != 1 or inplanes != planes:
        downsample = nn.Sequential(
            nn.Conv2d(inplanes, planes, 1, stride=stride, bias=False), nn.BatchNorm2d(planes)
        )
    first = nn.ResidualBlock(inplanes, planes, stride, downsample)
    return nn.Sequential(first, *[nn.ResidualBlock(planes, planes) for _ in range(blocks - 1)])

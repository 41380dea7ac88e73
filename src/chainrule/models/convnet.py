"""Convolutional networks of the courses."""

from __future__ import annotations

from chainrule import nn
from chainrule.tensor import Tensor

__all__ = ["AlexNet", "CifarNet", "LeNet", "MnistConvNet"]


class LeNet(nn.Module):
    """LeNet for 32x32 images: convolutions C1, C3, C5 with pooling S2, S4, dense F6, 10 classes.

    Shape: (N, 1, 32, 32) -> (N, num_classes), logits. The layers have 156, 2416, 48120, 10164 and
    850 parameters.

    >>> from chainrule import models, zeros
    >>> models.LeNet()(zeros(2, 1, 32, 32)).shape
    chainrule.Size([2, 10])
    """

    def __init__(self, num_classes: int = 10, in_channels: int = 1):
        super().__init__()
        self.c1 = nn.Conv2d(in_channels, 6, 5)
        self.s2 = nn.MaxPool2d(2, 2)
        self.c3 = nn.Conv2d(6, 16, 5)
        self.s4 = nn.MaxPool2d(2, 2)
        self.c5 = nn.Conv2d(16, 120, 5)
        self.f6 = nn.Linear(120, 84)
        self.output = nn.Linear(84, num_classes)

    def forward(self, input: Tensor) -> Tensor:
        x = self.s2(self.c1(input).tanh())
        x = self.s4(self.c3(x).tanh())
        x = self.c5(x).tanh().flatten(1)
        return self.output(self.f6(x).tanh())


class CifarNet(nn.Module):
    """The small network for 32x32 colour images: two 5x5 convolutions, three dense layers, ReLU.

    Shape: (N, 3, 32, 32) -> (N, num_classes), logits; 62,006 parameters.
    """

    def __init__(self, num_classes: int = 10):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 6, 5)
        self.pool = nn.MaxPool2d(2, 2)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1 = nn.Linear(16 * 5 * 5, 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, num_classes)

    def forward(self, input: Tensor) -> Tensor:
        x = self.pool(self.conv1(input).relu())
        x = self.pool(self.conv2(x).relu()).flatten(1)
        return self.fc3(self.fc2(self.fc1(x).relu()).relu())


class MnistConvNet(nn.Sequential):
    """Two 5x5 convolutions with ReLU and pooling, then dense layers, for 28x28 grey images.

    Shape: (N, 1, 28, 28) -> (N, num_classes), logits.
    """

    def __init__(
        self, num_classes: int = 10, channels: tuple[int, int] = (32, 64), width: int = 256
    ):
        super().__init__(
            nn.Conv2d(1, channels[0], 5, padding=2),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(channels[0], channels[1], 5, padding=2),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(channels[1] * 49, width),
            nn.ReLU(),
            nn.Linear(width, num_classes),
        )


class AlexNet(nn.Module):
    """AlexNet with the channel groups of 2012: five convolutions, three dense layers.

    Shape: (N, 3, 227, 227) -> (N, num_classes), logits; 60,965,224 parameters for 1000 classes.
    """

    def __init__(self, num_classes: int = 1000, dropout: float = 0.5):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 96, 11, stride=4),
            nn.ReLU(),
            nn.LocalResponseNorm(5, k=2.0),
            nn.MaxPool2d(3, 2),
            nn.Conv2d(96, 256, 5, padding=2, groups=2),
            nn.ReLU(),
            nn.LocalResponseNorm(5, k=2.0),
            nn.MaxPool2d(3, 2),
            nn.Conv2d(256, 384, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(384, 384, 3, padding=1, groups=2),
            nn.ReLU(),
            nn.Conv2d(384, 256, 3, padding=1, groups=2),
            nn.ReLU(),
            nn.MaxPool2d(3, 2),
        )
        self.classifier = nn.Sequential(
            nn.Dropout(dropout),
            nn.Linear(256 * 6 * 6, 4096),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(4096, 4096),
            nn.ReLU(),
            nn.Linear(4096, num_classes),
        )

    def forward(self, input: Tensor) -> Tensor:
        return self.classifier(self.features(input).flatten(1))

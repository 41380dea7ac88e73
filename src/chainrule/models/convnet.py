"""Convolutional networks of the courses."""

from __future__ import annotations

from chainrule import nn
from chainrule.models.mlp import Activation, activation_module
from chainrule.tensor import Tensor

__all__ = ["AlexNet", "CifarNet", "ConvBlock", "LeNet", "MnistConvNet"]


class ConvBlock(nn.Sequential):
    """A convolutional block: convolutions, each with a non-linearity (the detector), then pooling.

    y = pool(f(w * x + b)), where f(w * x + b) stands as often as there are convolutions.

    Moving the image moves the maps of the detector as far; pooling makes what comes out nearly the
    same for small shifts.

    Shape: (N, in_channels, H, W) -> (N, out_channels, H // pool, W // pool).

    Args:
        in_channels: channels of the images.
        out_channels: channels of the maps.
        kernel_size: of the convolutions, an odd number; the image is padded by zeros.
        convolutions: how many.
        activation: the detector, by name, as a module or as a function.
        pool: side of the windows that are pooled, and the step between them.
        pooling: "max" or "average".

    >>> from chainrule import models, zeros
    >>> models.ConvBlock(3, 8, convolutions=2)(zeros(2, 3, 10, 10)).shape
    chainrule.Size([2, 8, 5, 5])
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int = 3,
        *,
        convolutions: int = 1,
        activation: Activation = "relu",
        pool: int = 2,
        pooling: str = "max",
    ):
        if kernel_size % 2 == 0 or convolutions < 1:
            raise ValueError(
                "ConvBlock: kernel_size must be odd and convolutions positive, got "
                f"kernel_size={kernel_size}, convolutions={convolutions}"
            )
        kinds = {"max": nn.MaxPool2d, "average": nn.AvgPool2d}
        if pooling not in kinds:
            raise ValueError(f"ConvBlock: pooling must be 'max' or 'average', got {pooling!r}")
        layers: list[nn.Module] = []
        for i in range(convolutions):
            first = in_channels if i == 0 else out_channels
            layers.append(nn.Conv2d(first, out_channels, kernel_size, padding=kernel_size // 2))
            layers.append(activation_module(activation))
        super().__init__(*layers, kinds[pooling](pool))


class LeNet(nn.Module):
    """LeNet for images of 32 x 32: convolutions C1, C3, C5 with pooling S2, S4, dense F6, output.

    y = output(tanh(f6(tanh(c5(s4(tanh(c3(s2(tanh(c1(x)))))))))), logits; the layers have 156, 2416,
    48120, 10164 and 850 parameters

    Shape: (N, in_channels, 32, 32) -> (N, num_classes).

    Args:
        num_classes: how many classes there are.
        in_channels: channels of the images.

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
    """The small network for color images of 32 x 32: two convolutions of 5 x 5, three dense layers.

    y = fc3(relu(fc2(relu(fc1(pool(relu(conv2(pool(relu(conv1(x)))))))))), logits; 62,006 parameters

    Shape: (N, 3, 32, 32) -> (N, num_classes).

    Args:
        num_classes: how many classes there are.

    >>> from chainrule import models, zeros
    >>> models.CifarNet()(zeros(2, 3, 32, 32)).shape
    chainrule.Size([2, 10])
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
    """Two convolutions of 5 x 5, then two dense layers, for gray images of 28 x 28.

    y = linear2(relu(linear1(pool(relu(conv2(pool(relu(conv1(x))))))))), logits

    Shape: (N, 1, 28, 28) -> (N, num_classes).

    Args:
        num_classes: how many classes there are.
        channels: of the two convolutions.
        width: of the hidden dense layer.
        dropout: probability of dropping a unit of that layer.

    >>> from chainrule import models, zeros
    >>> models.MnistConvNet(channels=(4, 8))(zeros(2, 1, 28, 28)).shape
    chainrule.Size([2, 10])
    """

    def __init__(
        self,
        num_classes: int = 10,
        channels: tuple[int, int] = (32, 64),
        width: int = 256,
        dropout: float = 0.0,
    ):
        super().__init__(
            *ConvBlock(1, channels[0], 5),
            *ConvBlock(channels[0], channels[1], 5),
            nn.Flatten(),
            nn.Linear(channels[1] * 49, width),
            nn.ReLU(),
            *([nn.Dropout(dropout)] if dropout else []),
            nn.Linear(width, num_classes),
        )


class AlexNet(nn.Module):
    """AlexNet with the channel groups of 2012: five convolutions, three dense layers.

    y = classifier(features(x)), logits; 60,965,224 parameters for 1000 classes

    Shape: (N, 3, 227, 227) -> (N, num_classes).

    Args:
        num_classes: how many classes there are.
        dropout: probability of dropping a unit before the first two dense layers.
        shrink: how many times fewer channels and units each layer has; a divisor of 16.

    >>> from chainrule import models
    >>> len(models.AlexNet(num_classes=2, shrink=8).features)
    15
    """

    def __init__(self, num_classes: int = 1000, dropout: float = 0.5, shrink: int = 1):
        super().__init__()
        if shrink < 1 or 16 % shrink:
            raise ValueError(f"AlexNet: shrink must be a divisor of 16, got {shrink}")
        a, b, c, units = (n // shrink for n in (96, 256, 384, 4096))
        self.features = nn.Sequential(
            nn.Conv2d(3, a, 11, stride=4),
            nn.ReLU(),
            nn.LocalResponseNorm(5, k=2.0),
            nn.MaxPool2d(3, 2),
            nn.Conv2d(a, b, 5, padding=2, groups=2),
            nn.ReLU(),
            nn.LocalResponseNorm(5, k=2.0),
            nn.MaxPool2d(3, 2),
            nn.Conv2d(b, c, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(c, c, 3, padding=1, groups=2),
            nn.ReLU(),
            nn.Conv2d(c, b, 3, padding=1, groups=2),
            nn.ReLU(),
            nn.MaxPool2d(3, 2),
        )
        self.classifier = nn.Sequential(
            nn.Dropout(dropout),
            nn.Linear(b * 6 * 6, units),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(units, units),
            nn.ReLU(),
            nn.Linear(units, num_classes),
        )

    def forward(self, input: Tensor) -> Tensor:
        return self.classifier(self.features(input).flatten(1))

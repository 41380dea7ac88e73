"""Example 5: convolution, average pooling and maximum pooling of one image.

Mended: pooling layers have no channels to declare, and pad by at most half their kernel.
"""

from __future__ import annotations

from chainrule.atlas.course.ex03_image import picture

import chainrule
from chainrule import Tensor, nn


def main() -> dict[str, Tensor]:
    """What convolution, average and maximum pooling make of the image."""
    chainrule.manual_seed(0)
    image = picture().unsqueeze(0)
    layers = {
        "convolution": nn.Conv2d(3, 4, kernel_size=3, padding=1),
        "average pooling": nn.AvgPool2d(kernel_size=3, stride=1, padding=1),
        "maximum pooling": nn.MaxPool2d(kernel_size=3, stride=1, padding=1),
    }
    maps = {}
    for name, layer in layers.items():
        maps[name] = nn.Sequential(layer, nn.Tanh())(image).detach()
        count = sum(p.numel() for p in layer.parameters())
        print(f"{name:16} {tuple(maps[name].shape)}, {count} parameters")
    return maps


if __name__ == "__main__":
    main()

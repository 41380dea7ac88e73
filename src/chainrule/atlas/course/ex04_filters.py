"""Example 4: feature maps of one image for different kernels, strides, paddings and dilations.

Mended: a kernel of 3 keeps the size with a padding of 1, a kernel of 5 with a padding of 2.
"""

from __future__ import annotations

from typing import Any

from chainrule.atlas.course.ex03_image import picture

import chainrule
from chainrule import conv_output_size, nn

SETTINGS: list[dict[str, Any]] = [
    {"kernel_size": 3, "padding": 1},
    {"kernel_size": 5, "padding": 2},
    {"kernel_size": 5, "padding": 0},
    {"kernel_size": 3, "padding": 1, "stride": 2},
    {"kernel_size": 5, "padding": 1, "dilation": 5},
]


def main() -> list[tuple[int, ...]]:
    """The shapes of the feature maps."""
    chainrule.manual_seed(0)
    image = picture().unsqueeze(0)
    shapes = []
    for setting in SETTINGS:
        cnn = nn.Sequential(nn.Conv2d(3, 4, **setting), nn.Tanh())
        z = cnn(image).detach().cpu().numpy()
        k, p = setting["kernel_size"], setting["padding"]
        s, d = setting.get("stride", 1), setting.get("dilation", 1)
        expected = tuple(conv_output_size(n, k, s, p, d) for n in image.shape[2:])
        print(f"k={k} p={p} s={s} d={d}: {z.shape}, by the formula {expected}")
        shapes.append(z.shape)
    return shapes


if __name__ == "__main__":
    main()

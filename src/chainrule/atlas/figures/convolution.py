"""Convolutions, number by number."""

from __future__ import annotations

import chainrule
from chainrule import inspect, nn
from chainrule.atlas import Number, Outcome, entry

IMAGE = [[1.0, 1, 1, 0, 0], [0, 1, 1, 1, 0], [0, 0, 1, 1, 1], [0, 0, 1, 1, 0], [0, 1, 1, 0, 0]]
KERNEL = [[1.0, 0, 1], [0, 1, 0], [1, 0, 1]]


@entry(
    "V28",
    course="004",
    printed="fig. 6.2",
    title="A kernel slides over an image",
    claims=[
        Number("feature map", (4, 3, 4, 2, 4, 3, 2, 3, 4), tolerance=0.5),
        Number("its size", (3, 3), tolerance=0.5),
    ],
)
def sliding_kernel() -> Outcome:
    """A convolution, one number of its output at a time.

    The kernel of 3 by 3 lies on a patch of the image; the nine products are added up, and the sum
    is one number of the feature map. Then the kernel moves on by one. An image of 5 by 5 has 3
    places in each direction for it, so the map has 3 by 3 numbers. The film goes through all nine.
    """
    layer = nn.Conv2d(1, 1, 3, bias=False)
    layer.weight.data.copy_(chainrule.tensor(KERNEL).reshape(1, 1, 3, 3))
    image = chainrule.tensor(IMAGE)
    steps = inspect.convolution_steps(layer, image)
    output = layer(image.reshape(1, 1, 5, 5)).detach()
    return Outcome(
        {"feature map": output.flatten(), "its size": output.shape[2:]}, pictures=[steps]
    )

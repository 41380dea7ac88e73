"""Networks counted: parameters, maps, multiplications."""

from __future__ import annotations

import chainrule
from chainrule import inspect, models
from chainrule.atlas import Number, Outcome, entry

LAYERS = ("c1", "s2", "c3", "s4", "c5", "f6", "output")


@entry(
    "M22",
    course="004",
    printed="section 6.9, fig. 6.11",
    title="The parameters and maps of LeNet",
    claims=[
        Number("parameters of C1, S2, C3, S4, C5, F6", (156, 0, 2416, 0, 48120, 10164), 0.5),
        Number("parameters with the output", 61706, tolerance=0.5, unprinted="counted by hand"),
        Number("maps of C1, S2, C3, S4", (6, 28, 28, 6, 14, 14, 16, 10, 10, 16, 5, 5), 0.5),
    ],
)
def lenet_counts() -> Outcome:
    """How many numbers a convolutional network has to learn, layer by layer.

    A kernel of 5 by 5 on one channel has 25 weights and an offset, whatever the size of the image:
    six of them are the 156 parameters of the first layer. Poolings have none. Nearly all are in
    C5, which sees all 16 maps of 5 by 5, and in the dense layer behind it.
    """
    net = models.LeNet()
    image = chainrule.zeros(1, 1, 32, 32)
    counts = [sum(p.numel() for p in getattr(net, name).parameters()) for name in LAYERS]
    shapes: list[int] = []
    for name in LAYERS[:4]:
        image = getattr(net, name)(image)
        shapes += image.shape[1:]
    return Outcome(
        {
            "parameters of C1, S2, C3, S4, C5, F6": counts[:-1],
            "parameters with the output": sum(counts),
            "maps of C1, S2, C3, S4": shapes,
        },
        [inspect.draw(net, chainrule.zeros(1, 1, 32, 32))],
    )

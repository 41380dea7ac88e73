"""Examples 1 and 4 of course 000: a layer as a module, and what kernels make of an image."""

from __future__ import annotations

from itertools import chain

import chainrule
from chainrule import charts, inspect, nn
from chainrule.atlas import Number, Outcome, entry
from chainrule.atlas.course.ex01_neuron import Neurons
from chainrule.atlas.course.ex03_image import picture
from chainrule.atlas.course.ex04_filters import SETTINGS, main


@entry(
    "EX01",
    course="000",
    printed="example 1",
    title="A layer of neurons as a module",
    claims=[Number("shape of the output for five images of 28 by 28", (5, 10), tolerance=0.5)],
)
def layer_of_neurons() -> Outcome:
    """A module of one's own: a linear map, ReLU and dropout, put together in ``forward``.

    The sizes are arguments of ``__init__``; images are flattened to vectors of 784 numbers, and
    each of ten neurons takes a weighted sum of all of them.
    """
    net = Neurons()
    images = chainrule.rand(5, 1, 28, 28)
    return Outcome(
        {"shape of the output for five images of 28 by 28": net.eval()(images).shape},
        [inspect.draw(net, images)],
    )


@entry(
    "EX04",
    course="000",
    printed="example 4, fig. 20-23",
    title="Feature maps for kernels, strides, paddings and dilations",
    claims=[
        Number(
            "sizes of the maps of an image of 188 by 257",
            (188, 257, 188, 257, 184, 253, 94, 129, 170, 239),
            tolerance=0.5,
            unprinted="eq 26",
        )
    ],
)
def feature_maps() -> Outcome:
    """What the size of a kernel, its stride, its padding and its dilation do to a feature map.

    A padding of (k - 1) / 2 keeps the size, none loses k - 1 rows and columns, a stride of 2 halves
    it, and a dilation spreads the kernel over a wider patch without more weights.
    """
    sizes = [shape[2:] for shape in main()]
    axes = charts.grid_of_axes(None, len(SETTINGS), 3)
    chainrule.manual_seed(0)
    for ax, setting in zip(axes, SETTINGS, strict=True):
        layer = nn.Sequential(nn.Conv2d(3, 1, **setting), nn.Tanh())
        ax.imshow(layer(picture().unsqueeze(0))[0, 0].detach().numpy(), cmap=charts.SEQUENTIAL)
        ax.set_title(", ".join(f"{k.split('_')[0]} {v}" for k, v in setting.items()), fontsize=9)
        ax.axis("off")
    return Outcome(
        {"sizes of the maps of an image of 188 by 257": [*chain.from_iterable(sizes)]},
        [axes],
        note="The picture of the course is not supplied; painted layers of rock stand in for it.",
    )

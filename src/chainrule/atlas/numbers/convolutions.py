"""Sizes of maps and numbers of weights, on paper and in layers."""

from __future__ import annotations

import itertools

import chainrule
from chainrule import charts, nn
from chainrule.atlas import Number, Outcome, Statement, entry
from chainrule.nn.layers.arithmetic import conv_output_size, dense_weights, shared_weights


@entry(
    "L08",
    course="000",
    printed="eq 26-27; 004 eq 6.5, 6.22",
    title="The size of a convolution's output",
    claims=[
        Number(
            "settings in which formula and layer agree, of 405",
            405,
            tolerance=0.5,
            unprinted="all that are tried",
        ),
        Number("28 pixels, kernel 5, no padding", 24, tolerance=0.5),
        Statement("settings in which the fraction is not whole", "a floor is needed", at_least=1),
    ],
)
def output_sizes() -> Outcome:
    """floor((i + 2 p - k - (k - 1) (d - 1)) / s) + 1: how many places a kernel has on an image.

    i is the size of the image, k of the kernel, s the stride, p the padding and d the dilation. It
    is tried on 405 layers. Without the floor, as 004 prints it, the number is no whole number in
    many of them: half a step at the border is left out.
    """
    sizes, kernels, strides = (13, 14, 15, 16, 28), (1, 3, 5), (1, 2, 3)
    agree, broken = 0, 0
    for i, k, s, p, d in itertools.product(sizes, kernels, strides, (0, 1, 2), (1, 2, 3)):
        said = conv_output_size(i, k, stride=s, padding=p, dilation=d)
        layer = nn.Conv1d(1, 1, k, stride=s, padding=p, dilation=d)
        there = layer(chainrule.zeros(1, 1, i)).shape[-1]
        agree += said == there
        broken += (i + 2 * p - k - (k - 1) * (d - 1)) % s != 0
    places = range(5, 33)
    ax = charts.axes_for(None)
    for k, s in enumerate(strides):
        heights = [conv_output_size(i, 5, stride=s) for i in places]
        ax.step(places, heights, where="mid", color=charts.COLORS[k], label=f"stride {s}")
    ax.set(title="Kernel of 5, no padding", xlabel="size of the image", ylabel="size of the output")
    ax.legend()
    return Outcome(
        {
            "settings in which formula and layer agree, of 405": agree,
            "28 pixels, kernel 5, no padding": conv_output_size(28, 5),
            "settings in which the fraction is not whole": broken,
        },
        [ax],
    )


@entry(
    "L15",
    course="004",
    printed="section 6.9",
    title="Shared weights are few",
    claims=[
        Number("20 kernels of 5 by 5", 520, tolerance=0.5),
        Number("parameters of one kernel", 26, tolerance=0.5),
        Number("dense layer from 28 x 28 to 30", 23_550, tolerance=0.5),
        Statement("dense over shared", "convolutional networks have fewer weights", at_least=1.0),
    ],
)
def shared_and_dense() -> Outcome:
    """A kernel's weights serve every place of the image, so their number does not grow with it.

    Twenty kernels of 5 by 5 have 26 numbers each, with the offset: 520. A dense layer of thirty
    units has a weight of its own for every pixel, 23,550 for images of 28 by 28, and its number
    grows with the area.
    """
    layers = (nn.Conv2d(1, 20, 5), nn.Conv2d(1, 1, 5), nn.Linear(784, 30))
    counts = [sum(p.numel() for p in layer.parameters()) for layer in layers]
    sides = [8, 16, 28, 64, 128, 250]
    ax = charts.axes_for(None)
    dense = [dense_weights(side * side, 30) for side in sides]
    shared = [shared_weights(1, 20, 5)] * len(sides)
    ax.loglog(sides, dense, "o-", color=charts.COLORS[1], label="dense, 30 units")
    ax.loglog(sides, shared, "o-", color=charts.COLORS[0], label="20 kernels of 5 by 5")
    ax.set_xticks(sides, [str(side) for side in sides])
    ax.set(title="Weights of a first layer", xlabel="side of the image", ylabel="weights")
    ax.minorticks_off()
    ax.legend()
    return Outcome(
        {
            "20 kernels of 5 by 5": counts[0],
            "parameters of one kernel": counts[1],
            "dense layer from 28 x 28 to 30": counts[2],
            "dense over shared": counts[2] / counts[0],
        },
        [ax],
    )

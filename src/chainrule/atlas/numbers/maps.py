"""Images and maps of features: how large they are, and why."""

from __future__ import annotations

import itertools
import tempfile
from pathlib import Path
from typing import Any

import chainrule
from chainrule import Tensor, charts, data, nn
from chainrule.atlas import Number, Outcome, Statement, entry
from chainrule.atlas.course.ex03_image import picture
from chainrule.nn.layers.arithmetic import half_width

DOUBLE = chainrule.float64


def ring(size: int) -> Tensor:
    """A picture of a ring, gray on black: (size, size)."""
    axis = chainrule.linspace(-1, 1, size, dtype=DOUBLE)
    distance = (axis[:, None] ** 2 + axis**2).sqrt()
    return (-(((distance - 0.6) / 0.18) ** 2)).exp()


def draw_numbers(ax: Any, values: Tensor, colors: Tensor, title: str) -> None:
    """A small matrix with its numbers in it."""
    ax.imshow(colors.numpy(), cmap=charts.SEQUENTIAL, alpha=0.35, vmin=0, vmax=4)
    for i, j in itertools.product(*map(range, values.shape)):
        ax.text(j, i, f"{float(values[i, j]):g}", ha="center", va="center", fontsize=14)
    ax.set(title=title, xticks=[], yticks=[])


@entry(
    "L02",
    course="004",
    printed="eq 6.3-6.6",
    title="A kernel of 5 by 5 on 28 by 28 pixels gives 24 by 24",
    claims=[
        Number("rows and columns of the map", (24, 24), tolerance=0.5),
        Statement("largest difference from the sum over the window", "eq 6.6", at_most=1e-12),
        Statement(
            "largest difference from the sum with the kernel turned around",
            "it is a cross-correlation",
            at_least=0.1,
        ),
    ],
)
def convolved() -> Outcome:
    """A number of the map is a sum over a window: every pixel in it times the weight above it.

    The window has to lie inside the image, so along 28 pixels a window of 5 has 28 - 5 + 1 = 24
    places. The weights are not turned around, as a convolution of mathematics would do: what layers
    compute is a cross-correlation. Here the sum is written out for every place.
    """
    image = ring(28)
    layer = nn.Conv2d(1, 1, 5, dtype=DOUBLE)
    found = layer(image[None, None]).detach()[0, 0]
    kernel, offset = layer.weight.detach()[0, 0], layer.bias.detach()

    def summed(weights: Tensor) -> Tensor:
        places = itertools.product(range(5), range(5))
        return sum((weights[i, j] * image[i : i + 24, j : j + 24] for i, j in places), offset)

    axes = charts.grid_of_axes(None, 3, 3, (2.7, 2.9))
    shown = {"image, 28 x 28": image, "kernel, 5 x 5": kernel, "map, 24 x 24": found}
    for ax, (name, values) in zip(axes, shown.items(), strict=True):
        ax.imshow(values.numpy(), cmap="gray", extent=(0, len(values), len(values), 0))
        ax.set(title=name, xlim=(0, 28), ylim=(28, 0), xlabel="column", ylabel="row")
    return Outcome(
        {
            "rows and columns of the map": found.shape,
            "largest difference from the sum over the window": float(
                (summed(kernel) - found).abs().max()
            ),
            "largest difference from the sum with the kernel turned around": float(
                (summed(kernel.flip(0, 1)) - found).abs().max()
            ),
        },
        [axes],
    )


@entry(
    "L07",
    course="000",
    printed="fig. 17, 20; 002; 004 section 6.8",
    title="A padding of half the kernel keeps the size of an image",
    claims=[
        Number(
            "rows and columns for k = 3, 5, 7, 9 and p = (k - 1) / 2",
            (188, 257) * 4,
            tolerance=0.5,
        ),
        Number(
            "rows and columns for k = 3, 5, 7, 9 without padding",
            (186, 255, 184, 253, 182, 251, 180, 249),
            tolerance=0.5,
            unprinted="k - 1 less than the image",
        ),
        Number(
            "paddings that keep the size for k = 2, 4, 6",
            0,
            tolerance=0.5,
            unprinted="(k - 1) / 2 is no whole number",
        ),
    ],
)
def padded() -> Outcome:
    """At the border of an image a kernel has no neighbors, and the map becomes smaller by k - 1.

    Or zeros are put around the image: (k - 1) / 2 on each side are just enough for the map to be as
    large as the image. For that the kernel must have a middle, so k has to be odd.
    """
    image = picture()[:1].unsqueeze(0)

    def size(k: int, p: int) -> tuple[int, ...]:
        return nn.Conv2d(1, 1, k, padding=p)(image).shape[2:]

    odd, even = (3, 5, 7, 9), (2, 4, 6)
    kept = [n for k in odd for n in size(k, (k - 1) // 2)]
    valid = [n for k in odd for n in size(k, 0)]
    fitting = [(k, p) for k in even for p in range(k) if size(k, p) == image.shape[2:]]
    # The zeros are darker than anything in the image, to be told from it.
    around = nn.functional.pad(0.25 + 0.75 * image, (20, 20, 20, 20))[0, 0]
    ax = charts.axes_for(None, (6.4, 5.2))
    ax.imshow(around.numpy(), cmap="gray", extent=(-20, 277, 208, -20))
    for k, (name, low) in enumerate({"without padding": 0, "p = 20": -20}.items()):
        high = low + 41
        xs, ys = [low, high, high, low, low], [low, low, high, high, low]
        ax.plot(xs, ys, color=charts.COLORS[1 + 3 * k], linewidth=2, label=name)
        middle = low + 20.5
        ax.plot([middle], [middle], "o", color=charts.COLORS[1 + 3 * k])
    ax.set(title="First place of a kernel of 41, and its middle", xlabel="column", ylabel="row")
    ax.set(xlim=(-32, 289), ylim=(220, -32))
    ax.legend(loc="lower right")
    return Outcome(
        {
            "rows and columns for k = 3, 5, 7, 9 and p = (k - 1) / 2": kept,
            "rows and columns for k = 3, 5, 7, 9 without padding": valid,
            "paddings that keep the size for k = 2, 4, 6": len(fitting),
        },
        [ax],
        note="Kernels of 3 and 5 are too small to be seen; the picture has one of 41.",
    )


@entry(
    "L10",
    course="002",
    printed="max pooling; 004 section 6.9",
    title="Max pooling of 2 by 2 halves rows and columns",
    claims=[
        Number("rows and columns of 28 by 28", (14, 14), tolerance=0.5),
        Statement(
            "largest difference from the maximum of the four pixels",
            "y = max(x[2i, 2j], x[2i+1, 2j], x[2i, 2j+1], x[2i+1, 2j+1])",
            at_most=0.0,
        ),
    ],
)
def max_pooled() -> Outcome:
    """Of each block of 2 by 2 pixels the largest is kept, so a quarter of the numbers is left.

    Whether a feature is there is kept, and where it is only to within two pixels.
    """
    image = chainrule.randn(1, 3, 28, 28, dtype=DOUBLE)
    pool = nn.MaxPool2d(2)
    corners = [image[..., i::2, j::2] for i in (0, 1) for j in (0, 1)]
    found = pool(image)
    small = chainrule.randperm(16).reshape(4, 4).double()
    which = chainrule.arange(4).reshape(2, 2).double()
    axes = charts.grid_of_axes(None, 2, 2, (3.0, 3.2))
    blocks = which.repeat_interleave(2, 0).repeat_interleave(2, 1)
    draw_numbers(axes[0], small, blocks, "4 by 4 numbers")
    draw_numbers(axes[1], pool(small[None, None])[0, 0], which, "largest of each block")
    return Outcome(
        {
            "rows and columns of 28 by 28": found.shape[2:],
            "largest difference from the maximum of the four pixels": float(
                (chainrule.stack(corners).amax(0) - found).abs().max()
            ),
        },
        [axes],
    )


@entry(
    "L14",
    course="002",
    printed="filter width",
    title="Half the width of a filter",
    claims=[
        Number("half-widths of 3 by 3 and 5 by 5", (1, 2), tolerance=0.5),
        Number("how far one pixel reaches through them", (1, 2), tolerance=0.5),
    ],
)
def half_widths() -> Outcome:
    """l = (R - 1) / 2 is how far a filter of R by R looks to each side of its middle.

    It can be seen from outside: a single white pixel changes the map up to l places away, and no
    farther. The filters here have random weights, and as much padding as keeps the size.
    """
    point = chainrule.zeros(1, 1, 11, 11, dtype=DOUBLE)
    point[0, 0, 5, 5] = 1.0
    reaches = []
    axes = charts.grid_of_axes(None, 2, 2, (3.2, 3.3))
    for ax, size in zip(axes, (3, 5), strict=True):
        layer = nn.Conv2d(1, 1, size, padding=size // 2, bias=False, dtype=DOUBLE)
        trace = layer(point).detach()[0, 0]
        places = (trace != 0).nonzero()
        reaches.append(int((places - 5).abs().max()))
        largest = float(trace.abs().max())
        ax.imshow(trace.numpy(), cmap=charts.DIVERGING, vmin=-largest, vmax=largest)
        ax.annotate("", (5 + reaches[-1] + 0.5, 5), (5, 5), arrowprops={"arrowstyle": "->"})
        ax.set(title=f"{size} by {size}: {reaches[-1]} to each side")
        ax.set(xlabel="column", ylabel="row", xticks=range(0, 11, 5), yticks=range(0, 11, 5))
    return Outcome(
        {
            "half-widths of 3 by 3 and 5 by 5": (half_width(3), half_width(5)),
            "how far one pixel reaches through them": reaches,
        },
        [axes],
    )


@entry(
    "P06",
    course="000",
    printed="example 3",
    title="A file with an image becomes a tensor",
    claims=[
        Number("shape", (1, 3, 188, 257), tolerance=0.5),
        Statement(
            "largest difference from what was written, in steps of 1 / 255",
            "between 0 and 1, rounded to 256 values",
            at_most=0.501,
        ),
        Number("bytes for each color of a pixel in the file", 1, tolerance=0.5, unprinted="uint8"),
    ],
)
def image_file() -> Outcome:
    """An image is written to a file, and read: RGB, with a dimension for the batch in front.

    A file has a byte for each color of each pixel, a number from 0 to 255; divided by 255 it is
    what networks are given. The order is (N, C, H, W): 188 rows, 257 columns.
    """
    painted = picture()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "layers.png"
        data.write_image(painted, file)
        stored = data.read_image(file)
    x = (stored / 255).unsqueeze(0)
    axes = charts.grid_of_axes(None, 4, 2, (3.2, 2.6))
    axes[0].imshow(stored.permute(1, 2, 0).numpy())
    axes[0].set_title("the file, 188 x 257")
    for k, name in enumerate(("red", "green", "blue")):
        axes[k + 1].imshow(x[0, k].numpy(), cmap="gray", vmin=0, vmax=1)
        axes[k + 1].set_title(f"x[0, {k}]: {name}")
    return Outcome(
        {
            "shape": x.shape,
            "largest difference from what was written, in steps of 1 / 255": float(
                (x[0] - painted).abs().max() * 255
            ),
            "bytes for each color of a pixel in the file": stored.element_size(),
        },
        [axes],
        note="The picture of the course is not supplied; painted layers of rock stand in for it.",
    )

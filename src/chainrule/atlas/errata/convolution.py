"""Convolutions and poolings of course 000, as they are printed and as they are."""

from __future__ import annotations

import math
from collections.abc import Callable

import chainrule
from chainrule import Tensor, charts, nn, problems
from chainrule.atlas import Forms, Number, Outcome, Statement, Wrong, attempt, entry
from chainrule.nn import functional as F


def integral(function: Callable[[Tensor], Tensor], low: float, high: float, n: int = 4001) -> float:
    """By Simpson's rule."""
    x = chainrule.linspace(low, high, n, dtype=chainrule.float64)
    weights = chainrule.ones(n, dtype=chainrule.float64)
    weights[1:-1:2], weights[2:-1:2] = 4.0, 2.0
    return float((weights * function(x)).sum()) * (high - low) / (n - 1) / 3


@entry(
    "ERR005",
    course="000",
    printed="eq 19, fig. 12",
    title="The ball of the radial target has not the volume 1",
    claims=[
        Wrong("radius of unit volume for d = 2", "R = 0.2", "R = 1 / sqrt(pi)", tolerance=1e-9),
        Number(
            "transform of the disc at r = 0.7", 0.113895, tolerance=1e-5, unprinted="quadrature"
        ),
    ],
)
def radius_of_unit_volume() -> Outcome:
    """The radial target is the Fourier transform of the indicator of a ball, for any radius.

    The text chooses the radius so that the ball has the volume 1, and then draws R = 0.2, whose
    disc has the area 0.126. The identity between the transform and the Bessel function does not
    care: an integral over the disc gives the same number as the closed form.
    """

    def missing(radius: float) -> float:
        return math.pi * radius**2 - 1

    low, high = 0.0, 2.0
    for _ in range(100):  # the root, by bisection
        middle = (low + high) / 2
        low, high = (middle, high) if missing(middle) < 0 else (low, middle)
    r, radius = 0.7, 0.2

    def strip(x: Tensor) -> Tensor:
        return 2 * (radius**2 - x * x).clamp(0).sqrt() * (2 * math.pi * r * x).cos()

    disc = integral(strip, -radius, radius)
    closed = problems.radial_function(chainrule.tensor([[r, 0.0]], dtype=chainrule.float64))
    ax = charts.axes_for(None)
    grid = chainrule.linspace(0, 10, 201, dtype=chainrule.float64)
    for k, size in enumerate((0.2, 1 / math.sqrt(math.pi))):
        x = chainrule.stack([grid, 0 * grid], 1)
        values = problems.radial_function(x, size)
        label = f"R = {size:.4g}, area {math.pi * size**2:.3g}"
        ax.plot(grid.numpy(), values.numpy(), color=charts.COLORS[k], label=label)
    ax.set(title="The radial target for two radii", xlabel="|x|", ylabel="value")
    ax.legend()
    found = abs(disc - float(closed)) < 1e-4
    return Outcome(
        {
            "radius of unit volume for d = 2": Forms(0.2, 1 / math.sqrt(math.pi), low),
            "transform of the disc at r = 0.7": disc if found else math.nan,
        },
        [ax],
    )


@entry(
    "ERR006",
    course="000",
    printed="eq 24",
    title="A dilated convolution of functions stretches one of them alone",
    claims=[
        Wrong(
            "dilated convolution at x = 0.4, D = 2",
            "integral of H(Du) psi(x - Du)",
            "integral of H(u) psi(x - Du)",
            tolerance=1e-4,
        )
    ],
)
def dilated_integral() -> Outcome:
    """A kernel that reads every second point of the input, in the continuum.

    With D in both factors the substitution v = D u gives the ordinary convolution divided by D:
    nothing is dilated. The truth here is the library's layer with ``dilation=2`` on a fine grid,
    which the integral with D in psi alone meets.
    """
    d, x, h = 2.0, 0.4, 0.02

    def kernel(u: Tensor) -> Tensor:
        return (-((u - 0.3) ** 2)).exp()

    def psi(t: Tensor) -> Tensor:
        return t.cos() / (1 + t * t)

    printed = integral(lambda u: kernel(d * u) * psi(x - d * u), -8, 8)
    right = integral(lambda u: kernel(u) * psi(x - d * u), -8, 8)
    places = chainrule.arange(-400, 401, dtype=chainrule.float64) * h
    samples = psi(x - chainrule.arange(-800, 801, dtype=chainrule.float64) * h)
    weights = kernel(places) * h
    layer = F.conv1d(samples.reshape(1, 1, -1), weights.reshape(1, 1, -1), dilation=2)
    return Outcome({"dilated convolution at x = 0.4, D = 2": Forms(printed, right, float(layer))})


@entry(
    "ERR007",
    course="000",
    printed="eq 25",
    title="Dilation spaces the input, not the kernel",
    claims=[
        Wrong("z[6] for a kernel of 3 and d = 2", "H[d u] psi[i - d u]", "H[u] psi[i - d u]", 1e-9)
    ],
)
def dilated_sum() -> Outcome:
    """A kernel of three weights has the indices 0, 1 and 2, whatever the dilation.

    The printed H[d u] asks for H[4], which does not exist. Dilation makes the kernel read inputs
    that are d apart, with the same three weights.
    """
    kernel = [0.5, -1.0, 2.0]
    signal = chainrule.randn(12, dtype=chainrule.float64)
    i, d = 6, 2
    flipped = chainrule.tensor(kernel[::-1], dtype=chainrule.float64).reshape(1, 1, 3)
    truth = F.conv1d(signal.reshape(1, 1, -1), flipped, dilation=d)[0, 0, i - d * 2]
    printed = attempt(lambda: sum(kernel[d * u] * float(signal[i - d * u]) for u in range(3)))
    right = sum(kernel[u] * float(signal[i - d * u]) for u in range(3))
    return Outcome({"z[6] for a kernel of 3 and d = 2": Forms(printed, right, float(truth))})


@entry(
    "ERR008",
    course="000",
    printed="eq 21, 23, 28",
    title="Indices of an image end before its size",
    claims=[
        Wrong("pixels summed over an image of 5 by 7", "i = 0..W, j = 0..H", "0..W-1, 0..H-1", 0.5),
        Wrong("sum over z[j, i] psi[i, j]", "z[j, i] with psi[i, j]", "z[i, j] with psi[i, j]"),
    ],
)
def index_ranges() -> Outcome:
    """An image of W columns has the columns 0 to W - 1.

    A sum from 0 to W asks for one more row and column than there are. And both factors need one
    order of their indices: an image of 5 by 7 times its transposed has no meaning, and times
    itself it is the sum of squares.
    """
    image = chainrule.randn(5, 7, dtype=chainrule.float64)
    height, width = image.shape
    ones = chainrule.ones(height, width)
    counted = attempt(
        lambda: sum(float(ones[j, i]) for i in range(width + 1) for j in range(height + 1))
    )
    right = sum(float(ones[j, i]) for i in range(width) for j in range(height))
    return Outcome(
        {
            "pixels summed over an image of 5 by 7": Forms(counted, right, image.numel()),
            "sum over z[j, i] psi[i, j]": Forms(
                attempt(lambda: float((image.T * image).sum())),
                float((image * image).sum()),
                float(image.norm() ** 2),
            ),
        }
    )


@entry(
    "ERR009",
    course="000",
    printed="eq 29",
    title="Max pooling has no sums in front of the maximum",
    claims=[Wrong("pooled value of a patch of 2 by 2", "sum sum max max", "max max", 1e-9)],
)
def max_pooling() -> Outcome:
    """The maximum over a patch is one number; summing it over the patch counts it once per pixel.

    For a patch of 2 by 2 the printed form is four times the maximum, for k by k it is k^2 times.
    """
    patch = chainrule.tensor([[1.0, 2.0], [4.0, 3.0]])
    printed = sum(float(patch.max()) for _ in range(2) for _ in range(2))
    truth = float(nn.MaxPool2d(2)(patch.reshape(1, 1, 2, 2)))
    right = max(max(row) for row in patch.tolist())
    return Outcome({"pooled value of a patch of 2 by 2": Forms(printed, right, truth)})


@entry(
    "ERR010",
    course="000",
    printed="eq 26-27",
    title="The formula of the output size speaks of sizes, not of indices",
    claims=[
        Wrong("size of the map of 28 pixels, k = 5", "i is the last index", "i is the size", 0.5),
        Statement("settings that agree with the layer", "the formula is right", at_least=1.0),
    ],
)
def output_size() -> Outcome:
    """How many places a kernel has: floor((i + 2 p - k - (k - 1)(d - 1)) / s) + 1.

    The formula is right if i is the number of pixels. The text calls it an index, and with the
    last index, which is one less, it misses a place. Against the layer itself it is right for all
    strides, paddings and dilations that are tried here.
    """

    def formula(i: int, k: int, s: int = 1, p: int = 0, d: int = 1) -> int:
        return (i + 2 * p - k - (k - 1) * (d - 1)) // s + 1

    tried = agree = 0
    for i in (7, 12):
        for k in (1, 3, 5):
            for s in (1, 2, 3):
                for p in (0, 1, 2):
                    for d in (1, 2):
                        expected = formula(i, k, s, p, d)
                        if expected < 1:
                            continue
                        layer = nn.Conv1d(1, 1, k, s, p, d)
                        tried += 1
                        agree += layer(chainrule.zeros(1, 1, i)).shape[-1] == expected
    truth = nn.Conv1d(1, 1, 5)(chainrule.zeros(1, 1, 28)).shape[-1]
    return Outcome(
        {
            "size of the map of 28 pixels, k = 5": Forms(formula(27, 5), formula(28, 5), truth),
            "settings that agree with the layer": agree / tried,
        }
    )


@entry(
    "ERR011",
    course="000",
    printed="fig. 21",
    title="Which padding keeps the size of an image",
    claims=[
        Wrong("map of 188 by 257, kernel 3", "padding 2", "padding 1", 0.5),
        Wrong("map of 188 by 257, kernel 5", "padding 1", "padding 2", 0.5),
    ],
)
def padding() -> Outcome:
    """A kernel of k pixels loses k - 1 of them; a padding of (k - 1) / 2 on each side gives them
    back.

    The caption has the two paddings the wrong way round: with them one map is larger than the
    image and the other smaller.
    """
    image = chainrule.zeros(1, 1, 188, 257)

    def size(kernel: int, padding: int) -> list[int]:
        return [*nn.Conv2d(1, 1, kernel, padding=padding)(image).shape[2:]]

    kept = [188, 257]
    return Outcome(
        {
            "map of 188 by 257, kernel 3": Forms(size(3, 2), size(3, 1), kept),
            "map of 188 by 257, kernel 5": Forms(size(5, 1), size(5, 2), kept),
        }
    )


@entry(
    "ERR012",
    course="000",
    printed="fig. 24",
    title="A pooling pads by half its kernel at most",
    claims=[
        Wrong("windows of 3 that see a pixel, on 8", "padding 2", "padding 1 at most", 0.5),
    ],
)
def pooling_padding() -> Outcome:
    """With a padding of 2 a window of 3 at the border would be two thirds outside of the image.

    Libraries refuse a padding of more than half the kernel. What has to come out is a window for
    every pixel of a row of eight, at stride 1: this is what a padding of 1 gives.
    """
    row = chainrule.ones(1, 1, 8, 8)

    def windows(padding: int) -> int:
        return int(nn.MaxPool2d(3, 1, padding)(row).shape[-1])

    return Outcome(
        {
            "windows of 3 that see a pixel, on 8": Forms(
                attempt(lambda: windows(2)), attempt(lambda: windows(1)), 8
            )
        }
    )

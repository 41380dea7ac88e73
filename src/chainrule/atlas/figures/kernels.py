"""Convolutions and pooling on an image: sizes, fields, and weights that are shared."""

from __future__ import annotations

from typing import Any

import chainrule
from chainrule import Tensor, charts, inspect, nn
from chainrule.atlas import Forms, Number, Outcome, Statement, Wrong, attempt, entry

STAND_IN = "The picture of the course is not supplied; painted layers of rock stand in for it."
# Figures 20 to 23, with the padding that keeps the size where figure 21 says that it is kept.
ROWS: dict[str, dict[str, int]] = {
    "k 5, p 0": {"kernel_size": 5},
    "k 5, p 2": {"kernel_size": 5, "padding": 2},
    "k 3, p 1": {"kernel_size": 3, "padding": 1},
    "k 3, stride 2": {"kernel_size": 3, "padding": 1, "stride": 2},
    "k 5, dilation 5": {"kernel_size": 5, "padding": 1, "dilation": 5},
}


HIGH, WIDE = 188, 257
EDGES = [[1.0, 0, -1], [2, 0, -2], [1, 0, -1]]


def strata() -> Tensor:
    """Thin tilted layers with a fault and grains, in three colors (1, 3, 188, 257), from 0 to 1."""
    y = chainrule.arange(HIGH).reshape(-1, 1) / HIGH
    x = chainrule.arange(WIDE) / WIDE
    fault = 0.06 * (x > 0.65 - 0.25 * y).float()
    depth = 45 * (y + 0.25 * x + 0.04 * (9 * x).sin() + fault)
    drawn = chainrule.Generator().manual_seed(0)
    grains = (chainrule.rand(HIGH, WIDE, generator=drawn) > 0.985).float()
    colors = [0.5 + 0.4 * (depth + phase).sin() + 0.6 * grains for phase in (0.0, 0.7, 1.9)]
    return chainrule.stack(colors).clamp(0, 1).unsqueeze(0)


def filtered(options: dict[str, int]) -> nn.Sequential:
    """Four kernels and tanh; the same start for all settings."""
    chainrule.manual_seed(3)
    return nn.Sequential(nn.Conv2d(3, 4, **options), nn.Tanh())  # type: ignore[arg-type]


def rows_for(kernel: int, padding: int) -> int:
    """The rows of a map of the image."""
    layer = nn.Conv2d(3, 1, kernel, padding=padding)
    return layer(strata()).shape[2]


def unlike_shifted(options: dict[str, int], by: int = 1) -> float:
    """How far the map of an image that is shifted is from any shift of the map, over its size."""
    layer, image = filtered(options), strata()
    with chainrule.no_grad():
        whole = layer(image)[..., 8:-8, 8:-8]
        moved = layer(image.roll(by, 3))[..., 8:-8, 8:-8]
    width = whole.shape[3]
    gaps = [
        float((moved[..., s:] - whole[..., : width - s]).square().mean().sqrt()) for s in (0, 1)
    ]
    return min(gaps) / float(whole.std())


def draw_maps(axes: list[Any], maps: Tensor, name: str) -> None:
    """The maps of one setting on the scale from -1 to 1, in frames of the size of the image."""
    for k, ax in enumerate(axes):
        ax.imshow(maps[k].numpy(), vmin=-1, vmax=1, cmap=charts.SEQUENTIAL)
        ax.set(xticks=[], yticks=[], xlim=(0, WIDE), ylim=(HIGH, 0))
    axes[0].set_ylabel(name, fontsize=9)
    axes[0].set_xlabel(f"{maps.shape[1]} x {maps.shape[2]}", fontsize=8)


@entry(
    "V26",
    course="000",
    printed="fig. 16, 20-23",
    title="Feature maps for kernel, padding, stride and dilation",
    claims=[
        Number(
            "rows and columns for k 5, p 0 and p 2",
            (184, 253, 188, 257),
            tolerance=0.5,
            unprinted="eq 26 for the image of 188 by 257",
        ),
        Number("rows and columns for k 3, p 1, stride 2", (94, 129), tolerance=0.5),
        Wrong("rows for k 3 and k 5 that keep 188", "p 2 and p 1", "p 1 and p 2", tolerance=0.5),
        Number("pixels across that a kernel of 5 sees, dilation 1 and 5", (5, 21), tolerance=0.5),
        Number("rows lost by dilation 5 with p 1", 18, tolerance=0.5),
        Statement(
            "shifted image, stride 1: distance from the shifted map",
            "maps of translated images are translated maps",
            at_most=1e-5,
        ),
        Statement(
            "the same with stride 2, from any shift of the map",
            "strided convolution is not covariant",
            at_least=0.01,
        ),
    ],
)
def feature_maps() -> Outcome:
    """Four kernels over one image, and what size, padding, stride and dilation do to their maps.

    Without padding the border is lost, with (k - 1) / 2 the size is kept, a stride of 2 halves it.
    A dilation of 5 lets 25 weights see 21 by 21 pixels, and loses more of the border. If the image
    is shifted by a pixel, so is the map, but for a stride of 2, which skips every other place. The
    caption of figure 21 has the paddings of k 3 and k 5 exchanged.
    """
    image = strata()
    seen = {n: inspect.feature_maps(filtered(o), image, layer="1").maps[0] for n, o in ROWS.items()}
    sizes = {name: tuple(maps.shape[1:]) for name, maps in seen.items()}
    spans = [
        inspect.receptive_field(filtered(ROWS[n]), image, layer="0").layers[-1]
        for n in ("k 5, p 2", "k 5, dilation 5")
    ]
    axes = charts.grid_of_axes(None, 4 * len(ROWS), 4, (1.7, 1.3))
    for k, (name, maps) in enumerate(seen.items()):
        draw_maps(axes[4 * k : 4 * k + 4], maps, name)
    axes[0].figure.suptitle("Maps of four kernels, tanh, from -1 to 1")
    shown = charts.axes_for(None, (4.4, 3.3))
    shown.imshow(image[0].permute(1, 2, 0).numpy())
    shown.set(title="The image, 188 x 257", xticks=[], yticks=[])
    return Outcome(
        {
            "rows and columns for k 5, p 0 and p 2": sizes["k 5, p 0"] + sizes["k 5, p 2"],
            "rows and columns for k 3, p 1, stride 2": sizes["k 3, stride 2"],
            "rows for k 3 and k 5 that keep 188": Forms(
                (rows_for(3, 2), rows_for(5, 1)), (rows_for(3, 1), rows_for(5, 2)), (188, 188)
            ),
            "pixels across that a kernel of 5 sees, dilation 1 and 5": [
                s.last[-1] - s.first[-1] + 1 for s in spans
            ],
            "rows lost by dilation 5 with p 1": 188 - sizes["k 5, dilation 5"][0],
            "shifted image, stride 1: distance from the shifted map": unlike_shifted(
                ROWS["k 3, p 1"]
            ),
            "the same with stride 2, from any shift of the map": unlike_shifted(
                ROWS["k 3, stride 2"]
            ),
        },
        [shown, axes],
        note=STAND_IN,
    )


@entry(
    "V27",
    course="000",
    printed="fig. 24",
    title="Convolution, average pooling and max pooling",
    claims=[
        Wrong("rows pooled with k 3 that keep 188", "p 2", "p at most k / 2: p 1", tolerance=0.5),
        Number("channels of three colors behind both poolings", (3, 3), tolerance=0.5),
        Statement("least maximum less average", "the patch's largest and mean value", 0.0),
        Statement("least and largest value behind tanh", "all on one scale", -1.0, 1.0),
    ],
)
def pooled() -> Outcome:
    """A convolution mixes colors by weights; pooling takes the mean or the largest of each patch.

    Pooling has no weights and leaves channels apart: three colors in, three out. The average
    blurs, the maximum makes bright parts wider. All are sent through tanh, so that they can be
    compared on one scale. A padding of 2 for a kernel of 3, as the caption has it, is refused: a
    patch could lie in the padding alone.
    """
    image = 2 * strata() - 1
    chainrule.manual_seed(0)
    layers: dict[str, nn.Module] = {
        "convolution": nn.Conv2d(3, 3, 3, padding=2),
        "average": nn.AvgPool2d(3, stride=1, padding=1, count_include_pad=False),
        "maximum": nn.MaxPool2d(3, stride=1, padding=1),
    }
    maps = {
        name: inspect.feature_maps(nn.Sequential(layer, nn.Tanh()), image, layer="1").maps[0]
        for name, layer in layers.items()
    }
    axes = charts.grid_of_axes(None, 9, 3, (2.2, 1.7))
    for k, (name, found) in enumerate(maps.items()):
        draw_maps(axes[3 * k : 3 * k + 3], found, name)
    axes[0].figure.suptitle("Three channels each, behind tanh")
    ends = [v for found in maps.values() for v in (float(found.min()), float(found.max()))]
    right = layers["maximum"](image).shape[2]
    return Outcome(
        {
            "rows pooled with k 3 that keep 188": Forms(
                attempt(lambda: nn.MaxPool2d(3, stride=1, padding=2)(image).shape[2]),
                right,
                188,
            ),
            "channels of three colors behind both poolings": (
                len(maps["average"]),
                len(maps["maximum"]),
            ),
            "least maximum less average": float((maps["maximum"] - maps["average"]).min()),
            "least and largest value behind tanh": ends,
        },
        [axes],
        note=STAND_IN,
    )


def slopes(layer: nn.Module, x: Tensor) -> Tensor:
    """The derivative of every output by every input: which are connected, and by what weight."""
    return chainrule.func.jacrev(lambda v: layer(v).flatten())(x).reshape(-1, x.numel()).detach()


@entry(
    "V29",
    course="004",
    printed="fig. 6.4-6.9, section 6.4",
    title="Local fields and shared weights",
    claims=[
        Number("hidden neurons for 28 x 28 inputs and fields of 5 x 5", (24, 24), tolerance=0.5),
        Number("inputs of a hidden neuron, convolution and dense", (25, 784), tolerance=0.5),
        Statement("largest difference of weights of two places", "they are shared", at_most=0.0),
        Statement("share of different weights of a dense layer", "they are not shared", 0.99),
        Number("maps, rows and columns of three kernels, pooled", (3, 12, 12), tolerance=0.5),
    ],
)
def shared_weights() -> Outcome:
    """Which inputs a hidden neuron is connected to, and by which weights.

    In a convolution each sees a small patch, and all use the same weights: in the table of
    connections every row has the same numbers, shifted. In a dense layer each neuron sees all
    inputs, by weights of its own. Several kernels make several maps, and pooling halves their
    sides. The film moves the patch over a small image.
    """
    image = chainrule.randn(1, 1, 28, 28)
    net = nn.Sequential(nn.Conv2d(1, 3, 5), nn.MaxPool2d(2))
    table = slopes(nn.Conv2d(1, 1, 5, bias=False), image)
    dense = nn.Linear(784, 8, bias=False)
    fields = (table != 0).sum(1)
    patches = [row[row != 0] for row in table]
    gaps = max(float((p - patches[0]).abs().max()) for p in patches)
    own = len(set(dense.weight.detach().flatten().tolist())) / dense.weight.numel()

    small = chainrule.randn(1, 1, 5, 5)
    axes = charts.grid_of_axes(None, 2, 2, (3.6, 2.0))
    both = {
        "convolution, 3 x 3": slopes(nn.Conv2d(1, 1, 3, bias=False), small),
        "dense": slopes(nn.Sequential(nn.Flatten(), nn.Linear(25, 9, bias=False)), small),
    }
    for ax, (name, weights) in zip(axes, both.items(), strict=True):
        top = float(weights.abs().max())
        ax.imshow(weights.numpy(), cmap=charts.DIVERGING, vmin=-top, vmax=top)
        ax.set(title=name, xlabel="input of 5 x 5", ylabel="neuron", yticks=[0, 4, 8])
    edges = nn.Conv2d(1, 1, 3, bias=False)
    edges.weight.data.copy_(chainrule.tensor(EDGES).reshape(1, 1, 3, 3))
    steps = inspect.convolution_steps(edges, 5)
    size = "hidden neurons for 28 x 28 inputs and fields of 5 x 5"
    return Outcome(
        {
            size: nn.Conv2d(1, 1, 5)(image).shape[2:],
            "inputs of a hidden neuron, convolution and dense": (
                float(fields.float().mean()),
                int((slopes(nn.Sequential(nn.Flatten(), dense), image) != 0).sum(1).min()),
            ),
            "largest difference of weights of two places": gaps,
            "share of different weights of a dense layer": own,
            "maps, rows and columns of three kernels, pooled": net(image).shape[1:],
        },
        [axes, steps, inspect.receptive_field(net, image), inspect.draw(net, image)],
    )

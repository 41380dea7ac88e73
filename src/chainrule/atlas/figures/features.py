"""What a convolutional network learned: filters, higher layers, pictures that drive it, slopes."""

from __future__ import annotations

import copy
import functools
import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import chainrule
from chainrule import Tensor, charts, inspect, nn, optim, random
from chainrule.atlas import Number, Outcome, Statement, entry
from chainrule.atlas.figures.samples import handwritten
from chainrule.nn import functional as F

BLOCKS = {"first": "1", "second": "4", "third": "7"}  # the rectifiers by their names


def fresh(seed: int = 0) -> nn.Sequential:
    """Three blocks of convolution, ReLU and pooling, and a dense layer."""
    with random.fork_rng():
        random.manual_seed(seed)
        return nn.Sequential(
            *(nn.Conv2d(1, 16, 7, padding=3), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Conv2d(16, 24, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Conv2d(24, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Flatten(), nn.Linear(288, 10)),
        )


@functools.cache
def trained(images: int, epochs: int, folder: Path | None, seed: int = 0) -> nn.Sequential:
    """The network after some epochs with the first of the digits, in batches of 50."""
    x, y, _ = handwritten(folder)
    net = fresh(seed)
    optimizer = optim.AdamW(net.parameters(), lr=3e-3, weight_decay=0.2)
    count = min(images, len(x))
    for i in [*range(0, count, 50)] * epochs:
        optimizer.zero_grad()
        F.cross_entropy(net(x[i : i + 50]), y[i : i + 50]).backward()
        optimizer.step()
    return net.eval()


def samples(folder: Path | None, count: int = 300) -> tuple[Tensor, Tensor, str]:
    """Test digits and their classes, and what they are."""
    x, y, note = handwritten(folder, train=False)
    return x[:count], y[:count], note


def first_of_each(labels: Tensor, count: int) -> list[int]:
    """Where the first samples of some classes are."""
    known = labels.tolist()
    return [known.index(k) for k in range(count)]


def likeness(weights: Tensor) -> float:
    """The correlation of weights that are neighbors in a filter: 0 for independent ones."""
    w = weights - weights.mean((-2, -1), keepdim=True)
    products = (w[..., 1:] * w[..., :-1]).mean() + (w[..., 1:, :] * w[..., :-1, :]).mean()
    return float(products / (2 * w.square().mean()))


@entry(
    "V30",
    course="004",
    printed="fig. 6.13",
    title="Filters of the first layer, learned",
    claims=[
        Statement(
            "correlation of neighboring weights, after training",
            "filters are edges and spots: neighbors agree",
            at_least=0.25,
        ),
        Statement("the same before training", "noise at the start", at_least=-0.1, at_most=0.1),
    ],
    full={"images": 60_000, "epochs": 2},
    data=("mnist",),
)
def learned_filters(images: int = 1500, epochs: int = 4, data: Path | None = None) -> Outcome:
    """The weights of a first convolution as pictures, before and after training.

    At the start they are noise. Training turns them into small edges, lines and spots: patterns
    that are found in most pictures, whatever these show. The number that tells noise from a
    pattern is how alike weights are that lie beside each other.
    """
    start, net = fresh(), trained(images, epochs, data)
    before, after = inspect.filters(start), inspect.filters(net)
    axes = charts.grid_of_axes(None, 2, 2, (3.4, 3.5))
    for ax, found, when in zip(axes, (before, after), ("before", "after"), strict=True):
        draw_mosaic(ax, list(found.weights[:, 0]), 4)
        ax.set_title(f"16 filters {when} training")
    return Outcome(
        {
            "correlation of neighboring weights, after training": likeness(after.weights),
            "the same before training": likeness(before.weights),
        },
        [axes],
        note=samples(data, 1)[2] + "The network of the course was trained on ImageNet.",
    )


def draw_mosaic(ax: Any, pictures: Sequence[Tensor], columns: int) -> None:
    """Signed pictures side by side in one: red is positive, blue negative, white 0."""
    scaled = chainrule.stack([p / float(p.abs().max() + 1e-12) for p in pictures])
    bordered = F.pad(scaled, (1, 1, 1, 1))
    n, h, w = bordered.shape
    mosaic = bordered.reshape(n // columns, columns, h, w).permute(0, 2, 1, 3)
    ax.imshow(mosaic.reshape(-1, columns * w).numpy(), cmap=charts.DIVERGING, vmin=-1, vmax=1)
    ax.set(xticks=[], yticks=[])


def class_share(features: Tensor, labels: Tensor) -> float:
    """How much of the variance of features lies between the classes."""
    h = features.flatten(1)
    center = h.mean(0)
    groups = [h[labels == k] for k in range(10)]
    between = sum(len(g) * float((g.mean(0) - center).square().sum()) for g in groups)
    return between / float((h - center).square().sum())


@entry(
    "V31",
    course="004",
    printed="fig. 6.14",
    title="What drives units of higher and higher layers",
    claims=[
        Statement(
            "least rise, from layer to layer, of the variance between classes",
            "higher layers are more abstract",
            at_least=0.0,
        ),
        Statement(
            "least rise of the pixels that a unit sees", "higher layers see more", at_least=1.0
        ),
    ],
    full={"images": 60_000, "epochs": 2},
    data=("mnist",),
)
def higher_features(
    images: int = 1500, epochs: int = 4, seeds: int = 3, data: Path | None = None
) -> Outcome:
    """The strongest unit of each layer, sent back to the pixels that drive it.

    A unit of the first layer answers to a stroke of a few pixels, one of the third to a good part
    of a digit. What layers tell becomes more abstract: the share of their variance that lies
    between the ten classes, and not within them, grows from the pixels to the output.
    """
    net = trained(images, epochs, data)
    x, labels, note = samples(data)
    chosen = x[first_of_each(labels, 6)]
    shown = list(chosen[:, 0])
    for layer in BLOCKS.values():
        shown += list(inspect.deconvnet(net, chosen, layer=layer).pictures[:, 0])
    axes = charts.grid_of_axes(None, 2, 2, (3.6, 3.0))
    draw_mosaic(axes[0], shown, 6)
    axes[0].set_yticks([15 + 30 * k for k in range(4)], ["digit", *BLOCKS])
    axes[0].set_title("What drives the strongest unit")
    names, shares = ["pixels", *BLOCKS, "output"], []
    for seed in range(seeds):
        other = trained(images, epochs, data, seed)
        with chainrule.no_grad():
            shares.append([class_share(other[:k](x), labels) for k in (0, 3, 6, 9, 11)])
        axes[1].plot(names, shares[-1], "o-", color=charts.COLORS[0], alpha=1 if seed == 0 else 0.4)
    axes[1].set(title="Variance between classes", ylabel="share of all variance", ylim=(0, 1))
    axes[1].tick_params(axis="x", rotation=45)
    fields = [
        inspect.receptive_field(net, x[:1], layer=layer).layers[-1].size[0]
        for layer in BLOCKS.values()
    ]
    return Outcome(
        {
            "least rise, from layer to layer, of the variance between classes": [
                least_rise(each) for each in shares
            ],
            "least rise of the pixels that a unit sees": least_rise(fields),
        },
        [axes],
        note=f"{note}{seeds} networks, each from its own start. That of the course was trained on "
        "ImageNet.",
    )


def least_rise(values: Sequence[float]) -> float:
    """The smallest difference of a value from the one before it."""
    return min(b - a for a, b in itertools.pairwise(values))


def roughness(pictures: Tensor) -> float:
    """The mean squared difference of neighboring pixels, over the variance of pixels."""
    steps = pictures.diff(dim=-1).square().mean() + pictures.diff(dim=-2).square().mean()
    return float(steps / pictures.var(correction=0))


@entry(
    "V32",
    course="004",
    printed="section 4.8, fig. 4.11",
    title="Pictures that drive an output most",
    claims=[
        Statement("least probability of the class that is driven", "y_k is maximized", 0.99),
        Statement(
            "roughness of plain ascent over that of digits",
            "plain optimization of x does not suffice",
            at_least=1.25,
        ),
        Statement(
            "roughness with adaptions over that of plain ascent",
            "adaptions are necessary, and help",
            at_most=0.7,
        ),
    ],
    full={"images": 60_000, "epochs": 2, "steps": 400},
    data=("mnist",),
)
def driven(
    images: int = 1500, epochs: int = 4, steps: int = 120, data: Path | None = None
) -> Outcome:
    """The gradient of an output by the *input* says how to change a picture to raise this output.

    Plain ascent raises it fast, to near certainty, with noise that looks like nothing. With
    adaptions (a penalty on differences of neighbors, small shifts at each step) pictures have
    strokes that remind of the digit. Below, a dream: the same ascent from real digits, for the
    activity of a whole layer.
    """
    net = trained(images, epochs, data)
    x, labels, note = samples(data, 200)
    plain = inspect.maximize(net, x, steps=steps, smoothness=0.0, jitter=0)
    helped = inspect.maximize(net, x, steps=steps, smoothness=0.3, jitter=2)
    dream = inspect.deep_dream(net, x[first_of_each(labels, 10)], steps=20)
    axes = charts.grid_of_axes(None, 4, 1, (6.4, 1.0))
    rows = {
        "plain ascent to the outputs 0 to 9": plain.pictures,
        "ascent with adaptions": helped.pictures,
        "digits": dream.before,
        f"a dream of layer {dream.layer}, from these digits": dream.after,
    }
    for ax, (name, pictures) in zip(axes, rows.items(), strict=True):
        strip = chainrule.cat(list(F.pad(pictures, (1, 1), value=1.0)[:, 0]), 1)
        ax.imshow(strip.numpy(), cmap="gray")
        ax.set_title(name, fontsize=10)
        ax.set_axis_off()
    rough = roughness(plain.pictures)
    return Outcome(
        {
            "least probability of the class that is driven": min(
                (plain.probabilities or [0.0]) + (helped.probabilities or [0.0])
            ),
            "roughness of plain ascent over that of digits": rough / roughness(x),
            "roughness with adaptions over that of plain ascent": roughness(helped.pictures)
            / rough,
        },
        [axes],
        note=note + "The network of the course was trained on photographs.",
    )


@entry(
    "V33",
    course="004",
    printed="section 4.8, eq 4.68",
    title="How sensitive an output is to each pixel",
    claims=[
        Number("largest slope over that of a small change", 1.0, tolerance=0.01),
        Number("outputs and inputs of the Jacobian", (10, 784), tolerance=0.5),
        Statement("correlation of slopes and true changes", "it measures local sensitivity", 0.999),
    ],
    full={"images": 60_000, "epochs": 2},
    data=("mnist",),
)
def sensitivity(images: int = 1500, epochs: int = 4, data: Path | None = None) -> Outcome:
    """|dy_k / dx|: by how much an output changes if one pixel does.

    It is computed as gradients of weights are, only further down to the input. Pixels on and
    around the strokes matter, the margin does not. That the slopes are right is seen by changing
    single pixels a little: the output changes as they say. (A trace of noise is added first: where
    two pixels of a pooling window are equal, as in a black margin, a slope holds to one side.)
    """
    net = trained(images, epochs, data)
    x, labels, note = samples(data)
    places = first_of_each(labels, 6)
    chosen = x[places] + 1e-3 * chainrule.randn(6, 1, 28, 28)
    seen = inspect.attribute(net, chosen, labels[places], method="sensitivity")
    exact = copy.deepcopy(net).double()
    one = chosen[2:3].double()
    jacobian = chainrule.func.jacrev(lambda v: exact(v)[0])(one).reshape(10, -1)
    step = 1e-6
    moved = one.reshape(1, -1) + step * chainrule.eye(784, dtype=chainrule.float64)
    with chainrule.no_grad():
        scores = [exact(some)[:, 2] for some in moved.reshape(-1, 1, 28, 28).split(98)]
        changes = (chainrule.cat(scores) - exact(one)[0, 2]) / step
    pair = chainrule.stack([jacobian[2], changes])
    place = int(jacobian[2].abs().argmax())
    axes = charts.grid_of_axes(None, 2, 1, (6.4, 1.4))
    for ax, pictures, name in zip(
        axes, (chosen, seen.values[0]), ("digits", "|dy_k / dx| of their own class"), strict=True
    ):
        each = [p[0] / float(p.max()) for p in pictures]
        ax.imshow(chainrule.cat(each, 1).numpy(), cmap="gray" if name == "digits" else "magma")
        ax.set_title(name, fontsize=10)
        ax.set_axis_off()
    return Outcome(
        {
            "largest slope over that of a small change": float(seen.values[0][2].max())
            / abs(float(changes[place])),
            "outputs and inputs of the Jacobian": jacobian.shape,
            "correlation of slopes and true changes": float(chainrule.corrcoef(pair)[0, 1]),
        },
        [axes],
        note=note,
    )

"""Networks that stand for an idea: a wide one and a deep one, and AlexNet."""

from __future__ import annotations

from chainrule import charts, models, nn
from chainrule.atlas import Number, Outcome, Statement, Unchecked, entry
from chainrule.atlas.experiments.alexnet import WHY
from chainrule.atlas.experiments.radial import CLAIMS, outcome


def _size(net: nn.Module) -> int:
    return sum(p.numel() for p in net.parameters())


@entry(
    "M20",
    course="000",
    printed="section 2.4, fig. 12-14; 003, hands-on 1",
    title="A wide network and a deep one",
    claims=[
        Number("units of a layer, wide over deep", 100, tolerance=0.5),
        Statement("parameters, wide over deep", "the deep one is smaller", at_least=1.0),
        *CLAIMS,
    ],
    full={"points": 4000, "wide": 10_000, "steps": 5000, "seeds": 5},
)
def wide_and_deep(
    points: int = 1000, wide: int = 1000, steps: int = 1500, seeds: int = 3
) -> Outcome:
    """One hidden layer of 10,000 ReLU units, or two of 100: which has more, and which does better?

    The wide one has a hundred times as many units in a layer and four times as many parameters.
    The target is a function of the distance from 0 alone; with AdamW the deep one learns it better.
    At quick settings the wide layer that is trained has 1000 units, and the training is short.
    """
    pair = [models.MLP(2, hidden, 1, "relu") for hidden in ([10_000], [100, 100])]
    found = outcome(points, wide, steps, seeds)
    widths = [net[0].out_features for net in pair]
    return Outcome(
        {
            "units of a layer, wide over deep": widths[0] / widths[1],
            "parameters, wide over deep": _size(pair[0]) / _size(pair[1]),
            **found.obtained,
        },
        found.pictures,
        note=found.note,
    )


@entry(
    "M23",
    course="000",
    printed="section 2.5; 004 chapter 6",
    title="The layers of AlexNet",
    claims=[
        Number("millions of parameters", 60.0, tolerance=1.0),
        Number("convolutions and dense layers", (5, 3), tolerance=0.5),
        Number("classes", 1000, tolerance=0.5),
        Statement("share of the parameters in dense layers", "most are dense", at_least=0.9),
        Unchecked("top-1 and top-5 error on ImageNet", "37.5 % and 17.0 %", WHY),
    ],
)
def alexnet() -> Outcome:
    """Five convolutions, some with pooling, three dense layers, a thousand classes.

    With the two groups of channels of 2012, one for each graphics card, it has 60,965,224
    parameters. Nearly all are in the dense layers; nearly all of the work is in the convolutions,
    whose weights serve every place of the image. X16 trains it, on images that stand in for
    ImageNet.
    """
    net = nn.utils.skip_init(models.AlexNet)
    layers = [m for m in net.modules() if isinstance(m, (nn.Conv2d, nn.Linear))]
    sizes = [_size(layer) for layer in layers]
    names = [f"conv {k}" for k in range(1, 6)] + [f"dense {k}" for k in range(1, 4)]
    ax = charts.axes_for(None)
    colors = [charts.COLORS[0]] * 5 + [charts.COLORS[1]] * 3
    ax.barh(names, [size / 1e6 for size in sizes], color=colors)
    ax.invert_yaxis()
    ax.set(title="Parameters of AlexNet", xlabel="millions")
    kinds = [isinstance(layer, nn.Conv2d) for layer in layers]
    return Outcome(
        {
            "millions of parameters": sum(sizes) / 1e6,
            "convolutions and dense layers": (sum(kinds), len(kinds) - sum(kinds)),
            "classes": layers[-1].out_features,
            "share of the parameters in dense layers": sum(sizes[5:]) / sum(sizes),
        },
        [ax],
    )

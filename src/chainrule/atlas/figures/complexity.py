"""How complex a network may be: errors against units, flat and sharp minima, growing networks."""

from __future__ import annotations

import functools
import itertools
import math

import chainrule
from chainrule import Generator, Tensor, charts, information, inspect, models, nn, optim
from chainrule import regularize, train
from chainrule.atlas import Number, Outcome, Spread, Statement, entry
from chainrule.inspect.structure.canvas import Sketch

UNITS = (1, 2, 3, 4, 8, 16)


def waves(n: int, generator: Generator) -> tuple[Tensor, Tensor]:
    """Points of a sine with noise of standard deviation 0.3."""
    x = 2 * chainrule.rand(n, 1, generator=generator) - 1
    return x, (4 * x).sin() + 0.3 * chainrule.randn(n, 1, generator=generator)


def mean_row(units: int, parameters: int, seen: list[float], new: list[float]) -> dict[str, float]:
    """A row of a complexity curve: means and their standard errors."""
    a, b = Spread(tuple(seen)), Spread(tuple(new))
    root = math.sqrt(len(seen))
    return {
        "complexity": units,
        "parameters": parameters,
        "train": a.mean,
        "test": b.mean,
        "gap": b.mean - a.mean,
        "train_error": a.deviation / root,
        "test_error": b.deviation / root,
    }


@entry(
    "V41",
    course="004",
    printed="fig. 5.3, 8.1",
    title="Training and test error against complexity",
    claims=[
        Statement(
            "largest rise of the training error between sizes",
            "the training error decreases with complexity",
            at_most=0.0,
        ),
        Statement(
            "test error of the smallest network over the lowest",
            "the test error first decreases",
            at_least=1.2,
        ),
        Statement(
            "test error of the largest network over the lowest", "and then increases", at_least=1.2
        ),
        Statement(
            "largest fall of the complexity term between sizes",
            "the risk is the training error and a complexity term, which grows",
            at_most=0.0,
        ),
    ],
    full={"data_sets": 200, "epochs": 2000},
)
def complexity_curve(
    data_sets: int = 50, epochs: int = 1000, points: int = 16, seed: int = 0
) -> Outcome:
    """Networks of 1 to 16 hidden units learn sixteen noisy points; 500 others test them.

    One unit cannot follow the wave: both errors are large. With more units the network comes
    nearer to the training points, and in the end follows their noise; new points have other noise,
    so the test error rises again. The distance between the two is the price of complexity; the
    best size lies where what a unit more saves in training is what it costs. That price need not
    rise with every size, as it does in the figure: from 8 to 16 units it hardly changes. Each size
    was trained on many data sets; bars are standard errors of the means.
    """
    generator = Generator().manual_seed(seed)
    test = waves(500, generator)
    sets = [waves(points, generator) for _ in range(data_sets)]
    fits = train.fit_many(
        [functools.partial(models.MLP, 1, [h], 1, "tanh") for h in UNITS for _ in sets],
        sets * len(UNITS),
        "mse",
        functools.partial(optim.Adam, lr=0.1),
        seeds=[*range(data_sets)] * len(UNITS),
        epochs=epochs,
        batch_size=points,
    )
    rows, gaps = [], []
    error = nn.functional.mse_loss
    for i, h in enumerate(UNITS):
        own = fits.models[i * data_sets : (i + 1) * data_sets]
        with chainrule.no_grad():
            seen = [error(net(x), y).item() for net, (x, y) in zip(own, sets, strict=True)]
            new = [error(net(test[0]), test[1]).item() for net in own]
        gaps.append([b - a for a, b in zip(seen, new, strict=True)])
        rows.append(mean_row(h, sum(p.numel() for p in own[0].parameters()), seen, new))
    curve = train.ComplexityCurve(train.History(rows), [])
    lowest = curve.best["test"]
    ax = curve.plot()
    ax.set(xlabel="hidden units", xscale="log", title=f"Means over {data_sets} data sets")
    ax.set_xticks(UNITS, [str(h) for h in UNITS])
    ax.minorticks_off()
    falls = [
        Spread(tuple(x - y for x, y in zip(a, b, strict=True))) for a, b in itertools.pairwise(gaps)
    ]
    worst = max(falls, key=lambda fall: fall.mean)
    return Outcome(
        {
            "largest rise of the training error between sizes": max(
                b["train"] - a["train"] for a, b in itertools.pairwise(rows)
            ),
            "test error of the smallest network over the lowest": rows[0]["test"] / lowest,
            "test error of the largest network over the lowest": rows[-1]["test"] / lowest,
            "largest fall of the complexity term between sizes": worst.mean,
        },
        [ax],
        note="The task and its training were chosen so that overfitting shows. The fall of the "
        f"complexity term is {worst.mean / worst.deviation * math.sqrt(data_sets):.1f} times its "
        "standard error over the data sets.",
    )


def two_units(outgoing: tuple[float, float]) -> nn.Module:
    """v1 tanh(2 x) + v2 tanh(2 x): the same function for all v1 + v2 = 1."""
    net = models.MLP(1, [2], 1, "tanh").double()
    for p, values in zip(net.parameters(), ([2.0, 2.0], [0.0, 0.0], outgoing, [0.0]), strict=True):
        p.data.copy_(chainrule.tensor(values, dtype=p.dtype).reshape(p.shape))
    return net


def bits_of(net: nn.Module, x: Tensor, tolerance: float) -> float:
    """Bits for weights with the digits that matter: the mean over the samples."""
    search = regularize.FlatMinimum(1.0, tolerance=tolerance)
    weights = nn.utils.parameters_to_vector(search.weights(net).values()).detach()

    def uniform(w: Tensor) -> Tensor:
        """The logarithm of a density that is the same from -5 to 5."""
        return 0 * w - math.log(10.0)

    boxes = [regularize.flat_box(j, tolerance) for j in search.jacobian(net, x).detach()]
    bits = [information.description_length(weights, box, uniform) for box in boxes]
    return float(chainrule.stack(bits).mean())


def length_of(printed: str) -> float:
    """The length of the interval of numbers that are written like this, by bisection."""
    digits = len(printed.partition(".")[2])
    ends = []
    for way in (-1.0, 1.0):
        near, far = 0.0, 1.0
        for _ in range(50):
            middle = (near + far) / 2
            same = f"{float(printed) + way * middle:.{digits}f}" == printed
            near, far = (middle, far) if same else (near, middle)
        ends.append(near)
    return sum(ends)


@entry(
    "V43",
    course="004",
    printed="fig. 8.3, section 8.9",
    title="A flat and a sharp minimum",
    claims=[
        Statement("largest loss of the two networks", "both have a small risk", at_most=1e-12),
        Statement(
            "loss of the sharp one over that of the flat one, weights moved by up to 0.05",
            "a steep minimum needs weights of high precision, a flat one does not",
            at_least=2.0,
        ),
        Statement(
            "curvature of the sharp one over that of the flat one, largest direction",
            "right: a sharp minimum",
            at_least=2.0,
        ),
        Statement("bits that the flat one saves", "fewer bits describe a flat minimum", at_least=1),
        Number("lengths of the intervals of 1.5 and 1.233", (0.1, 0.001), tolerance=1e-9),
    ],
    full={"trials": 5000},
)
def flat_and_sharp(trials: int = 200, tolerance: float = 0.01) -> Outcome:
    """Two networks that compute exactly the same, with weights of which one must know more digits.

    Both are v1 tanh(2 x) + v2 tanh(2 x). One has v = (0.5, 0.5), the other v = (5, -4), whose units
    work against each other. If a weight inside is a little wrong, the first network halves that
    error and the second multiplies it by 4 or 5, so its loss rises steeply around the minimum. The
    shaded part is how far one may go until the loss is 0.01: few digits are enough for the flat
    minimum, which makes it the simpler of the two.
    """
    x = chainrule.linspace(-1, 1, 16, dtype=chainrule.float64).reshape(-1, 1)
    data = (x, (2 * x).tanh())
    nets = {"flat": two_units((0.5, 0.5)), "sharp": two_units((5.0, -4.0))}
    loss = nn.functional.mse_loss
    generator = Generator().manual_seed(0)
    moved: dict[str, list[float]] = {name: [] for name in nets}
    sharpest = {}
    for name, net in nets.items():
        center = nn.utils.parameters_to_vector(net.parameters()).detach()
        hessian = chainrule.func.hessian(_loss_of(net, data))(center)
        sharpest[name] = float(chainrule.linalg.eigvalsh(hessian)[-1])
        for _ in range(trials):
            noise = (
                0.1 * chainrule.rand(len(center), generator=generator, dtype=center.dtype) - 0.05
            )
            moved[name].append(float(_loss_of(net, data)(center + noise)))
    way = chainrule.tensor([1.0, 0, 0, 0, 0, 0, 0], dtype=chainrule.float64)
    seen = inspect.loss_line(nets, loss, data, direction=way, span=1.0, points=161)
    axes = charts.grid_of_axes(None, 2, 2, (3.4, 3.0))
    for k, (ax, (name, values)) in enumerate(zip(axes, seen.losses.items(), strict=True)):
        inside = (values <= tolerance).numpy()
        ax.plot(seen.t.numpy(), values.numpy(), color=charts.COLORS[k])
        ax.fill_between(seen.t.numpy(), 0, 0.2, where=inside, color=charts.COLORS[k], alpha=0.2)
        ax.set(
            title=f"a {name} minimum", xlabel="first weight moved by", ylabel="loss", ylim=(0, 0.2)
        )
    start = [float(loss(net(x), data[1]).detach()) for net in nets.values()]
    flat, sharp = (Spread(tuple(values)) for values in moved.values())
    bits = {name: bits_of(net, x, tolerance) for name, net in nets.items()}
    return Outcome(
        {
            "largest loss of the two networks": max(start),
            "loss of the sharp one over that of the flat one, weights moved by up to 0.05": (
                sharp.mean / flat.mean
            ),
            "curvature of the sharp one over that of the flat one, largest direction": (
                sharpest["sharp"] / sharpest["flat"]
            ),
            "bits that the flat one saves": bits["sharp"] - bits["flat"],
            "lengths of the intervals of 1.5 and 1.233": (length_of("1.5"), length_of("1.233")),
        },
        [axes],
        note=f"Weights were moved {trials} times.",
    )


def _loss_of(net: nn.Module, data: tuple[Tensor, Tensor]) -> functools.partial[Tensor]:
    """The loss as a function of all weights in a row."""
    sizes = {name: p.shape for name, p in net.named_parameters()}

    def loss(weights: Tensor) -> Tensor:
        parts = weights.split([s.numel() for s in sizes.values()])
        named = {n: p.reshape(s) for (n, s), p in zip(sizes.items(), parts, strict=True)}
        out = chainrule.func.functional_call(net, named, (data[0],))
        return nn.functional.mse_loss(out, data[1])

    return functools.partial(loss)


def units_of(net: nn.Module) -> Sketch:
    """A network as circles for its units and marks for its weights."""
    drawing = inspect.draw(net, level="units")
    if not isinstance(drawing, Sketch):
        raise TypeError(f"units_of: expected a drawing of units, got {type(drawing).__name__}")
    return drawing


@entry(
    "V44",
    course="004",
    printed="fig. 8.2, section 8.6.1",
    title="A network that grows: cascade correlation",
    claims=[
        Number("links into the first and the second hidden unit", (2, 3), tolerance=0.5),
        Number("links that are frozen and that are trained", (5, 4), tolerance=0.5),
        Statement(
            "change of the first unit's weights while the second is added",
            "incoming weights are fixed once a unit is in",
            at_most=0.0,
        ),
        Statement(
            "change of the output's weights meanwhile",
            "the connections of the output are trained anew",
            at_least=1e-3,
        ),
        Statement(
            "errors with 0, 1 and 2 units, largest ratio of one to that before",
            "units that follow the error lower it",
            at_most=0.9,
        ),
        Statement(
            "slope of the correlation by hand over that by differentiation, largest deviation",
            "eq 8.24: the sum of centered errors, slopes and activations",
            at_most=1e-6,
        ),
    ],
)
def growing(points: int = 60) -> Outcome:
    """Two inputs and one output; then unit h1 was added, and then unit h2.

    Each new unit sees the inputs and all units before it. Its incoming weights (squares)
    are trained until its activation goes along with the error that is left, and are then frozen.
    Only the links to the output (crosses) are fitted again after every unit, which is a linear
    problem. So the network grows by what it lacks, and training stays fast.
    """
    chainrule.manual_seed(0)
    x = chainrule.randn(points, 2, dtype=chainrule.float64)
    y = x[:, 0] * x[:, 1] + 0.5 * x[:, 0]
    fits = [
        regularize.cascade_correlation(
            x, y, max_units=n, patience=9, generator=Generator().manual_seed(0)
        )
        for n in (1, 2)
    ]
    one, two = (fit.model for fit in fits)
    stages = [units_of(net) for net in (one, two)]
    drawing = stages[-1]
    states = [link.state for link in drawing.links]
    losses = [step.loss for step in fits[1].steps]
    before, after = one.units[0].weight.detach(), two.units[0].weight.detach()
    outputs = (one.output.weight.detach(), two.output.weight.detach()[:, :3])
    return Outcome(
        {
            "links into the first and the second hidden unit": [
                sum(k.target == h for k in drawing.links) for h in ("h1", "h2")
            ],
            "links that are frozen and that are trained": (
                states.count("frozen"),
                states.count("trained"),
            ),
            "change of the first unit's weights while the second is added": float(
                (after - before).abs().max()
            ),
            "change of the output's weights meanwhile": float(
                (outputs[1] - outputs[0]).abs().max()
            ),
            "errors with 0, 1 and 2 units, largest ratio of one to that before": max(
                b / a for a, b in itertools.pairwise(losses)
            ),
            "slope of the correlation by hand over that by differentiation, largest deviation": (
                _slope_deviation(x, y)
            ),
        },
        stages,
    )


def _slope_deviation(x: Tensor, y: Tensor) -> float:
    """How far eq 8.24 is from the derivative of eq 8.22, for one output and a unit of tanh."""
    w = chainrule.tensor([0.3, -0.8], dtype=x.dtype).requires_grad_()
    errors = x @ optim.least_squares(x, y.reshape(-1, 1))[0][0] - y
    centered = errors - errors.mean()
    a = (x @ w).tanh()
    covariance = ((a - a.mean()) * centered).sum()
    (slope,) = chainrule.autograd.grad(covariance.abs(), w)
    by_hand = covariance.detach().sign() * ((centered * (1 - a.detach() ** 2)) @ x)
    return float((by_hand - slope).abs().max())

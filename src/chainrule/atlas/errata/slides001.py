"""The lecture slides 001, as they are printed and as it is right."""

from __future__ import annotations

import math
from math import inf

import chainrule
from chainrule import Tensor, charts, func, nn
from chainrule.atlas import Forms, Outcome, Refuted, Statement, Wrong, attempt, entry
from chainrule.atlas.course import x01_x03_line
from chainrule.nn import functional as F

DOUBLE = chainrule.float64


@entry(
    "ERR057",
    course="001",
    printed="RBF theorem",
    title="Radial basis functions need weights to approximate",
    claims=[
        Wrong("best fit to sin(x), largest error", "sum of Theta", "sum of w_i Theta", 1e-2),
    ],
)
def radial_basis(centers: int = 13) -> Outcome:
    """A sum of bumps becomes any continuous function, if each bump may have its own height.

    Without the weights w_i the sum of positive bumps is one fixed positive function; no choice of
    numbers makes it negative, where the sine is. With weights, found by least squares, the error
    over [-3, 3] is next to nothing.
    """
    x = chainrule.linspace(-3, 3, 121, dtype=DOUBLE)
    mu = chainrule.linspace(-3, 3, centers, dtype=DOUBLE)
    bumps = (-((x.unsqueeze(1) - mu) ** 2)).exp()
    target = x.sin()
    weights = chainrule.linalg.lstsq(bumps, target).solution
    plain, fitted = bumps.sum(1), bumps @ weights
    ax = charts.axes_for(None)
    ax.plot(x.numpy(), target.numpy(), color="black", label="sin(x)")
    ax.plot(x.numpy(), plain.numpy(), color=charts.COLORS[1], label="without weights")
    ax.plot(x.numpy(), fitted.numpy(), "--", color=charts.COLORS[0], label="with weights")
    ax.set(title=f"{centers} Gaussian bumps", xlabel="x", ylabel="value")
    ax.legend()
    errors = [float((f - target).abs().max()) for f in (plain, fitted)]
    return Outcome({"best fit to sin(x), largest error": Forms(errors[0], errors[1], 0.0)}, [ax])


@entry(
    "ERR058",
    course="001",
    printed="fully connected networks",
    title="A weight matrix of size N_i x N_(i-1) is not transposed",
    claims=[Wrong("output of a layer of 3 to 5", "W^T x + b", "W x + b", tolerance=1e-9)],
)
def weight_orientation() -> Outcome:
    """A layer from 3 to 5 units with one row of weights for each of the five: W x.

    The transposed matrix is 3 x 5, and a vector of 3 does not fit. ``nn.Linear`` holds W in the
    printed size and computes W x + b.
    """
    layer = nn.Linear(3, 5, dtype=DOUBLE)
    w, b = layer.weight.detach(), layer.bias.detach()
    x = chainrule.randn(3, dtype=DOUBLE)
    printed = attempt(lambda: w.T @ x + b)
    return Outcome({"output of a layer of 3 to 5": Forms(printed, w @ x + b, layer(x).detach())})


@entry(
    "ERR059",
    course="001",
    printed="Gaussian activation",
    title="The Gaussian activation reaches 1 and not 0",
    claims=[
        Refuted("value at 0", "range [0, 1): below 1", (0.0, 1 - 1e-12), "(0, 1]: 1", (1.0, 1.0)),
        Refuted("value at 20", "0 is attained", (0.0, 0.0), "it is above 0", (1e-300, 1.0)),
    ],
)
def gaussian_range() -> Outcome:
    """exp(-x^2) is 1 at 0 and positive everywhere: its range is (0, 1].

    The printed brackets are the wrong way round.
    """
    x = chainrule.tensor([0.0, 20.0], dtype=DOUBLE)
    y = nn.Gaussian()(x)
    return Outcome({"value at 0": float(y[0]), "value at 20": float(y[1])})


@entry(
    "ERR060",
    course="001",
    printed="softplus, ELU, SELU",
    title="Lower ends of ranges that are not attained",
    claims=[
        Refuted("softplus at -30", "0 is attained", (0.0, 0.0), "above 0", (1e-300, 1.0)),
        Refuted("ELU at -30, plus alpha", "attained: 0", (0.0, 0.0), "above", (1e-300, 1.0)),
        Refuted(
            "SELU at -30, plus lambda alpha", "attained: 0", (0.0, 0.0), "above", (1e-300, 1.0)
        ),
    ],
)
def open_ranges() -> Outcome:
    """The three functions come as close to their lower ends as you like, and never there.

    What is left above the end is e^x for very negative x: e^-30 = 9e-14 is what softplus is, and a
    multiple of it is what ELU and SELU have above theirs. It is computed here in float64 without
    subtracting, which would round it away.
    """
    x = chainrule.tensor(-30.0, dtype=DOUBLE)
    scale, alpha = nn.activations.functions.SELU_SCALE, nn.activations.functions.SELU_ALPHA
    # Both are their slope there: d/dx alpha (e^x - 1) = alpha e^x, what is left above the end.
    elu = func.grad(lambda x: F.elu(x))(x)
    selu = func.grad(lambda x: F.selu(x))(x)
    shown = math.isclose(float(selu), scale * alpha * math.exp(-30), rel_tol=1e-9)
    return Outcome(
        {
            "softplus at -30": float(F.softplus(x)),
            "ELU at -30, plus alpha": float(elu),
            "SELU at -30, plus lambda alpha": float(selu) if shown else math.nan,
        }
    )


@entry(
    "ERR061",
    course="001",
    printed="Soboleva tanh",
    title="When the modified tanh is bounded",
    claims=[
        Refuted(
            "value for a = 2, b = c = d = 1 at x = 5",
            "range (-1, 1) for any a, b, c, d",
            (-1.0, 1.0),
            "unbounded unless a <= c and b <= d",
            (100.0, inf),
        ),
        Statement("largest size for a = 0.5, b = 1, c = d = 1", "bounded then", at_most=1.0),
    ],
)
def soboleva() -> Outcome:
    """(e^ax - e^-bx) / (e^cx + e^-dx): for large x it goes like e^((a - c) x).

    With a > c it grows without end: 148 at x = 5. It is bounded if the numerator does not outgrow
    the denominator on either side.
    """
    x = chainrule.linspace(-6, 6, 241, dtype=DOUBLE)
    at = chainrule.tensor(5.0, dtype=DOUBLE)
    tame = F.soboleva_tanh(x, 0.5, 1.0, 1.0, 1.0)
    wild = F.soboleva_tanh(x, 2.0, 1.0, 1.0, 1.0)
    ax = charts.axes_for(None)
    ax.plot(x.numpy(), wild.numpy(), color=charts.COLORS[1], label="a = 2, c = 1")
    ax.plot(x.numpy(), tame.numpy(), color=charts.COLORS[0], label="a = 0.5, c = 1")
    ax.set(title="Soboleva's modified tanh", xlabel="x", ylabel="value", ylim=(-2, 6))
    ax.legend()
    return Outcome(
        {
            "value for a = 2, b = c = d = 1 at x = 5": float(
                F.soboleva_tanh(at, 2.0, 1.0, 1.0, 1.0)
            ),
            "largest size for a = 0.5, b = 1, c = d = 1": float(tame.abs().max()),
        },
        [ax],
    )


@entry(
    "ERR062",
    course="001",
    printed="modelling example",
    title="A delta is the slope at a sum, not at an input",
    claims=[Wrong("dphi/dw_2 through delta_2", "delta_2 = dphi/dx", "delta_2 = dphi/dz_2", 1e-9)],
)
def delta_of_a_layer() -> Outcome:
    """delta_2 is how the loss changes with the sum z_2 of the second layer.

    The gradient of its weights is delta_2 times the outputs of the layer below. The slope at the
    input x has gone through one more layer and has another size, so the product means nothing.
    """
    w1, w2 = chainrule.randn(4, 3, dtype=DOUBLE), chainrule.randn(2, 4, dtype=DOUBLE)
    x = chainrule.randn(3, dtype=DOUBLE)

    def phi(x: Tensor, w2: Tensor) -> Tensor:
        return (w2 @ (w1 @ x).tanh()).tanh().square().sum()

    h = (w1 @ x).tanh()
    truth = func.grad(lambda w: phi(x, w))(w2)
    of_input = func.grad(lambda x: phi(x, w2))(x)
    of_sum = func.grad(lambda z: z.tanh().square().sum())(w2 @ h)
    forms = Forms(chainrule.outer(of_input, h), chainrule.outer(of_sum, h), truth)
    return Outcome({"dphi/dw_2 through delta_2": forms})


@entry(
    "ERR063",
    course="001",
    printed="algorithms 1-3",
    title="Parameters are initialized once, and each iteration has its own batch",
    claims=[
        Refuted(
            "distance from (2, 3) as printed",
            "it descends to the line",
            (0.0, 0.1),
            "it starts again and again",
            (1.0, inf),
        ),
        Statement("distance from (2, 3), mended", "it finds the line", at_most=0.3),
    ],
)
def initialized_once(steps: int = 1000) -> Outcome:
    """Stochastic descent on thirty points of a line, from (10, 5).

    As printed, the parameters are set to the start inside the loop, and all iterations stay inside
    one batch: what is left at the end is one step from the start. Mended, the start comes before
    the loop and each iteration draws a point anew.
    """
    generator = chainrule.Generator().manual_seed(0)
    x, y = x01_x03_line.data(-1.0, 1.0, 1, generator)
    index = chainrule.randint(0, 30, (steps, 1), generator=generator)
    mended = x01_x03_line.descend(x, y, index, 0.0, False)[:, 0]
    again = x01_x03_line.descend(x, y, index[-1:], 0.0, False)[:, 0]
    goal = chainrule.tensor([2.0, 3.0], dtype=x.dtype)
    return Outcome(
        {
            "distance from (2, 3) as printed": float((again - goal).norm()),
            "distance from (2, 3), mended": float((mended - goal).norm()),
        }
    )


@entry(
    "ERR064",
    course="001",
    printed="ZCA whitening",
    title="The factor of the whitening matrix",
    claims=[
        Wrong(
            "covariance of whitened data",
            "(X X^T)^(-1/2) / sqrt(n - 1)",
            "sqrt(n - 1) (X X^T)^(-1/2)",
            tolerance=1e-9,
        )
    ],
)
def zca() -> Outcome:
    """Whitened data have the covariance 1: no direction is longer than another.

    The covariance of centered data is X X^T / (n - 1), so its inverse root has sqrt(n - 1) in front
    and not below. As printed the covariance is 4e-6: the data are shrunk to a point.
    """
    n = 500
    mix = chainrule.tensor([[2.0, 0.0], [1.5, 0.5]], dtype=DOUBLE)
    x = mix @ chainrule.randn(2, n, dtype=DOUBLE)
    x = x - x.mean(1, keepdim=True)
    values, vectors = chainrule.linalg.eigh(x @ x.T)
    root = vectors @ chainrule.diag(values**-0.5) @ vectors.T

    def covariance(factor: float) -> Tensor:
        return (factor * root @ x).cov()

    white = math.sqrt(n - 1) * root @ x
    axes = charts.grid_of_axes(None, 2, 2)
    for ax, (name, points) in zip(axes, {"data": x, "whitened": white}.items(), strict=True):
        ax.plot(*points.numpy(), ".", color=charts.COLORS[0], markersize=3)
        ax.set(title=name, xlabel="x1", ylabel="x2", xlim=(-7, 7), ylim=(-7, 7))
    eye = chainrule.eye(2, dtype=DOUBLE)
    factors = 1 / math.sqrt(n - 1), math.sqrt(n - 1)
    forms = Forms(covariance(factors[0]), covariance(factors[1]), eye)
    return Outcome({"covariance of whitened data": forms}, [axes])


@entry(
    "ERR065",
    course="001",
    printed="He initialization",
    title="He's variance with one fan, not with both",
    claims=[
        Wrong(
            "variance of He's weights, 100 to 25 units",
            "2 / fan_out, then drawn with fan_in",
            "2 / fan_in throughout",
            tolerance=0.002,
        ),
        Statement("second moment behind ten ReLU layers", "it is kept", at_least=0.3, at_most=3),
    ],
)
def he_fan() -> Outcome:
    """Keeping the size of signals forward needs 2 / fan_in, of gradients backward 2 / fan_out.

    Either is consistent; the slide announces one and draws with the other. The library's default
    draws with fan_in, and signals keep their size through ten layers.
    """
    w = nn.init.kaiming_normal_(chainrule.empty(25, 100, dtype=DOUBLE), nonlinearity="relu")
    many = chainrule.stack(
        [nn.init.kaiming_normal_(chainrule.empty_like(w), nonlinearity="relu") for _ in range(40)]
    )
    h = chainrule.randn(200, 100, dtype=DOUBLE)
    for _ in range(10):
        layer = nn.init.kaiming_normal_(
            chainrule.empty(100, 100, dtype=DOUBLE), nonlinearity="relu"
        )
        h = (h @ layer.T).relu()
    forms = Forms(2 / 25, 2 / 100, float(many.var()))
    return Outcome(
        {
            "variance of He's weights, 100 to 25 units": forms,
            "second moment behind ten ReLU layers": float((h * h).mean()),
        }
    )


@entry(
    "ERR066",
    course="001",
    printed="normal notation",
    title="What the second number of N(0, s) is",
    claims=[
        Wrong(
            "deviation of LeCun's weights, fan_in 4",
            "N(0, 1/4) with the number as deviation",
            "as variance: 1/2",
            tolerance=0.02,
        )
    ],
    full={"draws": 1_000_000},
)
def normal_notation(draws: int = 20_000) -> Outcome:
    """On some slides the second number is the deviation, on one the variance.

    For LeCun's start with four inputs it is the difference between 0.25 and 0.5. What is meant can
    be found: sums of four weighted inputs of variance 1 keep the variance 1 with 0.5 alone.
    """
    x = chainrule.randn(draws, 4, dtype=DOUBLE)

    def kept(deviation: float) -> float:
        w = deviation * chainrule.randn(draws, 4, dtype=DOUBLE)
        return float((w * x).sum(1).var())

    grid = [k / 100 for k in range(5, 100, 5)]
    truth = min(grid, key=lambda s: abs(kept(s) - 1))
    return Outcome({"deviation of LeCun's weights, fan_in 4": Forms(0.25, 0.5, truth)})


@entry(
    "ERR067",
    course="001",
    printed="second-order methods",
    title="Conjugate gradients search along conjugate directions",
    claims=[
        Refuted(
            "error after two line searches on a bowl of condition 50",
            "along the gradients: at the minimum",
            (0.0, 1e-9),
            "not at the minimum",
            (1e-3, inf),
        ),
        Statement("error after two conjugate directions", "exact after n steps", at_most=1e-9),
        Statement("d_0 . H d_1 of the two directions", "conjugate", at_least=-1e-9, at_most=1e-9),
    ],
)
def conjugate_gradients() -> Outcome:
    """On a bowl of n dimensions conjugate gradients need n line searches, and gradients many more.

    The second direction is bent so that it does not undo the first: d_0 . H d_1 = 0. With the raw
    gradient instead, as printed, the path zigzags.
    """
    hessian = chainrule.tensor([[50.0, 3.0], [3.0, 1.0]], dtype=DOUBLE)

    def run(conjugate: bool) -> tuple[list[list[float]], list[Tensor]]:
        x = chainrule.tensor([0.5, 4.0], dtype=DOUBLE)
        g = hessian @ x
        d, path, directions = -g, [x.tolist()], []
        for _ in range(2):
            alpha = -(g @ d) / (d @ hessian @ d)
            x = x + alpha * d
            directions.append(d)
            last, g = g, hessian @ x
            d = -g + (g @ g) / (last @ last) * d if conjugate else -g
            path.append(x.tolist())
        return path, directions

    plain, _ = run(False)
    bent, (first, second) = run(True)
    ax = charts.axes_for(None)
    for k, (name, path) in enumerate((("conjugate", bent), ("gradients", plain))):
        ax.plot(*zip(*path, strict=True), "o-", color=charts.COLORS[k], label=name)
    ax.plot(0, 0, "k*", markersize=12, label="minimum")
    ax.set(title="Two line searches", xlabel="x1", ylabel="x2")
    ax.legend()
    return Outcome(
        {
            "error after two line searches on a bowl of condition 50": math.hypot(*plain[-1]),
            "error after two conjugate directions": math.hypot(*bent[-1]),
            "d_0 . H d_1 of the two directions": float(first @ hessian @ second)
            / float(first @ first),
        },
        [ax],
    )

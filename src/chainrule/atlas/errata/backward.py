"""Back-propagation and initialization of course 000, as they are printed and as they are."""

from __future__ import annotations

import math

import chainrule
from chainrule import Tensor, charts, func, nn
from chainrule.atlas import Forms, Outcome, Refuted, Unchecked, Wrong, entry


@entry(
    "ERR038",
    course="000",
    printed="eq 90; 003",
    title="The Jacobian of softmax has no prime in it",
    claims=[
        Wrong(
            "Jacobian of softmax",
            "sigma'_c' (delta_cc' - sigma_c)",
            "sigma_c' (delta_cc' - sigma_c)",
            tolerance=1e-9,
        )
    ],
)
def softmax_jacobian() -> Outcome:
    """d softmax_c / d a_c' = sigma_c' (delta_cc' - sigma_c): values of softmax, no slopes.

    With a prime, read as the slope sigma (1 - sigma) of one output, the product is too small by
    1 - sigma, in every entry.
    """
    a = chainrule.tensor([0.5, -1.0, 2.0], dtype=chainrule.float64)
    truth = func.jacrev(lambda a: a.softmax(0))(a)
    s, eye = a.softmax(0), chainrule.eye(3, dtype=chainrule.float64)

    def product(factor: Tensor) -> Tensor:
        return factor.reshape(1, -1) * (eye - s.reshape(-1, 1))

    return Outcome({"Jacobian of softmax": Forms(product(s * (1 - s)), product(s), truth)})


@entry(
    "ERR039",
    course="000",
    printed="eq 107; 003",
    title="The chain of derivatives begins with the loss",
    claims=[
        Wrong("dl/dw_1 of a chain of three units", "dg_o/da_o ...", "dl/dh dg_o/da_o ...", 1e-9)
    ],
)
def chain_of_derivatives() -> Outcome:
    """How the loss changes with an early weight: through every unit behind it, and the loss itself.

    The printed product of slopes and weights starts at the output unit. Without the slope of the
    loss it is how the output changes, whatever the target was.
    """
    x, y = 0.7, 2.0
    w = chainrule.tensor([0.8, -1.2, 0.5], dtype=chainrule.float64)

    def forward(w: Tensor) -> list[Tensor]:
        h = [chainrule.tensor(x, dtype=chainrule.float64)]
        for k in range(3):
            h.append((w[k] * h[-1]).tanh())
        return h

    truth = func.grad(lambda w: 0.5 * (forward(w)[-1] - y) ** 2)(w)[0]
    h = [float(v) for v in forward(w)]
    slopes = [1 - v * v for v in h[1:]]
    chain = slopes[2] * float(w[2]) * slopes[1] * float(w[1]) * slopes[0] * x
    forms = Forms(chain, (h[-1] - y) * chain, float(truth))
    return Outcome({"dl/dw_1 of a chain of three units": forms})


@entry(
    "ERR040",
    course="000",
    printed="section 4.2",
    title="A limited range does not mean a slope of compact support",
    claims=[
        Refuted(
            "slope of the sigmoid at 10, 20 and 30",
            "0 outside of an interval",
            (0.0, 0.0),
            "it decays and is positive everywhere",
            (1e-300, 0.25),
        )
    ],
)
def support_of_the_slope() -> Outcome:
    """The slope of a sigmoid falls like e^-|a|, and is 0 nowhere.

    A function may be bounded although its slope never vanishes: the slopes only have to have a
    finite sum. In float32 the slope is rounded to 0 beyond a = 17, which is why it looks so.
    """
    a = chainrule.tensor([10.0, 20.0, 30.0], dtype=chainrule.float64, requires_grad=True)
    (slopes,) = chainrule.autograd.grad(a.sigmoid().sum(), a)
    ax = charts.axes_for(None)
    grid = chainrule.linspace(-30, 30, 241, dtype=chainrule.float64)
    ax.semilogy(grid.numpy(), (grid.sigmoid() * (-grid).sigmoid()).numpy(), color=charts.COLORS[0])
    ax.set(title="The slope of the sigmoid", xlabel="a", ylabel="slope")
    return Outcome({"slope of the sigmoid at 10, 20 and 30": slopes}, [ax])


@entry(
    "ERR041",
    course="000",
    printed="eq 117; 003",
    title="The power in the variance of a deep network is the depth",
    claims=[
        Wrong(
            "variance of unit 5 of the first layer, u = 100, Var W = 1/200",
            "(u Var W)^i, i the unit",
            "u Var(W) Var(h)",
            tolerance=0.15,
        ),
        Wrong(
            "variance after five linear layers",
            "u Var W, once",
            "(u Var W)^depth",
            tolerance=0.01,
        ),
    ],
    full={"nets": 4000},
)
def variance_through_layers(nets: int = 300, width: int = 100) -> Outcome:
    """One linear layer multiplies the variance by u Var(W), whichever unit is looked at.

    The factor comes to a power when layers are chained, and the power is their number. Here all
    of it is drawn at random: the fifth unit of a first layer, and what is left after five layers.
    """
    factor = 0.5
    deviation = math.sqrt(factor / width)
    h = chainrule.randn(nets, width, dtype=chainrule.float64)
    first, variances = 0.0, [1.0]
    for layer in range(5):
        w = deviation * chainrule.randn(nets, width, width, dtype=chainrule.float64)
        h = (w @ h.unsqueeze(2)).squeeze(2)
        variances.append(float((h * h).mean()))
        if layer == 0:
            first = float((h[:, 4] ** 2).mean())
    ax = charts.axes_for(None)
    ax.semilogy(variances, "o", color=charts.COLORS[0], label=f"measured, {nets} networks")
    ax.semilogy([factor**k for k in range(6)], color=charts.COLORS[1], label="(u Var W)^depth")
    ax.set(title="Variance of activations", xlabel="layer", ylabel="variance")
    ax.legend()
    return Outcome(
        {
            "variance of unit 5 of the first layer, u = 100, Var W = 1/200": Forms(
                factor**5, factor * 1.0, first
            ),
            "variance after five linear layers": Forms(factor, factor**5, variances[-1]),
        },
        [ax],
    )


@entry(
    "ERR042",
    course="000",
    printed="section 4.2.1, eq 119",
    title="Glorot's formula is a variance",
    claims=[
        Wrong(
            "standard deviation of xavier_normal_, fans 100 and 100",
            "2 / (fan_in + fan_out)",
            "its square root",
            tolerance=0.002,
        )
    ],
)
def glorot_variance(size: int = 100) -> Outcome:
    """2 / (fan_in + fan_out) is the variance of the weights; their deviation is its root.

    For a layer of 100 to 100 the variance is 0.01 and the deviation 0.1. Taken for a deviation the
    formula gives weights that are ten times too small, and signals that die in a few layers.
    """
    weights = nn.init.xavier_normal_(chainrule.empty(size, size))
    variance = 2 / (size + size)
    truth = float(weights.std())
    ax = charts.axes_for(None)
    ax.hist(weights.flatten().numpy(), 50, density=True, color=charts.COLORS[0])
    grid = chainrule.linspace(-0.4, 0.4, 201)
    density = (-(grid**2) / (2 * variance)).exp() / math.sqrt(2 * math.pi * variance)
    ax.plot(
        grid.numpy(), density.numpy(), color=charts.COLORS[1], label="N(0, 0.01), deviation 0.1"
    )
    ax.set(title="Weights of xavier_normal_, 100 to 100", xlabel="weight", ylabel="density")
    ax.legend()
    forms = Forms(variance, math.sqrt(variance), truth)
    return Outcome({"standard deviation of xavier_normal_, fans 100 and 100": forms}, [ax])


@entry(
    "ERR046",
    course="000",
    printed="reference [ROS57]; 003",
    title="Who wrote of the perceptron",
    claims=[
        Unchecked(
            "author of the perceptron",
            "Murray Rosenblatt, 'Some purely deterministic processes'",
            "a reference is not computed: the author is Frank Rosenblatt, as 004 has it",
        ),
    ],
)
def perceptron() -> Outcome:
    """The perceptron is Frank Rosenblatt's; the work that is cited is by another Rosenblatt.

    No number decides who wrote a paper. What the perceptron does can be computed: its rule adds
    the input to the weights at each mistake, and on OR, which a line separates, it stops making
    mistakes after a few passes.
    """
    x = chainrule.tensor([[0.0, 0, 1], [0, 1, 1], [1, 0, 1], [1, 1, 1]])
    y = chainrule.tensor([-1.0, 1, 1, 1])
    w = chainrule.zeros(3)
    history = []
    for _ in range(10):
        mistakes = 0
        for x_n, y_n in zip(x, y, strict=True):
            if float(y_n * w.dot(x_n)) <= 0:
                w = w + y_n * x_n
                mistakes += 1
        history.append(mistakes)
    ax = charts.axes_for(None)
    ax.plot(range(1, 11), history, "o-", color=charts.COLORS[0])
    ax.set(title="A perceptron learns OR", xlabel="pass", ylabel="mistakes")
    return Outcome({}, [ax])

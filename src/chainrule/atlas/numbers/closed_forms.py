"""Numbers of activations, initializers, entropies and small networks, each from its definition."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import chainrule
from chainrule import Tensor, charts, func, information, inspect, models, nn, problems
from chainrule.atlas import Number, Outcome, Statement, entry
from chainrule.nn import functional as F
from chainrule.nn.activations import moments

DOUBLE = chainrule.float64
Function: TypeAlias = Callable[[Tensor], Tensor]


def curve(title: str, function: Function, low: float, high: float) -> Any:
    """A function as a line."""
    x = chainrule.linspace(low, high, 201, dtype=DOUBLE)
    ax = charts.axes_for(None)
    ax.plot(x.numpy(), function(x).numpy(), color=charts.COLORS[0])
    ax.set(title=title, xlabel="x", ylabel="value")
    return ax


def lowest(function: Function, low: float, high: float) -> tuple[float, float]:
    """Place and value of the minimum on an interval, by Newton's method from a grid."""
    grid = chainrule.linspace(low, high, 1001, dtype=DOUBLE)
    x = grid[function(grid).argmin()]
    slope = func.grad(function)
    for _ in range(10):
        x = x - slope(x) / func.grad(slope)(x)
    return float(x), float(function(x))


@entry(
    "A05",
    course="001",
    printed="initialization of Y. LeCun",
    title="LeCun's scaled tanh maps 1 to 1",
    claims=[Number("1.7159 tanh(2/3)", 1.0, tolerance=1e-5)],
)
def lecun_tanh() -> Outcome:
    """1.7159 tanh(2 x / 3) is chosen so that targets of -1 and 1 lie where the slope is steep.

    It maps 1 to 0.999997: units whose inputs have variance 1 have outputs of about variance 1.
    """
    one = chainrule.tensor(1.0, dtype=DOUBLE)
    ax = curve("1.7159 tanh(2 x / 3)", F.lecun_tanh, -3, 3)
    return Outcome({"1.7159 tanh(2/3)": float(F.lecun_tanh(one))}, [ax])


@entry(
    "A11",
    course="004",
    printed="eq 10.19; 000 eq 11",
    title="The constants of SELU",
    claims=[
        Number("alpha", 1.6733, tolerance=5e-5),
        Number("lambda", 1.0507, tolerance=5e-5),
        Number("lower bound", -1.7581, tolerance=5e-5, unprinted="-s alpha"),
        Statement("mean and variance - 1 behind SELU", "(0, 1) is fixed", -1e-12, 1e-12),
    ],
)
def selu_constants() -> Outcome:
    """Two equations, mean 0 and variance 1 of SELU(Z) for a standard normal Z, fix two constants.

    They are put into the integrals again here, and both equations hold to the last digits.
    """
    mean = moments.gaussian_expectation(F.selu)
    square = moments.gaussian_expectation(lambda s: F.selu(s) ** 2)
    low = float(F.selu(chainrule.tensor(-60.0, dtype=DOUBLE)))
    return Outcome(
        {
            "alpha": nn.activations.functions.SELU_ALPHA,
            "lambda": nn.activations.functions.SELU_SCALE,
            "lower bound": low,
            "mean and variance - 1 behind SELU": (mean, square - mean**2 - 1),
        },
        [curve("SELU", F.selu, -4, 3)],
    )


@entry(
    "A12",
    course="001",
    printed="GELU",
    title="The lowest value of GELU",
    claims=[
        Number("minimum", -0.17, tolerance=5e-3),
        Number("its place", -0.7518, tolerance=5e-5, unprinted="where the slope is 0"),
    ],
)
def gelu() -> Outcome:
    """x Phi(x) dips below 0 before it rises: -0.17 at -0.75. It is not monotonic."""
    place, value = lowest(F.gelu, -2, 0)
    return Outcome({"minimum": value, "its place": place}, [curve("GELU", F.gelu, -4, 3)])


@entry(
    "A13",
    course="001",
    printed="SiLU",
    title="The lowest value of SiLU",
    claims=[
        Number("minimum", -0.278, tolerance=5e-4),
        Number("its place", -1.27846, tolerance=5e-6, unprinted="where the slope is 0"),
    ],
)
def silu() -> Outcome:
    """x sigma(x) is lowest at -1.278, and its value there is x + 1: -0.278."""
    place, value = lowest(F.silu, -3, 0)
    return Outcome({"minimum": value, "its place": place}, [curve("SiLU", F.silu, -6, 4)])


@entry(
    "I08",
    course="000",
    printed="eq 119",
    title="Glorot's deviation and bound",
    claims=[
        Number("deviation for fans 100 and 100", 0.1, tolerance=0.002),
        Number("bound of the uniform form", 0.1732, tolerance=2e-4, unprinted="sqrt(6 / 200)"),
    ],
)
def glorot() -> Outcome:
    """A variance between what the forward and the backward pass need: 2 / (fan_in + fan_out).

    A uniform law of the same variance reaches to its deviation times the root of 3.
    """
    drawn = nn.init.xavier_normal_(chainrule.empty(100, 100, dtype=DOUBLE))
    even = nn.init.xavier_uniform_(chainrule.empty(100, 100, dtype=DOUBLE))
    axes = charts.grid_of_axes(None, 2, 2)
    for ax, (name, values) in zip(axes, {"normal": drawn, "uniform": even}.items(), strict=True):
        ax.hist(values.flatten().numpy(), 40, color=charts.COLORS[0])
        ax.set(title=name, xlabel="weight", ylabel="count", xlim=(-0.4, 0.4))
    return Outcome(
        {
            "deviation for fans 100 and 100": float(drawn.std()),
            "bound of the uniform form": float(even.abs().max()),
        },
        [axes],
    )


@entry(
    "I09",
    course="000",
    printed="eq 120",
    title="He's deviation and bound",
    claims=[
        Number("deviation for fan 100", 0.1414, tolerance=0.003, unprinted="sqrt(2 / 100)"),
        Number("bound of the uniform form", 0.2449, tolerance=3e-4, unprinted="sqrt(6 / 100)"),
    ],
)
def he() -> Outcome:
    """ReLU sets half of its inputs to 0, so the variance of the weights is doubled: 2 / fan_in."""
    drawn = nn.init.kaiming_normal_(chainrule.empty(100, 100, dtype=DOUBLE), nonlinearity="relu")
    even = nn.init.kaiming_uniform_(chainrule.empty(100, 100, dtype=DOUBLE), nonlinearity="relu")
    axes = charts.grid_of_axes(None, 2, 2)
    for ax, (name, values) in zip(axes, {"normal": drawn, "uniform": even}.items(), strict=True):
        ax.hist(values.flatten().numpy(), 40, color=charts.COLORS[0])
        ax.set(title=name, xlabel="weight", ylabel="count", xlim=(-0.6, 0.6))
    return Outcome(
        {
            "deviation for fan 100": float(drawn.std()),
            "bound of the uniform form": float(even.abs().max()),
        },
        [axes],
    )


@entry(
    "I10",
    course="004",
    printed="eq 9.13",
    title="The gain of an activation",
    claims=[
        Number("ReLU", 2.0, tolerance=1e-9),
        Number("SELU", 1.0, tolerance=1e-9),
        Statement("tanh for sums of variance 0.0001", "1, where it is a line", 0.999, 1.001),
    ],
)
def gains() -> Outcome:
    """How much larger the variance of the weights has to be to make up for an activation.

    It is the variance that goes in over the second moment that comes out. For tanh it is 1 where
    sums are small, and grows with them.
    """

    def gain(function: Function, variance: float = 1.0) -> float:
        return variance / moments.gaussian_expectation(
            lambda s: function(s) ** 2,
            0.0,
            variance,
        )

    variances = [10 ** (k / 4) for k in range(-16, 5)]
    ax = charts.axes_for(None)
    named: dict[str, Function] = {"tanh": chainrule.tanh, "ReLU": F.relu, "SELU": F.selu}
    for k, (name, function) in enumerate(named.items()):
        found = [gain(function, v) for v in variances]
        ax.semilogx(variances, found, color=charts.COLORS[k], label=name)
    ax.set(title="Gain", xlabel="variance of the sums", ylabel="gain")
    ax.minorticks_off()
    ax.legend()
    return Outcome(
        {
            "ReLU": gain(F.relu),
            "SELU": gain(F.selu),
            "tanh for sums of variance 0.0001": gain(chainrule.tanh, 1e-4),
        },
        [ax],
    )


@entry(
    "H05",
    course="003",
    printed="differential entropy",
    title="The entropy of the standard normal",
    claims=[Number("entropy of N(0, 1) in nats", 1.418938533204673, tolerance=1e-12)],
)
def normal_entropy() -> Outcome:
    """-E ln p of a density, by quadrature: 1.4189 nats for the standard normal."""

    def term(x: Tensor) -> Tensor:
        log = -0.5 * x * x - 0.5 * math.log(2 * math.pi)
        return -log.exp() * log

    found = float(information.integrate(term, -12.0, 12.0))
    ax = curve("-p ln p of the standard normal", term, -5, 5)
    return Outcome({"entropy of N(0, 1) in nats": found}, [ax])


@entry(
    "M13",
    course="004",
    printed="eq 4.41",
    title="XOR by hand",
    claims=[Number("outputs for 00, 01, 10, 11", (0, 1, 1, 0), tolerance=1e-9)],
)
def xor_by_hand() -> Outcome:
    """Two ReLU units and three numbers solve what no line can.

    Both units add the inputs, one of them less 1; the first counts ones, the second those beyond
    one, and twice the second is taken off.
    """
    x = chainrule.tensor([[0.0, 0], [0, 1], [1, 0], [1, 1]])
    net = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 1))
    net.load_state_dict(
        {
            "0.weight": chainrule.ones(2, 2),
            "0.bias": chainrule.tensor([0.0, -1.0]),
            "2.weight": chainrule.tensor([[1.0, -2.0]]),
            "2.bias": chainrule.zeros(1),
        }
    )
    grid = chainrule.linspace(-0.5, 1.5, 81)
    a, b = chainrule.meshgrid(grid, grid, indexing="xy")
    values = net(chainrule.stack([a, b], -1)).detach()[..., 0]
    ax = charts.axes_for(None, (5.4, 4.2))
    drawn = ax.contourf(a.numpy(), b.numpy(), values.numpy(), 20, cmap=charts.SEQUENTIAL)
    charts.add_colorbar(ax, drawn, "output")
    ax.plot(*x.T.numpy(), "o", color="white", markeredgecolor="black")
    ax.set(title="w . max(0, W x + b)", xlabel="x1", ylabel="x2")
    return Outcome({"outputs for 00, 01, 10, 11": net(x).flatten()}, [ax])


@entry(
    "M21",
    course="000",
    printed="example 6",
    title="The parameters of the classifier of CIFAR-10",
    claims=[Number("parameters", 62_006, tolerance=0.5, unprinted="counted by hand")],
)
def cifar_net() -> Outcome:
    """Two convolutions of 5 by 5 and three dense layers: 62,006 numbers to learn."""
    net = models.CifarNet()
    drawn = inspect.draw(net, chainrule.zeros(1, 3, 32, 32))
    return Outcome({"parameters": sum(p.numel() for p in net.parameters())}, [drawn])


@entry(
    "M37",
    course="000",
    printed="example 8",
    title="An LSTM has four times the parameters of an RNN",
    claims=[
        Number(
            "parameters of both for 10 inputs, 20 units",
            (2560, 640),
            tolerance=0.5,
            unprinted="counted by hand",
        )
    ],
)
def lstm_size() -> Outcome:
    """Three gates and a candidate: four sums where a plain recurrent layer has one."""
    sizes = [sum(p.numel() for p in kind(10, 20).parameters()) for kind in (nn.LSTM, nn.RNN)]
    drawn = inspect.wiring(nn.LSTM(10, 20))
    return Outcome({"parameters of both for 10 inputs, 20 units": sizes}, [drawn])


@entry(
    "T11",
    course="000",
    printed="eq 19",
    title="The peak of the radial target",
    claims=[Number("value at 0 for R = 0.2, d = 2", 0.12566, tolerance=5e-6, unprinted="pi R^2")],
)
def radial_peak() -> Outcome:
    """The transform of a disc is its area at 0: pi R^2 = 0.12566."""
    zero = chainrule.zeros(1, 2, dtype=DOUBLE)

    def along(r: Tensor) -> Tensor:
        return problems.radial_function(chainrule.stack([r, 0 * r], -1))

    ax = curve("The radial target", along, 0, 10)
    return Outcome({"value at 0 for R = 0.2, d = 2": float(problems.radial_function(zero))}, [ax])

"""Chapters 9, 10 and the appendix of the notes 004, as they are printed and as it is right."""

from __future__ import annotations

import math
from math import inf

import chainrule
from chainrule import Tensor, charts, func, nn
from chainrule.atlas import Forms, Number, Outcome, Refuted, Statement, Wrong, entry
from chainrule.nn import functional as F
from chainrule.nn.activations import moments

DOUBLE = chainrule.float64


def normal(*size: int) -> Tensor:
    """Numbers of the seed of the entry."""
    return chainrule.randn(*size, dtype=DOUBLE)


@entry(
    "ERR128",
    course="004",
    printed="section 9.1.1",
    title="Deltas come from the layer above",
    claims=[Wrong("delta of a hidden layer", "sum of delta_i[l]", "sum of delta_i[l+1]", 1e-9)],
)
def deltas() -> Outcome:
    """delta[l] is computed from delta[l+1], which is known already when one goes back.

    With delta[l] on both sides the equation would have to be solved, and with any start it is not
    the gradient.
    """
    w, s = normal(3, 3), normal(3)
    slope = 1 - s.tanh() ** 2
    above = func.grad(lambda z: z.tanh().square().sum())(w @ s.tanh())
    truth = func.grad(lambda s: (w @ s.tanh()).tanh().square().sum())(s)
    guess = chainrule.ones(3, dtype=DOUBLE)
    return Outcome(
        {"delta of a hidden layer": Forms(slope * (w.T @ guess), slope * (w.T @ above), truth)}
    )


@entry(
    "ERR129",
    course="004",
    printed="section 9.1.2",
    title="The variance of a truncated normal",
    claims=[
        Wrong(
            "variance of N(0, 1) cut at 2",
            "0.8796",
            "0.7737; 0.8796 is the deviation",
            tolerance=5e-3,
        )
    ],
    full={"draws": 4_000_000},
)
def truncated_variance(draws: int = 200_000) -> Outcome:
    """Cutting the tails off at two deviations takes a quarter of the variance away.

    0.8796 is the standard deviation of what is left; its square, 0.7737, is the variance. The truth
    is what the library's initializer draws.
    """
    weights = nn.init.trunc_normal_(chainrule.empty(draws, dtype=DOUBLE), 0.0, 1.0, -2.0, 2.0)
    density = math.exp(-2.0) / math.sqrt(2 * math.pi)
    inside = math.erf(2 / math.sqrt(2))
    right = 1 - 2 * 2 * density / inside
    ax = charts.axes_for(None)
    ax.hist(weights.numpy(), 60, density=True, color=charts.COLORS[0])
    ax.set(title=f"Cut at 2: variance {right:.4f}", xlabel="weight", ylabel="density")
    forms = Forms(math.sqrt(right), right, float(weights.var()))
    return Outcome({"variance of N(0, 1) cut at 2": forms}, [ax])


@entry(
    "ERR130",
    course="004",
    printed="section 9.2, footnote",
    title="The second moment is of X squared",
    claims=[Wrong("sigma^2 + mu^2 of N(2, 3^2)", "E[X]", "E[X^2]", tolerance=0.3)],
    full={"draws": 4_000_000},
)
def second_moment(draws: int = 200_000) -> Outcome:
    """E[X] is mu; variance plus squared mean is E[X^2]. (A reference to 9.6 means 9.4.)"""
    x = 2 + 3 * normal(draws)
    forms = Forms(float(x.mean()), float((x * x).mean()), 3.0**2 + 2.0**2)
    return Outcome({"sigma^2 + mu^2 of N(2, 3^2)": forms})


@entry(
    "ERR131",
    course="004",
    printed="section 9.3.2",
    title="The gain of tanh",
    claims=[
        Wrong("1 / E[tanh(Z)^2]", "g = 1 (tanh as a line)", "2.536", tolerance=5e-4),
        Number(
            "PyTorch's gain, squared for the variance", 2.78, tolerance=5e-3, unprinted="(5/3)^2"
        ),
    ],
)
def gain_of_tanh() -> Outcome:
    """The gain makes up for what an activation takes off the variance.

    1 is what a line needs, and tanh is a line for tiny sums alone. For sums of variance 1 the exact
    factor is 2.536; PyTorch uses (5/3)^2 = 2.78, and puts its root on the deviation.
    """
    variance = moments.gaussian_expectation(lambda s: s.tanh() ** 2)
    return Outcome(
        {
            "1 / E[tanh(Z)^2]": Forms(1.0, 2.536, 1 / variance),
            "PyTorch's gain, squared for the variance": nn.init.calculate_gain("tanh") ** 2,
        }
    )


@entry(
    "ERR132",
    course="004",
    printed="eq 10.1",
    title="Indices of an update",
    claims=[
        Wrong("dL/dW of a layer of 3 to 2", "a_i delta_j", "delta_i a_j (as 4.51)", tolerance=1e-9)
    ],
)
def update_indices() -> Outcome:
    """w_ij leads from unit j to unit i: its gradient is the delta of i and the activation of j."""
    w, a, v = normal(2, 3), normal(3), normal(2)
    truth = func.grad(lambda w: v.dot(w @ a))(w)
    forms = Forms(chainrule.outer(a, v), chainrule.outer(v, a), truth)
    return Outcome({"dL/dW of a layer of 3 to 2": forms})


@entry(
    "ERR133",
    course="004",
    printed="eq 10.17",
    title="The gradient of weight normalization",
    claims=[
        Wrong(
            "dL/dv for w = g v / |v|",
            "g/|v| (1 - v_i^2/|v|^2) dL/dw_i",
            "g/|v| dL/dw - g (dL/dg)/|v|^2 v",
            tolerance=1e-9,
        )
    ],
)
def weight_normalization() -> Outcome:
    """Only the direction of v counts, so its gradient has no part along v.

    The right form takes that part off as a whole vector. The printed one treats each element as if
    the others did not matter; the result is not orthogonal to v.
    """
    v, slope = normal(4), normal(4)
    g = chainrule.tensor(1.7, dtype=DOUBLE)

    def loss(v: Tensor) -> Tensor:
        return slope.dot(g * v / v.norm())

    truth = func.grad(loss)(v)
    length = v.norm()
    printed = g / length * (1 - v**2 / length**2) * slope
    by_g = slope.dot(v) / length
    right = g / length * slope - g * by_g / length**2 * v
    return Outcome({"dL/dv for w = g v / |v|": Forms(printed, right, truth)})


@entry(
    "ERR134",
    course="004",
    printed="eq 10.20",
    title="What is integrated, and the second number of the normal",
    claims=[
        Wrong("E[SELU] for mu w = 0.5, nu tau = 4", "SELU(s) dz", "SELU(z) dz", tolerance=1e-6),
        Wrong("with the deviation 2", "N(0.5, sqrt(4)) as variance", "variance 4", tolerance=1e-6),
    ],
)
def integrated_variable() -> Outcome:
    """The integral runs over z, so the function has to be of z; a constant s comes out as itself.

    And the second number of the normal is a variance, as in section 3.9: nu tau, not its root.
    """
    mean, variance = 0.5, 4.0
    truth = float(moments.selu_moments(mean, variance, 1.0, 1.0)[0])
    constant = float(F.selu(chainrule.tensor(mean, dtype=DOUBLE)))
    right = moments.gaussian_expectation(F.selu, mean, variance)
    narrow = moments.gaussian_expectation(F.selu, mean, math.sqrt(variance))
    return Outcome(
        {
            "E[SELU] for mu w = 0.5, nu tau = 4": Forms(constant, right, truth),
            "with the deviation 2": Forms(narrow, right, truth),
        }
    )


@entry(
    "ERR135",
    course="004",
    printed="eq 10.23",
    title="The last digit of an entry of the Jacobian",
    claims=[
        Wrong("d mean / d variance at (0, 1)", "0.088834", "0.0888348", tolerance=1e-7),
        Number("the other numbers", (0.782648, 0.7877), tolerance=5e-5),
    ],
)
def last_digit() -> Outcome:
    """0.0888348 rounds to 0.088835; the printed number is cut off.

    The others of the equation are rounded right. The truth is a derivative of the closed form.
    """
    point = chainrule.tensor([0.0, 1.0], dtype=DOUBLE)

    def mapped(p: Tensor) -> Tensor:
        mean, variance = moments.selu_moments(p[0], p[1], 0.0, 1.0)
        return chainrule.stack([mean, variance])

    jacobian = func.jacrev(mapped)(point)
    norm = float(chainrule.linalg.matrix_norm(jacobian, 2))
    return Outcome(
        {
            "d mean / d variance at (0, 1)": Forms(0.088834, 0.0888348, float(jacobian[0, 1])),
            "the other numbers": (float(jacobian[1, 1]), norm),
        }
    )


@entry(
    "ERR139",
    course="004",
    printed="C.8, C.11-C.12",
    title="A square and two indices that were lost",
    claims=[
        Wrong("v^T X^T X v", "sum_n sum_j x_nj v_j", "sum_n (sum_j x_nj v_j)^2", tolerance=1e-9),
        Wrong("dL/dw_v for v = 2", "x (p(k) - y_k)", "x (p(v) - y_v)", tolerance=1e-9),
    ],
)
def lost_square() -> Outcome:
    """A quadratic form is a sum of squares, which is why it cannot be negative.

    Without the square it could. And the gradient of the weights of class v has the probability of
    class v in it, not of another one.
    """
    x, v = normal(5, 3), normal(3)
    truth = float(v @ x.T @ x @ v)
    w, one, label = normal(4, 3), normal(3), 1
    gradient = func.grad(lambda w: -(w @ one).log_softmax(0)[label])(w)[2]
    p = (w @ one).softmax(0)
    return Outcome(
        {
            "v^T X^T X v": Forms(float((x @ v).sum()), float((x @ v).square().sum()), truth),
            "dL/dw_v for v = 2": Forms(one * (p[label] - 1), one * p[2], gradient),
        }
    )


@entry(
    "ERR140",
    course="004",
    printed="C.13",
    title="The slope of one class by the sum of another is negative",
    claims=[
        Wrong("dp(k)/ds_v for two classes of softmax", "+p(k) p(v)", "-p(k) p(v)", tolerance=1e-9)
    ],
)
def softmax_sign() -> Outcome:
    """If another class gains, this one loses: probabilities sum to 1."""
    s = normal(4)
    truth = float(func.jacrev(lambda s: s.softmax(0))(s)[0, 1])
    p = s.softmax(0)
    product = float(p[0] * p[1])
    return Outcome({"dp(k)/ds_v for two classes of softmax": Forms(product, -product, truth)})


@entry(
    "ERR141",
    course="004",
    printed="C.2",
    title="Convex, and when strictly so",
    claims=[
        Refuted(
            "least eigenvalue of the Hessian of softmax regression",
            "strictly convex without a penalty",
            (1e-9, inf),
            "convex: semidefinite",
            (-1e-12, 1e-9),
        ),
        Statement("least eigenvalue with |w|^2 / 2 added", "strict with it", at_least=0.999),
    ],
)
def strictly_convex() -> Outcome:
    """Adding one vector to the weights of all classes changes no probability.

    Along that direction the loss is flat, so its curvature there is 0. With the penalty |w|^2 / 2
    every direction has at least the curvature 1.
    """
    x = normal(10, 2)
    y = chainrule.arange(10) % 3

    def least(penalty: float) -> float:
        def loss(w: Tensor) -> Tensor:
            fit = F.cross_entropy(x @ w.reshape(2, 3), y)
            return fit + penalty * 0.5 * w.square().sum()

        hessian = func.hessian(loss)(chainrule.zeros(6, dtype=DOUBLE))
        return float(chainrule.linalg.eigvalsh(hessian).min())

    return Outcome(
        {
            "least eigenvalue of the Hessian of softmax regression": least(0.0),
            "least eigenvalue with |w|^2 / 2 added": least(1.0),
        }
    )

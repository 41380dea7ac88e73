"""Chapters 3 to 5 of the notes 004, as they are printed and as it is right."""

from __future__ import annotations

import math
from math import inf

import chainrule
from chainrule import Tensor, charts, func, nn
from chainrule.atlas import Forms, Outcome, Refuted, Statement, Wrong, attempt, entry
from chainrule.nn import functional as F

DOUBLE = chainrule.float64


def normal(*size: int) -> Tensor:
    """Numbers of the seed of the entry."""
    return chainrule.randn(*size, dtype=DOUBLE)


@entry(
    "ERR097",
    course="004",
    printed="eq 4.44-4.45",
    title="Which links a feed-forward network has",
    claims=[
        Wrong(
            "sum of unit 5 in a network of layers (0, 0, 1, 1, 2)",
            "w_ij = 0 if source layer <= target layer",
            "w_ij = 0 if source layer >= target layer",
            tolerance=1e-9,
        )
    ],
)
def feed_forward_links() -> Outcome:
    """Signals go from lower layers to higher ones, so links from there are kept.

    The printed rule sets exactly these to zero, and no signal arrives anywhere. The truth is the
    same network, layer by layer.
    """
    layer = [0, 0, 1, 1, 2]
    w, x = normal(5, 5), normal(2)

    def last_sum(kept: list[list[bool]]) -> float:
        a = [float(v) for v in x] + [0.0] * 3
        s = 0.0
        for i in range(2, 5):
            s = sum(float(w[i, j]) * a[j] for j in range(5) if kept[i][j])
            a[i] = math.tanh(s)
        return s

    printed = last_sum([[layer[j] > layer[i] for j in range(5)] for i in range(5)])
    right = last_sum([[layer[j] < layer[i] for j in range(5)] for i in range(5)])
    hidden = (w[2:4, :2] @ x).tanh()
    truth = float(w[4, 2:4] @ hidden + w[4, :2] @ x)
    name = "sum of unit 5 in a network of layers (0, 0, 1, 1, 2)"
    return Outcome({name: Forms(printed, right, truth)})


@entry(
    "ERR098",
    course="004",
    printed="section 3.5",
    title="The size of a weight matrix that is multiplied by a column",
    claims=[
        Wrong("W a for layers of 3 and 5", "W is n[l-1] x n[l]", "W is n[l] x n[l-1]", 1e-9),
        Wrong("outputs of layers (3, 5, 2)", "K = n[L+1]", "K = n[L]", tolerance=0.5),
    ],
)
def weight_sizes() -> Outcome:
    """W a has as many numbers as W has rows: the units of the new layer.

    The transposed size does not fit. And the outputs are the last layer, L, behind which there is
    no other.
    """
    linear = nn.Linear(3, 5, bias=False, dtype=DOUBLE)
    a, w = normal(3), linear.weight.detach()
    sizes = [3, 5, 2]
    net = nn.Sequential(nn.Linear(3, 5), nn.Linear(5, 2))
    return Outcome(
        {
            "W a for layers of 3 and 5": Forms(
                attempt(lambda: w.reshape(3, 5) @ a), w @ a, linear(a).detach()
            ),
            "outputs of layers (3, 5, 2)": Forms(
                attempt(lambda: sizes[len(sizes)]), sizes[-1], net(chainrule.zeros(3)).numel()
            ),
        }
    )


@entry(
    "ERR099",
    course="004",
    printed="eq 4.9, 4.26",
    title="A gradient that is added to a column is a column",
    claims=[Wrong("w after a step", "w - eta (X w - y)^T X", "w - eta X^T (X w - y)", 1e-9)],
)
def gradient_layout() -> Outcome:
    """The row (X w - y)^T X has the right numbers in the wrong arrangement.

    Taken from a column, a row makes a square: every element of one less every element of the
    other. The truth is differentiation of the squared error.
    """
    x, y, w = normal(6, 3), normal(6, 1), normal(3, 1)
    truth = w - 0.1 * func.grad(lambda w: 0.5 * ((x @ w - y) ** 2).sum())(w)
    error = x @ w - y
    return Outcome(
        {"w after a step": Forms(w - 0.1 * (error.T @ x), w - 0.1 * (x.T @ error), truth)}
    )


@entry(
    "ERR100",
    course="004",
    printed="section 4.1.5",
    title="Delta is the prediction less the label",
    claims=[Wrong("slope at the sum, a = 0.8, y = 0.5", "label - prediction", "a - y", 1e-9)],
)
def sign_of_delta() -> Outcome:
    """If the prediction is too large, the loss grows with it: the slope is positive.

    The words say label minus prediction, the formula beside them has it the other way round, which
    is right.
    """
    a, y = chainrule.tensor(0.8, dtype=DOUBLE), 0.5
    truth = func.grad(lambda a: 0.5 * (a - y) ** 2)(a)
    return Outcome({"slope at the sum, a = 0.8, y = 0.5": Forms(y - 0.8, 0.8 - y, float(truth))})


@entry(
    "ERR101",
    course="004",
    printed="eq 4.21",
    title="Binary cross-entropy is the negative logarithm of the likelihood",
    claims=[
        Wrong("loss of p = (0.9, 0.2), y = (1, 0)", "the likelihood", "its negative log", 1e-9)
    ],
)
def likelihood_and_loss() -> Outcome:
    """The likelihood is a product that is to be large; the loss is a sum that is to be small.

    Calling one by the name of the other turns learning around.
    """
    p = chainrule.tensor([0.9, 0.2], dtype=DOUBLE)
    y = chainrule.tensor([1.0, 0.0], dtype=DOUBLE)
    likelihood = 0.9 * 0.8
    truth = float(F.binary_cross_entropy(p, y, reduction="sum"))
    forms = Forms(likelihood, -math.log(likelihood), truth)
    return Outcome({"loss of p = (0.9, 0.2), y = (1, 0)": forms})


@entry(
    "ERR102",
    course="004",
    printed="eq 4.30",
    title="The Hessian of logistic regression is semidefinite",
    claims=[
        Refuted(
            "least eigenvalue, X of rank 1 with three columns",
            "positive definite",
            (1e-9, inf),
            "semidefinite unless X has full column rank",
            (-1e-9, 1e-9),
        ),
        Statement("least eigenvalue, X of full rank", "definite then", at_least=1e-3),
    ],
)
def semidefinite() -> Outcome:
    """X^T R X is 0 along every direction that X does not see.

    Three columns that are multiples of one have two such directions: the loss is flat along them,
    and Newton's step does not exist.
    """

    def least(x: Tensor) -> float:
        y = (chainrule.arange(8) % 2).double()
        zero = chainrule.zeros(3, dtype=DOUBLE)
        hessian = func.hessian(lambda w: F.binary_cross_entropy_with_logits(x @ w, y))(zero)
        return float(chainrule.linalg.eigvalsh(hessian).min())

    thin = normal(8, 1) @ normal(1, 3)
    return Outcome(
        {
            "least eigenvalue, X of rank 1 with three columns": least(thin),
            "least eigenvalue, X of full rank": least(normal(8, 3)),
        }
    )


@entry(
    "ERR103",
    course="004",
    printed="eq 4.31, 4.33",
    title="Newton multiplies by the inverse; softmax has one exponential for each class",
    claims=[
        Wrong("Newton's step on a bowl, from (1, 1)", "w - H g", "w - H^-1 g", tolerance=1e-9),
        Wrong("middle entry of softmax(1, 2, 3)", "e^(s_K) / sum", "e^(s_k) / sum", 1e-9),
    ],
)
def labels_of_inverses() -> Outcome:
    """The brace below the inverse says H, and the middle exponential has the last index.

    Newton's step on a bowl leads to its bottom in one go with the inverse alone. The middle entry
    of softmax with the exponential of the last class would be the last entry.
    """
    h = chainrule.tensor([[3.0, 1.0], [1.0, 2.0]], dtype=DOUBLE)
    w = chainrule.ones(2, dtype=DOUBLE)
    g = h @ w
    s = chainrule.tensor([1.0, 2.0, 3.0], dtype=DOUBLE)
    total = float(s.exp().sum())
    bottom = chainrule.zeros(2, dtype=DOUBLE)
    return Outcome(
        {
            "Newton's step on a bowl, from (1, 1)": Forms(
                w - h @ g, w - chainrule.linalg.solve(h, g), bottom
            ),
            "middle entry of softmax(1, 2, 3)": Forms(
                math.exp(3) / total, math.exp(2) / total, float(s.softmax(0)[1])
            ),
        }
    )


@entry(
    "ERR104",
    course="004",
    printed="section 4.5",
    title="The last label of XOR is 0",
    claims=[
        Refuted(
            "best accuracy of a line with y4 = 1",
            "no line separates it",
            (0.0, 0.75),
            "it is OR, which a line separates",
            (1.0, 1.0),
        ),
        Statement("best accuracy of a line with y4 = 0", "no line separates XOR", at_most=0.75),
    ],
)
def xor_labels() -> Outcome:
    """Exclusive or is 0 if both inputs are 1.

    With the printed 1 it is OR, and a single neuron learns it, so that nothing would be shown. All
    lines of a fine grid are tried here: for OR some are right on all four cases, for XOR three.
    """
    x = chainrule.tensor([[0.0, 0], [0, 1], [1, 0], [1, 1]])
    angles = chainrule.linspace(0, 2 * math.pi, 73)
    w = chainrule.stack([angles.cos(), angles.sin()])

    def best(labels: list[float]) -> float:
        sums = (x @ w).unsqueeze(2) + chainrule.linspace(-2, 2, 81)
        answers = (sums > 0).float()
        right = answers == chainrule.tensor(labels).reshape(4, 1, 1)
        return float(right.float().mean(0).max())

    return Outcome(
        {
            "best accuracy of a line with y4 = 1": best([0.0, 1, 1, 1]),
            "best accuracy of a line with y4 = 0": best([0.0, 1, 1, 0]),
        }
    )


@entry(
    "ERR105",
    course="004",
    printed="eq 4.53",
    title="The delta of a softmax output sums over all classes",
    claims=[
        Wrong(
            "delta of four classes",
            "dL/da_k f'(s_k)",
            "sum_j dL/da_j da_j/ds_k = a - y",
            tolerance=1e-9,
        )
    ],
)
def softmax_delta() -> Outcome:
    """A sum s_k changes all outputs of softmax, so its slope collects the slopes of all of them.

    With the diagonal alone only the true class gets a delta. The whole sum is a - y: each class
    gets the probability that is too much or too little.
    """
    s = normal(4)
    y = chainrule.tensor([0.0, 1.0, 0.0, 0.0], dtype=DOUBLE)
    truth = func.grad(lambda s: -(y * s.log_softmax(0)).sum())(s)
    a = s.softmax(0)
    return Outcome({"delta of four classes": Forms(-y / a * a * (1 - a), a - y, truth)})


@entry(
    "ERR106",
    course="004",
    printed="eq 4.67",
    title="The gradient of the weights is a column times a row",
    claims=[Wrong("dL/dW for 3 inputs, 2 sums", "delta a^T, delta a row", "delta^T a^T", 1e-9)],
)
def outer_product() -> Outcome:
    """With deltas as a row (1 x 2) and activations as a column (3 x 1), delta^T a^T is 2 x 3.

    The printed delta a^T multiplies a row of 2 with a row of 3, which does not go.
    """
    w, a, v = normal(2, 3), normal(3, 1), normal(2, 1)
    truth = func.grad(lambda w: (v * (w @ a)).sum())(w)
    delta = v.T
    return Outcome(
        {"dL/dW for 3 inputs, 2 sums": Forms(attempt(lambda: delta @ a.T), delta.T @ a.T, truth)}
    )


@entry(
    "ERR107",
    course="004",
    printed="eq 4.63, 4.70",
    title="Two matrices with one name",
    claims=[
        Wrong("da/dx of a = f(W x)", "W diag f'(s), eq 4.63", "diag(f'(W x)) W, eq 4.70", 1e-9),
        Wrong("ds/ds_below of s = W f(s_below)", "diag(f') W", "W diag f'(s_below)", 1e-9),
    ],
)
def two_jacobians() -> Outcome:
    """From sums to sums the slopes come first, from activations to activations last.

    Both are called the Jacobian of a layer. They are different matrices, and which one is meant
    depends on where the layer is thought to begin.
    """
    w, x = normal(3, 3), normal(3)
    slope_above = chainrule.diag(1 - (w @ x).tanh() ** 2)
    slope_below = chainrule.diag(1 - x.tanh() ** 2)
    return Outcome(
        {
            "da/dx of a = f(W x)": Forms(
                w @ slope_above, slope_above @ w, func.jacrev(lambda x: (w @ x).tanh())(x)
            ),
            "ds/ds_below of s = W f(s_below)": Forms(
                slope_below @ w, w @ slope_below, func.jacrev(lambda s: w @ s.tanh())(x)
            ),
        }
    )


@entry(
    "ERR108",
    course="004",
    printed="note in section 4.7",
    title="The slope of the sigmoid reaches 0.25",
    claims=[Refuted("largest slope", "< 0.25", (0.0, 0.25 - 1e-12), "<= 0.25, at 0", (0.25, 0.25))],
)
def steepest_sigmoid() -> Outcome:
    """sigma (1 - sigma) is largest at 0, where it is exactly one quarter.

    For the bound on gradients it makes no difference: ten layers shrink them by 4^10 or more.
    """
    x = chainrule.linspace(-6, 6, 1201, dtype=DOUBLE).requires_grad_()
    (slope,) = chainrule.autograd.grad(x.sigmoid().sum(), x)
    ax = charts.axes_for(None)
    ax.plot(x.detach().numpy(), slope.numpy(), color=charts.COLORS[0])
    ax.axhline(0.25, color="gray", linestyle="--", label="0.25")
    ax.set(title="The slope of the sigmoid", xlabel="x", ylabel="slope")
    ax.legend()
    return Outcome({"largest slope": float(slope.max())}, [ax])


@entry(
    "ERR109",
    course="004",
    printed="eq 5.13",
    title="Where the test set begins",
    claims=[Wrong("first test sample, N = 70 trained, M = 30", "M + 1", "N + 1", tolerance=0.5)],
)
def test_set() -> Outcome:
    """The first N samples are trained with, so the test starts behind them.

    From M + 1 on most of the test samples would have been trained with.
    """
    data = [*range(1, 101)]
    trained, tested = data[:70], data[70:]
    first = min(set(data) - set(trained))
    forms = Forms(len(tested) + 1, len(trained) + 1, first)
    return Outcome({"first test sample, N = 70 trained, M = 30": forms})


@entry(
    "ERR110",
    course="004",
    printed="eq 5.14, 5.15, 5.18",
    title="The factor of a fold in cross-validation",
    claims=[
        Wrong("estimate for a loss of 1, N = 100, L = 5", "N / L per fold", "L / N", 1e-9),
    ],
)
def fold_factor() -> Outcome:
    """A fold has N / L samples, so its mean is the sum times L / N.

    If every loss is 1, the estimate has to be 1. With N / L it is 400.
    """
    n, folds = 100, 5
    losses = chainrule.ones(n, dtype=DOUBLE)
    parts = losses.reshape(folds, n // folds)

    def estimate(factor: float) -> float:
        return sum(factor * float(part.sum()) for part in parts) / folds

    forms = Forms(estimate(n / folds), estimate(folds / n), float(losses.mean()))
    return Outcome({"estimate for a loss of 1, N = 100, L = 5": forms})

"""Recurrent networks of course 000, as they are printed and as they are."""

from __future__ import annotations

from math import inf

import chainrule
from chainrule import Tensor, charts, func, nn
from chainrule.atlas import Forms, Outcome, Refuted, Statement, Wrong, attempt, entry

H, D, K, T = 4, 3, 2, 6  # hidden units, inputs, outputs, steps


def normal(*size: int) -> Tensor:
    """Numbers that are drawn anew for each entry, from the same seed."""
    return chainrule.randn(*size, dtype=chainrule.float64)


def step(h: Tensor, x: Tensor, w_h: Tensor, w_x: Tensor) -> Tensor:
    """One step of an Elman network."""
    return chainrule.tanh(w_h @ h + w_x @ x)


@entry(
    "ERR013",
    course="000",
    printed="eq 39",
    title="Indices of the output weights",
    claims=[Wrong("dl/dh of an output layer", "sum_p e_p W_o[l, p]", "sum_p e_p W_o[p, l]", 1e-9)],
)
def output_weights() -> Outcome:
    """W_o leads from H hidden units to K outputs: its first index is the output.

    The error of output p comes back to unit l through W_o[p, l]. With the indices changed the
    sizes do not even fit, for there are as many rows as outputs. The truth is differentiation.
    """
    w, error, h = normal(K, H), normal(K), normal(H)
    truth = func.grad(lambda h: error.dot(w @ h))(h)
    right = [sum(float(error[p] * w[p, m]) for p in range(K)) for m in range(H)]
    printed = attempt(lambda: [sum(float(error[p] * w[m, p]) for p in range(K)) for m in range(H)])
    return Outcome({"dl/dh of an output layer": Forms(printed, right, truth)})


@entry(
    "ERR014",
    course="000",
    printed="eq 41-42; 003",
    title="The gradient of the input weights reads the present input",
    claims=[
        Wrong("da_t/dW_x", "delta_mi x_j[t-1]", "delta_mi x_j[t]", 1e-9),
        Wrong("dh_(t-1)/dW_h", "g'(a_t) h_(t-2)", "delta g'(a_(t-1)) h_(t-2)", 1e-9),
    ],
)
def input_weights() -> Outcome:
    """a_t = W_h h_(t-1) + W_x x_t: the input at time t stands in the sum at time t.

    So does its derivative, and it has a Kronecker delta, for W_x[i, j] is in the sum of unit i
    alone. The slope of the unit at the step before is taken where that unit was, at a_(t-1).
    """
    w_h, w_x, x, h = normal(H, H), normal(H, D), normal(T, D), normal(H)
    eye = chainrule.eye(H, dtype=chainrule.float64)
    t = 3
    of_inputs = func.jacrev(lambda w: w_h @ h + w @ x[t])(w_x)
    before = func.jacrev(lambda w: step(h, x[t - 1], w, w_x))(w_h)
    a_before = w_h @ h + w_x @ x[t - 1]
    a_now = w_h @ chainrule.tanh(a_before) + w_x @ x[t]

    def slope(a: Tensor) -> Tensor:
        return 1 - chainrule.tanh(a) ** 2

    def product(values: Tensor, inputs: Tensor) -> Tensor:
        return chainrule.einsum("m,mi,j->mij", values, eye, inputs)

    one = chainrule.ones(H, dtype=chainrule.float64)
    everywhere = chainrule.einsum("m,i,j->mij", slope(a_now), one, h)
    return Outcome(
        {
            "da_t/dW_x": Forms(product(one, x[t - 1]), product(one, x[t]), of_inputs),
            "dh_(t-1)/dW_h": Forms(everywhere, product(slope(a_before), h), before),
        }
    )


@entry(
    "ERR015",
    course="000",
    printed="eq 45; 003",
    title="The Jacobian of one step of a recurrent network",
    claims=[Wrong("dh_s/dh_(s-1)", "W^T diag(g')", "diag(g') W", 1e-9)],
)
def jacobian_of_a_step() -> Outcome:
    """What a small change of the state becomes one step later.

    First the weights mix it, then each unit scales its own sum by its slope: diag(g') W. In the
    printed product the slopes are on the wrong side and the weights are transposed.
    """
    w_h, w_x, x, h = normal(H, H), normal(H, D), normal(D), normal(H)
    truth = func.jacrev(lambda h: step(h, x, w_h, w_x))(h)
    slopes = chainrule.diag(1 - step(h, x, w_h, w_x) ** 2)
    return Outcome({"dh_s/dh_(s-1)": Forms(w_h.T @ slopes, slopes @ w_h, truth)})


@entry(
    "ERR016",
    course="000",
    printed="eq 46-48",
    title="When gradients through time vanish, and how large they can be",
    claims=[
        Wrong(
            "largest safe singular value for a sigmoid",
            "1 / delta with delta = sigma_1 gamma: sigma_1 < 1",
            "1 / gamma = 4",
            tolerance=1e-6,
        ),
        Statement("norm over the bound delta^(t - tau)", "the bound holds", at_most=1.0),
        Refuted(
            "gradient of W_h over the one term of eq 48",
            "one term bounds it",
            (0.0, 1.0),
            "a sum over tau does",
            (1.0, inf),
        ),
    ],
)
def vanishing_condition(steps: int = 12) -> Outcome:
    """A product of Jacobians shrinks if the largest singular value of each is below 1.

    Each is at most delta = gamma sigma_1, with gamma the steepest slope of the activation, 1/4 for
    a sigmoid: so sigma_1 may be as large as 4. Printed is a condition that has delta in it already.
    And the gradient of the weights is a sum over all earlier times, which a bound by the term of
    one of them does not cover.
    """
    x = chainrule.linspace(-10, 10, 4001, dtype=chainrule.float64)
    gamma = float((x.sigmoid() * (1 - x.sigmoid())).max())
    sigma = 3.6
    u, _, v = chainrule.linalg.svd(normal(H, H))
    w = sigma * u @ v
    h, product, worst = normal(H), chainrule.eye(H, dtype=chainrule.float64), 0.0
    norms = []
    for n in range(1, steps + 1):
        h = (w @ h - w.sum(1) / 2).sigmoid()
        product = chainrule.diag(h * (1 - h)) @ w @ product
        norms.append(float(chainrule.linalg.matrix_norm(product, 2)))
        worst = max(worst, norms[-1] / (gamma * sigma) ** n)
    ratio = _sum_over_one_term()
    ax = charts.axes_for(None)
    ax.semilogy(range(1, steps + 1), norms, "o-", color=charts.COLORS[0], label="norm of dh_t/dh_0")
    bound = [(gamma * sigma) ** n for n in range(1, steps + 1)]
    ax.semilogy(range(1, steps + 1), bound, "--", color=charts.COLORS[1], label="(gamma sigma_1)^t")
    ax.set(title=f"Sigmoid units, sigma_1 = {sigma}", xlabel="steps", ylabel="norm")
    ax.legend()
    return Outcome(
        {
            "largest safe singular value for a sigmoid": Forms(1.0, 4.0, 1 / gamma),
            "norm over the bound delta^(t - tau)": worst,
            "gradient of W_h over the one term of eq 48": ratio,
        },
        [ax],
    )


def _sum_over_one_term(t: int = 5, w: float = 0.9) -> float:
    """dh_t/dw of h_t = w h_(t-1) + x, all x = 1, over the one term of the last step."""
    weight = chainrule.tensor(w, dtype=chainrule.float64)

    def last(weight: Tensor) -> Tensor:
        h = weight * 0
        for _ in range(t):
            h = weight * h + 1
        return h

    before = sum(w**k for k in range(t - 1))  # h_(t-1): the term of tau = t alone
    return float(func.grad(last)(weight)) / before


@entry(
    "ERR017",
    course="000",
    printed="eq 50-52",
    title="The backward direction of a bidirectional network",
    claims=[
        Wrong(
            "backward states",
            "recursion from t - 1, inputs x[N - t]",
            "g(W hb_(t+1) + W_x x_t + b)",
            tolerance=1e-6,
        )
    ],
)
def backward_direction() -> Outcome:
    """The backward network reads the series from its end, and is read out at the same time.

    Its state at t has seen the inputs t, t + 1, ..., N. The truth is the second direction of the
    library's bidirectional layer; the printed recursion, in the only way it can be run, gives the
    states of another order of times.
    """
    layer = nn.RNN(D, H, bidirectional=True, dtype=chainrule.float64)
    x = normal(T, D)
    truth = layer(x)[0][:, H:].detach()
    w_x, w_h = layer.weight_ih_l0_reverse.detach(), layer.weight_hh_l0_reverse.detach()
    b = (layer.bias_ih_l0_reverse + layer.bias_hh_l0_reverse).detach()
    h = chainrule.zeros(H, dtype=chainrule.float64)
    printed, right = [], []
    for t in range(T):
        h = chainrule.tanh(w_h @ h + w_x @ x[T - 1 - t] + b)
        printed.append(h)
    h = chainrule.zeros(H, dtype=chainrule.float64)
    for t in reversed(range(T)):
        h = chainrule.tanh(w_h @ h + w_x @ x[t] + b)
        right.append(h)
    forms = Forms(chainrule.stack(printed), chainrule.stack(right[::-1]), truth)
    return Outcome({"backward states": forms})


def _peephole_run(layer: nn.PeepholeLSTM, x: Tensor, of_cell: bool) -> Tensor:
    """The last hidden state; the recursion keeps the cell, or, as printed, the cell's input."""
    (wi, wf, wg, wo), (ui, uf, ug, uo) = layer.weight_ih.chunk(4), layer.weight_hh.chunk(4)
    bi, bf, bg, bo = layer.bias.chunk(4)
    h = c = z = chainrule.zeros(H, dtype=chainrule.float64)
    for x_t in x[:, 0]:
        kept = c if of_cell else z
        i = (wi @ x_t + ui @ h + layer.weight_ci * kept + bi).sigmoid()
        f = (wf @ x_t + uf @ h + layer.weight_cf * kept + bf).sigmoid()
        z = (wg @ x_t + ug @ h + bg).tanh()
        c = f * kept + i * z
        o = (wo @ x_t + uo @ h + layer.weight_co * c + bo).sigmoid()
        h = o * (c if of_cell else z).tanh()
    return h.detach()


@entry(
    "ERR018",
    course="000",
    printed="eq 54-58",
    title="What the gates of an LSTM with peepholes look at",
    claims=[
        Wrong(
            "hidden state after six steps",
            "z^(c) in the recursion and in tanh",
            "c_(t-1) in the recursion, tanh(c_t)",
            tolerance=1e-9,
        )
    ],
)
def peepholes() -> Outcome:
    """Input and forget gate see the cell before the step, the output gate the cell after it.

    The printed equations name a cell input z^(c) where the cell state belongs. Read so, the cell
    forgets a share of its last input instead of its contents, and the output shows the input: the
    states differ from those of the library's layer, which the right equations meet.
    """
    layer = nn.PeepholeLSTM(D, H, dtype=chainrule.float64)
    x = normal(T, 1, D)
    truth = layer(x)[0][-1, 0].detach()
    return Outcome(
        {
            "hidden state after six steps": Forms(
                _peephole_run(layer, x, of_cell=False), _peephole_run(layer, x, of_cell=True), truth
            )
        }
    )


@entry(
    "ERR019",
    course="000",
    printed="eq 60-61",
    title="A stacked LSTM is made of LSTM cells",
    claims=[
        Wrong("output of two layers", "h = tanh(W h + U h_(t-1) + b)", "an LSTM cell each", 1e-9),
        Statement("parameters over those of two plain layers", "four gates each", 4.0, 4.0),
    ],
)
def stacked_lstm() -> Outcome:
    """Each layer of a stacked LSTM is a whole LSTM, with gates and a cell, fed by the layer below.

    The printed equations stack plain recurrent layers. Two LSTM layers, one behind the other, give
    what the stacked layer gives; two plain ones with weights of its sizes do not.
    """
    whole = nn.LSTM(D, H, num_layers=2, dtype=chainrule.float64)
    plain = nn.RNN(D, H, num_layers=2, dtype=chainrule.float64)
    first, second = nn.LSTM(D, H, dtype=chainrule.float64), nn.LSTM(H, H, dtype=chainrule.float64)
    for k, layer in enumerate((first, second)):
        kept = {n: p for n, p in whole.state_dict().items() if n.endswith(f"l{k}")}
        layer.load_state_dict({n[:-1] + "0": p for n, p in kept.items()})
    x = normal(T, D)
    truth = whole(x)[0].detach()
    right = second(first(x)[0])[0].detach()
    for name, p in plain.named_parameters():
        p.data.copy_(dict(whole.named_parameters())[name][: p.shape[0]].detach())
    counts = [sum(p.numel() for p in net.parameters()) for net in (whole, plain)]
    return Outcome(
        {
            "output of two layers": Forms(plain(x)[0].detach(), right, truth),
            "parameters over those of two plain layers": counts[0] / counts[1],
        }
    )

"""Layers that keep the variance of what goes through them, or do not see a scale at all."""

from __future__ import annotations

import chainrule
from chainrule import Tensor, charts, models, nn
from chainrule.atlas import Number, Outcome, Spread, Statement, entry

DOUBLE = chainrule.float64


@entry(
    "N01",
    course="004",
    printed="eq 10.2-10.11",
    title="Batch normalization does not see the scale of the weights",
    claims=[
        Statement("largest |mean| of a unit over the batch", "eq 10.4", at_most=1e-12),
        Statement("largest |variance - 1|", "eq 10.5", at_most=1e-12),
        Statement("change for c = 0.01 to 100, linear units", "invariant", at_most=1e-9),
        Statement("change for c = 0.01 to 100, ReLU units", "invariant", at_most=1e-9),
        Number(
            "outputs for c = -1 over those for 1, linear", -1.0, 1e-9, unprinted="a sign is seen"
        ),
        Statement("change for c = 5, tanh units", "shown for linear and ReLU units", at_least=0.2),
    ],
)
def batch_normalization() -> Outcome:
    """(a - mean) / deviation over the batch: whoever multiplies a by c > 0 multiplies both.

    A linear unit or a ReLU with weights c w gives c times the activation, so the factor cancels and
    the normalized activations are the same. That is why the size of weights in front of such a
    layer hardly matters. With tanh it does: large weights drive it to its bounds, which is another
    shape and not another scale. A negative factor turns the sign. The course derives it for an
    epsilon of 0; here it is 1e-24.
    """
    x, w = chainrule.randn(200, 8, dtype=DOUBLE), chainrule.randn(8, 6, dtype=DOUBLE)
    norm = nn.BatchNorm1d(6, eps=1e-24, affine=False, dtype=DOUBLE)
    kinds = {"linear": nn.Identity(), "ReLU": nn.ReLU(), "tanh": nn.Tanh()}

    def out(kind: str, c: float) -> Tensor:
        return norm(kinds[kind](x @ (c * w)))

    def change(kind: str, *factors: float) -> float:
        return max(float((out(kind, c) - out(kind, 1.0)).abs().max()) for c in factors)

    axes = charts.grid_of_axes(None, 3, 3, (2.8, 3.0))
    for ax, kind in zip(axes, kinds, strict=True):
        ax.plot(
            out(kind, 1.0)[:, 0].numpy(), out(kind, 5.0)[:, 0].numpy(), ".", color=charts.COLORS[0]
        )
        ax.axline((0, 0), slope=1, color="gray", linewidth=1)
        ax.set(title=kind, xlabel="output with weights w", ylabel="with weights 5 w")
    normal = out("ReLU", 1.0)
    factors = (0.01, 0.3, 5.0, 100.0)
    return Outcome(
        {
            "largest |mean| of a unit over the batch": float(normal.mean(0).abs().max()),
            "largest |variance - 1|": float((normal.var(0, correction=0) - 1).abs().max()),
            "change for c = 0.01 to 100, linear units": change("linear", *factors),
            "change for c = 0.01 to 100, ReLU units": change("ReLU", *factors),
            "outputs for c = -1 over those for 1, linear": float(
                (out("linear", -1.0) * out("linear", 1.0)).mean()
            ),
            "change for c = 5, tanh units": change("tanh", 5.0),
        },
        [axes],
    )


def layer_of_relu(q: float, units: int, gain: float) -> float:
    """The second moment of the sums of one layer of ReLU units whose own sums have variance q."""
    sums = q**0.5 * chainrule.randn(50, units, dtype=DOUBLE)
    layer = nn.Linear(units, 100, bias=False, dtype=DOUBLE)
    nn.init.normal_(layer.weight, 0.0, (gain / units) ** 0.5)
    return float((layer(sums.relu()).detach() ** 2).mean())


@entry(
    "N10",
    course="004",
    printed="eq 9.8-9.11",
    title="A layer of ReLU units halves the variance",
    claims=[
        Statement("largest |F(q) / (J s^2 q / 2) - 1|", "F(q) = J s^2 q / 2", at_most=1e-9),
        Number(
            "measured second moment, over J s^2 q / 2",
            1.0,
            deviations=0.5,
            unprinted="F(q) in layers",
        ),
        Number("F(1) for J s^2 = 1, 2, 4", (0.5, 1.0, 2.0), tolerance=1e-9, unprinted="J s^2 / 2"),
    ],
)
def propagation(draws: int = 6, units: int = 200) -> Outcome:
    """F(q) = J s^2 E[f(sqrt(q) Z)^2]: the variance of the sums of the next layer.

    J is the number of units, and s^2 the variance of a weight. ReLU sets half of a normal law to 0,
    and the other half keeps its squares: so F is a line through 0 with the slope J s^2 / 2. For
    J s^2 = 1 the signal dies within a few layers, for 4 it explodes, and for 2 (He) it stays. The
    points are layers of 200 units with random weights and random sums.
    """
    gains = (1.0, 2.0, 4.0)
    variances = [0.01, 0.1, 0.5, 1.0, 2.0, 3.0]

    def predicted(q: float, gain: float) -> float:
        return nn.init.propagation("relu", q, 1, weight_variance=gain).forward[1]

    off = max(abs(predicted(q, g) / (g * q / 2) - 1) for q in variances for g in gains)
    ax = charts.axes_for(None)
    ratios = []
    for k, gain in enumerate(gains):
        ax.plot(variances, [predicted(q, gain) for q in variances], color=charts.COLORS[k])
        for q in variances[2:]:
            found = Spread(tuple(layer_of_relu(q, units, gain) for _ in range(draws)))
            ratios += [v / (gain * q / 2) for v in found.values]
            label = f"J s^2 = {gain:g}" if q == 3.0 else None
            ax.errorbar(
                q, found.mean, found.deviation, fmt="o", color=charts.COLORS[k], label=label
            )
    ax.axline((0, 0), slope=1, color="gray", linestyle="--", label="as before")
    ax.set(title="Lines: F(q) of ReLU; points: layers", xlabel="variance q of the sums")
    ax.set_ylabel("second moment in the next layer")
    ax.legend()
    return Outcome(
        {
            "largest |F(q) / (J s^2 q / 2) - 1|": off,
            "measured second moment, over J s^2 q / 2": Spread(tuple(ratios)),
            "F(1) for J s^2 = 1, 2, 4": [predicted(1.0, g) for g in gains],
        },
        [ax],
    )


def normalized_network(depth: int, width: int, dropout: float = 0.0) -> models.SelfNormalizingMLP:
    """A network of SELU units of which the weights have sum 0 and squares of sum 1, exactly."""
    net = models.SelfNormalizingMLP(width, [width] * depth, 1, dropout=dropout)
    for layer in net.modules():
        if isinstance(layer, nn.Linear):
            w = layer.weight.detach()
            w = w - w.mean(1, keepdim=True)
            layer.weight.data = w / w.norm(dim=1, keepdim=True)
    return net


def moments_by_layer(net: nn.Sequential, x: Tensor) -> list[tuple[float, float]]:
    """Mean and variance of what goes in, and of what comes out of each hidden layer."""
    found = [(float(x.mean()), float(x.var()))]
    kept = nn.AlphaDropout if any(isinstance(m, nn.AlphaDropout) for m in net) else nn.SELU
    with chainrule.no_grad():
        for layer in net:
            x = layer(x)
            if isinstance(layer, kept):
                found.append((float(x.mean()), float(x.var())))
    return found


@entry(
    "M43",
    course="004",
    printed="section 10.4",
    title="A self-normalizing network comes to mean 0 and variance 1",
    claims=[
        Number("mean and variance behind 16 layers", (0.0, 1.0), tolerance=0.05),
        Number("the same with alpha dropout of 0.05", (0.0, 1.0), tolerance=0.05),
        Number("the same from (0.5, 2) and without dropout", (0.0, 1.0), tolerance=0.05),
        Statement("largest |mean| and |variance - 1| of a seed", "a fixed point", at_most=0.2),
    ],
)
def self_normalizing(seeds: int = 8, depth: int = 16, width: int = 128) -> Outcome:
    """SELU, weights with the sum 0 and squares that add up to 1, and dropout that fits them.

    Inputs of mean 0 and variance 1 have these moments behind every layer, so that no other
    normalization is needed; and other inputs come to them, layer after layer, because the map of
    the moments draws them in (N07). Alpha dropout sets units to the lower bound of SELU instead of
    0, and rescales: the moments stay. Here the networks are wide but not endlessly so, and the
    numbers are those of several seeds.
    """
    starts = {"from (0, 1)": (0.0, 1.0, 0.0), "alpha dropout": (0.0, 1.0, 0.05)}
    starts["from (0.5, 2)"] = (0.5, 2.0, 0.0)
    ends: dict[str, list[float]] = {}
    worst = 0.0
    axes = charts.grid_of_axes(None, 2, 2, (3.7, 3.2))
    for k, (name, (mean, variance, dropout)) in enumerate(starts.items()):
        paths = []
        for _ in range(seeds):
            x = mean + variance**0.5 * chainrule.randn(60, width)
            paths.append(moments_by_layer(normalized_network(depth, width, dropout), x))
        table = chainrule.tensor(paths, dtype=DOUBLE)  # (seeds, layers, 2)
        ends[name] = table[:, -1].mean(0).tolist()
        off = (table[:, -1] - chainrule.tensor([0.0, 1.0], dtype=DOUBLE)).abs()
        worst = max(worst, float(off.max()))
        for j, ax in enumerate(axes):
            low, high = table[..., j].amin(0).numpy(), table[..., j].amax(0).numpy()
            ax.fill_between(range(depth + 1), low, high, color=charts.COLORS[k], alpha=0.25)
            values = table[..., j].mean(0).numpy()
            ax.plot(values, color=charts.COLORS[k], label=name)
    for ax, title in zip(axes, ("mean", "variance"), strict=True):
        ax.set(title=f"{title}: {seeds} seeds", xlabel="layer", ylabel=title)
    axes[1].legend()
    return Outcome(
        {
            "mean and variance behind 16 layers": ends["from (0, 1)"],
            "the same with alpha dropout of 0.05": ends["alpha dropout"],
            "the same from (0.5, 2) and without dropout": ends["from (0.5, 2)"],
            "largest |mean| and |variance - 1| of a seed": worst,
        },
        [axes],
    )

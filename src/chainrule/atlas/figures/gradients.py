"""Gradients that vanish, stay or explode on their way back through many layers."""

from __future__ import annotations

from statistics import median
from typing import Any

import chainrule
from chainrule import Tensor, charts, inspect, nn, optim
from chainrule.atlas import Number, Outcome, Statement, entry
from chainrule.atlas.course.ex18_x09_iris import BATCH, split
from chainrule.atlas.course.ex19_x10_vanishing import network
from chainrule.func import functional_call, vmap

# --- V18 ------------------------------------------------------------------------------------------

ACTIVATIONS: dict[str, type[nn.Module]] = {"tanh": nn.Tanh, "ReLU": nn.ReLU}


def norms_over_epochs(
    activation: type[nn.Module], seeds: int, epochs: int
) -> tuple[Tensor, list[float]]:
    """The norm of the gradient of each weight, (epochs, layers, seeds), and the last accuracies.

    All seeds are trained at once: a dimension in front of every parameter counts them.
    """
    net, starts = network(activation), []
    for seed in range(seeds):
        chainrule.manual_seed(seed)
        starts.append(network(activation).state_dict())
    params = {k: chainrule.stack([s[k] for s in starts]).requires_grad_() for k in starts[0]}
    weights = [k for k in params if k.endswith("weight")]
    splits = [split(seed) for seed in range(seeds)]
    x, y = (chainrule.stack([part[k] for part in splits]) for k in (0, 2))
    outputs = vmap(lambda p, x: functional_call(net, p, (x,)))
    optimizer = optim.Adam(params.values(), lr=0.001)
    found = []
    for _ in range(epochs):
        batches = []
        for inputs, targets in zip(x.split(BATCH, 1), y.split(BATCH, 1), strict=True):
            optimizer.zero_grad()
            # The losses are means over a batch; their sum over the seeds keeps the seeds apart.
            scores = outputs(params, inputs).log_softmax(2)
            (-(targets * scores).sum(2).mean(1)).sum().backward()
            optimizer.step()
            norms = [params[k].grad.norm(dim=(1, 2)) for k in weights]
            batches.append(chainrule.stack(norms))
        found.append(chainrule.stack(batches).mean(0))
    with chainrule.no_grad():
        right = (outputs(params, x).argmax(2) == y.argmax(2)).double().mean(1)
    return chainrule.stack(found).double(), right.tolist()


def draw_norms(ax: Any, norms: Tensor, title: str) -> None:
    """The median over the seeds for each layer, from the first (dark) to the last."""
    from matplotlib import colormaps

    layers = norms.shape[1]
    for i in range(layers):
        curve = norms[:, i].median(1).values.clamp(min=1e-9).numpy()
        label = {0: "first layer", layers - 1: "last layer"}.get(i)
        color = colormaps[charts.SEQUENTIAL](0.9 * i / (layers - 1))
        ax.plot(range(1, len(curve) + 1), curve, color=color, label=label)
    for i, shade in ((0, charts.COLORS[7]), (layers - 1, charts.COLORS[4])):
        low, high = (norms[:, i].quantile(q, dim=1).clamp(min=1e-9).numpy() for q in (0.25, 0.75))
        ax.fill_between(range(1, len(low) + 1), low, high, color=shade, alpha=0.15, linewidth=0)
    ax.set(title=title, xlabel="epoch", ylabel="norm of the gradient", yscale="log")
    ax.set_ylim(1e-9, 10)
    ax.legend(loc="lower right", fontsize=8)


@entry(
    "V18",
    course="000",
    printed="fig. 45, example 19",
    title="Norms of gradients by layer, over the epochs",
    claims=[
        Statement("tanh: first layer over last, at the start", "it vanishes", at_most=0.05),
        Statement("tanh: share of seeds that do not learn", "the loss stays", at_least=0.5),
        Statement("ReLU: share of seeds with a gradient everywhere", "at all layers", at_least=1.0),
        Statement("ReLU: share of seeds that learn", "the loss goes to 0", at_least=0.5),
    ],
)
def gradient_norms(seeds: int = 40, epochs: int = 300) -> Outcome:
    """How large the gradient of each layer is, epoch by epoch, in a network of ten narrow layers.

    Each line is a layer, from the first (dark) to the last (light), as the median over the seeds;
    the bands hold the middle half of the seeds for the first and the last layer. A layer far below
    the others hardly learns. With tanh the first layers start a hundred times below the last. ReLU
    does not save all networks: in some seeds a layer is silent for every flower, its gradient is
    exactly zero, drawn at the lower edge, and so it stays. After the 300 epochs of the course two
    thirds of the networks have not learned with tanh, and more than half with ReLU: most of the
    printed contrast is one of seeds.
    """
    axes = charts.grid_of_axes(None, 2, 2, (3.6, 3.6))
    norms, right = {}, {}
    for ax, (name, activation) in zip(axes, ACTIVATIONS.items(), strict=True):
        norms[name], right[name] = norms_over_epochs(activation, seeds, epochs)
        draw_norms(ax, norms[name], f"{name}, {seeds} seeds")
    share = (norms["tanh"][0, 0] / norms["tanh"][0, -1]).tolist()
    alive = (norms["ReLU"][-1] > 0).all(0).double().mean()
    return Outcome(
        {
            "tanh: first layer over last, at the start": median(share),
            "tanh: share of seeds that do not learn": sum(a < 0.9 for a in right["tanh"]) / seeds,
            "ReLU: share of seeds with a gradient everywhere": float(alive),
            "ReLU: share of seeds that learn": sum(a >= 0.9 for a in right["ReLU"]) / seeds,
        },
        [axes],
        note=f"{seeds} seeds, {epochs} epochs. To learn is an accuracy of 0.9 in training.",
    )


# --- V19 ------------------------------------------------------------------------------------------

DEPTH, WIDTH = 10, 32


def chain(activation: type[nn.Module], gain: float) -> nn.Sequential:
    """Ten layers of one width with orthogonal weights times a gain."""
    net = nn.Sequential()
    for i in range(DEPTH):
        layer = nn.Linear(WIDTH, WIDTH)
        nn.init.orthogonal_(layer.weight, gain)
        nn.init.zeros_(layer.bias)
        net.add_module(f"a{i + 1}", layer)
        net.add_module(f"g{i + 1}", activation())
    return net


def delta_norms(net: nn.Sequential, x: Tensor) -> list[float]:
    """The mean norm of the derivative of the loss by the sum of each layer, first to last."""
    sums = []
    for module in net:
        x = module(x)
        if isinstance(module, nn.Linear):
            sums.append(x)
    deltas = chainrule.autograd.grad((x**2).sum() / 2, sums)
    return [float(d.norm(dim=1).mean()) for d in deltas]


CHAINS: dict[str, tuple[type[nn.Module], float]] = {
    "sigmoid": (nn.Sigmoid, 1.0),
    "tanh": (nn.Tanh, 1.0),
    "ReLU, large weights": (nn.ReLU, 4.0),
}
GROWTH = "{}: delta of the first layer over that of the last"


@entry(
    "V19",
    course="004",
    printed="section 4.7, note on vanishing and exploding gradients",
    title="Vanishing, stable or exploding, layer by layer",
    claims=[
        Statement("largest slope of the sigmoid in all layers", "at most 0.25", at_most=0.25),
        Number("layers that vanish with sigmoid, of 10", 10, tolerance=0.5),
        Number("layers that are stable with tanh, of 10", 10, tolerance=0.5),
        Number("layers that explode with large weights, of 10", 10, tolerance=0.5),
        Statement(GROWTH.format("sigmoid"), "norm < 1: smaller each layer", at_most=1e-3),
        Statement(GROWTH.format("tanh"), "norm about 1: similar", at_least=0.5, at_most=2),
        Statement(GROWTH.format("ReLU, large weights"), "norm > 1: it grows", at_least=1e3),
        Statement("largest growth in a layer over its norm", "the norm bounds it", at_most=1.001),
    ],
)
def layer_verdicts(samples: int = 8) -> Outcome:
    """Going back, the errors of a layer are multiplied by W diag(f'), and its norm decides.

    Below 1 in every layer, they shrink exponentially; above, they grow; near 1 they stay. A sigmoid
    has slopes of 0.25 at most, so that its layers shrink errors unless the weights are large. Small
    sums through tanh, with orthogonal weights, change nothing much. Weights of four times that size
    explode. The lines show norms and the mean over all directions; the second picture the errors
    themselves.
    """
    x = 0.1 * chainrule.randn(samples, WIDTH)
    axes = charts.grid_of_axes(None, len(CHAINS), 1, (6.4, 2.9))
    ax = charts.axes_for(None, (6.4, 3.4))
    seen, deltas = {}, {}
    for k, (name, (activation, gain)) in enumerate(CHAINS.items()):
        net = chain(activation, gain)
        seen[name] = inspect.layer_jacobians(net, x, samples=samples)
        seen[name].plot(axes[k]).set_title(f"{name}: all {count_words(seen[name])}")
        deltas[name] = delta_norms(net, x)
        ax.semilogy(range(1, DEPTH + 1), deltas[name], "o-", color=charts.COLORS[k], label=name)
    axes[1].set_ylim(0, 1.2)
    ax.set(title="Errors on their way back", xlabel="layer", ylabel="norm of delta")
    ax.legend(loc="upper center", ncols=3)
    ax.set_ylim(top=1e12)
    growth = {n: d[0] / d[-1] for n, d in deltas.items()}
    return Outcome(
        {
            "largest slope of the sigmoid in all layers": max(
                layer.slope for layer in seen["sigmoid"].layers
            ),
            "layers that vanish with sigmoid, of 10": seen["sigmoid"].verdicts.count("vanishing"),
            "layers that are stable with tanh, of 10": seen["tanh"].verdicts.count("stable"),
            "layers that explode with large weights, of 10": seen[
                "ReLU, large weights"
            ].verdicts.count("exploding"),
            **{GROWTH.format(name): value for name, value in growth.items()},
            "largest growth in a layer over its norm": sigmoid_bound(x),
        },
        [axes, ax],
    )


def count_words(seen: inspect.LayerJacobians) -> str:
    """The verdicts that occur, in words."""
    return " or ".join(dict.fromkeys(seen.verdicts))


def sigmoid_bound(x: Tensor) -> float:
    """The largest growth of an error in a step back, over the norm of W diag(f') of that sample."""
    net = chain(nn.Sigmoid, 1.0)
    worst = 0.0
    for sample in x:
        sums, h = [], sample
        for module in net:
            h = module(h)
            if isinstance(module, nn.Linear):
                sums.append(h)
        deltas = chainrule.autograd.grad((h**2).sum() / 2, sums)
        for i in range(DEPTH - 1):
            slope = sums[i].detach().sigmoid() * (1 - sums[i].detach().sigmoid())
            weight = net[2 * (i + 1)].weight.detach()
            norm = float(chainrule.linalg.matrix_norm(weight * slope, 2))
            worst = max(worst, float(deltas[i].norm() / deltas[i + 1].norm()) / norm)
    return worst

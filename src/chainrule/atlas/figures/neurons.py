"""One neuron as a ridge, two neurons in front of a third, and how a perceptron learns."""

from __future__ import annotations

import math
from typing import Any

import chainrule
from chainrule import Tensor, charts, inspect, models, nn, optim, problems
from chainrule.atlas import Number, Outcome, Statement, entry

CORNERS = chainrule.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
XOR = chainrule.tensor([0, 1, 1, 0])


# --- V02 ------------------------------------------------------------------------------------------


def clouds(n: int) -> tuple[Tensor, Tensor]:
    """Two clouds that a slanted line divides, with the classes 0 and 1."""
    made = problems.blobs(n, classes=2, noise=0.25)
    turn = chainrule.tensor([[0.8, 0.6], [-0.6, 0.8]])
    return made.inputs @ turn, made.targets.float()


def trained_neuron(g: nn.Module, x: Tensor, targets: Tensor, steps: int) -> nn.Sequential:
    """g(w x + b), fitted to the targets by least squares."""
    net = nn.Sequential(nn.Linear(2, 1), g)
    optimizer = optim.Adam(net.parameters(), lr=0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        nn.functional.mse_loss(net(x)[:, 0], targets).backward()
        optimizer.step()
    return net


def ridge_facts(net: nn.Sequential, middle: float) -> tuple[float, float, float]:
    """How much a neuron varies on lines w x = c; how far from 90 degrees its level line stands to
    w; and how much a neuron of another offset differs from the same one, moved."""
    w, b = net[0].weight.detach()[0].double(), net[0].bias.detach()[0].double()
    neuron = nn.Sequential(nn.Linear(2, 1, dtype=chainrule.float64), net[1])
    neuron.load_state_dict({"0.weight": w.unsqueeze(0), "0.bias": b.unsqueeze(0)})
    along = chainrule.stack([-w[1], w[0]]) / w.norm()
    t = chainrule.linspace(-2, 2, 9, dtype=chainrule.float64)
    starts = t.reshape(-1, 1, 1) * w / w.norm()
    with chainrule.no_grad():
        lines = neuron(starts + t.reshape(1, -1, 1) * along)
        varies = float((lines - lines[:, :1]).abs().max())
        x = starts[:, 0]
        before = neuron(x)
        neuron[0].bias.data += 1.0
        moved = neuron(x - w / (w @ w))
    # Two points of the line of decision, found by bisection on two parallels to w.
    neuron[0].bias.data -= 1.0
    ends = [crossing(neuron, side * along, w / w.norm(), middle) for side in (-1.0, 1.0)]
    way = ends[1] - ends[0]
    angle = math.degrees(math.acos(abs(float(way @ w)) / float(way.norm() * w.norm())))
    return varies, abs(90.0 - angle), float((moved - before).abs().max())


def crossing(neuron: nn.Module, start: Tensor, direction: Tensor, middle: float) -> Tensor:
    """Where a neuron has its middle value on a line."""
    low, high = -10.0, 10.0
    with chainrule.no_grad():
        for _ in range(60):
            t = (low + high) / 2
            above = float(neuron((start + t * direction).unsqueeze(0))) > middle
            low, high = (low, t) if above else (t, high)
    return start + low * direction


def draw_border(ax: Any, seen: inspect.Landscape, x: Tensor, y: Tensor, middle: float) -> None:
    """A ridge from above, the line where it has its middle value, and the data."""
    grid = seen.x.numpy(), seen.y.numpy(), seen.values.numpy()
    low = 0.0 if middle else -1.0
    levels = [low + (1 - low) * i / 20 for i in range(21)]
    charts.add_colorbar(ax, ax.contourf(*grid, levels=levels, cmap=charts.SEQUENTIAL), "answer")
    ax.contour(*grid, levels=[middle], colors=charts.COLORS[1], linewidths=2)
    for label, color in ((0.0, "white"), (1.0, charts.COLORS[0])):
        own = x[y == label].numpy()
        looks = {"color": color, "markeredgecolor": "black", "markersize": 5}
        ax.plot(own[:, 0], own[:, 1], "ov"[int(label)], **looks)
    ax.axis((-2, 2, -2, 2))


@entry(
    "V02",
    course="000",
    printed="fig. 8; 003",
    title="One neuron is a ridge, and its border a line",
    claims=[
        Number("accuracy with sigmoid and with tanh", (1.0, 1.0), tolerance=1e-9),
        Statement("largest change along lines w x = c", "constant on hyperplanes", at_most=1e-9),
        Statement("degrees between border and w, less 90", "w turns the ridge", at_most=1e-6),
        Statement("difference of a moved ridge", "b moves the ridge", at_most=1e-9),
    ],
)
def ridges(points: int = 31, steps: int = 80) -> Outcome:
    """What a single neuron answers over the plane of its two inputs.

    It sees only the sum w x + b, so along every line on which this sum is constant its answer is
    constant, too: a ridge. The weights say in which direction it climbs, the offset b where. Where
    the answer passes the middle lies the border between the classes, a straight line: at 0.5 for a
    sigmoid, whose answers lie between 0 and 1, and at 0 for tanh, with answers from -1 to 1.
    """
    x, y = clouds(80)
    settings: list[tuple[str, nn.Module, float]] = [
        ("sigmoid", nn.Sigmoid(), 0.5),
        ("tanh", nn.Tanh(), 0.0),
    ]
    solid = charts.grid_of_axes(None, 2, 2, (3.6, 3.6), "3d")
    flat = charts.grid_of_axes(None, 2, 2, (3.8, 3.2))
    right, facts = [], []
    for k, (name, g, middle) in enumerate(settings):
        net = trained_neuron(g, x, y if name == "sigmoid" else 2 * y - 1, steps)
        seen = inspect.surface(net, points=points, title=name)
        seen.labels = ("x1", "x2")
        seen.plot(solid[k], kind="surface").set_zlabel("answer")
        draw_border(flat[k], seen, x, y, middle)
        flat[k].set(title=f"{name}: border at {middle:g}", xlabel="x1", ylabel="x2")
        with chainrule.no_grad():
            right.append(float(((net(x)[:, 0] > middle) == (y > 0.5)).double().mean()))
        facts.append(ridge_facts(net, middle))
    varies, angles, moved = (max(values) for values in zip(*facts, strict=True))
    return Outcome(
        {
            "accuracy with sigmoid and with tanh": right,
            "largest change along lines w x = c": varies,
            "degrees between border and w, less 90": angles,
            "difference of a moved ridge": moved,
        },
        [solid, flat],
    )


# --- V04 ------------------------------------------------------------------------------------------


def best_line(points: Tensor, labels: Tensor) -> tuple[float, tuple[float, float], float]:
    """The line with the widest margin between two classes, negative if none divides them: margin,
    unit normal and offset, over 3600 directions."""
    angles = chainrule.arange(3600, dtype=chainrule.float64) * (math.pi / 1800)
    normals = chainrule.stack([angles.cos(), angles.sin()])
    heights = points.double() @ normals
    low, high = heights[labels == 1].amin(0), heights[labels == 0].amax(0)
    k = int((low - high).argmax())
    normal = float(normals[0, k]), float(normals[1, k])
    return float(low[k] - high[k]) / 2, normal, float(low[k] + high[k]) / 2


def draw_corners(
    ax: Any, points: Tensor, title: str, names: tuple[str, str], lifted: float = 9
) -> float:
    """The four inputs where a layer puts them, and the line between the classes; its margin.
    The names of 01 and 10 stand ``lifted`` points over their places."""
    margin, (a, b), offset = best_line(points, XOR)
    places: dict[tuple[float, float], list[str]] = {}
    for corner, (x, y) in zip(CORNERS.tolist(), points.tolist(), strict=True):
        places.setdefault((x, y), []).append("".join(f"{v:g}" for v in corner))
    for label, mark in ((0, "o"), (1, "s")):
        own = points[XOR.eq(label)]
        style = {"linestyle": "none", "color": charts.COLORS[label], "markersize": 9}
        ax.plot(own[:, 0].numpy(), own[:, 1].numpy(), mark, label=f"XOR = {label}", **style)
    for at, words in places.items():
        lift = lifted if words[0] in ("01", "10") else 9
        ax.annotate(", ".join(words), at, (0, lift), textcoords="offset points", ha="center")
    ax.axis((-0.5, 2.5, -0.5, 1.6) if float(points.max()) > 1 else (-0.5, 1.6, -0.5, 1.6))
    if margin > 0:
        foot = (a * offset, b * offset)
        ax.axline(foot, (foot[0] - b, foot[1] + a), color="black", linestyle="--")
    ax.set(title=title, xlabel=names[0], ylabel=names[1])
    return margin


@entry(
    "V04",
    course="000",
    printed="fig. 10; 004, eq 4.41",
    title="XOR in the plane of two hidden neurons",
    claims=[
        Number("(h1, h2) of 00, 01, 10, 11", (0, 0, 0, 1, 1, 0, 0, 0), tolerance=1e-9),
        Number("answers to 00, 01, 10, 11", (0, 1, 1, 0), tolerance=1e-9),
        Statement("widest margin of a line in (x1, x2)", "one neuron cannot divide", at_most=0),
        Statement("widest margin in (h1, h2)", "the border is linear there", at_least=0.01),
        Statement("widest margin behind two ReLU", "004: linearly separable", at_least=0.01),
    ],
)
def hidden_xor() -> Outcome:
    """Why two neurons in front of a third solve what one cannot.

    The hidden neurons answer "x1 and not x2" and "x2 and not x1". In the plane of their answers the
    inputs 00 and 11 fall together into one corner, and a line divides them from the two others. So
    a hidden layer need not decide; it moves the data to where deciding is easy. Two ReLU neurons
    fold the plane in another way, with the same success.
    """
    ands, folds = models.xor_from_ands(), models.xor_network()
    hidden = inspect.hidden_space(ands, CORNERS, XOR, layer="1").points
    folded = inspect.hidden_space(folds, CORNERS, XOR, layer="1").points
    axes = charts.grid_of_axes(None, 3, 2, (3.4, 3.2))
    plane = draw_corners(axes[0], CORNERS, "Inputs: no line", ("x1", "x2"))
    of_ands = draw_corners(axes[1], hidden, "Behind two ANDs", ("h1", "h2"))
    of_folds = draw_corners(axes[2], folded, "Behind two ReLU", ("h1", "h2"), -17)
    axes[0].legend(loc="center")
    return Outcome(
        {
            "(h1, h2) of 00, 01, 10, 11": hidden.flatten(),
            "answers to 00, 01, 10, 11": ands(CORNERS).flatten(),
            "widest margin of a line in (x1, x2)": plane,
            "widest margin in (h1, h2)": of_ands,
            "widest margin behind two ReLU": of_folds,
        },
        [axes],
    )


# --- V06 ------------------------------------------------------------------------------------------


def perceptron_step(w: Tensor, x: Tensor, y: float, lr: float) -> tuple[Tensor, float, float]:
    """The weights after one example, and the answers to it before and after."""
    before = float((w @ x).sign())
    after = w + lr * y * x if before * y <= 0 else w
    return after, before, float((after @ x).sign())


def draw_step(ax: Any, w: Tensor, x: Tensor, y: float, lr: float) -> tuple[float, float]:
    """Weights and border before (gray) and after (blue) a wrongly classified example."""
    new, before, after = perceptron_step(w, x, y, lr)
    for vector, color, name, style in (
        (w, "#777777", "w before", "--"),
        (new, charts.COLORS[0], "w after", "-"),
    ):
        a, b = vector.tolist()
        ax.axline((0, 0), (-b, a), color=color, linestyle=style, linewidth=1)
        ax.annotate("", (a, b), (0, 0), arrowprops={"color": color, "width": 1.5, "headwidth": 7})
        ax.plot([], [], color=color, linestyle=style, label=f"{name}, border")
    step = (new - w).tolist()
    ax.annotate(
        "", new.tolist(), w.tolist(), arrowprops={"color": charts.COLORS[1], "arrowstyle": "->"}
    )
    ax.plot([], [], color=charts.COLORS[1], label=f"{'+' if y > 0 else '-'} {lr:g} x")
    mark = "P" if y > 0 else "X"
    ax.plot(*x.tolist(), mark, color="black", markersize=10, label="example", linestyle="none")
    title = f"{'Positive' if y > 0 else 'Negative'} example: {before:+g}, then {after:+g}"
    ax.set(title=title, xlim=(-2.4, 2.4), ylim=(-2.4, 3.6), xlabel="x1", ylabel="x2")
    ax.set_aspect("equal")
    ax.legend(loc="upper center", ncols=2, fontsize=8)
    if math.hypot(*step) == 0:
        raise ValueError(f"draw_step: the example {x.tolist()} is classified as {y:g} already")
    return before, after


@entry(
    "V06",
    course="004",
    printed="fig. 4.5, eq 4.17",
    title="One step of the perceptron",
    claims=[
        Number("answers to the positive example, before and after", (-1, 1), tolerance=1e-9),
        Number("answers to the negative example, before and after", (1, -1), tolerance=1e-9),
        Number("separable data sets that are solved, of all", 1.0, tolerance=1e-9),
        Statement("mistakes in the last pass over XOR", "it does not stop", at_least=1),
    ],
    full={"sets": 200},
)
def perceptron_update(sets: int = 20) -> Outcome:
    """A perceptron learns from its mistakes alone: it adds an example that it missed, times its
    label, to its weights.

    The border stands at right angles to the weights. A positive example on the wrong side pulls
    the weights towards itself, and the border turns until the example is behind it; a negative one
    pushes them away. Whether a single step is enough depends on its length; in the picture it is.
    If a line divides the classes, finitely many such steps find one. If none does, they never end.
    """
    axes = charts.grid_of_axes(None, 2, 2, (3.6, 4.0))
    w = chainrule.tensor([1.5, 0.5])
    positive = draw_step(axes[0], w, chainrule.tensor([-0.8, 1.6]), 1.0, 0.7)
    negative = draw_step(axes[1], w, chainrule.tensor([1.1, -1.2]), -1.0, 0.8)
    solved = 0
    for seed in range(sets):
        generator = chainrule.Generator().manual_seed(seed)
        x = chainrule.randn(40, 2, generator=generator)
        truth = nn.functional.normalize(chainrule.randn(2, generator=generator), dim=0)
        x = x[(x @ truth).abs() > 0.1]  # nothing is nearer to the border
        found = optim.perceptron(x, (x @ truth).sign(), bias=False, generator=generator)
        solved += bool((((x.double() @ found.weight.reshape(-1).double()) * (x @ truth)) > 0).all())
    endless = endless_mistakes(100)
    return Outcome(
        {
            "answers to the positive example, before and after": positive,
            "answers to the negative example, before and after": negative,
            "separable data sets that are solved, of all": solved / sets,
            "mistakes in the last pass over XOR": endless,
        },
        [axes],
    )


def endless_mistakes(passes: int) -> int:
    """Mistakes of the perceptron, with an offset, in the last of many passes over XOR."""
    x = chainrule.cat([CORNERS, chainrule.ones(4, 1)], 1)
    w, mistakes = chainrule.zeros(3), 0
    for _ in range(passes):
        mistakes = 0
        for row, label in zip(x, (2 * XOR - 1).tolist(), strict=True):
            w, before, _ = perceptron_step(w, row, float(label), 1.0)
            mistakes += before != label
    return mistakes

"""Figures that one instrument draws."""

from __future__ import annotations

import chainrule
from chainrule import charts, data, inspect, nn, optim
from chainrule.atlas import Number, Outcome, Statement, entry
from chainrule.optim import lr_scheduler
import itertools

CORNERS = chainrule.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
TABLES = {"OR": [0, 1, 1, 1], "AND1": [0, 0, 0, 1], "AND2": [0, 1, 0, 0], "XOR": [0, 1, 1, 0]}


@entry(
    "V01",
    course="000",
    printed="fig. 2-7, 44; 004 fig. A.1",
    title="Activations and their slopes",
    claims=[
        Number("largest slope of the sigmoid", 0.25, tolerance=1e-6),
        Number("largest slope of tanh", 1.0, tolerance=1e-6),
        Number("slope of SELU for x > 0", 1.0507, tolerance=5e-5),
    ],
)
def activations() -> Outcome:
    """What a neuron makes of its sum, and how much a small change of the sum matters.

    Sigmoid and tanh are flat far out: gradients die there. ReLU and its relatives have a slope of 1
    for all positive sums, and differ in what they do with negative ones.
    """
    seen = inspect.activation_curves(["sigmoid", "tanh", "relu", nn.LeakyReLU(0.1), "elu", "selu"])
    return Outcome(
        {
            "largest slope of the sigmoid": float(seen.facts["sigmoid"]["largest slope"]),
            "largest slope of tanh": float(seen.facts["tanh"]["largest slope"]),
            "slope of SELU for x > 0": float(seen.slopes["selu"][-1]),
        },
        [seen],
    )


def neuron(w: tuple[float, float], b: float) -> nn.Sequential:
    """A sigmoid neuron of two inputs."""
    net = nn.Sequential(nn.Linear(2, 1), nn.Sigmoid())
    net.load_state_dict({"0.weight": chainrule.tensor([w]), "0.bias": chainrule.tensor([b])})
    return net


@entry(
    "V03",
    course="000",
    printed="fig. 9; 003",
    title="Which truth tables a line can draw",
    claims=[
        Number("accuracy of one neuron on OR, AND1, AND2", (1.0, 1.0, 1.0), tolerance=1e-9),
        Statement("best accuracy of a grid of lines on XOR", "no line separates it", at_most=0.75),
    ],
)
def truth_tables() -> Outcome:
    """OR and both ANDs are solved by one neuron: a line has the ones on one side.

    The ones of XOR lie across from each other, and every line leaves one of the four points on the
    wrong side. That takes a hidden layer.
    """
    weights = {
        "OR": ((20.0, 20.0), -10.0),
        "AND1": ((20.0, 20.0), -30.0),
        "AND2": ((-20.0, 20.0), -10.0),
    }
    weights["XOR"] = weights["OR"]
    axes = charts.grid_of_axes(None, 4, 2, (3.4, 2.9))
    accuracies = []
    for ax, (name, (w, b)) in zip(axes, weights.items(), strict=True):
        seen = inspect.regions(neuron(w, b), CORNERS, TABLES[name], points=40)
        seen.plot(ax)
        ax.set_title(name)
        accuracies.append(float(seen.accuracy or 0.0))
    angles = chainrule.linspace(0, 6.2832, 73)
    sums = (CORNERS @ chainrule.stack([angles.cos(), angles.sin()])).unsqueeze(2)
    answers = (sums + chainrule.linspace(-2, 2, 81) > 0).float()
    right = answers == chainrule.tensor(TABLES["XOR"]).reshape(4, 1, 1)
    return Outcome(
        {
            "accuracy of one neuron on OR, AND1, AND2": accuracies[:3],
            "best accuracy of a grid of lines on XOR": float(right.float().mean(0).max()),
        },
        [axes],
    )


@entry(
    "V08",
    course="000",
    printed="fig. 27-31; 003",
    title="How recurrent layers are wired",
    claims=[
        Number("inputs that reach the outputs 1, 2 and 3 of an RNN", (1, 2, 3), 0.5),
        Number("inputs that reach those of one in both directions", (3, 3, 3), 0.5),
        Number("gates and candidate of an LSTM cell, rows of weights each", (5, 5, 5, 5), 0.5),
    ],
)
def wiring() -> Outcome:
    """A recurrent layer over three steps of time, one in both directions, and an LSTM inside.

    The state of each step goes into the next, so an output knows the inputs so far; in both
    directions it knows all of them, and the series has to be known to its end. Inside an LSTM,
    three gates decide what is forgotten, what is let in and what is shown.
    """
    one = inspect.wiring(nn.RNN(3, 5), steps=3)
    both = inspect.wiring(nn.RNN(3, 5, bidirectional=True), steps=3)
    cell = inspect.wiring(nn.LSTM(3, 5), cell=True)
    rows = [box.facts["rows"] for box in cell.boxes if "rows" in box.facts]
    sizes = [int(r.split(":")[1]) - int(r.split(":")[0]) for r in rows]
    return Outcome(
        {
            "inputs that reach the outputs 1, 2 and 3 of an RNN": reached(nn.RNN(3, 5)),
            "inputs that reach those of one in both directions": reached(
                nn.RNN(3, 5, bidirectional=True)
            ),
            "gates and candidate of an LSTM cell, rows of weights each": sizes,
        },
        [one, both, cell],
    )


def reached(layer: nn.RNN, steps: int = 3) -> list[int]:
    """How many inputs of a series each output depends on: where its derivative is not 0."""
    x = chainrule.randn(steps, 3).requires_grad_()
    outputs, _ = layer(x)
    slopes = [chainrule.autograd.grad(y.sum(), x, retain_graph=True)[0] for y in outputs]
    return [int((slope != 0).any(1).sum()) for slope in slopes]


@entry(
    "V25",
    course="004",
    printed="fig. 10.2-10.3",
    title="What batch and layer normalization take together",
    claims=[
        Statement("samples that share a mean in batch norm, of 4", "over the batch", at_least=4),
        Statement("samples that share a mean in layer norm, of 4", "in each sample", at_most=1),
    ],
)
def normalizations() -> Outcome:
    """Both subtract a mean and divide by a deviation; they differ in what these are taken over.

    Batch normalization takes one unit over all samples, layer normalization all units of one
    sample. Which numbers belong together is found from the layers themselves: outputs of the first
    sample are differentiated by the inputs of all.
    """

    def sharing(layer: nn.Module) -> int:
        x = chainrule.randn(4, 3, dtype=chainrule.float64).requires_grad_()
        output = layer.double()(x)
        (slopes,) = chainrule.autograd.grad(output[0].pow(3).sum(), x)
        return int((slopes.abs().amax(1) > 1e-9).sum())

    batch = inspect.normalization_groups(nn.BatchNorm1d(4))
    layer = inspect.normalization_groups(nn.LayerNorm((4, 4)))
    return Outcome(
        {
            "samples that share a mean in batch norm, of 4": sharing(nn.BatchNorm1d(3)),
            "samples that share a mean in layer norm, of 4": sharing(nn.LayerNorm(3)),
        },
        [batch, layer],
    )


@entry(
    "V38",
    course="000",
    printed="fig. 32; 003",
    title="Learning-rate schedules",
    claims=[
        Number("lowest and highest rate of the cyclic schedule", (0.01, 0.1), tolerance=1e-6),
        Statement("share of rising steps in warm-up", "the rate rises first", at_least=1.0),
    ],
)
def schedules(steps: int = 200) -> Outcome:
    """Rates that go up and down between two bounds, that start small, or that fall.

    A cyclic rate visits large steps again and again, a warm-up begins with small ones while
    averages are still wrong, and a decay makes the last steps fine.
    """

    def sgd() -> optim.SGD:
        return optim.SGD([chainrule.zeros(1, requires_grad=True)], lr=0.1)

    seen = inspect.schedules(
        {
            "cyclic": lr_scheduler.CyclicLR(
                sgd(), 0.01, 0.1, step_size_up=25, cycle_momentum=False
            ),
            "warm-up": lr_scheduler.LinearLR(sgd(), 0.02, total_iters=49),
            "1 / t": lambda t: 0.1 / (1 + 0.05 * t),
        },
        steps=steps,
    )
    cyclic, warm = seen.rates["cyclic"], seen.rates["warm-up"][:50]
    rising = sum(b > a for a, b in itertools.pairwise(warm)) / (len(warm) - 1)
    return Outcome(
        {
            "lowest and highest rate of the cyclic schedule": (min(cyclic), max(cyclic)),
            "share of rising steps in warm-up": rising,
        },
        [seen],
    )


@entry(
    "V42",
    course="004",
    printed="fig. 5.1-5.2",
    title="The folds of cross-validation",
    claims=[
        Number("least and most tests of a sample in 5 folds", (1, 1), tolerance=0.5),
        Number("share of samples tested in a fold", 0.2, tolerance=1e-9),
    ],
)
def folds() -> Outcome:
    """Every sample is tested once, by a model that was trained on the other folds.

    Five folds use each sample four times for training and once for the test, so the estimate sees
    all of the data.
    """
    y = data.embedded("iris").tensors()[1]
    seen = inspect.folds(data.StratifiedKFold(5, shuffle=True, random_state=0), len(y), y)
    return Outcome(
        {
            "least and most tests of a sample in 5 folds": (min(seen.tested), max(seen.tested)),
            "share of samples tested in a fold": seen.uses[0].count("test") / len(y),
        },
        [seen],
    )

"""Experiments that the examples of course 000 are, and counts of networks."""

from __future__ import annotations

import chainrule
from chainrule import charts, inspect, nn, optim, problems
from chainrule.atlas import Number, Outcome, Spread, Statement, entry
from chainrule.atlas.course import ex09_x07_exponential
from chainrule.atlas.examples import training
from chainrule.atlas.numbers.counts import LAYERS, lenet_counts
from chainrule.atlas.numbers.selu import selu_fixed_point


@entry(
    "X06",
    course="000",
    printed="example 16, figures 34-41",
    title="Ten optimizer settings from two starts",
    claims=training.landscape_claims(),
    full={"steps": 10_000, "copies": 50},
)
def optimizer_matrix(steps: int = 400, copies: int = 4) -> Outcome:
    """Ten settings of optimizers on one surface, each from two starts, with a rate of 20.

    The runs are chaotic: a start that is moved by a thousandth may end in another valley. So each
    sentence of the course is tried on several copies of its start. Plain descent with momentum
    behaves as printed; the claims for Adam and RMSprop are not borne out.
    """
    return training.landscape_outcome(steps, copies)


@entry(
    "X07",
    course="000",
    printed="example 9",
    title="Summed and averaged losses",
    claims=[
        Number("error with summed losses", 3874.4, tolerance=0.05),
        Number("error with averaged losses", 154.6, tolerance=0.05),
        Number("error of the best line", 152.5, tolerance=0.05),
    ],
    full={"seeds": 10},
)
def summed_losses(epochs: int = 30, seeds: int = 3) -> Outcome:
    """The same rate with the sum and with the mean of the losses of a batch of ten.

    The sum makes steps ten times as long; from every start the neuron is thrown to where it gives
    0 for all inputs, and stays there. The mean comes close to the best line from every start.
    """
    result = ex09_x07_exponential.main(epochs=epochs, seeds=seeds)
    ax = charts.axes_for(None)
    for k, name in enumerate(("sum", "mean")):
        ax.plot([name] * seeds, result[name], "o", color=charts.COLORS[1 - k])
    ax.axhline(result["line"][0], color="gray", linestyle="--", label="best line")
    ax.set(title=f"Error after {epochs} epochs, {seeds} starts", ylabel="mean squared error")
    ax.set(yscale="log", xlabel="losses of a batch")
    ax.legend()
    return Outcome(
        {
            "error with summed losses": Spread(tuple(result["sum"])),
            "error with averaged losses": Spread(tuple(result["mean"])),
            "error of the best line": result["line"][0],
        },
        [ax],
    )


@entry(
    "X08",
    course="000",
    printed="example 17",
    title="Descent against least squares",
    claims=[
        Number("(w, b)", (17.1042, 23.7503), tolerance=5e-4),
        Statement("distance from least squares", "it finds the best line", at_most=1e-3),
    ],
)
def descent_on_a_line(epochs: int = 1000) -> Outcome:
    """A thousand steps of descent and one solution of a linear system find the same line."""
    return training.line(epochs)


@entry(
    "X09",
    course="000",
    printed="example 18",
    title="Irises, ten epochs",
    claims=[Number("test accuracy after ten epochs", 0.60, deviations=2)],
    full={"seeds": 100},
)
def iris_accuracy(seeds: int = 8) -> Outcome:
    """What accuracy 210 small steps reach, over several starts and splits.

    One printed number is one draw of a wide distribution: the spread over seeds is about 0.2.
    """
    return training.irises(seeds)


@entry(
    "X10",
    course="000",
    printed="example 19, fig. 45",
    title="Vanishing gradients, tanh against ReLU",
    claims=training.VANISHING,
    full={"seeds": 40, "epochs": 300},
)
def vanishing_gradients(seeds: int = 12, epochs: int = 2) -> Outcome:
    """Ten layers of five units, many seeds: gradients vanish with tanh, and with ReLU, too.

    One run of each cannot tell them apart: whether a network learns depends on its seed.
    """
    return training.vanishing_outcome(seeds, epochs)


def radial_errors(points: int, wide: int, steps: int, seed: int) -> dict[str, float]:
    """Test errors of one wide layer and of two layers of 100 on the radial target."""
    chainrule.manual_seed(seed)
    problem = problems.radial_bessel(points)
    (x, y), (x_test, y_test) = problem.split(0.7)
    scale = float(y.std())
    nets = {
        f"1 x {wide}": nn.Sequential(nn.Linear(2, wide), nn.ReLU(), nn.Linear(wide, 1)),
        "2 x 100": nn.Sequential(
            nn.Linear(2, 100), nn.ReLU(), nn.Linear(100, 100), nn.ReLU(), nn.Linear(100, 1)
        ),
    }
    errors = {}
    for name, net in nets.items():
        optimizer = optim.AdamW(net.parameters(), lr=2e-3)
        for _ in range(steps):
            optimizer.zero_grad()
            nn.functional.mse_loss(net(x), y / scale).backward()
            optimizer.step()
        with chainrule.no_grad():
            errors[name] = scale**2 * nn.functional.mse_loss(net(x_test), y_test / scale).item()
    return errors


@entry(
    "X11",
    course="000",
    printed="fig. 12-14; 003, hands-on 1",
    title="One wide layer against two narrow ones",
    claims=[
        Statement("error of the wide layer over that of two", "depth wins", at_least=1.0),
        Statement(
            "orders of magnitude between them", "one to two orders lower", at_least=1.0, at_most=2.5
        ),
    ],
    full={"points": 4000, "wide": 10_000, "steps": 5000, "seeds": 5},
)
def shallow_and_deep(
    points: int = 1000, wide: int = 1000, steps: int = 250, seeds: int = 3
) -> Outcome:
    """A target that depends on the distance from 0 alone, learned by one wide layer and by two.

    Two layers can first compute the distance and then a function of it; one layer has to build the
    rings out of ridges. At quick settings the wide layer has a tenth of the course's width and the
    training is short, so the gap is only beginning to open.
    """
    found = [radial_errors(points, wide, steps, seed) for seed in range(seeds)]
    names = [*found[0]]
    ratios = [e[names[0]] / e[names[1]] for e in found]
    ax = charts.axes_for(None)
    for k, name in enumerate(names):
        ax.plot([name] * seeds, [e[name] for e in found], "o", color=charts.COLORS[k])
    ax.set(title=f"Radial target, {steps} steps", yscale="log", ylabel="test error")
    ax.set(xlabel=f"hidden layers x units, {seeds} seeds")
    ax.minorticks_off()
    orders = [chainrule.tensor(r).log10().item() for r in ratios]
    return Outcome(
        {
            "error of the wide layer over that of two": Spread(tuple(ratios)),
            "orders of magnitude between them": Spread(tuple(orders)),
        },
        [ax],
    )


@entry(
    "X12",
    course="004",
    printed="section 6.9",
    title="LeNet, counted",
    claims=[
        Number("parameters of C1, S2, C3, S4, C5, F6", (156, 0, 2416, 0, 48120, 10164), 0.5),
    ],
)
def lenet() -> Outcome:
    """Weights that are shared over the image are few; nearly all are where nothing is shared.

    The two convolutions on images have 4 % of the parameters and do most of the work; C5 and F6,
    where every unit has its own weights, have the rest.
    """
    counted = lenet_counts()
    counts = counted.obtained["parameters of C1, S2, C3, S4, C5, F6"]
    values = [float(c) for c in counts]  # type: ignore[union-attr]
    ax = charts.axes_for(None)
    ax.bar([name.upper() for name in LAYERS[:-1]], values, color=charts.COLORS[0])
    ax.set(title="Parameters of LeNet", xlabel="layer", ylabel="parameters")
    name = "parameters of C1, S2, C3, S4, C5, F6"
    return Outcome({name: values}, [ax])


@entry(
    "X13",
    course="004",
    printed="eq 10.23",
    title="The numbers of SELU",
    claims=[
        Number("spectral norm", 0.7877, tolerance=5e-5),
        Statement("spectral norm is below 1", "the map contracts", at_most=1.0),
    ],
)
def selu_numbers() -> Outcome:
    """A deviation of the moments shrinks to 79 % or less in a layer, which is 1 % after 20 layers.

    That is why networks of SELU units need no normalization layers.
    """
    found = selu_fixed_point()
    norm = found.obtained["spectral norm"]
    return Outcome({"spectral norm": norm, "spectral norm is below 1": norm}, found.pictures)


@entry(
    "X14",
    course="004",
    printed="note in section 4.7",
    title="A chain of sigmoids shrinks gradients by four a layer",
    claims=[
        Number("largest factor of one layer", 0.25, tolerance=1e-9),
        Statement("gradient over the bound 0.25^10", "at most 0.25 per layer", at_most=1.0),
    ],
)
def sigmoid_chain(layers: int = 10) -> Outcome:
    """Each sigmoid multiplies the gradient by its slope, which is 1/4 at most.

    Ten of them in a row leave a millionth, if the weights between them are 1. This is why deep
    networks of sigmoids learn so slowly in their first layers.
    """
    x = chainrule.linspace(-4, 4, 161, dtype=chainrule.float64).requires_grad_()
    (one,) = chainrule.autograd.grad(x.sigmoid().sum(), x)
    slopes = []
    h = x
    for _ in range(layers):
        h = h.sigmoid()
        (slope,) = chainrule.autograd.grad(h.sum(), x, retain_graph=True)
        slopes.append(float(slope.max()))
    ax = charts.axes_for(None)
    depths = range(1, layers + 1)
    ax.semilogy(depths, slopes, "o", color=charts.COLORS[0], label="largest slope found")
    ax.semilogy(depths, [0.25**k for k in depths], color=charts.COLORS[1], label="0.25^layers")
    ax.set(title="A chain of sigmoids", xlabel="layers", ylabel="slope")
    ax.legend()
    return Outcome(
        {
            "largest factor of one layer": float(one.max()),
            "gradient over the bound 0.25^10": slopes[-1] / 0.25**layers,
        },
        [ax],
    )


@entry(
    "X15",
    course="004",
    printed="section 7.3",
    title="A hundred times the data, a tenth of the error",
    claims=[Number("error of batches of 100 over that of 10000", 10.0, tolerance=1.5)],
    full={"trials": 2000},
)
def batch_error(trials: int = 300) -> Outcome:
    """The gradient of a batch is a mean over samples: its error falls like 1 / sqrt(samples).

    So a batch of 10,000 costs a hundred times as much as one of 100 and is ten times as exact,
    which is why small batches pay.
    """
    weight = chainrule.tensor([1.0, -2.0], dtype=chainrule.float64)

    def gradients(size: int) -> chainrule.Tensor:
        x = chainrule.randn(trials, size, 2, dtype=chainrule.float64)
        y = chainrule.randn(trials, size, dtype=chainrule.float64)
        return ((x @ weight - y).unsqueeze(2) * x).mean(1)

    sizes = [10, 100, 1000, 10_000]
    errors = [float(gradients(n).std(0).norm()) for n in sizes]
    ax = charts.axes_for(None)
    ax.loglog(sizes, errors, "o", color=charts.COLORS[0], label=f"{trials} batches each")
    expected = [errors[0] * (sizes[0] / n) ** 0.5 for n in sizes]
    ax.loglog(sizes, expected, color=charts.COLORS[1], label="1 / sqrt(batch size)")
    ax.set(title="Standard error of a gradient", xlabel="batch size", ylabel="standard error")
    ax.minorticks_off()
    ax.legend()
    ratio = errors[1] / errors[3]
    return Outcome({"error of batches of 100 over that of 10000": ratio}, [ax])


@entry(
    "X17",
    course="004",
    printed="sections 6.1, 6.9",
    title="Dense and convolutional layers, counted",
    claims=[
        Number("20 kernels of 5 by 5", 520, tolerance=0.5),
        Number("dense layer from 28 x 28 to 30", 23_550, tolerance=0.5),
        Number("inputs of an image of 250 by 250 in color, '200,000'", 200_000, tolerance=20_000),
    ],
)
def sizes() -> Outcome:
    """A kernel has as many weights as it has pixels, whatever the size of the image.

    Twenty kernels have 520 parameters, a dense layer of thirty units on the same image 45 times as
    many. And an image of 250 by 250 in color has 187,500 numbers, which the notes round to 200,000.
    """
    conv, dense = nn.Conv2d(1, 20, 5), nn.Linear(784, 30)
    counts = [sum(p.numel() for p in layer.parameters()) for layer in (conv, dense)]
    net = nn.Sequential(conv, nn.ReLU(), nn.Flatten())
    return Outcome(
        {
            "20 kernels of 5 by 5": counts[0],
            "dense layer from 28 x 28 to 30": counts[1],
            "inputs of an image of 250 by 250 in color, '200,000'": 250 * 250 * 3,
        },
        [inspect.draw(net, chainrule.zeros(1, 1, 28, 28))],
    )

"""Experiments that the examples of course 000 are, and counts of networks."""

from __future__ import annotations

import chainrule
from chainrule import charts, inspect, nn
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
)
def optimizer_matrix(steps: int = 10_000, copies: int = 50) -> Outcome:
    """Ten settings of optimizers on one surface, each from two starts, with a rate of 20.

    The runs are chaotic: a start that is moved by a thousandth may end in another valley. So each
    sentence of the course is tried on fifty copies of its start, for the 10,000 steps of the
    course. Plain descent with momentum behaves as printed. Adam and RMSprop do not: they do not
    reach the minimum, Adam is farther from it than SGD, and RMSprop does not come to rest.

    In the names g is the momentum and t its dampening, a the share of an average of squares that
    a step keeps, l the weight decay, and lr the rate if it is another one.
    """
    return training.landscape_outcome(steps, copies)


@entry(
    "X07",
    course="000",
    printed="example 9",
    title="Summed and averaged losses",
    claims=[
        Number(
            "error with summed losses",
            3874.4,
            tolerance=0.05,
            unprinted="mean(y^2), where the output is 0",
        ),
        Number(
            "error with averaged losses",
            154.6,
            tolerance=0.05,
            unprinted="the course's program, mended, in PyTorch",
        ),
        Number("error of the best line", 152.5, tolerance=0.05, unprinted="least squares"),
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
        Number("(w, b)", (17.1042, 23.7503), tolerance=5e-4, unprinted="least squares"),
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
def iris_accuracy(seeds: int = 20) -> Outcome:
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
)
def vanishing_gradients(seeds: int = 40, epochs: int = 300) -> Outcome:
    """Ten layers of five units, many seeds: gradients vanish with tanh, and with ReLU, too.

    One run of each cannot tell them apart: whether a network learns depends on its seed. That ReLU
    prevents it at all layers does not hold: a sixth of its networks is dead at the start, in the
    others the first layer gets a smaller share of the gradient than with tanh, and fewer than half
    have learned after the 300 epochs of the course.
    """
    return training.vanishing_outcome(seeds, epochs)


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

"""Examples 9 to 15 of course 000: one neuron, and seven ways to train it."""

from __future__ import annotations

from chainrule import charts
from chainrule.atlas import Number, Outcome, Statement, entry
from chainrule.atlas.course.ex09_x07_exponential import exponential, line_error, neuron, train
from chainrule.atlas.course.ex10_ex15_optimizers import EXAMPLES, parabola

LINE = "error over that of the best line"
FALL = "first error over last"


def outcome(name: str, epochs: int) -> Outcome:
    """How near an optimizer comes to the best line, with its curve beside that of plain SGD."""
    curves: dict[str, list[float]] = {}
    for each in dict.fromkeys(["9 SGD", name]):
        h_theta = neuron(0)
        curves[each] = train(EXAMPLES[each](h_theta.parameters()), h_theta, epochs)
    line = line_error(*exponential())
    ax = charts.axes_for(None)
    what = " against ".join(each.partition(" ")[2] for each in reversed(curves))
    for k, (each, errors) in enumerate(curves.items()):
        ax.plot(errors, color=charts.COLORS[k], label=each.partition(" ")[2])
    ax.axhline(line, color="gray", linestyle="--", label="best line")
    ax.set(title=f"One neuron, {what}", xlabel="epoch", ylabel="mean squared error", yscale="log")
    charts.plain_log_ticks(ax)
    ax.legend()
    errors = curves[name]
    return Outcome({LINE: errors[-1] / line, FALL: errors[0] / errors[-1]}, [ax])


FALLS = Statement(FALL, "the error falls", at_least=1.0)
ARRIVES = Statement(LINE, "linear regression: it finds the best line", at_most=1.2)


@entry(
    "EX09",
    course="000",
    printed="example 9",
    title="Stochastic gradient descent, written as a loop",
    claims=[
        ARRIVES,
        FALLS,
        Number(
            "error after 30 epochs",
            154.6,
            tolerance=0.05,
            unprinted="the course's program, mended, in PyTorch",
        ),
    ],
)
def descent(epochs: int = 1000) -> Outcome:
    """A neuron with SiLU learns noisy points of an exponential, ten at a time.

    Where the points are, SiLU is nearly a line, so the best it can do is the best line. With the
    mean of the losses of a batch it is there after a few of the 1000 epochs.
    """
    found = outcome("9 SGD", epochs)
    h_theta = neuron(0)
    last = train(EXAMPLES["9 SGD"](h_theta.parameters()), h_theta, 30)[-1]
    return Outcome({**found.obtained, "error after 30 epochs": last}, found.pictures)


@entry(
    "EX10",
    course="000",
    printed="example 10",
    title="Classical momentum",
    claims=[ARRIVES, FALLS, Statement("w on w^2 / 2 after 30 steps", "it converges", -0.01, 0.01)],
)
def momentum(epochs: int = 1000) -> Outcome:
    """A velocity that keeps half of itself: steps in one direction become twice as long.

    The momentum is 0.5 itself. Divided by the rate, as the course has it, every velocity would be
    five times the last.
    """
    found = outcome("10 momentum", epochs)
    return Outcome({**found.obtained, "w on w^2 / 2 after 30 steps": parabola(0.5)}, found.pictures)


@entry(
    "EX11",
    course="000",
    printed="example 11",
    title="Nesterov's momentum",
    claims=[ARRIVES, FALLS],
)
def nesterov(epochs: int = 1000) -> Outcome:
    """The gradient is taken where the velocity is about to lead.

    With a momentum of 0.9 and a rate of 0.1 the steps are long: the error circles a little above
    that of the best line, because the rate stays as it is.
    """
    return outcome("11 Nesterov", epochs)


@entry(
    "EX12",
    course="000",
    printed="example 12",
    title="AdaGrad",
    claims=[ARRIVES, FALLS],
)
def adagrad(epochs: int = 1000) -> Outcome:
    """Each step is divided by the root of all squared gradients so far.

    They only grow, so the steps only shrink: with the rate of the course, 0.1, it is still on its
    way after its thousand epochs, with seven times the error of the best line.
    """
    return outcome("12 AdaGrad", epochs)


@entry(
    "EX13",
    course="000",
    printed="example 13",
    title="RMSprop",
    claims=[ARRIVES, FALLS],
)
def rmsprop(epochs: int = 1000) -> Outcome:
    """An average of squares instead of their sum forgets what was long ago.

    The steps keep their length of about the rate, so it goes down evenly, and arrives before the
    hundredth epoch.
    """
    return outcome("13 RMSprop", epochs)


@entry(
    "EX14",
    course="000",
    printed="example 14",
    title="Adadelta",
    claims=[ARRIVES, FALLS],
)
def adadelta(epochs: int = 1000) -> Outcome:
    """Steps as long as the last ones were, which start from next to nothing.

    With the rate of 0.1 and the epsilon of 1e-8 of the course the first steps are tiny, and its
    thousand epochs hardly move the neuron: it does not come near the best line.
    """
    return outcome("14 Adadelta", epochs)


@entry(
    "EX15",
    course="000",
    printed="example 15",
    title="Adam",
    claims=[ARRIVES, FALLS],
)
def adam(epochs: int = 1000) -> Outcome:
    """Averages of gradients and of their squares, both corrected for their start at 0.

    Each weight moves by about the rate per step, whatever the size of its gradient.
    """
    return outcome("15 Adam", epochs)

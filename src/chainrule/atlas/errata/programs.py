"""The programs of course 000, as they are printed and mended."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import chainrule
from chainrule import Tensor, charts, inspect, nn, optim
from chainrule.atlas import Forms, Number, Outcome, Unchecked, Wrong, attempt, entry
from chainrule.atlas.course import (
    ex07_rnn,
    ex09_x07_exponential,
    ex10_ex15_optimizers,
    ex17_x08_gradient_descent,
    ex18_x09_iris,
    ex19_x10_vanishing,
)
from chainrule.atlas.course.ex01_neuron import Neurons


class _AsPrinted(nn.Module):
    """The sizes go to ``super().__init__`` and names in ``forward`` were never given."""

    def __init__(self, x_size: int, h_channels: int):
        super().__init__(x_size, h_channels)  # type: ignore[call-arg]

    def forward(self, x: Tensor) -> Tensor:
        return self.g1(self.a1(x))


@entry(
    "ERR047",
    course="000",
    printed="examples 1-2",
    title="A module takes its sizes in its own __init__",
    claims=[
        Wrong(
            "shape for five images", "super().__init__(x_size, ...)", "__init__(self, x_size)", 0.5
        )
    ],
)
def own_module() -> Outcome:
    """``nn.Module.__init__`` has no sizes; they are arguments of the class that is written.

    As printed the module cannot be made, and its ``forward`` names layers that do not exist. Mended
    it turns five images into five rows of ten features.
    """
    images = chainrule.rand(5, 784)
    printed = attempt(lambda: _AsPrinted(784, 10)(images).shape)
    return Outcome({"shape for five images": Forms(printed, Neurons()(images).shape, (5, 10))})


@entry(
    "ERR048",
    course="000",
    printed="example 5",
    title="Poolings have no channels to be told",
    claims=[
        Wrong(
            "size behind average pooling", "AvgPool2d(in_channels=3, ...)", "AvgPool2d(...)", 0.5
        ),
        Wrong("size behind max pooling", "MaxPool2d(in_channels=3, ...)", "MaxPool2d(...)", 0.5),
    ],
)
def pooling_arguments() -> Outcome:
    """A pooling treats each channel alone and keeps their number, whatever it is.

    So there is no argument for it, and giving one is an error.
    """
    image = chainrule.rand(1, 3, 8, 8)

    def forms(kind: Any) -> Forms:
        printed = attempt(lambda: kind(kernel_size=2, in_channels=3)(image).shape)
        return Forms(printed, kind(kernel_size=2)(image).shape, (1, 3, 4, 4))

    return Outcome(
        {
            "size behind average pooling": forms(nn.AvgPool2d),
            "size behind max pooling": forms(nn.MaxPool2d),
        }
    )


@entry(
    "ERR049",
    course="000",
    printed="example 6",
    title="The network that is saved has the name it was given",
    claims=[
        Wrong("tensors in the file", "net.state_dict()", "h_theta.state_dict()", tolerance=0.5)
    ],
)
def saved_network() -> Outcome:
    """The program trains ``h_theta`` and saves ``net``, which does not exist.

    Saved under its own name the state has the ten tensors of five layers and comes back whole.
    (The printed program also writes it after every epoch, over the last one.)
    """
    h_theta = nn.Sequential(*(nn.Linear(4, 4) for _ in range(5)))
    names = {"h_theta": h_theta}
    with TemporaryDirectory() as folder:
        file = Path(folder) / "weights"
        chainrule.save(h_theta.state_dict(), file)
        truth = len(chainrule.load(file))
    return Outcome(
        {
            "tensors in the file": Forms(
                attempt(lambda: len(names["net"].state_dict())), len(h_theta.state_dict()), truth
            )
        }
    )


@entry(
    "ERR050",
    course="000",
    printed="example 9",
    title="A loop that counts, and losses that are averaged",
    claims=[
        Wrong(
            "error of the neuron after 30 epochs", "summed losses", "mean losses", tolerance=10.0
        ),
        Wrong("epochs counted after three rounds", "no i += 1", "i += 1", tolerance=0.5),
        Number(
            "error with summed losses: the neuron is dead",
            3874.4,
            tolerance=0.05,
            unprinted="mean(y^2), where the output is 0",
        ),
    ],
)
def example_9(epochs: int = 30) -> Outcome:
    """One neuron with SiLU, a rate of 0.1, and ten losses added up: steps ten times too long.

    The first steps throw the neuron to where SiLU is flat; from then on its output is 0 for every
    x and no gradient brings it back. With the mean it comes close to the best line, which is all
    that it can do. And as printed the loop does not count its rounds, so it never ends.
    """
    errors = {}
    for reduction in ("sum", "mean"):
        neuron = ex09_x07_exponential.neuron(0)
        optimizer = optim.SGD(neuron.parameters(), lr=0.1)
        errors[reduction] = ex09_x07_exponential.train(optimizer, neuron, epochs, reduction)
    line = ex09_x07_exponential.line_error(*ex09_x07_exponential.exponential())
    ax = charts.axes_for(None)
    for k, (reduction, values) in enumerate(errors.items()):
        ax.semilogy(values, color=charts.COLORS[1 - k], label=f"{reduction} of the losses")
    ax.axhline(line, color="gray", linestyle="--", label="best line")
    ax.set(title="One neuron, by sums and by means", xlabel="epoch", ylabel="mean squared error")
    ax.legend()
    stuck = counted = 0
    for _ in range(3):
        stuck, counted = stuck, counted + 1
    return Outcome(
        {
            "error of the neuron after 30 epochs": Forms(
                errors["sum"][-1], errors["mean"][-1], line
            ),
            "epochs counted after three rounds": Forms(stuck, counted, 3),
            "error with summed losses: the neuron is dead": errors["sum"][-1],
        },
        [ax],
    )


@entry(
    "ERR051",
    course="000",
    printed="example 10",
    title="PyTorch's momentum is gamma itself",
    claims=[
        Wrong("w on w^2 / 2 after 30 steps", "momentum = 0.5 / eta = 5", "momentum = 0.5", 0.1),
    ],
)
def example_10() -> Outcome:
    """The momentum is a share between 0 and 1; divided by the rate it is 5.

    Then every velocity is five times the last, and the weight is at -1.4e19 after thirty steps
    instead of at the minimum 0. PyTorch's velocity has no rate in it, so nothing is to be divided.
    """
    forms = Forms(ex10_ex15_optimizers.parabola(5.0), ex10_ex15_optimizers.parabola(0.5), 0.0)
    return Outcome({"w on w^2 / 2 after 30 steps": forms})


@entry(
    "ERR052",
    course="000",
    printed="example 17",
    title="Names that exist, and one name for one thing",
    claims=[
        Wrong("(w, b) after 1000 epochs", "device, a and b as printed", "mended", tolerance=5e-4),
        Number(
            "(w, b) of the mended program",
            (17.1042, 23.7503),
            tolerance=5e-4,
            unprinted="least squares",
        ),
    ],
)
def example_17() -> Outcome:
    """The program moves tensors to ``device``, which it never sets, and prints ``a``, which is not
    there; ``b`` is the data first and then the offset.

    With names that exist, descent finds the line of least squares, which a closed form gives, too.
    """
    names: dict[str, Any] = {}
    found = ex17_x08_gradient_descent.main()
    printed = attempt(lambda: chainrule.ones(2, device=names["device"]))
    right, truth = found["found"], found["least squares"]
    return Outcome(
        {
            "(w, b) after 1000 epochs": Forms(printed, right, truth),
            "(w, b) of the mended program": right,
        }
    )


def parameters(*sizes: int) -> int:
    """Weights and offsets of linear layers of these sizes."""
    return sum((a + 1) * b for a, b in pairwise(sizes))


@entry(
    "ERR053",
    course="000",
    printed="example 18",
    title="How many hidden layers the classifier of irises has",
    claims=[
        Wrong("parameters of the program's network", "two hidden, 4 and 8", "one hidden of 8", 0.5)
    ],
)
def example_18() -> Outcome:
    """The text speaks of hidden layers of 4 and 8 units; the program has one, of 8.

    Its parameters tell: 4 inputs, 8 units and 3 classes have 67, and another layer would have more.
    """
    net = ex18_x09_iris.network()
    count = sum(p.numel() for p in net.parameters())
    forms = Forms(parameters(4, 4, 8, 3), parameters(4, 8, 3), count)
    return Outcome(
        {"parameters of the program's network": forms}, [inspect.draw(net, chainrule.zeros(1, 4))]
    )


@entry(
    "ERR054",
    course="000",
    printed="example 19",
    title="An activation is a module, and there is one behind every layer",
    claims=[
        Wrong("tanh of 0.5", "nn.tanh()", "nn.Tanh()", tolerance=1e-6),
        Wrong("activations in ten layers", "added behind the loop", "added in the loop", 0.5),
    ],
)
def example_19() -> Outcome:
    """``nn.tanh`` does not exist: the module is ``nn.Tanh``, the function ``functional.tanh``.

    And added once behind the loop there would be one activation for ten layers, which are one
    linear map then, however deep.
    """
    half = chainrule.tensor(0.5)
    net = ex19_x10_vanishing.network(nn.Tanh)
    counted = sum(isinstance(m, nn.Tanh) for m in net)
    return Outcome(
        {
            "tanh of 0.5": Forms(
                attempt(lambda: nn.tanh()(half)),
                nn.Tanh()(half),
                math.tanh(0.5),
            ),
            "activations in ten layers": Forms(1, ex19_x10_vanishing.HIDDEN, counted),
        }
    )


@entry(
    "ERR055",
    course="000",
    printed="section 3.4.5",
    title="Where SGDW is found",
    claims=[
        Unchecked(
            "SGDW in PyTorch",
            "PyTorch offers SGDW",
            "what another library has is not computed: torch.optim 2.13 has none; this library has",
        )
    ],
)
def sgdw() -> Outcome:
    """Decoupled decay for plain descent: the step of SGD, and a share eta lambda of the weight off.

    PyTorch has it for Adam (AdamW) and not for SGD. Here ``optim.SGDW`` is compared with SGD: with
    no gradient at all the weight shrinks by 1 - eta lambda in each step.
    """
    w = chainrule.tensor(1.0, requires_grad=True)
    optimizer = optim.SGDW([w], lr=0.1, weight_decay=0.5)
    places = [1.0]
    for _ in range(30):
        w.grad = chainrule.tensor(0.0)
        optimizer.step()
        places.append(w.item())
    ax = charts.axes_for(None)
    ax.plot(places, "o", color=charts.COLORS[0], label="SGDW without a gradient")
    ax.plot([0.95**k for k in range(31)], color=charts.COLORS[1], label="(1 - eta lambda)^t")
    ax.set(title="Decay alone", xlabel="step", ylabel="weight")
    ax.legend()
    return Outcome({}, [ax])


@entry(
    "ERR056",
    course="000",
    printed="examples 7-8",
    title="Two programs that are announced and missing",
    claims=[
        Unchecked(
            "programs of examples 7 and 8",
            "a recurrent network and an LSTM in PyTorch",
            "there is nothing printed to compute with; the library has programs in their place",
        )
    ],
)
def missing_programs(steps: int = 60) -> Outcome:
    """The text announces a recurrent network and an LSTM as programs, and prints neither.

    In their place the library has two that learn the running mean of a series, which needs a
    memory; the curves show both learning it.
    """
    ax = charts.axes_for(None)
    for k, kind in enumerate((nn.RNN, nn.LSTM)):
        chainrule.manual_seed(0)
        net = ex07_rnn.Net(kind)
        x, y = ex07_rnn.series()
        optimizer = optim.Adam(net.parameters(), lr=0.01)
        losses = []
        for _ in range(steps):
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(net(x), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        ax.semilogy(losses, color=charts.COLORS[k], label=kind.__name__)
    ax.set(title="Learning a running mean", xlabel="step", ylabel="mean squared error")
    ax.legend()
    return Outcome({}, [ax])

"""Data that networks are to learn: a radial function, noisy curves, a building that shakes."""

from __future__ import annotations

import math

import chainrule
from chainrule import Generator, Tensor, charts, inspect, nn, optim, problems
from chainrule.atlas import Number, Outcome, Statement, entry
from chainrule.atlas.course.ex09_x07_exponential import (
    ETA,
    all_points,
    line_error,
    neuron,
    train,
)


def _way(angle: float) -> Tensor:
    """The unit vector of a direction."""
    return chainrule.tensor([[math.cos(angle), math.sin(angle)]], dtype=chainrule.float64)


@entry(
    "V45",
    course="000",
    printed="fig. 12-13; 003, hands-on 1",
    title="A radial target and its samples",
    claims=[
        Number(
            "training and test samples",
            (2800, 1200),
            tolerance=0.5,
            unprinted="70 % and 30 % of 4000",
        ),
        Statement("largest coordinate of a sample", "uniform over [-10, 10]^2", at_most=10.0),
        Statement(
            "distance of coordinates from uniform ones, over its 1 % limit",
            "uniformly sampled",
            at_most=1.0,
        ),
        Statement("distance of the peak from 0", "the function peaks in x = 0", at_most=1e-9),
        Statement(
            "largest difference after turns, over the peak",
            "it is symmetric by revolution",
            at_most=1e-12,
        ),
        Statement(
            "changes of sign from 0 to 10 along a ray", "it has high-frequency waves", at_least=3
        ),
    ],
)
def radial_target(points: int = 61) -> Outcome:
    """A peak with rings around it: the value depends on the distance from 0 alone.

    It is the Fourier transform of a disk of radius 0.2. The peak is 0.126 high, which is the area
    of the disk, and the first ring below 0 is less than a seventh of that; so few of the 4000
    samples lie on the peak (about 3 in 100 within a distance of 2), and a network that gives 0
    everywhere is not far off on most of them. That is why samples have to be chosen with care.
    """
    problem = problems.radial_bessel(4000, generator=Generator().manual_seed(0))
    (x, y), (x_test, y_test) = problem.split(0.7, generator=Generator().manual_seed(0))
    every = chainrule.cat([x, x_test]).double()
    ordered = (every / 20 + 0.5).sort(0).values
    ranks = (chainrule.arange(len(every), dtype=chainrule.float64) + 0.5) / len(every)
    gap = float((ordered - ranks.unsqueeze(1)).abs().max()) + 0.5 / len(every)

    seen = inspect.surface(
        problems.radial_function, (-10, 10), (-10, 10), points=points, title="The target"
    )
    seen.labels = "x1", "x2"
    i, j = divmod(int(seen.values.argmax()), points)
    ray = chainrule.linspace(0, 10, 1001, dtype=chainrule.float64)
    along = chainrule.stack([ray, chainrule.zeros_like(ray)], 1)
    straight = problems.radial_function(along)
    turned = [problems.radial_function(ray.unsqueeze(1) * _way(a)) for a in (0.3, 1.1, 2.5, 4.0)]
    shown = inspect.regions(problems.radial_function, x[:700], y[:700, 0], points=points)
    flat = shown.plot(charts.axes_for(None, (5.0, 4.2)))
    flat.set_title("The target, and 700 of 2800 training samples", fontsize=10)
    flat.set(xlabel="x1", ylabel="x2")
    raised = seen.plot(kind="surface", rcount=points, ccount=points)
    raised.set_zlabel("value")
    return Outcome(
        {
            "training and test samples": (len(y), len(y_test)),
            "largest coordinate of a sample": float(every.abs().max()),
            "distance of coordinates from uniform ones, over its 1 % limit": (
                gap * math.sqrt(len(every)) / 1.63  # Kolmogorov and Smirnov
            ),
            "distance of the peak from 0": math.hypot(float(seen.x[j]), float(seen.y[i])),
            "largest difference after turns, over the peak": max(
                float((t - straight).abs().max() / straight[0]) for t in turned
            ),
            "changes of sign from 0 to 10 along a ray": int(
                (straight[1:] * straight[:-1] < 0).sum()
            ),
        },
        [raised, flat],
    )


def example_9() -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """The points of example 9, NumPy's numbers for seed 42: four fifths to train with, the rest."""
    x, y = all_points(10.1542550, 2.34, 10.154988)
    return (x[:160], y[:160]), (x[160:], y[160:])


@entry(
    "V46",
    course="000",
    printed="example 9; 001, a simple example",
    title="Noisy points, split, and a fit through them",
    claims=[
        Number("training and validation points", (160, 40), tolerance=0.5),
        Number("noise that the points have around the true curve", 10.154988, tolerance=1.0),
        Statement(
            "error of the neuron over that of the best line, training",
            "descent fits a neuron to the training points",
            at_most=1.1,
        ),
        Number("points of the line of course 001", 30, tolerance=0.5),
        Statement("largest distance of one from 3 x + 2", "noise from U(-0.1, 0.1)", at_most=0.1),
    ],
    full={"epochs": 1000},
)
def regression_data(epochs: int = 60) -> Outcome:
    """Two hundred points of a noisy exponential, of which 40 are kept from the training.

    A neuron with SiLU, whose answers are nearly a line where they are positive, is fitted to the
    160 others by descent in small batches. The validation points show what the fit is worth for
    new points: the errors on both are alike, so nothing was learned by heart, and both are a little
    above the noise, 10.2, because the curve is no line. Below are the thirty points of the other
    course, whose truth is a line, with the line of least squares.
    """
    (x, y), (x_new, y_new) = example_9()
    net = neuron(0)
    train(optim.SGD(net.parameters(), lr=ETA), net, epochs)
    upper, lower = charts.grid_of_axes(None, 2, 1, (5.4, 3.3))
    seen = inspect.regression_fit(net, x, y[:, 0], validation=(x_new, y_new[:, 0]))
    seen.plot(upper)
    upper.set_title(f"An exponential, one neuron, {epochs} epochs")
    line = problems.line(generator=Generator().manual_seed(0))
    weight, bias, _ = optim.least_squares(line.inputs, line.targets)
    inspect.regression_fit(
        lambda t: nn.functional.linear(t, weight, bias), line.inputs, line.targets[:, 0]
    ).plot(lower)
    lower.set_title("y = 3 x + 2 + U(-0.1, 0.1), thirty points")
    every_x, every_y = chainrule.cat([x, x_new]).double(), chainrule.cat([y, y_new]).double()
    residual = every_y - 14.7351129 - 10.1542550 * (2.34 * every_x).exp()
    return Outcome(
        {
            "training and validation points": (len(x), len(x_new)),
            "noise that the points have around the true curve": float(residual.std()),
            "error of the neuron over that of the best line, training": (
                seen.rmse["training"] ** 2 / line_error(x, y)
            ),
            "points of the line of course 001": len(line.inputs),
            "largest distance of one from 3 x + 2": float(
                (line.targets - 3 * line.inputs - 2).abs().max()
            ),
        },
        [[upper, lower]],
    )


def network_of(floors: int, hidden: int) -> nn.Module:
    """An LSTM over the motion of the ground, with one output for every floor."""

    class Recurrent(nn.Module):
        """The state after every step, made into displacements."""

        def __init__(self) -> None:
            super().__init__()
            self.lstm = nn.LSTM(1, hidden, batch_first=True)
            self.head = nn.Linear(hidden, floors)

        def forward(self, ground: Tensor) -> Tensor:
            """Displacements at all steps."""
            return self.head(self.lstm(ground)[0])

    return Recurrent()


def explained(answer: Tensor, truth: Tensor) -> float:
    """The share of the motion's variance that the answer explains."""
    return 1 - float(((answer - truth) ** 2).mean() / ((truth - truth.mean()) ** 2).mean())


@entry(
    "V52",
    course="003",
    printed="predict the non-linear response of a MDOF with LSTM",
    title="An LSTM predicts how a building shakes",
    claims=[
        Statement(
            "share of the motion explained, earthquakes never seen",
            "an LSTM predicts the response",
            at_least=0.9,
        ),
        Statement(
            "that of a linear filter with a memory of 3 s, less that of the LSTM",
            "the response is not linear, and an LSTM keeps states",
            at_most=-0.1,
        ),
        Statement(
            "displacement at twice the ground motion over twice that at once, farthest from 1",
            "the response is not linear",
            at_least=0.1,
        ),
    ],
    full={"motions": 512, "steps": 500, "dt": 0.02, "updates": 4000, "hidden": 64},
)
def shaking_building(
    motions: int = 256,
    steps: int = 100,
    dt: float = 0.05,
    updates: int = 800,
    hidden: int = 24,
    seed: int = 0,
) -> Outcome:
    """A building of three floors whose stories yield, under the motion of the ground.

    Each story is a spring that yields (the model of Bouc and Wen): once pushed too far it stays
    where it is, so the same push has another effect later, and twice the push not twice the effect.
    A recurrent network reads the acceleration of the ground step by step and answers with the
    displacement of every floor; its state has to remember where the stories stayed. It was trained
    on some earthquakes and is shown with one of 32 that it never saw. A linear filter, fitted to
    the same data, has no such memory.
    """
    data = problems.bouc_wen(motions, steps, dt, generator=Generator().manual_seed(0))
    # From a stream of their own: the settings were found on others.
    new = problems.bouc_wen(32, steps, dt, generator=Generator().manual_seed(1000))
    scale, size = data.targets.std(), data.inputs.std()
    x = chainrule.cat([data.inputs, new.inputs]) / size
    y = chainrule.cat([data.targets, new.targets]) / scale
    chainrule.manual_seed(seed)
    net = network_of(3, hidden)
    optimizer = optim.Adam(net.parameters(), lr=0.02)
    schedule = optim.lr_scheduler.CosineAnnealingLR(optimizer, updates)
    for _ in range(updates):
        chosen = chainrule.randperm(motions)[:16]
        optimizer.zero_grad()
        nn.functional.mse_loss(net(x[chosen]), y[chosen]).backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    with chainrule.no_grad():
        answer = net(x[motions:])
    filtered = linear_filter(x[:, :, 0], y, motions, round(3 / dt))
    once, twice = (
        problems.bouc_wen_response(f * data.inputs[:4, :, 0].double(), dt)[0].abs().amax((1, 2))
        for f in (1, 2)
    )
    share = explained(answer, y[motions:])
    axes = charts.grid_of_axes(None, 3, 1, (5.8, 2.3))
    t = [dt * i for i in range(steps)]
    for floor, ax in enumerate(axes):
        lines = {"truth": (y[motions:], "black"), "LSTM": (answer, charts.COLORS[1])}
        for name, (values, color) in lines.items():
            style = "-" if name == "truth" else "--"
            ax.plot(t, (values[0, :, floor] * scale).numpy(), style, color=color, label=name)
        ax.set(title=f"Floor {floor + 1}", xlabel="time, s", ylabel="mm")
    axes[0].legend()
    return Outcome(
        {
            "share of the motion explained, earthquakes never seen": share,
            "that of a linear filter with a memory of 3 s, less that of the LSTM": (
                explained(filtered, y[motions:]) - share
            ),
            "displacement at twice the ground motion over twice that at once, farthest from 1": (
                float((twice / (2 * once) - 1).abs().max())
            ),
        },
        [axes],
        note=f"{motions} synthetic earthquakes to train with, 32 others to test: the course gives "
        "none. Forces follow the usual |f|^n, not the printed |f|^(n-1), erratum 95.",
    )


def linear_filter(x: Tensor, y: Tensor, motions: int, memory: int) -> Tensor:
    """What weights on the last steps, fitted to the first motions, say of the other motions."""
    padded = chainrule.cat([chainrule.zeros(len(x), memory - 1), x], 1)
    past = padded.unfold(1, memory, 1).double()
    seen = past[:motions].reshape(-1, memory)
    gram = seen.mT @ seen + 1e-3 * len(seen) * chainrule.eye(memory, dtype=seen.dtype)
    weights = chainrule.linalg.solve(gram, seen.mT @ y[:motions].double().reshape(len(seen), -1))
    return (past[motions:] @ weights).float()

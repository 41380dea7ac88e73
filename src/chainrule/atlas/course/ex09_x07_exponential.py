"""Example 9 of document 000 (X07): one neuron with SiLU learns a noisy exponential by SGD.

Mended (erratum 50): the number of the epoch grows, and a batch's losses are averaged. As printed,
the loop never ends and the losses of a batch are added up, which with a rate of 0.1 is ten times
too long a step: the neuron is thrown to where SiLU is flat and gives 0 for every x from then on.
"""

from __future__ import annotations

import numpy as np

import chainrule
from chainrule import Tensor, nn, optim
from chainrule.atlas.course.course_table import show, spread

ETA = 0.1
BATCH = 10


def all_points(a: float, c: float, noise: float) -> tuple[Tensor, Tensor]:
    """200 points of y = 14.735 + a e^{c x} + noise, in their order: NumPy's numbers for seed 42."""
    stream = np.random.RandomState(42)
    x = stream.rand(200, 1)
    y = 14.7351129 + a * np.exp(c * x) + noise * stream.randn(200, 1)
    index = np.arange(200)
    stream.shuffle(index)
    return chainrule.from_numpy(x[index]).float(), chainrule.from_numpy(y[index]).float()


def points(a: float, c: float, noise: float) -> tuple[Tensor, Tensor]:
    """The 160 of them that are trained with."""
    x, y = all_points(a, c, noise)
    return x[:160], y[:160]


def exponential() -> tuple[Tensor, Tensor]:
    """The points of example 9."""
    return points(10.1542550, 2.34, 10.154988)


def line_error(x: Tensor, y: Tensor) -> float:
    """The mean squared error of the best line: what a neuron that is linear here can reach."""
    x, y = x.double(), y.double()
    weight, bias, _ = optim.least_squares(x, y)
    return nn.functional.mse_loss(nn.functional.linear(x, weight, bias), y).item()


def train(
    optimizer: optim.Optimizer, h_theta: nn.Module, epochs: int, reduction: str = "mean"
) -> list[float]:
    """The mean squared error on the training points after every epoch."""
    x, y = exponential()
    loss_fn = nn.MSELoss(reduction=reduction)
    errors = []
    i = 0
    while i < epochs:
        for j in range(0, len(x), BATCH):
            optimizer.zero_grad()
            loss_fn(h_theta(x[j : j + BATCH]), y[j : j + BATCH]).backward()
            optimizer.step()
        with chainrule.no_grad():
            errors.append(nn.functional.mse_loss(h_theta(x), y).item())
        i += 1
    return errors


def neuron(seed: int) -> nn.Module:
    """One neuron with SiLU."""
    chainrule.manual_seed(seed)
    return nn.Sequential(nn.Linear(1, 1), nn.SiLU())


def main(epochs: int = 30, seeds: int = 10) -> dict[str, list[float]]:
    """The last errors of all starts, with the sum and with the mean of the losses."""
    x, y = exponential()
    line, zero = line_error(x, y), (y.double() ** 2).mean().item()
    last: dict[str, list[float]] = {}
    for reduction in ("sum", "mean"):
        last[reduction] = []
        for seed in range(seeds):
            h_theta = neuron(seed)
            optimizer = optim.SGD(h_theta.parameters(), lr=ETA)
            last[reduction].append(train(optimizer, h_theta, epochs, reduction)[-1])
    dead = sum(abs(e - zero) < 1e-3 * zero for e in last["sum"])
    mean, std = spread(last["mean"])
    show(
        f"Example 9: mean squared error after {epochs} epochs, {seeds} starts",
        ("loss of a batch", "PyTorch", "obtained", "remark"),
        [
            (
                "sum, as printed",
                "3874.4",
                f"{spread(last['sum'])[0]:.1f}",
                f"{dead} of {seeds} dead: output 0, error mean(y^2) = {zero:.1f}",
            ),
            ("mean, mended", "154.6", f"{mean:.1f} +- {std:.1f}", "alive"),
            ("best line", "152.5", f"{line:.1f}", "least squares"),
        ],
    )
    return {**last, "line": [line], "zero": [zero]}


if __name__ == "__main__":
    main()

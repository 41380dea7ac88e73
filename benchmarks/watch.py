"""What looking costs: a training step with and without ``inspect.Watch`` at its default interval,
and what a reading of ``inspect.Cockpit`` adds to each step of its own.

The two take turns, each of a whole interval, so that every turn has one step that is looked at. The
second number is steadier on a busy machine: what one look adds, spread over the interval. Wanted:
below 5 % of a step for watching; curvature has no limit, but is told.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

import chainrule
from chainrule import inspect, models, nn, optim
from chainrule.inspect.training.cockpit import EVERY as EVERY_READING
from chainrule.inspect.training.watch import EVERY
from chainrule.nn import functional as F

__all__ = ["mlp", "one_look", "one_reading", "recurrent", "turns"]

WANTED = 1.05
Step = Callable[[], object]


class Training(NamedTuple):
    """A model that learns a batch, step by step."""

    model: nn.Module
    optimizer: optim.Optimizer
    step: Step
    loss: Callable[..., Any]
    batch: tuple[Any, Any]


Make = Callable[[], Training]


def _training(model: nn.Module, x: Any, y: Any, loss: Callable[..., Any]) -> Training:
    optimizer = optim.Adam(model.parameters())

    def step() -> None:
        optimizer.zero_grad()
        loss(model(x), y).backward()
        optimizer.step()

    return Training(model, optimizer, step, loss, (x, y))


def small(batch: int = 32) -> Training:
    """A perceptron for a table, whose Hessian is formed as a whole."""
    x, y = chainrule.randn(batch, 13), chainrule.randint(0, 3, (batch,))
    return _training(models.MLP(13, [16, 16], 3), x, y, F.cross_entropy)


def mlp(batch: int) -> Training:
    """The perceptron for MNIST."""
    x, y = chainrule.randn(batch, 784), chainrule.randint(0, 10, (batch,))
    return _training(models.MLP(784, [512, 512, 512], 10), x, y, F.cross_entropy)


class Sequence(nn.Module):
    """An LSTM with a linear layer on its last state."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.head = nn.LSTM(1, 64, batch_first=True), nn.Linear(64, 1)

    def forward(self, x: Any) -> Any:
        return self.head(self.lstm(x)[0][:, -1])


def recurrent() -> Training:
    """100 steps of an LSTM of 64 units, batch 32."""
    x, y = chainrule.randn(32, 100, 1), chainrule.randn(32, 1)
    return _training(Sequence(), x, y, F.mse_loss)


def turns(make: Make, repeats: int = 11) -> tuple[float, float]:
    """Seconds per step without and with watching: medians over turns that alternate."""
    chainrule.manual_seed(0)
    model, optimizer, step, *_ = make()
    for _ in range(10):
        step()
    spent: dict[bool, list[float]] = {False: [], True: []}
    for _ in range(repeats):
        for watched in (False, True):
            seen = inspect.Watch()
            if watched:
                seen.attach(model, optimizer)
            gc.collect()
            start = perf_counter()
            for _ in range(EVERY):
                step()
            spent[watched].append((perf_counter() - start) / EVERY)
            seen.detach()
    return median(spent[False]), median(spent[True])


def one_look(make: Make, repeats: int = 31) -> float:
    """What a look adds to a step, over the interval: a share of a step."""
    chainrule.manual_seed(0)
    model, optimizer, step, *_ = make()
    seen = inspect.Watch()
    spent: dict[bool, list[float]] = {False: [], True: []}
    for i in range(repeats):
        for watched in (False, True):
            gc.collect()
            start = perf_counter()
            if watched:
                seen.attach(model, optimizer)
            step()
            if watched:
                seen.detach()
                seen.step_number = 0  # so that the next is looked at again
            if i:
                spent[watched].append(perf_counter() - start)
    alone = median(spent[False])
    return (median(spent[True]) - alone) / alone / EVERY


def one_reading(make: Make, repeats: int = 3) -> tuple[float, float]:
    """Seconds of a reading of the cockpit, and its share of the interval of steps."""
    chainrule.manual_seed(0)
    model, optimizer, step, loss, batch = make()
    for _ in range(10):
        step()
    alone, read = [], []
    for _ in range(repeats):
        start = perf_counter()
        for _ in range(10):
            step()
        alone.append((perf_counter() - start) / 10)
        with inspect.Cockpit(model, loss, batch, optimizer):
            start = perf_counter()
            step()
            read.append(perf_counter() - start)
    seconds = median(read) - median(alone)
    return seconds, seconds / (EVERY_READING * median(alone))


def main() -> None:
    """Prints a table."""
    print(f"watching everything every {EVERY} steps (wanted: below {WANTED:.2f})")
    for title, make in (
        ("MLP 784-512-512-512-10, batch 128, Adam", lambda: mlp(128)),
        ("MLP 784-512-512-512-10, batch 64, Adam", lambda: mlp(64)),
        ("LSTM 1-64, 100 steps, batch 32, Adam", recurrent),
    ):
        alone, watched = turns(make)
        print(
            f"{title:<42} alone {alone * 1e6:8.0f} us  watched {watched * 1e6:8.0f} us  "
            f"ratio {watched / alone:5.3f}  one look {one_look(make):5.1%} of the interval"
        )
    print(f"reading the cockpit every {EVERY_READING} steps")
    for title, make in (
        ("MLP 13-16-16-3, batch 32, Adam", small),
        ("LSTM 1-64, 100 steps, batch 32, Adam", recurrent),
        ("MLP 784-512-512-512-10, batch 64, Adam", lambda: mlp(64)),
    ):
        seconds, share = one_reading(make)
        print(f"{title:<42} a reading {seconds:7.3f} s, {share:.0%} of the interval")


if __name__ == "__main__":
    main()

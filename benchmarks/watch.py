"""What watching costs: a training step with and without ``inspect.Watch`` at its default interval.

The two take turns, each of a whole interval, so that every turn has one step that is looked at. The
second number is steadier on a busy machine: what one look adds, spread over the interval. Wanted:
below 5 % of a step.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from statistics import median
from time import perf_counter
from typing import Any

import chainrule
from chainrule import inspect, models, nn, optim
from chainrule.inspect.training.watch import EVERY
from chainrule.nn import functional as F

__all__ = ["mlp", "one_look", "recurrent", "turns"]

WANTED = 1.05
Step = Callable[[], object]


def _training(model: nn.Module, x: Any, y: Any, loss: Callable[..., Any]) -> tuple[Any, Any, Step]:
    optimizer = optim.Adam(model.parameters())

    def step() -> None:
        optimizer.zero_grad()
        loss(model(x), y).backward()
        optimizer.step()

    return model, optimizer, step


def mlp(batch: int) -> tuple[Any, Any, Step]:
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


def recurrent() -> tuple[Any, Any, Step]:
    """100 steps of an LSTM of 64 units, batch 32."""
    x, y = chainrule.randn(32, 100, 1), chainrule.randn(32, 1)
    return _training(Sequence(), x, y, F.mse_loss)


def turns(make: Callable[[], tuple[Any, Any, Step]], repeats: int = 11) -> tuple[float, float]:
    """Seconds per step without and with watching: medians over turns that alternate."""
    chainrule.manual_seed(0)
    model, optimizer, step = make()
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


def one_look(make: Callable[[], tuple[Any, Any, Step]], repeats: int = 31) -> float:
    """What a look adds to a step, over the interval: a share of a step."""
    chainrule.manual_seed(0)
    model, optimizer, step = make()
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


if __name__ == "__main__":
    main()

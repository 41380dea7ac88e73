"""Example 7: an Elman network h_t = tanh(W_x x_t + W_h h_{t-1} + b) with a read-out at every step.

The course announces the program and does not print it. Here it learns to add up its input: the
target at each step is the running mean of a random series.
"""

from __future__ import annotations

from collections.abc import Callable

import chainrule
from chainrule import Tensor, nn


class Net(nn.Module):
    """A recurrent layer, and a linear one that reads every state."""

    def __init__(self, kind: Callable[..., nn.Module] = nn.RNN, hidden: int = 16):
        super().__init__()
        self.rnn = kind(1, hidden, batch_first=True)
        self.readout = nn.Linear(hidden, 1)

    def forward(self, x: Tensor) -> Tensor:
        states, _ = self.rnn(x)
        return self.readout(states)


def series(count: int = 32, length: int = 12) -> tuple[Tensor, Tensor]:
    """Random series, and their running means."""
    x = chainrule.randn(count, length, 1)
    steps = chainrule.arange(1, length + 1).reshape(1, -1, 1)
    return x, x.cumsum(1) / steps


def train(model: nn.Module, steps: int, rate: float) -> tuple[float, float]:
    """The loss before and after plain gradient descent with a clipped gradient."""
    x, y = series()
    losses = []
    for _ in range(steps):
        loss = nn.functional.mse_loss(model(x), y)
        losses.append(loss.item())
        model.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        with chainrule.no_grad():
            for p in model.parameters():
                p -= rate * p.grad
    return losses[0], losses[-1]


def main(steps: int = 150) -> tuple[float, float]:
    """The loss before and after training."""
    chainrule.manual_seed(0)
    first, last = train(Net(nn.RNN), steps, 0.1)
    print(f"RNN: squared error {first:.4f} -> {last:.4f}")
    return first, last


if __name__ == "__main__":
    main()

"""Example 8: the same task with an LSTM, which has four times the parameters of the RNN.

The course announces the program and does not print it.
"""

from __future__ import annotations

from chainrule.atlas.course.ex07_rnn import Net, train

import chainrule
from chainrule import nn


def count(model: nn.Module) -> int:
    """The number of parameters."""
    return sum(p.numel() for p in model.parameters())


def main(steps: int = 400) -> tuple[float, float]:
    """The loss before and after training."""
    chainrule.manual_seed(0)
    sizes = count(nn.LSTM(10, 20)), count(nn.RNN(10, 20))
    print(f"LSTM(10, 20) has {sizes[0]} parameters, RNN(10, 20) has {sizes[1]}")
    first, last = train(Net(nn.LSTM), steps, 0.5)
    print(f"LSTM: squared error {first:.4f} -> {last:.4f}")
    return first, last


if __name__ == "__main__":
    main()

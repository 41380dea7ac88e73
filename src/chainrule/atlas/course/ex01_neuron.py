"""Example 1: a layer of neurons h = dropout(relu(W x + b)) as a module of one's own.

Mended: the sizes are arguments of ``__init__`` and the names used in ``forward`` exist.
"""

from __future__ import annotations

import chainrule
from chainrule import Tensor, nn


class Neurons(nn.Module):
    """h = dropout(relu(W x + b)) of flattened images."""

    def __init__(self, x_size: int = 28 * 28, h_channels: int = 10):
        super().__init__()
        self.x_size = x_size
        self.a = nn.Linear(x_size, h_channels)
        self.g = nn.ReLU(inplace=False)
        self.dropout = nn.Dropout(0.2)

    def forward(self, x: Tensor) -> Tensor:
        return self.dropout(self.g(self.a(x.view(-1, self.x_size))))


def main() -> tuple[int, ...]:
    """The shape of the output for five images."""
    chainrule.manual_seed(0)
    images = chainrule.rand(5, 1, 28, 28)
    h_theta = Neurons()
    out = h_theta.eval()(images)
    print(h_theta)
    print("five images in, features out:", tuple(out.shape))
    return tuple(out.shape)


if __name__ == "__main__":
    main()

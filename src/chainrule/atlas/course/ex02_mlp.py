"""Example 2: a multi-layer perceptron, 784 - 512 - 512 - 10, with dropout between the layers."""

from __future__ import annotations

import chainrule
from chainrule import Tensor, nn


class MLP(nn.Module):
    """Three linear layers with ReLU and dropout between them."""

    def __init__(self, x_size: int = 28 * 28, h_channels: int = 512, y_size: int = 10):
        super().__init__()
        self.x_size = x_size
        self.a1 = nn.Linear(x_size, h_channels)
        self.g1 = nn.ReLU()
        self.a2 = nn.Linear(h_channels, h_channels)
        self.g2 = nn.ReLU()
        self.ao = nn.Linear(h_channels, y_size)
        self.dropout = nn.Dropout(0.2)

    def forward(self, x: Tensor) -> Tensor:
        x = x.view(-1, self.x_size)
        h1 = self.dropout(self.g1(self.a1(x)))
        h2 = self.dropout(self.g2(self.a2(h1)))
        return self.ao(h2)


def main() -> int:
    """The number of its parameters."""
    chainrule.manual_seed(0)
    model = MLP()
    count = sum(p.numel() for p in model.parameters())
    print(model)
    print(f"{count:,} parameters; logits for two images:")
    print(model.eval()(chainrule.rand(2, 1, 28, 28)))
    return count


if __name__ == "__main__":
    main()

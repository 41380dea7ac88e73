"""Networks of all families, for steps that are compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import chainrule
from chainrule import nn

__all__ = ["NETS", "batches", "make_step"]


class Recurrent(nn.Module):
    """A recurrent layer, and a class from its last output."""

    def __init__(self, kind: Any):
        super().__init__()
        self.layer = kind(4, 8, batch_first=True)
        self.out = nn.Linear(8, 3)

    def forward(self, x: Any) -> Any:
        h, _ = self.layer(x)
        return self.out(h[:, -1])


class Residual(nn.Module):
    """A sum of a layer and its input, written with operators."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.out = nn.Linear(4, 4), nn.Linear(4, 3)

    def forward(self, x: Any) -> Any:
        return self.out(x + chainrule.tanh(self.first(x)) * 0.5 - x.mean(1, keepdim=True))


def _deep() -> nn.Sequential:
    layers: list[nn.Module] = []
    for i in range(10):
        layers += [nn.Linear(4 if i == 0 else 5, 5), nn.Tanh()]
    return nn.Sequential(*layers, nn.Linear(5, 3))


NETS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "mlp": (lambda: nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)), (4,)),
    "ten layers": (_deep, (4,)),
    "dropout": (
        lambda: nn.Sequential(nn.Linear(4, 8), nn.Sigmoid(), nn.Dropout(0.3), nn.Linear(8, 3)),
        (4,),
    ),
    "layer norm": (
        lambda: nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.GELU(), nn.Linear(8, 3)),
        (4,),
    ),
    "batch norm": (
        lambda: nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ELU(), nn.Linear(8, 3)),
        (4,),
    ),
    "cnn": (
        lambda: nn.Sequential(
            nn.Conv2d(1, 4, 3),
            nn.BatchNorm2d(4),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(36, 3),
        ),
        (1, 8, 8),
    ),
    "strided cnn": (
        lambda: nn.Sequential(
            nn.Conv2d(1, 4, 3, padding=1, stride=2),
            nn.GroupNorm(2, 4),
            nn.SiLU(),
            nn.AvgPool2d(2),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(4, 3),
        ),
        (1, 12, 12),
    ),
    "rnn": (lambda: Recurrent(nn.RNN), (6, 4)),
    "lstm": (lambda: Recurrent(nn.LSTM), (6, 4)),
    "gru": (lambda: Recurrent(nn.GRU), (6, 4)),
    "residual": (Residual, (4,)),
    "softmax": (
        lambda: nn.Sequential(nn.Linear(4, 8), nn.Softmax(1), nn.Linear(8, 3), nn.Softplus()),
        (4,),
    ),
}


def batches(shape: tuple[int, ...], count: int, size: int = 5) -> list[tuple[Any, Any]]:
    """Random inputs and classes."""
    g = chainrule.Generator().manual_seed(5)
    classes = chainrule.arange(size) % 3
    return [(chainrule.randn(size, *shape, generator=g), classes) for _ in range(count)]


def make_step(net: nn.Module, optimizer: Any) -> Callable[[Any, Any], Any]:
    """A training step, as everybody writes it."""

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step

"""Networks of every shape that instruments have to work on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import chainrule
from chainrule import Tensor, nn
from chainrule.nn import functional as F

__all__ = ["NETS", "Net"]


@dataclass
class Net:
    """A model, a batch for it, and a loss of its output and the targets."""

    model: nn.Module
    inputs: Any
    targets: Any
    loss: Callable[[Any, Any], Tensor]

    @property
    def data(self) -> tuple[Any, Any]:
        return self.inputs, self.targets


class Residual(nn.Module):
    """A convolutional block with a skip link, functional code and a module that is used twice."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(1, 4, 3, padding=1)
        self.again = nn.Conv2d(4, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.head = nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        h = F.relu(self.first(x))
        h = h + F.relu(self.norm(self.again(h)))
        h = h + self.again(h)
        return self.head(h.mean((2, 3)))


class Sequence(nn.Module):
    """An LSTM that returns a tuple."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(3, 5, batch_first=True)
        self.head = nn.Linear(5, 2)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        states, (last, _) = self.lstm(x)
        return self.head(states[:, -1]), last


class TwoInputs(nn.Module):
    """Two inputs and a dict as the output."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = nn.Linear(3, 4), nn.Linear(2, 4)
        self.drop, self.head = nn.Dropout(0.5), nn.Linear(4, 2)

    def forward(self, a: Tensor, b: Tensor) -> dict[str, Tensor]:
        h = chainrule.tanh(self.left(a) + self.right(b))
        return {"logits": self.head(self.drop(h)), "hidden": h}


def _classes(count: int, classes: int) -> Tensor:
    return chainrule.arange(count) % classes


def mlp() -> Net:
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    return Net(model, chainrule.randn(6, 4), _classes(6, 3), F.cross_entropy)


def lenet() -> Net:
    model = nn.Sequential(
        nn.Conv2d(1, 4, 5), nn.Tanh(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(4 * 4 * 4, 3)
    )
    return Net(model, chainrule.randn(4, 1, 12, 12), _classes(4, 3), F.cross_entropy)


def residual() -> Net:
    return Net(Residual(), chainrule.randn(4, 1, 6, 6), _classes(4, 3), F.cross_entropy)


def lstm() -> Net:
    return Net(
        Sequence(), chainrule.randn(4, 5, 3), _classes(4, 2), lambda y, t: F.cross_entropy(y[0], t)
    )


def two_inputs() -> Net:
    return Net(
        TwoInputs(),
        (chainrule.randn(5, 3), chainrule.randn(5, 2)),
        _classes(5, 2),
        lambda y, t: F.cross_entropy(y["logits"], t),
    )


NETS: dict[str, Callable[[], Net]] = {
    net.__name__: net for net in (mlp, lenet, residual, lstm, two_inputs)
}

"""Small modules of all kinds in double precision, and what is known of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from small_network import normal, tensor

import chainrule
from chainrule import Tensor, nn
from chainrule.autograd import functional
from chainrule.curvature import ravel
from chainrule.func import functional_call


F = nn.functional


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner, self.head = nn.Linear(3, 3), nn.Linear(3, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(x + self.inner(x).tanh())


class Recurrent(nn.Module):
    def __init__(self, kind: Any, layers: int = 1) -> None:
        super().__init__()
        self.cells, self.head = kind(2, 3, layers, batch_first=True), nn.Linear(3, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.cells(x)[0][:, -1])


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 2))


def conv_bn() -> nn.Module:
    layers = [nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Tanh(), nn.AvgPool2d(2), nn.Flatten()]
    return nn.Sequential(*layers, nn.Linear(8, 2))


MODELS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...], bool]] = {
    "mlp": (mlp, (3,), True),
    "layer norm": (
        lambda: nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4), nn.GELU(), nn.Linear(4, 2)),
        (3,),
        True,
    ),
    "conv and batch norm in training": (conv_bn, (1, 6, 6), True),
    "conv and batch norm in evaluation": (conv_bn, (1, 6, 6), False),
    "residual": (Residual, (3,), True),
    "LSTM": (lambda: Recurrent(nn.LSTM), (4, 2), True),
    "LSTM of two layers": (lambda: Recurrent(nn.LSTM, 2), (3, 2), True),
    "GRU": (lambda: Recurrent(nn.GRU), (4, 2), True),
}


class Case:
    """A model in double precision with data and a loss."""

    def __init__(self, name: str, samples: int = 5):
        make, shape, training = MODELS[name]
        chainrule.manual_seed(3)
        self.model = make().double().train(training)
        for key, b in self.model.named_buffers():
            if key.endswith("running_var"):
                b.copy_(b + 0.5)
        self.x = tensor(normal(samples, *shape, seed=1))
        self.y = tensor(np.arange(samples) % 2)
        self.params = {name: p.detach().clone() for name, p in self.model.named_parameters()}

    def loss(self, out: Tensor) -> Tensor:
        return F.cross_entropy(out, self.y)

    def output(self, p: Any) -> Tensor:
        spare = {name: b.detach().clone() for name, b in self.model.named_buffers()}
        return functional_call(self.model, {**spare, **p}, (self.x,))

    def of_vector(self) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
        vector, unravel = ravel(self.params)
        return vector, lambda v: self.loss(self.output(unravel(v)))

    def hessian(self) -> np.ndarray:
        vector, f = self.of_vector()
        return functional.hessian(f, vector).numpy()

    def jacobian(self) -> np.ndarray:
        vector, unravel = ravel(self.params)
        found = functional.jacobian(lambda v: self.output(unravel(v)), vector)
        return found.reshape(-1, vector.numel()).numpy()

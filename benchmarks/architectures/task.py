"""A network with its work: what is trained, and what is inferred.

The networks of this package take the library as their first argument, chainrule or PyTorch: one
text serves both. Data and first weights are the same numbers in both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

__all__ = ["Network", "Task", "classifying", "few_ones", "integers", "normal", "same_weights"]


PIECE = 1 << 16  # numbers that are drawn at once: memory of ours is not to be measured


@dataclass
class Task:
    """A model, the losses that a step minimizes one after the other, and an inference."""

    lib: Any
    model: Any
    loss: Callable[[], Any]
    infer: Callable[[], Any]
    optimizer: str = "SGD"
    options: dict[str, Any] = field(default_factory=lambda: {"momentum": 0.9})
    then: Sequence[tuple[Callable[[], Any], Any]] = ()  # further losses, with their parts
    part: Any = None  # what the first loss trains: the model, if not said

    def phases(self) -> list[tuple[Callable[[], Any], Any]]:
        """Every loss with the module that it trains."""
        return [(self.loss, self.part or self.model), *self.then]

    def training(self) -> Callable[[], None]:
        """A training step: for each loss zero the gradients, forward, backward, update."""
        make = getattr(self.lib.optim, self.optimizer)
        options = {"lr": 1e-3, **self.options}
        phases = [(loss, make(of.parameters(), **options)) for loss, of in self.phases()]
        self.model.train()

        def step() -> None:
            for loss, optimizer in phases:
                optimizer.zero_grad()
                loss().backward()
                optimizer.step()

        return step

    def inference(self) -> Callable[[], None]:
        """The outputs of one batch, by the model as it is used."""
        self.model.eval()

        def run() -> None:
            with self.lib.no_grad():
                self.infer()

        return run


@dataclass(frozen=True)
class Network:
    """A row: ``make(lib)`` is the task, ``make(lib, **small)`` one for a test of a second."""

    name: str
    title: str
    make: Callable[..., Task]
    sizes: dict[str, Any]
    small: dict[str, Any]

    def task(self, lib: Any, small: bool = False) -> Task:
        """The task with this library, of the size of the table or of a test."""
        return self.make(lib, **{**self.sizes, **(self.small if small else {})})


def normal(lib: Any, *shape: int, seed: int = 0) -> Any:
    """Normal random numbers, the same ones in every library, in its default dtype."""
    values = np.random.default_rng(seed).standard_normal(shape, np.float32)
    return lib.from_numpy(values).to(lib.get_default_device(), lib.get_default_dtype())


def few_ones(lib: Any, rows: int, columns: int) -> Any:
    """Zeros, and here and there a one: where normal random numbers are above 2."""
    draw = np.random.default_rng(0)
    values = np.empty((rows, columns), np.float32)
    for part in np.split(values, range(0, rows, max(PIECE // columns, 1))):
        part[:] = draw.standard_normal(part.shape, np.float32) > 2
    return lib.from_numpy(values).to(lib.get_default_device(), lib.get_default_dtype())


def integers(lib: Any, below: int, *shape: int, seed: int = 0) -> Any:
    """Random integers, the same ones in every library."""
    return lib.tensor(np.random.default_rng(seed).integers(0, below, shape))


def same_weights(lib: Any, model: Any) -> Any:
    """The model with weights that do not depend on the library."""
    r = np.random.default_rng(1)
    with lib.no_grad():
        for name, p in model.named_parameters():
            if p.ndim > 1:
                bound = 1 / math.sqrt(math.prod(p.shape[1:]))
                values = p.detach().cpu().numpy()
                for part in np.split(values.reshape(-1), range(PIECE, p.numel(), PIECE)):
                    part[:] = (r.random(part.size, np.float32) - 0.5) * np.float32(2 * bound)
                if p.device.type != "cpu":
                    p.copy_(lib.from_numpy(values))
            elif "bias" in name:
                p.zero_()
    return model


def classifying(
    lib: Any, model: Any, shape: Sequence[int], batch: int, classes: int = 10, **options: Any
) -> Task:
    """Inputs of this shape, and their classes by cross-entropy."""
    model = same_weights(lib, model)
    x, y = normal(lib, batch, *shape), integers(lib, classes, batch)
    criterion = lib.nn.CrossEntropyLoss()
    return Task(lib, model, lambda: criterion(model(x), y), lambda: model(x), **options)

"""Directions and planes in the space of all weights, and the loss as a function on it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from chainrule.autograd.functional_call import functional_call
from chainrule.autograd.modes import no_grad
from chainrule.curvature.parameters import ravel
from chainrule.inspect.core.arguments import arguments, of_batch
from chainrule.nn.module.base import Module
from chainrule.ops.creation.conversion import clone
from chainrule.ops.creation.sampling import randn
from chainrule.ops.linalg.decompositions import eigh
from chainrule.ops.shape.stacking import stack
from chainrule.random import Generator
from chainrule.tensor import Tensor

__all__ = ["LossOfWeights", "Plane", "filter_normalized", "principal_plane", "weights_of"]

Loss = Callable[[Any, Any], Tensor]


def weights_of(model: Module) -> Tensor:
    """All parameters as one vector, a copy."""
    with no_grad():
        return clone(ravel({name: p.detach() for name, p in model.named_parameters()})[0])


class LossOfWeights:
    """The loss of a model on a batch as a function of the vector of all its weights.

    The model is in evaluation mode: no dropout, running statistics of batch norm. Sums of many
    points are compared, so a random loss would show its own noise.
    """

    def __init__(self, instrument: str, model: Module, loss: Loss, data: Any):
        if not callable(loss):
            raise TypeError(
                f"{instrument}: loss must be a function of output and targets, such as "
                f"nn.functional.cross_entropy, got {type(loss).__name__}"
            )
        self.instrument = instrument
        inputs, self.targets = of_batch(instrument, data)
        self.args, self.kwargs = arguments(instrument, inputs)
        self.model, self.loss = model.eval(), loss
        parameters = {name: p.detach() for name, p in model.named_parameters()}
        if not parameters:
            raise ValueError(f"{instrument}: the model has no parameters to move along")
        self.center, self.unravel = ravel(parameters)

    def __call__(self, weights: Tensor) -> Tensor:
        """The loss with these weights, to be differentiated."""
        output = functional_call(self.model, self.unravel(weights), self.args, self.kwargs)
        return self.loss(output, self.targets)

    def number(self, weights: Tensor) -> float:
        """The loss with these weights."""
        with no_grad():
            value = self(weights)
        if value.numel() != 1:
            raise ValueError(
                f"{self.instrument}: the loss must be one number, got shape {tuple(value.shape)}; "
                "average it over the batch (reduction='mean')"
            )
        return float(value)

    def at_center(self) -> float:
        """The loss with the weights as they are, which all others are compared with."""
        value = self.number(self.center)
        if not math.isfinite(value):
            raise ValueError(
                f"{self.instrument}: the loss of the network as it is on these data is {value}; "
                "inspect.autopsy finds where it comes from"
            )
        return value


def filter_normalized(instrument: str, model: Module, generator: Generator) -> Tensor:
    """A random direction, as long in every filter as the filter itself.

    Rectified layers can be scaled against each other without changing the function; a direction
    d_i |w_i| / |d_i| for each filter (row of a weight) i makes surfaces of different networks
    comparable (Li et al. 2018). Biases and the parameters of norms stay where they are.
    """
    parts: dict[str, Tensor] = {}
    for name, p in model.named_parameters():
        w = p.detach()
        d = randn(*w.shape, generator=generator, dtype=w.dtype)
        if w.ndim < 2:
            parts[name] = d * 0
            continue
        along = tuple(range(1, w.ndim))
        size = (w * w).sum(along, keepdim=True).sqrt()
        own = (d * d).sum(along, keepdim=True).sqrt()
        parts[name] = d * (size / own.clamp(min=1e-12))
    vector = ravel(parts)[0]
    if float((vector * vector).sum()) == 0:
        raise ValueError(
            f"{instrument}: all weights with two dimensions or more are zero, or there are none, "
            "so that no direction is as long as they are; give directions of your own"
        )
    return vector


@dataclass(frozen=True, eq=False)
class Plane:
    """A point of the space of weights and two directions; their names, and the share of the
    variance of a path that lies in each direction."""

    center: Tensor
    directions: tuple[Tensor, Tensor]
    labels: tuple[str, str]
    explained: tuple[float, float] | None = None

    def point(self, x: float, y: float) -> Tensor:
        """The weights at these coordinates."""
        return self.center + x * self.directions[0] + y * self.directions[1]

    def coordinates(self, weights: Tensor) -> tuple[float, float]:
        """The coordinates of the point of the plane that is nearest to some weights."""
        d = weights - self.center
        a, b = self.directions
        aa, ab, bb = float(a @ a), float(a @ b), float(b @ b)
        da, db = float(d @ a), float(d @ b)
        det = aa * bb - ab * ab
        return (da * bb - db * ab) / det, (db * aa - da * ab) / det


def principal_plane(path: Sequence[Tensor], center: Tensor) -> Plane:
    """The plane through a point that a path runs most in: its two principal components."""
    if len(path) < 3:
        raise ValueError(
            f"landscape: a path of {len(path)} points has no plane; record at least 3 "
            "(one for each epoch, say)"
        )
    offsets = stack([weights - center for weights in path]).to(dtype="float64")
    values, vectors = eigh(offsets @ offsets.T)
    total = float(values.clamp(min=0).sum())
    if not math.isfinite(total) or total == 0:
        raise ValueError("landscape: the path does not move, or has weights that are not finite")
    directions: list[Tensor] = []
    for k in (-1, -2):
        direction = offsets.T @ vectors[:, k]
        length = float((direction * direction).sum().sqrt())
        if length <= 1e-9 * math.sqrt(total):  # the path is a line: any second direction will do
            direction = _beside(directions[0])
            length = float((direction * direction).sum().sqrt())
        directions.append(direction / length)
    shares = tuple(max(0.0, float(values[k])) / total for k in (-1, -2))
    names = [f"principal component {i + 1} ({share:.0%})" for i, share in enumerate(shares)]
    x, y = (d.to(dtype=center.dtype) for d in directions)
    return Plane(center, (x, y), (names[0], names[1]), (shares[0], shares[1]))


def _beside(direction: Tensor) -> Tensor:
    """A direction at a right angle to another."""
    other = randn(len(direction), generator=Generator().manual_seed(0), dtype=direction.dtype)
    return other - direction * (other @ direction)

"""Which line or plane of the inputs is looked at, and its coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from chainrule.ops.creation.from_data import tensor
from chainrule.ops.creation.patterns import linspace, zeros
from chainrule.ops.linalg.decompositions import eigh
from chainrule.ops.shape.rearrange import meshgrid
from chainrule.ops.shape.stacking import stack
from chainrule.tensor import Tensor

__all__ = ["Slice", "slice_of"]


@dataclass(frozen=True, eq=False)
class Slice:
    """A line or plane ``origin + coordinates @ directions`` of the space of inputs, the range of
    its coordinates that is shown, and how it is called."""

    origin: Tensor
    directions: Tensor  # (1 or 2, D)
    ranges: tuple[tuple[float, float], ...]
    labels: tuple[str, ...]
    where: str

    def coordinates(self, x: Tensor) -> Tensor:
        """Coordinates of the points of the slice nearest to some inputs."""
        return (x - self.origin) @ self.directions.T

    def distance(self, x: Tensor) -> float:
        """The root mean square distance of inputs from the slice."""
        offset = x - self.origin - self.coordinates(x) @ self.directions
        far = float((offset * offset).sum(1).mean().sqrt())
        size = float(((x - x.mean(0)) ** 2).sum(1).mean().sqrt())
        return far if far > 1e-6 * size else 0.0

    def axes(self, points: int) -> list[Tensor]:
        """The coordinates of the grid in each direction."""
        return [linspace(low, high, points, dtype=self.origin.dtype) for low, high in self.ranges]

    def shape(self, points: int) -> tuple[int, ...]:
        """The shape of values on the grid: rows go along the second coordinate."""
        return (points,) * len(self.ranges)

    def grid(self, points: int) -> Tensor:
        """The inputs at all points of the grid, a row each."""
        axes = self.axes(points)
        if len(axes) == 1:
            at = axes[0].reshape(-1, 1)
        else:
            y, x = meshgrid(axes[1], axes[0], indexing="ij")
            at = stack([x.reshape(-1), y.reshape(-1)], 1)
        return self.origin + at @ self.directions


def slice_of(
    x: Tensor, features: Sequence[int | str] | None, names: list[str] | None, margin: float
) -> Slice:
    """The slice through data: all of one or two features, two chosen ones, or the plane of the
    data's principal components."""
    count = x.shape[1]
    if names is not None and len(names) != count:
        raise ValueError(f"regions: {len(names)} names for {count} features")
    labels = names or [f"feature {i}" for i in range(count)]
    if features is not None or count <= 2:
        chosen = list(range(count)) if features is None else _chosen(features, labels)
        return _along(x, chosen, labels, margin)
    return _principal(x, margin)


def _chosen(features: Sequence[int | str], labels: list[str]) -> list[int]:
    found = []
    for feature in features:
        if isinstance(feature, str) and feature in labels:
            found.append(labels.index(feature))
        elif isinstance(feature, int) and -len(labels) <= feature < len(labels):
            found.append(feature % len(labels))
        else:
            raise ValueError(f"regions: there is no feature {feature!r}; there are {labels}")
    if not 1 <= len(found) <= 2 or len(set(found)) != len(found):
        raise ValueError(f"regions: features must be one or two different ones, got {features}")
    return found


def _along(x: Tensor, chosen: list[int], labels: list[str], margin: float) -> Slice:
    directions = zeros(len(chosen), x.shape[1], dtype=x.dtype)
    for row, column in enumerate(chosen):
        directions[row, column] = 1.0
    others = [i for i in range(x.shape[1]) if i not in chosen]
    origin = x.median(0).values.clone()
    origin[tensor(chosen)] = 0.0
    ranges = tuple(_range(x[:, c], margin) for c in chosen)
    if others:
        where = f"{' and '.join(labels[c] for c in chosen)}, the others at their medians"
    else:
        where = "both features" if len(chosen) == 2 else labels[0]
    return Slice(origin, directions, ranges, tuple(labels[c] for c in chosen), where)


def _principal(x: Tensor, margin: float) -> Slice:
    """The plane of the two directions in which the data vary most, of standardized features."""
    origin = x.mean(0)
    offset = x - origin
    values, vectors = eigh((offset.T @ offset).double())
    directions = vectors[:, [-1, -2]].T.to(dtype=x.dtype)
    share = float(values[-2:].sum() / values.sum()) if float(values.sum()) > 0 else 1.0
    at = offset @ directions.T
    ranges = tuple(_range(at[:, k], margin) for k in (0, 1))
    where = f"plane of the principal components ({share:.0%} of the variance)"
    return Slice(origin, directions, ranges, ("component 1", "component 2"), where)


def _range(values: Tensor, margin: float) -> tuple[float, float]:
    low, high = float(values.min()), float(values.max())
    pad = margin * (high - low) or 1.0
    return low - pad, high + pad

"""Vector quantization: a few centers that stand for many points."""

from __future__ import annotations

from typing import NamedTuple

from chainrule.autograd.modes import no_grad
from chainrule.ops.elementwise.logic import where
from chainrule.ops.index.reading import one_hot
from chainrule.ops.reduce.order import amax, amin, argmin, min
from chainrule.ops.core.promotion import cast
from chainrule.ops.reduce.reductions import sum
from chainrule.ops.creation.sampling import multinomial, rand, randint
from chainrule.ops.shape.views import unsqueeze
from chainrule.ops.shape.stacking import cat, stack
from chainrule.ops.reduce.sort import argsort
from chainrule.tensor import Tensor
from chainrule.typing import Random

__all__ = [
    "growing_neural_gas",
    "kmeans",
    "kmeans_plus_plus",
    "squared_distances",
    "uniform_centers",
]


class Clusters(NamedTuple):
    """What :func:`kmeans` returns."""

    centers: Tensor
    labels: Tensor
    inertia: Tensor


def squared_distances(x: Tensor, y: Tensor) -> Tensor:
    """|x_i - y_j|^2 for every row of x (N, D) and of y (K, D): (N, K).

    >>> from chainrule import nn, tensor
    >>> nn.functional.squared_distances(tensor([[0.0, 0.0]]), tensor([[3.0, 4.0]]))
    tensor([[25.]])
    """
    d = unsqueeze(x, -2) - y
    return sum(d * d, -1)


def _check(op: str, x: Tensor, k: int) -> None:
    if x.ndim != 2 or not x.is_floating_point():
        raise ValueError(
            f"{op}: expected floating points (N, D), got shape {tuple(x.shape)} of {x.dtype}"
        )
    if not 1 <= k <= x.shape[0]:
        raise ValueError(f"{op}: asked for {k} centers of {x.shape[0]} points")


def uniform_centers(x: Tensor, k: int, generator: Random = None) -> Tensor:
    """Centers low + (high - low) u in the box that the points fill, u uniform in [0, 1).

    Shape: x (N, D) -> (k, D).
    """
    _check("uniform_centers", x, k)
    low, high = amin(x.detach(), 0), amax(x.detach(), 0)
    return low + (high - low) * rand(
        k, x.shape[1], dtype=x.dtype, device=x.device, generator=generator
    )


def kmeans_plus_plus(x: Tensor, k: int, generator: Random = None) -> Tensor:
    """Points of x as centers, each next one with probability ~ min over the centers c of |x - c|^2.

    Shape: x (N, D) -> (k, D).
    """
    _check("kmeans_plus_plus", x, k)
    x = x.detach()
    chosen = [x[int(randint(x.shape[0], (), generator=generator))]]
    nearest = squared_distances(x, stack(chosen))[:, 0]
    for _ in range(k - 1):
        # Where all points lie on centers already, any one will do.
        weights = where(sum(nearest) > 0, nearest, 1.0)
        chosen.append(x[int(multinomial(weights, 1, generator=generator))])
        other = squared_distances(x, chosen[-1][None])[:, 0]
        nearest = where(other < nearest, other, nearest)
    return stack(chosen)


def kmeans(
    x: Tensor, k: int, init: Tensor | None = None, max_iter: int = 100, generator: Random = None
) -> Clusters:
    """Lloyd's algorithm: each point goes to the nearest center, each center to their mean.

    inertia = sum over n of |x[n] - centers[labels[n]]|^2 falls with every step.

    It starts at ``init``, or as :func:`kmeans_plus_plus` says, and ends when no point changes its
    center. A center that loses all points moves to the point farthest from its own.
    """
    _check("kmeans", x, k)
    x = x.detach()
    centers = kmeans_plus_plus(x, k, generator) if init is None else init.detach().clone()
    if tuple(centers.shape) != (k, x.shape[1]):
        raise ValueError(
            f"kmeans: init must be of shape {(k, x.shape[1])}, got {tuple(centers.shape)}"
        )
    distances, labels = min(squared_distances(x, centers), 1)
    for _ in range(max_iter):
        centers = _means(x, labels, distances, k)
        before = labels
        distances, labels = min(squared_distances(x, centers), 1)
        if bool((labels == before).all()):
            break
    return Clusters(centers, labels, sum(distances))


def _means(x: Tensor, labels: Tensor, distances: Tensor, k: int) -> Tensor:
    members = cast(one_hot(labels, k), x.dtype)
    counts = unsqueeze(sum(members, 0), 1)
    means = members.mT @ x / where(counts > 0, counts, 1.0)
    empty = [i for i, n in enumerate(counts[:, 0].tolist()) if n == 0]
    if empty:
        far = argsort(distances, descending=True)[: len(empty)].tolist()
        for i, j in zip(empty, far, strict=True):
            means[i] = x[j]
    return means


# --- growing neural gas ---------------------------------------------------------------------------


class _Gas:
    """Units at positions, edges between them with an age, and the error each has collected."""

    def __init__(self, positions: Tensor):
        self.positions = positions
        self.errors = [0.0, 0.0]
        self.edges: dict[int, dict[int, int]] = {0: {}, 1: {}}

    def connect(self, a: int, b: int) -> None:
        self.edges[a][b] = self.edges[b][a] = 0

    def cut(self, a: int, b: int) -> None:
        del self.edges[a][b], self.edges[b][a]

    def adapt(self, point: Tensor, near: float, far: float, max_age: int) -> None:
        """Moves the nearest unit and its neighbors towards a point."""
        distances = squared_distances(point[None], self.positions)[0]
        first = int(argmin(distances))
        second = int(argmin(where(distances == distances[first], float("inf"), distances)))
        self.errors[first] += float(distances[first])
        self.positions[first] += near * (point - self.positions[first])
        for other in list(self.edges[first]):
            self.positions[other] += far * (point - self.positions[other])
            age = self.edges[first][other] + 1
            self.edges[first][other] = self.edges[other][first] = age
            if age > max_age:
                self.cut(first, other)
        if second != first:
            self.connect(first, second)

    def grow(self, alpha: float) -> None:
        """A new unit between the one with the largest error and its worst neighbor."""
        worst = max(range(len(self.errors)), key=self.errors.__getitem__)
        neighbors = list(self.edges[worst]) or [i for i in self.edges if i != worst]
        other = max(neighbors, key=self.errors.__getitem__)
        new = len(self.errors)
        middle = (self.positions[worst] + self.positions[other]) / 2
        self.positions = cat([self.positions, middle[None]])
        self.edges[new] = {}
        if other in self.edges[worst]:
            self.cut(worst, other)
        for i in (worst, other):
            self.connect(i, new)
            self.errors[i] *= alpha
        self.errors.append(self.errors[worst])

    def unused(self) -> list[int]:
        """The units that no edge holds."""
        return [i for i, around in self.edges.items() if not around]

    def replace(self, i: int, alpha: float) -> None:
        """Takes a unit without edges away: it becomes the next one to grow."""
        keep = [j for j in range(len(self.errors)) if j != i]
        number = {old: new for new, old in enumerate(keep)}
        self.positions = self.positions[keep]
        self.errors = [self.errors[j] for j in keep]
        self.edges = {number[j]: {number[o]: a for o, a in self.edges[j].items()} for j in keep}
        self.grow(alpha)


def growing_neural_gas(
    x: Tensor,
    k: int,
    insert_every: int = 100,
    near: float = 0.1,
    far: float = 0.006,
    max_age: int = 50,
    alpha: float = 0.5,
    decay: float = 0.995,
    generator: Random = None,
) -> Tensor:
    """Centers by Fritzke's growing neural gas: a net that grows where its error is largest.

    A random point x moves the nearest unit, c += near (x - c), and its neighbors, c += far (x - c);
    the two nearest are linked, links that are not renewed for ``max_age`` are cut, and every
    ``insert_every`` points a unit is added, up to k.
    """
    _check("growing_neural_gas", x, k)
    x = x.detach()
    if k == 1:
        return x.mean(0)[None]
    gas = _Gas(kmeans_plus_plus(x, 2, generator).clone())
    gas.connect(0, 1)
    with no_grad():
        # As many points again after the last insertion, for the net to settle.
        for step in range(1, (k - 1) * insert_every + 2 * insert_every + 1):
            gas.adapt(x[int(randint(x.shape[0], (), generator=generator))], near, far, max_age)
            if step % insert_every == 0:
                if len(gas.errors) < k:
                    gas.grow(alpha)
                for i in gas.unused()[:1]:
                    gas.replace(i, alpha)
            gas.errors = [e * decay for e in gas.errors]
    return gas.positions

"""The tiling algorithm: layers of threshold units that grow until every sample is right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from chainrule import nn, optim
from chainrule.autograd.modes import no_grad
from chainrule.backend import dtypes
from chainrule.ops.creation.patterns import ones
from chainrule.ops.elementwise.logic import where
from chainrule.ops.creation.from_data import tensor
from chainrule.ops.linalg.matmul import matmul
from chainrule.ops.reduce.order import argmax, max, min
from chainrule.ops.core.promotion import cast
from chainrule.ops.reduce.reductions import mean, sum
from chainrule.ops.shape.stacking import cat, stack
from chainrule.optim.linear import untold, with_ones
from chainrule.tensor import Tensor
from chainrule.typing import Random

__all__ = ["TilingFit", "tiling"]


@dataclass
class TilingFit:
    """A network of threshold units: its layers, and the mistakes of their first units."""

    model: nn.Sequential
    widths: list[int]
    mistakes: list[int]

    @property
    def units(self) -> int:
        """How many units there are in all."""
        return int(sum(tensor(self.widths)))


@no_grad()
def tiling(
    x: Tensor, y: Tensor, *, passes: int = 50, max_layers: int = 50, generator: Random = None
) -> TilingFit:
    """Grows layers of threshold units that classify all samples rightly: Mezard and Nadal, 1989.

    The first unit of a layer, its master, is trained by the pocket algorithm on the layer below.
    While samples of both classes look alike to the layer, it gets another unit, trained on such a
    group of samples. The master of the next layer then makes at least one mistake less, which its
    first weights guarantee; the network is done when a master makes none.

    The network maps (N, D) to (N, 1), -1 or 1. Its units are signs, whose gradient is 0.

    Args:
        x: inputs (N, D).
        y: labels (N,): -1 and 1, or 0 and 1.
        passes: of the pocket algorithm over the data, for each unit.
        max_layers: an error is raised if so many are not enough.
        generator: for the order of the samples.

    >>> import chainrule
    >>> from chainrule import problems, regularize
    >>> _ = chainrule.manual_seed(0)
    >>> xor = problems.boolean("xor", signed=True)
    >>> fit = regularize.tiling(xor.inputs, xor.targets[:, 0])
    >>> fit.mistakes[-1], bool((fit.model(xor.inputs) == xor.targets).all())
    (0, True)
    """
    labels = _labels(x, y)
    a = cast(x, dtypes.float64)
    layers: list[nn.Module] = []
    widths: list[int] = []
    mistakes: list[int] = []
    first = None
    while not mistakes or mistakes[-1]:
        if len(widths) == max_layers:
            raise RuntimeError(
                f"tiling: {max_layers} layers are not enough, the last one still makes "
                f"{mistakes[-1]} mistakes; raise max_layers or passes"
            )
        w, wrong = _master(a, labels, first, passes, generator)
        rows = [w] if not wrong else _faithful(a, labels, w, passes, generator)
        w = stack(rows)
        layers += [_layer(w, x.dtype), nn.Sign()]
        widths.append(len(rows))
        mistakes.append(wrong)
        a = _signs(a, w)
        first = _better_than_master(a, labels) if wrong else None
    return TilingFit(nn.Sequential(*layers), widths, mistakes)


def _labels(x: Tensor, y: Tensor) -> Tensor:
    """The labels as -1 and 1."""
    if x.ndim != 2 or y.ndim != 1 or x.shape[0] != y.shape[0] or not x.shape[0]:
        raise ValueError(
            "tiling: expected inputs (N, D) and labels (N,), got shapes "
            f"{tuple(x.shape)} and {tuple(y.shape)}"
        )
    values = set(cast(y, dtypes.float64).tolist())
    if not (values <= {-1.0, 1.0} or values <= {0.0, 1.0}):
        raise ValueError(
            f"tiling: labels must be -1 and 1, or 0 and 1, found {sorted(values)[:4]}; it is for "
            "two classes"
        )
    labels = where(y > 0, 1.0, -1.0)
    sides: dict[tuple[float, ...], float] = {}
    for row, side in zip(x.tolist(), labels.tolist(), strict=True):
        if sides.setdefault(tuple(row), side) != side:
            raise ValueError(
                f"tiling: the input {row} has both labels, so no network can classify it rightly"
            )
    return cast(labels, dtypes.float64)


def _signs(a: Tensor, w: Tensor) -> Tensor:
    """The outputs -1 and 1 of units with these weights, biases last."""
    return where(matmul(with_ones(a), w.mT) > 0, 1.0, -1.0) * ones(1, dtype=dtypes.float64)


def _centered(a: Tensor, w: Tensor) -> Tensor:
    """The same unit with its border in the middle between the samples on both sides.

    Samples on the border lie below it, also where rounding has moved them a little.
    """
    heights = matmul(with_ones(a), w)
    border = 1e-9 * float(max(heights.abs()))
    above, below = heights[heights > border], heights[heights <= border]
    if above.numel() and below.numel():
        shift = -(float(min(above)) + float(max(below))) / 2
    else:
        shift = 1.0 if above.numel() else -1.0
    moved = cat([w[:-1], w[-1:] + shift])
    return moved / max(moved.abs())


def _pocket(a: Tensor, labels: Tensor, passes: int, generator: Random) -> Tensor:
    with untold():  # that a unit makes mistakes is expected here
        fit = optim.perceptron(a, labels, max_iter=passes, pocket=True, generator=generator)
    return cast(cat([fit.weight, fit.bias.reshape(1)]), dtypes.float64)


def _mistakes(a: Tensor, labels: Tensor, w: Tensor) -> int:
    return int(sum(_signs(a, w[None])[:, 0] != labels))


def _master(
    a: Tensor, labels: Tensor, first: Tensor | None, passes: int, generator: Random
) -> tuple[Tensor, int]:
    """The better of the pocket's weights and those that are known to be good."""
    w = _centered(a, _pocket(a, labels, passes, generator))
    wrong = _mistakes(a, labels, w)
    if first is not None and wrong:
        known = _centered(a, first)
        other = _mistakes(a, labels, known)
        if other < wrong:
            return known, other
    return w, wrong


def _better_than_master(a: Tensor, labels: Tensor) -> Tensor:
    """Weights of a next master that is right wherever the last one was, and once more.

    With m = the other units and the bias, the weight of the last master is 1 and those of the rest
    are v s_j / (m - 1), where s are their outputs for a sample of label v that it got wrong: enough
    to turn that sample, and not enough to turn any other that it got right.
    """
    wrong = int(argmax(cast(a[:, 0] != labels, dtypes.int64)))
    others = cat([a[wrong, 1:], ones(1, dtype=a.dtype, device=a.device)])
    m = others.shape[0]
    small = 2.0 if m == 1 else 1 / (m - 1)
    return cat([ones(1, dtype=a.dtype, device=a.device), labels[wrong] * small * others])


def _faithful(
    a: Tensor, labels: Tensor, master: Tensor, passes: int, generator: Random
) -> list[Tensor]:
    """The master's weights and those of more units, until no two classes look alike."""
    rows = [master]
    while True:
        mixed = _mixed_group(_signs(a, stack(rows)), labels)
        if mixed is None:
            return rows
        w = _centered(a, _pocket(a[mixed], labels[mixed], passes, generator))
        seen = _signs(a[mixed], w[None])[:, 0]
        if len(set(seen.tolist())) == 1:  # this unit would tell none of them apart
            w = _centered(a, _outermost(a[mixed]))
        rows.append(w)


def _mixed_group(code: Tensor, labels: Tensor) -> Tensor | None:
    """The smallest group of samples of both classes for which all units give the same."""
    groups: dict[tuple[float, ...], list[int]] = {}
    for i, row in enumerate(code.tolist()):
        groups.setdefault(tuple(row), []).append(i)
    sides = labels.tolist()
    mixed = [g for g in groups.values() if len({sides[i] for i in g}) > 1]
    return tensor(sorted(mixed, key=len)[0]) if mixed else None


def _outermost(a: Tensor) -> Tensor:
    """Weights of a unit that tells the sample farthest from the center from all others."""
    d = a - mean(a, 0)
    far = int(argmax(sum(d * d, 1)))
    w = d[far]
    heights = matmul(a, w)
    below = heights[heights < heights[far] - 1e-12 * (1 + abs(float(heights[far])))]
    border = (float(heights[far]) + float(max(below))) / 2
    return cat([w, tensor([-border], dtype=a.dtype, device=a.device)])


def _layer(w: Tensor, dtype: Any) -> nn.Linear:
    layer = nn.Linear(w.shape[1] - 1, w.shape[0], dtype=dtype)
    layer.weight.copy_(cast(w[:, :-1], dtype))
    layer.get_parameter("bias").copy_(cast(w[:, -1], dtype))
    return layer

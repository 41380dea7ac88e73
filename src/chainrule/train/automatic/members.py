"""The members of a network learn together, each from its own rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from chainrule import nn
from chainrule.backend import dtypes
from chainrule.metrics import metric_functions
from chainrule.ops.creation.patterns import arange, zeros
from chainrule.ops.index.reading import nonzero
from chainrule.ops.reduce.sort import argsort, unique
from chainrule.ops.shape.stacking import stack
from chainrule.ops.shape.views import flatten, reshape, transpose
from chainrule.ops.creation.sampling import randperm
from chainrule.random import Generator
from chainrule.tensor import Tensor
from chainrule.train.automatic.parts import Parts
from chainrule.train.losses import WeightedLoss

__all__ = [
    "HeldOutBatches",
    "MemberBatches",
    "MemberLoss",
    "member_metric",
    "rows_for_members",
    "rows_in_time",
    "rows_of_groups",
    "rows_of_members",
]

LEAST_UPDATES = 8  # in an epoch of a small table
GOLDEN = (5**0.5 - 1) / 2
AHEAD = 2**20  # numbers of batches that are gathered at once
LOOKED_AT = 4096  # held-out rows of all members at once


def rows_of_members(
    y: Tensor, members: int, fraction: float, classes: bool, generator: Generator
) -> tuple[Tensor, Tensor]:
    """Which rows each member learns from (M, R) and which it holds out (M, H).

    The rows that are held out are windows of an order in which classes alternate; they do not
    overlap while members * fraction is at most 1.
    """
    n = len(y)
    order = randperm(n, generator=generator)
    if classes:  # sorted, then dealt by the golden ratio: each window has its share of each class
        order = order[argsort(y[order], stable=True)]
        order = order[argsort(arange(n, dtype=dtypes.float64) * GOLDEN % 1)]
    each = min(n - 1, max(1, round(n * fraction)))
    step = each if members * each <= n else max(1, n // members)
    around = [order[(arange(n) + m * step) % n] for m in range(members)]
    return stack([rows[each:] for rows in around]), stack([rows[:each] for rows in around])


def rows_in_time(parts: Parts, members: int) -> tuple[Tensor, Tensor]:
    """The same for rows in the order of time: all hold out the rows behind the training part."""
    early = arange(len(parts.train[1]))
    late = arange(len(early), len(early) + len(parts.validation[1]))
    return stack([early] * members), stack([late] * members)


def rows_of_groups(
    group: Tensor, members: int, fraction: float, generator: Generator
) -> tuple[Tensor, Tensor]:
    """The same for rows in groups: a member learns from no group of which it holds out a row."""
    names, place = unique(group, return_inverse=True)
    order = argsort(randperm(len(names), generator=generator)[place], stable=True)
    n = len(order)
    each = min(n - 1, max(1, round(n * fraction)))
    step = each if members * each <= n else max(1, n // members)
    held_out = [order[(arange(each) + m * step) % n] for m in range(members)]
    learned = []
    for rows in held_out:
        touched = zeros(len(names), dtype=dtypes.bool_)
        touched[place[rows]] = True
        others = nonzero(~touched[place], as_tuple=True)[0]
        learned.append(others[randperm(len(others), generator=generator)])
    fewest = min([len(rows) for rows in learned])
    if not fewest:
        raise ValueError(
            f"the {len(names)} groups outside the test part are too few or too uneven: one of them "
            f"holds nearly all of {n} rows, and the rest must be enough to learn from"
        )
    return stack([rows[:fewest] for rows in learned]), stack(held_out)


class MemberBatches:
    """Batches (B, M, D) of rows for each member in its own random order.

    An epoch is a pass over the rows, or 8 updates where that is more.

    Args:
        x: the features of all rows.
        y: their targets.
        weight: of each row, or None.
        rows: which rows each member learns from (M, R).
        batch_size: B.
        generator: draws the orders.
    """

    def __init__(
        self,
        x: Tensor,
        y: Tensor,
        weight: Tensor | None,
        rows: Tensor,
        batch_size: int,
        generator: Generator,
    ):
        self.data = [x, y] if weight is None else [x, y, weight]
        self.rows, self.size, self.generator = rows, batch_size, generator
        self.batch_size = min(batch_size, int(rows.shape[1]))
        self.updates = max(1, int(rows.shape[1]) // self.batch_size)
        self.passes = math.ceil(LEAST_UPDATES / self.updates)
        self.ahead = max(1, AHEAD // (len(rows) * self.batch_size * int(x.shape[1])))

    def __len__(self) -> int:
        return self.updates * self.passes

    def __iter__(self) -> Iterator[tuple[Tensor, ...]]:
        for _ in range(self.passes):
            orders = [randperm(self.rows.shape[1], generator=self.generator) for _ in self.rows]
            shuffled = stack([r[o] for r, o in zip(self.rows, orders, strict=True)])
            for start in range(0, self.updates, self.ahead):
                yield from self._batches(shuffled, start)

    def _batches(self, shuffled: Tensor, start: int) -> Iterator[tuple[Tensor, ...]]:
        """Some batches, whose rows are gathered at once."""
        size, count = self.batch_size, min(self.ahead, self.updates - start)
        chosen = shuffled[:, start * size : (start + count) * size]
        gathered = [part[chosen] for part in self.data]
        for i in range(0, count * size, size):
            yield tuple([transpose(part[:, i : i + size], 0, 1) for part in gathered])

    def state_dict(self) -> dict[str, Any]:
        """The state of what draws the orders."""
        return {"generator": self.generator.get_state()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Puts it back."""
        self.generator.set_state(state["generator"])


class HeldOutBatches:
    """The rows that each member holds out, as batches (B, M, D)."""

    def __init__(self, x: Tensor, y: Tensor, weight: Tensor | None, rows: Tensor):
        self.data = [x, y] if weight is None else [x, y, weight]
        self.rows, self.size = rows, max(1, LOOKED_AT // len(rows))

    def __iter__(self) -> Iterator[tuple[Tensor, ...]]:
        for start in range(0, int(self.rows.shape[1]), self.size):
            yield rows_for_members(self.data, self.rows[:, start : start + self.size])


def rows_for_members(data: Sequence[Tensor], chosen: Tensor) -> tuple[Tensor, ...]:
    """These rows (M, B) of each tensor, as (B, M, ...)."""
    return tuple([transpose(part[chosen], 0, 1) for part in data])


class MemberLoss(nn.Module):
    """A loss of outputs (B, M, K) for targets (B, M, ...); of (B, K), the loss itself.

    Args:
        loss: the loss of outputs (N, K): a name, a function or a module.
        reduction: "mean", or "none" for the loss of each row and member.
    """

    def __init__(self, loss: Any, reduction: str = "mean"):
        super().__init__()
        self.loss, self.reduction = WeightedLoss(loss), reduction

    def forward(self, output: Tensor, target: Tensor) -> Tensor:
        many = output.ndim == 3
        one, goal = (flatten(output, 0, 1), flatten(target, 0, 1)) if many else (output, target)
        if self.reduction == "mean":
            return self.loss(one, goal)
        losses = self.loss.each(one, goal)
        return reshape(losses, output.shape[:2]) if many else losses


def member_metric(name: str, loss: Any) -> dict[str, Callable[[Tensor, Tensor], Any]]:
    """A metric by name, of the outputs of members as well as of their mean."""
    (metric,) = metric_functions([name], WeightedLoss(loss).scores).values()

    def of_all(output: Tensor, target: Tensor) -> Any:
        if output.ndim == 3:
            return metric(flatten(output, 0, 1), flatten(target, 0, 1))
        return metric(output, target)

    return {name: of_all}

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
from chainrule.ops.shape.views import flatten, reshape, transpose, unsqueeze
from chainrule.ops.creation.sampling import rand, randperm
from chainrule.random import Generator
from chainrule.tensor import Tensor
from chainrule.train.automatic.parts import Parts
from chainrule.train.losses import WeightedLoss

__all__ = [
    "HeldOutBatches",
    "MemberBatches",
    "MemberLoss",
    "Rows",
    "member_metric",
    "rows_in_time",
    "rows_of_groups",
    "rows_of_members",
]

LEAST_UPDATES = 8  # in an epoch of a small table
GOLDEN = (5**0.5 - 1) / 2
AHEAD = 2**20  # numbers of batches that are gathered at once
SHORT = 2**14  # rows whose order is drawn by sorting random numbers
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


class Rows:
    """The rows of a table, as members take them: inputs, targets, and weights if there are any.

    Args:
        x: the inputs of all rows (N, D).
        y: their targets.
        weight: of each row, or None.
        linear: what the linear model of each member makes of each row (M, N, K), which is a second
            input; or None.
    """

    def __init__(
        self, x: Tensor, y: Tensor, weight: Tensor | None = None, linear: Tensor | None = None
    ):
        self.x, self.rest = x, [y] if weight is None else [y, weight]
        self.linear = None if linear is None else flatten(linear, 0, 1)
        self.starts = None if linear is None else len(x) * unsqueeze(arange(len(linear)), 1)

    def of(self, chosen: Tensor) -> list[Tensor]:
        """Some rows (M, B) of each tensor, as (B, M, ...); the outputs of linear models second."""
        found = [part[chosen] for part in (self.x, *self.rest)]
        if self.linear is not None and self.starts is not None:
            found.insert(1, self.linear[chosen + self.starts])
        return [transpose(part, 0, 1) for part in found]

    def batch(self, parts: Sequence[Tensor]) -> tuple[Any, ...]:
        """These as a batch: an input or several, a target, and perhaps weights."""
        if self.linear is None:
            return tuple(parts)
        return (tuple(parts[:2]), *parts[2:])


class MemberBatches:
    """Batches (B, M, ...) of rows for each member in its own random order.

    An epoch is a pass over the rows, or 8 updates where that is more.

    Args:
        data: all rows.
        rows: which rows each member learns from (M, R).
        batch_size: B.
        generator: draws the orders.
    """

    def __init__(self, data: Rows, rows: Tensor, batch_size: int, generator: Generator):
        self.data, self.rows, self.size, self.generator = data, rows, batch_size, generator
        self.flat = flatten(rows, 0, 1)
        self.starts = int(rows.shape[1]) * unsqueeze(arange(len(rows)), 1)
        self.batch_size = min(batch_size, int(rows.shape[1]))
        self.updates = max(1, int(rows.shape[1]) // self.batch_size)
        self.passes = math.ceil(LEAST_UPDATES / self.updates)
        self.ahead = max(1, AHEAD // (len(rows) * self.batch_size * int(data.x.shape[1])))

    def __len__(self) -> int:
        return self.updates * self.passes

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        used = self.updates * self.batch_size
        if self.passes > 1 and self.passes * self.updates <= self.ahead:
            orders = self._orders(self.passes * len(self.rows))[:, :used]
            shuffled = reshape(orders, (len(self.rows), -1)) + self.starts
            yield from self._batches(self.flat[shuffled], 0, self.passes * self.updates)
            return
        for _ in range(self.passes):
            shuffled = self.flat[self._orders(len(self.rows))[:, :used] + self.starts]
            for start in range(0, self.updates, self.ahead):
                yield from self._batches(shuffled, start, min(self.ahead, self.updates - start))

    def _orders(self, count: int) -> Tensor:
        """Random orders of the rows of a member, all at once where they are short."""
        size = int(self.rows.shape[1])
        if size <= SHORT:
            return argsort(rand(count, size, generator=self.generator), 1)
        return stack([randperm(size, generator=self.generator) for _ in range(count)])

    def _batches(self, shuffled: Tensor, start: int, count: int) -> Iterator[tuple[Any, ...]]:
        """Some batches, whose rows are gathered at once."""
        size = self.batch_size
        gathered = self.data.of(shuffled[:, start * size : (start + count) * size])
        for i in range(0, count * size, size):
            yield self.data.batch([part[i : i + size] for part in gathered])

    def state_dict(self) -> dict[str, Any]:
        """The state of what draws the orders."""
        return {"generator": self.generator.get_state()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Puts it back."""
        self.generator.set_state(state["generator"])


class HeldOutBatches:
    """The rows that each member holds out, as batches (B, M, ...); kept where they are few."""

    def __init__(self, data: Rows, rows: Tensor):
        self.data, self.rows, self.size = data, rows, max(1, LOOKED_AT // len(rows))
        few = math.prod(rows.shape) * int(data.x.shape[1]) <= AHEAD
        self.kept = list(self._batches()) if few else None

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return self._batches() if self.kept is None else iter(self.kept)

    def _batches(self) -> Iterator[tuple[Any, ...]]:
        for start in range(0, int(self.rows.shape[1]), self.size):
            yield self.data.batch(self.data.of(self.rows[:, start : start + self.size]))


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

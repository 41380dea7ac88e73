"""How many weights to prune, which, and what a step of pruning did."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from chainrule.ops.elementwise.logic import logical_and, where
from chainrule.ops.reduce.reductions import count_nonzero
from chainrule.ops.index.scatter import scatter
from chainrule.ops.creation.patterns import zeros
from chainrule.backend import dtypes
from chainrule.ops.shape.views import reshape
from chainrule.ops.shape.stacking import cat
from chainrule.ops.reduce.sort import topk
from chainrule.regularize.prune.masks import Weight, put_mask
from chainrule.tensor import Tensor

__all__ = ["Step", "check_scope", "prune_lowest", "remaining", "to_prune"]


@dataclass(frozen=True)
class Step:
    """What a step of pruning did: how many weights (or units) went, and what that cost.

    ``predicted`` is the change of the loss that the method expected, and ``measured`` the one that
    came of it, before any retraining; None where the method has no expectation or no data.
    """

    method: str
    pruned: int
    remaining: int
    total: int
    predicted: float | None = None
    before: float | None = None
    after: float | None = None
    note: str = ""

    @property
    def measured(self) -> float | None:
        """The change of the loss."""
        if self.before is None or self.after is None:
            return None
        return self.after - self.before

    @property
    def sparsity(self) -> float:
        """The fraction that is pruned by now."""
        return 1.0 - self.remaining / self.total


def check_scope(op: str, scope: str) -> None:
    """Raises ValueError unless weights are to be chosen among all, or in each layer."""
    if scope not in ("global", "layer"):
        raise ValueError(f"{op}: scope must be 'global' or 'layer', got {scope!r}")


def remaining(weights: Sequence[Weight]) -> int:
    """How many weights are left."""
    return sum(int(count_nonzero(w.mask)) for w in weights)


def to_prune(op: str, sparsity: float | None, count: int | None, left: int, total: int) -> int:
    """How many to prune so that a fraction ``sparsity`` of all is gone, or ``count`` of those left.

    >>> to_prune("prune", 0.5, None, left=8, total=10)
    3
    """
    if (sparsity is None) == (count is None):
        raise TypeError(f"{op}: expected either sparsity or count, got {sparsity} and {count}")
    if count is not None:
        if isinstance(count, bool) or not isinstance(count, int) or count < 0:
            raise ValueError(f"{op}: count must be a whole number >= 0, got {count!r}")
        if count > left:
            raise ValueError(
                f"{op}: cannot prune {count} of {total}, of which {left} are left; prune at most "
                f"{left}"
            )
        return count
    if not isinstance(sparsity, (int, float)) or not 0 <= sparsity <= 1:
        raise ValueError(f"{op}: sparsity must be a fraction from 0 to 1, got {sparsity!r}")
    wanted = round(sparsity * total) - (total - left)
    if wanted < 0:
        raise ValueError(
            f"{op}: a sparsity of {sparsity:g} was asked for, but {1 - left / total:g} of the "
            "weights are pruned already; pruning only goes on, prune.remove starts again"
        )
    return wanted


def prune_lowest(
    op: str,
    weights: Sequence[Weight],
    scores: Sequence[Tensor],
    sparsity: float | None,
    count: int | None,
    scope: str,
) -> tuple[int, float]:
    """Masks the weights with the lowest scores; how many they were, and the sum of their scores."""
    check_scope(op, scope)
    every = list(range(len(weights)))
    groups = [every] if scope == "global" else [[i] for i in every]
    plans = []
    for group in groups:
        chosen = [weights[i] for i in group]
        total = sum(w.parameter.numel() for w in chosen)
        number = to_prune(op, sparsity, count, remaining(chosen), total)
        plans.append((chosen, [scores[i] for i in group], number))
    pruned, cost = 0, 0.0
    for chosen, own, number in plans:
        if number:
            pruned += number
            cost += _mask_lowest(chosen, own, number)
    return pruned, cost


def _mask_lowest(weights: Sequence[Weight], scores: Sequence[Tensor], number: int) -> float:
    masked = [where(w.mask, s, math.inf) for w, s in zip(weights, scores, strict=True)]
    vector = cat([reshape(s, (-1,)) for s in masked])
    lowest = topk(vector, number, largest=False, sorted=False)
    stays = (
        scatter(
            zeros(vector.shape, dtype=dtypes.int64) + 1,
            0,
            lowest.indices,
            zeros(number, dtype=dtypes.int64),
        )
        > 0
    )
    start = 0
    for weight in weights:
        size = weight.parameter.numel()
        part = reshape(stays[start : start + size], tuple(weight.parameter.shape))
        put_mask(weight, logical_and(weight.mask, part))
        start += size
    return float(lowest.values.sum())


def figure(value: object) -> str:
    """A number for a table."""
    if value is None:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)

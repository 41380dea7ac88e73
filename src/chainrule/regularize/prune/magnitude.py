"""Pruning by size: single weights, or whole rows that make a unit."""

from __future__ import annotations


from chainrule.autograd.modes import no_grad
from chainrule.backend import dtypes
from chainrule.linalg import vector_norm
from chainrule.nn.module.base import Module
from chainrule.nn.module.names import Where
from chainrule.ops.elementwise.logic import logical_and
from chainrule.ops.core.promotion import cast
from chainrule.ops.shape.views import flatten, movedim, reshape
from chainrule.ops.creation.from_data import tensor
from chainrule.regularize.prune.choosing import (
    Step,
    check_scope,
    prune_lowest,
    remaining,
    to_prune,
)
from chainrule.regularize.prune.masks import Weight, put_mask, weights_of

__all__ = ["magnitude", "structured"]


def magnitude(
    model: Module,
    sparsity: float | None = None,
    *,
    count: int | None = None,
    scope: str = "global",
    where: Where = None,
) -> Step:
    """Prunes the smallest weights by absolute value.

    Args:
        model: any module.
        sparsity: the fraction of the weights that is pruned afterwards, what was pruned before
            included; or
        count: how many weights to prune now.
        scope: "global": the smallest of all; "layer": so much of each weight tensor by itself.
        where: which weights: a pattern of their names (``"*.weight"``), several, or a function of
            the name; by default all parameters of two or more dimensions.

    >>> import chainrule
    >>> from chainrule import nn
    >>> from chainrule.regularize import prune
    >>> net = nn.Linear(4, 1)
    >>> net.weight.data = chainrule.tensor([[3.0, -1.0, 2.0, 0.5]])
    >>> prune.magnitude(net, 0.5).pruned
    2
    >>> net.weight.tolist()
    [[3.0, 0.0, 2.0, 0.0]]
    """
    weights = weights_of("magnitude", model, where)
    sizes = [abs(w.value) for w in weights]
    pruned, _ = prune_lowest("magnitude", weights, sizes, sparsity, count, scope)
    total = sum(w.parameter.numel() for w in weights)
    return Step("magnitude", pruned, remaining(weights), total)


def structured(
    model: Module,
    sparsity: float | None = None,
    *,
    count: int | None = None,
    dim: int = 0,
    p: float = 2.0,
    scope: str = "layer",
    where: Where = None,
) -> Step:
    """Prunes whole slices of weights along ``dim`` by their p-norm: units and channels for dim 0.

    With dim 0 the bias of such a unit goes too, so that it is silent wherever f(0) = 0. Norms of
    different weights are compared (``scope="global"``) divided by the p-th root of their size.
    :func:`remove_units` goes further: it follows units through normalization and residual sums.

    The other arguments are those of :func:`magnitude`, but what they count is slices.

    >>> import chainrule
    >>> from chainrule import nn
    >>> from chainrule.regularize import prune
    >>> net = nn.Linear(2, 3)
    >>> net.weight.data = chainrule.tensor([[3.0, 1.0], [0.1, 0.2], [1.0, 1.0]])
    >>> _ = prune.structured(net, count=1)
    >>> net.weight.tolist()
    [[3.0, 1.0], [0.0, 0.0], [1.0, 1.0]]
    """
    op = "structured"
    check_scope(op, scope)
    weights = weights_of(op, model, where)
    for w in weights:
        if w.parameter.ndim < 2:
            raise ValueError(
                f"{op}: {w.name!r} of shape {tuple(w.parameter.shape)} has no slices to prune; "
                "where must choose parameters of two or more dimensions"
            )
        if not -w.parameter.ndim <= dim < w.parameter.ndim:
            raise IndexError(
                f"{op}: dim {dim} is out of range for {w.name!r} of shape "
                f"{tuple(w.parameter.shape)}"
            )
    with no_grad():
        slices = [_Slices(w, dim, p) for w in weights]
        groups = [slices] if scope == "global" else [[s] for s in slices]
        plans = [(g, _number(op, g, sparsity, count)) for g in groups]
        pruned = sum(_prune_slices(g, number) for g, number in plans)
        if dim == 0:
            _prune_biases(op, model, slices)
    total = sum(len(s.norms) for s in slices)
    return Step(op, pruned, sum(len(s.left) for s in slices), total)


class _Slices:
    """The slices of a weight along a dimension: their norms, and which are left."""

    def __init__(self, weight: Weight, dim: int, p: float):
        self.weight, self.dim = weight, dim % weight.parameter.ndim
        rows = flatten(movedim(weight.value, dim, 0), 1)
        self.norms = (vector_norm(rows, p, dim=1) / rows.shape[1] ** (1 / p)).tolist()
        alive = flatten(movedim(weight.mask, dim, 0), 1).any(1).tolist()
        self.left = [i for i, yes in enumerate(alive) if yes]

    def prune(self, gone: set[int]) -> None:
        self.left = [i for i in self.left if i not in gone]
        shape = [1] * self.weight.parameter.ndim
        shape[self.dim] = -1
        stays = tensor([i in set(self.left) for i in range(len(self.norms))])
        put_mask(self.weight, logical_and(self.weight.mask, reshape(stays, shape)))


def _number(op: str, group: list[_Slices], sparsity: float | None, count: int | None) -> int:
    left, total = sum(len(s.left) for s in group), sum(len(s.norms) for s in group)
    return to_prune(op, sparsity, count, left, total)


def _prune_slices(group: list[_Slices], number: int) -> int:
    ranked = sorted([(s.norms[i], k, i) for k, s in enumerate(group) for i in s.left])[:number]
    for k, s in enumerate(group):
        gone = {i for _, owner, i in ranked if owner == k}
        if gone:
            s.prune(gone)
    return number


def _prune_biases(op: str, model: Module, slices: list[_Slices]) -> None:
    """Prunes the entries of ``bias`` beside a weight whose rows are gone."""
    by_name = {w.name: w for w in weights_of(op, model, "*")}
    for s in slices:
        path, _, own = s.weight.name.rpartition(".")
        beside = own.replace("weight", "bias")
        bias = by_name.get(f"{path}.{beside}" if path else beside)
        if getattr(s.weight.owners[0][0], "transposed", False):
            continue  # its first dimension are the channels that come in
        if beside != own and bias is not None and bias.parameter.shape == (len(s.norms),):
            stays = tensor([i in set(s.left) for i in range(len(s.norms))])
            if len(s.left) < len(s.norms):
                put_mask(bias, logical_and(bias.mask, cast(stays, dtypes.bool_)))

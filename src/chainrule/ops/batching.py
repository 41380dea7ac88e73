"""How an operation is carried out for a whole batch at once: the rules of ``vmap``.

A rule gets the operation, the size of the batch, its inputs as physical tensors (those that are
``mapped`` have the batch as dimension 0) and its parameters; it returns the output with the batch
as dimension 0. Rules are written in the library's own operations, so they nest and differentiate.

Primitives name dimensions from the end (-1, -2, ...), so an extra one in front disturbs few of
them: most use ``carry``, elementwise operations use ``align``, and what is left has a rule of its
own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from chainrule.ops.primitive import Op, broadcast_to
from chainrule.tensor import Tensor

__all__ = ["RULES", "Rule", "batch_rule", "spread"]

Rule = Callable[[Op, int, Sequence[Tensor], Sequence[bool], dict[str, Any]], Any]
RULES: dict[str, Rule] = {}


def batch_rule(name: str) -> Callable[[Rule], Rule]:
    """Makes a rule available to primitives by name."""

    def register(rule: Rule) -> Rule:
        RULES[name] = rule
        return rule

    return register


def spread(value: Tensor, size: int) -> Tensor:
    """An unmapped tensor as a mapped one: the same value for every member of the batch."""
    return broadcast_to(value, shape=(size, *value.shape))


@batch_rule("align")
def align(
    op: Op, size: int, values: Sequence[Tensor], mapped: Sequence[bool], params: dict[str, Any]
) -> Any:
    """Elementwise: dimensions of size 1 behind the batch bring all inputs to one rank."""
    ndim = max(v.ndim - m for v, m in zip(values, mapped, strict=True))
    lined_up = [
        _insert_ones(v, ndim - (v.ndim - 1)) if m else v
        for v, m in zip(values, mapped, strict=True)
    ]
    return op(*lined_up, **params)


def _insert_ones(value: Tensor, count: int) -> Tensor:
    from chainrule.ops.shape import reshape

    if count == 0:
        return value
    return reshape(value, (value.shape[0], *[1] * count, *value.shape[1:]))


@batch_rule("carry")
def carry(
    op: Op, size: int, values: Sequence[Tensor], mapped: Sequence[bool], params: dict[str, Any]
) -> Any:
    """The operation works on trailing dimensions: every input gets the batch in front."""
    values = [v if m else spread(v, size) for v, m in zip(values, mapped, strict=True)]
    return op(*values, **params)


@batch_rule("shape")
def with_shape(
    op: Op, size: int, values: Sequence[Tensor], mapped: Sequence[bool], params: dict[str, Any]
) -> Any:
    """The operation has the shape of its output as a parameter."""
    return op(values[0], **(params | {"shape": (size, *params["shape"])}))


@batch_rule("broadcast_to")
def _broadcast_to(
    op: Op, size: int, values: Sequence[Tensor], mapped: Sequence[bool], params: dict[str, Any]
) -> Any:
    value, shape = values[0], params["shape"]
    return op(_insert_ones(value, len(shape) - (value.ndim - 1)), shape=(size, *shape))


@batch_rule("sum_to")
def _sum_to(
    op: Op, size: int, values: Sequence[Tensor], mapped: Sequence[bool], params: dict[str, Any]
) -> Any:
    from chainrule.ops.shape import reshape

    value, shape = values[0], params["shape"]
    ones = [1] * (value.ndim - 1 - len(shape))
    return reshape(op(value, shape=(size, *ones, *shape)), (size, *shape))

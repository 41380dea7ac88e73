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

from chainrule.ops.core.primitive import REGISTRY, Op, broadcast_to
from chainrule.tensor import Tensor

__all__ = ["ON_ARRAYS", "RULES", "Rule", "batch_rule", "rule_of", "spread"]

Rule = Callable[[Op, int, Sequence[Tensor], Sequence[bool], dict[str, Any]], Any]
RULES: dict[str, Rule] = {}
# The rules that may be given bare arrays, and then return bare arrays: where nothing is recorded,
# a batch is computed without a tensor for every step.
ON_ARRAYS: set[Rule] = set()


def batch_rule(name: str) -> Callable[[Rule], Rule]:
    """Makes a rule available to primitives by name."""

    def register(rule: Rule) -> Rule:
        RULES[name] = rule
        ON_ARRAYS.add(rule)
        return rule

    return register


def rule_of(op: Op) -> Rule:
    """The rule of an operation."""
    batch = op.batch
    if isinstance(batch, str):
        return RULES[batch]
    if batch is None:
        raise RuntimeError(
            f"vmap: the operation {op.name!r} has no batching rule; call it outside the "
            "function that is mapped, or write that part of the function with other operations"
        )
    return batch


def spread(value: Tensor, size: int) -> Tensor:
    """An unmapped tensor as a mapped one: the same value for every member of the batch."""
    return broadcast_to(value, shape=(size, *value.shape))


@batch_rule("align")
def align(
    op: Op, size: int, values: Sequence[Tensor], mapped: Sequence[bool], params: dict[str, Any]
) -> Tensor:
    """Elementwise: dimensions of size 1 behind the batch bring all inputs to one rank."""
    if len(values) == 1:
        return op(values[0], **params)
    if len(values) == 2:  # the commonest case, written out
        (x, y), (mapped_x, mapped_y) = values, mapped
        missing = x.ndim - mapped_x - y.ndim + mapped_y
        if missing > 0 and mapped_y:
            y = _insert_ones(y, missing)
        elif missing < 0 and mapped_x:
            x = _insert_ones(x, -missing)
        return op(x, y, **params)
    rank = max([v.ndim - m for v, m in zip(values, mapped, strict=True)])
    lined_up = [_with_rank(v, rank) if m else v for v, m in zip(values, mapped, strict=True)]
    return op(*lined_up, **params)


def _with_rank(value: Tensor, rank: int) -> Tensor:
    missing = rank - (value.ndim - 1)
    return _insert_ones(value, missing) if missing else value


def _insert_ones(value: Tensor, count: int) -> Tensor:
    size, *shape = value.shape
    return REGISTRY["reshape"](value, shape=(size, *[1] * count, *shape))


@batch_rule("carry")
def carry(
    op: Op, size: int, values: Sequence[Tensor], mapped: Sequence[bool], params: dict[str, Any]
) -> Any:
    """The operation works on trailing dimensions: every input gets the batch in front."""
    if False in mapped:
        values = [v if m else spread(v, size) for v, m in zip(values, mapped, strict=True)]
    return op(*values, **params)


@batch_rule("shape")
def with_shape(
    op: Op, size: int, values: Sequence[Tensor], mapped: Sequence[bool], params: dict[str, Any]
) -> Tensor:
    """The operation has the shape of its output as a parameter."""
    return op(values[0], **(params | {"shape": (size, *params["shape"])}))


@batch_rule("broadcast_to")
def _broadcast_to(
    op: Op, size: int, values: Sequence[Tensor], mapped: Sequence[bool], params: dict[str, Any]
) -> Tensor:
    value, shape = values[0], params["shape"]
    return op(_with_rank(value, len(shape)), shape=(size, *shape))


@batch_rule("sum_to")
def _sum_to(
    op: Op, size: int, values: Sequence[Tensor], mapped: Sequence[bool], params: dict[str, Any]
) -> Tensor:
    value, shape = values[0], params["shape"]
    missing = value.ndim - 1 - len(shape)
    out = op(value, shape=(size, *[1] * missing, *shape))
    return REGISTRY["reshape"](out, shape=(size, *shape)) if missing else out

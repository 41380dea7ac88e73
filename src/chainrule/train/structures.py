"""Outputs of several parts (tuples, lists, dicts of tensors): of batches, as one of all samples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from chainrule.autograd.nested import flatten, map_tree, unflatten
from chainrule.ops.shape.stacking import cat, stack
from chainrule.tensor import Tensor

__all__ = ["joined", "on_tensors"]


def on_tensors(function: Callable[[Tensor], Tensor], tree: Any) -> Any:
    """A structure with ``function`` applied to its tensors."""
    if isinstance(tree, Tensor):
        return function(tree)
    return map_tree(lambda leaf: function(leaf) if isinstance(leaf, Tensor) else leaf, tree)


def joined(parts: Sequence[Any], sizes: Sequence[int]) -> Any:
    """What batches of these sizes gave, as one: tensors end to end, part by part of a structure.

    A number of a batch becomes an entry of a vector, what is no tensor an entry of a list.

    >>> from chainrule import tensor
    >>> joined([{"y": tensor([1, 2])}, {"y": tensor([3])}], [2, 1])
    {'y': tensor([1, 2, 3])}
    """
    if isinstance(parts[0], Tensor):
        return parts[0] if len(parts) == 1 else cat(list(parts))
    leaves, descriptions = zip(*[flatten(part) for part in parts], strict=True)
    if any(d != descriptions[0] for d in descriptions):
        raise ValueError(
            "Trainer: the outputs of two batches differ in their parts; a model that is measured "
            "or asked for predictions must return the same structure each time"
        )
    columns = zip(*leaves, strict=True)
    return unflatten([_column(list(column), sizes) for column in columns], descriptions[0])


def _column(values: list[Any], sizes: Sequence[int]) -> Any:
    if not isinstance(values[0], Tensor):
        return None if all(v is None for v in values) else values
    if values[0].ndim == 0:
        return stack(values)
    if len(values) == 1:
        return values[0]
    if any(int(v.shape[0]) % max(1, n) for v, n in zip(values, sizes, strict=True)):
        raise ValueError(
            f"Trainer: a part of the output has shape {tuple(values[0].shape)} for a batch of "
            f"{sizes[0]} samples, so that batches cannot be joined along their first axis; return "
            "samples first, or leave this part out"
        )
    return cat(values)

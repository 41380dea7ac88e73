"""Nested tuples, lists and dicts of tensors, as transformations take and return them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["flatten", "map_tree", "unflatten"]


def flatten(tree: Any) -> tuple[list[Any], Any]:
    """The leaves in order, and a description from which :func:`unflatten` builds the tree again."""
    leaves: list[Any] = []
    return leaves, _describe(tree, leaves)


def _describe(tree: Any, leaves: list[Any]) -> Any:
    if isinstance(tree, dict):
        return type(tree), list(tree), [_describe(v, leaves) for v in tree.values()]
    if isinstance(tree, (tuple, list)):
        return type(tree), None, [_describe(v, leaves) for v in tree]
    leaves.append(tree)
    return None


def unflatten(leaves: list[Any], description: Any) -> Any:
    """The tree that :func:`flatten` described, with these leaves."""
    return _build(iter(leaves), description)


def _build(leaves: Any, description: Any) -> Any:
    if description is None:
        return next(leaves)
    kind, keys, parts = description
    values = [_build(leaves, part) for part in parts]
    if keys is not None:
        return kind(zip(keys, values, strict=True))
    return kind(*values) if hasattr(kind, "_fields") else kind(values)


def map_tree(function: Callable[..., Any], tree: Any) -> Any:
    """The tree with ``function`` applied to each leaf."""
    leaves, description = flatten(tree)
    return unflatten([function(leaf) for leaf in leaves], description)

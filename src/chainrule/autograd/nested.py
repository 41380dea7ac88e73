"""Nested tuples, lists and dicts of tensors, as transformations take and return them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

__all__ = ["Structure", "flatten", "map_tree", "unflatten"]

# Of a branch its type, the keys of a dict, and the parts; None for a leaf.
Structure: TypeAlias = "tuple[type[Any], list[Any] | None, list[Structure]] | None"


def flatten(tree: object) -> tuple[list[Any], Structure]:
    """The leaves in order, and a description from which :func:`unflatten` builds the tree again."""
    leaves: list[Any] = []
    return leaves, _describe(tree, leaves)


def _describe(tree: object, leaves: list[Any]) -> Structure:
    if isinstance(tree, dict):
        return type(tree), list(tree), [_describe(v, leaves) for v in tree.values()]
    if isinstance(tree, (tuple, list)):
        return type(tree), None, [_describe(v, leaves) for v in tree]
    leaves.append(tree)
    return None


def unflatten(leaves: Iterable[Any], description: Structure) -> Any:
    """The tree that :func:`flatten` described, with these leaves."""
    return _build(iter(leaves), description)


def _build(leaves: Iterator[Any], description: Structure) -> Any:
    if description is None:
        return next(leaves)
    kind, keys, parts = description
    values = [_build(leaves, part) for part in parts]
    if keys is not None:
        return kind(zip(keys, values, strict=True))
    return kind(*values) if hasattr(kind, "_fields") else kind(values)


def map_tree(function: Callable[[Any], Any], tree: object) -> Any:
    """The tree with ``function`` applied to each leaf."""
    leaves, description = flatten(tree)
    return unflatten([function(leaf) for leaf in leaves], description)

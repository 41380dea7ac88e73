"""Which modules and parameters are looked at: by patterns of their names."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from chainrule.nn.layers.embedding import Embedding, EmbeddingBag
from chainrule.nn.module.base import Module
from chainrule.nn.module.names import listed, matches

__all__ = ["check_patterns", "chosen", "has_sums", "label"]


def chosen(name: str, patterns: Sequence[str]) -> bool:
    """Whether a pattern means this name: it matches it, or a module that it belongs to.

    >>> chosen("encoder.0.weight", ["encoder"]), chosen("head.bias", ["encoder.*"])
    (True, False)
    """
    return any(matches(name, p) or matches(name, f"{p}.*") for p in patterns)


def label(path: str, model: Module) -> str:
    """How a module is called in tables: its name in the model, that of the class for the whole."""
    return path or type(model).__name__


def has_sums(module: Module) -> bool:
    """Whether a module returns weighted sums, on which an activation function may follow."""
    weight = module._parameters.get("weight")
    return not (weight is None or weight.ndim < 2 or isinstance(module, (Embedding, EmbeddingBag)))


def check_patterns(instrument: str, model: Module, patterns: Sequence[str]) -> None:
    """Raises ValueError for a pattern that means nothing in the model."""
    names = [name for name, _ in model.named_parameters()]
    names += [label(path, model) for path, _ in model.named_modules()]
    for pattern in patterns:
        if any(chosen(name, [pattern]) for name in names):
            continue
        near = difflib.get_close_matches(pattern, names, 6, 0.5)
        hint = f"; near it are {', '.join(near)}" if near else f"; there are {listed(names)}"
        raise ValueError(f"{instrument}: {pattern!r} matches no module and no parameter{hint}")

"""Which parameters are meant: by their dotted names, patterns of them, or a predicate.

A pattern is one of :mod:`fnmatch`: ``"*.weight"``, ``"conv?.*"``, ``"head.bias"``. A leading
``*.`` also matches nothing, so that ``"*.weight"`` finds the weight of a lone layer, too.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Sequence
from typing import Any

__all__ = ["Where", "last_layer", "matches", "paths", "select_names"]

Where = str | Sequence[str] | Callable[[str], bool] | None


def matches(name: str, where: str | Sequence[str] | Callable[[str], bool]) -> bool:
    """Whether a name fits a pattern, one of several patterns, or a predicate.

    >>> matches("0.weight", "*.weight"), matches("weight", "*.weight"), matches("0.bias", ["0.*"])
    (True, True, True)
    """
    if callable(where):
        return bool(where(name))
    patterns = [where] if isinstance(where, str) else where
    return any(fnmatch.fnmatchcase(name, p) or fnmatch.fnmatchcase(f".{name}", p) for p in patterns)


def paths(tree: Any, prefix: str = "") -> list[str]:
    """The dotted names of the leaves of a tree; that of a tensor alone is "param".

    >>> paths({"w": 1, "out": [2, 3]})
    ['w', 'out.0', 'out.1']
    """
    if isinstance(tree, dict):
        parts: Any = tree.items()
    elif isinstance(tree, (tuple, list)):
        parts = enumerate(tree)
    else:
        return [prefix or "param"]
    start = f"{prefix}." if prefix else ""
    return [name for key, part in parts for name in paths(part, f"{start}{key}")]


def select_names(op: str, names: Sequence[str], where: Where, aliases: Any = None) -> list[str]:
    """Those of the names that are meant, in their order; each part of ``where`` must match one.

    ``aliases`` gives other names under which a parameter may be asked for (shared weights).
    """
    if where is None:
        return list(names)
    several = isinstance(where, Sequence) and not isinstance(where, str)
    parts = list(where) if several else [where]  # type: ignore[arg-type]
    if not parts or not all(isinstance(p, str) for p in parts if several or not callable(p)):
        raise TypeError(
            f"{op}: where must be a name, a pattern such as '*.weight', a list of patterns or a "
            f"function of a name, got {where!r}"
        )
    known = {name: [name, *(aliases or {}).get(name, [])] for name in names}
    chosen: set[str] = set()
    for part in parts:
        found = [n for n, all_names in known.items() if any(matches(a, part) for a in all_names)]
        if not found:
            more = f", ... ({len(names)} in all)" if len(names) > 12 else ""
            what = repr(part) if isinstance(part, str) else getattr(part, "__name__", repr(part))
            raise ValueError(
                f"{op}: {what} matches no parameter; there are {', '.join(names[:12])}{more}"
            )
        chosen.update(found)
    return [name for name in names if name in chosen]


def last_layer(model: Any) -> list[str]:
    """The names of the parameters of the layer that holds the last parameter of a module.

    >>> from chainrule import nn
    >>> last_layer(nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1)))
    ['2.weight', '2.bias']
    """
    names = [name for name, _ in model.named_parameters()]
    if not names:
        raise ValueError("last_layer: the model has no parameters")
    layer = names[-1].rpartition(".")[0]
    return [name for name in names if name.rpartition(".")[0] == layer]

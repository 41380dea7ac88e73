"""Which parameters of a module are meant: by patterns, lists of patterns, or a predicate.

A pattern is one of :mod:`fnmatch` on the dotted name: ``"*.weight"``, ``"conv?.*"``, ``"0.bias"``.
A leading ``*.`` also matches nothing, so that ``"*.weight"`` finds the weight of a lone layer, too.
A parameter that several modules share is one parameter; any of its names will do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from chainrule.curvature.names import matches
from chainrule.nn.layers.containers import ModuleList
from chainrule.nn.module.base import Module
from chainrule.nn.parameter import is_lazy

__all__ = ["Where", "check_where", "describe", "matches", "named", "select", "select_groups"]

Where = str | Sequence[str] | Callable[[str], bool] | None


def check_where(op: str, where: Any) -> None:
    """Raises TypeError unless this can say which parameters are meant."""
    if where is None or isinstance(where, str) or callable(where):
        return
    if isinstance(where, Sequence) and where and all(isinstance(p, str) for p in where):
        return
    raise TypeError(
        f"{op}: where must be a pattern such as '*.weight', a list of patterns or a function of a "
        f"name, got {where!r}"
    )


def describe(where: Any) -> str:
    """What to show of it in a representation."""
    if callable(where):
        return getattr(where, "__name__", repr(where))
    return repr(where)


def named(op: str, model: Module) -> list[tuple[list[str], Any]]:
    """The real floating-point parameters, each once, with all the names it has."""
    if not isinstance(model, Module):
        raise TypeError(f"{op}: expected a Module, got {type(model).__name__}")
    found: dict[int, tuple[list[str], Any]] = {}
    for name, p in model.named_parameters(remove_duplicate=False):
        if is_lazy(p):
            raise ValueError(
                f"{op}: the parameter {name!r} has no shape yet; call the model once before"
            )
        if p.dtype.is_floating_point:
            found.setdefault(id(p), ([], p))[0].extend(_names(model, name))
    return list(found.values())


def _names(model: Module, name: str) -> list[str]:
    """A name; and the plain one, ``0.weight``, too, of a weight that is pruned by a mask."""
    path, _, last = name.rpartition(".")
    owner = model.get_submodule(path)
    masked = isinstance(owner, ModuleList) and any(getattr(f, "is_mask", False) for f in owner)
    if last != "original" or not masked:
        return [name]
    above, _, weight = path.rpartition(".")
    return [name, above.removesuffix("parametrizations") + weight]


def select(op: str, model: Module, where: Where = None) -> dict[str, Any]:
    """The parameters that are meant, by name.

    Without ``where`` all weights: parameters of two or more dimensions, not the biases and scales.
    """
    known = named(op, model)
    if where is None:
        chosen = {names[0]: p for names, p in known if p.ndim >= 2}
        if not chosen:
            raise ValueError(
                f"{op}: the module has no weights (parameters of two or more dimensions) among "
                f"{_listed(known)}; say which are meant: where='*' means all"
            )
        return chosen
    for part in where if isinstance(where, Sequence) and not isinstance(where, str) else [where]:
        if not any(matches(n, part) for names, _ in known for n in names):
            raise ValueError(
                f"{op}: {describe(part)} matches no parameter; the module has {_listed(known)}"
            )
    own = {name for name, _ in model.named_parameters(remove_duplicate=False)}
    return {
        next((n for n in names if matches(n, where) and n in own), names[0]): p
        for names, p in known
        if any(matches(n, where) for n in names)
    }


def select_groups(
    op: str, model: Module, strengths: Mapping[str, float]
) -> list[tuple[float, dict[str, Any]]]:
    """The parameters of each pattern with its strength; the first pattern that matches counts."""
    known = named(op, model)
    taken: set[int] = set()
    groups = []
    for pattern, strength in strengths.items():
        chosen = {
            next(n for n in names if matches(n, pattern)): p
            for names, p in known
            if id(p) not in taken and any(matches(n, pattern) for n in names)
        }
        if not chosen:
            why = " that an earlier pattern has not taken" if taken else ""
            raise ValueError(
                f"{op}: {pattern!r} matches no parameter{why}; the module has {_listed(known)}"
            )
        taken |= {id(p) for p in chosen.values()}
        groups.append((strength, chosen))
    return groups


def _listed(known: list[tuple[list[str], Any]], most: int = 12) -> str:
    names = [names[0] for names, _ in known]
    if not names:
        return "no parameters"
    more = f", ... ({len(names)} in all)" if len(names) > most else ""
    return ", ".join(names[:most]) + more

"""The parameters of a module that are meant, with all the names they have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from chainrule.nn.layers.containers import ModuleList
from chainrule.nn.module.base import Module
from chainrule.nn.module.names import Where, listed, matches, select_names
from chainrule.nn.parameter import is_lazy
from chainrule.tensor import Tensor

__all__ = ["named", "select", "select_groups", "select_weights"]


def named(op: str, model: Module) -> list[tuple[list[str], Tensor]]:
    """The real floating-point parameters, each once, with all the names it has."""
    if not isinstance(model, Module):
        raise TypeError(f"{op}: expected a Module, got {type(model).__name__}")
    found: dict[int, tuple[list[str], Tensor]] = {}
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


def select(op: str, model: Module, where: Where = None) -> dict[str, Tensor]:
    """The parameters that are meant, by name.

    Without ``where`` all weights: parameters of two or more dimensions, not the biases and scales.
    """
    known = named(op, model)
    chosen = select_weights(op, known, where)
    if where is None:
        return {known[i][0][0]: known[i][1] for i in chosen}
    own = {name for name, _ in model.named_parameters(remove_duplicate=False)}
    return {
        next((n for n in names if matches(n, where) and n in own), names[0]): p
        for names, p in [known[i] for i in chosen]
    }


def select_weights(
    op: str, known: Sequence[tuple[Sequence[str], Tensor]], where: Where
) -> list[int]:
    """The numbers of the parameters that are meant; those of two or more dimensions by default."""
    chosen = select_names(op, [names for names, _ in known], where)
    if where is not None:
        return chosen
    weights = [i for i in chosen if known[i][1].ndim >= 2]
    if not weights:
        raise ValueError(
            f"{op}: the module has no weights (parameters of two or more dimensions) among "
            f"{_listed(known)}; say which are meant: where='*' means all"
        )
    return weights


def select_groups(
    op: str, model: Module, strengths: Mapping[str, float]
) -> list[tuple[float, dict[str, Tensor]]]:
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
                f"{op}: {pattern!r} matches no parameter{why}; there are {_listed(known)}"
            )
        taken |= {id(p) for p in chosen.values()}
        groups.append((strength, chosen))
    return groups


def _listed(known: Sequence[tuple[Sequence[str], Tensor]]) -> str:
    return listed([names[0] for names, _ in known])

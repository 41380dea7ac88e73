"""Which parameters are meant: by their dotted names, patterns of them, or a predicate.

A pattern is one of :mod:`fnmatch`: ``"*.weight"``, ``"conv?.*"``, ``"head.bias"``. A leading
``*.`` also matches nothing, so that ``"*.weight"`` finds the weight of a lone layer, too.
A parameter that several modules share is one parameter; any of its names will do.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Sequence

__all__ = ["Where", "check_where", "describe", "listed", "matches", "select_names"]

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


def check_where(op: str, where: object) -> None:
    """Raises TypeError unless this can say which parameters are meant."""
    if where is None or isinstance(where, str) or callable(where):
        return
    if isinstance(where, Sequence) and where and all(isinstance(p, str) for p in where):
        return
    raise TypeError(
        f"{op}: where must be a pattern such as '*.weight', a list of patterns or a function of a "
        f"name, got {where!r}"
    )


def describe(where: object) -> str:
    """What to show of it in a representation."""
    if callable(where):
        return getattr(where, "__name__", repr(where))
    return repr(where)


def listed(names: Sequence[str], most: int = 12) -> str:
    """The names for a message, of many only the first."""
    more = f", ... ({len(names)} in all)" if len(names) > most else ""
    return ", ".join(names[:most]) + more if names else "no parameters"


def select_names(op: str, known: Sequence[Sequence[str]], where: Where) -> list[int]:
    """The numbers of those that are meant, each known by all its names; all unless ``where``.

    Each part of ``where`` must match one.

    >>> select_names("L2", [["0.weight", "2.weight"], ["0.bias"]], "2.*")
    [0]
    """
    check_where(op, where)
    if where is None:
        return list(range(len(known)))
    for part in [where] if isinstance(where, str) or callable(where) else where:
        if not any(matches(name, part) for names in known for name in names):
            raise ValueError(
                f"{op}: {describe(part)} matches no parameter; there are "
                f"{listed([names[0] for names in known])}"
            )
    return [i for i, names in enumerate(known) if any(matches(name, where) for name in names)]

"""Options that say what columns are, in the place of guesses."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

__all__ = ["KINDS", "add_column_options", "roles_of"]

# The option of each kind, and its help.
KINDS = {
    "drop": ("drop", "COL", "columns to leave out"),
    "categorical": ("category", "COL", "columns that are categories, also of numbers"),
    "numeric": ("number", "COL", "columns of numbers, also with currencies, percent, thousands"),
    "ordinal": (
        "ordinal",
        "COL[=A,B,C]",
        "categories with an order: that of numbers, a known one, or the one given",
    ),
    "boolean": ("boolean", "COL", "columns with two values"),
    "date": ("date", "COL[=dmy|mdy]", "dates and times; the day or the month may come first"),
    "text": ("text", "COL", "columns of text, taken by its letters"),
}

MORE = {
    "date": ", or COL=dmy or COL=mdy for the day or the month first",
    "ordinal": ", or COL=A,B,C with its values in their order",
}


def add_column_options(parser: argparse.ArgumentParser) -> None:
    """An option for each kind of column."""
    for option, (_, metavar, help) in KINDS.items():
        parser.add_argument(f"--{option}", metavar=metavar, nargs="+", default=[], help=help)


def roles_of(options: argparse.Namespace, columns: Sequence[str]) -> dict[str, str | list[str]]:
    """The roles of columns by the options that give them; a column can have one.

    Raises:
        ValueError: if two options contradict each other, or say what there cannot be.
    """
    roles: dict[str, str | list[str]] = {}
    said: dict[str, str] = {}
    for option, (kind, _, _) in KINDS.items():
        for word in getattr(options, option):
            name, role = _role(option, kind, word, columns)
            if name in said and (said[name] != option or roles[name] != role):
                raise ValueError(
                    f"--{option} {word}: the column {name!r} was given to --{said[name]}, too; say "
                    "one of them"
                )
            roles[name], said[name] = role, option
    return roles


def _role(option: str, kind: str, word: str, columns: Sequence[str]) -> tuple[str, str | list[str]]:
    """The column that a word names, and its role; what follows a "=" says more about it."""
    name, found, more = word.rpartition("=")
    if word in columns or not found:
        return word, kind
    if option == "date" and more in ("dmy", "mdy"):
        return name, f"date {more}"
    if option == "ordinal" and more:
        return name, [value.strip() for value in more.split(",")]
    raise ValueError(f"--{option} {word}: expected the name of a column{MORE.get(option, '')}")

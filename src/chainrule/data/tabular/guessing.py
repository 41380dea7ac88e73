"""What a column is taken for by its values, where nobody said it."""

from __future__ import annotations

from collections.abc import Mapping

from chainrule.data.columns import MIXED, Column, TableError
from chainrule.data.columns import NUMBER as NUMBERS
from chainrule.data.table import Table
from chainrule.data.tabular.roles import BOOLEAN, CATEGORY, DROP, NUMBER, Role
from chainrule.data.tabular.shared import is_constant, quoted
from chainrule.ops.elementwise.logic import isinf
from chainrule.ops.reduce.reductions import any as any_of

__all__ = ["FALSE", "TRUE", "guess_role", "guess_roles"]

# What answers a question with two answers, in the languages of many tables.
TRUE = ["true", "t", "yes", "y", "on", "ja", "oui", "si", "sí", "sì", "sim", "tak", "да", "是", "1"]
FALSE = ["false", "f", "no", "n", "off", "nein", "nee", "non", "não", "nie", "нет", "否", "0"]


def guess_roles(
    table: Table, given: Mapping[str, Role] | None = None, guesses: Mapping[str, Role] | None = None
) -> dict[str, Role]:
    """The role of each column: what a person said, else a former guess, else a new one."""
    known = {**(guesses or {}), **(given or {})}
    strange = [name for name in given or {} if name not in table]
    if strange:
        raise TableError(
            f"there is no column {quoted(strange)} to have a role; the columns are "
            f"{quoted(table.names)}"
        )
    return {c.name: known[c.name] if c.name in known else guess_role(c) for c in table}


def guess_role(column: Column) -> Role:
    """What a column is taken for by its values."""
    rows, present = len(column), len(column) - column.missing
    if not present:
        return Role(DROP, "all values are missing")
    if present == rows and is_constant(column):
        return Role(DROP, "it has one value only")
    if column.kind == NUMBERS:
        if bool(any_of(isinf(column.numbers))):
            raise TableError(
                f"column {column.name!r} has infinite values; replace them, or leave them empty"
            )
        return Role(NUMBER, "all values are numbers")
    return _of_words(column, present)


def _of_words(column: Column, present: int) -> Role:
    counts = column.counts()
    if column.kind == MIXED:
        column.refuse_mixed()
    lower = {str(word).lower() for word in counts}
    if lower.issubset({*TRUE, *FALSE}) and lower.intersection(TRUE) and lower.intersection(FALSE):
        return Role(BOOLEAN, f"its values are {quoted(sorted(counts))}")
    different = len(counts)
    if present >= 10 and different > 0.9 * present:
        return Role(DROP, f"it is text with {different} different values in {len(column)} rows")
    return Role(CATEGORY, f"it is text with {different} different values")

"""What a column is taken for by its values, where nobody said it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from chainrule.data.columns import DATE as DATES
from chainrule.data.columns import NUMBER as NUMBERS
from chainrule.data.columns import Column, TableError
from chainrule.data.table import Table
from chainrule.data.tabular.dates import date_form
from chainrule.data.tabular.numerals import decimal_mark
from chainrule.data.tabular.packed_dates import form_of_numbers
from chainrule.data.tabular.roles import BOOLEAN, CATEGORY, DATE, DROP, NUMBER, ORDINAL, TEXT, Role
from chainrule.data.tabular.scales import known_order
from chainrule.data.tabular.shared import is_constant, quoted
from chainrule.ops.elementwise.functions import floor
from chainrule.ops.elementwise.logic import isinf, isnan
from chainrule.ops.reduce.reductions import all as all_of
from chainrule.ops.reduce.reductions import any as any_of
from chainrule.ops.reduce.reductions import nansum

__all__ = ["FALSE", "TRUE", "guess_role", "guess_roles"]

# What answers a question with two answers, in the languages of many tables.
TRUE = ["true", "t", "yes", "y", "on", "ja", "oui", "si", "sí", "sì", "sim", "tak", "да", "是", "1"]
FALSE = ["false", "f", "no", "n", "off", "nein", "nee", "non", "não", "nie", "нет", "否", "0"]

ENOUGH = 20  # rows that must differ, or count, before a column is taken for an identifier
_SPLIT = r"(?:^|[\s_.\-])"
ID = re.compile(
    rf"{_SPLIT}(?:id|uuid|guid|idx|index|row|rowid|rownum|row_number|pk|phone|telephone|mobile|"
    r"ssn|iban|isbn|e?mail)\d*$|^unnamed: ?\d+$|^__index_level_\d+__$|^#$",
    re.IGNORECASE,
)
CAMEL = re.compile(r"[a-z]I[dD]$")
CODE = re.compile(rf"{_SPLIT}(?:zip|zipcode|postcode|postal[ _]?code|plz|code)$", re.IGNORECASE)
TIME = re.compile(
    rf"(?i:{_SPLIT}(?:date|time|stamp|ts|epoch|when|month|period|created|updated|modified|at)"
    r"(?:$|[\s_.\-])|timestamp|datetime|yyyymm)|[a-z](?:Date|Time|Stamp|At|Month)$"
)
COUNTS = "it counts the rows"


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
    roles = {c.name: known[c.name] if c.name in known else guess_role(c) for c in table}
    if all(role.kind == DROP for role in roles.values()):  # then rows that are counted are time
        for name, role in roles.items():
            if role.reason == COUNTS:
                roles[name] = Role(NUMBER, "there is no other column")
    unknown = [c for c in table if c.name not in known and roles[c.name].kind != DROP]
    return roles | _duplicates([c for c in table if roles[c.name].kind != DROP], unknown)


def _duplicates(columns: Sequence[Column], droppable: Sequence[Column]) -> dict[str, Role]:
    """The columns that have the same values as one before them."""
    first: dict[object, list[Column]] = {}
    found: dict[str, Role] = {}
    names = {c.name for c in droppable}
    for column in columns:
        same = first.setdefault(_fingerprint(column), [])
        twin = next((c for c in same if _equal(c, column)), None) if column.name in names else None
        if twin is None:
            same.append(column)
        else:
            found[column.name] = Role(DROP, f"its values are those of {twin.name!r}")
    return found


def _fingerprint(column: Column) -> object:
    """What equal columns have in common, quickly found."""
    if column.kind in (NUMBERS, DATES):
        return column.kind, float(nansum(column.numbers)), column.missing
    return column.kind, tuple(sorted(column.counts().items())[:50])


def _equal(a: Column, b: Column) -> bool:
    if a.kind in (NUMBERS, DATES):
        return bool(all_of((a.numbers == b.numbers) | (isnan(a.numbers) & isnan(b.numbers))))
    return a.values == b.values


def guess_role(column: Column) -> Role:
    """What a column is taken for by its values and its name."""
    rows, present = len(column), len(column) - column.missing
    if not present:
        return Role(DROP, "all values are missing")
    if present == rows and is_constant(column):
        return Role(DROP, "it has one value only")
    if column.kind == NUMBERS:
        return _of_numbers(column, present)
    if column.kind == DATES:
        return Role(DATE, "its values are dates", how={"form": "iso"})
    return _of_words(column, present)


def _of_numbers(column: Column, present: int) -> Role:
    numbers = column.where_present().numbers
    if bool(any_of(isinf(numbers))):
        raise TableError(
            f"column {column.name!r} has infinite values; replace them, or leave them empty"
        )
    found = form_of_numbers(column, TIME.search(column.name) is not None)
    if found is not None:
        return Role(DATE, found[1], how={"form": found[0]})
    if present < ENOUGH or not bool(all_of(numbers == floor(numbers))):
        return Role(NUMBER, "all values are numbers")
    if present == len(column) and bool(all_of(numbers[1:] - numbers[:-1] == 1)):
        return Role(DROP, COUNTS)
    if _is_identifier(column.name) or CODE.search(column.name):
        share = len(column.counts()) / present
        if share > 0.9 and _is_identifier(column.name):
            return Role(DROP, "it is an identifier: so its name says, and its values differ")
        if share <= 0.5:
            return Role(CATEGORY, "they are numbers, but its name says that they stand for others")
    return Role(NUMBER, "all values are numbers")


def _is_identifier(name: str) -> bool:
    return ID.search(name) is not None or CAMEL.search(name) is not None


def _of_words(column: Column, present: int) -> Role:
    counts = column.counts()
    words = [str(word) for word in counts]
    lower = {word.lower() for word in words}
    if lower.issubset({*TRUE, *FALSE}) and lower.intersection(TRUE) and lower.intersection(FALSE):
        return Role(BOOLEAN, f"its values are {quoted(sorted(words))}")
    if column.ordered:
        return Role(ORDINAL, "its type has an order", how={"order": list(column.words)})
    if column.typed:
        return Role(CATEGORY, f"its type is a category, with {len(words)} values here")
    dates = date_form(words)
    if dates is not None:
        return Role(DATE, dates[1], how={"form": dates[0]})
    mark = decimal_mark(words)
    if mark is not None:
        return Role(NUMBER, f"all values are numbers, like {words[0]!r}", how={"mark": mark})
    column.refuse_mixed()
    order = known_order(words) if len(words) <= 50 else None
    if order is not None:
        return Role(ORDINAL, f"its values have an order, {quoted(order)}", how={"order": order})
    return _of_text(words, present)


def _of_text(words: Sequence[str], present: int) -> Role:
    """An identifier, text, or a category, by how often values differ and what they look like."""
    share = len(words) / present
    if present < 10 or share <= 0.1:
        return Role(CATEGORY, f"it is text with {len(words)} different values")
    is_prose = _is_prose(words)
    if is_prose and (share > 0.5 or len(words) > 100):
        return Role(TEXT, f"it is text of several words, {len(words)} of {present} different")
    if share > 0.9:
        return Role(DROP, f"it tells rows apart: {len(words)} different values in {present} rows")
    if share > 0.5 and present >= 50 and _are_letters(words):
        return Role(TEXT, f"it is text, {len(words)} values of {present} different")
    return Role(CATEGORY, f"it is text with {len(words)} different values")


def _is_prose(words: Sequence[str]) -> bool:
    """Whether values are of three words or more, mostly of letters; signs of Chinese are words."""
    some = words[:500]
    parts = sum(len(word.split()) + sum("\u2e80" < c < "\uffef" for c in word) / 2 for word in some)
    return parts >= 3 * len(some) and _are_letters(words)


def _are_letters(words: Sequence[str]) -> bool:
    """Whether more than half of all signs are letters."""
    some = words[:500]
    return sum(c.isalpha() for word in some for c in word) > 0.5 * sum(map(len, some))

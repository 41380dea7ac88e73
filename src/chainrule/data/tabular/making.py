"""From the role of a column to its feature, and from what a file says of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from chainrule.data.columns import DATE as DATES
from chainrule.data.columns import Column, TableError
from chainrule.data.columns import NUMBER as NUMBERS
from chainrule.data.preprocess import saved
from chainrule.data.tabular import roles as kinds
from chainrule.data.tabular.dates import date_form, reading_of
from chainrule.data.tabular.features import Boolean, Feature, Number, OneHot, Ordinal
from chainrule.data.tabular.guessing import FALSE, TRUE
from chainrule.data.tabular.large import LargeCategory
from chainrule.data.tabular.moments import Duration, Moment
from chainrule.data.tabular.numerals import decimal_mark
from chainrule.data.tabular.packed_dates import form_of_numbers
from chainrule.data.tabular.roles import DROP, Role
from chainrule.data.tabular.scales import known_order
from chainrule.data.tabular.shared import is_constant, quoted
from chainrule.data.tabular.text import Text
from chainrule.ops.elementwise.logic import isinf
from chainrule.ops.reduce.reductions import any as any_of
from chainrule.tensor import Tensor

__all__ = ["make_feature", "mark_of", "restored_feature"]

FEATURES: dict[str, type[Feature]] = {
    f.kind: f for f in (Number, Boolean, OneHot, Ordinal, LargeCategory, Moment, Duration, Text)
}


def make_feature(
    column: Column, role: Role, target: Tensor | None, max_categories: int
) -> Feature | Role:
    """The feature of a column in its role, fitted; or the role "drop" if there is nothing in it."""
    if role.kind == DROP:
        return role
    if column.missing == len(column):
        return _nothing(column, role, "all values are missing")
    if not column.missing and is_constant(column):
        return _nothing(column, role, "it has one value only")
    if role.kind == kinds.NUMBER:
        return _number(column, role)
    if role.kind == kinds.DATE:
        return Moment.fit(column, _form(column, role))
    text = column.as_category()
    if role.kind == kinds.BOOLEAN:
        return _boolean(text)
    if role.kind == kinds.ORDINAL:
        return Ordinal.fit(text, _order(column, role))
    if role.kind == kinds.TEXT:
        return Text.fit(text)
    if len(text.counts()) <= max_categories:
        return OneHot.fit(text)
    return LargeCategory.fit(text, target)


def _nothing(column: Column, role: Role, reason: str) -> Role:
    """Nothing can be learned from these rows; what a person wants used is an error."""
    if role.given:
        raise TableError(f"column {column.name!r} cannot be used as {role.kind}: {reason}; drop it")
    return replace(role, kind=DROP, reason=reason)


def mark_of(column: Column, role: Role) -> str:
    """The decimal mark of a column that is taken for numbers; "" where it holds numbers."""
    if column.kind == NUMBERS:
        return ""
    return role.how.get("mark") or decimal_mark([str(word) for word in column.counts()]) or "."


def _number(column: Column, role: Role) -> Number:
    if column.kind == DATES:
        raise TableError(f"column {column.name!r} is dates; use it as a date, or drop it")
    if column.kind != NUMBERS:
        return Number.fit(column, mark_of(column, role))
    if bool(any_of(isinf(column.numbers))):
        raise TableError(
            f"column {column.name!r} has infinite values; replace them, or leave them empty"
        )
    return Number.fit(column)


def _boolean(text: Column) -> Boolean:
    words = sorted({str(word).lower() for word in text.counts()})
    gaps = text.missing > 0
    if set(words).issubset({*TRUE, *FALSE}):
        return Boolean(text.name, gaps, list(TRUE), list(FALSE))
    if len(words) > 2:
        raise TableError(
            f"column {text.name!r} has {len(words)} different values ({quoted(words[:5])}...), a "
            "boolean has two; use it as a category"
        )
    return Boolean(text.name, gaps, words[1:], words[:1])


def _form(column: Column, role: Role) -> str:
    """How dates are read; an error if a column that was said to be dates is not."""
    if "form" in role.how:
        return role.how["form"]
    if column.kind == DATES:
        return "iso"
    if column.kind == NUMBERS:
        found = form_of_numbers(column, named=True, said=True)
        what = "no dates like 20241231, nor seconds since 1970, nor days of Excel"
    else:
        found = date_form([str(word) for word in column.counts()])
        what = "no dates in one form, like 2024-12-31, 31.12.2024 or 12/31/2024 10:30 PM"
    if found is not None:
        return found[0]
    words = [str(word) for word in column.as_category().counts()]
    bad = [w for w in words if all(reading_of(w, form) is None for form in ("dmy", "mdy"))]
    raise TableError(
        f"column {column.name!r} cannot be used as a date: its values are {what}; one of them is "
        f"{(bad or words)[0]!r}"
    )


def _order(column: Column, role: Role) -> list[str]:
    if "order" in role.how:
        return role.how["order"]
    if column.kind == NUMBERS:
        return list(column.as_category().words)  # by size
    words = [str(word) for word in column.words]
    order = words if column.ordered else known_order(column.counts())
    if order is not None:
        return order
    raise TableError(
        f"column {column.name!r} is text whose order is not known: give its values in their order, "
        f"by --ordinal {column.name}={','.join(sorted(column.counts())[:3])} or "
        f"roles={{{column.name!r}: {sorted(column.counts())[:3]}}}"
    )


def restored_feature(state: dict[str, Any]) -> Feature:
    """A feature from plain values of a file, which may hold anything."""
    (kind,) = saved("TableEncoder", state, kind="text")
    if kind not in FEATURES:
        raise ValueError(f"TableEncoder: a feature of the unknown kind {kind!r}")
    return FEATURES[kind].restored(state)

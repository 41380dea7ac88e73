"""Columns of tables: what is a number, what is missing and what is text, stated once."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable, Sequence
from string import ascii_letters
from typing import Any

from chainrule.backend import dtypes
from chainrule.ops.creation.from_data import tensor
from chainrule.ops.creation.patterns import arange
from chainrule.ops.elementwise.logic import isnan, where
from chainrule.ops.reduce.order import argmax
from chainrule.ops.reduce.reductions import any as any_of
from chainrule.ops.reduce.sort import bincount, unique
from chainrule.tensor import Tensor

__all__ = ["CATEGORY", "DATE", "MIXED", "NUMBER", "Column", "TableError"]
__all__ += ["column_of", "column_of_words", "is_code", "number_in", "text_of_number"]

MISSING = {
    *("", "na", "n/a", "n.a.", "nan", "nat", "null", "(null)", "nil", "none", "<na>"),
    *("?", "-", "--", ".", ".."),
    *("#n/a", "#na", "#n/a n/a", "#div/0!", "#value!", "#ref!", "#name?", "#num!", "#null!"),
}
NUMBER, CATEGORY, MIXED, DATE = "number", "category", "mixed", "date"

Meaning = float | str | None


class TableError(ValueError):
    """A table that cannot be used as it is; the message says which column or line, and the fix."""


class Column:
    """A name and values: numbers (NaN where missing), or text (None where missing).

    ``kind`` is "number", "category", "date" or "mixed": text among which most are numbers.
    What learns from a mixed column refuses it, as it may hold mistakes; ``as_category`` says that
    it is text.

    Numbers are a float64 tensor, ``numbers``. Each different text stands once in ``words``, and a
    row has its place there in the int32 tensor ``codes``, -1 where it is missing. ``ordered`` says
    that the order of ``words`` means something. Dates that come as such, and not as text, are
    seconds since 1970 in ``numbers``, by the clock of their zone, which is ``ahead`` of UTC by some
    seconds; they have words, too. ``values`` makes a new list.

    >>> column = Column("color", "category", ["red", None, "blue", "red"])
    >>> column.words, column.codes.tolist()
    (['red', 'blue'], [0, -1, 1, 0])
    """

    numbers: Tensor
    ahead: Tensor | float = 0.0
    codes: Tensor
    words: list[Any]
    ordered: bool = False
    typed: bool = False  # categories by the type of a frame, whatever is in them

    def __init__(self, name: str, kind: str, values: Iterable[Any], note: str = ""):
        self.name, self.kind = name, kind
        self.note = note  # where text stands in a mixed column
        if kind == NUMBER:
            numbers = [math.nan if v is None else v for v in values]
            self.numbers = tensor(numbers, dtype=dtypes.float64)
        else:
            places: dict[Any, int] = {}
            values = [None if v != v else v for v in values]  # NaN is not itself
            codes = [-1 if v is None else places.setdefault(v, len(places)) for v in values]
            self.codes, self.words = tensor(codes, dtype=dtypes.int32), list(places)

    @classmethod
    def of_numbers(cls, name: str, numbers: Tensor) -> Column:
        """A column of the float64 numbers of a tensor, NaN where they are missing."""
        column = cls.__new__(cls)
        column.name, column.kind, column.note, column.numbers = name, NUMBER, "", numbers
        return column

    @classmethod
    def of_dates(cls, name: str, seconds: Tensor, ahead: Tensor | float = 0.0) -> Column:
        """A column of moments in float64 seconds since 1970, NaN where they are missing.

        They are by the clock of their zone, which is ``ahead`` of UTC by so many seconds.
        """
        column = cls.of_numbers(name, seconds)
        column.kind, column.ahead = DATE, ahead
        return column

    def __getattr__(self, name: str) -> Any:
        """The words of dates, made when they are first asked for."""
        if name not in ("codes", "words") or self.__dict__.get("kind") != DATE:
            raise AttributeError(f"Column has no attribute {name!r}")
        gaps = isnan(self.numbers)
        found, codes = unique(where(gaps, 0.0, self.numbers), return_inverse=True)
        self.words = [_moment(v) for v in found.tolist()]
        self.codes = where(gaps, -1, codes).int()
        return self.__dict__[name]

    @classmethod
    def of_codes(
        cls, name: str, codes: Tensor, words: Sequence[Any], kind: str = CATEGORY, note: str = ""
    ) -> Column:
        """A column of text by its places among ``words``, -1 where it is missing."""
        column = cls(name, kind, (), note)
        column.codes, column.words = codes, list(words)
        return column

    def __len__(self) -> int:
        return len(self.numbers if self.kind in (NUMBER, DATE) else self.codes)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Column):
            return NotImplemented
        mine, theirs = [(c.name, c.kind, c.note, c.values) for c in (self, other)]
        return mine == theirs

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Column({self.name!r}, {self.kind!r}, {len(self)} values)"

    @property
    def values(self) -> list[Any]:
        """The values of all rows, as a new list."""
        if self.kind == NUMBER:
            return self.numbers.tolist()
        known = [*self.words, None]  # at -1
        return [known[code] for code in self.codes.tolist()]

    def gaps(self) -> Tensor:
        """Where values are missing, as a tensor of truth values."""
        return isnan(self.numbers) if self.kind in (NUMBER, DATE) else self.codes < 0

    @property
    def missing(self) -> int:
        """How many values are missing."""
        return int(self.gaps().sum())

    @staticmethod
    def is_missing(value: object) -> bool:
        """Whether a value stands for none: None or NaN."""
        return _is_none(value)

    @property
    def present(self) -> list[Any]:
        """The values that are not missing, as a new list."""
        return self.where_present().values

    def where_present(self) -> Column:
        """The rows whose value is not missing."""
        gaps = self.gaps()
        return self.take(~gaps) if bool(any_of(gaps)) else self

    def counts(self) -> dict[Any, int]:
        """How often each value occurs; text by its first row, numbers by their size."""
        if self.kind == NUMBER:
            found, times = unique(self.where_present().numbers, return_counts=True)
            return dict(zip(found.tolist(), times.tolist(), strict=True))
        often = bincount(self.codes.long() + 1, minlength=len(self.words) + 1).tolist()[1:]
        return {word: n for word, n in zip(self.words, often, strict=True) if n}

    def take(self, rows: Tensor | Sequence[int]) -> Column:
        """Some rows, by their numbers, or by a tensor of truth values."""
        index = rows if isinstance(rows, Tensor) else tensor(list(rows), dtype=dtypes.int64)
        if self.kind == NUMBER:
            return Column.of_numbers(self.name, self.numbers[index])
        if self.kind == DATE:
            ahead = self.ahead[index] if isinstance(self.ahead, Tensor) else self.ahead
            return Column.of_dates(self.name, self.numbers[index], ahead)
        part = Column.of_codes(self.name, self.codes[index], self.words, self.kind, self.note)
        part.ordered, part.typed = self.ordered, self.typed
        return part

    def as_category(self) -> Column:
        """The same values as text: whole numbers without a point."""
        if self.kind == CATEGORY:
            return self
        if self.kind in (MIXED, DATE):
            return Column.of_codes(self.name, self.codes, self.words)
        gaps = isnan(self.numbers)
        found, codes = unique(where(gaps, 0.0, self.numbers), return_inverse=True)
        return Column.of_codes(
            self.name, where(gaps, -1, codes).int(), [text_of_number(v) for v in found.tolist()]
        )

    def refuse_mixed(self) -> None:
        """An error if numbers and text are mixed."""
        if self.kind != MIXED:
            return
        raise TableError(
            f"column {self.name!r} mixes numbers and text: {self.note}; mend these values, leave "
            "them empty, drop the column, or say that it holds categories"
        )


def _is_none(value: object) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def _moment(seconds: float) -> str:
    """Seconds since 1970 as text; far from now, there is no calendar."""
    try:
        return str(datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=seconds))
    except OverflowError:
        return f"{seconds:.0f} seconds since 1970"


def text_of_number(value: float) -> str:
    """A number as text: whole ones without a point."""
    return str(int(value)) if value.is_integer() else repr(value)


# --- what a value means ---------------------------------------------------------------------------


def number_in(value: Any) -> float | None:
    """A value as a number, None if it is not one."""
    if isinstance(value, str) and "_" in value:
        return None  # Python reads 1_000 as a number; in a table it is a name
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def meaning(value: Any, comma: bool = False) -> Meaning:
    """What stands in a cell: a number, text, or nothing (None).

    With ``comma``, a comma may be a decimal point.
    """
    number = number_in(value)
    if isinstance(value, str):
        if number is None and comma and value.count(",") == 1 and "." not in value:
            number = number_in(value.replace(",", "."))
        if number is None:
            text = value.strip()
            return None if text.lower() in MISSING else text
    elif _is_none(value) or type(value).__name__ in ("NAType", "NaTType"):
        return None
    elif number is None:
        return str(value).strip()
    return None if number is None or math.isnan(number) else number


def _is_truth(value: Any) -> bool:
    return isinstance(value, bool) or type(value).__name__ in ("bool", "bool_")


# --- columns of values ----------------------------------------------------------------------------


def column_of(name: str, values: list[Any]) -> Column:
    """A column of numbers if all that is there are numbers, of categories if most are not."""
    if all([type(v) is str for v in values]):
        raw = Column("", CATEGORY, values)
        return column_of_words(name, raw.codes, raw.words)
    if (numbers := _plain_numbers(values)) is not None:
        return Column(name, NUMBER, numbers)
    found = [meaning(v) for v in values]
    known = [v for v, m in zip(values, found, strict=True) if m is not None]
    truths = bool(known) and all([_is_truth(v) for v in known])  # two categories, not 1 and 0
    if known and not truths and not any([type(m) is str for m in found]):
        return Column(name, NUMBER, found)
    texts = [str(v).strip() for v in values]
    if truths:
        found = [None if m is None else t for m, t in zip(found, texts, strict=True)]
    return _column(name, arange(len(values)), texts, found)


def _plain_numbers(values: list[Any]) -> list[float | None] | None:
    """Values that are Python's numbers and None alone, as most are; None if there are others."""
    kinds = set(map(type, values))
    if not kinds <= {float, int, type(None)}:
        return None
    try:
        found = [None if v is None or v != v else float(v) for v in values]
    except OverflowError:
        return None
    return found if any([v is not None for v in found]) else None


def column_of_words(
    name: str, codes: Tensor, words: Sequence[str], *, comma: bool = False
) -> Column:
    """A column of cells, each by its place among different words; what they mean says its kind."""
    texts = [word.strip() for word in words]
    found = [
        t if _is_surely_text(t) else meaning(w, comma) for w, t in zip(words, texts, strict=True)
    ]
    return _column(name, codes, texts, found)


def _is_surely_text(text: str) -> bool:
    """Whether it is neither a number nor missing, by a look that is quick; others may be, too.

    Numbers and what stands for a missing value have at most nine characters, -infinity, if they
    begin or end with a letter, and then they do both, but for n.a. None has a colon.
    """
    if not text or (len(text) == 4 and text.lower() == "n.a."):
        return False
    begins, ends = text[0] in ascii_letters, text[-1] in ascii_letters
    return ":" in text or (begins and not ends) or (len(text) > 9 and (begins or ends))


def is_code(text: str) -> bool:
    """Whether it is digits that begin with a zero, as in a postal code: not a number."""
    return text[:1] == "0" and len(text) > 1 and text.isdigit()


def _are_codes(texts: list[str], found: list[Meaning]) -> bool:
    """Whether all that is there are digits, and some begin with a zero."""
    present = [text for text, m in zip(texts, found, strict=True) if m is not None]
    return any(map(is_code, present)) and all(map(str.isdigit, present))


def _column(name: str, codes: Tensor, texts: list[str], found: list[Meaning]) -> Column:
    """A column of codes for texts, and what each of them means."""
    often = bincount(codes.long(), minlength=len(texts)).tolist()
    known = len(codes) - sum([n for n, m in zip(often, found, strict=True) if m is None])
    good = sum([n for n, m in zip(often, found, strict=True) if type(m) is float])
    if known and good == known and not _are_codes(texts, found):
        return Column.of_numbers(name, Column("", NUMBER, found).numbers[codes.long()])
    kept = [None if m is None else text for text, m in zip(texts, found, strict=True)]
    merged = Column("", CATEGORY, kept)
    if len(merged.words) < len(texts):
        column = Column.of_codes(name, merged.codes[codes.long()], merged.words)
    else:
        column = Column.of_codes(name, codes.int(), texts)
    if good <= known / 2 or good == known:
        return column
    is_text = tensor([type(m) is str for m in found])
    row = int(argmax(is_text[codes.long()].int()))
    column.kind = MIXED
    column.note = (
        f"row {row + 1} has {texts[int(codes[row])]!r}, while {good} of {known} values are numbers"
    )
    return column

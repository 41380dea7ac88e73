"""Tables: named columns of numbers or categories, read from files and data frames."""

from __future__ import annotations

import contextlib
import csv
import io
import math
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chainrule.tensor import Tensor
from chainrule.typing import Frame, Labels

__all__ = ["Column", "Table", "TableError", "read_table"]

MISSING = {"", "na", "n/a", "nan", "null", "none", "?", "-"}
NUMBER, CATEGORY, MIXED = "number", "category", "mixed"


class TableError(ValueError):
    """A table that cannot be used as it is; the message says which column or line, and the fix."""


@dataclass
class Column:
    """A name and values: numbers (NaN where missing), or text (None where missing).

    ``kind`` is "number", "category", or "mixed": text among which most, but not all, are numbers.
    What learns from a mixed column refuses it, as it may hold mistakes; ``as_category`` says that
    it is text.
    """

    name: str
    kind: str
    values: list[Any]
    note: str = ""  # where text stands in a mixed column

    @property
    def missing(self) -> int:
        """How many values are missing."""
        return len(self.values) - len(self.present)

    @staticmethod
    def is_missing(value: object) -> bool:
        """Whether a value stands for none: None or NaN."""
        return value is None or (isinstance(value, float) and math.isnan(value))

    @property
    def present(self) -> list[Any]:
        """The values that are not missing."""
        return [v for v in self.values if v is not None and v == v]  # NaN is not itself

    def take(self, rows: Sequence[int]) -> Column:
        """Some rows, by their numbers."""
        return Column(self.name, self.kind, [self.values[i] for i in rows], self.note)

    def as_category(self) -> Column:
        """The same values as text: whole numbers without a point."""
        if self.kind == CATEGORY:
            return self
        values = self.values if self.kind == MIXED else [_text(v) for v in self.values]
        return Column(self.name, CATEGORY, values)

    def refuse_mixed(self) -> None:
        """An error if numbers and text are mixed."""
        if self.kind != MIXED:
            return
        raise TableError(
            f"column {self.name!r} mixes numbers and text: {self.note}; mend these values, leave "
            "them empty, drop the column, or say that it holds categories"
        )


def _text(value: float) -> str | None:
    if Column.is_missing(value):
        return None
    return str(int(value)) if float(value).is_integer() else repr(float(value))


class Table:
    """Columns of one length.

    >>> table = Table.from_dict({"x": [1.0, 2.0], "color": ["red", "blue"]})
    >>> table.names, len(table), table["color"].kind
    (['x', 'color'], 2, 'category')
    """

    def __init__(self, columns: Sequence[Column]):
        names = [c.name for c in columns]
        twice = sorted([n for n, count in Counter(names).items() if count > 1])
        if twice:
            raise TableError(
                f"duplicate column names: {', '.join(map(repr, twice))}; rename them so that each "
                "is unique"
            )
        if not columns:
            raise TableError("the table has no columns")
        lengths = {len(c.values) for c in columns}
        if len(lengths) > 1:
            raise TableError(f"columns have different lengths: {sorted(lengths)}")
        self.columns = {c.name: c for c in columns}

    @property
    def names(self) -> list[str]:
        """The names of the columns, in order."""
        return list(self.columns)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())).values)

    def __iter__(self) -> Iterator[Column]:
        return iter(self.columns.values())

    def __contains__(self, name: str) -> bool:
        return name in self.columns

    def __getitem__(self, name: str) -> Column:
        if name not in self.columns:
            raise TableError(f"there is no column {name!r}; the columns are {_listed(self.names)}")
        return self.columns[name]

    def without(self, *names: str) -> Table:
        """The table without some columns."""
        return Table([c for c in self if c.name not in names])

    def take(self, rows: Tensor | Iterable[int]) -> Table:
        """Some rows, by their numbers."""
        chosen = rows.tolist() if isinstance(rows, Tensor) else list(rows)
        return Table([c.take(chosen) for c in self])

    def with_categories(self, names: Sequence[str]) -> Table:
        """The same table with some columns of numbers taken as categories."""
        for name in names:
            self[name]  # an error if there is none
        return Table([c.as_category() if c.name in names else c for c in self])

    # --- where tables come from -------------------------------------------------------------------

    @classmethod
    def from_dict(cls, columns: Mapping[str, Labels]) -> Table:
        """From lists, arrays or tensors of numbers or text, by name."""
        return cls._filled([(str(name), _listed_values(name, v)) for name, v in columns.items()])

    @classmethod
    def _filled(cls, columns: Sequence[tuple[str, list[Any]]]) -> Table:
        """From values that there must be some of."""
        table = cls([_column(name, values) for name, values in columns])
        if not len(table):
            raise TableError(f"the table has columns ({_listed(table.names)}) but no rows")
        return table

    @classmethod
    def from_frame(cls, frame: Frame) -> Table:
        """From a pandas or polars frame."""
        names = [str(n) for n in frame.columns]
        if hasattr(frame, "iloc"):  # pandas
            lists = [frame.iloc[:, i].astype(object).tolist() for i in range(len(names))]
        elif hasattr(frame, "to_series"):  # polars
            lists = [frame.to_series(i).to_list() for i in range(len(names))]
        else:
            raise TypeError(f"Table: expected a pandas or polars frame, got {type(frame).__name__}")
        return cls._filled(list(zip(names, lists, strict=True)))

    @classmethod
    def from_text(cls, text: str, delimiter: str | None = None, where: str = "the table") -> Table:
        """From text with a header, separated by commas, tabs, semicolons or bars.

        Without a ``delimiter`` it is the one that stands most often in the first line. Between
        semicolons, a comma is a decimal point. A first line of numbers alone is not a header.
        """
        delimiter = delimiter or _delimiter(text)
        try:
            lines = [row for row in _reader(text, delimiter) if not _is_blank(row)]
        except csv.Error as error:
            raise TableError(f"{where} cannot be read as separated values: {error}") from None
        if not lines:
            raise TableError(f"{where} is empty")
        header, rows = [name.strip() for name in lines[0]], lines[1:]
        if all(_number(name) is not None for name in header):
            header, rows = [f"column_{i + 1}" for i in range(len(header))], lines
        if not rows:
            raise TableError(f"{where} has a header but no rows")
        if {len(row) for row in rows} != {len(header)}:
            raise _ragged(text, delimiter, where, len(lines) - len(rows), len(header))
        columns = list(zip(header, zip(*rows, strict=True), strict=True))
        # A separator at the end of every line makes a column without a name and values.
        columns = [(n, v) for n, v in columns if n or any(cell.strip() for cell in v)]
        if any(not n for n, _ in columns):
            raise TableError(
                f"{where}: column {header.index('') + 1} has no name in the header; give it one, "
                "or remove it (pandas writes row numbers there without to_csv(index=False))"
            )
        comma = delimiter == ";"
        try:
            return cls([_column(name, list(values), comma) for name, values in columns])
        except TableError as error:
            raise TableError(f"{where}: {error}") from None

    def __repr__(self) -> str:
        kinds = ", ".join(f"{c.name}: {c.kind}" for c in self)
        return f"Table({len(self)} rows; {kinds})"


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(map(repr, names[:20]))
    return shown + (f" and {len(names) - 20} more" if len(names) > 20 else "")


def _listed_values(name: Any, values: Any) -> list[Any]:
    found = values.tolist() if hasattr(values, "tolist") else values
    if isinstance(found, (str, bytes)) or not isinstance(found, Iterable):
        raise TypeError(f"Table: column {name!r} must be a list of values, got {values!r}")
    found = list(found)
    if any(isinstance(v, (list, tuple, dict)) for v in found):
        raise TableError(f"column {name!r} has values that are neither numbers nor text")
    return found


def _delimiter(text: str) -> str:
    """The separator that stands most often in the first line, outside quotes."""
    start = re.sub(r'"[^"]*"', "", text[:100_000]).lstrip("\r\n ")
    first = re.split(r"[\r\n]", start, maxsplit=1)[0]
    return max(",\t;|", key=first.count) if any(d in first for d in ",\t;|") else ","


def _reader(text: str, delimiter: str) -> Any:
    return csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=True)


def _is_blank(row: list[str]) -> bool:
    """Whether a line is empty."""
    return not row or (len(row) == 1 and not row[0].strip())


def _ragged(text: str, delimiter: str, where: str, headers: int, expected: int) -> TableError:
    """The error for the first line with another number of values than the first one."""
    reader, seen = _reader(text, delimiter), -headers
    for row in reader:
        seen += not _is_blank(row)
        if not _is_blank(row) and len(row) != expected:
            break
    values = f"{len(row)} value{'s' * (len(row) != 1)}"
    return TableError(
        f"{where}: row {seen} has {values}, the {'header' if headers else 'first row'} has "
        f"{expected} (line {reader.line_num}); a value that contains {delimiter!r} needs quotes"
    )


def _number(value: Any) -> float | None:
    """A value as a number, None if it is not one."""
    if isinstance(value, str) and "_" in value:
        return None  # Python reads 1_000 as a number; in a table it is a name
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def _is_gap(value: Any) -> bool:
    return Column.is_missing(value) or type(value).__name__ in ("NAType", "NaTType")


def _meaning(value: Any, comma: bool = False) -> float | str | None:
    """What stands in a cell: a number, text, or nothing (None)."""
    number = _number(value)
    if isinstance(value, str):
        if number is None and comma and value.count(",") == 1 and "." not in value:
            number = _number(value.replace(",", "."))
        if number is None:
            text = value.strip()
            return None if text.lower() in MISSING else text
    elif _is_gap(value):
        return None
    elif number is None:
        return str(value).strip()
    return None if number is None or math.isnan(number) else number


def _meanings(values: list[Any], comma: bool) -> list[float | str | None]:
    """What stands in each cell."""
    if not all([type(v) is str for v in values]):
        return [_meaning(v, comma) for v in values]
    # Plain numbers are what most cells of a large file hold; of text, most is repeated.
    if "_" not in "".join(values):
        with contextlib.suppress(ValueError):
            numbers = [float(v) if v else None for v in values]
            return [None if n != n else n for n in numbers]
    known = {v: _meaning(v, comma) for v in set(values)}
    return [known[v] for v in values]


def _is_truth(value: Any) -> bool:
    return isinstance(value, bool) or type(value).__name__ in ("bool", "bool_")


def _column(name: str, values: list[Any], comma: bool = False) -> Column:
    """A column of numbers if all that is there are numbers, of categories if most are not."""
    found = _meanings(values, comma)
    known = len(found) - found.count(None)
    good = sum([type(m) is float for m in found])
    if good and all(_is_truth(v) for v, m in zip(values, found, strict=True) if m is not None):
        good = 0  # truth values are two categories
    if known and good == known:
        return Column(name, NUMBER, [math.nan if m is None else m for m in found])
    text = [None if m is None else str(v).strip() for v, m in zip(values, found, strict=True)]
    if good <= known / 2:
        return Column(name, CATEGORY, text)
    row = next(i for i, m in enumerate(found) if isinstance(m, str))
    note = f"row {row + 1} has {text[row]!r}, while {good} of {known} values are numbers"
    return Column(name, MIXED, text, note)


def read_table(path: str | os.PathLike[str]) -> Table:
    """Reads a CSV, TSV or Parquet file.

    Parquet needs pandas or polars. The first line of a text file names the columns, unless it is
    all numbers.
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    if path.is_dir():
        raise TableError(f"{path} is a folder; tables are CSV, TSV or Parquet files")
    if not path.is_file():
        raise TableError(f"{path} is a device or a pipe, which may never end; give a file")
    if path.suffix.lower() in (".parquet", ".pq"):
        return _read_parquet(path)
    content = path.read_bytes()
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise TableError(
            f"{path} is not UTF-8 text (byte {content[error.start]:#x} at position {error.start}); "
            "save it as UTF-8, for example from the spreadsheet's export"
        ) from None
    if "\0" in text:
        raise TableError(f"{path} is not a text file; tables are CSV, TSV or Parquet files")
    delimiter = "\t" if path.suffix.lower() in (".tsv", ".tab") else None
    return Table.from_text(text, delimiter, str(path))


def _read_parquet(path: Path) -> Table:
    try:
        import polars
    except ImportError:
        try:
            import pandas
        except ImportError:
            raise ImportError(
                "reading Parquet needs polars or pandas with pyarrow: pip install polars"
            ) from None
        reader = pandas.read_parquet
    else:
        reader = polars.read_parquet
    try:
        frame = reader(path)
    except Exception as error:  # noqa: BLE001 - the readers raise what they like
        raise TableError(f"{path} is not a whole Parquet file: {error}") from None
    try:
        return Table.from_frame(frame)
    except TableError as error:
        raise TableError(f"{path}: {error}") from None

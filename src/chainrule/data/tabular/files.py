"""Tables in JSON and in Excel's files: objects, or rows below a header."""

from __future__ import annotations

import contextlib
import datetime
import io
import itertools
import json
import math
import warnings
import zipfile
from array import array
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from chainrule.backend import dtypes
from chainrule.data.columns import Column, TableError, column_of_words, text_of_number
from chainrule.data.downloads import ENOUGH, TIMES
from chainrule.data.reading import pieces_of_file
from chainrule.ops.creation.from_data import tensor
from chainrule.ops.creation.uncommon import frombuffer

__all__ = ["read_excel", "read_json"]

OLD = b"\xd0\xcf\x11\xe0"  # with which files of Excel begin that are no ZIP files


class _Cells:
    """A column that grows cell by cell, in little memory: numbers until there is something else."""

    def __init__(self, name: str, rows: int):
        self.name = name
        self.numbers: array[float] | None = array("d", [math.nan]) * rows
        self.codes = array("i")
        self.words: dict[str, int] = {}
        self.known: dict[float, str] = {}

    def __len__(self) -> int:
        return len(self.codes if self.numbers is None else self.numbers)

    def add(self, value: Any, where: str) -> None:
        """Appends a value: a number, a truth value, text, a moment, or nothing."""
        is_number = type(value) in (int, float) or value is None
        if self.numbers is not None:
            if is_number:
                try:
                    self.numbers.append(math.nan if value is None else float(value))
                    return
                except OverflowError:
                    raise TableError(f"{where}: a number is too large") from None
            self._become_words()
        self.codes.append(self._code(value, where))

    def _become_words(self) -> None:
        before, self.numbers = self.numbers or array("d"), None
        for value in before:
            text = "" if math.isnan(value) else text_of_number(value)
            self.codes.append(self.words.setdefault(text, len(self.words)))

    def _code(self, value: Any, where: str) -> int:
        if isinstance(value, (list, dict)):
            raise TableError(
                f"{where}: column {self.name!r} has a list or an object; values are numbers, text, "
                "true, false or null"
            )
        if value is None or value != value:
            text = ""
        elif type(value) is float:
            text = text_of_number(value)
        else:
            text = str(value)
        return self.words.setdefault(text, len(self.words))

    def column(self) -> Column:
        """The whole column."""
        if self.numbers is not None:
            if all(map(math.isnan, self.numbers)):
                return Column(self.name, "category", [None] * len(self.numbers))
            return Column.of_numbers(self.name, frombuffer(self.numbers, dtype=dtypes.float64))
        codes = tensor(self.codes.tolist(), dtype=dtypes.int32)
        return column_of_words(self.name, codes, list(self.words))


# --- JSON -----------------------------------------------------------------------------------------


def read_json(path: Path) -> list[Column]:
    """An object in each line, or one list of objects; a name that an object lacks is missing."""
    columns: dict[str, _Cells] = {}
    rows = 0
    for where, record in _objects(path):
        if not isinstance(record, dict):
            raise TableError(f'{where} is not an object like {{"x": 1}}, but {record!r:.40}')
        for name, value in record.items():
            if name not in columns:
                columns[name] = _Cells(name, rows)
            columns[name].add(value, where)
        rows += 1
        for cells in columns.values():
            if len(cells) < rows:
                cells.add(None, where)
    if not rows:
        raise TableError(f"{path} is empty")
    if not columns:
        raise TableError(f"{path}: the table has no columns")
    return [cells.column() for cells in columns.values()]


def _objects(path: Path) -> Iterator[tuple[str, Any]]:
    """The objects of a file, each with its place."""
    pieces = pieces_of_file(path)
    first = next((piece for piece in pieces if piece.strip()), "")
    if first.lstrip().startswith("["):
        text = first + "".join(pieces)
        for i, record in enumerate(_parsed(text, str(path))):
            yield f"{path}: object {i + 1}", record
        return
    line = 0
    for piece in (first, *pieces):
        for text in io.StringIO(piece):
            line += 1
            if text.strip():
                where = f"{path}: line {line}"
                yield where, _parsed(text, where)


def _parsed(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise TableError(f"{where} is not JSON: {error}") from None


# --- Excel ----------------------------------------------------------------------------------------


def read_excel(path: Path) -> list[Column]:
    """The first sheet of a workbook; its first row that is not empty has the names.

    A warning says so if other sheets have values, too.
    """
    try:
        import openpyxl
    except ImportError:
        raise ImportError("reading Excel's files needs openpyxl: pip install openpyxl") from None
    _refuse_bombs(path)
    try:
        with contextlib.closing(
            openpyxl.load_workbook(path, read_only=True, data_only=True)
        ) as book:
            return _first_sheet(book, str(path))
    except (KeyboardInterrupt, MemoryError, TableError):
        raise
    except Exception as error:  # noqa: BLE001 - of a file that may be anything
        raise TableError(f"{path} is not a whole Excel file: {error}") from None


def _first_sheet(book: Any, where: str) -> list[Column]:
    if not book.worksheets:
        raise TableError(f"{where} has no sheet with cells")
    first, *others = book.worksheets
    columns = _of_rows(first.iter_rows(values_only=True), where)
    filled = [sheet.title for sheet in others if _has_values(sheet)]
    if filled:
        warnings.warn(
            f"{where}: the sheet {first.title!r} is read, the first one; there are others, too "
            f"({', '.join(map(repr, filled))}): put the one that is meant in front, or save it as "
            "CSV",
            stacklevel=2,
        )
    return columns


def _has_values(sheet: Any) -> bool:
    rows = itertools.islice(sheet.iter_rows(values_only=True), 100)
    return any(value is not None for row in rows for value in row)


def _refuse_bombs(path: Path) -> None:
    with path.open("rb") as file:
        if file.read(4) == OLD:
            raise TableError(
                f"{path} is an Excel file of the old kind, or with a password; save it as .xlsx "
                "without one, or as CSV"
            )
    try:
        with zipfile.ZipFile(path) as packed:
            size = sum(info.file_size for info in packed.infolist())
    except (zipfile.BadZipFile, OSError, ValueError) as error:
        raise TableError(f"{path} is not a whole Excel file: {error}") from None
    if size > max(ENOUGH, TIMES * path.stat().st_size):
        raise TableError(
            f"{path} becomes {size:,} bytes when it is unpacked, as files do that are made to fill "
            "the memory; save it as CSV"
        )


def _of_rows(rows: Iterable[tuple[Any, ...]], where: str) -> list[Column]:
    filled = ((i + 1, row) for i, row in enumerate(rows) if any(v is not None for v in row))
    line, header = next(filled, (0, ()))
    if not header:
        raise TableError(f"{where} is empty")
    while header[-1] is None:
        header = header[:-1]
    if None in header:
        raise TableError(
            f"{where}: column {header.index(None) + 1} has no name in row {line}; give it one"
        )
    columns = [_Cells(str(name).strip(), 0) for name in header]
    for number, row in filled:
        place = f"{where}: row {number}"
        if any(v is not None for v in row[len(columns) :]):
            raise TableError(f"{place} has values beyond the {len(columns)} named columns")
        for i, cells in enumerate(columns):
            cells.add(_plain(row[i]) if i < len(row) else None, place)
    if not len(columns[0]):
        raise TableError(f"{where} has a header but no rows")
    return [cells.column() for cells in columns]


def _plain(value: Any) -> Any:
    """A cell of a sheet; moments become text, as in other files."""
    if isinstance(value, (datetime.datetime, datetime.date, datetime.time)):
        return str(value)
    if isinstance(value, datetime.timedelta):
        return value.total_seconds()
    return value

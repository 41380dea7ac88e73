"""Columns of separated values, read in pieces: from files of any size, or from text."""

from __future__ import annotations

import codecs
import contextlib
import csv
import gzip
import io
import itertools
import math
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any

from chainrule.backend import K, dtypes
from chainrule.data.columns import (
    Column,
    MISSING,
    Meaning,
    TableError,
    column_of_words,
    is_code,
    meaning,
    number_in,
)
from chainrule.data.downloads import Unpacked
from chainrule.ops.creation.from_data import tensor
from chainrule.ops.creation.patterns import full_like
from chainrule.ops.elementwise.functions import floor
from chainrule.ops.elementwise.logic import isnan
from chainrule.ops.reduce.reductions import all as all_of
from chainrule.ops.shape.stacking import cat
from chainrule.tensor import Tensor, of_array
from chainrule.typing import Array

__all__ = ["delimiter_of", "pieces_of_file", "pieces_of_text", "read_columns"]

FIRST, PIECE = 1 << 18, 1 << 21  # of the text; the first piece shows which columns are words
NUMBERS, WORDS, NOTHING = "n", "t", "-"  # what K.read_cells makes of a column
SEEN = 100_000  # characters in which separators are looked for
FIRST_ROWS = 500  # by which it is seen whether the first line has names
KEPT = 10_000  # meanings of cells that are remembered

Pieces = Callable[[], Iterator[str]]


# --- pieces of text -------------------------------------------------------------------------------


def pieces_of_text(text: str) -> Iterator[str]:
    """A text in pieces of whole lines."""
    starts = range(FIRST, len(text), PIECE)
    return _whole_lines([text[:FIRST], *[text[i : i + PIECE] for i in starts]])


def pieces_of_file(path: Path) -> Iterator[str]:
    """A file of UTF-8 text, packed by gzip if its name ends in .gz, in pieces of whole lines."""
    packed = path.suffix.lower() == ".gz"
    try:
        with Unpacked(path, TableError) if packed else path.open("rb") as file:
            yield from _whole_lines(_decoded(file, path))
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise TableError(f"{path} is not a whole gzip file: {error}") from None


def _decoded(file: Unpacked | IO[bytes], path: Path) -> Iterator[str]:
    """The text of a file; bytes that are no text are an error that says where."""
    content, position = file.read(FIRST), 0
    if content.startswith(codecs.BOM_UTF8):
        content, position = content[3:], 3
    while True:
        block = file.read(PIECE)
        try:
            text, used = codecs.utf_8_decode(content, "strict", not block)
        except UnicodeDecodeError as error:
            raise TableError(
                f"{path} is not UTF-8 text (byte {content[error.start]:#x} at position "
                f"{position + error.start}); save it as UTF-8, for example from the spreadsheet's "
                "export"
            ) from None
        if "\0" in text:
            raise TableError(f"{path} is not a text file; tables are CSV, TSV or Parquet files")
        yield text
        if not block:
            return
        content, position = content[used:] + block, position + used


def _whole_lines(texts: Iterable[str]) -> Iterator[str]:
    """The same text in pieces that end where lines end."""
    parts: list[str] = []
    for text in texts:
        # The line feed of a carriage return at the end may still come.
        cut = max(text.rfind("\n"), text.rfind("\r", 0, len(text) - 1)) + 1
        if cut:
            yield "".join([*parts, text[:cut]])
            parts = []
        parts.append(text[cut:])
    yield "".join(parts)


# --- the header -----------------------------------------------------------------------------------


def delimiter_of(text: str) -> str:
    """The separator that stands most often in the first line, outside quotes."""
    start = re.sub(r'"[^"]*"', "", text[:SEEN]).lstrip("\r\n ")
    first = re.split(r"[\r\n]", start, maxsplit=1)[0]
    return max(",\t;|", key=first.count) if any(d in first for d in ",\t;|") else ","


@dataclass
class Header:
    """The names of the columns, what separates them, and where the rows begin."""

    names: list[str]
    delimiter: str
    is_line: bool  # whether the first line has the names; else they are made
    skip: int  # characters before the first row
    lines: int  # lines before the first row

    def may_have_codes(self, text: str) -> bool:
        """Whether cells may be digits that begin with a zero; to look for one sign is fast."""
        before = (re.escape(self.delimiter), "\n", "\r", '"', "^")
        return any(re.search(rf"{sign}\s*0\d", text) for sign in before)

    @property
    def comma(self) -> bool:
        """Whether a comma is a decimal point: between semicolons."""
        return self.delimiter == ";"


def header_of(pieces: Iterator[str], delimiter: str | None, where: str) -> Header:
    """Reads as many pieces as it takes to see the first record that is not blank."""
    text, skipped, lines = "", 0, 0
    while len(text) < SEEN and (more := next(pieces, None)) is not None:
        text += more
    delimiter = delimiter or delimiter_of(text)
    while True:
        more = next(pieces, None)
        stream = io.StringIO(text, newline="")
        reader = csv.reader(stream, delimiter=delimiter, skipinitialspace=True)
        row: list[str] = []
        start, line = 0, 0
        try:
            while not any(name.strip() for name in row[:1]) and len(row) < 2:
                start, line = stream.tell(), reader.line_num
                row = next(reader)
        except StopIteration:
            if more is None:
                raise TableError(f"{where} is empty") from None
            skipped, lines, text = skipped + len(text), lines + reader.line_num, more
            continue
        if stream.tell() < len(text) or more is None:
            break
        text += more  # the record may go on there
    end, end_line = stream.tell(), reader.line_num
    names = [name.strip() for name in row]
    seen = itertools.takewhile(lambda _: stream.tell() < SEEN, reader)
    if not _are_names(names) or _are_values(names, seen):
        names = [f"column_{i + 1}" for i in range(len(names))]
        return Header(names, delimiter, False, skipped + start, lines + line)
    return Header(names, delimiter, True, skipped + end, lines + end_line)


def _are_names(cells: Sequence[str]) -> bool:
    """Whether a first line names columns: there is text, and what is a number could be a name.

    Years, and numbers that count on by one, are names beside others; 5.1 or 1e3 are values.
    """
    numbers = [cell for cell in cells if number_in(cell) is not None]
    if len(numbers) == len(cells):
        return False
    if any(not cell.isdecimal() for cell in numbers):
        return all(cell.lower() in MISSING or cell.isdecimal() for cell in numbers)
    sizes = [int(cell) for cell in numbers[:1000]]
    years = all(1000 <= size < 3000 for size in sizes)
    return years or all(b - a == 1 for a, b in itertools.pairwise(sizes))


def _are_values(cells: Sequence[str], rows: Iterator[list[str]]) -> bool:
    """Whether a first line of text is a row: two of its cells, and half of all, are values below.

    A column of numbers below text has a name, and so has one with no other value than its name, as
    answers that can be ticked have them.
    """
    seen: list[set[str]] = [set() for _ in cells]
    with contextlib.suppress(csv.Error):
        for row in itertools.islice(rows, FIRST_ROWS):
            if len(row) == len(cells):
                for values, cell in zip(seen, row, strict=True):
                    values.add(cell.strip())
    for values in seen:
        values.difference_update([v for v in values if v.lower() in MISSING])
        if values and all(number_in(v) is not None for v in values):
            return False
    same = [
        cell in values and len(values) > 1 and number_in(cell) is None
        for cell, values in zip(cells, seen, strict=True)
    ]
    return sum(same) > 1 and 2 * sum(same) >= len(same)


# --- the columns ----------------------------------------------------------------------------------


class _Growing:
    """A column that grows by pieces."""

    def __init__(self, name: str, comma: bool):
        self.name, self.comma = name, comma
        self.mode = NUMBERS if name else WORDS
        self.parts: list[Tensor] = []
        self.words: dict[str, int] = {}
        self.known: dict[str, Meaning] = {}  # what odd cells mean

    def add(self, cells: Any) -> bool:
        """Adds a piece; False if it has text where numbers were expected."""
        if self.mode == NUMBERS:
            return self._add_numbers(*cells)
        if self.mode == WORDS:
            codes, words = cells
            places = [self.words.setdefault(word, len(self.words)) for word in words]
            self.parts.append(tensor(places, dtype=dtypes.int32)[of_array(codes).long()])
        return True

    def _add_numbers(self, numbers: Array, rows: Array, odd: list[str]) -> bool:
        if odd:
            for cell in set(odd).difference(self.known):
                self.known[cell] = meaning(cell, self.comma)
            found = [self.known[cell] for cell in odd]
            if any([type(m) is str for m in found]):
                return False
            values = [math.nan if m is None else m for m in found]
            numbers = K.write_index(numbers, rows, K.from_python(values, "float64"))
            if len(self.known) > KEPT:
                self.known.clear()
        self.parts.append(of_array(numbers))
        return True

    def restart(self, mode: str) -> None:
        """Forgets what there is."""
        self.mode, self.parts, self.words = mode, [], {}

    @property
    def is_whole(self) -> bool:
        """Whether it is numbers, and those that came last are whole and not negative."""
        if self.mode != NUMBERS or not self.parts:
            return False
        last = self.parts[-1]
        return bool(all_of(isnan(last) | ((last == floor(last)) & (last >= 0))))

    @property
    def is_blank(self) -> bool:
        """Whether a column without a name has no values."""
        return not self.name and not any(word.strip() for word in self.words)

    def column(self) -> Column:
        """The whole column."""
        together, self.parts = cat(self.parts), []
        if self.mode == WORDS:
            return column_of_words(self.name, together, list(self.words), comma=self.comma)
        if bool(all_of(isnan(together))):
            return Column.of_codes(self.name, full_like(together, -1, dtype=dtypes.int32), [])
        return Column.of_numbers(self.name, together)


def read_columns(pieces: Pieces, delimiter: str | None, where: str) -> list[Column]:
    """The columns of a text with separated values.

    Args:
        pieces: begins the text anew and gives it in pieces of whole lines.
        delimiter: what separates values; None for what stands most often in the first line.
        where: what errors call the text.
    """
    try:
        header = header_of(pieces(), delimiter, where)
        columns = [_Growing(name, header.comma) for name in header.names]
        _fill(columns, header, pieces(), where)
        late = [c if c.mode == NOTHING else None for c in columns]
        if any(late):  # text behind many numbers: once more, for these columns alone
            for column in filter(None, late):
                column.restart(WORDS)
            _fill(late, header, pieces(), where)
    except csv.Error as error:
        raise TableError(f"{where} cannot be read as separated values: {error}") from None
    # A separator at the end of every line makes a column without a name and values.
    columns = [c for c in columns if not c.is_blank]
    if any(not c.name for c in columns):
        raise TableError(
            f"{where}: column {header.names.index('') + 1} has no name in the header; give it one, "
            "or remove it (pandas writes row numbers there without to_csv(index=False))"
        )
    return [c.column() for c in columns]


def _fill(
    columns: Sequence[_Growing | None], header: Header, pieces: Iterator[str], where: str
) -> None:
    """Reads all rows into the columns."""
    rows, lines, rest = 0, header.lines, ""
    for piece, last in _until_last(_behind(pieces, header.skip)):
        text = rest + piece
        modes = "".join([c.mode if c else NOTHING for c in columns])
        read = partial(K.read_cells, text, header.delimiter, comma=header.comma, last=last)
        cells, count, rest, wrong = read(modes=modes)
        if wrong is not None:
            raise _ragged(where, header, rows + wrong[0], wrong[1], lines + wrong[2])
        turned = [
            column is not None and not column.add(part)
            for column, part in zip(columns, cells, strict=True)
        ]
        if header.may_have_codes(text):
            turned = [t or c for t, c in zip(turned, _codes(columns, read), strict=True)]
        if any(turned) and not rows:
            cells, *_ = read(modes="".join([WORDS if t else NOTHING for t in turned]))
        for column, part, is_text in zip(columns, cells, turned, strict=True):
            if column and is_text:
                column.restart(NOTHING if rows else WORDS)
                column.add(part)
        rows += count
        lines += _line_ends(text) - _line_ends(rest)
    if not rows:
        raise TableError(f"{where} has a header but no rows")


def _codes(columns: Sequence[_Growing | None], read: Callable[..., Any]) -> list[bool]:
    """Which columns of numbers have some in a piece that are digits and begin with a zero."""
    numbers = [c is not None and c.is_whole for c in columns]
    if not any(numbers):
        return numbers
    cells, *_ = read(modes="".join([WORDS if n else NOTHING for n in numbers]))
    return [
        n and any(is_code(word.strip()) for word in cell[1])
        for n, cell in zip(numbers, cells, strict=True)
    ]


def _behind(pieces: Iterator[str], skip: int) -> Iterator[str]:
    """The pieces behind the first ``skip`` characters."""
    for piece in pieces:
        yield piece[skip:]
        skip = max(0, skip - len(piece))


def _until_last(pieces: Iterator[str]) -> Iterator[tuple[str, bool]]:
    """Each piece, and whether it is the last one."""
    piece = next(pieces, "")
    for following in pieces:
        yield piece, False
        piece = following
    yield piece, True


def _line_ends(text: str) -> int:
    returns = text.count("\r") - text.count("\r\n") if "\r" in text else 0
    return text.count("\n") + returns


def _ragged(where: str, header: Header, row: int, found: int, line: int) -> TableError:
    """The error for a row with another number of values than the first line."""
    return TableError(
        f"{where}: row {row} has {found} value{'s' * (found != 1)}, the "
        f"{'header' if header.is_line else 'first row'} has {len(header.names)} (line {line}); a "
        f"value that contains {header.delimiter!r} needs quotes"
    )

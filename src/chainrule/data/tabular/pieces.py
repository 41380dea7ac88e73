"""A file of a table in pieces that are tables: for files larger than the memory.

What a column is, numbers or text, follows from the whole file, as it does for ``read_table``. So a
file is read twice: once to see that, with nothing kept, and once for its rows.
"""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from chainrule.backend import K
from chainrule.data.columns import CATEGORY, Column, TableError, column_of, meaning
from chainrule.data.reading import (
    NOTHING,
    NUMBERS,
    WORDS,
    _behind,
    _fill,
    _Growing,
    _ragged,
    _until_last,
    header_of,
    pieces_of_file,
)
from chainrule.data.table import Table, read_table
from chainrule.tensor import of_array
from chainrule.typing import Array

__all__ = ["Piece", "TablePieces", "pieces_of_table", "table_pieces"]

ROWS = 16384  # of a Parquet file in one piece
TEXT = (".csv", ".tsv", ".tab", ".txt", "")
PARQUET = (".parquet", ".pq")


@dataclass
class Piece:
    """Some rows: a table of the columns asked for, and the values of others as they stand."""

    table: Table
    copied: dict[str, list[Any]]


class TablePieces:
    """A table that is given in pieces; this one has it whole, and gives it as one piece."""

    def __init__(self, table: Table):
        self.table = table

    @property
    def names(self) -> list[str]:
        """The names of all columns."""
        return self.table.names

    def pieces(self, wanted: Sequence[str], copied: Sequence[str] = ()) -> Iterator[Piece]:
        """The rows in order: a table of the columns ``wanted``, and the values of ``copied``."""
        _check(self.names, [*wanted, *copied])
        yield pieces_of_table(self.table, wanted, copied)


def pieces_of_table(table: Table, wanted: Sequence[str], copied: Sequence[str]) -> Piece:
    """A whole table as one piece."""
    kept = {name: [_plain(v) for v in table[name].values] for name in copied}
    return Piece(Table([table[name] for name in wanted]), kept)


def _plain(value: Any) -> Any:
    """A number without a needless point; nothing for what is missing."""
    if not isinstance(value, float):
        return value
    return None if math.isnan(value) else int(value) if value.is_integer() else value


def _check(names: Sequence[str], wanted: Sequence[str]) -> None:
    missing = [name for name in wanted if name not in names]
    if missing:
        listed = ", ".join(map(repr, names[:20])) + (" ..." if len(names) > 20 else "")
        raise TableError(f"there is no column {missing[0]!r}; the columns are {listed}")


def table_pieces(path: str | os.PathLike[str]) -> TablePieces:
    """A file that ``read_table`` reads, in pieces if it is separated values or Parquet.

    Args:
        path: the file; Parquet is read in pieces by pyarrow, and whole by another library.

    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "small.csv")
    >>> with open(path, "w") as file:
    ...     _ = file.write("id,x\\n007,1.5\\n008,2\\n")
    >>> (piece,) = table_pieces(path).pieces(["x"], ["id"])
    >>> piece.table["x"].values, piece.copied
    ([1.5, 2.0], {'id': ['007', '008']})
    """
    path = Path(path)
    packed = path.suffix.lower() == ".gz"
    kind = (Path(path.stem).suffix if packed else path.suffix).lower()
    if not path.is_file():
        return TablePieces(read_table(path))  # which says what is wrong
    if kind in TEXT:
        return _TextPieces(path, "\t" if kind in (".tsv", ".tab") else None)
    if kind in PARQUET and not packed:
        with suppress(ImportError):
            import pyarrow.parquet  # noqa: F401

            return _ParquetPieces(path)
    return TablePieces(read_table(path))


# --- separated values -----------------------------------------------------------------------------


class _Glance(_Growing):
    """Sees whether a column has text, and where first; keeps nothing."""

    def __init__(self, name: str, comma: bool):
        super().__init__(name, comma)
        self.rows = 0
        self.first: tuple[int, str] | None = None  # row and text
        self.has_values = False

    def add(self, cells: Any) -> bool:
        """Looks at a piece; False if it has text where numbers were expected."""
        if self.mode == NUMBERS:
            numbers, rows, odd = cells
            is_number = self._add_numbers(numbers, rows, odd)
            if not is_number:
                self._note(rows, odd)
            self.rows += len(numbers)
            self.parts = self.parts[-1:]
            return is_number
        if self.mode == WORDS:  # of a column without a name
            self.has_values |= any([word.strip() for word in cells[1]])
        return True

    def _note(self, rows: Array, odd: list[str]) -> None:
        for row, cell in zip(of_array(rows).tolist(), odd, strict=True):
            if type(meaning(cell, self.comma)) is str:
                self.first = (self.rows + row + 1, cell.strip())
                return

    def restart(self, mode: str) -> None:
        """Looks no more: it is text."""
        self.mode = NOTHING

    @property
    def is_blank(self) -> bool:
        """Whether a column without a name has no values."""
        return not self.name and not self.has_values


class _TextPieces(TablePieces):
    """A file of separated values."""

    def __init__(self, path: Path, delimiter: str | None):
        self.where, self.again = str(path), partial(pieces_of_file, path)
        self.header = header_of(self.again(), delimiter, self.where)
        # The checks of names are the table's own.
        Table([Column(n, CATEGORY, ()) for n in self.header.names if n])

    @property
    def names(self) -> list[str]:
        """The names of all columns."""
        return [name for name in self.header.names if name]

    def pieces(self, wanted: Sequence[str], copied: Sequence[str] = ()) -> Iterator[Piece]:
        """The rows in order: a table of the columns ``wanted``, and the values of ``copied``."""
        _check(self.names, [*wanted, *copied])
        try:
            yield from self._pieces(wanted, copied)
        except csv.Error as error:
            raise TableError(f"{self.where} cannot be read as separated values: {error}") from None

    def _pieces(self, wanted: Sequence[str], copied: Sequence[str]) -> Iterator[Piece]:
        header, seen = self.header, self._seen(wanted)
        modes = "".join([_mode(seen.get(name)) for name in header.names])
        words = "".join([WORDS if name in copied else NOTHING for name in header.names])
        rest, rows = "", 0
        for piece, last in _until_last(_behind(self.again(), header.skip)):
            read = partial(K.read_cells, rest + piece, header.delimiter, last=last)
            cells, count, rest, wrong = read(modes=modes, comma=header.comma)
            if wrong is not None:
                raise _ragged(self.where, header, rows + wrong[0], wrong[1], wrong[2])
            rows += count
            if count:
                named = dict(zip(header.names, cells, strict=True))
                table = Table([_column(seen[name], named[name]) for name in wanted])
                found = read(modes=words, comma=False)[0] if copied else cells
                raw = dict(zip(header.names, found, strict=True))
                yield Piece(table, {name: _listed(*raw[name]) for name in copied})

    def _seen(self, wanted: Sequence[str]) -> dict[str, _Glance]:
        """What each of the columns is in the whole file."""
        header = self.header
        glances = [
            _Glance(name, header.comma) if name in wanted or not name else None
            for name in header.names
        ]
        _fill(glances, header, self.again(), self.where)
        if any([g is not None and not g.name and not g.is_blank for g in glances]):
            raise TableError(
                f"{self.where}: column {header.names.index('') + 1} has no name in the header; "
                "give it one, or remove it"
            )
        return {g.name: g for g in glances if g is not None and g.name}


def _mode(glance: _Glance | None) -> str:
    if glance is None:
        return NOTHING
    return NUMBERS if glance.mode == NUMBERS else WORDS


def _column(glance: _Glance, cells: Any) -> Column:
    """The rows of a piece: numbers where the whole file has numbers, else text."""
    if glance.mode == NUMBERS:
        part = _Growing(glance.name, glance.comma)
        if not part.add(cells):
            raise TableError(f"column {glance.name!r} changed while it was read; read it again")
        return Column.of_numbers(glance.name, part.parts[0])
    codes, words = cells
    return _text_column(glance.name, _listed(codes, words), glance.first)


def _text_column(name: str, values: list[Any], first: tuple[int, str] | None) -> Column:
    """A column of text as ``read_table`` makes it, whatever stands in these rows."""
    meant = {v: meaning(v) for v in set(values)}
    texts = [None if meant[v] is None else str(v).strip() for v in values]
    note = "" if first is None else f"row {first[0]} has {first[1]!r}"
    return Column(name, CATEGORY, texts, note)


def _listed(codes: Array, words: Sequence[str]) -> list[str]:
    return [words[code] for code in of_array(codes).tolist()]


# --- Parquet --------------------------------------------------------------------------------------


class _ParquetPieces(TablePieces):
    """A Parquet file, by pyarrow."""

    def __init__(self, path: Path):
        import pyarrow
        import pyarrow.parquet

        self.path = path
        try:
            with pyarrow.parquet.ParquetFile(path) as file:
                self.schema, self.rows = file.schema_arrow, file.metadata.num_rows
        except (pyarrow.ArrowException, OSError) as error:
            raise TableError(f"{path} is not a whole Parquet file: {error}") from None
        if not self.rows:
            raise TableError(f"{path}: the table has columns but no rows")
        Table([Column(n, CATEGORY, ()) for n in self.names])

    @property
    def names(self) -> list[str]:
        """The names of all columns."""
        return [str(name) for name in self.schema.names]

    def pieces(self, wanted: Sequence[str], copied: Sequence[str] = ()) -> Iterator[Piece]:
        """The rows in order: a table of the columns ``wanted``, and the values of ``copied``."""
        import pyarrow

        _check(self.names, [*wanted, *copied])
        is_text = pyarrow.types.is_string, pyarrow.types.is_large_string
        texts = [
            n for n in wanted if any([is_kind(self.schema.field(n).type) for is_kind in is_text])
        ]
        first = self._first_texts(texts)
        for cells in self._batches([*dict.fromkeys([*wanted, *copied])]):
            columns = [
                _text_column(n, cells[n], first[n]) if n in first else column_of(n, cells[n])
                for n in wanted
            ]
            yield Piece(Table(columns), {n: cells[n] for n in copied})

    def _first_texts(self, names: list[str]) -> dict[str, tuple[int, str]]:
        """The first row, and what stands there, of the columns that are not numbers in words."""
        found: dict[str, tuple[int, str]] = {}
        row = 0
        for cells in self._batches(names) if names else ():
            for name in [n for n in names if n not in found]:
                odd = {v for v in set(cells[name]) if type(meaning(v)) is str}
                if odd:
                    place = next(i for i, v in enumerate(cells[name]) if v in odd)
                    found[name] = (row + place + 1, cells[name][place])
            row += len(cells[names[0]])
        return found

    def _batches(self, names: list[str]) -> Iterator[dict[str, list[Any]]]:
        import pyarrow
        import pyarrow.parquet

        try:
            with pyarrow.parquet.ParquetFile(self.path) as file:
                for batch in file.iter_batches(ROWS, columns=names):
                    batch.validate(full=True)
                    yield {n: _python(batch.column(n)) for n in names}
        except (pyarrow.ArrowException, OSError) as error:
            raise TableError(f"{self.path} is not a whole Parquet file: {error}") from None


def _python(column: Any) -> list[Any]:
    """The values of an Arrow array; times in the fineness of Python's."""
    import pyarrow

    kind = column.type
    if pyarrow.types.is_timestamp(kind) and kind.unit == "ns":
        column = column.cast(pyarrow.timestamp("us", kind.tz), safe=False)
    return column.to_pylist()

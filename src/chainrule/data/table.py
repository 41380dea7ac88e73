"""Tables: named columns of numbers or categories, read from files and data frames."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from chainrule.backend import dtypes
from chainrule.data.columns import Column, TableError, column_of
from chainrule.data.tabular.files import read_excel, read_json
from chainrule.data.tabular.frames import columns_of_arrow, columns_of_frame, is_frame
from chainrule.data.reading import Pieces, pieces_of_file, pieces_of_text, read_columns
from chainrule.ops.creation.from_data import tensor
from chainrule.tensor import Tensor
from chainrule.typing import Frame, Labels

__all__ = ["Column", "Table", "TableError", "TableLike", "read_table"]


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
        lengths = {len(c) for c in columns}
        if len(lengths) > 1:
            raise TableError(f"columns have different lengths: {sorted(lengths)}")
        self.columns = {c.name: c for c in columns}

    @property
    def names(self) -> list[str]:
        """The names of the columns, in order."""
        return list(self.columns)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

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
        chosen = rows if isinstance(rows, Tensor) else tensor(list(rows), dtype=dtypes.int64)
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
        listed = [(str(name), _listed_values(name, v)) for name, v in columns.items()]
        return cls._with_rows([column_of(name, values) for name, values in listed])

    @classmethod
    def _with_rows(cls, columns: Sequence[Column]) -> Table:
        """From columns that must have rows."""
        table = cls(columns)
        if not len(table):
            raise TableError(f"the table has columns ({_listed(table.names)}) but no rows")
        return table

    @classmethod
    def from_frame(cls, frame: Frame) -> Table:
        """From a pandas or polars frame, or an Arrow table; the types of its columns are used."""
        return cls._with_rows(columns_of_frame(frame))

    @classmethod
    def of(cls, data: TableLike) -> Table:
        """A table as it is, or one from a frame, or from columns by name."""
        if isinstance(data, Table):
            return data
        if isinstance(data, Mapping):
            return cls.from_dict(data)
        if is_frame(data):
            return cls.from_frame(data)
        raise TypeError(
            "expected a table, a frame of pandas, polars or Arrow, or columns by name, got "
            f"{type(data).__name__}"
        )

    @classmethod
    def from_text(cls, text: str, delimiter: str | None = None, where: str = "the table") -> Table:
        """From text with a header, separated by commas, tabs, semicolons or bars.

        Without a ``delimiter`` it is the one that stands most often in the first line. Between
        semicolons, a comma is a decimal point. A first line of numbers alone is not a header.
        """
        return cls._read(partial(pieces_of_text, text), delimiter, where)

    @classmethod
    def _read(cls, pieces: Pieces, delimiter: str | None, where: str) -> Table:
        columns = read_columns(pieces, delimiter, where)
        try:
            return cls(columns)
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
    if any(issubclass(kind, (list, tuple, dict)) for kind in set(map(type, found))):
        raise TableError(f"column {name!r} has values that are neither numbers nor text")
    return found


def read_table(path: str | os.PathLike[str]) -> Table:
    """Reads a CSV, TSV, Parquet, JSON or Excel file; text may be packed by gzip (``.csv.gz``).

    Parquet needs pyarrow, fastparquet or polars, Excel openpyxl. JSON is an object in each line
    (``.jsonl``, ``.ndjson``) or a list of objects (``.json``). The first line of a text file names
    the columns, unless it has numbers that are no names. Text is read in pieces: beside the table
    itself, it takes some megabytes.
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    if path.is_dir():
        raise TableError(f"{path} is a folder; tables are CSV, TSV, Parquet, JSON or Excel files")
    if not path.is_file():
        raise TableError(f"{path} is a device or a pipe, which may never end; give a file")
    kind = (Path(path.stem).suffix if path.suffix.lower() == ".gz" else path.suffix).lower()
    if kind in (".parquet", ".pq") and path.suffix.lower() == kind:
        return _read_parquet(path)
    if kind in (".xlsx", ".xlsm", ".xls") and path.suffix.lower() == kind:
        return _table(read_excel(path), path)
    if kind in (".jsonl", ".ndjson", ".json"):
        return _table(read_json(path), path)
    delimiter = "\t" if kind in (".tsv", ".tab") else None
    return Table._read(partial(pieces_of_file, path), delimiter, str(path))


def _table(columns: Sequence[Column], path: Path) -> Table:
    try:
        return Table._with_rows(columns)
    except TableError as error:
        raise TableError(f"{path}: {error}") from None


def _read_parquet(path: Path) -> Table:
    """By pyarrow or fastparquet, which refuse what is damaged. Polars ends the process if a file
    asks it for more memory than there is, so it comes last."""
    read = _reader_of_parquet()
    try:
        columns = read(path)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # noqa: BLE001 - the panics of Polars are no Exceptions
        raise TableError(f"{path} is not a whole Parquet file: {error}") from None
    return _table(columns, path)


def _reader_of_parquet() -> Callable[[Path], list[Column]]:
    """What reads the columns, by the first library that is there."""
    with suppress(ImportError):
        import pyarrow.parquet  # noqa: F401

        return _by_pyarrow
    with suppress(ImportError):
        import fastparquet  # noqa: F401
        import pandas

        return lambda path: columns_of_frame(pandas.read_parquet(path, engine="fastparquet"))
    with suppress(ImportError):
        import polars

        return lambda path: columns_of_frame(polars.read_parquet(path))
    raise ImportError(
        "reading Parquet needs pyarrow, fastparquet with pandas, or polars: pip install pyarrow"
    )


def _by_pyarrow(path: Path) -> list[Column]:
    import pyarrow.parquet

    with pyarrow.parquet.ParquetFile(path) as file:
        table = file.read()
    table.validate(full=True)
    return columns_of_arrow(table)


TableLike = Table | Frame | Mapping[str, Labels]  # what can be taken for a table

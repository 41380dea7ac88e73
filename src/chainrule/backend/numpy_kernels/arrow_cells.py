"""The cells of a table in text by pyarrow, where it is installed and reads them as we do."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Sequence
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np

__all__ = ["read_by_arrow"]

WORTH = 1 << 20  # characters for which it is worth importing pyarrow

Columns = list[Any]
Numbers = tuple[np.ndarray, np.ndarray, list[str]]
OneByOne = Callable[[Sequence[str], bool], Numbers]


@cache
def _csv_of_arrow() -> ModuleType | None:
    try:
        import pyarrow.csv
    except ImportError:
        return None
    return pyarrow.csv


def read_by_arrow(
    text: str, delimiter: str, modes: str, comma: bool, one_by_one: OneByOne
) -> tuple[Columns, int] | None:
    """The columns and the number of rows, as ``read_cells`` has them.

    None for what pyarrow would read otherwise, or not at all: spaces before cells, quotes that are
    not around whole cells or hold lines or quotes, lines of spaces, cells beyond the limit of the
    csv module, rows of another length. ``one_by_one`` reads columns with cells that are neither
    empty nor numbers in decimal notation.
    """
    if len(text) < WORTH or not _is_alike(text, delimiter, modes) or _csv_of_arrow() is None:
        return None
    from pyarrow import ArrowInvalid

    content = text.encode()
    point = "," if comma and "," in text and "." not in text else "."
    try:
        table = _parsed(content, delimiter, modes, point)
    except ArrowInvalid:  # of numbers, or of lines, which are wrong as text, too
        try:
            table = _parsed(content, delimiter, modes.replace("n", "t"), point)
        except ArrowInvalid:
            return None
    columns: Columns = [None] * len(modes)
    for name in table.column_names:
        place, column = int(name), table[name].combine_chunks()
        columns[place] = _words(column) if modes[place] == "t" else _numbers(column)
        if columns[place] is None:
            only = "".join(["t" if i == place else "-" for i in range(len(modes))])
            column = _parsed(content, delimiter, only, point)[name]
            columns[place] = one_by_one(column.to_pylist(), comma)
    return columns, table.num_rows


def _parsed(content: bytes, delimiter: str, modes: str, point: str) -> Any:
    """A table of pyarrow: of numbers, and of text in which nothing is missing."""
    from pyarrow import BufferReader, float64, string

    arrow: Any = _csv_of_arrow()
    types = {str(i): float64() if mode == "n" else string() for i, mode in enumerate(modes)}
    return arrow.read_csv(
        BufferReader(content),
        arrow.ReadOptions(column_names=list(types), block_size=len(content) + 1),
        arrow.ParseOptions(delimiter=delimiter, double_quote=False),
        arrow.ConvertOptions(
            column_types=types,
            include_columns=[str(i) for i, mode in enumerate(modes) if mode != "-"],
            null_values=[""],
            strings_can_be_null=False,
            decimal_point=point,
        ),
    )


def _is_alike(text: str, delimiter: str, modes: str) -> bool:
    """Whether the text is so plain that pyarrow understands its lines and cells as we do."""
    if len(modes) < 2 or set(modes) == {"-"} or delimiter not in (",", ";", "\t", "|"):
        return False
    if "\r" in text and text.count("\r") != text.count("\r\n"):
        return False
    if max(map(len, text.split("\n"))) > csv.field_size_limit():
        return False
    bare = text
    if '"' in text:
        edge = re.escape(delimiter) + r"\r\n"
        bare = re.sub(rf'(?<![^{edge}])"[^"\r\n]*"(?![^{edge}])', "", text)
    if '"' in bare or "\0" in bare:
        return False
    return not (bare.startswith(" ") or "\n " in bare or delimiter + " " in bare)


def _numbers(column: Any) -> Numbers | None:
    """The numbers of a column, None if there is anything else."""
    from pyarrow import ArrowInvalid, compute, float64, types

    if types.is_string(column.type):
        try:
            empty = compute.equal(column, "")
            column = compute.if_else(empty, None, column).cast(float64())
        except ArrowInvalid:
            return None
    found = np.array(column.to_numpy(zero_copy_only=False), np.float64)  # NaN where there is none
    if np.count_nonzero(np.isfinite(found)) != len(found) - column.null_count:
        return None  # nan, inf, or too large
    return found, np.empty(0, np.int64), []


def _words(column: Any) -> tuple[np.ndarray, list[str]]:
    coded = column.dictionary_encode()
    return np.array(coded.indices.to_numpy(), np.int32), coded.dictionary.to_pylist()

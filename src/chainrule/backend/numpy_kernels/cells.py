"""The cells of a table in text, by columns."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from chainrule.backend.numpy_kernels.arrow_cells import read_by_arrow

__all__ = ["read_cells"]

_NUMBER = re.compile(r"[+-]?(?:[0-9]+[.]?[0-9]*|[.][0-9]+)(?:[eE][+-]?[0-9]+)?")
BLOCK = 50_000  # cells that are held as objects of Python at a time
_SPACE = "\t\n\v\f\r "  # around numbers; str.strip() takes away more

Wrong = tuple[int, int, int]


def read_cells(
    text: str, delimiter: str, modes: str, comma: bool, last: bool
) -> tuple[list[Any], int, str, Wrong | None]:
    """Reads whole lines of separated values, as Python's csv module understands them.

    Spaces before a cell and blank lines are passed over. A letter of ``modes`` for each column says
    what is made of it:

    - ``n``: numbers in decimal notation (with ``comma``, a comma may be their point), NaN where
      there is none; the rows, and the cells, that are neither numbers in this notation nor empty;
    - ``t``: codes of words, and the words, in the order in which they come;
    - ``-``: None.

    Args:
        text: lines; the last one may lack its end.
        delimiter: what stands between cells.
        modes: what is made of each column.
        comma: whether a comma may be a decimal point.
        last: whether nothing follows this text, so that a quote still open ends there.

    Returns:
        the columns; how many rows they have; the end of the text that is part of an open record;
        and, if a row has another number of cells (then there are no columns), its number, how many
        it has, and its line, all counted from 1.
    """
    quick = read_by_arrow(text, delimiter, modes, comma, _numbers)
    if quick is not None:
        return *quick, "", None
    records = _Records(text, delimiter, last)
    blocks: list[list[Any]] = []
    starts = [0]
    for rows in records.blocks(1 + BLOCK // max(1, len(modes))):
        if any([len(row) != len(modes) for row in rows]):
            return [], 0, "", _first_wrong(text, delimiter, len(modes))
        cells: list[Sequence[str]] = list(zip(*rows, strict=True)) if rows else [()] * len(modes)
        blocks.append([_MAKERS[m](column, comma) for m, column in zip(modes, cells, strict=True)])
        starts.append(starts[-1] + len(rows))
    parts = zip(*blocks, strict=True)
    columns = [_JOINED[m](part, starts) for m, part in zip(modes, parts, strict=True)]
    return columns, starts[-1], records.rest, None


def _reader(lines: Iterator[str], delimiter: str) -> Any:
    return csv.reader(lines, delimiter=delimiter, skipinitialspace=True)


def _is_blank(row: list[str]) -> bool:
    return not row or (len(row) == 1 and not row[0].strip())


class _Lines:
    """The lines of a text, how long those given so far are, and whether one too many was asked."""

    def __init__(self, text: str):
        self.lines = iter(io.StringIO(text, newline=""))
        self.given, self.exhausted = 0, False

    def __iter__(self) -> Iterator[str]:
        for line in self.lines:
            self.given += len(line)
            yield line
        self.exhausted = True


class _Records:
    """The rows of a text that are not blank, and the text of a record that is open at its end."""

    def __init__(self, text: str, delimiter: str, last: bool):
        self.text, self.delimiter, self.last, self.rest = text, delimiter, last, ""

    def blocks(self, most: int) -> Iterator[list[list[str]]]:
        """The rows, at most so many at a time; one block is empty where there are none."""
        lines, rows, start, given = _Lines(self.text), list[list[str]](), 0, False
        for row in _reader(iter(lines), self.delimiter):
            if lines.exhausted and not self.last:
                self.rest = self.text[start:]
            elif not _is_blank(row):
                rows.append(row)
            start = lines.given
            if len(rows) == most:
                yield rows
                rows, given = [], True
        if rows or not given:
            yield rows


def _first_wrong(text: str, delimiter: str, expected: int) -> Wrong:
    reader, seen = _reader(iter(_Lines(text)), delimiter), 0
    for row in reader:
        seen += not _is_blank(row)
        if not _is_blank(row) and len(row) != expected:
            break
    return seen, len(row), reader.line_num


def _numbers(cells: Sequence[str], comma: bool) -> tuple[np.ndarray, np.ndarray, list[str]]:
    joined = "".join(cells)
    # What float() reads beyond the decimal notation: 1_000, digits of other scripts, nan, inf.
    if joined.isascii() and "_" not in joined:
        try:
            found = np.array([float(c) if c else math.nan for c in cells])
        except ValueError:
            pass
        else:
            if np.count_nonzero(np.isfinite(found)) == len(cells) - cells.count(""):
                return found, np.empty(0, np.int64), []
    numbers, odd = _one_by_one(cells, comma)
    rows = np.array(odd, np.int64)
    return np.array(numbers, np.float64), rows, [cells[i] for i in odd]


def _one_by_one(cells: Sequence[str], comma: bool) -> tuple[list[float], list[int]]:
    numbers, odd = [], []
    for row, cell in enumerate(cells):
        word = cell.strip(_SPACE)
        if comma and "." not in word:
            word = word.replace(",", ".", 1)
        plain = _NUMBER.fullmatch(word)
        numbers.append(float(word) if plain else math.nan)
        if word and not plain:
            odd.append(row)
    return numbers, odd


def _words(cells: Sequence[str], comma: bool) -> tuple[np.ndarray, list[str]]:
    words = {word: code for code, word in enumerate(dict.fromkeys(cells))}
    return np.array([words[c] for c in cells], np.int32), list(words)


def _nothing(cells: Sequence[str], comma: bool) -> None:
    return None


def _joined_numbers(
    parts: Sequence[tuple[np.ndarray, np.ndarray, list[str]]], starts: Sequence[int]
) -> tuple[np.ndarray, np.ndarray, list[str]]:
    odd = [rows + start for (_, rows, _), start in zip(parts, starts, strict=False)]
    cells = [cell for _, _, some in parts for cell in some]
    return np.concatenate([numbers for numbers, _, _ in parts]), np.concatenate(odd), cells


def _joined_words(
    parts: Sequence[tuple[np.ndarray, list[str]]], starts: Sequence[int]
) -> tuple[np.ndarray, list[str]]:
    words: dict[str, int] = {}
    codes = []
    for own, some in parts:
        places = [words.setdefault(word, len(words)) for word in some]
        codes.append(np.array(places, np.int32)[own])
    return np.concatenate(codes), list(words)


def _joined_nothing(parts: Sequence[None], starts: Sequence[int]) -> None:
    return None


_MAKERS = {"n": _numbers, "t": _words, "-": _nothing}
_JOINED: dict[str, Callable[..., Any]] = {
    "n": _joined_numbers,
    "t": _joined_words,
    "-": _joined_nothing,
}

"""Hostile tables in text, and what they hold: the rules of tables written plainly, cell by cell."""

from __future__ import annotations

import csv
import io
import math
import random
from typing import Any

from chainrule.data import Table, TableError

__all__ = ["CELLS", "held", "plainly", "random_text"]

# fmt: off
CELLS = [
    "1", "2.5", "-3e4", "+7", ".5", "5.", "-0", "0e0", "1e400", "-1e-400", "1e", "1e+", "e5", ".",
    "+", "0x1", "1_0", "nan", "-NaN", "inf", "-Infinity", "infinity_", "nan(1)", "-", "?", "NA",
    "n/a", "None", "", "  ", " x", "x ", "\t", "\xa0", "\u2003", "\u0661", "\x1c1", "1\x1f", "é",
    "日本", "# 5", '"', '""', '"a"', '"1"', '" 2 "', '"a,b"', '"a;b"', '"a\nb"', '"\r\n"', 'a"b',
    '"a"b', '"a""b"', "1,5", "1.5", "1,5,2", "1.,5", "2024-01-01 10:00", "True", "9007199254740993",
    "123456789012345678901234567890", "0.1234567890123456789012345", "179769313486231580793e289",
    "n.a.", "N.a.", "#N/A", "..", "#REF!",
]
GAPS = [
    "", "na", "n/a", "n.a.", "nan", "nat", "null", "(null)", "nil", "none", "<na>", "?", "-", "--",
    ".", "..", "#n/a", "#na", "#n/a n/a", "#div/0!", "#value!", "#ref!", "#name?", "#num!",
    "#null!",
]
# fmt: on


def random_text(r: random.Random) -> tuple[str, str | None]:
    """A text, and its separator if that is told."""
    delimiter = r.choice(",;\t|")
    width = r.randint(1, 4)
    pools = [r.sample(CELLS, r.randint(1, 5)) for _ in range(width)]
    for pool in pools:
        pool += ["1", "2.5", ""] * r.choice([0, 0, 5])
    names = ["a", "b", "c", "1", "", "x y", '"q"']
    lines = [delimiter.join([r.choice(names) + str(i) * r.randint(0, 3) for i in range(width)])]
    for _ in range(r.randint(0, 12)):
        line = delimiter.join([r.choice(pool) for pool in pools])
        lines.append(line if r.random() < 0.99 else line + delimiter)
    if r.random() < 0.1:
        r.shuffle(lines)
    text = r.choice(["\n", "\r\n", "\r"]).join(lines) + r.choice(["", "\n", "\n\n"])
    if r.random() < 0.1:
        text = "".join(r.sample(text, len(text)))
    return text, r.choice([None, delimiter])


def held(table: Table) -> list[tuple[str, str, str, list[Any]]]:
    """What a table holds, with every bit of its numbers."""
    return [(c.name, c.kind, c.note, [_exact(v) for v in c.values]) for c in table]


def _exact(value: Any) -> Any:
    return value.hex() if isinstance(value, float) else value


def plainly(text: str, delimiter: str) -> list[tuple[str, str, str, list[Any]]]:
    """What a table in text should hold."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=True)
    rows, lines = [], []
    for row in reader:
        if len(row) > 1 or (row and row[0].strip()):
            rows.append(row)
            lines.append(reader.line_num)
    if not rows:
        raise TableError("the table is empty")
    names, first = [name.strip() for name in rows[0]], 1
    if not _are_names(names) or _are_values(rows[0], rows[1:]):
        names, first = [f"column_{i + 1}" for i in range(len(names))], 0
    if not rows[first:]:
        raise TableError("the table has a header but no rows")
    for i, row in enumerate(rows[first:]):
        if len(row) != len(names):
            many = f"{len(row)} value{'s' * (len(row) != 1)}"
            raise TableError(
                f"the table: row {i + 1} has {many}, the {'header' if first else 'first row'} has "
                f"{len(names)} (line {lines[first + i]}); a value that contains {delimiter!r} "
                "needs quotes"
            )
    columns = list(zip(names, zip(*rows[first:], strict=True), strict=True))
    columns = [(n, c) for n, c in columns if n or any(cell.strip() for cell in c)]
    if any(not n for n, _ in columns):
        raise TableError(f"the table: column {names.index('') + 1} has no name in the header")
    twice = sorted({n for n, _ in columns if [m for m, _ in columns].count(n) > 1})
    if twice:
        raise TableError(f"the table: duplicate column names: {', '.join(map(repr, twice))}")
    if not columns:
        raise TableError("the table: the table has no columns")
    return [_column(name, list(cells), delimiter == ";") for name, cells in columns]


def _are_values(first: list[str], rows: list[list[str]]) -> bool:
    """Two cells, and half of all, stand again below, among others; no column is all numbers."""
    rows = [row for row in rows if len(row) == len(first)]
    same = 0
    for i, cell in enumerate(first):
        below = {row[i].strip() for row in rows if row[i].strip().lower() not in GAPS}
        if below and all(_number(v, False) is not None for v in below):
            return False
        name = cell.strip()
        same += name in below and len(below) > 1 and _number(name, False) is None
    return same > 1 and 2 * same >= len(first)


def _are_names(cells: list[str]) -> bool:
    found = [c for c in cells if _number(c, False) is not None]
    if len(found) == len(cells):
        return False
    if any(not c.isdecimal() and c.lower() != "nan" for c in found):
        return False
    sizes = [int(c) for c in found if c.isdecimal()]
    if len(sizes) < len(found) or all(1000 <= s < 3000 for s in sizes):
        return True
    return sizes == list(range(sizes[0], sizes[0] + len(sizes)))


def _number(cell: str, comma: bool) -> float | None:
    for word in (cell, cell.replace(",", ".")) if comma and cell.count(",") == 1 else (cell,):
        try:
            if "_" not in word and (word == cell or "." not in cell):
                return float(word)
        except ValueError:
            continue
    return None


def _column(name: str, cells: list[str], comma: bool) -> tuple[str, str, str, list[Any]]:
    found: list[Any] = []
    for cell in cells:
        number, text = _number(cell, comma), cell.strip()
        gap = text.lower() in GAPS
        if number is not None and not math.isnan(number):
            found.append(number)
        else:
            found.append(None if gap or number is not None else text)
    known = [m for m in found if m is not None]
    good = [m for m in known if isinstance(m, float)]
    digits = [c.strip() for c, m in zip(cells, found, strict=True) if m is not None]
    codes = any(d[:1] == "0" and len(d) > 1 for d in digits) and all(d.isdigit() for d in digits)
    if known and len(good) == len(known) and not codes:
        numbers = [math.nan if m is None else m for m in found]
        return name, "number", "", [_exact(v) for v in numbers]
    texts = [None if m is None else c.strip() for m, c in zip(found, cells, strict=True)]
    if len(good) <= len(known) / 2 or len(good) == len(known):
        return name, "category", "", texts
    row = next(i for i, m in enumerate(found) if isinstance(m, str))
    note = f"row {row + 1} has {texts[row]!r}, while {len(good)} of {len(known)} values are numbers"
    return name, "mixed", note, texts

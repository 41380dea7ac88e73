"""Rows as bytes in pieces: CSV, TSV, JSON lines or Parquet, by the name of a file."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from chainrule.cli.arguments import UserError

__all__ = ["Rows", "as_csv", "written_as"]

Rows = dict[str, list[Any]]  # columns of one length, by name


def as_csv(blocks: Iterable[Rows], delimiter: str = ",") -> Iterator[bytes]:
    """Separated values with a header; nothing stands where there is no value."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n", delimiter=delimiter)
    for number, block in enumerate(blocks):
        if number == 0:
            writer.writerow(block)
        writer.writerows(zip(*block.values(), strict=True))
        yield text.getvalue().encode()
        text.seek(0)
        text.truncate()


def _as_tsv(blocks: Iterable[Rows]) -> Iterator[bytes]:
    return as_csv(blocks, "\t")


def _as_json_lines(blocks: Iterable[Rows]) -> Iterator[bytes]:
    """An object for each row; null where a number is missing or not finite."""
    for block in blocks:
        names = list(block)
        rows = zip(*block.values(), strict=True)
        lines = [
            json.dumps(dict(zip(names, map(_finite, row), strict=True)), default=str)
            for row in rows
        ]
        yield "".join([line + "\n" for line in lines]).encode()


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


class _Sink(io.RawIOBase):
    """What is written goes into parts that are taken away."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []

    def writable(self) -> bool:
        """Always."""
        return True

    def write(self, content: Any) -> int:
        """Keeps a copy."""
        self.parts.append(bytes(content))
        return len(self.parts[-1])

    def taken(self) -> list[bytes]:
        """What was written since the last time."""
        parts, self.parts = self.parts, []
        return parts


def _as_parquet(blocks: Iterable[Rows]) -> Iterator[bytes]:
    """One group of rows for each block; the types of the first block are those of all."""
    import pyarrow
    import pyarrow.parquet

    sink, writer = _Sink(), None
    try:
        for block in blocks:
            if writer is None:
                made = pyarrow.table(block)
                writer = pyarrow.parquet.ParquetWriter(sink, made.schema)
            writer.write_table(pyarrow.table(block, schema=writer.schema))
            yield from sink.taken()
    except pyarrow.ArrowInvalid as error:
        raise UserError(
            f"a column changes its type along the file, which Parquet cannot hold ({error}); write "
            "a .csv or .jsonl file"
        ) from None
    finally:
        if writer is not None:
            writer.close()
    yield from sink.taken()


_FORMATS: dict[str, Callable[[Iterable[Rows]], Iterator[bytes]]] = {
    ".csv": as_csv,
    ".tsv": _as_tsv,
    ".jsonl": _as_json_lines,
    ".ndjson": _as_json_lines,
    ".parquet": _as_parquet,
    ".pq": _as_parquet,
}


def written_as(path: str) -> Callable[[Iterable[Rows]], Iterator[bytes]]:
    """What makes the bytes of a file of this name; an error for a name of another kind."""
    suffix = Path(path).suffix.lower()
    if suffix not in _FORMATS:
        raise UserError(
            f"--out {path}: predictions are written as {', '.join(_FORMATS)}; end the name with "
            "one of these"
        )
    if _FORMATS[suffix] is _as_parquet:
        try:
            import pyarrow.parquet  # noqa: F401
        except ImportError:
            raise UserError(
                f"--out {path}: writing Parquet needs pyarrow: pip install pyarrow"
            ) from None
    return _FORMATS[suffix]

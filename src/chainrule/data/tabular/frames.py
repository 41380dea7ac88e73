"""Columns of frames of pandas, polars and Arrow, by their types and without lists of objects."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from chainrule.backend import dtypes
from chainrule.data.columns import CATEGORY, Column, TableError
from chainrule.data.columns import column_of, column_of_words, text_of_number
from chainrule.ops.core.promotion import cast
from chainrule.ops.creation.from_data import as_tensor
from chainrule.ops.elementwise.logic import isnan, where
from chainrule.ops.creation.patterns import full
from chainrule.tensor import Tensor

__all__ = ["columns_of_arrow", "columns_of_frame", "is_frame"]

# The names of types, so that no library is imported for them.
TEXTS = ("string", "large_string", "string_view")


def is_frame(data: object) -> bool:
    """Whether it is a frame of pandas or polars, or a table of Arrow."""
    named = hasattr(data, "columns") or hasattr(data, "column_names")
    return named and (
        hasattr(data, "iloc") or hasattr(data, "to_series") or hasattr(data, "combine_chunks")
    )


def columns_of_frame(frame: Any) -> list[Column]:
    """The columns of a pandas or polars frame, or of an Arrow table."""
    if hasattr(frame, "iloc"):
        names = [str(name) for name in frame.columns]
        return [_of_pandas(name, frame.iloc[:, i]) for i, name in enumerate(names)]
    if hasattr(frame, "to_series"):
        names = [str(name) for name in frame.columns]
        return [_of_polars(name, frame.to_series(i)) for i, name in enumerate(names)]
    if hasattr(frame, "column_names") and hasattr(frame, "combine_chunks"):
        return columns_of_arrow(frame)
    raise TypeError(
        f"Table: expected a pandas or polars frame or an Arrow table, got {type(frame).__name__}"
    )


# --- what all of them come to ---------------------------------------------------------------------


def _numbers(name: str, array: Any) -> Column:
    numbers = cast(as_tensor(array), dtypes.float64)
    if bool(isnan(numbers).all()):
        return _nothing(name, len(numbers))
    return Column.of_numbers(name, numbers.clone())  # the frame may change its own


def _nothing(name: str, rows: int) -> Column:
    return Column.of_codes(name, full((rows,), -1, dtype=dtypes.int32), [])


def _truths(name: str, array: Any) -> Column:
    """Of 1, 0 and NaN or -1."""
    values = cast(as_tensor(array), dtypes.float64)
    codes = where(isnan(values) | (values < 0), -1.0, values)
    return Column.of_codes(name, cast(codes, dtypes.int32), ["False", "True"])


def _categories(name: str, codes: Any, words: Sequence[Any], ordered: bool) -> Column:
    """Categories that are so by their type; what is in them does not matter."""
    texts = [text_of_number(w) if type(w) is float else str(w).strip() for w in words]
    merged = Column("", CATEGORY, texts)
    places = cast(as_tensor(codes), dtypes.int64)
    known = where(places < 0, -1, merged.codes.long()[places.clamp(min=0)]) if words else places
    column = Column.of_codes(name, cast(known, dtypes.int32), merged.words)
    column.typed, column.ordered = True, ordered
    return column


def _words(name: str, codes: Any, words: Sequence[str]) -> Column:
    """Text by its places among words, -1 where it is missing."""
    places = cast(as_tensor(codes), dtypes.int64)
    return column_of_words(name, where(places < 0, len(words), places), [*words, ""])


def _dates(name: str, microseconds: Any, gaps: Any, utc: Any = None) -> Column:
    """Of microseconds since 1970 by the clock of a zone and, if there is one, by UTC."""
    seconds = cast(as_tensor(microseconds), dtypes.float64) / 1e6
    missing: Tensor = as_tensor(gaps)
    if bool(missing.all()):
        return _nothing(name, len(seconds))
    ahead: Tensor | float = 0.0
    if utc is not None:
        ahead = where(missing, 0.0, seconds - cast(as_tensor(utc), dtypes.float64) / 1e6)
    return Column.of_dates(name, where(missing, math.nan, seconds), ahead)


def _mixed(name: str, values: list[Any]) -> Column:
    """Of values of any kind, but for what holds several."""
    for value in values:
        if isinstance(value, (list, tuple, set, dict)) or getattr(value, "ndim", 0) > 0:
            raise TableError(
                f"column {name!r} has lists or objects, like {value!r:.40}; values are numbers, "
                "text or dates: make a column of each part"
            )
    return column_of(name, values)


# --- pandas ---------------------------------------------------------------------------------------


def _of_pandas(name: str, series: Any) -> Column:
    dtype = series.dtype
    kind = getattr(dtype, "kind", "O")
    if hasattr(series, "cat"):
        categories = series.cat
        return _categories(
            name, categories.codes.to_numpy(), categories.categories.tolist(), categories.ordered
        )
    if kind in "iuf":
        return _numbers(name, series.to_numpy(dtype="float64", na_value=math.nan))
    if kind == "b":
        return _truths(name, series.to_numpy(dtype="float64", na_value=math.nan))
    if kind == "M":
        gaps = series.isna().to_numpy()
        if getattr(dtype, "tz", None) is None:
            return _dates(name, _microseconds(series), gaps)
        utc = series.dt.tz_convert("UTC").dt.tz_localize(None)
        return _dates(name, _microseconds(series.dt.tz_localize(None)), gaps, _microseconds(utc))
    if kind == "m":
        return _numbers(name, series.dt.total_seconds().to_numpy(dtype="float64"))
    if str(dtype).startswith(("str", "string")):
        codes, words = series.factorize()
        return _words(name, codes, words.tolist())
    return _mixed(name, series.astype(object).tolist())


def _microseconds(series: Any) -> Any:
    return series.to_numpy(dtype="datetime64[us]").astype("int64")


# --- polars ---------------------------------------------------------------------------------------


def _of_polars(name: str, series: Any) -> Column:
    dtype = series.dtype
    kind = str(dtype).split("(")[0]
    if dtype.is_numeric():
        return _numbers(name, series.cast(float).to_numpy())
    if kind == "Boolean":
        return _truths(name, series.cast(int).fill_null(-1).to_numpy())
    if kind in ("Date", "Datetime"):
        moments, utc = series.dt.epoch("us").fill_null(0).to_numpy(), None
        if getattr(dtype, "time_zone", None) is not None:
            local = series.dt.replace_time_zone(None)
            moments, utc = local.dt.epoch("us").fill_null(0).to_numpy(), moments
        return _dates(name, moments, series.is_null().to_numpy(), utc)
    if kind == "Duration":
        return _numbers(name, series.dt.total_microseconds().cast(float).to_numpy() / 1e6)
    if kind in ("Categorical", "Enum"):
        column = Column(name, CATEGORY, series.cast(str).to_list())
        column.typed = True
        return column
    return _mixed(name, series.to_list())


# --- Arrow ----------------------------------------------------------------------------------------


def columns_of_arrow(table: Any) -> list[Column]:
    """The columns of an Arrow table."""
    return [
        _of_arrow(str(name), column)
        for name, column in zip(table.column_names, table.columns, strict=True)
    ]


def _of_arrow(name: str, column: Any) -> Column:
    import pyarrow
    import pyarrow.compute

    kind, is_kind = column.type, pyarrow.types
    if is_kind.is_integer(kind) or is_kind.is_floating(kind) or is_kind.is_decimal(kind):
        return _numbers(name, column.cast("float64", safe=False).to_numpy())
    if is_kind.is_boolean(kind):
        return _truths(name, column.cast("int8").fill_null(-1).to_numpy())
    if is_kind.is_dictionary(kind):
        codes, words = _encoded(column)
        return _categories(name, codes, words, kind.ordered)
    if str(kind) in TEXTS:
        return _words(name, *_encoded(column.dictionary_encode()))
    if is_kind.is_timestamp(kind) or is_kind.is_date(kind):
        moments, utc = _arrow_microseconds(column), None
        if is_kind.is_timestamp(kind) and kind.tz is not None:
            moments, utc = _arrow_microseconds(pyarrow.compute.local_timestamp(column)), moments
        return _dates(name, moments, column.is_null().to_numpy(), utc)
    if is_kind.is_duration(kind):
        seconds = column.cast(pyarrow.duration("us"), safe=False).cast("int64").cast("float64")
        return _numbers(name, seconds.to_numpy() / 1e6)
    return _mixed(name, column.to_pylist())


def _arrow_microseconds(column: Any) -> Any:
    import pyarrow

    moments = column.cast(pyarrow.timestamp("us"), safe=False)
    return moments.cast("int64").fill_null(0).to_numpy()


def _encoded(column: Any) -> tuple[Any, list[Any]]:
    """The codes of an Arrow dictionary, -1 for nothing, and its words."""
    whole = column.unify_dictionaries().combine_chunks()
    if hasattr(whole, "chunks"):  # none at all, or several of a library before 22
        whole = whole.chunk(0)
    return whole.indices.cast("int64").fill_null(-1).to_numpy(), whole.dictionary.to_pylist()

"""Tables from files and frames: what is read, what kind a column is, and every bad file."""

from __future__ import annotations

import datetime
import itertools
import math
import sys
import time
import types
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import polars
import pytest

import chainrule
from chainrule.data import Column, Table, TableError, read_table


def text(content: str, **options: Any) -> Table:
    return Table.from_text(content, **options)


def written(folder: Path, content: str | bytes, name: str = "t.csv") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def kinds(table: Table) -> dict[str, str]:
    return {c.name: c.kind for c in table}


# --- text -----------------------------------------------------------------------------------------


def test_numbers_and_categories() -> None:
    table = text("x,color,y\n1.5,red,1e3\n-2,dark blue,\n+.5,red,7\n")
    assert kinds(table) == {"x": "number", "color": "category", "y": "number"}
    assert table["x"].values == [1.5, -2.0, 0.5]
    assert table["color"].values == ["red", "dark blue", "red"]
    assert math.isnan(table["y"].values[1])
    assert table["y"].missing == 1
    assert table["y"].present == [1000.0, 7.0]
    assert len(table) == 3
    assert "x" in table
    assert "z" not in table
    assert repr(table) == "Table(3 rows; x: number, color: category, y: number)"


@pytest.mark.parametrize(
    ("content", "delimiter"),
    [("a,b\n1,x\n", ","), ("a\tb\n1\tx\n", "\t"), ("a;b\n1;x\n", ";"), ("a|b\n1|x\n", "|")],
    ids=["comma", "tab", "semicolon", "bar"],
)
def test_separators(content: str, delimiter: str) -> None:
    for table in (text(content), text(content, delimiter=delimiter)):
        assert table.names == ["a", "b"]
        assert table["a"].values == [1.0]
        assert table["b"].values == ["x"]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=["lf", "crlf", "cr"])
def test_line_ends(end: str) -> None:
    assert text(f"a,b{end}1,x{end}2,y{end}")["b"].values == ["x", "y"]
    assert len(text(f"a,b{end}1,x{end}2,y")) == 2  # no end of the last line


def test_quotes() -> None:
    content = '"a","b, c","d ""e"""\n1,"x, y","line\none"\n2, "u, v",w\n'
    table = text(content)
    assert table.names == ["a", "b, c", 'd "e"']
    assert table["b, c"].values == ["x, y", "u, v"]
    assert table['d "e"'].values == ["line\none", "w"]


def test_separator_is_not_looked_for_in_quotes() -> None:
    table = text('"a,b,c";d\n1;2\n')
    assert table.names == ["a,b,c", "d"]


def test_decimal_commas_between_semicolons() -> None:
    table = text("x;y;z\n1,5;2;a,b\n-0,25;3,5;c\n")
    assert table["x"].values == [1.5, -0.25]
    assert table["y"].values == [2.0, 3.5]
    assert table["z"].values == ["a,b", "c"]
    assert text('x,y\n"1,5",2\n"2,5",3\n')["x"].kind == "category"


def test_blank_lines_and_spaces() -> None:
    table = text("\n a , b \n\n1, x \n   \n 2 ,y\n\n")
    assert table.names == ["a", "b"]
    assert table["a"].values == [1.0, 2.0]
    assert table["b"].values == ["x", "y"]


def test_separator_at_the_end_of_each_line() -> None:
    assert text("a,b,\n1,2,\n3,4,\n").names == ["a", "b"]


def test_first_line_of_numbers_is_not_a_header() -> None:
    table = text("5.1,3.5,0\n4.9,3.0,1\n")
    assert table.names == ["column_1", "column_2", "column_3"]
    assert len(table) == 2


def test_text_without_a_header() -> None:
    table = text("red,S,yes\nblue,M,no\nred,M,yes\nblue,S,no\n")
    assert table.names == ["column_1", "column_2", "column_3"]
    assert table["column_2"].values == ["S", "M", "M", "S"]
    dated = text("2021-05-03,red,yes\n2021-05-04,blue,no\n2021-05-05,red,yes\n")
    assert len(dated) == 3
    # Names: what is ticked is the name, and a column of numbers has one.
    assert text("tea,cake\ntea,\n,cake\ntea,cake\n").names == ["tea", "cake"]
    assert text("red,blue,n\nred,blue,1\nblue,red,2\n").names == ["red", "blue", "n"]


def test_one_column() -> None:
    assert text("name\nann\nbob\n")["name"].values == ["ann", "bob"]


@pytest.mark.parametrize(
    "gap",
    [
        *(
            "",
            " ",
            "NA",
            "n/a",
            "NaN",
            "null",
            "None",
            "?",
            "-",
            "N.A.",
            "#N/A",
            "#DIV/0!",
            "<NA>",
            "--",
        ),
        ".",
    ],
)
def test_missing_values(gap: str) -> None:
    table = text(f"x,c\n1,a\n{gap},{gap}\n3,b\n")
    assert kinds(table) == {"x": "number", "c": "category"}
    assert math.isnan(table["x"].values[1])
    assert table["c"].values == ["a", None, "b"]
    assert (table["x"].missing, table["c"].missing) == (1, 1)


def test_column_without_values() -> None:
    table = text("x,empty\n1,\n2,NA\n")
    assert table["empty"].missing == 2
    assert table["empty"].present == []


def test_names_with_underscores_are_not_numbers() -> None:
    """Python's float reads 1_000 as 1000."""
    table = text("batch,x\n2020_1,1\n2020_2,2\n")
    assert table["batch"].values == ["2020_1", "2020_2"]
    assert text("1_0,2_0\n1,2\n").names == ["1_0", "2_0"]


def test_truth_values_are_categories() -> None:
    assert kinds(text("a\nTrue\nFalse\n")) == {"a": "category"}
    for values in ([True, False, None], np.array([True, False]), chainrule.tensor([True, False])):
        assert Table.from_dict({"a": values})["a"].values[:2] == ["True", "False"]


# --- mixed types ----------------------------------------------------------------------------------


def test_mixed_column_is_refused_when_used() -> None:
    table = text("x,y\n1,a\n2,b\nabc,a\n4,b\n")
    assert kinds(table) == {"x": "mixed", "y": "category"}
    with pytest.raises(
        TableError,
        match="column 'x' mixes numbers and text: row 3 has 'abc', while 3 of 4 values are numbers",
    ):
        table["x"].refuse_mixed()
    table["y"].refuse_mixed()
    assert table.without("x").names == ["y"]
    as_text = table.with_categories(["x"])["x"]
    assert as_text.kind == "category"
    assert as_text.values == ["1", "2", "abc", "4"]


def test_mixed_column_keeps_its_row_when_rows_are_taken() -> None:
    part = text("x\n1\n2\nabc\n4\n").take([0, 3])
    with pytest.raises(TableError, match="row 3 has 'abc'"):
        part["x"].refuse_mixed()


def test_mostly_text_is_a_category() -> None:
    assert text("code\nA1\nB2\n3\n")["code"].values == ["A1", "B2", "3"]


# --- files ----------------------------------------------------------------------------------------


def test_file_with_byte_order_mark(tmp_path: Path) -> None:
    table = read_table(written(tmp_path, b"\xef\xbb\xbfa,b\n1,\xc3\xa9t\xc3\xa9\n"))
    assert table.names == ["a", "b"]
    assert table["b"].values == ["été"]


@pytest.mark.parametrize("name", ["t.tsv", "t.tab", "t.TSV"])
def test_tsv_is_separated_by_tabs(tmp_path: Path, name: str) -> None:
    table = read_table(written(tmp_path, "a, b, c\td\nu, v\t1\n", name))
    assert table.names == ["a, b, c", "d"]


BAD_FILES = {
    "empty": (b"", "is empty"),
    "blank": (b"\n  \n\n", "is empty"),
    "mark-only": (b"\xef\xbb\xbf", "is empty"),
    "quotes-only": (b'""\n', "is empty"),
    "header-only": (b"a,b\n", "has a header but no rows"),
    "ragged": (b"a,b\n1,2\n\n3\n", r"row 2 has 1 value, the header has 2 \(line 4\)"),
    "too-long": (b"a,b\n1,2\n3,4,5\n", "row 2 has 3 values.*',' needs quotes"),
    "ragged-numbers": (b"1,2\n3\n", r"row 2 has 1 value, the first row has 2 \(line 2\)"),
    "duplicates": (b"a,b,a\n1,2,3\n", "duplicate column names: 'a'"),
    "no-name": (b",a\n0,5\n", r"column 1 has no name in the header.*index=False"),
    "latin-1": (b"a\ncaf\xe9\n", r"not UTF-8 text \(byte 0xe9 at position 5\)"),
    "utf-16": ("a\n1\n".encode("utf-16"), r"not UTF-8 text \(byte 0xff at position 0\)"),
    "binary": (b"a\0b\n", "is not a text file"),
    "image": (b"\x89PNG\r\n\x1a\n\0\0", "not UTF-8"),
    "huge-cell": (b"a,b\n1," + b"x" * 200_000 + b"\n", "field larger than field limit"),
}


@pytest.mark.parametrize("name", list(BAD_FILES))
def test_bad_files(tmp_path: Path, name: str) -> None:
    content, message = BAD_FILES[name]
    path = written(tmp_path, content)
    with pytest.raises(TableError, match=message) as caught:
        read_table(path)
    assert str(path) in str(caught.value)


def test_line_numbers_count_lines_in_quotes() -> None:
    with pytest.raises(TableError, match=r"row 3 has 1 value, .*\(line 5\)"):
        text('a,b\n1,"x\ny"\n2,z\n3\n')


def test_missing_file_and_folder(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="there is no file .*none.csv"):
        read_table(tmp_path / "none.csv")
    with pytest.raises(TableError, match="is a folder"):
        read_table(tmp_path)


@pytest.mark.parametrize("writer", ["pandas", "polars"])
def test_parquet(tmp_path: Path, writer: str) -> None:
    columns = {"x": [1.0, None, 3.0], "n": [1, 2, 3], "c": ["a", None, "b, c"]}
    path = tmp_path / "t.parquet"
    if writer == "pandas":
        pandas.DataFrame(columns).to_parquet(path)
    else:
        polars.DataFrame(columns).write_parquet(path)
    table = read_table(path)
    assert kinds(table) == {"x": "number", "n": "number", "c": "category"}
    assert table["x"].missing == 1
    assert table["c"].values == ["a", None, "b, c"]


def test_readers_of_parquet_agree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.pq"
    day = datetime.datetime(2024, 5, 1, 12)
    columns = {"x": [1.5, None], "t": [day, None], "b": [True, False], "c": ["u", "v"]}
    frame = polars.DataFrame(columns, schema_overrides={"t": polars.Datetime("ns")})
    frame.with_columns(polars.col("c").cast(polars.Categorical)).write_parquet(path)
    by_pyarrow = read_table(path)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    by_polars = read_table(path)
    assert kinds(by_pyarrow) == kinds(by_polars)
    for name in ("t", "b", "c"):
        assert by_pyarrow[name].values == by_polars[name].values
    assert by_pyarrow["t"].values == ["2024-05-01 12:00:00", None]
    assert by_pyarrow["x"].missing == by_polars["x"].missing == 1
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(ImportError, match="pip install pyarrow"):
        read_table(path)


def test_fastparquet_is_preferred_to_polars(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def read(path: Path, engine: str) -> pandas.DataFrame:
        asked.append(engine)
        return pandas.DataFrame({"x": [1, 2]})

    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "fastparquet", types.ModuleType("fastparquet"))
    monkeypatch.setattr(pandas, "read_parquet", read)
    (tmp_path / "t.pq").write_bytes(b"")
    assert read_table(tmp_path / "t.pq")["x"].values == [1.0, 2.0]
    assert asked == ["fastparquet"]


def test_lengths_in_parquet_that_no_memory_holds(tmp_path: Path) -> None:
    frame = polars.DataFrame({"a": [1, 2, None], "b": ["x", None, "z"]})
    frame.write_parquet(tmp_path / "good.pq", compression="uncompressed")
    content = (tmp_path / "good.pq").read_bytes()
    refused = 0
    for place, value in itertools.product(range(4, 160), (5, 113)):
        path = written(tmp_path, content[:place] + bytes([value]) + content[place + 1 :], "t.pq")
        try:
            read_table(path)
        except TableError:
            refused += 1
    assert refused > 50


def test_bad_parquet(tmp_path: Path) -> None:
    with pytest.raises(TableError, match="is not a whole Parquet file"):
        read_table(written(tmp_path, b"PAR1 no", "t.parquet"))
    polars.DataFrame({"x": []}, schema={"x": polars.Float64}).write_parquet(tmp_path / "e.parquet")
    with pytest.raises(TableError, match=r"e.parquet: the table has columns \('x'\) but no rows"):
        read_table(tmp_path / "e.parquet")


# --- frames and dictionaries ----------------------------------------------------------------------


def test_pandas_frame() -> None:
    frame = pandas.DataFrame(
        {
            "x": [1.5, None, 3.0],
            "n": pandas.array([1, None, 3], dtype="Int64"),
            "c": pandas.Categorical(["u", "v", None]),
            "t": pandas.to_datetime(["2024-01-01", None, "2024-01-02"]),
            "b": [True, False, True],
            5: ["p", "q", "r"],
        }
    )
    table = Table.from_frame(frame)
    assert list(kinds(table).values()) == [
        "number",
        "number",
        "category",
        "date",
        "category",
        "category",
    ]
    assert table["n"].missing == 1
    assert table["c"].values == ["u", "v", None]
    assert table["t"].values == ["2024-01-01 00:00:00", None, "2024-01-02 00:00:00"]
    assert table["b"].values == ["True", "False", "True"]
    assert table["5"].values == ["p", "q", "r"]


def test_polars_frame() -> None:
    frame = polars.DataFrame(
        {"x": [1.5, None, 3.0], "n": [1, 2, 3], "c": ["u", None, "v"], "b": [True, False, None]}
    )
    table = Table.from_frame(frame)
    assert kinds(table) == {"x": "number", "n": "number", "c": "category", "b": "category"}
    assert table["x"].missing == table["c"].missing == table["b"].missing == 1


def test_frames_equal_files(tmp_path: Path) -> None:
    path = written(tmp_path, "x,c,n\n1.5,a,1\n,b,2\n-3,,3\n")
    expected = read_table(path)
    for frame in (pandas.read_csv(path), polars.read_csv(path)):
        table = Table.from_frame(frame)
        assert kinds(table) == kinds(expected)
        assert table["c"].values == expected["c"].values
        assert str(table["x"].values) == str(expected["x"].values)


def test_bad_frames() -> None:
    with pytest.raises(TypeError, match="expected a pandas or polars frame or an Arrow table, got"):
        Table.from_frame(SimpleFrame())
    with pytest.raises(TableError, match="duplicate column names: 'a'"):
        Table.from_frame(pandas.DataFrame([[1, 2]], columns=["a", "a"]))
    for frame in (pandas.DataFrame({"a": []}), polars.DataFrame({"a": []})):
        with pytest.raises(TableError, match="but no rows"):
            Table.from_frame(frame)
    with pytest.raises(TableError, match="no columns"):
        Table.from_frame(pandas.DataFrame())


class SimpleFrame:
    columns = ("a",)


def test_dictionaries() -> None:
    table = Table.from_dict(
        {
            "list": [1, 2],
            "array": np.array([1.5, math.nan], dtype=np.float32),
            "tensor": chainrule.tensor([3, 4]),
            "text": ["1", "2"],
        }
    )
    assert set(kinds(table).values()) == {"number"}
    assert table["array"].missing == 1
    assert all(type(v) is float for c in table for v in c.values)


def test_bad_dictionaries() -> None:
    with pytest.raises(TableError, match=r"different lengths: \[1, 2\]"):
        Table.from_dict({"a": [1], "b": [1, 2]})
    with pytest.raises(TableError, match="no columns"):
        Table.from_dict({})
    with pytest.raises(TableError, match=r"\('a'\) but no rows"):
        Table.from_dict({"a": []})
    with pytest.raises(TypeError, match="column 'a' must be a list of values, got 'abc'"):
        Table.from_dict({"a": "abc"})
    with pytest.raises(TypeError, match="must be a list of values, got 3"):
        Table.from_dict({"a": 3})  # type: ignore[dict-item]
    with pytest.raises(TableError, match="neither numbers nor text"):
        Table.from_dict({"a": np.ones((2, 2))})


def test_infinite_numbers_are_read() -> None:
    """What learns from them refuses them; see test_encoding."""
    assert text("x\ninf\n1\n-Infinity\n")["x"].values == [math.inf, 1.0, -math.inf]


# --- choosing -------------------------------------------------------------------------------------


def test_rows_and_columns() -> None:
    table = Table.from_dict({"x": [1, 2, 3], "c": ["a", "b", "c"]})
    assert table.take([2, 0])["c"].values == ["c", "a"]
    assert table.take(chainrule.tensor([1]))["x"].values == [2.0]
    assert len(table.take([])) == 0
    assert table.without("x").names == ["c"]
    with pytest.raises(TableError, match="there is no column 'z'; the columns are 'x', 'c'"):
        table["z"]
    with pytest.raises(TableError, match="there is no column 'z'"):
        table.with_categories(["z"])


def test_many_names_are_cut_in_errors() -> None:
    table = Table.from_dict({f"c{i}": [1] for i in range(30)})
    with pytest.raises(TableError, match="'c19' and 10 more"):
        table["z"]


def test_numbers_as_categories() -> None:
    column = Column("x", "number", [1.0, 2.5, math.nan, -0.0]).as_category()
    assert column.values == ["1", "2.5", None, "0"]
    assert column.as_category() is column


def test_large_file_is_read_in_linear_time(tmp_path: Path) -> None:
    """Twice the rows take about twice the time: nothing is quadratic."""
    row = ",".join(["1.25"] * 8 + ["red", "x"])
    header = ",".join(f"c{i}" for i in range(10))

    def seconds(n: int) -> float:
        content = "\n".join([header, *[row] * n])
        start = time.process_time()
        text(content)
        return time.process_time() - start

    seconds(100)
    small, large = seconds(2_000), seconds(16_000)
    assert large < 40 * small + 0.5


def test_digits_that_begin_with_a_zero_are_codes() -> None:
    content = "zip,x,share\n01234,1,0.5\n90210,2,0\n,3,0.25\n"
    table = text(content)
    assert kinds(table) == {"zip": "category", "x": "number", "share": "number"}
    assert table["zip"].values == ["01234", "90210", None]
    assert Table.from_dict({"zip": ["01234", "90210"]})["zip"].kind == "category"
    assert text("x\n0\n10\n-0\n0.5\n")["x"].kind == "number"

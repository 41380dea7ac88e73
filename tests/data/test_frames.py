"""Frames of pandas, polars and Arrow by their types, and files of JSON and Excel."""

from __future__ import annotations

import datetime
import gzip
import json
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pandas
import polars
import pyarrow
import pytest

import chainrule
from chainrule import train
from chainrule.data import Table, TableEncoder, TableError, read_table
from chainrule.data.tabular.pieces import table_pieces

DAYS = [datetime.datetime(2024, 5, 1, 12), None, datetime.datetime(2024, 7, 1, 12)]
SIZES = ["small", "large", None]


def kinds(table: Table) -> dict[str, str]:
    return {c.name: c.kind for c in table}


FRAMES: dict[str, Any] = {
    "pandas": pandas.DataFrame(
        {
            "t": pandas.to_datetime(DAYS),
            "n": pandas.array([1, None, 3], dtype="Int64"),
            "b": pandas.array([True, None, False], dtype="boolean"),
            "c": pandas.Categorical(SIZES, categories=["small", "large"]),
            "s": ["1.5", None, "x"],
            "d": pandas.to_timedelta([1.5, None, 60], unit="s"),
        }
    ),
    "polars": polars.DataFrame(
        {
            "t": DAYS,
            "n": [1, None, 3],
            "b": [True, None, False],
            "c": polars.Series(SIZES, dtype=polars.Enum(["small", "large"])),
            "s": ["1.5", None, "x"],
            "d": [datetime.timedelta(seconds=1.5), None, datetime.timedelta(seconds=60)],
        }
    ),
    "Arrow": pyarrow.table(
        {
            "t": pyarrow.array(DAYS, pyarrow.timestamp("ns")),
            "n": pyarrow.array([1, None, 3]),
            "b": pyarrow.array([True, None, False]),
            "c": pyarrow.array(SIZES).dictionary_encode(),
            "s": pyarrow.array(["1.5", None, "x"]),
            "d": pyarrow.array([1_500_000, None, 60_000_000], pyarrow.duration("us")),
        }
    ),
}


@pytest.mark.parametrize("name", list(FRAMES))
def test_types_are_used(name: str) -> None:
    table = Table.of(FRAMES[name])
    assert kinds(table) == {
        "t": "date",
        "n": "number",
        "b": "category",
        "c": "category",
        "s": "category",
        "d": "number",
    }
    assert table["t"].values == ["2024-05-01 12:00:00", None, "2024-07-01 12:00:00"]
    assert str(table["n"].values) == "[1.0, nan, 3.0]"
    assert table["b"].values == ["True", None, "False"]
    assert table["c"].values == SIZES
    assert table["c"].typed
    assert table["s"].values == ["1.5", None, "x"]
    assert str(table["d"].values) == "[1.5, nan, 60.0]"
    roles = TableEncoder({"s": "category"}).fit(table).roles
    assert [roles[n].kind for n in "tnbcd"] == ["date", "number", "boolean", "category", "number"]


@pytest.mark.parametrize("name", ["pandas", "Arrow"])
def test_types_with_an_order(name: str) -> None:
    values, order = ["mid", "top", "low", "mid"], ["low", "mid", "top", "never"]
    if name == "pandas":
        frame: Any = pandas.DataFrame({"c": pandas.Categorical(values, order, ordered=True)})
    else:
        codes = pyarrow.array([order.index(v) for v in values], pyarrow.int8())
        made = pyarrow.DictionaryArray.from_arrays(codes, order, ordered=True)
        frame = pyarrow.table({"c": made})
    encoder = TableEncoder().fit(Table.of(frame))
    assert (encoder.roles["c"].kind, encoder.roles["c"].reason) == (
        "ordinal",
        "its type has an order",
    )
    x = encoder(Table.of(frame))[:, 0]
    assert x.tolist() == pytest.approx([-1 / 3, 1 / 3, -1, -1 / 3])


def test_zones_of_types_are_those_of_the_clock() -> None:
    times = pandas.to_datetime(["2024-01-01T00:00Z", "2024-07-01T00:00Z"]).tz_convert("Asia/Tokyo")
    frames = [pandas.DataFrame({"t": times})]
    frames += [polars.from_pandas(frames[0]), pyarrow.Table.from_pandas(frames[0])]
    for frame in frames:
        assert Table.of(frame)["t"].values == ["2024-01-01 09:00:00", "2024-07-01 09:00:00"]


def test_other_types() -> None:
    frame = polars.DataFrame({"day": [datetime.date(2024, 1, 2)], "clock": [datetime.time(14, 30)]})
    table = Table.of(frame)
    assert table["day"].kind == "date"
    assert table["clock"].values == ["14:30:00"]
    strings = pandas.DataFrame({"s": pandas.array(["1", "2.5", None], dtype="string")})
    assert str(Table.of(strings)["s"].values) == "[1.0, 2.5, nan]"
    numbers = pandas.DataFrame({"c": pandas.Categorical([1.0, 2.5, 1.0]), "e": [None] * 3})
    assert Table.of(numbers)["c"].values == ["1", "2.5", "1"]
    assert Table.of(numbers)["e"].missing == 3
    nothing = pyarrow.table({"x": pyarrow.nulls(2), "y": pyarrow.array([None, None], "float64")})
    assert [c.missing for c in Table.of(nothing)] == [2, 2]
    chunked = pyarrow.concat_tables([FRAMES["Arrow"], FRAMES["Arrow"]])
    assert Table.of(chunked)["c"].values == SIZES * 2
    for several in (
        pandas.DataFrame({"x": [[1], [2]]}),
        polars.DataFrame({"x": [[1], [2]]}),
        pyarrow.table({"x": [{"a": 1}, {"a": 2}]}),
    ):
        with pytest.raises(TableError, match=r"'x' has lists or objects, like .*a column of each"):
            Table.of(several)
    with pytest.raises(TypeError, match="expected a table, a frame of pandas, polars or Arrow, or"):
        Table.of([1, 2])  # type: ignore[arg-type]
    assert Table.of({"x": [1, 2]})["x"].values == [1.0, 2.0]


def test_what_a_frame_becomes_does_not_change_with_it() -> None:
    array = np.array([1.0, 2.0])
    frame = pandas.DataFrame({"x": array})
    table = Table.of(frame)
    frame.loc[0, "x"] = array[0] = 9.0
    assert table["x"].values == [1.0, 2.0]


@pytest.mark.parametrize("library", ["pandas", "polars", "Arrow"])
def test_frames_are_fitted_and_predicted(library: str) -> None:
    r = np.random.default_rng(0)
    day = np.datetime64("2024-01-01", "us") + r.integers(0, 300, 60) * np.timedelta64(1, "D")
    frame: Any = pandas.DataFrame({"day": day, "x": r.normal(size=60), "y": ["a", "b"] * 30})
    if library != "pandas":
        frame = polars.from_pandas(frame)
    if library == "Arrow":
        frame = frame.to_arrow()
    settings = train.Settings(hidden=(4,), epochs=2)
    net = train.fit_table(frame, "y", settings=settings, progress=False)
    assert net.about["roles"]["day"]["kind"] == "date"
    assert net.predict(frame) == net.predict(Table.of(frame))
    result = train.cross_validate_table(frame, "y", "auto", settings, folds=2)
    assert len(result.folds.rows) == 2


# --- JSON -----------------------------------------------------------------------------------------


def test_json_lines(tmp_path: Path) -> None:
    lines = ['{"x": 1, "c": "a"}', "", '{"c": "b", "x": null, "late": true}', '{"x": 2.5}']
    for name, content in (
        ("t.jsonl", "\n".join(lines).encode()),
        ("t.ndjson", "\r\n".join(lines).encode()),
        ("t.jsonl.gz", gzip.compress("\n".join(lines).encode())),
        ("t.json", json.dumps([json.loads(line) for line in lines if line]).encode()),
    ):
        (tmp_path / name).write_bytes(content)
        table = read_table(tmp_path / name)
        assert str(table["x"].values) == "[1.0, nan, 2.5]"
        assert table["c"].values == ["a", "b", None]
        assert table["late"].values == [None, "True", None]


def test_numbers_before_text_in_json(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('{"x": 1}\n{"x": 2.5}\n{"x": "n/a"}\n{"x": 3}\n')
    assert str(read_table(path)["x"].values) == "[1.0, 2.5, nan, 3.0]"
    path.write_text('{"x": 1}\n{"x": "a"}\n{"x": "b"}\n')
    assert read_table(path)["x"].values == ["1", "a", "b"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty"),
        ('{"x": 1}\n{"x": \n', "line 2 is not JSON"),
        ("[1, 2]", r"object 1 is not an object like \{\"x\": 1\}, but 1"),
        ('{"x": [1]}', "line 1: column 'x' has a list or an object"),
        ("{}\n{}", "the table has no columns"),
        ("[" * 100_000, "is not JSON"),
        ('{"x": 1' + "0" * 400 + "}", "line 1: a number is too large"),
    ],
)
def test_bad_json(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "t.json").write_text(content)
    with pytest.raises(TableError, match=message):
        read_table(tmp_path / "t.json")


def test_the_hour_that_comes_twice(tmp_path: Path) -> None:
    """Where clocks go back, elapsed time is by UTC in frames, words and pieces of files alike."""
    utc = pandas.date_range("2024-10-26 20:30", periods=12, freq="h", tz="UTC")
    when = utc.tz_convert("Europe/Berlin")
    frame = pandas.DataFrame({"when": when, "x": range(12)})
    frame.to_parquet(tmp_path / "t.parquet")
    frame.to_csv(tmp_path / "t.csv", index=False)
    encoder = TableEncoder({"x": "drop"}).fit(Table.from_frame(frame))
    expected = encoder(Table.from_frame(frame))
    elapsed = expected[:, 0].tolist()
    assert elapsed == sorted(set(elapsed))  # though 02:30 stands there twice
    arrow = pyarrow.Table.from_pandas(frame)
    missing = frame.assign(when=frame["when"].where(frame["x"] > 3))
    for other in (polars.from_arrow(arrow), arrow):
        assert (encoder(Table.of(other)) == expected).all()
    for name in ("t.parquet", "t.csv"):
        assert (encoder(read_table(tmp_path / name)) == expected).all()
        (piece,) = table_pieces(tmp_path / name).pieces(["when", "x"])
        assert (encoder(piece.table) == expected).all()
    assert (encoder(Table.of(missing))[4:] == expected[4:]).all()


# --- Excel ----------------------------------------------------------------------------------------


def book(path: Path, *sheets: list[Any]) -> Path:
    made = openpyxl.Workbook()
    made.remove(made.active)
    for i, rows in enumerate(sheets):
        sheet = made.create_sheet(f"sheet {i + 1}")
        for row in rows:
            sheet.append(row)
    made.save(path)
    return path


def test_excel(tmp_path: Path) -> None:
    rows = [
        [],
        ["x", "day", "c", "paid", "took", "share", None],
        [1, datetime.datetime(2024, 5, 1), "a", True, datetime.time(7, 30), "#N/A"],
        [],
        [2.5, datetime.datetime(2024, 5, 2, 7, 30), None, False, datetime.time(9), 0.5],
        ["3", datetime.date(2024, 5, 3), "b", None, None, 0.25],
    ]
    path = book(tmp_path / "t.xlsx", rows, [], [["other"], [1]])
    with pytest.warns(UserWarning, match=r"'sheet 1' is read.*others, too \('sheet 3'\): put the"):
        table = read_table(path)
    assert table["x"].values == [1.0, 2.5, 3.0]
    days = ["2024-05-01 00:00:00", "2024-05-02 07:30:00", "2024-05-03 00:00:00"]
    assert table["day"].values == days
    assert table["c"].values == ["a", None, "b"]
    assert table["paid"].values == ["True", "False", None]
    assert table["share"].missing == 1
    kinds = {name: role.kind for name, role in TableEncoder().fit(table).roles.items()}
    assert (kinds["day"], kinds["paid"], kinds["took"], kinds["share"]) == (
        *("date", "boolean", "date", "number"),
    )
    (piece,) = table_pieces(book(path, rows)).pieces(["x", "day"], ["c"])
    assert piece.table["day"].values == days
    assert piece.copied == {"c": ["a", None, "b"]}


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "is empty"),
        ([["x", "y"]], "has a header but no rows"),
        ([["x", None, "y"], [1, 2, 3]], "column 2 has no name in row 1"),
        ([["x"], [1, 2]], "row 2 has values beyond the 1 named columns"),
        ([["x", "x"], [1, 2]], "duplicate column names: 'x'"),
    ],
)
def test_bad_excel(tmp_path: Path, rows: list[Any], message: str) -> None:
    with pytest.raises(TableError, match=message):
        read_table(book(tmp_path / "t.xlsx", rows))


def test_excel_that_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = book(tmp_path / "t.xlsx", [["x"], [1]])
    whole = path.read_bytes()
    path.write_bytes(b"x,y\n1,2\n")
    with pytest.raises(TableError, match="is not a whole Excel file: File is not a zip file"):
        read_table(path)
    path.write_bytes(bytes.fromhex("d0cf11e0a1b11ae1") + bytes(600))
    with pytest.raises(TableError, match="of the old kind, or with a password; save it as .xlsx"):
        read_table(path)
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(TableError, match="is not a whole Excel file"):
        read_table(path)
    path.write_bytes(whole)
    with zipfile.ZipFile(path) as packed:
        parts = {name: packed.read(name) for name in packed.namelist()}
    with zipfile.ZipFile(path, "w") as packed:
        for name, content in parts.items():
            packed.writestr(name, content[:-60] if "sheet1" in name else content)
    with pytest.raises(TableError, match="is not a whole Excel file"):
        read_table(path)
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("sheet.xml", "<x/>")
    with pytest.raises(TableError, match="is not a whole Excel file"):
        read_table(path)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("sheet.xml", b"0" * 120_000_000)
    with pytest.raises(TableError, match="becomes 120,000,000 bytes when it is unpacked"):
        read_table(path)
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(ImportError, match="pip install openpyxl"):
        read_table(path)


def test_pieces_of_a_file_have_its_codes(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("zip,x\n" + "90210,1\n" * 5 + "01234,2\n")
    pieces = table_pieces(tmp_path / "t.csv").pieces(["zip", "x"])
    tables = [piece.table for piece in pieces]
    assert [v for t in tables for v in t["zip"].values] == ["90210"] * 5 + ["01234"]


# --- files without a header -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "header"),
    [
        ("5.1,3.5,setosa", False),
        ("1,2,3", False),
        ("17,male,88", False),
        ("country,2019,2020", True),
        ("id,1,2,3", True),
        ("x,nan", True),
        ("a,b,c", True),
        ("a,1e3", False),
    ],
)
def test_headers(line: str, header: bool) -> None:
    table = Table.from_text(f"{line}\n{line}\n")
    assert len(table) == 2 - header
    assert (table.names == line.split(",")) == header


def test_imports_of_libraries_are_those_of_the_user() -> None:
    source = Path(chainrule.__file__).parent / "data" / "tabular" / "frames.py"
    assert "import pandas" not in source.read_text("utf-8")
    assert "import polars" not in source.read_text("utf-8")

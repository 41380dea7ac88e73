"""Tables of any size and any content: what is read does not depend on the pieces or the reader."""

from __future__ import annotations

import gzip
import math
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pyarrow.csv
import pytest
from data.hostile import CELLS, held, plainly, random_text

from chainrule import backend
from chainrule.backend.numpy_kernels import arrow_cells, cells
from chainrule.data import Column, Table, TableError, read_table, reading
from chainrule.data.reading import delimiter_of


@pytest.fixture(params=[*backend.available(), "pyarrow"], autouse=True)
def kernels(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every reader: the compiled one, Python's, and pyarrow for what it reads alike."""
    before = backend.current()
    if request.param == "pyarrow":
        monkeypatch.setattr(arrow_cells, "WORTH", 0)
    backend.use("numpy" if request.param == "pyarrow" else request.param)
    yield
    backend.use(before)


def outcome(read: Any, *args: Any) -> Any:
    try:
        found = read(*args)
    except TableError as error:
        return str(error)
    return held(found) if isinstance(found, Table) else found


# --- any content ----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_hostile_tables_in_any_pieces(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    r = random.Random(seed)
    good = 0
    for _ in range(150):
        monkeypatch.setattr(reading, "FIRST", r.choice([8, 20, 1 << 18]))
        monkeypatch.setattr(reading, "PIECE", r.choice([5, 30, 1 << 22]))
        text, delimiter = random_text(r)
        expected = outcome(plainly, text, delimiter or delimiter_of(text))
        found = outcome(Table.from_text, text, delimiter)
        if isinstance(expected, str):
            assert isinstance(found, str), text
            assert found.startswith(expected), text
        else:
            good += 1
            assert found == expected, text
    assert good > 50


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
def test_files_are_read_as_text_is(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    r, path = random.Random(7), tmp_path / name
    pack = gzip.compress if name.endswith(".gz") else bytes
    for i in range(60):
        monkeypatch.setattr(reading, "FIRST", r.choice([8, 1 << 18]))
        monkeypatch.setattr(reading, "PIECE", r.choice([5, 1 << 22]))
        text, _ = random_text(r)
        path.write_bytes(pack((b"\xef\xbb\xbf" if i % 2 else b"") + text.encode()))
        expected = outcome(Table.from_text, text)
        if isinstance(expected, str):
            expected = expected.replace("the table:", f"{path}:").replace("the table ", f"{path} ")
        assert outcome(read_table, path) == expected, text


def test_numbers_are_the_nearest() -> None:
    """As Python's float() reads them: halfway cases, long ones, the largest, the smallest."""
    r = random.Random(0)
    numbers = [repr(r.uniform(-1, 1) * 10.0 ** r.randint(-320, 308)) for _ in range(2000)]
    numbers += [
        f"{r.uniform(-1, 1) * 10.0 ** r.randint(-9, 9):.{r.randint(0, 25)}f}" for _ in numbers
    ]
    numbers += [str(r.getrandbits(r.randint(1, 200))) for _ in range(500)]
    halfway = [f"{(2**53 + 2 * k + 1) * 2**e}" for k in range(40) for e in range(10)]
    numbers += [*halfway, *[h[:-1] + "." + h[-1] + "e1" for h in halfway]]
    numbers += ["5e-324", "2.4703282292062328e-324", "1.7976931348623158e308", "1e309", "-1e-400"]
    found = Table.from_text("x\n" + "\n".join(numbers))["x"]
    assert [v.hex() for v in found.values] == [float(n).hex() for n in numbers]


def test_other_readers_read_the_same_numbers(tmp_path: Path) -> None:
    r, path = np.random.default_rng(0), tmp_path / "t.csv"
    frame = pandas.DataFrame(r.normal(size=(500, 6)) * 10.0 ** r.integers(-9, 9, 6))
    frame.columns = [f"c{i}" for i in range(6)]
    frame.iloc[3, 2] = math.nan
    frame.to_csv(path, index=False)
    found = read_table(path)
    theirs = pandas.read_csv(path)
    arrow = pyarrow.csv.read_csv(path)
    for column in found:
        np.testing.assert_array_equal(column.numbers.numpy(), theirs[column.name])
        np.testing.assert_array_equal(column.numbers.numpy(), arrow[column.name].to_numpy())


@pytest.mark.parametrize("last", [True, False])
def test_blocks_of_rows_are_joined_without_a_seam(
    last: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cells, "read_by_arrow", lambda *_: None)
    lines = ["1,a", '"2.5",b', "", "x,a", ",c", 'nan,"q\nr"', "3,b", "y, a"]
    text = "\n".join(lines) + '\n4,"open'

    def read(most: int) -> Any:
        monkeypatch.setattr(cells, "BLOCK", most)
        return cells.read_cells(text, ",", "nt", False, last)

    (numbers, words), rows, rest, wrong = read(10**6)
    assert (rows, wrong) == (8 if last else 7, None)
    assert rest == ("" if last else '4,"open')
    for most in range(16):
        (ours, own), *others = read(most)
        assert others == [rows, rest, wrong]
        for a, b in zip((*ours, *own), (*numbers, *words), strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    ("text", "alike"),
    [
        ("1,a\n2.5,b\n\n,\n", True),
        ('"1",a b\r\n"2","x, y"\r\n', True),
        ("NA,a\ninf,b\n+1,c\n1e999,c\n", True),
        ("1, a\n", False),
        (" 1,a\n", False),
        ('1,"a""b"\n', False),
        ('1,"a\nb"\n', False),
        ('1,a"b\n', False),
        ("1,a\r2,b\n", False),
        ("1,a\n2\n", False),
        ("1," + "x" * 200_000, False),
    ],
)
def test_what_is_left_to_pyarrow(text: str, alike: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow_cells, "WORTH", 0)
    found = arrow_cells.read_by_arrow(text, ",", "nt", False, cells._numbers)
    assert (found is not None) == alike
    if found is not None:
        monkeypatch.setattr(arrow_cells, "WORTH", math.inf)
        ours, rows, _, _ = cells.read_cells(text, ",", "nt", False, True)
        assert found[1] == rows
        assert repr(found[0]) == repr(ours)


def test_pyarrow_is_not_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow_cells, "_csv_of_arrow", lambda: None)
    assert Table.from_text("a,b\n1,x\n")["a"].values == [1.0]


# --- any size -------------------------------------------------------------------------------------


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "FIRST", 200)
    monkeypatch.setattr(reading, "PIECE", 300)


@pytest.mark.usefixtures("small_pieces")
def test_text_far_behind_numbers() -> None:
    """The columns are read once more, as text; a mixed column says where the text is."""
    cells = [str(i) for i in range(400)]
    cells[350] = "abc"
    text = "x,y,z\n" + "".join(f"{c},{i % 7},w{i % 3}\n" for i, c in enumerate(cells))
    table = Table.from_text(text)
    assert [c.kind for c in table] == ["mixed", "number", "category"]
    assert table["x"].values == cells
    assert table["x"].note == "row 351 has 'abc', while 399 of 400 values are numbers"
    assert table["z"].words == ["w0", "w1", "w2"]


@pytest.mark.usefixtures("small_pieces")
def test_errors_far_behind() -> None:
    lines = ["a,b", *['1,"x\ny"'] * 300, "2", *["3,4"] * 100]
    with pytest.raises(TableError, match=r"row 301 has 1 value, the header has 2 \(line 602\)"):
        Table.from_text("\n".join(lines))
    lines[100:100] = ["", " "]
    with pytest.raises(TableError, match=r"row 301 has 1 value, the header has 2 \(line 604\)"):
        Table.from_text("\r\n".join(lines).replace("x\ny", "x\ry"))


def test_bytes_that_are_no_text_far_behind(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    content = b"\xef\xbb\xbfa,b\n" + b"1,\xc3\xa9\n" * 100_000
    path.write_bytes(content + b"1,\xe9\n")
    place = len(content) + 2
    with pytest.raises(TableError, match=rf"byte 0xe9 at position {place}\)"):
        read_table(path)
    path.write_bytes(content + b"1,\xc3")
    with pytest.raises(TableError, match=rf"byte 0xc3 at position {place}\)"):
        read_table(path)
    path.write_bytes(content + b"1,\0\n")
    with pytest.raises(TableError, match="is not a text file"):
        read_table(path)


def test_open_quote_in_a_large_file() -> None:
    with pytest.raises(TableError, match="field larger than field limit"):
        Table.from_text('a,b\n1,"x\n' + "2,3\n" * 100_000)
    assert Table.from_text('a,b\n1,"x\n2,3\n')["b"].values == ["x\n2,3"]


def test_many_columns_and_long_headers() -> None:
    names = [f"a long name of a column with the number {i}" for i in range(8000)]
    rows = [",".join([str(i * j % 10) for j in range(8000)]) for i in range(3)]
    table = Table.from_text("\n".join([",".join(names), *rows]))
    assert table.names == names
    assert table[names[7]].values == [0.0, 7.0, 4.0]


@pytest.mark.usefixtures("small_pieces")
def test_blank_lines_before_the_header() -> None:
    table = Table.from_text("\n" * 1000 + " \n" * 500 + "a,b\n1,2\n" + "\n" * 1000 + "3,4\n")
    assert table["a"].values == [1.0, 3.0]
    with pytest.raises(TableError, match="the table is empty"):
        Table.from_text("\n" * 2000)


def test_packed_files(tmp_path: Path) -> None:
    path = tmp_path / "t.tsv.gz"
    path.write_bytes(gzip.compress(b"a, b\tc\n1\tx\n"))
    assert read_table(path).names == ["a, b", "c"]
    for broken in (gzip.compress(b"a,b\n" + b"1,2\n" * 99)[:-9], b"a,b\n1,2\n"):
        path.write_bytes(broken)
        with pytest.raises(TableError, match=r"t.tsv.gz is not a whole gzip file"):
            read_table(path)


GROWTH = """
import re, sys
import pyarrow.csv, pyarrow.compute  # which Python's reader may import
from chainrule.data import read_table
def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1]) * 1024
read_table(sys.argv[1])
before = peak()
table = read_table(sys.argv[2])
print(len(table), peak() - before)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak is read from /proc")
def test_memory(tmp_path: Path) -> None:
    """At most twice the file for a table of numbers and words, and what the pieces take."""
    if not arrow_cells.WORTH:
        pytest.skip("large pieces are read by pyarrow with the kernels of NumPy, too")
    row = ",".join(["-1.234567"] * 16 + ["red", "2024-01-01"]) + "\n"
    header = ",".join(f"c{i}" for i in range(18)) + "\n"
    small, large = tmp_path / "small.csv", tmp_path / "large.csv"
    small.write_text(header + row * 100)
    large.write_text(header + row * 80_000)
    run = [sys.executable, "-c", GROWTH, str(small), str(large)]
    env = {**os.environ, "CHAINRULE_KERNELS": backend.current()}
    told = subprocess.run(run, capture_output=True, text=True, check=True, env=env)
    rows, growth = map(int, told.stdout.split())
    assert rows == 80_000
    pieces = 30 if backend.current() == "native" else 90  # of strings, or of pyarrow
    assert growth < 2 * large.stat().st_size + pieces * 2**20


# --- columns --------------------------------------------------------------------------------------


def test_columns_keep_each_word_once() -> None:
    column = Table.from_text("c\nred\n blue\nNA\nred \nblue\n")["c"]
    assert column.words == ["red", "blue"]
    assert column.codes.tolist() == [0, 1, -1, 0, 1]
    assert column.counts() == {"red": 2, "blue": 2}
    assert column.take([2, 4]).counts() == {"blue": 1}
    assert column == Column("c", "category", ["red", "blue", None, "red", "blue"])
    assert column != column.take([0])
    assert repr(column) == "Column('c', 'category', 5 values)"


def test_counts_of_numbers() -> None:
    column = Column("x", "number", [2.0, None, -1.0, 2.0])
    assert column.counts() == {-1.0: 1, 2.0: 2}
    assert column.missing == 1


def test_every_cell_alone() -> None:
    """One column that holds a cell three times: it is what the rules say."""
    for cell in CELLS:
        text = "name,other\n" + f"{cell},0\n" * 3
        assert outcome(Table.from_text, text, ",") == outcome(plainly, text, ","), cell

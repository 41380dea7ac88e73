"""``chainrule predict``: order, ids, formats, and files of any length."""

from __future__ import annotations

import csv
import io
import json
import re
import tracemalloc
from pathlib import Path

import numpy as np
import pandas
import pytest

from chainrule import data, train
from chainrule.cli import main
from chainrule.data import reading
from chainrule.data.tabular import pieces

ROWS = 3000


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two networks and a table of several pieces."""
    folder = tmp_path_factory.mktemp("predict")
    settings = train.Settings(epochs=2, hidden=(4,))
    frame = rows()
    frame.to_csv(folder / "new.csv", index=False)
    for target in ("kind", "price"):
        table = data.Table.from_frame(frame.head(200).drop(columns=["id"]))
        other = "price" if target == "kind" else "kind"
        network = train.fit_table(table.without(other), target, settings=settings, progress=False)
        network.save(folder / target)
    return folder


@pytest.fixture(autouse=True)
def small(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In that folder, with pieces of which there are many."""
    monkeypatch.chdir(place)
    monkeypatch.setattr(reading, "FIRST", 1 << 9)
    monkeypatch.setattr(reading, "PIECE", 1 << 11)
    monkeypatch.setattr(pieces, "ROWS", 256)


def rows() -> pandas.DataFrame:
    r = np.random.default_rng(0)
    size = r.normal(size=ROWS).round(3)
    return pandas.DataFrame(
        {
            "id": [f"{i:05d}" for i in range(ROWS)],
            "size": np.where(r.random(ROWS) < 0.05, np.nan, size),
            "town": r.choice(["01", "north", "old, town"], ROWS),
            "kind": np.where(size > 0, "big", "small"),
            "price": (3 * size + r.normal(size=ROWS) / 9).round(3),
        }
    )


def whole(model: str, path: str = "new.csv") -> list[object]:
    network = train.FittedNetwork.load(model)
    table = data.read_table(path)
    kept = [n for n in table.names if not network.unknown_columns(table.names).count(n)]
    return network.predict(data.Table([table[n] for n in kept]))


def read(path: str) -> pandas.DataFrame:
    kind = Path(path).suffix
    text = {"id": str}
    if kind == ".jsonl":
        lines = Path(path).read_text().splitlines()
        return pandas.DataFrame([json.loads(line) for line in lines])
    if kind == ".parquet":
        return pandas.read_parquet(path)
    return pandas.read_csv(path, sep="\t" if kind == ".tsv" else ",", dtype=text)


@pytest.mark.parametrize("out", ["a.csv", "a.tsv", "a.jsonl", "a.parquet"])
def test_formats(out: str, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["--id", "id", "town", "--probabilities", "--out", out]
    assert main(["predict", "kind", "new.csv", *asked]) == 0
    captured = capsys.readouterr()
    assert captured.out == f"{ROWS} predictions are in {out}\n"
    assert captured.err == (
        "chainrule predict: ignored, as the model does not know them: 'price'\n"
    )
    found = read(out)
    assert list(found) == ["id", "town", "kind", "p(big)", "p(small)"]
    assert found["id"].tolist() == rows()["id"].tolist()
    assert found["kind"].tolist() == whole("kind")
    np.testing.assert_allclose(found["p(big)"] + found["p(small)"], 1, atol=3e-6)


def test_pieces_answer_as_the_whole_does() -> None:
    """Also where a piece has numbers alone in a column of text, and the same in Parquet."""
    frame = rows()
    frame.loc[: ROWS - 3, "town"] = "01"
    frame.loc[ROWS - 2 :, "town"] = "old, town"
    frame.to_csv("late.csv", index=False)
    frame.to_parquet("late.parquet")
    expected = whole("price", "late.csv")
    for path in ("late.csv", "late.parquet"):
        assert main(["predict", "price", path, "--out", "p.jsonl"]) == 0
        found = read("p.jsonl")["price"].tolist()
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    source = pieces.table_pieces("late.csv").pieces(["size", "town"])
    parts = [piece.table for piece in source]
    assert len(parts) > 20
    table = data.read_table("late.csv")
    for name in ("size", "town"):
        joined = [v for part in parts for v in part[name].values]
        np.testing.assert_equal(joined, table[name].values)
        assert {part[name].kind == "number" for part in parts} == {name == "size"}


def test_printed_and_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", "price", "new.csv", "--id", "id"]) == 0
    printed = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [row["id"] for row in printed] == rows()["id"].tolist()
    np.testing.assert_allclose([float(r["price"]) for r in printed], whole("price"), rtol=1e-5)
    assert main(["predict", "kind", "new.csv", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told == {"rows": ROWS, "predictions": whole("kind"), "out": None}


def test_intervals() -> None:
    asked = ["--interval", "0.9", "--out", "i.jsonl"]
    assert main(["predict", "price", "new.csv", *asked]) == 0
    found = read("i.jsonl")
    assert list(found) == ["price", "low", "high"]
    assert (found["low"] < found["price"]).all()
    assert (found["price"] < found["high"]).all()


def test_intervals_of_several_targets() -> None:
    columns = {"x": [i / 7 for i in range(60)], "a": list(range(60)), "b": [-i for i in range(60)]}
    pandas.DataFrame(columns).to_csv("two.csv", index=False)
    quick = ["--epochs", "1", "--hidden", "2", "--quiet", "--out", "two"]
    assert main(["fit", "two.csv", "--target", "a,b", "--task", "regression", *quick]) == 0
    assert main(["predict", "two", "two.csv", "--interval", "0.8", "--out", "i.csv"]) == 0
    found = read("i.csv")
    assert list(found) == ["a", "b", "low(a)", "high(a)", "low(b)", "high(b)"]
    network = train.FittedNetwork.load("two")
    expected = network.predict_interval({"x": columns["x"]}, 0.8).numpy()
    for k, name in enumerate("ab"):
        for side, end in enumerate(("low", "high")):
            np.testing.assert_allclose(found[f"{end}({name})"], expected[:, k, side], rtol=1e-5)


def fails(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    before = sorted(Path().rglob("*"))
    assert main(["predict", *arguments]) == 2
    assert sorted(Path().rglob("*")) == before
    return capsys.readouterr().err.splitlines()[-1]


def test_mistakes(capsys: pytest.CaptureFixture[str]) -> None:
    assert "there is no column 'no'" in fails(capsys, "kind", "new.csv", "--id", "no")
    assert "that is the target" in fails(capsys, "kind", "new.csv", "--id", "kind")
    assert "predicts numbers" in fails(capsys, "price", "new.csv", "--probabilities")
    assert "predicts classes" in fails(capsys, "kind", "new.csv", "--interval", "0.9")
    assert "between 0 and 1" in fails(capsys, "price", "new.csv", "--interval", "90")
    assert ".parquet" in fails(capsys, "kind", "new.csv", "--out", "a.xlsx")
    frame = rows()
    frame["size"] = frame["size"].astype(object)
    frame.loc[ROWS - 5, "size"] = "wide"
    frame.to_csv("text.csv", index=False)
    frame.astype({"size": str}).to_parquet("text.parquet")
    for name in ("text.csv", "text.parquet"):
        line = fails(capsys, "price", name, "--out", "b.csv")
        assert f"'size' was numbers in training, now row {ROWS - 4} has 'wide'" in line
    Path("ragged.csv").write_text(Path("new.csv").read_text() + "1,2\n")
    assert f"row {ROWS + 1} has 2 values" in fails(capsys, "price", "ragged.csv", "--out", "b.csv")
    Path("half.parquet").write_bytes(Path("text.parquet").read_bytes()[:3000])
    assert "is not a whole Parquet file" in fails(capsys, "price", "half.parquet")


def test_errors_say_where_a_piece_begins(capsys: pytest.CaptureFixture[str]) -> None:
    days = [f"2024-01-{1 + i % 28:02d}" for i in range(600)]
    rows = {"day": days, "y": [float(i % 28) + i / 1000 for i in range(600)]}
    settings = train.Settings(epochs=1, hidden=(2,))
    table = data.Table.from_dict(rows)
    train.fit_table(table, "y", "regression", settings, progress=False).save("dated")
    pandas.DataFrame({"day": [*days, "soon"]}).to_csv("days.csv", index=False)
    line = fails(capsys, "dated", "days.csv", "--out", "b.csv")
    found = re.search(r"row (\d+) has 'soon'.*counted from row (\d+) of the file", line)
    assert found is not None, line
    assert int(found[1]) + int(found[2]) - 1 == 601


def test_memory_does_not_grow_with_the_file() -> None:
    """Ten times as many rows, and the same room for them."""
    network = train.FittedNetwork.load("price")
    peaks, answered = [], 0
    for times in (4, 40):
        with Path("long.csv").open("w") as file:
            file.write("id,size,town\n")
            for i in range(times):
                file.writelines([f"{i}-{j},{j / 7:.4f},north\n" for j in range(1000)])
        source = pieces.table_pieces("long.csv")
        tracemalloc.start()
        for piece in source.pieces(["size", "town"], ["id"]):
            answered += len(network.predict(piece.table))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert answered == 44_000
    assert peaks[1] < Path("long.csv").stat().st_size / 3
    assert peaks[1] < 3 * peaks[0]

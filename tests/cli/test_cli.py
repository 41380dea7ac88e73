"""The command line as a user types it: results, files, and one clear line for each mistake."""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas
import polars
import pytest
from PIL import Image

import chainrule
from chainrule import data, train
from chainrule.cli import main

QUICK = ["--epochs", "8", "--hidden", "16", "--quiet"]


@pytest.fixture(autouse=True)
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str) -> int:
    return main(list(arguments))


def fails(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line that a mistake gives; nothing may have been written."""
    before = sorted(Path().rglob("*"))
    assert run(*arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    lines = captured.err.strip().splitlines()
    assert len(lines) == 1, captured.err
    assert "Traceback" not in lines[0]
    assert sorted(Path().rglob("*")) == before
    return lines[0]


def houses(rows: int = 60) -> pandas.DataFrame:
    r = np.random.default_rng(0)
    area, rooms = r.uniform(30, 200, rows).round(1), r.integers(1, 6, rows)
    town = r.choice(["north", "south, old", "west"], rows)
    price = (2000 * area + 9000 * rooms + 30000 * (town == "north")).round(0)
    return pandas.DataFrame({"area": area, "rooms": rooms, "town": town, "price": price})


# --- the way it is meant --------------------------------------------------------------------------


def test_fit_predict_evaluate(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("fit", "iris", "--quiet", "--out", "model") == 0
    out = capsys.readouterr().out
    assert "classification of 'species' (3 classes)" in out
    for word in ("network", "majority class", "linear model", "report.html"):
        assert word in out
    names = {re.sub(r"-\w{12}", "", p.name) for p in Path("model").iterdir()}
    assert names == {"model.json", "weights.safetensors", "history.csv", "report.html"}
    assert run("evaluate", "model", "iris") == 0
    assert "accuracy" in capsys.readouterr().out
    assert run("predict", "model", "iris", "--probabilities", "--out", "p.csv") == 0
    with Path("p.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 150
    assert set(rows[0]) == {"species", "p(setosa)", "p(versicolor)", "p(virginica)"}
    assert sum(float(rows[0][k]) for k in rows[0] if k != "species") == pytest.approx(1, abs=1e-5)
    truth = data.embedded("iris").table["species"].values
    right = np.mean([row["species"] == t for row, t in zip(rows, truth, strict=True)])
    assert right > 0.9


@pytest.mark.parametrize("kind", ["csv", "tsv", "parquet"])
def test_tables_of_each_kind(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    frame = houses()
    if kind == "parquet":
        polars.from_pandas(frame).write_parquet("houses.parquet")
    else:
        frame.to_csv(f"houses.{kind}", index=False, sep="," if kind == "csv" else "\t")
    assert run("fit", f"houses.{kind}", *QUICK, "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["task"] == "regression"
    assert told["target"] == "price"
    assert told["features"] == ["area", "rooms", "town=north", "town=south, old", "town=west"]
    assert told["out"] == "chainrule-houses"
    assert told["baselines"]["linear model"]["r2"] > 0.99
    houses().drop(columns="price").head(3).to_csv("new.csv", index=False)
    assert run("predict", "chainrule-houses", "new.csv", "--json") == 0
    assert len(json.loads(capsys.readouterr().out)["predictions"]) == 3


def test_the_same_seed_gives_the_same_model() -> None:
    for name in ("a", "b"):
        assert run("fit", "iris", *QUICK, "--seed", "3", "--out", name) == 0
    a, b = (json.loads(Path(n, "model.json").read_text())["weights"] for n in ("a", "b"))
    assert a == b  # named after their content
    assert run("fit", "iris", *QUICK, "--seed", "4", "--out", "c") == 0
    assert json.loads(Path("c", "model.json").read_text())["weights"] != a


def test_options_reach_the_network(capsys: pytest.CaptureFixture[str]) -> None:
    options = [
        "--hidden",
        "5,4",
        "--activation",
        "tanh",
        "--dropout",
        "0.25",
        "--norm",
        "batch",
        "--optimizer",
        "sgd",
        "--lr",
        "0.2",
        "--weight-decay",
        "0.01",
        "--batch-size",
        "50",
        "--patience",
        "3",
        "--class-weight",
        "balanced",
        "--test-size",
        "0.3",
        "--validation-size",
        "0.2",
        "--epochs",
        "4",
    ]
    assert run("fit", "wine", *options, "--json", "--out", "m") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["split"] == {"train": 88, "validation": 36, "test": 54}
    net = train.FittedNetwork.load("m")
    text = str(net.model)
    for part in (
        "Linear(in_features=13, out_features=5",
        "Tanh",
        "Dropout(p=0.25",
        "BatchNorm1d(4",
    ):
        assert part in text
    assert told["settings"]["lr"] == 0.2
    assert len(net.history) <= 4
    assert net.history[0]["lr"] == 0.2


def test_a_doctor_is_asked(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("fit", "wine", *QUICK, "--doctor") == 0
    said = capsys.readouterr().out
    assert "preflight: 6 of 6 lines pass" in said
    assert "doctor: nothing found" in said
    assert run("fit", "wine", *QUICK, "--doctor", "--lr", "5", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert "rate too high" in [f["rule"] for f in told["findings"]]
    assert len(told["preflight"]) == 6


def test_columns_can_be_dropped_and_taken_as_categories(capsys: pytest.CaptureFixture[str]) -> None:
    houses().to_csv("h.csv", index=False)
    arguments = ["--drop", "area", "--categorical", "rooms", "--target", "town"]
    assert run("fit", "h.csv", *arguments, *QUICK, "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["task"] == "classification"
    assert told["features"] == ["rooms=1", "rooms=2", "rooms=3", "rooms=4", "rooms=5", "price"]
    assert run("predict", "chainrule-h", "h.csv", "--json") == 0  # with the dropped column in it


def test_no_hidden_layer_is_a_linear_model(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("fit", "iris", "--hidden", "", "--epochs", "2", "--json") == 0
    assert json.loads(capsys.readouterr().out)["parameters"] == 4 * 3 + 3


def test_cross_validation(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("cv", "iris", "--folds", "3", "--epochs", "30", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert [row["size"] for row in told["folds"]] == [50, 50, 50]
    assert told["mean"]["accuracy"] == pytest.approx(
        np.mean([row["accuracy"] for row in told["folds"]])
    )
    assert told["std"]["accuracy"] == pytest.approx(
        np.std([row["accuracy"] for row in told["folds"]], ddof=1)
    )
    assert not list(Path().iterdir())  # nothing is written


def images(count: int = 24, size: tuple[int, int] = (12, 12)) -> None:
    r = np.random.default_rng(0)
    for name, row in (("high", 0), ("low", 6)):
        Path("pictures", name).mkdir(parents=True)
        for i in range(count):
            picture = r.integers(0, 60, (*size, 3)).astype("u1")
            picture[row : row + 6] += 150
            suffix = ("png", "jpg", "tif")[i % 3]
            Image.fromarray(picture).save(Path("pictures", name, f"{i}.{suffix}"))


def test_a_folder_of_images(capsys: pytest.CaptureFixture[str]) -> None:
    images()
    assert run("fit", "pictures", "--epochs", "8", "--hidden", "8", "--json", "--out", "m") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["classes"] == ["high", "low"]
    assert told["scores"]["accuracy"] > 0.9
    assert run("evaluate", "m", "pictures", "--json") == 0
    assert json.loads(capsys.readouterr().out)["scores"]["accuracy"] > 0.9
    assert run("predict", "m", "pictures", "--probabilities") == 0
    assert capsys.readouterr().out.startswith("image,class,p(high),p(low)\n")
    assert run("predict", "m", "pictures/high/0.png") == 0
    assert capsys.readouterr().out == f"image,class\n{Path('pictures/high/0.png')},high\n"
    Path("pictures", "low", "__MACOSX").mkdir()
    for litter in ("._0.png", "__MACOSX/0.png"):  # no images, whatever they are called
        Path("pictures", "low", litter).write_text("x")
    assert run("predict", "m", "pictures/low", "--json") == 0
    assert set(json.loads(capsys.readouterr().out)["predictions"]) == {"low"}


def test_the_report_stands_alone() -> None:
    assert run("fit", "breast_cancer", *QUICK, "--out", "m") == 0
    page = Path("m", "report.html").read_text()
    assert (
        page.count("<svg") == 14
    )  # confusion, 2 thresholds, 2 calibration, 5 columns, 3 curves, 1
    for part in (
        "Confusion matrix",
        "Gradient norm of each layer",
        "linear model",
        "mean_radius",
        "chainrule fit breast_cancer",
        "train.fit_table",
    ):
        assert part in page
    outside = r"(?:src|href)\s*=(?!\"(?:#|data:))|url\((?!#)|https?://(?!www\.w3\.org/2000/svg)"
    assert re.findall(outside, page) == []


def test_datasets_and_info(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("datasets") == 0
    assert "iris" in capsys.readouterr().out
    assert run("info", "--json") == 0
    assert json.loads(capsys.readouterr().out)["kernels"].startswith(("numpy", "native"))


def test_help_shows_examples() -> None:
    command = [sys.executable, "-m", "chainrule", "fit", "--help"]
    environment = {**os.environ, "PYTHONPATH": str(Path(chainrule.__file__).parents[1])}
    text = subprocess.run(command, capture_output=True, text=True, env=environment).stdout
    assert "chainrule fit houses.csv --target price" in text
    assert "--hidden" in text


# --- mistakes -------------------------------------------------------------------------------------


def write(name: str, text: str | bytes) -> str:
    path = Path(name)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return name


NUMBERS = "\n".join(f"{i},{i % 7},{2 * i}" for i in range(40))


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        (None, [], "there is no file 'data.csv'"),
        ("", [], "is empty"),
        ("  \n \n", [], "is empty"),
        ("a,b,c\n", [], "has a header but no rows"),
        ("a,b,c\n1,2,3\n", [], "has 1 row; at least 10"),
        (f"a,b,c\n{NUMBERS}", ["--target", "price"], "no column 'price'; the columns are 'a', 'b'"),
        (f"a,b,c\n{NUMBERS}", ["--drop", "d"], "no column 'd'"),
        (f"a,b,c\n{NUMBERS}", ["--drop", "c"], "there is no column 'c'|that is the target"),
        (f"a,b,c\n{NUMBERS}", ["--categorical", "x"], "no column 'x'"),
        ("a,b\n" + "\n".join(f"{i},5" for i in range(30)), [], "'b' is constant"),
        ("a,b\n" + "\n".join(f",{i}" for i in range(30)), [], "a: all values are missing"),
        (
            "a,b,c\n" + "\n".join(f"{i},,{i}" for i in range(30)),
            ["--target", "b"],
            "target 'b' is missing in all 30 rows",
        ),
        (
            "a,b\n" + "\n".join(f"{'x' if i == 7 else i},{i}" for i in range(30)),
            [],
            "column 'a' mixes numbers and text: row 8 has 'x'",
        ),
        (f"a,a,c\n{NUMBERS}", [], "duplicate column names: 'a'"),
        (f"a,,c\n{NUMBERS}", [], "column 2 has no name"),
        ("a,b,c\n1,2,3\n4,5\n", [], "row 2 has 2 values, the header has 3"),
        (b"a,b\n1,2\n" + b"\xff\xfe3,4\n", [], "is not UTF-8 text"),
        (b"PK\x03\x04\0\0\0\0", [], "is not a text file|is not UTF-8"),
        (
            "a,b\n" + "\n".join(f"{'inf' if i == 2 else i},{i}" for i in range(30)),
            [],
            "column 'a' has infinite values",
        ),
        (
            "a,b\n" + "\n".join(f"{i},{'inf' if i == 2 else i}" for i in range(30)),
            [],
            "target 'b' has infinite values",
        ),
        (
            "a,b\n" + "\n".join(f"{i},k{i}" for i in range(30)),
            [],
            "has 30 classes in 30 rows, of which 30 have fewer than 3",
        ),
        (
            "a,b\n" + "\n".join(f"{i},{'rare' if i == 0 else 'xy'[i % 2]}" for i in range(30)),
            [],
            r"fewer than 3 members: 'rare' \(1\)",
        ),
        (
            "a,b\n" + "\n".join(f"{i},{'xy'[i % 2]}" for i in range(30)),
            ["--task", "regression"],
            "is text, which cannot be predicted as a number",
        ),
        (f"a,b,c\n{NUMBERS}", ["--hidden", "a,b"], "hidden sizes are positive whole numbers"),
        (f"a,b,c\n{NUMBERS}", ["--epochs", "0"], "epochs must be at least 1, got 0"),
        (f"a,b,c\n{NUMBERS}", ["--hidden", "1000000000,9"], "have 1.0e.10 weights; at most"),
        (f"a,b,c\n{NUMBERS}", ["--optimizer", "adamm"], "unknown optimizer 'adamm'"),
        (f"a,b,c\n{NUMBERS}", ["--activation", "rellu"], "'rellu' is not the name of an act"),
        (f"a,b,c\n{NUMBERS}", ["--lr", "-1"], "lr"),
        (f"a,b,c\n{NUMBERS}", ["--test-size", "1.5"], "test_size"),
        (f"a,b,c\n{NUMBERS}", ["--dropout", "2"], "dropout"),
    ],
)
def test_bad_tables(
    capsys: pytest.CaptureFixture[str],
    content: str | bytes | None,
    options: list[str],
    message: str,
) -> None:
    if content is not None:
        write("data.csv", content)
    line = fails(capsys, "fit", "data.csv", "--epochs", "2", "--out", "m", *options)
    assert re.search(message, line), line


def test_bad_parquet(capsys: pytest.CaptureFixture[str]) -> None:
    write("x.parquet", b"PAR1 not really")
    assert "is not a whole Parquet file" in fails(capsys, "fit", "x.parquet")


def test_bad_places_to_write(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    write("taken", "")
    assert "that is a file" in fails(capsys, "fit", "iris", *QUICK, "--out", "taken")
    assert "is a file, not a folder" in fails(capsys, "fit", "iris", *QUICK, "--out", "taken/x")
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    if os.geteuid() != 0:  # everything is writable for root
        assert "no permission" in fails(capsys, "fit", "iris", *QUICK, "--out", "closed/x")


def test_bad_models(capsys: pytest.CaptureFixture[str]) -> None:
    assert "there is no model 'gone'" in fails(capsys, "predict", "gone", "iris")
    Path("empty").mkdir()
    assert "no file" in fails(capsys, "predict", "empty", "iris")
    chainrule.save({"a": 1}, "other", folder=True)
    assert "does not hold a network" in fails(capsys, "predict", "other", "iris")
    assert run("fit", "iris", *QUICK, "--out", "m") == 0
    capsys.readouterr()
    told = json.loads(Path("m/model.json").read_text())
    Path("m/model.json").write_text(json.dumps({**told, "format": 7}))
    assert "format 7" in fails(capsys, "predict", "m", "iris")
    Path("m/model.json").write_text("{")
    assert "damaged" in fails(capsys, "predict", "m", "iris")


def test_bad_data_at_prediction(capsys: pytest.CaptureFixture[str]) -> None:
    houses().to_csv("h.csv", index=False)
    assert run("fit", "h.csv", *QUICK, "--out", "m") == 0
    capsys.readouterr()
    frame = houses().head(5)
    frame.drop(columns="rooms").to_csv("few.csv", index=False)
    assert "are missing: 'rooms'" in fails(capsys, "predict", "m", "few.csv")
    frame.assign(area="big").to_csv("text.csv", index=False)
    line = fails(capsys, "predict", "m", "text.csv")
    assert "'area' was numbers in training, now row 1 has 'big'" in line
    frame.drop(columns="price").to_csv("blind.csv", index=False)
    assert "has no column 'price'" in fails(capsys, "evaluate", "m", "blind.csv")


def test_bad_images(capsys: pytest.CaptureFixture[str]) -> None:
    Path("nothing").mkdir()
    assert "has no subfolders with images" in fails(capsys, "fit", "nothing")
    images()
    Image.new("RGB", (9, 9)).save("pictures/high/odd.png")
    assert run("fit", "pictures", "--epochs", "1", "--json", "--out", "m") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["features"] == ["3 x 12 x 12 pixels"]  # the median
    assert not told["augment"]
    write("pictures/high/odd.png", b"\x89PNG broken")
    assert "odd.png" in fails(capsys, "fit", "pictures", "--size", "12")
    assert "expected HEIGHT,WIDTH" in fails(capsys, "fit", "pictures", "--size", "a")
    assert "cross-validation is for tables" in fails(capsys, "cv", "pictures")


@pytest.mark.parametrize(
    ("option", "data", "reason"),
    [
        (["--target", "class"], "pictures", "--target is for tables, and pictures is a folder"),
        (["--task", "regression"], "pictures", "--task is for tables"),
        (["--drop", "a"], "pictures", "--drop is for tables"),
        (["--categorical", "a", "b"], "pictures", "--categorical is for tables"),
        (["--size", "8"], "iris", "--size is for a folder of images, and iris is a table"),
        (["--channels", "3"], "iris", "--channels is for a folder of images"),
        (["--augment"], "iris", "--augment is for a folder of images"),
        (["--no-augment"], "iris", "--augment is for a folder of images"),
    ],
)
def test_options_that_data_has_no_use_for(
    option: list[str], data: str, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    images(3)
    assert reason in fails(capsys, "fit", data, *option)


def test_an_embedded_table_is_meant_unless_a_folder_has_subfolders(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run("fit", "iris", *QUICK, "--out", "iris") == 0
    assert run("fit", "iris", *QUICK, "--json", "--out", "iris") == 0
    Path("iris", "some").mkdir()
    capsys.readouterr()
    assert "has no subfolders with images" in fails(capsys, "fit", "iris")


def test_debug_shows_the_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("fit", "gone.csv", "--debug") == 2
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.skipif(os.name == "nt", reason="devices of POSIX")
def test_a_device_is_no_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert "/dev/zero is a device or a pipe" in fails(capsys, "fit", "/dev/zero")
    assert "/dev/zero is not a file" in fails(capsys, "predict", "/dev/zero", "iris")


def test_the_command_starts_without_what_it_may_not_need() -> None:
    """Its help and its errors come at once: layers, data and training are imported when used."""
    code = "import sys, chainrule.cli; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"chainrule.nn", "chainrule.data", "chainrule.train"} & set(done.stdout.split())

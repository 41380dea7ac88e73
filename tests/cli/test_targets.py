"""Targets, weights, groups and times on the command line; mistakes are one line, and no files."""

from __future__ import annotations

import csv
import json
import os
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest

from chainrule import train
from chainrule.cli import main
from chainrule.train.report import python_code
from cli.test_cli import fails

N = 120
QUICK = ["--epochs", "8", "--hidden", "8", "--lr", "0.02", "--quiet"]


@pytest.fixture(autouse=True)
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    r = np.random.default_rng(0)
    a, b = r.normal(size=(2, N))
    frame = pandas.DataFrame(
        {
            "a": a,
            "b": b,
            "who": r.integers(0, 20, N),
            "day": [f"2024-{1 + i // 10:02d}-{1 + i % 10:02d}" for i in range(N)],
            "w": r.uniform(0.5, 2, N),
            "y": 3 * a + b,
            "z": 10 - b,
            "tags": np.where(
                a > 0, np.where(b > 0, "hot;wet", "hot"), np.where(b > 0, "wet", "dry")
            ),
            "hits": r.poisson(np.exp(1 + a)),
            "stars": np.digitize(a + b / 2, [-1, 0, 1]) + 1,
        }
    )
    frame.to_csv("rows.csv", index=False)
    return tmp_path


OTHERS = {"y", "z", "tags", "hits", "stars"}


def fitted(capsys: pytest.CaptureFixture[str], *options: str, target: str) -> dict[str, Any]:
    dropped = sorted(OTHERS - set(target.split(",")))
    given = ["fit", "rows.csv", "--target", target, "--drop", *dropped, *QUICK, "--out", "m"]
    assert main([*given, *options, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("target", "options", "task", "columns"),
    [
        ("y,z", [], "regression", ["y", "z"]),
        ("tags", [], "multilabel", ["tags"]),
        ("hits", ["--task", "count"], "count", ["hits"]),
        ("y", ["--quantiles", "0.2,0.8"], "quantile", ["y 0.2", "y 0.8"]),
        ("stars", ["--task", "ordinal"], "ordinal", ["stars"]),
        ("y", ["--weight", "w"], "regression", ["y"]),
        ("y", ["--group", "who"], "regression", ["y"]),
        ("y", ["--time", "day"], "regression", ["y"]),
    ],
)
def test_fit_predict_evaluate(
    target: str,
    options: list[str],
    task: str,
    columns: list[str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    told = fitted(capsys, *options, target=target)
    assert told["task"] == task
    assert set(told["intervals"]) == set(told["scores"])
    assert main(["predict", "m", "rows.csv", "--out", "p.csv"]) == 0
    with Path("p.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == N
    assert list(rows[0]) == columns
    assert main(["evaluate", "m", "rows.csv"]) == 0
    out = capsys.readouterr().out
    assert f"{N} rows of rows.csv (95 % interval):" in out
    assert " to " in out.splitlines()[-1]
    assert main(["inspect", "m"]) == 0


def test_probabilities_of_labels_and_ranks(capsys: pytest.CaptureFixture[str]) -> None:
    fitted(capsys, target="tags")
    assert main(["predict", "m", "rows.csv", "--probabilities"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "tags,p(dry),p(hot),p(wet)"
    fitted(capsys, "--task", "ordinal", target="stars")
    assert main(["predict", "m", "rows.csv", "--probabilities"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "stars,p(1),p(2),p(3),p(4)"
    assert sum(map(float, lines[1].split(",")[1:])) == pytest.approx(1, abs=1e-5)


def test_cross_validation(capsys: pytest.CaptureFixture[str]) -> None:
    given = ["cv", "rows.csv", "--drop", *sorted(OTHERS - {"y"}), "--target", "y", "--folds", "2"]
    for options in (["--group", "who"], ["--time", "day"], ["--weight", "w"]):
        assert main([*given, *options, "--epochs", "2", "--hidden", "4", "--json"]) == 0
        assert "r2" in json.loads(capsys.readouterr().out)["mean"]


def test_warnings_and_missing_targets_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    frame = pandas.read_csv("rows.csv")[["a", "b", "y"]]
    frame["price"] = 2 * frame["y"]
    frame.loc[[3, 4], "y"] = None
    frame.to_csv("leak.csv", index=False)
    assert main(["fit", "leak.csv", "--target", "y", *QUICK, "--out", "m"]) == 0
    captured = capsys.readouterr()
    assert "note: left out, as the target is missing there: 2 of 120 rows" in captured.out
    assert "    from (95 %)  " in captured.out
    warning = "column 'price' alone predicts 'y' nearly perfectly"
    assert f"warning: {warning}" in captured.out
    assert captured.err == ""
    assert main(["evaluate", "m", "leak.csv", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["rows"], told["left_out"]) == (118, 2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--target", "y,tags"], "but 'tags' holds text; train a network for each target"),
        (["--target", "y,nope"], "there is no column 'nope'"),
        (["--target", "y", "--weight", "y"], "column 'y' is named twice"),
        (["--target", "y", "--weight", "tags"], "the weights of the rows, holds text"),
        (["--target", "y", "--time", "tags"], "are neither numbers nor dates in one form"),
        (["--target", "y", "--group", "who", "--time", "day"], "choose one"),
        (["--target", "y", "--task", "count"], "'y' is not a count"),
        (["--target", "tags", "--task", "ordinal"], "whose order is not known"),
        (["--target", "stars", "--levels", "1,2"], "has values that are no levels: '3', '4'"),
        (["--target", "y", "--quantiles", "0.9,x"], "expected numbers between 0 and 1 like"),
        (["--target", "y", "--quantiles", "0.9,0.1"], "from the lowest to the highest"),
        (["--target", "y", "--quantiles", "0.5", "--task", "count"], "are for the task 'quantile'"),
        (["--target", "y", "--epochs", "0"], "epochs must be at least 1, got 0"),
        (["--target", "y", "--lr", "0"], "lr must be a positive number, got 0.0"),
        (["--target", " "], "--target: name a column, or leave it out for the last one"),
        (["--target", "y", "--task", "ordinal"], "120 different values, too many for ranks"),
        (["--target", "y", "--class-weight", "balanced"], "but the task is regression; leave it"),
        (["--target", "y", "--ordinal", "tags"], "by --ordinal tags=dry,hot,hot;wet or roles="),
        (["--target", "y", "--optimizer", "levenbergmarquardt"], "works with residuals, not with"),
        (["--target", "y", "--optimizer", "gauss-newton"], "works with residuals, not with"),
    ],
)
def test_mistakes(options: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["fit", "rows.csv", "--epochs", "2", "--quiet", "--out", "m", *options]
    assert message in fails(capsys, *given)


def test_a_word_for_a_number_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["fit", "rows.csv", "--epochs", "many"])
    assert caught.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "argument --epochs: invalid int value: 'many' (see chainrule fit --help)" in line


def test_lbfgs_sees_all_rows_at_each_step(capsys: pytest.CaptureFixture[str]) -> None:
    told = fitted(capsys, "--optimizer", "lbfgs", "--lr", "1", "--epochs", "15", target="y")
    assert told["scores"]["r2"] > 0.9


def test_weights_at_evaluate(capsys: pytest.CaptureFixture[str]) -> None:
    fitted(capsys, target="y")
    frame = pandas.read_csv("rows.csv")
    frame["y"] += np.where(np.arange(N) % 2, 0, 50)
    frame["w"] = np.arange(N) % 2  # believes only what was not changed
    frame.to_csv("rows.csv", index=False)

    def r2(*options: str) -> float:
        assert main(["evaluate", "m", "rows.csv", "--json", *options]) == 0
        return json.loads(capsys.readouterr().out)["scores"]["r2"]

    assert r2("--weight", "w") > 0.5 > 0 > r2()
    for name, message in {
        "tags": "the weights of the rows, holds text",
        "a": "weights are finite and not negative",
        "nope": "there is no column 'nope'",
    }.items():
        assert message in fails(capsys, "evaluate", "m", "rows.csv", "--weight", name)


def test_money_is_predicted_in_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    frame = pandas.read_csv("rows.csv")[["a", "b", "day"]]
    price = 2000 + 400 * frame["a"]
    frame["day"] = pandas.to_datetime(frame["day"]).dt.strftime("%d.%m.%Y")
    frame["price"] = [f"${p:,.2f}" if p > 1000 else f"{p:.0f}" for p in price]
    frame.to_csv("prices.csv", index=False)
    assert main(["fit", "prices.csv", "--time", "day", *QUICK, "--out", "m"]) == 0
    first = frame["price"][0]
    number = first.strip("$").replace(",", "").removesuffix(".00")
    assert f"'price' is read as numbers: {first!r} is {float(number):.15g}" in (
        capsys.readouterr().out
    )
    assert main(["predict", "m", "prices.csv", "--json"]) == 0
    answers = json.loads(capsys.readouterr().out)["predictions"]
    assert np.corrcoef(answers, price)[0, 1] > 0.9
    assert main(["evaluate", "m", "prices.csv", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["scores"]["r2"] > 0.5


def test_excel(capsys: pytest.CaptureFixture[str]) -> None:
    frame = pandas.read_csv("rows.csv", parse_dates=["day"])[["a", "b", "day", "y"]]
    with pandas.ExcelWriter("rows.xlsx") as book:
        frame.to_excel(book, sheet_name="data", index=False)
        frame.to_excel(book, sheet_name="more", index=False)
    assert main(["fit", "rows.xlsx", *QUICK, "--out", "m"]) == 0
    said = "chainrule fit: rows.xlsx: the sheet 'data' is read, the first one; there are others"
    assert said in capsys.readouterr().err
    assert main(["predict", "m", "rows.xlsx", "--id", "day", "--out", "p.csv"]) == 0
    assert Path("p.csv").read_text().splitlines()[1].startswith("2024-01-01 00:00:00,")
    capsys.readouterr()
    Path("rows.xlsx").write_bytes(b"PK")
    assert "is not a whole Excel file" in fails(capsys, "predict", "m", "rows.xlsx")


def test_another_table_at_predict(capsys: pytest.CaptureFixture[str]) -> None:
    fitted(capsys, target="y")
    line = fails(capsys, "predict", "m", "wine", "--out", "p.csv")
    assert "columns that the model needs are missing: 'a', 'b'" in line
    assert "has no column 'y', the target of the model" in fails(capsys, "evaluate", "m", "wine")


@pytest.mark.skipif(os.name == "nt", reason="permissions of POSIX")
@pytest.mark.parametrize("mask", [0o022, 0o027])
def test_files_have_the_permissions_that_the_user_gives(
    mask: int, capsys: pytest.CaptureFixture[str]
) -> None:
    before = os.umask(mask)
    try:
        fitted(capsys, target="y")
        assert main(["predict", "m", "rows.csv", "--out", "p.csv"]) == 0
    finally:
        os.umask(before)
    for path in [*Path("m").rglob("*"), Path("p.csv")]:
        assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~mask, path
    assert stat.S_IMODE(Path("m").stat().st_mode) == 0o777 & ~mask


def test_the_program_of_the_report_repeats_the_run(capsys: pytest.CaptureFixture[str]) -> None:
    fitted(capsys, "--task", "ordinal", "--group", "who", "--weight", "w", target="stars")
    network = train.FittedNetwork.load("m")
    program = python_code(network)
    assert "group='who'" in program
    found: dict[str, Any] = {}
    exec(program.replace('network.save("model")', ""), found)
    assert found["network"].about["scores"] == network.about["scores"]

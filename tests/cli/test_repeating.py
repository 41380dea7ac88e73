"""The programs and commands in a report are run: they give the same network, bit for bit."""

from __future__ import annotations

import csv
import html
import random
import re
import shlex
from pathlib import Path

import pytest

import chainrule
from chainrule import data, train
from chainrule.cli import main


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write_table() -> None:
    """Numbers, words and gaps, and targets of several kinds."""
    draw = random.Random(0)
    with Path("table.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(
            ["size", "color", "code", "price", "kind", "visits", "weight", "day", "tags"]
        )
        for i in range(120):
            size, color, code = draw.gauss(0, 1), draw.choice(["red", "blue"]), draw.randrange(4)
            price = 100 + 20 * size + 5 * (color == "red") + draw.gauss(0, 1)
            kind = "large" if size + draw.gauss(0, 0.3) > 0 else "small"
            shown = "" if draw.random() < 0.1 else f"{size:.4f}"
            visits = int(max(0.0, 2 + size + draw.gauss(0, 1)))
            weight = f"{draw.uniform(0.5, 2):.3f}"
            day = f"2024-{1 + i % 12:02d}-{1 + i % 28:02d}"
            tags = ";".join([color, *(["big"] if size > 0 else [])])
            writer.writerow([shown, color, code, f"{price:.2f}", kind, visits, weight, day, tags])


def write_labels() -> None:
    draw = random.Random(1)
    with Path("labels.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["x", "hot", "wet"])
        for _ in range(80):
            x = draw.gauss(0, 1)
            writer.writerow([f"{x:.4f}", int(x > 0), int(draw.random() < 0.4)])


def write_images() -> None:
    g = chainrule.Generator().manual_seed(0)
    for name, low in (("dark", 0.0), ("light", 0.6)):
        Path("pictures", name).mkdir(parents=True)
        for i in range(6):
            picture = low + 0.4 * chainrule.rand(3, 12, 10, generator=g)
            data.write_image(picture, Path("pictures", name, f"{i}.png"))


PLAIN = ["--hidden", "8", "--epochs", "3"]
DROP = ["--drop", "day", "tags"]
RUNS = {
    "classification": ["iris", *PLAIN],
    "regression": ["table.csv", "--target", "price", "--drop", "kind", *PLAIN],
    "categories by hand": ["table.csv", "--target", "price", "--categorical", "code", *PLAIN],
    "a target by hand": ["table.csv", "--target", "code", "--categorical", "code", *PLAIN],
    "two classes": ["table.csv", "--target", "kind", "--class-weight", "balanced", *PLAIN],
    "count": ["table.csv", "--target", "visits", "--task", "count", *PLAIN],
    "quantile": ["table.csv", "--target", "price", "--quantiles", "0.2,0.8", *PLAIN],
    "lists of labels": ["table.csv", "--target", "tags", *PLAIN],
    "columns of labels": ["labels.csv", "--target", "hot,wet", *PLAIN],
    "in groups": ["table.csv", "--target", "price", "--group", "code", *PLAIN],
    "images": ["pictures", "--channels", "1", "--size", "8,9", *PLAIN],
    "images as they are": ["pictures", "--epochs", "2", "--seed", "3"],
    "default network": ["table.csv", "--target", "kind", "--weight", "weight"],
    "several numbers": ["table.csv", "--target", "price,visits", "--epochs", "2", *DROP],
    "ordinal": ["table.csv", "--target", "code", "--levels", "0,1,2,3", "--epochs", "2", *DROP],
    "in time": ["table.csv", "--target", "price", "--time", "day", "--epochs", "2"],
    "labels by default": ["table.csv", "--target", "tags", "--epochs", "2"],
    "counts by default": ["table.csv", "--target", "visits", "--task", "count", "--epochs", "2"],
    "quick": ["table.csv", "--target", "price", "--effort", "quick", "--epochs", "2"],
    "high": ["iris", "--effort", "high", "--epochs", "1"],
    "high, numbers": ["table.csv", "--target", "price", "--effort", "high", "--epochs", "1", *DROP],
}


@pytest.mark.parametrize("name", RUNS)
def test_the_code_in_the_report_repeats_the_run(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write_table()
    write_labels()
    write_images()
    assert main(["fit", *RUNS[name], "--quiet", "--out", "a folder"]) == 0
    page = Path("a folder", "report.html").read_text()
    programs = [html.unescape(t) for t in re.findall(r'<pre tabindex="0">(.*?)</pre>', page, re.S)]
    uses, use, again, repeat = programs
    own = train.FittedNetwork.load("a folder")
    capsys.readouterr()

    exec(repeat, {})
    assert "held-out scores" in capsys.readouterr().out
    _same(own, train.FittedNetwork.load("model"))

    assert main(shlex.split(again)[1:]) == 0
    _same(own, train.FittedNetwork.load("a folder"))
    capsys.readouterr()

    exec(use, {})
    assert capsys.readouterr().out.startswith("[")
    first = shlex.split(uses.split("\n")[0])
    assert first[:3] == ["chainrule", "predict", "a folder"]
    assert main(["predict", "a folder", RUNS[name][0], "--out", "predictions.csv"]) == 0
    assert Path("predictions.csv").exists()


def _same(a: train.FittedNetwork, b: train.FittedNetwork) -> None:
    """Weights, what the encoders learned, and scores: all of them, to the last bit."""
    for part in ("model", "inputs", "target"):
        one, other = getattr(a, part).state_dict(), getattr(b, part).state_dict()
        assert list(one) == list(other)
        for key, value in one.items():
            if isinstance(value, chainrule.Tensor):
                assert value.dtype == other[key].dtype
                assert value.numpy().tobytes() == other[key].numpy().tobytes()
            else:
                assert value == other[key]
    for fact in ("scores", "features", "classes", "intervals", "baselines", "calibration"):
        assert a.about[fact] == b.about[fact]

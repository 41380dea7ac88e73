"""``chainrule export``: a fitted network as an ONNX file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from onnx_running import engines

from chainrule import data, train
from chainrule.cli import main
from chainrule.onnx import ONNXProgram


@pytest.fixture(autouse=True)
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["fit", "iris", "--epochs", "3", "--hidden", "8", "--quiet"]) == 0
    capsys.readouterr()


def test_export(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", "chainrule-iris", "out/iris.onnx"]) == 0
    size = Path("out/iris.onnx").stat().st_size
    assert capsys.readouterr().out.splitlines() == [
        f"out/iris.onnx: {size:,} bytes",
        "it takes:",
        *[f"  {p}_{m}: float64 (rows)" for p in ("sepal", "petal") for m in ("length", "width")],
        "it gives:",
        "  label: text (rows)",
        "  probabilities: float32 (rows, 3)",
    ]
    network = train.FittedNetwork.load("chainrule-iris")
    program: ONNXProgram = network.export()
    assert program.content == Path("out/iris.onnx").read_bytes()
    table = data.embedded("iris").table.without("species")
    for run in engines(program):
        found = run.run(None, {c.name: c.numbers.numpy() for c in table})[0]
        assert list(found) == network.predict(table)


def test_export_for_scripts(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", "chainrule-iris", "iris.onnx", "--opset", "21", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["out"] == "iris.onnx"
    assert told["outputs"] == {"label": "text (rows)", "probabilities": "float32 (rows, 3)"}


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["nothing", "a.onnx"], "nothing"),
        (["chainrule-iris", "chainrule-iris"], "is a folder; name the file to write, like"),
        (["chainrule-iris", "a.onnx", "--opset", "7"], "must be from 18 to 23, got 7"),
        (["chainrule-iris", "chainrule-iris/model.json/a.onnx"], "cannot write"),
    ],
)
def test_mistakes(arguments: list[str], line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", *arguments]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert error.startswith("chainrule export: error: ")
    assert line in error
    assert not Path("a.onnx").exists()

"""``chainrule inspect``: instruments on saved networks, and one clear line for each mistake."""

from __future__ import annotations

import json
from inspect import signature
from pathlib import Path

import pytest

import chainrule
from chainrule import inspect, nn
from chainrule.cli import main


@pytest.fixture(autouse=True)
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    chainrule.save(nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(), nn.Linear(32, 3)), "net")
    return tmp_path


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["inspect", *arguments]) == 0
    return capsys.readouterr().out


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    before = sorted(Path().rglob("*"))
    assert main(["inspect", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.strip().splitlines()
    assert sorted(Path().rglob("*")) == before
    return line


def fitted(capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["fit", "iris", "--epochs", "1", "--hidden", "4", "--quiet", "--json"]) == 0
    capsys.readouterr()
    return "chainrule-iris"


# --- what it shows --------------------------------------------------------------------------------


def test_the_list_names_every_instrument(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, "--list")
    for name, one in inspect.INSTRUMENTS.items():
        assert f"{name} " in text
        assert one.purpose in text
    told = json.loads(shown(capsys, "--list", "--json"))
    assert set(told) == set(inspect.INSTRUMENTS)


def test_summary_is_the_default(capsys: pytest.CaptureFixture[str]) -> None:
    assert "give inputs or input_size" in shown(capsys, "net")
    text = shown(capsys, "net", "--input-size", "2,1,6,6")
    assert "0 Conv2d" in text
    assert "multiply-adds  768" in text
    assert shown(capsys, "net", "summary", "--input-size", "2,1,6,6") == text


def test_a_network_of_fit_knows_its_inputs(capsys: pytest.CaptureFixture[str]) -> None:
    model = fitted(capsys)
    assert "(1, 4)" in shown(capsys, model)
    assert "(150, 4)" in shown(capsys, model, "summary", "--data", "iris")
    told = json.loads(
        shown(capsys, model, "loss_line", "--data", "iris", "--set", "points=5", "--json")
    )
    assert len(told["losses"]) > 0
    assert "verdict: nothing found" in shown(capsys, model, "doctor", "--data", "iris")
    assert "loss at the start" in shown(capsys, model, "preflight", "--data", "iris")
    assert "stable: loss" in shown(capsys, model, "gradient_flow", "--data", "iris")
    assert "needs inputs: give --data or --input-size" in refused(capsys, model, "regions")
    assert "needs data: give --data with the target" in refused(capsys, model, "landscape")


def test_data_of_other_networks_is_a_saved_tensor(capsys: pytest.CaptureFixture[str]) -> None:
    chainrule.save(chainrule.ones(5, 1, 6, 6), "x")
    assert "(5, 1, 6, 6)" in shown(capsys, "net", "--data", "x")
    both = {"inputs": chainrule.ones(3, 1, 6, 6), "targets": chainrule.zeros(3).long()}
    chainrule.save(both, "both")
    assert "(3, 1, 6, 6)" in shown(capsys, "net", "--data", "both")
    told = refused(capsys, "net", "landscape", "--data", "both")
    assert "landscape needs loss: give --loss, such as --loss cross_entropy" in told


def test_several_inputs(capsys: pytest.CaptureFixture[str]) -> None:
    chainrule.save(nn.Bilinear(2, 3, 4), "two")
    assert "(5, 2) (5, 3)" in shown(capsys, "two", "--input-size", "5,2", "5,3")


def test_a_failing_pass_shows_how_far_it_came(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, "net", "--input-size", "2,1,9,9")
    assert "! 2 Linear" in text
    assert "RuntimeError: linear" in text


@pytest.mark.parametrize("name", ["s.json", "s.html", "s.png", "s.svg", "s.txt"])
def test_results_are_written(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    told = shown(capsys, "net", "summary", "--input-size", "1,1,6,6", "--out", name)
    assert told == f"summary is in {name}\n"
    data = Path(name).read_bytes()
    starts = {"json": b'{"model"', "html": b"<!doctype", "png": b"\x89PNG", "svg": b"<?xml"}
    assert data.startswith(starts.get(name[2:], b"layer"))


def test_a_drawing_for_latex(capsys: pytest.CaptureFixture[str]) -> None:
    shown(capsys, "net", "draw", "--input-size", "1,1,6,6", "--out", "net.tex")
    assert Path("net.tex").read_text("utf-8").startswith("\\documentclass[tikz")
    told = refused(capsys, "net", "--input-size", "1,1,6,6", "--out", "s.tex")
    assert "drawings of networks are written as .tex" in told


def test_arguments_are_set(capsys: pytest.CaptureFixture[str]) -> None:
    given = ("net", "receptive_field", "--input-size", "1,1,6,6", "--set")
    assert "unit (1, 2) of layer 0" in shown(capsys, *given, "layer=0", "--set", "unit=(1, 2)")


def test_a_loss_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    chainrule.save({"inputs": chainrule.randn(4, 1, 6, 6), "targets": chainrule.arange(4) % 2}, "d")
    given = ("--data", "d", "--loss", "cross_entropy")
    for name in ("gradient_flow", "cockpit", "loss_line"):
        assert shown(capsys, "net", name, *given)


def test_an_instrument_needs_what_its_function_needs() -> None:
    able = {"model", "inputs", "targets", "data", "loss"}
    for one in inspect.INSTRUMENTS.values():
        parameters = signature(one.function).parameters.values()
        required = {p.name for p in parameters if p.default is p.empty and p.name in able}
        assert required <= set(one.needs), one.name


# --- mistakes -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "which network?"),
        (["nowhere"], "there is no model 'nowhere'"),
        (["net", "nothing"], "there is no instrument 'nothing'; there are"),
        (["net", "surface"], "surface needs function, which only a program can give it"),
        (["net", "count"], "count needs inputs: give --data or --input-size"),
        (["net", "--input-size", "1,a"], "expected sizes with the batch like 1,3,32,32"),
        (["net", "--input-size", "1", "--data", "x"], "give --data or --input-size, not both"),
        (["net", "--data", "nowhere"], "there is no file 'nowhere'"),
        (["net", "--data", "net"], "must hold a tensor, a tuple of tensors, or a dict"),
        (["weights"], "holds no network but dict; save the module itself"),
        (["net", "--set", "size=3"], "summary has the arguments depth, columns to set"),
        (["net", "--set", "depth"], "summary has the arguments depth, columns to set"),
        (["net", "--set", "columns=('x',)", "--input-size", "1,1,6,6"], "there is no column 'x'"),
        (["net", "--out", "s.pdf"], "name a file that ends in .json"),
        (["net", "--out", "no/s.svg"], "there is no folder no"),
        (["net", "draw", "--input-size", "1,1,6,6", "--out", "d.png"], "written as .svg or .html"),
        (["net", "count", "--input-size", "1,1,9,9"], "; in layer '2' (Linear(in_features=32"),
        (["net", "--list"], "--list takes no MODEL"),
        (["net", "summary", "--loss", "mse_loss"], "summary takes no loss; leave --loss out"),
        (["net", "cockpit", "--loss", "mse"], "--loss mse: there is no such loss; there are"),
        (["net", "cockpit", "--input-size", "1,1,6,6"], "cockpit needs loss: give --loss, such as"),
        (["--list", "--out", "s.json"], "--list takes no --out"),
    ],
)
def test_mistakes(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    chainrule.save(nn.Linear(2, 2).state_dict(), "weights")
    line = refused(capsys, *arguments)
    assert line.startswith("chainrule inspect: error: ")
    assert message in line

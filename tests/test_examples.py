"""The examples run."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent
MNIST = ROOT.parent / "shared" / "data" / "mnist"


def example(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    sys.modules.pop(name, None)
    return importlib.import_module(name)


def test_derivatives(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    example("derivatives", monkeypatch).main()
    out = capsys.readouterr().out
    assert "reverse mode" in out
    assert "forward mode" in out


@pytest.mark.skipif(not MNIST.exists(), reason="the files of MNIST are not there")
def test_mnist(monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = ["--root", str(MNIST), "--only", "linear", "--epochs", "1"]
    (row,) = example("mnist", monkeypatch).main(arguments)
    assert row["error"] < 12  # percent, after one epoch

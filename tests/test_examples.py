"""The examples run."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent


def example(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    sys.modules.pop(name, None)
    return importlib.import_module(name)


def test_derivatives(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    example("derivatives", monkeypatch).main()
    out = capsys.readouterr().out
    assert "reverse mode" in out
    assert "forward mode" in out


def test_trainer(monkeypatch: pytest.MonkeyPatch) -> None:
    assert example("trainer", monkeypatch).main(epochs=15) > 0.95


def test_estimator(monkeypatch: pytest.MonkeyPatch) -> None:
    assert example("estimator", monkeypatch).main() > 0.9


def test_series(monkeypatch: pytest.MonkeyPatch) -> None:
    error, naive = example("series", monkeypatch).main(epochs=6)
    assert error < 0.3 * naive


def test_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = example("graph", monkeypatch)
    assert sum(map(len, graph.FRIENDS.values())) == 78
    assert graph.main() > 0.95


def test_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    results = example("tables", monkeypatch).main(["iris"], [0])
    assert results["iris"]["tuned linear"][0] > 0.9

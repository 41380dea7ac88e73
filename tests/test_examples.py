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


def test_tables(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tables = example("tables", monkeypatch)
    keep = tmp_path / "results.json"
    given = ["--tables", "iris", "--seeds", "1", "--keep", str(keep), "--methods"]
    told = tables.main([*given, "chainrule", "linear", "MLP"])
    assert told["chainrule"]["below linear"] <= 0.04  # one of 30 rows
    monkeypatch.setattr(tables, "measured", lambda *_: pytest.fail("it was kept"))
    assert tables.main([*given, "chainrule", "linear", "MLP"]) == told
    assert tables.ranks({"a": 0.5, "b": 0.9, "c": 0.5001}) == {"a": 2.5, "b": 1, "c": 2.5}
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- results -->\nold\n<!-- end -->\nafter\n")
    tables.write_page("new", page)
    assert page.read_text() == "before\n<!-- results -->\n\nnew\n\n<!-- end -->\nafter\n"
    for name, make in tables.TABLES.items():
        columns, target, _ = make()
        assert {len(values) for values in columns.values()} == {len(target)}, name

"""Without the libraries of the extra, one line says what to install."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from chainrule import data, train
from chainrule.cli import main


@pytest.mark.parametrize("lacks", ["starlette.applications", "uvicorn"])
def test_what_to_install(
    lacks: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    table = data.Table.from_dict({"x": [i / 9 for i in range(40)], "y": ["a", "b"] * 20})
    settings = train.Settings(epochs=1, hidden=(2,))
    train.fit_table(table, "y", settings=settings, progress=False).save(tmp_path / "m")
    monkeypatch.setitem(sys.modules, lacks, None)
    assert main(["serve", str(tmp_path / "m"), "--port", "0"]) == 2
    line = capsys.readouterr().err
    assert line.count("\n") == 1
    assert "pip install 'chainrule[serve]'" in line

"""A reader that goes away (``| head``) ends a command without a word, whatever it prints."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from chainrule import data, train

COMMANDS = {"inspect": ["inspect", "--list"], "predict": ["predict", "model", "long.csv"]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("pipes")
    table = data.Table.from_dict({"x": [i / 9 for i in range(40)], "y": ["a", "b"] * 20})
    settings = train.Settings(epochs=1, hidden=(2,))
    train.fit_table(table, "y", settings=settings, progress=False).save(place / "model")
    (place / "long.csv").write_text("x\n" + "1.5\n" * 40_000)  # more than a pipe holds
    return place


@pytest.mark.parametrize("name", COMMANDS)
def test_the_reader_is_gone(name: str, folder: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "chainrule", *COMMANDS[name]],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    process.stdout.close()
    _, err = process.communicate(timeout=120)
    assert err == ""
    assert process.returncode == 141

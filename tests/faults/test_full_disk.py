"""A full disk is noticed before the work, or the work is kept."""

from __future__ import annotations

import errno
import os
import re
import subprocess
import sys
import tempfile
from collections import namedtuple
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from faults.test_fit import FIT, TABLE, environment

import chainrule
from chainrule.cli import main
from chainrule.files import folder as model_folder
from chainrule.files import write_atomically
from chainrule.train import FittedNetwork, Trainer, run_folder

Usage = namedtuple("Usage", "total used free")


@pytest.fixture(autouse=True)
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("table.csv").write_text(TABLE)
    Path("elsewhere").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "elsewhere"))
    return tmp_path


def line_of(capsys: pytest.CaptureFixture[str]) -> str:
    captured = capsys.readouterr()
    assert captured.out == ""
    assert len(captured.err.splitlines()) == 1, captured.err
    return captured.err


def fill(monkeypatch: pytest.MonkeyPatch, module: Any, is_full: Callable[[Path], bool]) -> None:
    """Makes writing fail where the disk is said to be full."""

    def write(path: Path, content: bytes | Iterable[bytes]) -> None:
        if is_full(path):
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        write_atomically(path, content)

    monkeypatch.setattr(module, "write_atomically", write)


@pytest.mark.parametrize(("free", "before"), [(1000, True), (2**20, False)])
def test_noticed_before_training(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], free: int, before: bool
) -> None:
    """At once where nothing fits; when the network is known where only that does not."""
    monkeypatch.setattr("shutil.disk_usage", lambda path: Usage(free, 0, free))
    monkeypatch.setattr(Trainer, "fit", lambda *args, **kwargs: pytest.fail("it was trained"))
    if before:
        monkeypatch.setattr("chainrule.data.read_table", lambda path: pytest.fail("it was read"))
    assert main([*FIT, "--hidden", "700,700"]) == 2
    needed = r"2\d{6}" if not before else "524288"
    assert re.search(rf"no room: {needed} bytes are needed and {free} are free", line_of(capsys))
    assert sorted(os.listdir()) == ["elsewhere", "table.csv"]


@pytest.mark.skipif(sys.platform != "linux", reason="limits of Linux")
def test_a_limit_is_noticed_before_training() -> None:
    """The system says that there is room, but the process may not write so much."""
    import resource

    command = [sys.executable, "-m", "chainrule", *FIT, "--out", "out"]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        env=environment(),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (9999, 9999)),
    )
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        "chainrule fit: error: --out out: there is no room for 524288 bytes: File too large"
    ]


@pytest.mark.parametrize("here", [True, False])
def test_the_work_is_kept_where_it_can_be_written(
    inside: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], here: bool
) -> None:
    assert main([*FIT, "--out", "out"]) == 0
    before = {p.name: p.read_bytes() for p in Path("out").iterdir()}
    capsys.readouterr()
    full = inside / "out" if here else inside
    open_places = [] if here else [inside / "elsewhere"]
    fill(
        monkeypatch,
        model_folder,
        lambda p: (
            p.absolute().is_relative_to(full)
            and not any(p.absolute().is_relative_to(o) for o in open_places)
            and not p.name.startswith(".weights")
        ),  # it fills up when the weights are written
    )
    assert main([*FIT, "--seed", "5", "--out", "out"]) == 1
    line = line_of(capsys)
    kept = Path(re.search(r"cannot be written to out \(No space.*\); it is in (\S+)", line)[1])  # type: ignore[index]
    assert kept.parent == (inside if here else inside / "elsewhere")
    assert FittedNetwork.load(kept).about["settings"]["seed"] == 5
    assert {p.name for p in kept.iterdir()} >= {"history.csv", "report.html"}
    assert {p.name: p.read_bytes() for p in Path("out").iterdir()} == before
    left = {"out", "table.csv", "elsewhere"} | ({kept.name} if here else set())
    assert set(os.listdir()) == left


def test_nowhere_to_write(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(monkeypatch, model_folder, lambda path: True)
    assert main([*FIT, "--out", "out"]) == 1
    assert "cannot be written to out" in line_of(capsys)
    assert "elsewhere" in os.listdir()
    assert os.listdir("elsewhere") == []


def test_training_goes_on_without_checkpoints(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*args: object, **kwargs: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(run_folder, "save", full)
    assert main([*FIT, "--epochs", "3", "--out", "out", "--checkpoint-every", "0"]) == 0
    told = capsys.readouterr().err
    assert told.count("no checkpoint could be written, training goes on") == 1
    assert len(FittedNetwork.load("out").history) == 3


def test_room_is_asked_for(tmp_path: Path) -> None:
    chainrule.files.check_room(tmp_path / "a" / "b", 1000)
    with pytest.raises(OSError, match="no room"):
        chainrule.files.check_room(tmp_path / "a", 2**60)
    assert not (tmp_path / "a").exists()

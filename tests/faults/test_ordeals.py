"""A little of each long run of ``make faults``: kills, calls of kernels, mixed load, the page."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import pytest

if sys.platform != "linux":
    pytest.skip("what is killed is forked, and looked at through /proc", allow_module_level=True)

from chainrule import backend
from reliability import __main__ as command
from reliability import load
from reliability.kernel_calls import Calls, HostileCalls
from reliability.kills import KILLS, Killed, run_kills
from reliability.load import Work, run_load
from reliability.page import PAGE, Row, rows_of, written
from reliability.runner import Result, run_cases


@pytest.mark.parametrize("kind", KILLS, ids=[k.__name__ for k in KILLS])
def test_kills(kind: type[Killed]) -> None:
    result = run_kills(kind, 5, seed=2)
    assert result.failures == []
    assert result.tried == 5


class WrittenInPlace(Killed):
    """A saver as it should not be: a kill leaves half a file."""

    name = "planted"
    longest = 0.02

    def act(self) -> None:
        while True:
            with (self.folder / "file").open("w") as file:
                file.write("a")
                file.flush()
                time.sleep(0.01)
                file.write("b")

    def look(self) -> str:
        path = self.folder / "file"
        return "" if not path.exists() or path.read_text() == "ab" else "half a file"


def test_half_a_file_is_found() -> None:
    assert "half a file" in str(run_kills(WrittenInPlace, 8, seed=0).failures)


@pytest.mark.skipif(bool(backend.why_not_native), reason="the kernels are not compiled")
@pytest.mark.parametrize("kind", [Calls, HostileCalls])
def test_calls_of_kernels(kind: type[Calls]) -> None:
    assert run_cases(kind(), 300, seed=3).failures == []


@pytest.mark.skipif(bool(backend.why_not_native), reason="the kernels are not compiled")
def test_a_kernel_that_computes_something_else_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    from native import random_calls

    monkeypatch.setattr(random_calls, "same", lambda *args: False)
    assert run_cases(Calls(), 20, seed=3).failures


def test_mixed_load() -> None:
    result = run_load(0.02, seed=4)
    assert result.failures == []
    assert result.tried > 20


def test_failures_litter_and_growth_under_load_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = []

    def step(self: Work) -> None:
        kept.append(bytearray(1 << 20))
        (self.home / ".left.tmp").touch()
        time.sleep(0.02)
        raise KeyError("planted")

    monkeypatch.setattr(Work, "step", step)
    monkeypatch.setattr(load, "GROWTH", 1 << 20)
    found = " ".join(run_load(0.01, seed=0).failures)
    assert "KeyError: 'planted'" in found
    assert "litter: .left.tmp" in found
    assert "memory grew" in found


# --- the page -------------------------------------------------------------------------------------


def test_the_page_is_as_the_command_writes_it() -> None:
    text = PAGE.read_text("utf-8")
    names = [run.name for run in command.runs(command.parsed([]))]
    rows = rows_of(text)
    assert set(names) <= set(rows)
    assert text == written(rows, list(rows))
    assert {row.kind for row in rows.values() if row.cells[3] != "0"} == set()


def test_the_command_replaces_the_rows_of_what_it_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "PAGE", tmp_path / "page.md")
    arguments: list[Any] = ["--only", "tables as text", "--cases"]
    assert command.main([*arguments, "3", "--seed", "5"]) == 0
    assert command.main([*arguments, "4"]) == 0
    rows = rows_of((tmp_path / "page.md").read_text())
    assert list(rows) == ["tables as text"]
    assert rows["tables as text"].cells[1] == "4"
    assert "Not yet run: models and tensors" in (tmp_path / "page.md").read_text()
    monkeypatch.setattr(command, "_cases", lambda *given: Result("tables as text", 1, 0, ["bad"]))
    assert command.main([*arguments, "1"]) == 1
    assert Row.of(Result("x", 3), "rule", 7).cells[:3] == ("rule", "3", "")

"""``chainrule atlas``: pages from a folder, and one clear line for each mistake."""

from __future__ import annotations

import dataclasses
import json
import os
import sys
from pathlib import Path

import pytest

from chainrule import atlas, charts
from chainrule.atlas.core import running
from chainrule.atlas.core.registry import ENTRIES
from chainrule.cli import main

pytest.importorskip("matplotlib")


@pytest.fixture(autouse=True)
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    monkeypatch.delenv("CHAINRULE_DATA", raising=False)
    return tmp_path


def test_entries_become_pages(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["atlas", "ERR002", "m22", "--out", "pages", "--jobs", "1"]) == 0
    out = capsys.readouterr().out
    assert "1 reproduced, 1 erratum" in out
    assert "pages/index.html" in out.replace(os.sep, "/")
    names = {p.name for p in Path("pages").iterdir()}
    assert names == {"index.html", "api.html", "atlas.json", "ERR002.html", "M22.html", "files"}
    # Others join them.
    assert main(["atlas", "ERR003", "--out", "pages", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["verdicts"] == {"ERR003": "erratum"}
    assert "ERR002.html" in Path("pages", "index.html").read_text("utf-8")


def test_the_list_names_the_entries(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["atlas", "--list", "--course", "001"]) == 0
    out = capsys.readouterr().out
    assert "X04" in out
    assert "M22" not in out
    assert main(["atlas", "--list", "--json"]) == 0
    assert {e["id"] for e in json.loads(capsys.readouterr().out)} == {*atlas.entries()}
    assert not [*Path().iterdir()]


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    before = sorted(Path().rglob("*"))
    assert main(["atlas", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.strip().splitlines()
    assert sorted(Path().rglob("*")) == before
    return line


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["V999"], "no entry 'V999'; the nearest are V"),
        (["Quark"], "no entry 'Quark'"),
        (["--course", "9"], "no course '9'; the courses are 000"),
        (["V10", "--jobs", "0"], "--jobs 0: at least 1"),
        (["V10", "--out", "taken"], "that is a file"),
        (["V10", "--out", "site"], "has an index.html that is no atlas"),
        (["V10", "--out", ""], "--out: an empty name"),
        (["V10", "--out", "half"], "half/files: that is a file"),
        (["V10", "--data", "nowhere"], "--data nowhere: no such folder"),
        (["X05", "--full", "--data", ""], "--data: an empty name"),
        (["X05", "--device", "xla"], "--device xla: only --full has networks"),
        (["X05", "--full", "--device", "xla", "--jobs", "2"], "one process has the device"),
        (["V10", "--full", "--device", "xla"], "--device xla: none of these entries"),
        (["X05", "--full", "--device", "foo"], "--device foo: device: 'foo' is not available"),
        (["V10", "--data", "site"], "--data site: files are read with --full alone"),
    ],
)
def test_mistakes_are_one_line(
    capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    Path("taken").write_text("a file")
    Path("site").mkdir()
    Path("site", "index.html").write_text("mine")
    Path("half").mkdir()
    Path("half", "files").write_text("a file where a folder has to be")
    assert words in refused(capsys, *arguments).replace(os.sep, "/")


PAGE = "# Mine\n\n<!-- summary -->\nold\n<!-- end -->\n\nThe rest.\n"


def test_the_summary_is_written_into_pages(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = {id: atlas.entries()[id] for id in ("V28", "M22", "ERR002", "ERR003")}
    monkeypatch.setattr("chainrule.atlas.core.registry.entries", lambda: chosen)
    for name in ("one.md", "two.md"):
        Path(name).write_text(PAGE, "utf-8")
    arguments = ["atlas", "--jobs", "1", "--summary", "one.md", "--summary", "two.md"]
    assert main(arguments) == 0
    text = Path("one.md").read_text("utf-8")
    assert text == Path("two.md").read_text("utf-8")
    lines = text.splitlines()
    assert lines[3].startswith("| group | reproduced | in part |")
    assert lines[5] == "| figures | 1 | 0 | 0 | 0 | 0 | 1 |"
    assert lines[9] == "| errata | 0 | 0 | 0 | 2 | 0 | 2 |"
    assert lines[10] == "| all | 2 | 0 | 0 | 2 | 0 | 4 |"
    assert lines[11:] == ["<!-- end -->", "", "The rest."]
    assert main(arguments) == 0  # again: nothing changes
    assert Path("one.md").read_text("utf-8") == text


@pytest.mark.parametrize(
    ("page", "arguments", "words"),
    [
        (PAGE, ["V10"], "--summary counts all entries: name none of them"),
        (PAGE, ["--course", "004"], "and no course"),
        ("# Mine\n", [], "page.md: has no place for the summary: a line <!-- summary -->"),
        ("<!-- end -->\n<!-- summary -->\n", [], "has no place for the summary"),
        (None, [], "--summary page.md: No such file or directory"),
    ],
)
def test_a_summary_that_cannot_be_written(
    capsys: pytest.CaptureFixture[str], page: str | None, arguments: list[str], words: str
) -> None:
    if page is not None:
        Path("page.md").write_text(page, "utf-8")
    assert words in refused(capsys, *arguments, "--summary", "page.md")


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root writes everywhere")
def test_a_folder_that_cannot_be_written(capsys: pytest.CaptureFixture[str]) -> None:
    Path("locked").mkdir(mode=0o555)
    assert "no permission to write" in refused(capsys, "V10", "--out", "locked/here")


def test_without_matplotlib(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(charts, "available", lambda: False)
    assert "pip install 'chainrule[plot]'" in refused(capsys, "V10")


def test_a_matplotlib_that_cannot_be_loaded(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(charts, "available", lambda: True)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert "matplotlib, which cannot be loaded" in refused(capsys, "V10")


def test_a_folder_that_cannot_be_looked_into(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def closed(path: Path, **options: object) -> bool:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "exists", closed)
    assert main(["atlas", "V10", "--out", "hidden/here"]) == 2
    assert "--out hidden/here: Permission denied" in capsys.readouterr().err.replace(os.sep, "/")


def test_missing_data(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    reading = dataclasses.replace(atlas.entries()["V28"], data=("mnist",))
    monkeypatch.setitem(ENTRIES, "V28", reading)
    Path("empty").mkdir()
    line = refused(capsys, "V28", "--full", "--data", "empty")
    assert "V28 --full reads the files of mnist, which are not in empty" in line
    assert main(["atlas", "V28", "--out", "quick"]) == 0  # quick runs need no files


def test_data_that_cannot_be_read(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def closed(*given: object, **options: object) -> None:
        raise PermissionError(13, "Permission denied", "mine/MNIST")

    monkeypatch.setattr("chainrule.data.MNIST", closed)
    Path("mine").mkdir()
    line = refused(capsys, "X05", "--full", "--data", "mine")
    assert "--data mine: Permission denied: mine/MNIST" in line


def test_an_interrupt_keeps_what_is_done(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = running.compute

    def interrupted(entry: atlas.Entry, *args: object) -> atlas.Outcome:
        if entry.id == "M22":
            raise KeyboardInterrupt
        return whole(entry, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(running, "compute", interrupted)
    assert main(["atlas", "ERR002", "M22", "--jobs", "1"]) == 130
    assert "1 of 2 entries are done and kept" in capsys.readouterr().err
    assert Path("chainrule-atlas", "ERR002.html").is_file()
    monkeypatch.undo()
    monkeypatch.setenv("MPLBACKEND", "agg")
    assert main(["atlas", "ERR002", "M22", "--jobs", "1"]) == 0


def test_an_entry_that_breaks_does_not_count_as_kept(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(entry: atlas.Entry, *args: object) -> atlas.Outcome:
        raise {"M22": KeyboardInterrupt, "M21": ZeroDivisionError}[entry.id]

    monkeypatch.setattr(running, "compute", broken)
    assert main(["atlas", "M21", "M22", "--jobs", "1"]) == 130
    assert "0 of 2 entries are done and kept" in capsys.readouterr().err


def test_an_entry_that_breaks_is_told(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(entry: atlas.Entry, *args: object) -> atlas.Outcome:
        raise ZeroDivisionError("by nothing")

    monkeypatch.setattr(running, "compute", broken)
    assert main(["atlas", "ERR002", "--jobs", "1"]) == 1
    assert "ERR002 could not be computed" in capsys.readouterr().err

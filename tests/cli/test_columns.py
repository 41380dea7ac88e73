"""Options that say what columns are: obeyed, or refused in one line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from chainrule.cli import main

QUICK = ["--epochs", "1", "--hidden", "4", "--quiet"]
NAMES = "when,size,price,paid,title,code,a=b,y"


@pytest.fixture(autouse=True)
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [
        f"0{i % 9 + 1}/0{i % 7 + 1}/2024,{('cold', 'warm', 'hot')[i % 3]},${i},{'mf'[i % 2]},"
        f"a title {i % 4},{i % 5},{i % 6},{'uv'[i % 2]}"
        for i in range(40)
    ]
    Path("t.csv").write_text("\n".join([NAMES, *rows]))


def run(*options: str) -> int:
    return main(["fit", "t.csv", "--target", "y", *QUICK, *options])


def test_roles_are_obeyed(capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--date", "when=dmy", "--ordinal", "size=cold,warm,hot", "a=b", "--numeric", "price"]
    given += ["--boolean", "paid", "--text", "title", "--categorical", "code", "--json"]
    assert run(*given) == 0
    about = json.loads(capsys.readouterr().out)
    assert {name: role["kind"] for name, role in about["roles"].items()} == {
        "when": "date",
        "size": "ordinal",
        "price": "number",
        "paid": "boolean",
        "title": "text",
        "code": "category",
        "a=b": "ordinal",
    }
    assert all(role["given"] for role in about["roles"].values())
    assert run("--drop", "when", "title", "--json") == 0
    about = json.loads(capsys.readouterr().out)
    assert about["left_out"] == {"when": "as it was said", "title": "as it was said"}
    assert main(["cv", "t.csv", "--target", "y", "--folds", "2", *QUICK[:4], "--drop", "when"]) == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--date", "size"], "column 'size' cannot be used as a date"),
        (["--numeric", "size"], "column 'size' is numbers, but row 1 has 'cold'"),
        (["--numeric", "price", "--text", "price"], "'price' was given to --numeric, too; say one"),
        (["--drop", "none"], "there is no column 'none'"),
        (["--date", "when=ymd"], "--date when=ymd: expected the name of a column, or COL=dmy"),
        (["--text", "title=x"], "--text title=x: expected the name of a column"),
        (["--ordinal", "size"], "column 'size' is text whose order is not known"),
        (["--ordinal", "size=cold,hot"], "'size' has values that its order lacks: 'warm'"),
        (["--boolean", "size"], "a boolean has two"),
        (["--text", "y"], "column 'y' is the target, which cannot be given as 'text'"),
        (["--drop", "y"], "--drop y: that is the target"),
    ],
)
def test_what_cannot_be_is_refused(
    options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*options) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not Path("chainrule-t").exists()

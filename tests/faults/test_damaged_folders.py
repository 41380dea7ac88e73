"""Damaged folders of models: one clear line for each, whatever was lost or changed."""

from __future__ import annotations

import copy
import json
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from faults.test_fit import images

from chainrule.cli import main

CHANGES: list[Any] = [None, True, -1, 1.5, 10**30, "zz", [], ["a"], {}, {"dict": [["a", 1]]}]
CHANGES += [{"tuple": [1]}, {"float": "nan"}]
GONE = object()
CLEAR = ("load: ", "the network in ", "does not hold a network fitted by")
KINDS = {"classes": "iris", "numbers": "table.csv", "images": "images"}
TABLE = "a,c,b\n" + "\n".join(
    f"{i if i % 5 else ''},{'xyz'[i % 3]},{i * 2.5 + i % 4}" for i in range(40)
)


@pytest.fixture(scope="module", params=KINDS)
def fitted(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a fitted network, "model", and the data it was fitted on."""
    home = tmp_path_factory.mktemp(request.param)
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(home)
        Path("table.csv").write_text(TABLE)
        images()
        fit = ["fit", KINDS[request.param], "--epochs", "1", "--hidden", "3", "--quiet"]
        assert main([*fit, "--out", "model"]) == 0
    return home


@pytest.fixture
def model(fitted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(fitted)
    shutil.copytree("model", tmp_path / "model")
    return tmp_path / "model"


def clear(folder: Path, capsys: pytest.CaptureFixture[str], command: str = "predict") -> bool:
    """Whether a command refuses the folder, in one clear line; else it must have come through."""
    capsys.readouterr()
    kind = next(k for k in KINDS if Path.cwd().name.startswith(k))
    status = main([command, str(folder), KINDS[kind]])
    told = capsys.readouterr().err
    if status == 0:
        return False
    assert status == 2
    assert len(told.splitlines()) == 1
    assert any(words in told for words in CLEAR), told
    return True


def test_files_that_are_gone_or_cut_off(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert not clear(model, capsys)
    for name in ("history.csv", "report.html"):
        (model / name).unlink()
        assert not clear(model, capsys)  # which no command needs
    for path in (model / "model.json", next(model.glob("weights-*"))):
        content = path.read_bytes()
        for length in range(0, len(content), len(content) // 12):
            path.write_bytes(content[:length])
            assert clear(model, capsys), length
        path.unlink()
        assert clear(model, capsys)
        path.mkdir()
        assert clear(model, capsys)
        path.rmdir()
        path.write_bytes(content)
    assert not clear(model, capsys, "evaluate")


def test_every_change_of_the_description_is_noticed(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = model / "model.json"
    content = path.read_bytes()
    chance = random.Random(0)
    for at in [*chance.sample(range(len(content)), 50), *range(len(content) - 20, len(content))]:
        path.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
        assert clear(model, capsys), at


def places(told: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The places of all values, as keys and numbers."""
    if above:
        yield above
    inside = told.items() if isinstance(told, dict) else enumerate(told)
    for key, value in inside:
        if isinstance(value, (dict, list)):
            yield from places(value, (*above, key))
        else:
            yield (*above, key)


def changed(told: Any, place: tuple[Any, ...], value: Any) -> Any:
    told = copy.deepcopy(told)
    inside = told
    for key in place[:-1]:
        inside = inside[key]
    if value is GONE:
        del inside[place[-1]]
    else:
        inside[place[-1]] = value
    return told


def test_values_of_another_kind(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As by a hand that knows the checksum: there is none. A few of the changes are harmless."""
    told = json.loads((model / "model.json").read_text())
    del told["digest"], told["files"]
    changes = [(place, value) for place in places(told) for value in (GONE, *CHANGES)]
    refused, tried = 0, random.Random(1).sample(changes, 100)
    for place, value in tried:
        (model / "model.json").write_text(json.dumps(changed(told, place, value)))
        refused += clear(model, capsys, "evaluate")
    assert 60 < refused < 100
    for value in CHANGES:
        (model / "model.json").write_text(json.dumps(value))
        assert clear(model, capsys)


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (("about", "target"), GONE, "lacks 'target', text"),
        (("about", "rows"), -1, "'rows' should be a whole number, not negative, got -1"),
        (("about", "classes"), ["a"], "differ in the task or in the classes"),
        (("model",), {"dict": []}, "its 'model' should be a Module, got dict"),
        (("inputs",), None, "its 'inputs' should be a Module, got NoneType"),
        (("history",), 7, "'history' should be a list of dictionaries, got 7"),
    ],
)
def test_what_is_wrong_is_said(
    model: Path,
    capsys: pytest.CaptureFixture[str],
    place: tuple[str, ...],
    value: Any,
    message: str,
) -> None:
    told = json.loads((model / "model.json").read_text())
    del told["digest"], told["files"]
    pairs = told["value"]["object"]["parts"]
    for name in place[:-1]:
        pairs = next(v for k, v in pairs if k == name)["dict"]
    at = next(i for i, (k, _) in enumerate(pairs) if k == place[-1])
    pairs[at : at + 1] = [] if value is GONE else [[place[-1], value]]
    (model / "model.json").write_text(json.dumps(told))
    capsys.readouterr()
    assert main(["predict", str(model), "table.csv"]) == 2
    assert message in capsys.readouterr().err

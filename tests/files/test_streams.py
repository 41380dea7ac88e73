"""Files that are open already, places of tensors, and words about pickles."""

from __future__ import annotations

import io
import pickle
from pathlib import Path
from typing import Any

import pytest

import chainrule
from chainrule import files, nn


def stream(*values: Any) -> io.BytesIO:
    buffer = io.BytesIO()
    for value in values:
        chainrule.save(value, buffer)
    buffer.seek(0)
    return buffer


def test_through_memory() -> None:
    net = nn.Sequential(nn.Linear(2, 3), nn.Tanh())
    other = chainrule.load(stream(net))
    x = chainrule.randn(4, 2)
    assert chainrule.equal(other(x), net(x))
    state = chainrule.load(stream(net.state_dict()), weights_only=True)
    assert list(state) == ["0.weight", "0.bias"]
    fresh = nn.Sequential(nn.Linear(2, 3), nn.Tanh())
    assert chainrule.load(stream(net), model=fresh) is fresh
    assert chainrule.equal(fresh(x), net(x))


def test_through_an_open_file(tmp_path: Path) -> None:
    path = tmp_path / "x.pt"
    with path.open("wb") as file:
        chainrule.save({"epoch": 3, "x": chainrule.arange(3)}, file, pickle_protocol=4)
    with path.open("rb") as file:
        back = chainrule.load(file, weights_only=False, mmap=True)
    assert back["epoch"] == 3
    assert back["x"].tolist() == [0, 1, 2]
    assert chainrule.load(path)["epoch"] == 3  # the same file


def test_one_behind_the_other() -> None:
    buffer = stream(chainrule.ones(2), {"a": 1}, chainrule.zeros(0))
    assert chainrule.load(buffer).tolist() == [1, 1]
    assert chainrule.load(buffer) == {"a": 1}
    assert chainrule.load(buffer).shape == (0,)
    with pytest.raises(EOFError, match=r"at its end; f.seek\(0\)"):
        chainrule.load(buffer)


def test_a_description_of_a_stream() -> None:
    assert files.describe_file(stream(nn.Linear(2, 3)))["elements"] == 9


@pytest.mark.parametrize(
    "location",
    [
        "cpu",
        chainrule.device("cpu"),
        {"cuda:0": "cpu"},
        lambda storage, place: storage,
        lambda storage, place: None,
    ],
)
def test_tensors_are_on_the_cpu(location: Any) -> None:
    back = chainrule.load(stream({"x": chainrule.ones(2)}), map_location=location)
    assert back["x"].tolist() == [1, 1]


def test_a_function_of_each_tensor() -> None:
    back = chainrule.load(stream([chainrule.ones(2)]), lambda t, place: t * (place == "cpu") * 3)
    assert back[0].tolist() == [3, 3]
    with pytest.raises(TypeError, match="returned str"):
        chainrule.load(stream([chainrule.ones(2)]), lambda t, place: place)


@pytest.mark.parametrize("location", ["cuda", "cuda:0", {"cpu": "mps"}])
def test_other_places_are_refused(location: Any) -> None:
    with pytest.raises(RuntimeError, match="is not available; tensors live on 'cpu'"):
        chainrule.load(stream(chainrule.ones(1)), map_location=location)


def test_pickles_are_refused(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match="pickle_module=pickle is refused.*nothing in them is exec"
    ):
        chainrule.save(1, tmp_path / "x", pickle_module=pickle)
    with pytest.raises(ValueError, match="pickle_module=pickle is refused"):
        chainrule.load(stream(1), pickle_module=pickle)
    for weights_only in (None, False, True):
        with pytest.raises(ValueError, match="is a pickle.*which could run code"):
            chainrule.load(io.BytesIO(pickle.dumps({"a": 1})), weights_only=weights_only)


def test_wrong_files(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="open for text; open it with open.path, 'wb'"):
        chainrule.save(1, io.StringIO())
    with pytest.raises(TypeError, match="open for text; open it with open.path, 'rb'"):
        chainrule.load(io.StringIO("x"))
    with pytest.raises(ValueError, match="folder=True needs a path"):
        chainrule.save(1, io.BytesIO(), folder=True)
    with pytest.raises(TypeError, match="expected a path or an open file, got int"):
        chainrule.load(3)  # type: ignore[arg-type]


@pytest.mark.parametrize("cut", [1, 7, 8, 20, -1])
def test_damaged_streams(cut: int) -> None:
    content = stream({"x": chainrule.ones(50)}).getvalue()
    with pytest.raises(ValueError, match="not a whole safetensors file|damaged"):
        chainrule.load(io.BytesIO(content[:cut]))
    size = len(b'{"a":3}').to_bytes(8, "little")
    with pytest.raises(ValueError, match="not a whole safetensors file"):
        chainrule.load(io.BytesIO(size + b'{"a":3}rest'))

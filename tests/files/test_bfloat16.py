"""bfloat16 in files."""

from __future__ import annotations

import io
import json
import struct
from pathlib import Path

import pytest

import chainrule
from chainrule import nn

pytest.importorskip("ml_dtypes")


def written(told: dict[str, object], data: bytes) -> io.BytesIO:
    """A safetensors file by hand: the length of the header, the header, the numbers."""
    header = json.dumps(told).encode()
    return io.BytesIO(struct.pack("<Q", len(header)) + header + data)


def by_hand() -> io.BytesIO:
    """What PyTorch's safetensors writes of a Linear in bfloat16, and a number in float64."""
    told = {
        "bias": {"dtype": "BF16", "shape": [1], "data_offsets": [0, 2]},
        "weight": {"dtype": "BF16", "shape": [1, 2], "data_offsets": [2, 6]},
        "step": {"dtype": "F64", "shape": [], "data_offsets": [6, 14]},
    }
    return written(told, struct.pack("<3Hd", 0x3F80, 0x3FC0, 0xC010, 7.0))


def test_a_file_of_pytorchs() -> None:
    state = chainrule.load(by_hand())
    assert {name: t.dtype.name for name, t in state.items()} == {
        "bias": "bfloat16",
        "weight": "bfloat16",
        "step": "float64",
    }
    assert (state["weight"].tolist(), state["bias"].tolist()) == ([[1.5, -2.25]], [1.0])
    assert state["weight"].add_(1).tolist() == [[2.5, -1.25]]  # in memory of its own


def test_read_as_another_type() -> None:
    state = chainrule.load(by_hand(), dtype=chainrule.float32)
    assert {t.dtype for t in state.values()} == {chainrule.float32}
    assert state["weight"].tolist() == [[1.5, -2.25]]


def test_into_a_model_of_another_type() -> None:
    told = {
        "bias": {"dtype": "BF16", "shape": [1], "data_offsets": [0, 2]},
        "weight": {"dtype": "BF16", "shape": [1, 2], "data_offsets": [2, 6]},
    }
    content = written(told, struct.pack("<3H", 0x3F80, 0x3FC0, 0xC010))
    net = nn.Linear(2, 1)
    assert chainrule.load(content, model=net) is net
    assert net.weight.dtype is chainrule.float32
    assert net.weight.tolist() == [[1.5, -2.25]]


def test_saved_and_loaded(tmp_path: Path) -> None:
    net = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2)).bfloat16()
    path = tmp_path / "net.safetensors"
    chainrule.save(net, path)
    again = chainrule.load(path)
    assert {name: t.dtype for name, t in again.state_dict().items()} == {
        name: t.dtype for name, t in net.state_dict().items()
    }
    assert chainrule.equal(again[0].weight, net[0].weight)
    chainrule.save({"x": net[0].weight.detach()}, tmp_path / "x")
    assert chainrule.load(tmp_path / "x")["x"].equal(net[0].weight.detach())
    assert chainrule.load(tmp_path / "x", dtype=chainrule.float32)["x"].dtype is chainrule.float32


def test_elements_of_an_unknown_type() -> None:
    told = {"x": {"dtype": "F8_E4M3", "shape": [2], "data_offsets": [0, 2]}}
    with pytest.raises(ValueError, match="cannot be read: 'x' has elements of type F8_E4M3"):
        chainrule.load(written(told, b"\0\0"))

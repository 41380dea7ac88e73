"""Files of every kind, damaged at random: refused in words, or read as they were written.

A little of what ``make faults`` does; the kinds and the changes are those of tools/reliability.
"""

from __future__ import annotations

import io
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

if sys.platform != "linux":
    pytest.skip("cases run in forks with a limit of memory", allow_module_level=True)

import chainrule
from chainrule import nn, optim, train
from chainrule.data import CIFAR10, read_table
from reliability import data_files, own_files, runner
from reliability.cases import REFUSALS, Case, Kind, fault_in, fingerprint
from reliability.runner import run_cases

KINDS = [*own_files.KINDS, *data_files.KINDS]


@pytest.mark.parametrize("kind", KINDS, ids=[k.__name__ for k in KINDS])
def test_nothing_but_refusals_and_whole_values(kind: type[Kind]) -> None:
    result = run_cases(kind(), 120, seed=1)
    assert result.failures == []
    assert result.tried == 120
    assert result.refused > 30


# --- what the runs must find ----------------------------------------------------------------------


class Planted(Kind):
    """Cases of which one has a fault."""

    name = "planted"

    def __init__(self, fault: Any):
        self.fault = fault

    def prepare(self, folder: Path) -> None:
        pass

    def case(self, r: Any, folder: Path) -> Case:
        self.number = getattr(self, "number", -1) + 1
        return Case(self.fault if self.number == 2 else lambda: 1, named="name")


def raising(error: BaseException) -> Any:
    def act() -> None:
        raise error

    return act


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (raising(KeyError("x")), "case 2: KeyError"),
        (raising(AssertionError("name")), "case 2: AssertionError"),
        (raising(ValueError("")), "without a message"),
        (raising(ValueError("no")), "does not name the file"),
        (raising(UnicodeDecodeError("utf-8", b"", 0, 1, "name")), "of a parser"),
        (lambda: bytearray(16 << 30), "case 2: MemoryError"),
        (lambda: os.kill(os.getpid(), signal.SIGKILL), "case 2: the process ended with status -9"),
        (lambda: sys.exit(3), "case 2: the process ended with status 1"),
        (lambda: time.sleep(60), "case 2: the process hung"),
    ],
)
def test_faults_are_found(
    fault: Any, told: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    # On a busy machine a case that does nothing can take a while.
    monkeypatch.setattr(runner, "HANGS", 1.0 if "hung" in told else 60.0)
    result = run_cases(Planted(fault), 5, seed=0)
    assert len(result.failures) == 1
    assert told in result.failures[0]
    assert result.tried == 5  # the others are tried all the same


def busy() -> None:
    """Takes some time of the processor; on a busy machine that is more on the clock."""
    began = time.process_time()
    while time.process_time() - began < 0.6:
        pass


def test_slow_cases_and_changed_values_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Planted, "seconds", 0.4)
    monkeypatch.setattr(runner, "HANGS", 5000.0)
    result = run_cases(Planted(busy), 3, seed=0)
    assert result.failures == ["case 2: took 0.6 s"]
    assert fault_in(Case(lambda: [1], fingerprint([1]))) == (False, "")
    refused, fault = fault_in(Case(lambda: [2], fingerprint([1])))
    assert not refused
    assert "not what was saved" in fault


def test_every_bit_is_in_the_fingerprint() -> None:
    net = nn.Linear(2, 2)
    before = fingerprint(net)
    assert fingerprint(net) == before
    net.bias.data[0] = np.nextafter(np.float32(net.bias[0].item()), np.float32(9))
    changed = fingerprint(net)
    net.weight.requires_grad_(False)
    assert len({before, changed, fingerprint(net), fingerprint(net.eval())}) == 4


def test_the_pickles_would_run_code() -> None:
    import pickle

    kind = data_files.Pickles()
    kind.prepare(Path())
    data_files.HARM.clear()
    pickle.loads(kind.contents[0][1])
    assert data_files.HARM
    with pytest.raises(RuntimeError, match="executed"):
        kind._unharmed(data_files.harm)


# --- what they found ------------------------------------------------------------------------------


def forged(value: Any, change: Any, path: Path) -> Path:
    """A file whose header was changed, with a checksum that fits."""
    file = io.BytesIO()
    chainrule.save(value, file)
    header, data = own_files.parts(file.getvalue())
    change(header)
    path.write_bytes(own_files.sealed(json.dumps(header).encode(), data))
    return path


@pytest.mark.parametrize("shape", [[0, 2**64], [2**62, 0, 3], [0, 2**40, 2**40]])
def test_an_empty_tensor_of_a_shape_that_cannot_be(shape: list[int], tmp_path: Path) -> None:
    path = forged(
        chainrule.ones(0), lambda h: h["tensor"].update(shape=shape), tmp_path / "x.safetensors"
    )
    with pytest.raises(ValueError, match=r"load: .*x\.safetensors.* which no tensor can have"):
        chainrule.load(path)


@pytest.mark.parametrize(
    "change",
    [
        lambda h: h.update(__metadata__=5),
        lambda h: h["__metadata__"].update(sha256="\ud800"),
        lambda h: h["tensor"].update(shape={}),
        lambda h: h["tensor"].update(shape=[1] * 100 + [4]),
        lambda h: h["__metadata__"].update(chainrule='{"format":1,"value":{"dict":[1]}}'),
        lambda h: h["__metadata__"].update(chainrule='{"format":1,"value":{"float":"x"}}'),
    ],
)
def test_headers_and_descriptions(change: Any, tmp_path: Path) -> None:
    path = forged(chainrule.ones(4), change, tmp_path / "x.safetensors")
    with pytest.raises(ValueError, match=r"load: .*x\.safetensors"):
        chainrule.load(path)


def test_a_file_that_has_lost_the_names_of_its_checksum_and_its_description(tmp_path: Path) -> None:
    chainrule.save(chainrule.ones(4), tmp_path / "x")
    content = (tmp_path / "x").read_bytes().replace(b'"sha256":', b'"sha257":')
    (tmp_path / "x").write_bytes(content.replace(b'"chainrule":', b'"chainrulf":', 1))
    with pytest.raises(ValueError, match="lacks the checksum"):
        chainrule.load(tmp_path / "x")


def test_a_description_with_a_name_that_no_file_can_have(tmp_path: Path) -> None:
    chainrule.save(nn.Linear(2, 2), tmp_path / "net", folder=True)
    file = tmp_path / "net" / "model.json"
    told = json.loads(file.read_text())
    file.write_bytes(own_files.resealed(json.dumps({**told, "weights": "\ud800"}).encode()))
    with pytest.raises(ValueError, match="is not the name of a file"):
        chainrule.load(tmp_path / "net")


def test_a_pickle_that_asks_for_memory(tmp_path: Path) -> None:
    (tmp_path / "cifar-10-batches-py").mkdir()
    attack = b"\x80\x02}r\x00\x00\x00\x30."  # puts an empty dictionary into the place 2^29 + 2^28
    (tmp_path / "cifar-10-batches-py" / "test_batch").write_bytes(attack)
    with pytest.raises(ValueError, match="into the place 805306368"):
        CIFAR10(tmp_path, train=False)


def test_deeply_nested_lists_take_no_time() -> None:
    nested: Any = [0, 0]
    for _ in range(100):
        nested = [nested]
    began = time.perf_counter()
    with pytest.raises(ValueError, match="dimension"):
        chainrule.tensor(nested)
    assert time.perf_counter() - began < 1


def trainer(width: int = 3) -> train.Trainer:
    chainrule.manual_seed(0)
    net = nn.Linear(2, width)
    return train.Trainer(net, "cross_entropy", optim.Adam(net.parameters()), progress=False)


@pytest.mark.parametrize(
    "change",
    [
        {"epoch": "3"},
        {"epoch": -1},
        {"best": {"value": 1.0, "model": {}}},
        {"history": [3]},
        {"loader": {"x": 1}},
        {"random": None},
        {"stop": chainrule.zeros(2)},
        {"optimizer": {"state": {}, "param_groups": []}},
        {"model": {"weight": chainrule.zeros(1)}},
    ],
    ids=str,
)
def test_a_checkpoint_that_is_refused_changes_nothing(
    change: dict[str, Any], tmp_path: Path
) -> None:
    path, data = tmp_path / "checkpoint", (chainrule.randn(6, 2), chainrule.tensor([0, 1, 2] * 2))
    first = trainer()
    first.fit(data, data, epochs=2, early_stopping=3)
    first.save_checkpoint(path)
    chainrule.save({**chainrule.load(path), **change}, path)
    other = trainer()
    before = fingerprint(dict(other.model.state_dict()))
    with pytest.raises(ValueError, match=r"fit: .*checkpoint"):
        other.fit(data, data, epochs=3, early_stopping=3, resume=path)
    assert fingerprint(dict(other.model.state_dict())) == before
    assert other.epoch == 0
    assert other.optimizer.state_dict()["state"] == {}


def test_panics_of_a_reader_are_refusals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    polars = pytest.importorskip("polars")

    class Panic(BaseException):
        pass

    monkeypatch.setitem(sys.modules, "pyarrow", None)  # which is preferred
    monkeypatch.setattr(polars, "read_parquet", lambda path: raising(Panic("unwrapped"))())
    (tmp_path / "x.parquet").write_bytes(b"PAR1")
    with pytest.raises(REFUSALS, match="x.parquet is not a whole Parquet file"):
        read_table(tmp_path / "x.parquet")

"""Saving and loading: what comes back, what is refused, and what survives a killed process."""

from __future__ import annotations

import json
import threading
import functools
import os
import pickle
import random
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import chainrule
from chainrule import data, files, models, nn, optim


class Mine(nn.Module):
    """A class that chainrule does not know."""

    def __init__(self, width: int):
        super().__init__()
        self.layer = nn.Linear(2, width)

    def forward(self, x: Any) -> Any:
        return self.layer(x)


def networks() -> list[tuple[str, nn.Module, tuple[int, ...]]]:
    shared = nn.Linear(4, 4)
    tied = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4))
    tied[2].weight = tied[0].weight
    return [
        ("linear", nn.Linear(4, 3, dtype=chainrule.float64), (5, 4)),
        ("mlp", models.MLP(4, [8, 8], 3, activation="tanh", dropout=0.1, norm="batch"), (5, 4)),
        ("function", models.MLP(4, [8], 3, activation=nn.functional.gelu), (5, 4)),
        ("class", models.MLP(4, [8], 3, activation=nn.SiLU), (5, 4)),
        ("nested", nn.Sequential(nn.Sequential(nn.Linear(4, 2)), nn.ReLU()), (5, 4)),
        ("shared module", nn.Sequential(shared, nn.ReLU(), shared), (5, 4)),
        ("tied weights", tied, (5, 4)),
        ("lenet", models.LeNet(), (2, 1, 32, 32)),
        ("lstm", nn.Sequential(nn.LSTM(4, 5, num_layers=2, bidirectional=True)), (3, 2, 4)),
    ]


@pytest.mark.parametrize("folder", [False, True])
@pytest.mark.parametrize("label", [n[0] for n in networks()])
def test_a_network_comes_back(tmp_path: Path, label: str, folder: bool) -> None:
    net, shape = next((m, s) for name, m, s in networks() if name == label)
    net.eval()
    path = tmp_path / ("net" if folder else "net.safetensors")
    before = chainrule.get_rng_state()
    chainrule.save(net, path, folder=folder)
    assert bool((chainrule.get_rng_state() == before).all())  # saving draws no random numbers
    other = chainrule.load(path)
    assert str(other) == str(net)
    assert type(other) is type(net)
    assert not other.training
    x = chainrule.randn(*shape, dtype=next(net.parameters()).dtype)
    first = lambda y: y[0] if isinstance(y, tuple) else y  # noqa: E731
    np.testing.assert_array_equal(first(net(x)).detach().numpy(), first(other(x)).detach().numpy())
    names = dict(net.named_parameters())
    assert list(dict(other.named_parameters())) == list(names)


def test_frozen_parameters_modes_and_ties_come_back(tmp_path: Path) -> None:
    net = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.Linear(4, 4))
    net[2].weight = net[0].weight
    net[0].bias.requires_grad_(False)
    net[1].eval()
    chainrule.save(net, tmp_path / "net.safetensors")
    other = chainrule.load(tmp_path / "net.safetensors")
    assert other.training
    assert not other[1].training
    assert other[2].weight is other[0].weight
    assert not other[0].bias.requires_grad
    assert other[0].weight.requires_grad


def test_nested_values_come_back(tmp_path: Path) -> None:
    net = nn.Linear(2, 2)
    optimizer = optim.Adam(net.parameters(), lr=0.1)
    net(chainrule.ones(1, 2)).sum().backward()
    optimizer.step()
    value = {
        "model": net,
        "optimizer": optimizer.state_dict(),
        "numbers": [1, 2.5, float("inf"), True, None, "text", (1, (2,))],
        "by number": {0: chainrule.arange(3), 1: {"deep": chainrule.zeros(0)}},
        "complex": chainrule.tensor([1 + 2j, 3j]),
        "types": chainrule.float64,
        "bool": chainrule.tensor([True, False]),
        "scalar": chainrule.tensor(3.0, dtype=chainrule.float16),
    }
    chainrule.save(value, tmp_path / "all.safetensors")
    back = chainrule.load(tmp_path / "all.safetensors")
    assert back["numbers"] == value["numbers"]
    assert back["by number"][0].tolist() == [0, 1, 2]
    assert back["by number"][1]["deep"].shape == (0,)
    assert back["complex"].tolist() == [1 + 2j, 3j]
    assert back["types"] is chainrule.float64
    assert back["bool"].dtype == chainrule.bool
    assert back["scalar"].dtype == chainrule.float16
    fresh = optim.Adam(net.parameters())
    fresh.load_state_dict(back["optimizer"])
    assert fresh.param_groups[0]["lr"] == 0.1
    assert fresh.state_dict()["state"][0]["step"].item() == 1
    assert float(chainrule.load(tmp_path / "all.safetensors")["numbers"][2]) == float("inf")


def test_a_state_dict_is_a_plain_safetensors_file(tmp_path: Path) -> None:
    net = models.MLP(3, [4], 2)
    chainrule.save(net.state_dict(), tmp_path / "state.safetensors")
    plain = load_file(tmp_path / "state.safetensors")
    assert sorted(plain) == sorted(net.state_dict())
    for name, value in net.state_dict().items():
        np.testing.assert_array_equal(plain[name], value.numpy())


def test_a_state_dict_of_others_loads(tmp_path: Path) -> None:
    arrays = {"weight": np.ones((2, 3), "f4"), "bias": np.zeros(2, "f4")}
    save_file(arrays, tmp_path / "theirs.safetensors")
    state = chainrule.load(tmp_path / "theirs.safetensors")
    net = nn.Linear(3, 2)
    net.load_state_dict(state)
    assert net(chainrule.ones(3)).tolist() == [3, 3]
    other = chainrule.load(tmp_path / "theirs.safetensors", model=nn.Linear(3, 2))
    assert other.weight.tolist() == net.weight.tolist()


def test_classes_of_the_user_are_passed_in(tmp_path: Path) -> None:
    path = tmp_path / "mine.safetensors"
    net = Mine(3)
    chainrule.save(net, path)
    with pytest.raises(ValueError, match=r"uses the class 'Mine'.*classes=\[Mine\]"):
        chainrule.load(path)
    for other in (chainrule.load(path, classes=[Mine]), chainrule.load(path, model=Mine(3))):
        assert other.layer.weight.tolist() == net.layer.weight.tolist()


def test_what_cannot_be_described_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    changed = models.MLP(4, [8], 3)
    changed[1] = nn.Tanh()
    with pytest.raises(ValueError, match="was changed after it was made"):
        chainrule.save(changed, path)
    with pytest.raises(ValueError, match="which a file cannot hold"):
        chainrule.save(models.MLP(4, [8], 3, activation=lambda x: x), path)
    with pytest.raises(ValueError, match="has parametrizations"):
        chainrule.save(nn.utils.parametrizations.weight_norm(nn.Linear(2, 2)), path)
    with pytest.raises(TypeError, match="'a' is a set"):
        chainrule.save({"a": {1, 2}}, path)
    with pytest.raises(TypeError, match="keys are text or numbers"):
        chainrule.save({(1, 2): 3}, path)
    assert not path.exists()


# --- bad files ------------------------------------------------------------------------------------


def test_missing_files(tmp_path: Path) -> None:
    (tmp_path / "here.safetensors").write_bytes(b"")
    with pytest.raises(FileNotFoundError, match=r"no file.*holds here.safetensors"):
        chainrule.load(tmp_path / "gone.safetensors")
    with pytest.raises(FileNotFoundError, match="no folder"):
        chainrule.load(tmp_path / "no" / "gone.safetensors")
    with pytest.raises(FileNotFoundError, match=r"no file .*model.json"):
        chainrule.load(tmp_path)
    with pytest.raises(TypeError, match="expected a path or an open file, got int"):
        chainrule.load(3)  # type: ignore[arg-type]


def test_a_pickle_is_not_executed(tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self) -> Any:
            return os.mkdir, (str(tmp_path / "evil"),)

    (tmp_path / "x.pt").write_bytes(pickle.dumps(Evil()))
    with pytest.raises(ValueError, match="is a pickle"):
        chainrule.load(tmp_path / "x.pt")
    assert not (tmp_path / "evil").exists()


def rewritten(content: bytes, change: Any) -> bytes:
    """A file with its description changed."""
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    told = json.loads(header["__metadata__"]["chainrule"])
    told.pop("checksum", None)
    header["__metadata__"] = {"chainrule": json.dumps(change(told) or told)}  # without a checksum
    new = json.dumps(header).encode()
    return len(new).to_bytes(8, "little") + new + content[8 + size :]


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "net.safetensors"
    chainrule.save(nn.Sequential(nn.Linear(3, 2), nn.ReLU()), path)
    return path


def _module(told: Any) -> Any:
    return told["value"]["module"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.update(format=99), "format 99.*reads up to 1"),
        (lambda t: t.update(format="x"), "not one of chainrule's"),
        (lambda t: t.pop("value"), "not one of chainrule's|damaged"),
        (lambda t: t.update(value={"what": 1}), "unknown kind, 'what'"),
        (lambda t: t.update(value={"tensor": "gone"}), "lacks the tensor 'gone'"),
        (lambda t: _module(t).update({"class": "os.system"}), "no 'os.system' in chainrule"),
        (lambda t: _module(t).update({"class": "nn.functional.relu"}), "not a class of modules"),
        (lambda t: _module(t).update({"class": "nn.Module.__subclasses__"}), "no 'nn.Module"),
        (lambda t: _module(t).update({"class": "chainrule.load"}), "not a class|neither"),
        (lambda t: _module(t).pop("class"), "damaged|cannot be made"),
        (lambda t: _module(t)["state"].pop(), "Missing key"),
        (
            lambda t: _module(t)["children"][0][1].update(args=[10**6, 10**6]),
            "larger than the weights",
        ),
        (lambda t: _module(t)["children"][0][1].update(args=[-1, 2]), "cannot be made"),
        (lambda t: _module(t)["children"][0][1].update(args=["a", "b"]), "cannot be made"),
        (lambda t: _module(t)["children"][0][1].update(args=[4, 2]), "does not fit.*size mismatch"),
        (
            lambda t: (
                _module(t).update({"class": "nn.LSTM", "args": [1, 1, 10**9], "kwargs": {}})
                or _module(t).pop("children")
            ),
            "larger than the weights|cannot be made",
        ),
    ],
)
def test_hostile_descriptions(saved: Path, change: Any, message: str) -> None:
    saved.write_bytes(rewritten(saved.read_bytes(), lambda t: change(t) and None))
    with pytest.raises(ValueError, match=f"(?s){message}"):
        chainrule.load(saved)


@pytest.mark.parametrize("folder", [False, True])
def test_every_changed_byte_of_the_weights_is_noticed(tmp_path: Path, folder: bool) -> None:
    path = tmp_path / "net"
    chainrule.save(nn.Linear(3, 2), path, folder=folder)
    file = next(path.glob("weights-*")) if folder else path
    content = file.read_bytes()
    for at in range(len(content)):
        file.write_bytes(content[:at] + bytes([content[at] ^ 4]) + content[at + 1 :])
        with pytest.raises(ValueError, match=r"load: .*(damaged|not a whole|cannot be read)"):
            chainrule.load(path)
    file.write_bytes(content)
    chainrule.load(path)


def test_truncated_and_flipped_files_without_checksum_are_refused_or_load(
    saved: Path, tmp_path: Path
) -> None:
    """Nothing but a ValueError: files of others have no checksum, so a flip may load."""
    content = rewritten(saved.read_bytes(), lambda told: told)
    chance = random.Random(0)
    bad = tmp_path / "bad.safetensors"
    refused = 0
    for _ in range(300):
        if chance.random() < 0.5:
            broken = content[: chance.randrange(len(content))]
        else:
            at = chance.randrange(len(content))
            broken = content[:at] + bytes([chance.randrange(256)]) + content[at + 1 :]
        bad.write_bytes(broken)
        try:
            chainrule.load(bad)
        except ValueError as error:
            refused += 1
            assert "load:" in str(error)  # noqa: PT017
    assert refused > 150


def test_random_bytes_are_refused(tmp_path: Path) -> None:
    chance = random.Random(1)
    for size in (0, 1, 7, 8, 9, 64, 1000):
        (tmp_path / "x").write_bytes(chance.randbytes(size))
        with pytest.raises(ValueError, match="not a whole safetensors file"):
            chainrule.load(tmp_path / "x")


def test_a_folder_that_points_elsewhere_is_refused(tmp_path: Path) -> None:
    chainrule.save(nn.Linear(2, 2), tmp_path / "net", folder=True)
    description = tmp_path / "net" / "model.json"
    told = json.loads(description.read_text())
    told["weights"] = "../../secret"
    description.write_text(json.dumps(told))
    with pytest.raises(ValueError, match="does not name a file with weights"):
        chainrule.load(tmp_path / "net")


def test_a_folder_is_read_in_the_memory_of_its_description(tmp_path: Path) -> None:
    chainrule.save(nn.Linear(2, 2), tmp_path / "net", folder=True)
    tracemalloc.start()
    try:
        chainrule.load(tmp_path / "net")
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()
    with (tmp_path / "net" / "model.json").open("ab") as file:
        file.truncate(100_000_001)
    with pytest.raises(ValueError, match="has 100,000,001 bytes; a description has at most"):
        chainrule.load(tmp_path / "net")


def test_deep_nesting_is_refused(saved: Path) -> None:
    deep: Any = 1
    for _ in range(5000):
        deep = [deep]
    content = saved.read_bytes()
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    text = '{"format": 1, "value": ' + "[" * 5000 + "1" + "]" * 5000 + "}"
    header["__metadata__"] = {"chainrule": text}
    new = json.dumps(header).encode()
    saved.write_bytes(len(new).to_bytes(8, "little") + new + content[8 + size :])
    with pytest.raises(ValueError, match="damaged"):
        chainrule.load(saved)


# --- atomic ---------------------------------------------------------------------------------------


def test_a_failed_save_leaves_the_old_file(tmp_path: Path, monkeypatch: Any) -> None:
    path = tmp_path / "x.safetensors"
    chainrule.save({"a": 1}, path)

    def full(*args: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left on device; the file was not changed"):
        chainrule.save({"a": 2}, path)
    monkeypatch.undo()
    assert chainrule.load(path) == {"a": 1}
    assert [p.name for p in tmp_path.iterdir()] == ["x.safetensors"]


def test_what_stands_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="cannot write|is a file"):
        chainrule.save({}, tmp_path / "file" / "x.safetensors")
    with pytest.raises(NotADirectoryError, match="is a file"):
        chainrule.save({}, tmp_path / "file", folder=True)
    with pytest.raises(IsADirectoryError, match="is a folder"):
        chainrule.save({}, tmp_path, folder=False)


def test_description_of_a_file(saved: Path) -> None:
    told = files.describe_file(saved)
    assert (told["format"], told["tensors"], told["elements"]) == (1, 2, 8)


def test_transforms_that_are_not_fitted_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    inside = data.Pipeline(data.MinMaxScaler(), data.StandardScaler())
    for model, place in (
        (data.StandardScaler(), "the value, a StandardScaler,"),
        (nn.Sequential(data.StandardScaler(), nn.Linear(2, 1)), "'0', a StandardScaler,"),
        ({"network": nn.Sequential(nn.Linear(2, 2), inside)}, "'network.1.0', a MinMaxScaler,"),
    ):
        with pytest.raises(ValueError, match=rf"{place} is not fitted; call fit\(x\)"):
            chainrule.save(model, path)
    assert not path.exists()
    chainrule.save(nn.Sequential(inside.fit(chainrule.rand(5, 2)), nn.Linear(2, 1)), path)
    assert chainrule.load(path)[0].is_fitted


# --- folders --------------------------------------------------------------------------------------


def test_files_of_the_user_stay_in_the_folder(tmp_path: Path) -> None:
    names = ["weights-best.safetensors", "weights-0123456789ab.safetensors", "notes.txt"]
    for name in names:
        (tmp_path / name).write_bytes(b"mine")
    for seed in range(3):
        chainrule.manual_seed(seed)
        chainrule.save(nn.Linear(2, 2), tmp_path)
    assert all((tmp_path / name).read_bytes() == b"mine" for name in names)
    assert len(list(tmp_path.iterdir())) == len(names) + 2  # model.json and its weights


def test_many_writers_and_readers_of_one_folder(tmp_path: Path) -> None:
    nets = [nn.Linear(3, 3) for _ in range(4)]
    sums = {float(net.weight.detach().sum()) for net in nets}
    folder = tmp_path / "net"
    chainrule.save(nets[0], folder, folder=True)
    failed: list[BaseException] = []

    def guarded(act: Callable[[], None]) -> Callable[[], None]:
        def run() -> None:
            try:
                for _ in range(25):
                    act()
            except BaseException as error:
                failed.append(error)
                raise

        return run

    def read() -> None:
        assert float(chainrule.load(folder).weight.detach().sum()) in sums

    acts = [guarded(functools.partial(chainrule.save, net, folder)) for net in nets]
    threads = [threading.Thread(target=act) for act in (*acts, guarded(read), guarded(read))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert failed == []
    read()
    assert len(list(folder.iterdir())) == 2
    assert chainrule.zeros(1000, 1000).numel() == 10**6  # no limit of a load is left behind


# --- what was saved can be loaded -----------------------------------------------------------------


def test_a_tensor_may_have_any_name(tmp_path: Path) -> None:
    state = {"__metadata__": chainrule.ones(2), "sha256": chainrule.zeros(1), "": chainrule.ones(1)}
    chainrule.save(state, tmp_path / "x")
    back = chainrule.load(tmp_path / "x")
    assert {k: v.tolist() for k, v in back.items()} == {k: v.tolist() for k, v in state.items()}


class Masked(nn.Module):
    """A layer with a large buffer that is not saved."""

    def __init__(self, size: int):
        super().__init__()
        self.layer = nn.Linear(2, 2)
        mask = chainrule.ones(size, size).tril().bool()
        self.register_buffer("mask", mask, persistent=False)


def test_large_buffers_that_are_not_saved(tmp_path: Path) -> None:
    chainrule.save(Masked(2048), tmp_path / "net")
    back = chainrule.load(tmp_path / "net", classes=[Masked])
    assert int(back.mask.sum()) == 2048 * 2049 // 2


def test_a_rebuilt_model_has_the_buffers_that_its_initializers_fill(tmp_path: Path) -> None:
    """Only parameters are left to the file."""
    net = nn.Sequential(nn.BatchNorm1d(3), nn.Linear(3, 3))
    state = {k: v.clone() for k, v in net.state_dict().items()}
    chainrule.save(net, tmp_path / "net")
    back = chainrule.load(tmp_path / "net").state_dict()
    assert {k: v.tolist() for k, v in back.items()} == {k: v.tolist() for k, v in state.items()}


@pytest.mark.skipif(os.name == "nt", reason="devices and pipes of POSIX")
def test_what_is_no_file_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "model.json").symlink_to("/dev/zero")
    for path in ("/dev/zero", tmp_path / "pipe", tmp_path / "net"):
        with pytest.raises(ValueError, match="is not a file but a device, a pipe or a folder"):
            chainrule.load(path)
    (tmp_path / "net" / ".x.0123456789ab.staged").touch()  # as a killed writer leaves it
    with pytest.raises(ValueError, match="is not a file but a device, a pipe or a folder"):
        chainrule.load(tmp_path / "net")


LAYER = {"module": {"class": "nn.TransformerEncoderLayer", "args": [2, 1], "kwargs": {}}}


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("nn.Transformer", [2, 1, 10**9, 1]),
        (
            "nn.TransformerEncoder",
            [
                {"module": {"class": "nn.TransformerEncoderLayer", "args": [2, 1], "kwargs": {}}},
                10**9,
            ],
        ),
        ("nn.GRU", [1, 1, 10**9]),
        ("nn.Linear", [10**400, 1]),
        ("nn.Conv2d", [1, 1, 10**200]),
        ("nn.Embedding", [2**62, 2**62]),
        ("models.MLP", [1, {"dict": []}, 1]),
        ("models.MLP", [1, [1] * 100_000, 1]),
        ("nn.Dropout", [float("1e308")]),
        ("nn.Identity", [[[[[[]]]]]]),
    ],
)
def test_descriptions_that_ask_for_much_are_refused_soon(
    saved: Path, name: str, args: list[Any]
) -> None:
    def change(told: Any) -> None:
        told["value"]["module"].update({"class": name, "args": args, "kwargs": {}})
        told["value"]["module"].pop("children")

    saved.write_bytes(rewritten(saved.read_bytes(), lambda told: change(told)))
    start = time.monotonic()
    with pytest.raises(ValueError, match="load: "):
        chainrule.load(saved)
    assert time.monotonic() - start < 60

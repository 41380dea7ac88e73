"""CIFAR from files of both kinds."""

from __future__ import annotations

import os
import pickle
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import assert_close
from data.image_files import python, write_cifar

from chainrule.data import CIFAR10, CIFAR100, DataLoader, DatasetError


def numbers(*shape: int, seed: int = 0, high: int = 256) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, high, shape).astype(np.uint8)


def batch(cifar: type, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    return numbers(n, 3072, seed=seed), numbers(n, seed=seed + 9, high=len(cifar.classes))


def binary(cifar: Any, x: np.ndarray, y: np.ndarray) -> bytes:
    coarse = [y[:, None] // 5] if cifar is CIFAR100 else []
    return np.concatenate([*coarse, y[:, None], x], 1).astype(np.uint8).tobytes()


@pytest.mark.parametrize("cifar", [CIFAR10, CIFAR100])
@pytest.mark.parametrize("version", ["binary", "python"])
@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("place", [".", "sub"])
def test_cifar(tmp_path: Path, cifar: Any, version: str, packed: bool, place: str) -> None:
    root = tmp_path if place == "." else tmp_path / cifar.folder_names[0]
    x, y = write_cifar(root, cifar, version, packed)
    train = cifar(tmp_path)
    assert_close(train.data, x.reshape(-1, 3, 32, 32))
    assert train.targets.tolist() == y.tolist()
    assert train[1][0].shape == (3, 32, 32)
    assert len(cifar(tmp_path, train=False)) == 4
    images, labels = next(iter(DataLoader(train, batch_size=3)))
    assert images.shape == (3, 3, 32, 32)
    assert labels.tolist() == y[:3].tolist()


def test_the_binary_version_is_preferred(tmp_path: Path) -> None:
    write_cifar(tmp_path, CIFAR10, "binary", False)
    (tmp_path / "cifar-10-python.tar.gz").write_bytes(b"not read")
    assert len(CIFAR10(tmp_path)) == 20
    assert len(CIFAR10.classes) == 10
    assert len(CIFAR100.classes) == 100
    assert sorted(CIFAR100.classes) == list(CIFAR100.classes)


def test_arrays_by_columns(tmp_path: Path) -> None:
    write_cifar(tmp_path, CIFAR10, "python", False)
    x, y = batch(CIFAR10, 4, 0)
    file = tmp_path / CIFAR10.python_folder / "test_batch"
    file.write_bytes(python(CIFAR10, np.asfortranarray(x), y))
    assert_close(CIFAR10(tmp_path, train=False).data, x.reshape(-1, 3, 32, 32))


class Hostile:
    """Would run a command when unpickled."""

    def __init__(self, *call: Any):
        self.call = call

    def __reduce__(self) -> Any:
        return self.call[0], self.call[1:]


@pytest.mark.parametrize(
    "call", [(os.system, "touch {}"), (eval, "open('{}', 'w')"), (open, "{}", "w"), (np.save, "{}")]
)
def test_a_pickle_executes_nothing(tmp_path: Path, call: Any) -> None:
    write_cifar(tmp_path, CIFAR10, "python", False)
    mark = tmp_path / "executed"
    told = {"data": Hostile(call[0], *[str(a).format(mark) for a in call[1:]]), "labels": [1]}
    file = tmp_path / CIFAR10.python_folder / "test_batch"
    file.write_bytes(pickle.dumps(told, 2))
    with pytest.raises(DatasetError, match="test_batch .*it asks for .*nothing was executed"):
        CIFAR10(tmp_path, train=False)
    assert not mark.exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "pickle exhausted"),
        (b"garbage", "is not a batch of the Python version"),
        (pickle.dumps([1, 2], 2), "is not a batch of the Python version"),
        (pickle.dumps({"data": 3, "labels": [1]}, 2), "is not a batch of the Python version"),
    ],
    ids=["empty", "garbage", "list", "number"],
)
def test_damaged_pickles(tmp_path: Path, content: bytes, message: str) -> None:
    write_cifar(tmp_path, CIFAR10, "python", False)
    (tmp_path / CIFAR10.python_folder / "test_batch").write_bytes(content)
    with pytest.raises(DatasetError, match=message):
        CIFAR10(tmp_path, train=False)


def test_pickles_of_other_arrays(tmp_path: Path) -> None:
    write_cifar(tmp_path, CIFAR10, "python", False)
    file = tmp_path / CIFAR10.python_folder / "test_batch"
    x, y = batch(CIFAR10, 4, 0)
    for wrong, labels, message in (
        (x.astype(np.float32), y, "not one of bytes in rows"),
        (x[:, :100], y, "400 bytes of pixels for 4 labels"),
        (x, y[:2], "12,288 bytes of pixels for 2 labels"),
        (x, y + 10, "holds the class"),
    ):
        file.write_bytes(python(CIFAR10, wrong, labels))
        with pytest.raises(DatasetError, match=f"CIFAR10: .*test_batch.*{message}"):
            CIFAR10(tmp_path, train=False)


def test_damaged_cifar(tmp_path: Path) -> None:
    write_cifar(tmp_path / "a", CIFAR10, "binary", False)
    folder = tmp_path / "a" / CIFAR10.binary_folder
    file = folder / "data_batch_3.bin"
    whole = file.read_bytes()
    file.write_bytes(whole[:-5])
    with pytest.raises(DatasetError, match=r"data_batch_3.bin is not complete: 12,287 bytes"):
        CIFAR10(tmp_path / "a")
    file.write_bytes(b"\xff" + whole[1:])
    with pytest.raises(DatasetError, match=r"data_batch_3.bin holds the class 255; there are 10"):
        CIFAR10(tmp_path / "a")
    file.unlink()
    with pytest.raises(FileNotFoundError, match=r"data_batch_3.bin is missing, though its compan"):
        CIFAR10(tmp_path / "a")
    write_cifar(tmp_path / "b", CIFAR100, "binary", True)
    archive = tmp_path / "b" / "cifar-100-binary.tar.gz"
    archive.write_bytes(archive.read_bytes()[:-1000])
    with pytest.raises(DatasetError, match=r"CIFAR100: .*binary.tar.gz is damaged or not complete"):
        CIFAR100(tmp_path / "b")
    with tarfile.open(archive, "w:gz"):
        pass
    with pytest.raises(DatasetError, match=r"does not hold cifar-100-binary/train.bin"):
        CIFAR100(tmp_path / "b")

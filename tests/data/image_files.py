"""Files of data sets of images, small ones."""

from __future__ import annotations

import gzip
import io
import pickle
import tarfile
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from chainrule.data import CIFAR100


def numbers(*shape: int, seed: int = 0, high: int = 256) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, high, shape).astype(np.uint8)


def idx(array: np.ndarray) -> bytes:
    sizes = b"".join(n.to_bytes(4, "big") for n in array.shape)
    return bytes([0, 0, 8, array.ndim]) + sizes + array.tobytes()


def write_mnist(folder: Path, n: int = 12, zipped: bool = True, part: str = "train") -> Any:
    """A small dataset in MNIST's format."""
    folder.mkdir(parents=True, exist_ok=True)
    x, y = numbers(n, 28, 28), numbers(n, seed=1, high=10)
    for name, array in (("images-idx3", x), ("labels-idx1", y)):
        content = idx(array)
        name = f"{part}-{name}-ubyte" + (".gz" if zipped else "")
        (folder / name).write_bytes(gzip.compress(content) if zipped else content)
    return x, y


class Python2(pickle._Pickler):
    """Pickles text and bytes as Python 2 did, in which CIFAR's files were made."""

    dispatch: ClassVar[Any] = dict(pickle._Pickler.dispatch)

    def save_text(self, value: Any) -> None:
        content = value.encode("latin1") if isinstance(value, str) else value
        self.write(pickle.BINSTRING + len(content).to_bytes(4, "little") + content)

    dispatch[str] = dispatch[bytes] = save_text


def batch(cifar: type, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    return numbers(n, 3072, seed=seed), numbers(n, seed=seed + 9, high=len(cifar.classes))


def binary(cifar: Any, x: np.ndarray, y: np.ndarray) -> bytes:
    coarse = [y[:, None] // 5] if cifar is CIFAR100 else []
    return np.concatenate([*coarse, y[:, None], x], 1).astype(np.uint8).tobytes()


def python(cifar: Any, x: np.ndarray, y: np.ndarray) -> bytes:
    told = {
        "data": x,
        cifar.label_key: y.tolist(),
        "batch_label": "batch 1 of 5",
        "filenames": [f"{i}.png" for i in range(len(y))],
    }
    buffer = io.BytesIO()
    Python2(buffer, 2).dump(told)
    return buffer.getvalue()


def write_cifar(root: Path, cifar: Any, version: str, packed: bool) -> Any:
    """Small files of both parts; returns the images and labels to train with."""
    folder = cifar.binary_folder if version == "binary" else cifar.python_folder
    write, ending = (binary, ".bin") if version == "binary" else (python, "")
    files, parts = {}, []
    for i, name in enumerate((*cifar.train_files, *cifar.test_files)):
        parts.append(batch(cifar, 4, i))
        files[f"{folder}/{name}{ending}"] = write(cifar, *parts[-1])
    if packed:
        root.mkdir(parents=True, exist_ok=True)
        archive = next(a for a in cifar.archives if version in a)
        with tarfile.open(root / archive, "w:gz") as tar:
            for name, content in files.items():
                info = tarfile.TarInfo(name)
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
    else:
        (root / folder).mkdir(parents=True)
        for name, content in files.items():
            (root / name).write_bytes(content)
    train = parts[: len(cifar.train_files)]
    return np.concatenate([x for x, _ in train]), np.concatenate([y for _, y in train])

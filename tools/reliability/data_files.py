"""Files of data: tables, pictures, sets of pictures, and pickles, of which nothing is executed."""

from __future__ import annotations

import gzip
import io
import json
import os
import pickle
import random
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import chainrule
from chainrule.data import CIFAR10, MNIST, read_image, read_table
from reliability.cases import Case, Kind
from reliability.mutate import changed_bytes

__all__ = ["KINDS"]

HARMLESS = "refused, or a value of the documented kinds; bounded time and memory"


class _Files(Kind):
    """Files that hold no checksum: name and content of each, and what reads them."""

    rule = HARMLESS
    read: Callable[[Path], Any]

    def files(self) -> list[tuple[str, bytes]]:
        """The good ones."""
        raise NotImplementedError

    def prepare(self, folder: Path) -> None:
        """Makes them."""
        self.contents = self.files()
        self.all = [content for _, content in self.contents]

    def case(self, r: random.Random, folder: Path) -> Case:
        """Bytes of one of them changed."""
        name, content = r.choice(self.contents)
        path = folder / name
        path.write_bytes(changed_bytes(r, content, self.all))
        return Case(lambda: self.checked(self.read(path)), None, path.name)

    def checked(self, value: Any) -> Any:
        """What was read, if it is whole in itself."""
        return value


# --- tables ---------------------------------------------------------------------------------------

ROWS = [
    ["name", "age", "city", "score"],
    ["Ann", "31", "Oslo", "1.5"],
    ["Bob", "", 'a "quoted", one', "-2e3"],
    ["Čeněk", "45", "São Paulo", "nan"],
    ["D", "7", "line\nbreak", "0.25"],
]


def _text(delimiter: str, end: str = "\n", comma: bool = False) -> str:
    lines = []
    for row in ROWS * 3:
        cells = [c.replace(".", ",") if comma else c for c in row]
        quoted = [
            '"' + c.replace('"', '""') + '"' if any(x in c for x in '",;\t|\n') else c
            for c in cells
        ]
        lines.append(delimiter.join(quoted))
    return end.join(lines) + end


class Tables(_Files):
    name = "tables as text"
    read = staticmethod(read_table)

    def files(self) -> list[tuple[str, bytes]]:
        """With all separators, and in other codes of letters."""
        wide = ",".join(f"c{i}" for i in range(60)) + "\n" + ",".join("1" * 60) + "\n"
        return [
            ("a.csv", _text(",").encode()),
            ("b.csv", _text(";", comma=True).encode("utf-8-sig")),
            ("c.tsv", _text("\t", "\r\n").encode()),
            ("d.csv", _text("|", "\r").encode()),
            ("e.csv", "\n".join(f"{i},{i * i},{i / 7}" for i in range(50)).encode()),
            ("f.csv", wide.encode()),
        ]

    def checked(self, value: Any) -> Any:
        """All columns are of one length, and of a kind that is known."""
        for column in value:
            if len(column.values) != len(value) or column.kind not in (
                "number",
                "category",
                "date",
                "mixed",
            ):
                raise RuntimeError(f"the column {column.name!r} is not whole")
        return value


class Json(Tables):
    name = "tables as JSON"

    def files(self) -> list[tuple[str, bytes]]:
        """An object in each line, and a list of objects."""
        objects = [dict(zip(ROWS[0], [*row[:1], None, True, 2.5], strict=True)) for row in ROWS]
        lines = "\n".join(json.dumps(o) for o in objects)
        return [("a.jsonl", lines.encode()), ("b.json", json.dumps(objects).encode())]


class Parquet(Tables):
    name = "tables as Parquet"

    def begin(self) -> None:
        """Silences Polars, which prints where it panics."""
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)

    def files(self) -> list[tuple[str, bytes]]:
        """One with numbers, text and gaps, in two compressions."""
        # In another process: what Polars has begun in this one does not live in a fork of it.
        with tempfile.TemporaryDirectory() as home:
            subprocess.run([sys.executable, "-c", WRITE_PARQUET, home], check=True)
            return [(path.name, path.read_bytes()) for path in sorted(Path(home).iterdir())]


WRITE_PARQUET = """
import sys, polars
frame = polars.DataFrame({"a": [1, 2, None], "b": ["x", None, "z"], "c": [0.5, 1.5, 2.5]})
for kind in ("uncompressed", "zstd"):
    frame.write_parquet(f"{sys.argv[1]}/{kind}.parquet", compression=kind)
"""


# --- pictures -------------------------------------------------------------------------------------


class Pictures(_Files):
    name = "pictures"
    read = staticmethod(read_image)

    def files(self) -> list[tuple[str, bytes]]:
        """Small ones in all formats that are read from folders of pictures."""
        from PIL import Image

        pixels = np.random.default_rng(0).integers(0, 256, (9, 11, 3)).astype(np.uint8)
        image = Image.fromarray(pixels)
        wide = Image.fromarray(pixels[..., 0].astype(np.uint16) * 257)
        found = []
        for ending in ("png", "jpeg", "bmp", "tiff", "webp", "ppm", "gif"):
            file = io.BytesIO()
            image.save(file, ending)
            found.append((f"image.{ending}", file.getvalue()))
        for other, name in ((wide, "wide"), (image.convert("P"), "palette")):
            file = io.BytesIO()
            other.save(file, "png")
            found.append((f"{name}.png", file.getvalue()))
        return found

    def checked(self, value: Any) -> Any:
        """Three channels of bytes."""
        if value.ndim != 3 or value.shape[0] != 3 or value.dtype is not chainrule.uint8:
            raise RuntimeError(f"a picture of shape {tuple(value.shape)}, {value.dtype}")
        return value


# --- sets of pictures -----------------------------------------------------------------------------


class _Set(Kind):
    """A set of pictures in a folder, one of whose files is damaged."""

    rule = HARMLESS
    make: Callable[[Path], Any]

    def versions(self) -> list[dict[str, bytes]]:
        """The files of each version of the set, by their paths."""
        raise NotImplementedError

    def prepare(self, folder: Path) -> None:
        """Makes them."""
        self.sets = self.versions()
        self.all = [content for files in self.sets for content in files.values()]

    def case(self, r: random.Random, folder: Path) -> Case:
        """Bytes of one file changed, in what it is packed in or before that."""
        files = dict(r.choice(self.sets))
        name = r.choice(list(files))
        if name.endswith(".gz") and r.random() < 0.5:
            content = gzip.decompress(files[name])
            files[name] = gzip.compress(changed_bytes(r, content, self.all), 1)
        else:
            files[name] = changed_bytes(r, files[name], self.all)
        home = folder / "set"
        shutil.rmtree(home, ignore_errors=True)
        for path, content in files.items():
            (home / path).parent.mkdir(parents=True, exist_ok=True)
            (home / path).write_bytes(content)
        return Case(lambda: self._checked(type(self).make(home)), None, home.name)

    def _checked(self, images: Any) -> Any:
        if len(images.data) != len(images.targets):
            raise RuntimeError(f"{len(images.data)} images with {len(images.targets)} classes")
        return images


def _bytes(*shape: int, high: int = 256) -> np.ndarray:
    return np.random.default_rng(1).integers(0, high, shape).astype(np.uint8)


class Mnist(_Set):
    name = "MNIST (idx, gzip)"
    make = MNIST

    def versions(self) -> list[dict[str, bytes]]:
        """Compressed and not."""
        plain = {}
        for name, array in (
            ("images-idx3", _bytes(3, 28, 28)),
            ("labels-idx1", _bytes(3, high=10)),
        ):
            sizes = b"".join(n.to_bytes(4, "big") for n in array.shape)
            content = bytes([0, 0, 8, array.ndim]) + sizes + array.tobytes()
            plain[f"train-{name}-ubyte"] = content
        return [plain, {f"{name}.gz": gzip.compress(c) for name, c in plain.items()}]


class Cifar(_Set):
    name = "CIFAR-10 (binary, pickle, tar)"

    @staticmethod
    def make(path: Path) -> CIFAR10:
        """The part to test with, which is one file."""
        return CIFAR10(path, train=False)

    def versions(self) -> list[dict[str, bytes]]:
        """Binary and Python version, packed and not."""
        x, y = _bytes(2, 3072), _bytes(2, high=10)
        binary = np.concatenate([y[:, None], x], 1).tobytes()
        told = {"data": x, "labels": y.tolist(), "batch_label": "test"}
        python = pickle.dumps(told, 2)
        return [
            {"cifar-10-batches-bin/test_batch.bin": binary},
            {"cifar-10-batches-py/test_batch": python},
            {"cifar-10-binary.tar.gz": _packed("cifar-10-batches-bin/test_batch.bin", binary)},
            {"cifar-10-python.tar.gz": _packed("cifar-10-batches-py/test_batch", python)},
        ]


def _packed(name: str, content: bytes) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as tar:
        member = tarfile.TarInfo(name)
        member.size = len(content)
        tar.addfile(member, io.BytesIO(content))
    return file.getvalue()


# --- pickles --------------------------------------------------------------------------------------


class Pickles(_Files):
    name = "pickles that run code"
    rule = "refused, and nothing was executed"

    def files(self) -> list[tuple[str, bytes]]:
        """Pickles of all versions, alone and in PyTorch's zip, and as a batch of CIFAR."""
        import zipfile

        found = [(f"p{n}.pt", pickle.dumps(self._attack(), n)) for n in range(6)]
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as packed:
            packed.writestr("archive/data.pkl", pickle.dumps(self._attack(), 2))
        return [*found, ("zip.pt", file.getvalue())]

    def _attack(self) -> Any:
        return {"data": _Attack(), "labels": [1]}

    def case(self, r: random.Random, folder: Path) -> Case:
        """One of them, changed or not, as a file and as a batch of CIFAR's."""
        name, content = r.choice(self.contents)
        if r.random() < 0.5:
            content = changed_bytes(r, content, self.all)
        if r.random() < 0.5:
            path = folder / name
            path.write_bytes(content)
            return Case(lambda: self._unharmed(lambda: chainrule.load(path)), None, path.name)
        home = folder / "cifar-10-batches-py"
        home.mkdir(exist_ok=True)
        (home / "test_batch").write_bytes(content)
        return Case(lambda: self._unharmed(lambda: CIFAR10(folder, train=False)), None, home.name)

    def _unharmed(self, read: Callable[[], Any]) -> Any:
        HARM.clear()
        try:
            return read()
        finally:
            if HARM:
                raise RuntimeError("code in the file was executed")


HARM: list[str] = []


def harm() -> None:
    """What the pickles call: notes that it was called."""
    HARM.append("code in a file was executed")


class _Attack:
    """A pickle of this runs a function as soon as it is read."""

    def __reduce__(self) -> Any:
        return harm, ()


KINDS: tuple[type[Kind], ...] = (Tables, Json, Parquet, Pictures, Mnist, Cifar, Pickles)

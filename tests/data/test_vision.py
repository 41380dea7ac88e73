"""Datasets of pictures from their files, and files from the network (a server on this machine)."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import pickle
import subprocess
import sys
import tarfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from helpers import assert_close

import chainrule
from chainrule import data
from chainrule.data import (
    CIFAR10,
    CIFAR100,
    MNIST,
    DataLoader,
    DatasetError,
    DownloadError,
    FashionMNIST,
    ImageError,
    ImageFolder,
    ImageNet,
    Subset,
    download,
    transforms,
    write_image,
)

REAL = Path(__file__).parents[3] / "shared" / "data"  # beside the repository, on some machines
TRAIN = (5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949)
TEST = (980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009)


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


# --- MNIST ----------------------------------------------------------------------------------------


@pytest.mark.skipif(not REAL.is_dir(), reason="the files of MNIST are not on this machine")
def test_the_real_mnist() -> None:
    """Errata 114 and 115: 60,000 images to train, classes of different size, gray levels."""
    train, test = MNIST(REAL), MNIST(REAL, train=False)
    assert train.data.shape == (60000, 28, 28)
    assert test.data.shape == (10000, 28, 28)
    assert tuple(train.targets.bincount().tolist()) == TRAIN
    assert tuple(test.targets.bincount().tolist()) == TEST
    assert (min(TRAIN), max(TRAIN), min(TEST), max(TEST)) == (5421, 6742, 892, 1135)
    assert len(train.data[:2000].unique()) == 256
    assert abs(train.data.numpy().mean() / 255 - 0.1307) < 1e-4
    loader = DataLoader(MNIST(REAL, transform=transforms.ToTensor()), batch_size=1000)
    x, y = next(iter(loader))
    assert_close(x, train.data[:1000, None].numpy().astype(np.float32) / 255)
    assert y.tolist() == train.targets[:1000].tolist()


@pytest.mark.parametrize(
    ("cls", "counts"), [(FashionMNIST, TEST), (MNIST, (1000,) * 10)], ids=["fashion", "mnist"]
)
def test_the_files_of_another_dataset_are_refused(tmp_path: Path, cls: Any, counts: Any) -> None:
    write_mnist(tmp_path, 10_000, zipped=False, part="t10k")
    labels = np.repeat(np.arange(10, dtype=np.uint8), counts)
    (tmp_path / "t10k-labels-idx1-ubyte").write_bytes(idx(labels))
    with pytest.raises(DatasetError, match="is a file of another dataset, by how often each class"):
        cls(tmp_path, train=False)
    assert len((MNIST if cls is FashionMNIST else FashionMNIST)(tmp_path, train=False)) == 10_000


@pytest.mark.parametrize("place", ["MNIST/raw", "MNIST", "mnist", "mnist/raw", "."])
@pytest.mark.parametrize("zipped", [True, False])
def test_mnist_is_found(tmp_path: Path, place: str, zipped: bool) -> None:
    x, y = write_mnist(tmp_path / place, zipped=zipped)
    mnist = MNIST(tmp_path)
    assert_close(mnist.data, x)
    assert mnist.targets.dtype is chainrule.int64
    assert mnist.targets.tolist() == y.tolist()


def test_other_spellings_and_fashion(tmp_path: Path) -> None:
    x, _ = write_mnist(tmp_path / "fashion-mnist", 5, zipped=False, part="t10k")
    for file in list((tmp_path / "fashion-mnist").iterdir()):
        file.rename(file.with_name(file.name.replace("-idx", ".idx")))
    fashion = FashionMNIST(tmp_path, train=False)
    assert_close(fashion.data, x)
    assert fashion.classes[9] == "Ankle boot"
    assert fashion.class_to_idx["Trouser"] == 1
    assert repr(fashion) == "FashionMNIST(5 images of shape (1, 28, 28))"


def test_the_environment_names_the_folder(tmp_path: Path, monkeypatch: Any) -> None:
    write_mnist(tmp_path / "mnist")
    monkeypatch.setenv("CHAINRULE_DATA", str(tmp_path))
    assert len(MNIST()) == 12
    monkeypatch.delenv("CHAINRULE_DATA")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"not found in data/MNIST/raw"):
        MNIST()


def test_samples_batches_and_transforms(tmp_path: Path) -> None:
    x, y = write_mnist(tmp_path)
    plain = MNIST(tmp_path)
    image, target = plain[3]
    assert image.dtype is chainrule.uint8
    assert image.shape == (1, 28, 28)
    assert type(target) is int
    assert target == y[3]
    assert plain.in_memory
    changed = MNIST(
        tmp_path, transform=lambda image: image[0, :2, :2].float(), target_transform=lambda t: t % 2
    )
    assert not changed.in_memory
    image, target = changed[-1]
    assert_close(image, x[-1, :2, :2].astype(np.float32))
    assert target == y[-1] % 2
    batch = next(iter(DataLoader(changed, batch_size=5)))
    assert batch[0].shape == (5, 2, 2)
    assert batch[1].tolist() == (y[:5] % 2).tolist()


def test_batches_are_read_at_once(tmp_path: Path, monkeypatch: Any) -> None:
    """Whole batches go through a transform that takes them; the result is that of samples."""
    _, y = write_mnist(tmp_path)
    normal = transforms.Compose([transforms.ToTensor(), transforms.Normalize(0.5, 0.5)])
    mnist = MNIST(tmp_path, transform=normal)
    samples = np.stack([mnist[i][0].numpy() for i in range(12)])
    monkeypatch.setattr(MNIST, "__getitem__", None)
    monkeypatch.setattr(data.dataset, "defined_together", lambda *names: True)
    images = [batch for batch, _ in DataLoader(mnist, batch_size=5)]
    assert [len(b) for b in images] == [5, 5, 2]
    assert_close(np.concatenate([b.numpy() for b in images]), samples)
    order = [7, 1, 1, 11]
    part, labels = next(iter(DataLoader(Subset(mnist, order), batch_size=4)))
    assert_close(part, samples[order])
    assert labels.tolist() == y[order].tolist()


def test_a_batch_is_a_copy(tmp_path: Path) -> None:
    x, _ = write_mnist(tmp_path)
    mnist = MNIST(tmp_path)
    images, _ = mnist.take(slice(0, 2))
    images.zero_()
    assert_close(mnist.data, x)


def test_augmented_batches_in_workers_are_repeatable(tmp_path: Path) -> None:
    write_mnist(tmp_path)
    augment = transforms.Compose([transforms.RandomCrop(24), transforms.ToTensor()])
    runs = []
    for _ in range(2):
        chainrule.manual_seed(3)
        loader = DataLoader(MNIST(tmp_path, transform=augment), batch_size=4, num_workers=2)
        runs.append([x.tolist() for x, _ in loader])
    assert runs[0] == runs[1]


# --- broken files ---------------------------------------------------------------------------------


def test_absent_files_say_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        MNIST(tmp_path)
    message = str(caught.value)
    for part in (
        "MNIST: train-images-idx3-ubyte.gz, train-labels-idx1-ubyte.gz not found in",
        f"{tmp_path / 'MNIST' / 'raw'}",
        "download=True",
        "https://",
        "CHAINRULE_DATA",
    ):
        assert part in message
    with pytest.raises(FileNotFoundError, match=r"CIFAR10: cifar-10-binary.tar.gz.*download=True"):
        CIFAR10(tmp_path)


def damaged(content: bytes, how: str) -> bytes:
    return {
        "cut": gzip.compress(content)[:-30],
        "flipped": gzip.compress(content)[:40] + b"\xff" * 20 + gzip.compress(content)[60:],
        "not gzip": b"hello",
        "empty": b"",
        "short": gzip.compress(content[:-7]),
        "long": gzip.compress(content + b"0"),
        "html": gzip.compress(b"<html>not found</html>"),
        "head": gzip.compress(content[:3]),
        "labels": gzip.compress(idx(numbers(12))),
    }[how]


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("cut", "is damaged or not complete"),
        ("flipped", "is damaged or not complete"),
        ("not gzip", "is damaged or not complete: Not a gzipped file"),
        ("empty", "is not an idx file|is damaged"),
        ("short", r"is not complete: its shape is \(12, 28, 28\), so 9,408 bytes should follow"),
        ("long", "but there are 9,409"),
        ("html", "it starts with 3c 68 74 6d, expected 00 00 08 03"),
        ("head", "is not an idx file of bytes in 3 dimensions"),
        ("labels", "it starts with 00 00 08 01, expected 00 00 08 03"),
    ],
)
def test_damaged_mnist(tmp_path: Path, how: str, message: str) -> None:
    x, _ = write_mnist(tmp_path)
    (tmp_path / "train-images-idx3-ubyte.gz").write_bytes(damaged(idx(x), how))
    with pytest.raises(DatasetError, match=f"train-images-idx3-ubyte.gz.*({message})"):
        MNIST(tmp_path)


def test_labels_that_do_not_fit(tmp_path: Path) -> None:
    write_mnist(tmp_path)
    labels = tmp_path / "train-labels-idx1-ubyte.gz"
    labels.write_bytes(gzip.compress(idx(numbers(11, high=10))))
    with pytest.raises(DatasetError, match="holds 12 images and .* 11 labels"):
        MNIST(tmp_path)
    labels.write_bytes(gzip.compress(idx(np.full(12, 77, np.uint8))))
    with pytest.raises(DatasetError, match="holds the class 77; there are 10"):
        MNIST(tmp_path)


# --- CIFAR ----------------------------------------------------------------------------------------


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
        (b"", "Ran out of input"),
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


# --- folders --------------------------------------------------------------------------------------


def write_folder(root: Path, sizes: Any = ((8, 9),) * 4) -> None:
    for i, (h, w) in enumerate(sizes):
        folder = root / ("dog", "cat")[i % 2] / ("deep" if i == 2 else "")
        folder.mkdir(parents=True, exist_ok=True)
        write_image(chainrule.full((3, h, w), i, dtype=chainrule.uint8), folder / f"{i}.png")


def test_image_folder(tmp_path: Path) -> None:
    write_folder(tmp_path)
    (tmp_path / "dog" / "notes.txt").write_text("not an image")
    (tmp_path / "readme.md").write_text("nor a class")
    folder = ImageFolder(tmp_path)
    assert folder.classes == ["cat", "dog"]
    assert folder.class_to_idx == {"cat": 0, "dog": 1}
    assert [Path(p).name for p, _ in folder.samples] == ["1.png", "3.png", "0.png", "2.png"]
    assert folder.targets == [0, 0, 1, 1]
    image, target = folder[2]
    assert (image.tolist(), target) == (chainrule.zeros(3, 8, 9).tolist(), 1)
    assert not folder.in_memory
    x, y = folder.tensors()
    assert x.shape == (4, 3, 8, 9)
    assert x[:, 0, 0, 0].tolist() == [1, 3, 0, 2]
    assert y.tolist() == [0, 0, 1, 1]
    loader = DataLoader(ImageFolder(tmp_path, transforms.ToTensor()), batch_size=4)
    images, targets = next(iter(loader))
    assert_close(images, x.numpy().astype(np.float32) / 255)
    assert targets.tolist() == [0, 0, 1, 1]
    other = ImageFolder(
        tmp_path,
        loader=lambda p: Path(p).name,
        target_transform=lambda t: -t,
        is_valid_file=lambda p: p.endswith("0.png"),
        allow_empty=True,
    )
    assert (len(other), other[0]) == (1, ("0.png", -1))


def test_folders_that_do_not_fit(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="there is no folder .*none"):
        ImageFolder(tmp_path / "none")
    with pytest.raises(FileNotFoundError, match=r"no folder of a class in .*dog/1.png"):
        ImageFolder(tmp_path)
    write_folder(tmp_path, ((8, 9), (8, 9), (8, 10)))
    with pytest.raises(ImageError, match=r"1.png is \(3, 8, 9\), .*2.png is \(3, 8, 10\); pass tr"):
        ImageFolder(tmp_path).tensors()
    assert ImageFolder(tmp_path, transforms.Resize((4, 4))).tensors()[0].shape == (3, 3, 4, 4)
    (tmp_path / "cat" / "1.png").write_bytes(b"broken")
    with pytest.raises(ImageError, match=r"cat/1.png is not a picture"):
        ImageFolder(tmp_path)[0]
    with pytest.raises(ImageError, match=r"cat/1.png is not a picture"):
        list(DataLoader(ImageFolder(tmp_path)))
    (tmp_path / "emu").mkdir()
    with pytest.raises(
        FileNotFoundError, match=r"no images .files ending in .jpg.* classes emu in"
    ):
        ImageFolder(tmp_path)
    assert ImageFolder(tmp_path, allow_empty=True).classes == ["cat", "dog", "emu"]


def test_imagenet(tmp_path: Path) -> None:
    for split, wnid in (("train", "n02"), ("train", "n01"), ("val", "n01"), ("val", "n02")):
        (tmp_path / split / wnid).mkdir(parents=True)
        write_image(chainrule.zeros(3, 4, 4), tmp_path / split / wnid / "a.JPEG")
    train = ImageNet(tmp_path)
    assert train.wnids == train.classes == ["n01", "n02"]
    (tmp_path / "LOC_synset_mapping.txt").write_text("n01 tench, Tinca tinca\nn02 goldfish\n")
    val = ImageNet(tmp_path, "val")
    assert val.classes == ["tench, Tinca tinca", "goldfish"]
    assert val[1][1] == 1
    with pytest.raises(ValueError, match="split must be 'train' or 'val', got 'test'"):
        ImageNet(tmp_path, "test")
    with pytest.raises(
        FileNotFoundError, match=r"no folder 'val' in .*image-net.org.*val/n01440764"
    ):
        ImageNet(tmp_path / "none", "val")


# --- the network ----------------------------------------------------------------------------------

CONTENT = numbers(300_000).tobytes()
MD5 = hashlib.md5(CONTENT).hexdigest()


class Server(ThreadingHTTPServer):
    """Serves files; can break off, ignore or misread ranges, and remembers the requests."""

    files: dict[str, bytes]
    how = ""
    ranges: list[str | None]


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        content, asked = self.server.files.get(self.path), self.headers.get("Range")
        self.server.ranges.append(asked)
        if content is None:
            self.send_error(404)
            return
        start = int(asked.removeprefix("bytes=").rstrip("-")) if asked else 0
        if self.server.how == "no ranges":
            start, asked = 0, None
        if start >= len(content) and asked:
            self.send_error(416)
            return
        self.send_response(206 if asked else 200)
        if asked:
            first = start + (7 if self.server.how == "wrong range" else 0)
            self.send_header("Content-Range", f"bytes {first}-{len(content) - 1}/{len(content)}")
        self.send_header("Content-Length", str(len(content) - start))
        self.end_headers()
        stop = start + 100_000 if self.server.how == "breaks off" else len(content)
        self.wfile.write(content[start:stop])
        self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def server(monkeypatch: Any) -> Iterator[Server]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    server = Server(("127.0.0.1", 0), Handler)
    server.files, server.ranges = {"/file.bin": CONTENT}, []
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def address(server: Server, name: str = "file.bin") -> str:
    return f"http://127.0.0.1:{server.server_port}/{name}"


def test_download(tmp_path: Path, server: Server) -> None:
    path = tmp_path / "new" / "file.bin"
    sha = hashlib.sha256(CONTENT).hexdigest()
    assert download(address(server), path, md5=MD5, sha256=sha) == path
    assert path.read_bytes() == CONTENT
    assert [p.name for p in path.parent.iterdir()] == ["file.bin"]
    download(address(server), path, md5=MD5)  # it is there
    assert server.ranges == [None]
    path.write_bytes(b"damaged")
    download(address(server), path, md5=MD5, progress=False)
    assert path.read_bytes() == CONTENT


def test_download_goes_on(tmp_path: Path, server: Server) -> None:
    part = tmp_path / "file.bin.part"
    part.write_bytes(CONTENT[:123_456])
    download(address(server), tmp_path / "file.bin", md5=MD5)
    assert (tmp_path / "file.bin").read_bytes() == CONTENT
    assert server.ranges == ["bytes=123456-"]
    assert not part.exists()


def test_an_interrupted_download_goes_on(tmp_path: Path, server: Server) -> None:
    server.how = "breaks off"
    path = tmp_path / "file.bin"
    for kept in ("100,000", "200,000"):
        message = f"the connection ended after {kept} of 300,000 bytes; {kept} bytes are kept"
        with pytest.raises(DownloadError, match=message):
            download(address(server), path, md5=MD5)
        assert not path.exists()
    download(address(server), path, md5=MD5)
    assert path.read_bytes() == CONTENT
    assert server.ranges == [None, "bytes=100000-", "bytes=200000-"]


def test_servers_that_cannot_go_on_send_the_whole(tmp_path: Path, server: Server) -> None:
    server.how = "no ranges"
    (tmp_path / "file.bin.part").write_bytes(CONTENT[:1000])
    download(address(server), tmp_path / "file.bin", md5=MD5)
    assert (tmp_path / "file.bin").read_bytes() == CONTENT
    server.how = "wrong range"
    (tmp_path / "other.bin.part").write_bytes(CONTENT[:1000])
    with pytest.raises(
        DownloadError, match="asked to go on at byte 1000, the server sent 'bytes 10"
    ):
        download(address(server), tmp_path / "other.bin", md5=MD5)


def test_parts_of_another_file_are_dropped(tmp_path: Path, server: Server) -> None:
    (tmp_path / "file.bin.part").write_bytes(b"x" * 1000)
    download(address(server), tmp_path / "file.bin", md5=MD5)
    assert server.ranges == ["bytes=1000-", None]
    (tmp_path / "b.bin.part").write_bytes(CONTENT)  # whole, but not yet renamed
    download(address(server), tmp_path / "b.bin", md5=MD5)
    (tmp_path / "c.bin.part").write_bytes(CONTENT + b"more")
    download(address(server), tmp_path / "c.bin", md5=MD5)
    assert {(tmp_path / f"{n}.bin").read_bytes() for n in ("file", "b", "c")} == {CONTENT}


def test_a_wrong_checksum(tmp_path: Path, server: Server) -> None:
    with pytest.raises(
        DownloadError, match=r"file.bin: the file that arrived has the wrong checks"
    ):
        download(address(server), tmp_path / "file.bin", md5="0" * 32)
    with pytest.raises(DownloadError, match="wrong checksum and was deleted"):
        download(address(server), tmp_path / "file.bin", sha256="0" * 64)
    assert list(tmp_path.iterdir()) == []


def test_other_addresses_are_tried(tmp_path: Path, server: Server) -> None:
    urls = [address(server, "none.bin"), address(server)]
    download(urls, tmp_path / "file.bin", md5=MD5)
    assert (tmp_path / "file.bin").read_bytes() == CONTENT
    with pytest.raises(DownloadError, match=r"could not download a.bin from .*none.bin: .*404"):
        download(urls[:1], tmp_path / "a.bin")


def test_nobody_answers(tmp_path: Path, server: Server) -> None:
    with Server(("127.0.0.1", 0), Handler) as closed:
        url = f"http://127.0.0.1:{closed.server_port}/file.bin"
    with pytest.raises(
        DownloadError, match=r"could not download file.bin from http://127.*refused"
    ):
        download(url, tmp_path / "file.bin")
    with pytest.raises(ValueError, match="expected an http or https address, got 'file:///etc"):
        download("file:///etc/passwd", tmp_path / "file.bin")


def test_a_full_disk_is_no_reason_to_ask_another(
    tmp_path: Path, server: Server, monkeypatch: Any
) -> None:
    def full(*args: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("chainrule.data.downloads.os.replace", full)
    with pytest.raises(OSError, match="No space left") as caught:
        download([address(server)] * 2, tmp_path / "file.bin")
    assert not isinstance(caught.value, DownloadError)
    assert len(server.ranges) == 1


def test_progress_is_shown(tmp_path: Path, server: Server) -> None:
    """On a terminal; a log file gets no bar."""
    program = (
        "import sys; from chainrule.data import download\n"
        "sys.stderr.isatty = lambda: True\n"
        "download(sys.argv[1], sys.argv[2])"
    )
    command = [sys.executable, "-c", program, address(server), str(tmp_path / "a.bin")]
    seen = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "a.bin: 100%" in seen.stderr
    quiet = [*command[:2], program.replace("True", "False"), *command[3:]]
    quiet[-1] = str(tmp_path / "b.bin")
    assert subprocess.run(quiet, capture_output=True, text=True, check=True).stderr == ""


class Small(MNIST):
    """MNIST from the test's own server."""

    folder_names = ("Small",)


def test_mnist_is_downloaded(tmp_path: Path, server: Server, monkeypatch: Any) -> None:
    x, y = write_mnist(tmp_path / "source")
    files = {p.name: p.read_bytes() for p in (tmp_path / "source").iterdir()}
    server.files = {f"/{name}": content for name, content in files.items()}
    sums = {name: hashlib.md5(content).hexdigest() for name, content in files.items()}
    monkeypatch.setattr(Small, "resources", sums)
    monkeypatch.setattr(Small, "mirrors", (address(server, "gone/"), address(server, "")))
    mnist = Small(tmp_path / "data", download=True)
    assert_close(mnist.data, x)
    assert mnist.targets.tolist() == y.tolist()
    asked = len(server.ranges)
    assert sorted(p.name for p in (tmp_path / "data/Small/raw").iterdir()) == sorted(files)
    assert len(Small(tmp_path / "data", download=True)) == 12
    assert len(server.ranges) == asked  # nothing is fetched twice


def test_cifar_is_downloaded(tmp_path: Path, server: Server, monkeypatch: Any) -> None:
    x, _ = write_cifar(tmp_path / "source", CIFAR10, "binary", True)
    name = "cifar-10-binary.tar.gz"
    content = (tmp_path / "source" / name).read_bytes()
    server.files = {f"/{name}": content}
    monkeypatch.setattr("chainrule.data.cifar.MIRROR", address(server, ""))
    sums = CIFAR10.archives | {name: hashlib.md5(content).hexdigest()}
    monkeypatch.setattr(CIFAR10, "archives", sums)
    assert_close(CIFAR10(tmp_path / "data", download=True).data, x.reshape(-1, 3, 32, 32))
    assert (tmp_path / "data" / name).exists()


def test_offline_says_what_to_do(tmp_path: Path, server: Server, monkeypatch: Any) -> None:
    with Server(("127.0.0.1", 0), Handler) as closed:
        url = f"http://127.0.0.1:{closed.server_port}/"
    monkeypatch.setattr(Small, "mirrors", (url,))
    with pytest.raises(DownloadError) as caught:
        Small(tmp_path, download=True)
    message = str(caught.value)
    for part in (
        "Small: could not download train-images-idx3-ubyte.gz",
        f"{url}train-images-idx3-ubyte.gz",
        "Without a network: get train-images-idx3-ubyte.gz",
        str(tmp_path / "Small" / "raw"),
        f"looked in {tmp_path / 'Small' / 'raw'}, ",
    ):
        assert part in message

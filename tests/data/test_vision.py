"""MNIST and folders of images from files, whole and broken."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import assert_close
from data.image_files import write_mnist

import chainrule
from chainrule import data
from chainrule.data import (
    CIFAR10,
    MNIST,
    DataLoader,
    DatasetError,
    FashionMNIST,
    ImageError,
    ImageFolder,
    ImageNet,
    Subset,
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
        ("long", "but there are more"),
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

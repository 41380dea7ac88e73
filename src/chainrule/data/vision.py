"""Sets of pictures in their files, found in a local folder or downloaded: MNIST and its like.

The folder is the argument ``root``, else the environment's CHAINRULE_DATA, else ``data`` where the
program runs. In it the files may lie as torchvision puts them or plainly.
"""

from __future__ import annotations

import gzip
import math
import os
import zlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar

from chainrule.backend import K, dtypes
from chainrule.data.dataset import Dataset, Indices, rows
from chainrule.data.downloads import DownloadError, Unpacked, download, read_exactly
from chainrule.data.images import ImageError
from chainrule.ops.core.arguments import made
from chainrule.ops.core.promotion import cast
from chainrule.ops.shape.views import reshape
from chainrule.tensor import Tensor

__all__ = ["MNIST", "DatasetError", "FashionMNIST", "ImagesInMemory", "data_root"]

Path_ = str | os.PathLike[str]


class DatasetError(ImageError):
    """Files of a dataset that are not what they should be; the message names the file."""


def data_root(root: Path_ | None = None) -> Path:
    """The folder in which datasets are looked for."""
    return Path(os.environ.get("CHAINRULE_DATA") or "data") if root is None else Path(root)


class ImagesInMemory(Dataset[Any]):
    """Images of one size with their classes, all in memory: sample i is (image, class).

    ``data`` holds the images as bytes (uint8), ``targets`` the classes (int64). Without a transform
    a sample's image is a tensor (C, H, W) of uint8. ``transform`` gets that, ``target_transform``
    the class as a number. Whole batches are read at once if there is no transform, or one of
    :mod:`chainrule.data.transforms`, which takes batches.
    """

    data: Tensor
    targets: Tensor
    classes: Sequence[str]

    def __init__(
        self,
        transform: Callable[[Any], Any] | None = None,
        target_transform: Callable[[Any], Any] | None = None,
    ):
        self.transform = transform
        self.target_transform = target_transform

    @property
    def images(self) -> Tensor:
        """The images as (N, C, H, W)."""
        return self.data if self.data.ndim == 4 else self.data[:, None]

    @property
    def class_to_idx(self) -> dict[str, int]:
        """The number of a class by its name."""
        return {name: i for i, name in enumerate(self.classes)}

    @property
    def in_memory(self) -> bool:
        """Whether the transforms take whole batches, too."""
        takes_batches = self.transform is None or getattr(self.transform, "batched", False)
        return super().in_memory and takes_batches and self.target_transform is None

    def __len__(self) -> int:
        return len(self.targets)

    def __getitem__(self, index: Any) -> tuple[Any, Any]:
        image, target = self.images[index], int(self.targets[index])
        if self.transform is not None:
            image = self.transform(image)
        return image, target if self.target_transform is None else self.target_transform(target)

    def take(self, indices: Indices) -> tuple[Tensor, Tensor]:
        """The images and classes of a batch."""
        images = rows(self.images, indices)
        if self.transform is not None:
            images = self.transform(images)
        return images, rows(self.targets, indices)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} images of shape {tuple(self.images.shape[1:])})"


# --- looking for files ----------------------------------------------------------------------------


def find(folders: Iterable[Path], names: Sequence[str]) -> Path | None:
    """The first of these files that is in one of these folders."""
    for folder in folders:
        for name in names:
            if (folder / name).is_file():
                return folder / name
    return None


def not_found(what: str, missing: Sequence[str], folders: Sequence[Path], source: str) -> str:
    """What to do when files are not there."""
    return (
        f"{what}: {', '.join(missing)} not found in {', '.join(map(str, folders))}. "
        f"Pass download=True, or get the files from {source} and put them into "
        f"{folders[0]} (root= or CHAINRULE_DATA name another folder)"
    )


def fetch(what: str, urls: Sequence[str], path: Path, md5: str, folders: Sequence[Path]) -> Path:
    """Downloads a file; without a network, says what to do by hand."""
    try:
        return download(urls, path, md5=md5)
    except DownloadError as error:
        raise DownloadError(
            f"{what}: {error}. Without a network: get {path.name} from {urls[0]} elsewhere and put "
            f"it into {path.parent} (looked in {', '.join(map(str, folders))})"
        ) from error


# --- MNIST ----------------------------------------------------------------------------------------


class MNIST(ImagesInMemory):
    """Handwritten digits: 60,000 images of 28 by 28 gray pixels to train, 10,000 to test.

    The classes are not equally frequent: 5,421 to 6,742 images each to train.

    Args:
        root: the folder with the files, or the one above (see :func:`data_root`).
        train: the images to train with, else those to test with.
        transform: a function of an image.
        target_transform: a function of a class.
        download: fetch the files if they are not there, into root/MNIST/raw.

    ``data`` is (N, 28, 28), as in torchvision; images in samples are (1, 28, 28).
    """

    folder_names: ClassVar[tuple[str, ...]] = ("MNIST", "mnist")
    equally_frequent: ClassVar[bool] = False
    mirrors: ClassVar[tuple[str, ...]] = (
        "https://ossci-datasets.s3.amazonaws.com/mnist/",
        "http://yann.lecun.com/exdb/mnist/",
    )
    resources: ClassVar[dict[str, str]] = {
        "train-images-idx3-ubyte.gz": "f68b3c2dcbeaaa9fbdd348bbdeb94873",
        "train-labels-idx1-ubyte.gz": "d53e105ee54ea40749a09fcbcd1e9432",
        "t10k-images-idx3-ubyte.gz": "9fb629c4189551a2d022fa330f9573f3",
        "t10k-labels-idx1-ubyte.gz": "ec29112dd5afa0611ce80d1b7f02629c",
    }
    classes: Sequence[str] = (
        "0 - zero",
        "1 - one",
        "2 - two",
        "3 - three",
        "4 - four",
        "5 - five",
        "6 - six",
        "7 - seven",
        "8 - eight",
        "9 - nine",
    )

    def __init__(
        self,
        root: Path_ | None = None,
        train: bool = True,
        transform: Callable[[Any], Any] | None = None,
        target_transform: Callable[[Any], Any] | None = None,
        download: bool = False,
    ):
        super().__init__(transform, target_transform)
        self.root, self.train = data_root(root), train
        images, labels = self._files(download)
        self.data = read_idx(images, 3)
        self.targets = cast(read_idx(labels, 1), dtypes.int64)
        if len(self.data) != len(self.targets):
            raise DatasetError(
                f"{type(self).__name__}: {images} holds {len(self.data)} images and {labels} "
                f"{len(self.targets)} labels"
            )
        self._check_labels(labels)

    def _folders(self) -> list[Path]:
        """Where the files may be: as torchvision puts them, or plainly."""
        own = [self.root / name for name in self.folder_names]
        return [own[0] / "raw", *own, *[folder / "raw" for folder in own[1:]], self.root]

    def _files(self, download: bool) -> list[Path]:
        part = "train" if self.train else "t10k"
        wanted = [f"{part}-images-idx3-ubyte.gz", f"{part}-labels-idx1-ubyte.gz"]
        folders, what = self._folders(), type(self).__name__
        files, missing = [], []
        for name in wanted:
            path = find(folders, spellings(name))
            if path is None and download:
                urls = [mirror + name for mirror in self.mirrors]
                path = fetch(what, urls, folders[0] / name, self.resources[name], folders)
            if path is None:
                missing.append(name)
            else:
                files.append(path)
        if missing:
            raise FileNotFoundError(not_found(what, missing, folders, self.mirrors[0]))
        return files

    def _check_labels(self, labels: Path) -> None:
        """Refuses classes that do not exist, and the files of another dataset, which have the same
        names: Fashion-MNIST's classes are equally frequent, MNIST's are not."""
        what, counts = type(self).__name__, self.targets.bincount()
        if len(counts) > len(self.classes):
            raise DatasetError(
                f"{what}: {labels} holds the class {len(counts) - 1}; there are {len(self.classes)}"
            )
        whole = len(self.targets) == (60_000 if self.train else 10_000)
        if whole and bool(counts.min() == counts.max()) != self.equally_frequent:
            raise DatasetError(
                f"{what}: {labels} is a file of another dataset, by how often each class occurs; "
                f"put the files of each into a folder of its own, such as {self._folders()[1]}"
            )


def spellings(name: str) -> list[str]:
    """The names under which an idx file is found: compressed or not, with a dot or a hyphen."""
    plain = name.removesuffix(".gz")
    dotted = plain.replace("-idx", ".idx")
    return [name, plain, dotted + ".gz", dotted]


def read_idx(path: Path, ndim: int) -> Tensor:
    """The bytes in a file of the idx format, compressed or not, as a tensor of uint8.

    The file: two zero bytes, the type (8 for bytes), the number of dimensions, each of them as four
    bytes (the most significant first), then the elements.
    """
    head = 4 + 4 * ndim
    try:
        with Unpacked(path, DatasetError) if path.suffix == ".gz" else path.open("rb") as file:
            start = read_exactly(file, head)
            shape = _shape_of_idx(path, start, ndim)
            size = math.prod(shape)
            if isinstance(file, Unpacked):
                file.check(head + size)
            content = read_exactly(file, size)
            whole = len(content) == size and not file.read(1)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DatasetError(f"{path} is damaged or not complete: {error}") from error
    if not whole:
        there = f"there are {len(content):,}" if len(content) < size else "there are more"
        raise DatasetError(
            f"{path} is not complete: its shape is {tuple(shape)}, so {size:,} bytes should "
            f"follow, but {there}"
        )
    return reshape(made(K.asarray(memoryview(content))), tuple(shape))


def _shape_of_idx(path: Path, start: bytearray, ndim: int) -> list[int]:
    if len(start) < 4 + 4 * ndim or start[:4] != bytes([0, 0, 8, ndim]):
        raise DatasetError(
            f"{path} is not an idx file of bytes in {ndim} dimensions: it starts with "
            f"{start[:4].hex(' ') or 'nothing'}, expected 00 00 08 0{ndim}"
        )
    return [int.from_bytes(start[i : i + 4], "big") for i in range(4, len(start), 4)]


class FashionMNIST(MNIST):
    """Articles of clothing in the format of MNIST: 60,000 images of 28 by 28 gray pixels to train,
    10,000 to test, in ten classes. The arguments are those of :class:`MNIST`."""

    folder_names: ClassVar[tuple[str, ...]] = (
        "FashionMNIST",
        "fashion-mnist",
        "fashion_mnist",
        "fashionmnist",
    )
    equally_frequent: ClassVar[bool] = True
    mirrors: ClassVar[tuple[str, ...]] = (
        "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
    )
    resources: ClassVar[dict[str, str]] = {
        "train-images-idx3-ubyte.gz": "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
        "train-labels-idx1-ubyte.gz": "25c81989df183df01b3e8a0aad5dffbe",
        "t10k-images-idx3-ubyte.gz": "bef4ecab320f06d8554ea6380940ec79",
        "t10k-labels-idx1-ubyte.gz": "bb300cfdad3c16e7a12a480ee83cd310",
    }
    classes: Sequence[str] = (
        "T-shirt/top",
        "Trouser",
        "Pullover",
        "Dress",
        "Coat",
        "Sandal",
        "Shirt",
        "Sneaker",
        "Bag",
        "Ankle boot",
    )

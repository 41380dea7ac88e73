"""CIFAR-10 and CIFAR-100: small color images, from either of the two versions of their files.

The binary version is preferred and downloaded. The Python version is a pickle: it is read by an
unpickler that knows nothing but the array in it, so that no file can execute anything.
"""

from __future__ import annotations

import io
import pickle
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar

from chainrule.backend import K, dtypes
from chainrule.data.downloads import Unpacked
from chainrule.data.vision import (
    DatasetError,
    ImagesInMemory,
    Path_,
    data_root,
    fetch,
    find,
    not_found,
)
from chainrule.ops.core.arguments import made
from chainrule.ops.core.promotion import cast
from chainrule.ops.shape.views import reshape
from chainrule.ops.shape.stacking import cat
from chainrule.tensor import Tensor

__all__ = ["CIFAR10", "CIFAR100"]

PIXELS = 3 * 32 * 32
LARGEST = 400_000_000  # bytes in an archive: twice what 60,000 images take
MIRROR = "https://www.cs.toronto.edu/~kriz/"
Read = Callable[[str], tuple[Tensor, Tensor]]  # by the name of a file
Parse = Callable[[bytes, str], tuple[Tensor, Tensor]]  # of its content; where it is from


class CIFAR10(ImagesInMemory):
    """Color images of 32 by 32 pixels in ten classes: 50,000 to train, 10,000 to test.

    Args:
        root: the folder with the files, or the one above (see :func:`data_root`).
        train: the images to train with, else those to test with.
        transform: a function of an image.
        target_transform: a function of a class.
        download: fetch the binary version if no version is there, into root.

    ``data`` is a tensor (N, 3, 32, 32) of uint8.
    """

    archives: ClassVar[dict[str, str]] = {
        "cifar-10-binary.tar.gz": "c32a1d4ab5d03f1284b67883e8d87530",
        "cifar-10-python.tar.gz": "c58f30108f718f92721af3b95e74349a",
    }
    folder_names: ClassVar[tuple[str, ...]] = ("cifar10", "CIFAR10", "cifar-10")
    binary_folder, python_folder = "cifar-10-batches-bin", "cifar-10-batches-py"
    train_files: ClassVar[tuple[str, ...]] = tuple(f"data_batch_{i}" for i in range(1, 6))
    test_files: ClassVar[tuple[str, ...]] = ("test_batch",)
    label_bytes = 1  # of a record of the binary version; the last is the class
    label_key = "labels"  # of the Python version
    classes: Sequence[str] = (
        "airplane",
        "automobile",
        "bird",
        "cat",
        "deer",
        "dog",
        "frog",
        "horse",
        "ship",
        "truck",
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
        names = self.train_files if train else self.test_files
        read = self._reader(names, download)
        parts = [read(name) for name in names]
        self.data = cat([images for images, _ in parts])
        self.targets = cat([labels for _, labels in parts])

    def _folders(self) -> list[Path]:
        return [self.root, *[self.root / name for name in self.folder_names]]

    def _reader(self, names: Sequence[str], download: bool) -> Read:
        """What reads one of the files, from the first version that is there."""
        folders, (binary, python) = self._folders(), self.archives
        for folder in [f / self.binary_folder for f in folders] + folders:
            if (folder / f"{names[0]}.bin").is_file():
                return self._unpacked(folder, ".bin", self._binary)
        archive = find(folders, [binary])
        if archive is not None:
            return self._archived(archive, self.binary_folder, ".bin", self._binary)
        for folder in [f / self.python_folder for f in folders]:
            if (folder / names[0]).is_file():
                return self._unpacked(folder, "", self._pickled)
        archive = find(folders, [python])
        if archive is not None:
            return self._archived(archive, self.python_folder, "", self._pickled)
        what, urls = type(self).__name__, [MIRROR + binary]
        if not download:
            missing = [binary, f"{self.binary_folder}/{names[0]}.bin"]
            raise FileNotFoundError(not_found(what, missing, folders, urls[0]))
        archive = fetch(what, urls, self.root / binary, self.archives[binary], folders)
        return self._archived(archive, self.binary_folder, ".bin", self._binary)

    def _unpacked(self, folder: Path, ending: str, read: Parse) -> Read:
        return lambda name: read(_content(folder / f"{name}{ending}"), f"{folder / name}{ending}")

    def _archived(self, archive: Path, folder: str, ending: str, read: Parse) -> Read:
        """Reads files inside an archive, which is not unpacked."""
        import tarfile

        wanted = {f"{folder}/{n}{ending}" for n in (*self.train_files, *self.test_files)}
        found: dict[str, bytes] = {}
        try:
            with (
                Unpacked(archive, DatasetError, LARGEST) as file_of_all,
                tarfile.open(fileobj=file_of_all, mode="r|") as tar,  # type: ignore[call-overload]
            ):
                for member in tar:
                    file = tar.extractfile(member) if member.name in wanted else None
                    if file is not None:
                        found[member.name] = file.read()
        except DatasetError:
            raise
        except (tarfile.TarError, EOFError, OSError, ValueError, zlib.error) as error:
            raise DatasetError(
                f"{type(self).__name__}: {archive} is damaged or not complete: {error}"
            ) from error

        def one(name: str) -> tuple[Tensor, Tensor]:
            path = f"{folder}/{name}{ending}"
            if path not in found:
                raise DatasetError(f"{type(self).__name__}: {archive} does not hold {path}")
            return read(found[path], f"{archive}: {path}")

        return one

    def _binary(self, content: bytes, where: str) -> tuple[Tensor, Tensor]:
        """Records of label bytes and then the red, the green and the blue pixels, row by row."""
        size = self.label_bytes + PIXELS
        if not content or len(content) % size:
            raise DatasetError(
                f"{type(self).__name__}: {where} is not complete: {len(content):,} bytes are not a "
                f"number of records of {size} bytes"
            )
        records = reshape(_bytes(content), (-1, size))
        labels = self._labels(records[:, self.label_bytes - 1], where)
        return self._images(records[:, self.label_bytes :]), labels

    def _images(self, flat: Tensor) -> Tensor:
        return reshape(flat, (-1, 3, 32, 32))

    def _labels(self, labels: Tensor, where: str) -> Tensor:
        if int(labels.max()) >= len(self.classes):
            raise DatasetError(
                f"{type(self).__name__}: {where} holds the class {int(labels.max())}; there are "
                f"{len(self.classes)}"
            )
        return cast(labels, dtypes.int64)

    def _pickled(self, content: bytes, where: str) -> tuple[Tensor, Tensor]:
        try:
            told = _ArraysOnly(content).load()
            pixels, labels = told["data"].content(), bytes(told[self.label_key])
            if not labels or len(pixels) != PIXELS * len(labels):
                raise ValueError(f"{len(pixels):,} bytes of pixels for {len(labels)} labels")
        except Exception as error:
            raise DatasetError(
                f"{type(self).__name__}: {where} is not a batch of the Python version: {error}"
            ) from error
        return self._images(_bytes(pixels)), self._labels(_bytes(labels), where)


class CIFAR100(CIFAR10):
    """Color images of 32 by 32 pixels in a hundred classes of twenty superclasses: 50,000 to train,
    10,000 to test. The arguments are those of :class:`CIFAR10`."""

    archives: ClassVar[dict[str, str]] = {
        "cifar-100-binary.tar.gz": "03b5dce01913d631647c71ecec9e9cb8",
        "cifar-100-python.tar.gz": "eb9058c3a382ffc7106e4002c42a8d85",
    }
    folder_names: ClassVar[tuple[str, ...]] = ("cifar100", "CIFAR100", "cifar-100")
    binary_folder, python_folder = "cifar-100-binary", "cifar-100-python"
    train_files: ClassVar[tuple[str, ...]] = ("train",)
    test_files: ClassVar[tuple[str, ...]] = ("test",)
    label_bytes = 2  # the superclass, then the class
    label_key = "fine_labels"
    classes: Sequence[str] = (
        "apple",
        "aquarium_fish",
        "baby",
        "bear",
        "beaver",
        "bed",
        "bee",
        "beetle",
        "bicycle",
        "bottle",
        "bowl",
        "boy",
        "bridge",
        "bus",
        "butterfly",
        "camel",
        "can",
        "castle",
        "caterpillar",
        "cattle",
        "chair",
        "chimpanzee",
        "clock",
        "cloud",
        "cockroach",
        "couch",
        "crab",
        "crocodile",
        "cup",
        "dinosaur",
        "dolphin",
        "elephant",
        "flatfish",
        "forest",
        "fox",
        "girl",
        "hamster",
        "house",
        "kangaroo",
        "keyboard",
        "lamp",
        "lawn_mower",
        "leopard",
        "lion",
        "lizard",
        "lobster",
        "man",
        "maple_tree",
        "motorcycle",
        "mountain",
        "mouse",
        "mushroom",
        "oak_tree",
        "orange",
        "orchid",
        "otter",
        "palm_tree",
        "pear",
        "pickup_truck",
        "pine_tree",
        "plain",
        "plate",
        "poppy",
        "porcupine",
        "possum",
        "rabbit",
        "raccoon",
        "ray",
        "road",
        "rocket",
        "rose",
        "sea",
        "seal",
        "shark",
        "shrew",
        "skunk",
        "skyscraper",
        "snail",
        "snake",
        "spider",
        "squirrel",
        "streetcar",
        "sunflower",
        "sweet_pepper",
        "table",
        "tank",
        "telephone",
        "television",
        "tiger",
        "tractor",
        "train",
        "trout",
        "tulip",
        "turtle",
        "wardrobe",
        "whale",
        "willow_tree",
        "wolf",
        "woman",
        "worm",
    )


def _content(path: Path) -> bytes:
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing, though its companions are there")
    return path.read_bytes()


def _bytes(content: bytes) -> Tensor:
    return made(K.asarray(memoryview(bytearray(content))))


# --- the Python version ---------------------------------------------------------------------------


class _Array:
    """Stands for NumPy's array in a pickle: keeps the bytes it is given."""

    def __init__(self, *described: Any):
        self.state: Any = None

    def __setstate__(self, state: Any) -> None:
        self.state = state

    def content(self) -> bytes:
        """The bytes of an array of bytes."""
        _, shape, kind, by_columns, content = self.state
        if not isinstance(kind, _Type) or kind.code not in ("u1", b"u1") or len(shape) != 2:
            raise ValueError("the array is not one of bytes in rows")
        if isinstance(content, str):
            content = content.encode("latin1")
        if len(content) != shape[0] * shape[1]:
            raise ValueError(f"the array of shape {shape} comes with {len(content):,} bytes")
        if not by_columns:
            return content
        columns = reshape(_bytes(content), (shape[1], shape[0]))
        return columns.T.contiguous().numpy().tobytes()


class _Type:
    """Stands for NumPy's dtype."""

    def __init__(self, code: Any = None, *described: Any):
        self.code = code

    def __setstate__(self, state: Any) -> None:
        pass


def _check_places(content: bytes) -> None:
    """Refuses a pickle that puts a value into a place beyond all that it can have filled.

    Python makes room for all places below, so that five bytes could ask for gigabytes.
    """
    import pickletools

    for count, (code, place, _) in enumerate(pickletools.genops(content)):
        if code.name.endswith("PUT") and place is not None and place > count:
            raise pickle.UnpicklingError(f"it puts its value {count} into the place {place}")


class _ArraysOnly(pickle.Unpickler):
    """Reads a pickle of lists, dictionaries, numbers, texts and arrays; refuses all else."""

    KNOWN: ClassVar[dict[str, type]] = {"_reconstruct": _Array, "ndarray": _Array, "dtype": _Type}

    def __init__(self, content: bytes):
        _check_places(content)
        super().__init__(io.BytesIO(content), encoding="latin1")

    def find_class(self, module: str, name: str) -> Any:
        if module.split(".")[0] == "numpy" and name in self.KNOWN:
            return self.KNOWN[name]
        raise pickle.UnpicklingError(
            f"it asks for {module}.{name}, which a file of images has no need of; nothing was "
            "executed"
        )

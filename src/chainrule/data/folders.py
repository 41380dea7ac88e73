"""Pictures in folders, one folder for each class."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from chainrule.data.dataset import Dataset
from chainrule.data.images import ImageError, read_image
from chainrule.data.vision import Path_, data_root
from chainrule.ops.creation.from_data import tensor
from chainrule.ops.shape.stacking import stack
from chainrule.tensor import Tensor

__all__ = ["ENDINGS", "ImageFolder", "ImageNet"]

ENDINGS = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")
SYNSETS = ("LOC_synset_mapping.txt", "synset_words.txt")


class ImageFolder(Dataset[Any]):
    """Images in folders by class, root/dog/1.png, root/cat/2.png, ...: sample i is (image, class).

    Args:
        root: the folder of the folders.
        transform: a function of an image; without one it is a tensor (3, H, W) of uint8.
        target_transform: a function of a class's number.
        loader: reads a file; else :func:`read_image` in RGB.
        is_valid_file: which files to take, by their path; else those whose names end like images'.
        allow_empty: let a class have no image.

    Classes are numbered in the order of their names; ``classes`` holds the names, ``samples`` the
    pairs (path, number), ``targets`` the numbers. Images are read when they are asked for;
    :meth:`tensors` reads all of them.
    """

    def __init__(
        self,
        root: Path_,
        transform: Callable[[Any], Any] | None = None,
        target_transform: Callable[[Any], Any] | None = None,
        loader: Callable[[str], Any] = read_image,
        is_valid_file: Callable[[str], bool] | None = None,
        allow_empty: bool = False,
    ):
        self.root = Path(root)
        self.transform, self.target_transform, self.loader = transform, target_transform, loader
        self.classes, self.class_to_idx = self.find_classes(self.root)
        valid = is_valid_file or (lambda path: path.lower().endswith(ENDINGS))
        self.samples: list[tuple[str, int]] = []
        for name, number in self.class_to_idx.items():
            found = [str(p) for p in sorted((self.root / name).rglob("*")) if p.is_file()]
            self.samples += [(path, number) for path in found if valid(path)]
        self.targets = [number for _, number in self.samples]
        empty = [name for name, i in self.class_to_idx.items() if i not in set(self.targets)]
        if empty and not allow_empty:
            endings = "" if is_valid_file else f" (files ending in {', '.join(ENDINGS)})"
            raise FileNotFoundError(
                f"{type(self).__name__}: no images{endings} in the folders of the classes "
                f"{', '.join(empty[:10])} in {self.root}; pass allow_empty=True to keep such "
                "classes"
            )
        self.imgs = self.samples

    def find_classes(self, directory: Path) -> tuple[Sequence[str], dict[str, int]]:
        """The names of the folders, in order, and their numbers."""
        if not directory.is_dir():
            raise FileNotFoundError(f"{type(self).__name__}: there is no folder {directory}")
        names = sorted(entry.name for entry in directory.iterdir() if entry.is_dir())
        if not names:
            raise FileNotFoundError(
                f"{type(self).__name__}: no folder of a class in {directory}; images belong into "
                f"folders named by their class, such as {directory / 'dog' / '1.png'}"
            )
        return names, {name: i for i, name in enumerate(names)}

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: Any) -> tuple[Any, Any]:
        path, target = self.samples[index]
        image = self.loader(path)
        if self.transform is not None:
            image = self.transform(image)
        return image, target if self.target_transform is None else self.target_transform(target)

    def tensors(self) -> tuple[Tensor, Tensor]:
        """All images, (N, C, H, W), and classes, read now; the images must have one size."""
        if not self.samples:
            raise ImageError(f"{type(self).__name__}: there are no images in {self.root}")
        images, targets = zip(*[self[i] for i in range(len(self))], strict=True)
        for (path, _), image in zip(self.samples, images, strict=True):
            if tuple(image.shape) != tuple(images[0].shape):
                raise ImageError(
                    f"{type(self).__name__}: the images have different sizes: {self.samples[0][0]} "
                    f"is {tuple(images[0].shape)}, {path} is {tuple(image.shape)}; pass "
                    "transform=Resize((height, width))"
                )
        return stack(list(images)), tensor(list(targets))

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({len(self)} images in {len(self.classes)} classes, {self.root})"
        )


class ImageNet(ImageFolder):
    """ImageNet (ILSVRC 2012) as it is usually laid out: root/train/n01440764/*.JPEG and
    root/val/n01440764/*.JPEG.

    Args:
        root: the folder that holds train and val (see :func:`data_root`).
        split: "train" or "val".
        transform, target_transform, loader: as for :class:`ImageFolder`.

    ``wnids`` holds the names of the folders; ``classes`` the words of each class if a file
    LOC_synset_mapping.txt or synset_words.txt in root says them, else the names of the folders
    again. The images are not downloaded: their owners ask for an account at image-net.org.
    """

    def __init__(
        self,
        root: Path_ | None = None,
        split: str = "train",
        transform: Callable[[Any], Any] | None = None,
        target_transform: Callable[[Any], Any] | None = None,
        loader: Callable[[str], Any] = read_image,
    ):
        if split not in ("train", "val"):
            raise ValueError(f"ImageNet: split must be 'train' or 'val', got {split!r}")
        self.split = split
        home = self._home(data_root(root))
        super().__init__(home / split, transform, target_transform, loader)
        self.wnids = list(self.classes)
        words = self._words(home)
        self.classes = [words.get(wnid, wnid) for wnid in self.wnids]

    def _home(self, root: Path) -> Path:
        homes = [root, root / "imagenet", root / "ImageNet"]
        for home in homes:
            if (home / self.split).is_dir():
                return home
        raise FileNotFoundError(
            f"ImageNet: no folder {self.split!r} in {', '.join(map(str, homes))}. Get the images "
            "from https://www.image-net.org/download.php (they ask for an account) and unpack them "
            f"as {root / self.split / 'n01440764' / 'n01440764_18.JPEG'}, one folder for each class"
        )

    def _words(self, home: Path) -> dict[str, str]:
        """The words of each class, if a file says them."""
        words = {}
        for name in SYNSETS:
            if (home / name).is_file():
                for line in (home / name).read_text("utf-8").splitlines():
                    wnid, _, text = line.partition(" ")
                    words[wnid] = text.strip() or wnid
        return words

"""Tox21: which of twelve toxic effects a compound has, from its chemical descriptors."""

from __future__ import annotations

import csv
import gzip
import math
from pathlib import Path
from typing import Any

from chainrule.data.dataset import Dataset
from chainrule.data.vision import DatasetError, Path_, data_root, find
from chainrule.ops.creation.from_data import tensor
from chainrule.tensor import Tensor

__all__ = ["Tox21"]

SOURCE = "http://bioinf.jku.at/research/DeepTox/tox21.html"
NOT_MEASURED = ("", "NA", "nan", "NaN")


class Tox21(Dataset[Any]):
    """Compounds by their descriptors, with the outcome of twelve tests each: sample i is (x, y).

    Args:
        root: the folder with the files, or the one above (see :func:`data_root`):
            tox21_dense_train.csv and tox21_labels_train.csv, or those of "test"; each may be
            compressed (.csv.gz).
        train: the compounds to train with (12,060 in the challenge), else those to test with (647).

    ``data`` is (N, D), 801 descriptors in the files of the challenge; ``targets`` is (N, 12): 1 for
    toxic, 0 for not, NaN where a test was not made. ``tasks`` names the tests, ``names`` the
    compounds. The files are not downloaded: they are at bioinf.jku.at/research/DeepTox.
    """

    data: Tensor
    targets: Tensor

    def __init__(self, root: Path_ | None = None, train: bool = True):
        self.root, self.train = data_root(root), train
        part = "train" if train else "test"
        descriptors = self._read(f"tox21_dense_{part}.csv")
        labels = self._read(f"tox21_labels_{part}.csv")
        self.names = [row[0] for row in descriptors[1][1:]]
        self.tasks = labels[1][0][1:]
        others = [row[0] for row in labels[1][1:]]
        if self.names != others:
            raise DatasetError(
                f"Tox21: {descriptors[0]} and {labels[0]} are not of the same compounds in the "
                f"same order: {len(self.names)} and {len(others)} of them"
            )
        self.data = _numbers(*descriptors)
        self.targets = _numbers(*labels)
        bad = {float(v) for v in self.targets.flatten().unique().tolist() if not math.isnan(v)}
        if not bad <= {0.0, 1.0}:
            raise DatasetError(f"Tox21: labels in {labels[0]} are 0, 1 or missing, got {max(bad)}")
        if not self.data.isfinite().all():
            raise DatasetError(f"Tox21: {descriptors[0]} has descriptors that are missing")

    def _read(self, name: str) -> tuple[Path, list[list[str]]]:
        folders = [self.root, self.root / "tox21", self.root / "Tox21"]
        path = find(folders, [name, f"{name}.gz"])
        if path is None:
            raise FileNotFoundError(
                f"Tox21: {name} not found in {', '.join(map(str, folders))}. Get the files from "
                f"{SOURCE} and put them into {folders[1]} (root= or CHAINRULE_DATA name another "
                "folder)"
            )
        try:
            content = path.read_bytes()
            text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode()
        except (OSError, EOFError, UnicodeDecodeError) as error:
            raise DatasetError(f"Tox21: {path} is damaged: {error}") from error
        rows = [row for row in csv.reader(text.splitlines()) if row]
        if len(rows) < 2 or len({len(row) for row in rows}) > 1 or len(rows[0]) < 2:
            raise DatasetError(
                f"Tox21: {path} is no table: a line of names, then a line for each compound, all "
                "of one length"
            )
        return path, rows

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, index: Any) -> tuple[Tensor, Tensor]:
        return self.data[index], self.targets[index]

    def tensors(self) -> tuple[Tensor, Tensor]:
        """(data, targets)"""
        return self.data, self.targets

    def __repr__(self) -> str:
        return f"Tox21({len(self)} compounds, {self.data.shape[1]} descriptors)"


def _numbers(path: Path, rows: list[list[str]]) -> Tensor:
    """The cells beside the names, NaN where nothing was measured."""
    try:
        return tensor(
            [[math.nan if c in NOT_MEASURED else float(c) for c in r[1:]] for r in rows[1:]]
        )
    except ValueError as error:
        raise DatasetError(f"Tox21: {path} has a cell that is no number: {error}") from None

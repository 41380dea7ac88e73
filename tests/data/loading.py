"""Datasets for loaders, and what a loader makes of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import chainrule
from chainrule.data import Dataset, IterableDataset, get_worker_info


class Slow(Dataset[Any]):
    """The same samples, one at a time."""

    def __init__(self, n: int):
        self.n = n

    def __getitem__(self, index: int) -> tuple[chainrule.Tensor, int]:
        return chainrule.tensor(index), index * 10

    def __len__(self) -> int:
        return self.n


class Count(IterableDataset[int]):
    """The numbers from start to stop, shared by the workers."""

    def __init__(self, start: int, stop: int):
        self.start, self.stop = start, stop

    def __iter__(self) -> Iterator[int]:
        info = get_worker_info()
        if info is None:
            return iter(range(self.start, self.stop))
        share = -(-(self.stop - self.start) // info.num_workers)
        first = self.start + info.id * share
        return iter(range(first, min(first + share, self.stop)))

    def __len__(self) -> int:
        return self.stop - self.start


def plain(batch: Any) -> Any:
    if isinstance(batch, (list, tuple)):
        return [plain(part) for part in batch]
    return batch.tolist() if isinstance(batch, chainrule.Tensor) else batch

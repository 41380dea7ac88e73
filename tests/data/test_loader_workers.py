"""Workers of a loader: order, seeds, errors, their end."""

from __future__ import annotations

import gc
import multiprocessing
import os
import random
import signal
import time
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from data.loading import Count, Slow, plain

import chainrule
from chainrule.data import DataLoader, TensorDataset, get_worker_info


def seeded(seed: int = 0) -> chainrule.Generator:
    return chainrule.Generator().manual_seed(seed)


def in_memory(n: int) -> TensorDataset:
    return TensorDataset(chainrule.arange(n), chainrule.arange(n) * 10)


class Faulty(Slow):
    def __init__(self, n: int, bad: int, error: BaseException):
        super().__init__(n)
        self.bad, self.error = bad, error

    def __getitem__(self, index: int) -> Any:
        if index == self.bad:
            raise self.error
        return super().__getitem__(index)


def batches(loader: Any) -> list[Any]:
    return [plain(batch) for batch in loader]


def numbers(loader: Any) -> list[int]:
    return [i for batch in loader for i in batch[0].tolist()]


class Uneven(Slow):
    def __getitem__(self, index: int) -> Any:
        time.sleep(0.02 if index % 4 == 0 else 0)
        return index, os.getpid()


class Noting(Slow):
    """Leaves a byte in a file for every sample that is read."""

    def __init__(self, n: int, path: Path):
        super().__init__(n)
        self.path = path

    def __getitem__(self, index: int) -> Any:
        with self.path.open("ab") as file:
            file.write(b".")
        return chainrule.zeros(100_000)  # more than a pipe holds


class Drawing(Slow):
    def __getitem__(self, index: int) -> Any:
        info = get_worker_info()
        assert info is not None
        drawn = float(chainrule.rand(())), random.random(), float(np.random.rand())  # noqa: NPY002
        return info.id, info.seed, drawn


class Asking(Slow):
    def __getitem__(self, index: int) -> Any:
        info = get_worker_info()
        assert info is not None
        return info.id, info.num_workers, self.n


def change_dataset(worker: int) -> None:
    info = get_worker_info()
    assert info is not None
    info.dataset.n = 100 + worker


class Who(Slow):
    def __getitem__(self, index: int) -> Any:
        return index, os.getpid(), float(chainrule.rand(()))


class Dying(Slow):
    def __getitem__(self, index: int) -> Any:
        if index == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return index


class Sleeping(Slow):
    def __getitem__(self, index: int) -> Any:
        time.sleep(0.3)
        return index


class Demanding(Exception):
    def __init__(self, a: int, b: int):
        super().__init__(a, b)


def broken_init(worker: int) -> None:
    raise ValueError(f"no worker {worker}")


def unsendable(batch: Any) -> Any:
    return lambda: batch


def test_workers_keep_the_order() -> None:
    loader = DataLoader(Uneven(12), 2, num_workers=2)
    read = list(loader)
    assert [x.tolist() for x, _ in read] == batches_of(12, 2)
    pids = [set(p.tolist()) for _, p in read]
    assert os.getpid() not in set.union(*pids)
    assert pids[0] == pids[2] == pids[4] != pids[1]


def batches_of(n: int, size: int) -> list[list[int]]:
    return [list(range(i, min(i + size, n))) for i in range(0, n, size)]


def test_batches_from_workers_can_be_written() -> None:
    for x, _ in DataLoader(in_memory(4), 4, num_workers=1):
        x += 1
        assert x.tolist() == [1, 2, 3, 4]


def test_workers_read_ahead(tmp_path: Path) -> None:
    """While the main process does something else, each worker prepares its batches."""
    path = tmp_path / "read"
    it = iter(DataLoader(Noting(20, path), 1, num_workers=2, prefetch_factor=3))
    next(it)
    deadline = time.monotonic() + 5
    while path.stat().st_size < 7 and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.05)
    assert path.stat().st_size == 7  # 2 * 3 ahead and the one that was handed out
    del it


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_start_methods(method: str) -> None:
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no {method} here")
    loader = DataLoader(in_memory(5), 2, num_workers=1, multiprocessing_context=method)
    assert numbers(loader) == [0, 1, 2, 3, 4]


def test_workers_are_seeded_from_the_generator() -> None:
    def epoch(loader: Any) -> list[Any]:
        return [(plain(i), plain(seed), plain(drawn)) for i, seed, drawn in loader]

    loader = DataLoader(Drawing(6), 1, num_workers=2, generator=seeded(7))
    first, second = epoch(loader), epoch(loader)
    again = epoch(DataLoader(Drawing(6), 1, num_workers=2, generator=seeded(7)))
    assert again == first
    assert second != first
    (_, seed0, drawn0), (_, seed1, drawn1) = first[:2]
    assert seed1[0] == seed0[0] + 1
    assert all(a != b for a, b in zip(drawn0, drawn1, strict=True))


def test_worker_init_fn_and_info() -> None:
    loader = DataLoader(Asking(4), 1, num_workers=2, worker_init_fn=change_dataset)
    assert batches(loader) == [[[i % 2], [2], [100 + i % 2]] for i in range(4)]
    assert get_worker_info() is None


def test_streams_with_workers() -> None:
    """PyTorch's documented example: each worker reads its half, and they take turns."""
    assert batches(DataLoader(Count(3, 7), num_workers=2)) == [[3], [5], [4], [6]]
    assert batches(DataLoader(Count(3, 8), num_workers=2)) == [[3], [6], [4], [7], [5]]
    assert sorted(numbers_of(DataLoader(Count(0, 17), 4, num_workers=3))) == list(range(17))


def numbers_of(loader: Any) -> list[int]:
    return [i for batch in loader for i in batch.tolist()]


def test_persistent_workers() -> None:
    def epochs(**kwargs: Any) -> tuple[list[Any], list[set[int]]]:
        loader = DataLoader(Who(6), 2, shuffle=True, generator=seeded(), num_workers=2, **kwargs)
        read = [list(loader) for _ in range(2)]
        for _ in loader:
            break  # what was read ahead is not part of the next epoch
        read.append(list(loader))
        pids = [{int(p) for b in epoch for p in b[1]} for epoch in read]
        return [[(b[0].tolist(), b[2].tolist()) for b in epoch] for epoch in read], pids

    content, pids = epochs(persistent_workers=True)
    assert pids[0] == pids[1] == pids[2]
    fresh_content, fresh_pids = epochs()
    assert fresh_content == content
    assert fresh_pids[0] != fresh_pids[1]


def test_two_epochs_at_once_need_workers_of_their_own() -> None:
    loader = DataLoader(Slow(8), 1, num_workers=1, persistent_workers=True)
    first = iter(loader)
    next(first)
    second = iter(loader)
    next(second)
    with pytest.raises(RuntimeError, match="one epoch goes on at a time"):
        list(first)
    plainly = DataLoader(Slow(4), 1, num_workers=1)
    assert [plain(a) == plain(b) for a, b in zip(plainly, plainly, strict=True)] == [True] * 4


def test_workers_end_with_the_epoch() -> None:
    def children() -> int:
        return len(multiprocessing.active_children())

    before = children()
    list(DataLoader(Slow(4), 1, num_workers=2))
    assert children() == before
    it = iter(DataLoader(Slow(100), 1, num_workers=2))
    next(it)
    assert children() == before + 2
    del it
    gc.collect()
    assert children() == before
    loader = DataLoader(Slow(4), 1, num_workers=2, persistent_workers=True)
    list(loader)
    assert children() == before + 2
    gone = weakref.ref(loader)
    del loader
    gc.collect()
    assert gone() is None
    assert children() == before


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ValueError("bad value"), ValueError),
        (KeyError("bad value"), KeyError),
        (Demanding(1, 2), RuntimeError),
        (StopIteration("bad value"), RuntimeError),
    ],
    ids=["ValueError", "KeyError", "own arguments", "StopIteration"],
)
def test_exceptions_of_workers_name_the_sample(error: Exception, kind: type[Exception]) -> None:
    loader = DataLoader(Faulty(9, 5, error), 2, num_workers=2)
    it = iter(loader)
    assert [next(it)[0].tolist() for _ in range(2)] == [[0, 1], [2, 3]]
    with pytest.raises(kind) as caught:
        next(it)
    text = str(caught.value)
    assert text.startswith(f"DataLoader worker 0: {type(error).__name__}: ")
    assert "raised by sample 5 of the Faulty" in text
    assert "__getitem__" in text


def test_exceptions_in_the_main_process_name_the_sample() -> None:
    with pytest.raises(ValueError, match="bad value") as caught:
        list(DataLoader(Faulty(9, 5, ValueError("bad value")), 2))
    assert caught.value.__notes__ == ["DataLoader: raised by sample 5 of the Faulty"]
    with pytest.raises(RuntimeError, match="generator raised StopIteration"):
        list(DataLoader(Faulty(9, 5, StopIteration()), 2))


def test_exceptions_around_samples() -> None:
    with pytest.raises(ValueError, match="DataLoader worker 0: ValueError: no worker 0"):
        list(DataLoader(Slow(4), 1, num_workers=1, worker_init_fn=broken_init))
    with pytest.raises((AttributeError, TypeError, RuntimeError), match="DataLoader worker 0"):
        list(DataLoader(Slow(4), 1, num_workers=1, collate_fn=unsendable))


def test_a_killed_worker_is_noticed() -> None:
    with pytest.raises(RuntimeError, match=r"worker 0 \(pid \d+\) exited unexpectedly .* code -9"):
        list(DataLoader(Dying(4), 1, num_workers=1))


def test_timeout() -> None:
    with pytest.raises(RuntimeError, match=r"timed out after 0.05 seconds waiting for worker 0"):
        list(DataLoader(Sleeping(2), 1, num_workers=1, timeout=0.05))

"""DataLoader: order, batches, workers, and going on in the middle of an epoch."""

from __future__ import annotations

import gc
import multiprocessing
import os
import random
import signal
import time
import weakref
from collections import Counter, namedtuple
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import chainrule
from chainrule.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    Sampler,
    SequentialSampler,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
    default_collate,
    default_convert,
    get_worker_info,
)


def seeded(seed: int = 0) -> chainrule.Generator:
    return chainrule.Generator().manual_seed(seed)


def in_memory(n: int) -> TensorDataset:
    return TensorDataset(chainrule.arange(n), chainrule.arange(n) * 10)


class Slow(Dataset[Any]):
    """The same samples, one at a time."""

    def __init__(self, n: int):
        self.n = n

    def __getitem__(self, index: int) -> tuple[chainrule.Tensor, int]:
        return chainrule.tensor(index), index * 10

    def __len__(self) -> int:
        return self.n


class Noisy(Slow):
    """Samples that draw random numbers when they are read."""

    def __getitem__(self, index: int) -> Any:
        return index, chainrule.rand(2)


class Faulty(Slow):
    def __init__(self, n: int, bad: int, error: BaseException):
        super().__init__(n)
        self.bad, self.error = bad, error

    def __getitem__(self, index: int) -> Any:
        if index == self.bad:
            raise self.error
        return super().__getitem__(index)


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


def batches(loader: Any) -> list[Any]:
    return [plain(batch) for batch in loader]


def plain(batch: Any) -> Any:
    if isinstance(batch, (list, tuple)):
        return [plain(part) for part in batch]
    return batch.tolist() if isinstance(batch, chainrule.Tensor) else batch


def numbers(loader: Any) -> list[int]:
    return [i for batch in loader for i in batch[0].tolist()]


# --- order and batches (P09, F13) -----------------------------------------------------------------


@pytest.mark.parametrize("make", [in_memory, Slow])
def test_batches_in_order(make: Any) -> None:
    loader = DataLoader(make(7), batch_size=3)
    assert batches(loader) == [
        [[0, 1, 2], [0, 10, 20]],
        [[3, 4, 5], [30, 40, 50]],
        [[6], [60]],
    ]
    assert len(loader) == 3
    dropping = DataLoader(make(7), batch_size=3, drop_last=True)
    assert batches(dropping) == batches(loader)[:2]
    assert len(dropping) == 2


@pytest.mark.parametrize("make", [in_memory, Slow])
@pytest.mark.parametrize("batch_size", [1, 4, 10, 25])
def test_an_epoch_shuffles_all_samples(make: Any, batch_size: int) -> None:
    loader = DataLoader(make(20), batch_size, shuffle=True, generator=seeded())
    first, second = numbers(loader), numbers(loader)
    assert sorted(first) == sorted(second) == list(range(20))
    assert first != second
    for x, y in loader:
        assert (x * 10).tolist() == y.tolist()


def test_the_way_of_reading_does_not_change_the_order() -> None:
    """In memory, sample by sample, and by workers: one seed, one order, epoch after epoch."""
    loaders = [
        DataLoader(in_memory(23), 4, shuffle=True, generator=seeded()),
        DataLoader(Slow(23), 4, shuffle=True, generator=seeded()),
        DataLoader(Slow(23), 4, shuffle=True, generator=seeded(), num_workers=2),
    ]
    for _ in range(2):
        first, *others = [batches(loader) for loader in loaders]
        assert others == [first, first]


def test_manual_seed_makes_loading_reproducible() -> None:
    def epochs() -> list[int]:
        chainrule.manual_seed(3)
        loader = DataLoader(in_memory(30), 7, shuffle=True)
        return numbers(loader) + numbers(loader)

    assert epochs() == epochs()


def test_reading_in_order_draws_no_random_number() -> None:
    """Evaluating or not does not change what a training run draws next."""
    before = chainrule.get_rng_state().tolist()
    batches(DataLoader(in_memory(9), 2))
    assert chainrule.get_rng_state().tolist() == before


def test_a_batch_in_memory_is_one_choice_of_rows() -> None:
    class Counting(TensorDataset):
        calls = 0

        def take(self, indices: Any) -> Any:
            type(self).calls += 1
            return super().take(indices)

        def __getitem__(self, index: Any) -> Any:
            raise RuntimeError("read sample by sample")

    loader = DataLoader(Counting(chainrule.arange(100)), 30, shuffle=True)
    assert sorted(numbers(loader)) == list(range(100))
    assert Counting.calls == 4


@pytest.mark.parametrize("data", [chainrule.arange(12).reshape(6, 2), np.arange(12).reshape(6, 2)])
def test_tensors_and_arrays_are_datasets(data: Any) -> None:
    first, second = list(DataLoader(data, batch_size=4))
    assert first.tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert second.tolist() == [[8, 9], [10, 11]]
    assert len(next(iter(DataLoader(data, 4, shuffle=True)))) == 4


def test_ranges_and_lists_are_datasets() -> None:
    assert batches(DataLoader(range(5), batch_size=2)) == [[0, 1], [2, 3], [4]]
    assert batches(DataLoader(["a", "b", "c"], batch_size=2)) == [["a", "b"], ["c"]]


def test_single_samples_without_batches() -> None:
    assert batches(DataLoader(in_memory(2), batch_size=None)) == [[0, 0], [1, 10]]
    whole = DataLoader(
        in_memory(4), None, sampler=BatchSampler(SequentialSampler("abcd"), 3, False)
    )
    assert batches(whole) == [[[0, 1, 2], [0, 10, 20]], [[3], [30]]]


@pytest.mark.parametrize("make", [in_memory, Slow])
def test_own_sampler_and_batch_sampler(make: Any) -> None:
    assert numbers(DataLoader(make(9), 2, sampler=[5, 3, 8])) == [5, 3, 8]
    loader = DataLoader(make(9), batch_sampler=[[1, 2], [7], [0, 0, 3]])
    assert [batch[0].tolist() for batch in loader] == [[1, 2], [7], [0, 0, 3]]
    assert len(loader) == 3
    assert loader.batch_size is None


def test_own_collate_fn_gets_samples() -> None:
    loader = DataLoader(in_memory(4), 2, collate_fn=lambda samples: [int(x) for x, _ in samples])
    assert list(loader) == [[0, 1], [2, 3]]


def test_many_samples_at_once_as_in_pytorch() -> None:
    class Fetching(Slow):
        def __getitems__(self, indices: list[int]) -> list[Any]:
            return [(i, -i) for i in indices]

    assert batches(DataLoader(Fetching(3), 2)) == [[[0, 1], [0, -1]], [[2], [-2]]]


def test_an_empty_dataset_has_no_batches() -> None:
    loader = DataLoader(in_memory(0), 4)
    assert (len(loader), list(loader)) == (0, [])


def test_streams() -> None:
    assert batches(DataLoader(Count(3, 8), batch_size=2)) == [[3, 4], [5, 6], [7]]
    assert batches(DataLoader(Count(3, 8), batch_size=2, drop_last=True)) == [[3, 4], [5, 6]]
    assert batches(DataLoader(Count(3, 6), batch_size=None)) == [3, 4, 5]
    assert [len(DataLoader(Count(3, 8), 2, drop_last=d)) for d in (False, True)] == [3, 2]


# --- samplers (O04) -------------------------------------------------------------------------------


def test_sampling_without_replacement() -> None:
    assert sorted(RandomSampler(range(10))) == list(range(10))
    assert Counter(RandomSampler(range(5), num_samples=15)) == dict.fromkeys(range(5), 3)
    part = list(RandomSampler(range(10), num_samples=4))
    assert len(set(part)) == 4


def test_sampling_with_replacement() -> None:
    """Of n draws with replacement about n/e of n samples do not come at all."""
    n = 20000
    sampler = RandomSampler(range(n), replacement=True, generator=seeded())
    drawn = list(sampler)
    assert len(drawn) == len(sampler) == n
    assert set(drawn) <= set(range(n))
    missed = 1 - len(set(drawn)) / n
    assert abs(missed - np.exp(-1)) < 0.01
    assert len(list(RandomSampler(range(3), True, 100))) == 100


def test_replacement_in_a_loader() -> None:
    sampler = RandomSampler(range(50), replacement=True, num_samples=120, generator=seeded())
    loader = DataLoader(in_memory(50), 32, sampler=sampler)
    sizes = [len(x) for x, _ in loader]
    assert sizes == [32, 32, 32, 24]
    assert len(set(numbers(loader))) < 50


def test_weighted_sampling() -> None:
    weights = [1.0, 0.0, 3.0]
    drawn = Counter(WeightedRandomSampler(weights, 8000, generator=seeded()))
    assert drawn[1] == 0
    assert abs(drawn[2] / 8000 - 0.75) < 0.02
    alone = list(WeightedRandomSampler([0.1, 0.9, 0.4], 3, replacement=False))
    assert sorted(alone) == [0, 1, 2]


def test_subset_sampling() -> None:
    assert sorted(SubsetRandomSampler([7, 3, 5])) == [3, 5, 7]
    assert sorted(numbers(DataLoader(in_memory(9), 2, sampler=SubsetRandomSampler([7, 3])))) == [
        3,
        7,
    ]


def test_batch_sampler() -> None:
    assert list(BatchSampler(range(5), 2, False)) == [[0, 1], [2, 3], [4]]
    assert list(BatchSampler(range(5), 2, True)) == [[0, 1], [2, 3]]
    assert [len(BatchSampler(range(5), 2, d)) for d in (False, True)] == [3, 2]


def test_an_overridden_order_is_respected() -> None:
    class Backwards(SequentialSampler):
        def __iter__(self) -> Iterator[int]:
            return iter(range(len(self) - 1, -1, -1))

    class Pairs(BatchSampler):
        def __iter__(self) -> Iterator[list[int]]:
            return iter([[0, 2], [1, 3]])

    data = in_memory(4)
    assert numbers(DataLoader(data, 3, sampler=Backwards(data))) == [3, 2, 1, 0]
    assert numbers(DataLoader(data, batch_sampler=Pairs(range(4), 2, False))) == [0, 2, 1, 3]


# --- collate --------------------------------------------------------------------------------------


def test_default_collate() -> None:
    Point = namedtuple("Point", ["x", "y"])
    assert default_collate([1, 2]).dtype == chainrule.int64
    assert default_collate([1.5, 2.5]).dtype == chainrule.float64
    assert default_collate([True, False]).tolist() == [True, False]
    assert default_collate([np.float32(1), np.float32(2)]).dtype == chainrule.float32
    assert default_collate([np.ones(2), np.zeros(2)]).tolist() == [[1, 1], [0, 0]]
    assert plain(default_collate([{"a": 1, "b": "x"}, {"a": 2, "b": "y"}])["a"]) == [1, 2]
    point = default_collate([Point(1, 2), Point(3, 4)])
    assert (type(point), point.y.tolist()) == (Point, [2, 4])
    assert plain(default_collate([[1, (2.0, "a")], [3, (4.0, "b")]])) == [
        [1, 3],
        [[2, 4], ["a", "b"]],
    ]


def test_default_convert() -> None:
    converted = default_convert({"a": np.ones(2), "b": ["x", np.int64(3)], "c": 5})
    assert converted["a"].tolist() == [1, 1]
    assert converted["b"][0] == "x"
    assert isinstance(converted["b"][1], chainrule.Tensor)
    assert converted["c"] == 5


# --- workers --------------------------------------------------------------------------------------


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


# --- going on in the middle of an epoch -----------------------------------------------------------

Make = Callable[[], DataLoader]
RESUMED: dict[str, Make] = {
    "in memory": lambda: DataLoader(in_memory(23), 4, shuffle=True, generator=seeded(1)),
    "in order": lambda: DataLoader(in_memory(23), 4),
    "sample by sample": lambda: DataLoader(Slow(23), 4, shuffle=True, generator=seeded(1)),
    "own sampler": lambda: DataLoader(
        in_memory(23), 4, sampler=RandomSampler(range(23), True, generator=seeded(1))
    ),
    "own batch sampler": lambda: DataLoader(
        in_memory(23),
        batch_sampler=BatchSampler(SubsetRandomSampler(range(5, 23), seeded(1)), 3, True),
    ),
    "stream": lambda: DataLoader(Count(0, 23), 4),
    "workers": lambda: DataLoader(Noisy(23), 4, shuffle=True, generator=seeded(1), num_workers=2),
    "persistent workers": lambda: DataLoader(
        Noisy(23), 4, shuffle=True, generator=seeded(1), num_workers=3, persistent_workers=True
    ),
    "stream with workers": lambda: DataLoader(Count(0, 23), 4, generator=seeded(1), num_workers=2),
}


@pytest.mark.parametrize("stop", [1, 4])
@pytest.mark.parametrize("name", RESUMED)
def test_resumed_in_the_middle_of_an_epoch(name: str, stop: int) -> None:
    """The rest of the interrupted epoch and the epoch after it are the same."""
    loader = RESUMED[name]()
    list(loader)
    it = iter(loader)
    for _ in range(stop):
        next(it)
    state = loader.state_dict()
    expected = [plain(b) for b in it], batches(loader)
    resumed = RESUMED[name]()
    resumed.load_state_dict(state)
    assert repr(resumed.state_dict()) == repr(state)
    assert batches(resumed) == expected[0]
    assert batches(resumed) == expected[1]
    assert len(expected[0]) == len(loader) - stop


def test_resumed_between_epochs() -> None:
    loader = RESUMED["in memory"]()
    list(loader)
    state = loader.state_dict()
    assert state["position"] == 0
    expected = batches(loader)
    resumed = RESUMED["in memory"]()
    resumed.load_state_dict(state)
    assert batches(resumed) == expected


def test_resumed_behind_the_last_batch() -> None:
    """Saved in the last turn of the loop: nothing is left, then comes the next epoch."""
    loader = RESUMED["in memory"]()
    for _ in loader:
        state = loader.state_dict()
    expected = batches(loader)
    resumed = RESUMED["in memory"]()
    resumed.load_state_dict(state)
    assert batches(resumed) == []
    assert batches(resumed) == expected


def test_resumed_with_the_default_generator() -> None:
    """Its state is saved by whoever saves the run; other draws from it are not disturbed."""

    def run(loader: DataLoader, log: list[Any], stop: int | None = None) -> None:
        for i, (x, _) in enumerate(loader):
            log.append((x.tolist(), float(chainrule.rand(()))))
            if i + 1 == stop:
                break

    chainrule.manual_seed(11)
    loader = DataLoader(in_memory(20), 4, shuffle=True)
    log: list[Any] = []
    run(loader, log, stop=2)
    saved, states = chainrule.get_rng_state(), loader.state_dict()
    chainrule.manual_seed(11)
    whole: list[Any] = []
    for _ in range(2):
        run(loader, whole)
    chainrule.manual_seed(99)
    fresh = DataLoader(in_memory(20), 4, shuffle=True)
    chainrule.set_rng_state(saved)
    fresh.load_state_dict(states)
    for _ in range(2):
        run(fresh, log)
    assert log == whole


def test_interrupted_epochs_can_be_saved() -> None:
    loader = RESUMED["in memory"]()
    seen = []
    try:
        for x, _ in loader:
            seen += x.tolist()
            if len(seen) > 10:
                raise KeyboardInterrupt
    except KeyboardInterrupt:
        state = loader.state_dict()
    resumed = RESUMED["in memory"]()
    resumed.load_state_dict(state)
    assert sorted(seen + numbers(resumed)) == list(range(23))


def test_a_new_epoch_forgets_the_one_that_was_left() -> None:
    loader = RESUMED["in memory"]()
    for _ in loader:
        break
    assert len(numbers(loader)) == 23
    assert loader.state_dict()["position"] == 0


@pytest.mark.parametrize(
    ("make", "change", "message"),
    [
        (
            lambda: DataLoader(in_memory(23), 5, generator=seeded()),
            {},
            "batch_size=4, .*batch_size=5",
        ),
        (lambda: DataLoader(in_memory(22), 4, generator=seeded()), {}, "samples=23, .*samples=22"),
        (lambda: DataLoader(in_memory(23), 4), {}, "holds 1 generators, this loader has 0"),
        (
            lambda: DataLoader(in_memory(23), 4, generator=seeded(), num_workers=2),
            {},
            "num_workers=0, .*num_workers=2",
        ),
        (lambda: DataLoader(in_memory(23), 4), {"position": None}, "the state has no position"),
    ],
)
def test_states_of_another_loader(make: Make, change: dict[str, Any], message: str) -> None:
    loader = DataLoader(in_memory(23), 4, generator=seeded())
    next(iter(loader))
    state = {k: v for k, v in loader.state_dict().items() if k not in change}
    with pytest.raises(ValueError, match=message):
        make().load_state_dict(state)


# --- bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kwargs", "error", "message"),
    [
        ({"batch_size": 0}, ValueError, "batch_size should be a positive .* got batch_size=0"),
        ({"batch_size": -1}, ValueError, "batch_size=-1"),
        ({"batch_size": 2.5}, ValueError, "batch_size=2.5"),
        ({"batch_size": True}, ValueError, "batch_size=True"),
        ({"drop_last": 1}, ValueError, "drop_last should be a boolean"),
        ({"num_workers": -1}, ValueError, "num_workers=0 to disable"),
        ({"timeout": -1, "num_workers": 1}, ValueError, "timeout option should be non-negative"),
        ({"prefetch_factor": 2}, ValueError, "prefetch_factor option needs num_workers > 0"),
        ({"prefetch_factor": 0, "num_workers": 1}, ValueError, "should be positive, got 0"),
        ({"persistent_workers": True}, ValueError, "persistent_workers option needs num_workers"),
        ({"multiprocessing_context": "fork"}, ValueError, "needs num_workers > 0"),
        (
            {"multiprocessing_context": "knife", "num_workers": 1},
            ValueError,
            "valid start method in .*'knife'",
        ),
        ({"multiprocessing_context": 3, "num_workers": 1}, TypeError, "valid context object"),
        ({"pin_memory": True}, ValueError, "tensors live on the CPU"),
        ({"generator": 3}, TypeError, "generator must be a Generator, not int"),
        ({"sampler": [0], "shuffle": True}, ValueError, "mutually exclusive with shuffle"),
        ({"batch_sampler": [[0]], "batch_size": 2}, ValueError, "mutually exclusive with batch_"),
        ({"batch_sampler": [[0]], "shuffle": True}, ValueError, "mutually exclusive with batch_"),
        ({"batch_size": None, "drop_last": True}, ValueError, "disables auto-batching"),
    ],
)
def test_bad_arguments(kwargs: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        DataLoader(in_memory(4), **kwargs)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: DataLoader(in_memory(0), shuffle=True), ValueError, "num_samples=0: the dataset"),
        (lambda: DataLoader(Count(0, 3), shuffle=True), ValueError, "unspecified shuffle option"),
        (lambda: DataLoader(Count(0, 3), sampler=[0]), ValueError, "unspecified sampler option"),
        (
            lambda: DataLoader(Count(0, 3), batch_sampler=[[0]]),
            ValueError,
            "unspecified batch_sampler option",
        ),
        (lambda: DataLoader(Count(0, 3), batch_size=0), ValueError, "batch_size=0"),
        (lambda: RandomSampler(range(3), replacement=1), TypeError, "should be a boolean"),
        (lambda: RandomSampler(range(3), num_samples=0), ValueError, "got num_samples=0"),
        (lambda: WeightedRandomSampler([1.0], 0), ValueError, "got num_samples=0"),
        (lambda: WeightedRandomSampler([[1.0]], 1), ValueError, r"weights have shape \(1, 1\)"),
        (lambda: WeightedRandomSampler([1.0], 1, 1), ValueError, "should be a boolean"),
        (
            lambda: list(WeightedRandomSampler([1.0, 1.0], 3, replacement=False)),
            RuntimeError,
            "cannot sample 3 of 2",
        ),
        (lambda: list(Sampler()), NotImplementedError, "should implement __iter__"),
        (lambda: default_collate([]), IndexError, "the batch is empty"),
        (lambda: default_collate([object()]), TypeError, "found <class 'object'>"),
        (lambda: default_collate([np.array(["a"])]), TypeError, "found an array of <U1"),
        (lambda: default_collate([[1], [1, 2]]), RuntimeError, r"of equal size, .* \[1, 2\]"),
        (
            lambda: default_collate([chainrule.ones(2), chainrule.ones(3)]),
            RuntimeError,
            "equal size",
        ),
        (lambda: list(DataLoader(in_memory(3), 2, sampler=[0, 9])), IndexError, "index 9 is out"),
        (
            lambda: setattr(DataLoader(in_memory(3)), "batch_size", 2),
            ValueError,
            "batch_size attribute should not be set after",
        ),
    ],
)
def test_bad_input(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_lengths_that_nobody_knows() -> None:
    class Endless(IterableDataset[int]):
        def __iter__(self) -> Iterator[int]:
            return iter(range(5))

    loader = DataLoader(Endless(), 2)
    with pytest.raises(TypeError, match="has no len"):
        len(loader)
    assert len(list(loader)) == 3
    it = iter(loader)
    next(it)
    state = loader.state_dict()
    resumed = DataLoader(Endless(), 2)
    resumed.load_state_dict(state)
    assert batches(resumed) == [[2, 3], [4]]


def test_subsets_of_subsets_load() -> None:
    data = Subset(Subset(in_memory(50), range(10, 40)), [0, 5, 29])
    assert numbers(DataLoader(data, 2)) == [10, 15, 39]

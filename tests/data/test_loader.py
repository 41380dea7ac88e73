"""Loaders: order and batches, samplers, collating."""

from __future__ import annotations

from collections import Counter, namedtuple
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from data.loading import Count, Slow, plain

import chainrule
from chainrule.data import (
    BatchSampler,
    DataLoader,
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
)


def seeded(seed: int = 0) -> chainrule.Generator:
    return chainrule.Generator().manual_seed(seed)


def in_memory(n: int) -> TensorDataset:
    return TensorDataset(chainrule.arange(n), chainrule.arange(n) * 10)


def batches(loader: Any) -> list[Any]:
    return [plain(batch) for batch in loader]


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

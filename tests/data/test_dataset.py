"""Datasets, what they are made of, and how a batch is read from memory."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import chainrule
from chainrule.data import (
    ChainDataset,
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)


def numbered(n: int, start: int = 0) -> TensorDataset:
    """Sample i is (a row of 2 numbers, start + i)."""
    x = chainrule.arange(2 * n, dtype=chainrule.float32).reshape(n, 2) + start
    return TensorDataset(x, chainrule.arange(start, start + n))


class Squares(Dataset[int]):
    def __init__(self, n: int):
        self.n = n

    def __getitem__(self, index: int) -> int:
        if not 0 <= index < self.n:
            raise IndexError(f"no sample {index}")
        return index**2

    def __len__(self) -> int:
        return self.n


class Stream(IterableDataset[int]):
    def __init__(self, *values: int):
        self.values = values

    def __iter__(self) -> Iterator[int]:
        return iter(self.values)

    def __len__(self) -> int:
        return len(self.values)


# --- samples --------------------------------------------------------------------------------------


def test_tensor_dataset() -> None:
    data = numbered(4)
    x, y = data[2]
    assert x.tolist() == [4, 5]
    assert y.item() == 2
    assert len(data) == 4
    assert [t.tolist() for t in data[1:3]] == [[[2, 3], [4, 5]], [1, 2]]


def test_concatenated_datasets() -> None:
    both = Squares(3) + Squares(4)
    assert isinstance(both, ConcatDataset)
    assert [both[i] for i in range(7)] == [0, 1, 4, 0, 1, 4, 9]
    assert (both[-1], both[-7]) == (9, 0)
    assert both.cumulative_sizes == [3, 7]


def test_chained_streams() -> None:
    chain = Stream(1, 2) + Stream(3)
    assert isinstance(chain, ChainDataset)
    assert list(chain) == [1, 2, 3]
    assert list(chain) == [1, 2, 3]
    assert len(chain) == 3


def test_stacked_datasets() -> None:
    assert StackDataset(Squares(3), Squares(4 - 1))[2] == (4, 4)
    assert StackDataset(a=Squares(3), b="xyz")[1] == {"a": 1, "b": "y"}


def test_subset() -> None:
    part = Subset(Squares(10), [7, 2, 2])
    assert [part[i] for i in range(len(part))] == [49, 4, 4]
    assert Subset(numbered(5), [4, 0])[[0, 1]][1].tolist() == [4, 0]
    assert Subset(Squares(10), chainrule.tensor([3, 1]))[1] == 1


@pytest.mark.parametrize("make", [lambda: numbered(3), lambda: Subset(numbered(5), [1, 3])])
def test_datasets_can_be_pickled(make: Any) -> None:
    data = make()
    again = pickle.loads(pickle.dumps(data))
    assert [t.tolist() for t in again[1]] == [t.tolist() for t in data[1]]


# --- whole batches --------------------------------------------------------------------------------

MEMORY = {
    "tensors": lambda: numbered(9),
    "subset": lambda: Subset(numbered(20), [3, 1, 19, 4, 0, 0, 7, 2, 11]),
    "subset of a range": lambda: Subset(numbered(20), range(5, 14)),
    "subset backwards": lambda: Subset(numbered(9), range(8, -1, -1)),
    "concatenation": lambda: numbered(2) + numbered(4, 10) + numbered(3, 20),
    "subset of a concatenation": lambda: Subset(numbered(4) + numbered(9), range(2, 11)),
    "stack": lambda: StackDataset(numbered(9), numbered(9, 50)),
    "named stack": lambda: StackDataset(a=numbered(9), b=numbered(9, 50)),
}


def plain(batch: Any) -> Any:
    if isinstance(batch, dict):
        return {k: plain(v) for k, v in batch.items()}
    return [plain(v) for v in batch] if isinstance(batch, (tuple, list)) else batch.tolist()


@pytest.mark.parametrize("name", MEMORY)
def test_take_gives_the_samples_of_getitem(name: str) -> None:
    data = MEMORY[name]()
    assert data.in_memory
    for indices in (slice(2, 7), slice(0, 9), chainrule.tensor([8, 0, 3, 3, -1])):
        numbers = range(9)[indices] if isinstance(indices, slice) else indices.tolist()
        expected = [data[i] for i in numbers]
        assert plain(data.take(indices)) == plain(chainrule.data.default_collate(expected))


@pytest.mark.parametrize("name", MEMORY)
def test_a_batch_is_a_copy(name: str) -> None:
    """What is done to a batch in place leaves the dataset as it is."""

    def tensors(batch: Any) -> list[Any]:
        if isinstance(batch, chainrule.Tensor):
            return [batch]
        parts = batch.values() if isinstance(batch, dict) else batch
        return [t for part in parts for t in tensors(part)]

    data = MEMORY[name]()
    before = plain(data[0])
    for batch in DataLoader(data, batch_size=9):
        for t in tensors(batch):
            t.zero_()
    assert plain(data[0]) == before


def test_gradients_flow_into_a_dataset() -> None:
    x = chainrule.ones(4, 2, requires_grad=True)
    for indices in (slice(1, 3), chainrule.tensor([1, 2])):
        (batch,) = TensorDataset(x).take(indices)
        (g,) = chainrule.autograd.grad(batch.sum(), x)
        assert g.sum(1).tolist() == [0, 2, 2, 0]


def test_overriding_getitem_alone_is_respected() -> None:
    class Doubled(TensorDataset):
        def __getitem__(self, index: Any) -> Any:
            return tuple(2 * t for t in super().__getitem__(index))

    data = Doubled(chainrule.arange(3))
    assert not data.in_memory
    assert not Subset(data, [0, 1]).in_memory
    assert [x.tolist() for (x,) in DataLoader(data, batch_size=3)] == [[0, 2, 4]]


def test_datasets_without_take_are_not_in_memory() -> None:
    assert not Squares(3).in_memory
    assert not (Squares(3) + numbered(2)).in_memory
    assert not StackDataset(numbered(3), Squares(3)).in_memory


# --- random_split ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lengths", "expected"),
    [
        ([3, 7], [3, 7]),
        ([0.3, 0.3, 0.4], [3, 3, 4]),
        ([0.25, 0.25, 0.5], [3, 2, 5]),
        ([1.0], [10]),
        ([10, 0], [10, 0]),
    ],
)
def test_random_split(lengths: list[float], expected: list[int]) -> None:
    parts = random_split(range(10), lengths)
    assert [len(p) for p in parts] == expected
    assert sorted(i for part in parts for i in part.indices) == list(range(10))


def test_random_split_is_seeded() -> None:
    def split(seed: int) -> list[Any]:
        g = chainrule.Generator().manual_seed(seed)
        return [p.indices for p in random_split(range(50), [20, 30], g)]

    assert split(1) == split(1)
    assert split(1) != split(2)


# --- bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: TensorDataset(), ValueError, "at least one tensor"),
        (
            lambda: TensorDataset(chainrule.ones(3), chainrule.ones(4)),
            AssertionError,
            r"Size mismatch between tensors: they have \[3, 4\] rows",
        ),
        (
            lambda: TensorDataset(chainrule.ones(3), np.ones(3)),  # type: ignore[arg-type]
            TypeError,
            "argument 1 must be a Tensor, not ndarray; convert it with chainrule.as_tensor",
        ),
        (lambda: TensorDataset(chainrule.tensor(1.0)), IndexError, "without dimensions"),
        (lambda: numbered(3)[5], IndexError, "index 5 is out of bounds"),
        (lambda: numbered(3).take(chainrule.tensor([1, 7])), IndexError, "index 7 is out of"),
        (lambda: ConcatDataset([]), AssertionError, "should not be an empty iterable"),
        (lambda: ConcatDataset([Stream(1)]), AssertionError, "does not support IterableDataset"),
        (lambda: (Squares(2) + Squares(1))[3], IndexError, "index 3 is out of range for 3"),
        (lambda: (Squares(2) + Squares(1))[-4], ValueError, "should not exceed dataset length"),
        (
            lambda: (numbered(2) + numbered(1)).take(chainrule.tensor([0, 3])),
            IndexError,
            "out of range for 3 samples",
        ),
        (lambda: ChainDataset([Squares(2)]), AssertionError, "only supports IterableDataset"),
        (lambda: StackDataset(), ValueError, "At least one dataset"),
        (lambda: StackDataset("ab", "c"), ValueError, r"Size mismatch between datasets: \[2, 1\]"),
        (lambda: StackDataset("ab", x="cd"), ValueError, "by position .* or by name"),
        (lambda: random_split(range(10), [3, 3]), ValueError, r"\[3, 3\] sum to 6, .* 10 samples"),
        (lambda: random_split(range(10), [0.5, 0.4]), ValueError, "fractions must sum to 1"),
        (lambda: random_split(range(10), [11, -1]), ValueError, "length at index 1 is -1"),
        (lambda: random_split(range(10), [1.5, -0.5]), ValueError, "Fraction at index 0"),
        (lambda: Dataset()[0], NotImplementedError, "should implement __getitem__"),
        (lambda: iter(IterableDataset()), NotImplementedError, "should implement __iter__"),
    ],
)
def test_bad_input(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_an_empty_part_is_warned_of() -> None:
    with pytest.warns(UserWarning, match="Length of split at index 1 is 0"):
        random_split(range(3), [0.99, 0.01])

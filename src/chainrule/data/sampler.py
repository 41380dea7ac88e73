"""Samplers: the order in which an epoch goes through a dataset.

A sampler that knows its whole order beforehand has ``order()``: a range, or an int64 tensor. The
loader cuts batches out of that without a Python number per sample.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any, Generic, TypeVar

from chainrule.backend import processes
from chainrule.data.dataset import defined_together, numbers
from chainrule.ops.creation.from_data import as_tensor
from chainrule.ops.index.reading import getitem
from chainrule.ops.creation.sampling import multinomial, randint, randperm
from chainrule.ops.shape.stacking import cat
from chainrule.random import Generator
from chainrule.tensor import Tensor, of_array

__all__ = [
    "BatchSampler",
    "DistributedSampler",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "SubsetRandomSampler",
    "WeightedRandomSampler",
]

T = TypeVar("T", covariant=True)


class Sampler(Generic[T]):
    """Numbers of samples one after the other: subclasses define ``__iter__`` (and ``__len__``)."""

    def __iter__(self) -> Iterator[T]:
        raise NotImplementedError(
            f"{type(self).__name__}: subclasses of Sampler should implement __iter__"
        )


class _Ordered(Sampler[int]):
    """A sampler whose whole order is known when an epoch starts."""

    def order(self) -> range | Tensor:
        raise NotImplementedError

    def __iter__(self) -> Iterator[int]:
        order = self.order()
        return iter(order if isinstance(order, range) else order.tolist())


class SequentialSampler(_Ordered):
    """All samples in their own order."""

    def __init__(self, data_source: Sized):
        self.data_source = data_source

    def __len__(self) -> int:
        return len(self.data_source)

    def order(self) -> range:
        """0, 1, ..."""
        return range(len(self.data_source))


class RandomSampler(_Ordered):
    """The samples in random order; with ``replacement`` each is drawn from all, again and again.

    Without replacement every sample comes once before any comes again.

    >>> import chainrule
    >>> sampler = RandomSampler(range(5), generator=chainrule.Generator().manual_seed(0))
    >>> sorted(sampler)
    [0, 1, 2, 3, 4]
    """

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Generator | None = None,
    ):
        if not isinstance(replacement, bool):
            raise TypeError(
                "RandomSampler: replacement should be a boolean value, but got "
                f"replacement={replacement}"
            )
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator
        if num_samples is None and not len(data_source):
            raise ValueError(
                "RandomSampler: num_samples should be a positive integer value, but got "
                "num_samples=0: the dataset is empty, and nothing can be shuffled"
            )
        _check_num_samples("RandomSampler", self.num_samples)

    @property
    def num_samples(self) -> int:
        """How many samples make an epoch: all, as many as there are now, unless told."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __len__(self) -> int:
        return self.num_samples

    def order(self) -> Tensor:
        """A random order, drawn now."""
        n, count = len(self.data_source), self.num_samples
        if self.replacement:
            return randint(n, (count,), generator=self.generator)
        rounds = [randperm(n, generator=self.generator) for _ in range(-(-count // n))]
        return getitem(cat(rounds) if len(rounds) > 1 else rounds[0], slice(count))


class SubsetRandomSampler(_Ordered):
    """The samples at these indices in random order, without replacement."""

    def __init__(self, indices: Sequence[int], generator: Generator | None = None):
        self.indices = indices
        self.generator = generator

    def __len__(self) -> int:
        return len(self.indices)

    def order(self) -> Tensor:
        """The indices in a random order, drawn now."""
        return getitem(numbers(self.indices), randperm(len(self.indices), generator=self.generator))


class WeightedRandomSampler(_Ordered):
    """Samples drawn with probabilities proportional to the weights (of any sum).

    >>> import chainrule
    >>> g = chainrule.Generator().manual_seed(0)
    >>> list(WeightedRandomSampler([0.0, 1.0, 0.0], 3, generator=g))
    [1, 1, 1]
    """

    weights: Tensor

    def __init__(
        self,
        weights: Sequence[float] | Tensor,
        num_samples: int,
        replacement: bool = True,
        generator: Generator | None = None,
    ):
        _check_num_samples("WeightedRandomSampler", num_samples)
        if not isinstance(replacement, bool):
            raise ValueError(
                "WeightedRandomSampler: replacement should be a boolean value, but got "
                f"replacement={replacement}"
            )
        self.weights = as_tensor(weights, dtype="float64")
        if self.weights.ndim != 1:
            raise ValueError(
                "WeightedRandomSampler: weights should be a 1d sequence but given weights have "
                f"shape {tuple(self.weights.shape)}"
            )
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def __len__(self) -> int:
        return self.num_samples

    def order(self) -> Tensor:
        """As many draws as there are samples in an epoch."""
        return multinomial(
            self.weights, self.num_samples, self.replacement, generator=self.generator
        )


class DistributedSampler(_Ordered):
    """The share of one of several processes: every ``num_replicas``-th sample, from ``rank`` on.

    All processes draw the same order, from ``seed`` and the epoch. Where the samples cannot be
    shared out evenly, the first come again in the end, or the last are left out with ``drop_last``.
    By default the processes are those of ``distributed.init_process_group``; without it there is
    one, which gets all. Call ``set_epoch`` before each epoch, or all have the same order.

    >>> [list(DistributedSampler(range(5), 2, rank, shuffle=False)) for rank in (0, 1)]
    [[0, 2, 4], [1, 3, 0]]
    """

    def __init__(
        self,
        dataset: Sized,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ):
        self.dataset = dataset
        self.num_replicas = processes.size() if num_replicas is None else num_replicas
        self.rank = processes.rank() if rank is None else rank
        if not 0 <= self.rank < self.num_replicas:
            raise ValueError(
                f"DistributedSampler: Invalid rank {self.rank}, rank should be in the interval "
                f"[0, {self.num_replicas - 1}]"
            )
        self.epoch = 0
        self.shuffle = shuffle
        self.seed = seed
        self.drop_last = drop_last
        n, parts = len(dataset), self.num_replicas
        self.num_samples = n // parts if drop_last else -(-n // parts)
        self.total_size = self.num_samples * parts

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Says which epoch it is, so that each has an order of its own."""
        self.epoch = epoch

    def order(self) -> Tensor:
        """The samples of this process."""
        n = len(self.dataset)
        order = numbers(range(n))
        if self.shuffle:
            order = randperm(n, generator=Generator().manual_seed(self.seed + self.epoch))
        places = numbers([i % n for i in range(self.rank, self.total_size, self.num_replicas)])
        return getitem(order, places)


def _check_num_samples(op: str, value: Any) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
        raise ValueError(
            f"{op}: num_samples should be a positive integer value, but got num_samples={value}"
        )


class BatchSampler(Sampler[list[int]]):
    """The numbers of another sampler in batches; the last may be smaller, or is dropped.

    >>> list(BatchSampler(SequentialSampler(range(5)), batch_size=2, drop_last=False))
    [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Iterable[int], batch_size: int, drop_last: bool):
        if not isinstance(batch_size, int) or isinstance(batch_size, bool) or batch_size <= 0:
            raise ValueError(
                "BatchSampler: batch_size should be a positive integer value, but got "
                f"batch_size={batch_size}"
            )
        if not isinstance(drop_last, bool):
            raise ValueError(
                f"BatchSampler: drop_last should be a boolean value, but got drop_last={drop_last}"
            )
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        samples = iter(self.sampler)
        while batch := list(itertools.islice(samples, self.batch_size)):
            if len(batch) < self.batch_size and self.drop_last:
                return
            yield batch

    def __len__(self) -> int:
        n: int = len(self.sampler)  # type: ignore[arg-type]
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)

    def cut(self) -> Iterator[slice | Tensor] | None:
        """The batches as slices or int64 tensors, if the sampler knows its order beforehand."""
        if not defined_together(type(self.sampler), "order", "__iter__"):
            return None
        order = self.sampler.order()  # type: ignore[attr-defined]
        # The order is drawn now; what is cut out of it later draws nothing more.
        stop = len(order) // self.batch_size * self.batch_size if self.drop_last else len(order)
        starts = range(0, stop, self.batch_size)
        if isinstance(order, range):
            return (slice(i, min(i + self.batch_size, stop)) for i in starts)
        return (of_array(order.array[i : i + self.batch_size]) for i in starts)

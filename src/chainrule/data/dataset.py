"""Datasets: samples by number, or one after the other.

A dataset held in memory also has ``take(indices)``, which returns a whole batch at once: the loader
then reads a batch by one slice or one choice of rows instead of sample by sample.
"""

from __future__ import annotations

import bisect
import itertools
import math
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, Protocol, TypeGuard, TypeVar

from chainrule.backend import K
from chainrule.graph import Box
from chainrule.ops.core.arguments import made
from chainrule.ops.creation.conversion import clone
from chainrule.ops.creation.from_data import as_tensor, tensor
from chainrule.ops.index.reading import getitem, nonzero
from chainrule.ops.elementwise.logic import where
from chainrule.ops.creation.sampling import randperm
from chainrule.ops.shape.stacking import cat
from chainrule.ops.reduce.sort import argsort, bucketize
from chainrule.random import Generator
from chainrule.tensor import Tensor
from chainrule.typing import ArrayLike, Indexed, Samples

__all__ = [
    "ChainDataset",
    "ConcatDataset",
    "Dataset",
    "IterableDataset",
    "StackDataset",
    "Subset",
    "TensorDataset",
    "random_split",
]

T = TypeVar("T", covariant=True)
Indices = slice | Tensor


class InMemory(Protocol):
    """What gives whole batches at once."""

    def take(self, indices: Indices) -> Any: ...


def defined_together(cls: type, fast: str, slow: str) -> bool:
    """Whether ``fast`` still says the same as ``slow``: no class below it overrides ``slow``."""
    for base in cls.__mro__:
        if fast in vars(base):
            return True
        if slow in vars(base):
            return False
    return False


class Dataset(Generic[T]):
    """Samples by number: subclasses define ``__getitem__`` and, for most uses, ``__len__``.

    One that can read many samples at once also defines ``take(indices)``, where the indices are a
    slice or an int64 tensor, and the loader uses it. A subclass that overrides ``__getitem__``
    alone is read sample by sample again.

    >>> class Squares(Dataset):
    ...     def __getitem__(self, index):
    ...         return index**2
    ...     def __len__(self):
    ...         return 5
    >>> Squares()[3], len(Squares() + Squares())
    (9, 10)
    """

    @property
    def in_memory(self) -> bool:
        """Whether ``take`` gives whole batches of these samples."""
        return defined_together(type(self), "take", "__getitem__")

    def __getitem__(self, index: Any) -> T:
        raise NotImplementedError(
            f"{type(self).__name__}: subclasses of Dataset should implement __getitem__"
        )

    def __add__(self, other: Dataset[Any]) -> ConcatDataset[Any]:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T]):
    """Samples one after the other: subclasses define ``__iter__``.

    In a :class:`DataLoader` with workers every worker iterates over a copy of its own;
    :func:`get_worker_info` tells which part to read.
    """

    def __iter__(self) -> Iterator[T]:
        raise NotImplementedError(
            f"{type(self).__name__}: subclasses of IterableDataset should implement __iter__"
        )

    def __add__(self, other: Dataset[Any]) -> ChainDataset:  # type: ignore[override]
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """Tensors of one length: sample i is the tuple of their rows i.

    >>> import chainrule
    >>> data = TensorDataset(chainrule.eye(3), chainrule.tensor([5, 6, 7]))
    >>> data[1]
    (tensor([0., 1., 0.]), tensor(6))
    """

    tensors: tuple[Tensor, ...]

    def __init__(self, *tensors: Tensor):
        if not tensors:
            raise ValueError("TensorDataset: expected at least one tensor")
        for i, t in enumerate(tensors):
            if not isinstance(t, Tensor):
                raise TypeError(
                    f"TensorDataset: argument {i} must be a Tensor, not {type(t).__name__}; "
                    "convert it with chainrule.as_tensor"
                )
            if t.ndim == 0:
                raise IndexError(f"TensorDataset: argument {i} is a tensor without dimensions")
        lengths = [len(t) for t in tensors]
        if len(set(lengths)) > 1:
            raise AssertionError(
                f"TensorDataset: Size mismatch between tensors: they have {lengths} rows; sample i "
                "is row i of each"
            )
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple([t[index] for t in self.tensors])

    def __len__(self) -> int:
        return self.tensors[0].array.shape[0]

    def take(self, indices: Indices) -> tuple[Tensor, ...]:
        """The rows of each tensor, as copies."""
        return tuple([rows(t, indices) for t in self.tensors])

    def whole(self) -> tuple[Tensor, ...] | None:
        """The tensors whose rows ``take`` takes; None if there is more to it."""
        return whole_tensors(self.tensors)


def whole_tensors(parts: Sequence[Any]) -> tuple[Tensor, ...] | None:
    """Tensors without history, whose rows are numbers and nothing more; None for others."""
    plain = [isinstance(t, Tensor) and not t.requires_grad for t in parts]
    return tuple(parts) if all(plain) and not any(isinstance(t.array, Box) for t in parts) else None


def rows(t: Tensor, indices: Indices) -> Tensor:
    """A copy of these rows: what is done to a batch in place leaves the dataset as it is."""
    if not t.requires_grad and not isinstance(t.array, Box):
        # Nothing to differentiate: a small network takes less time than an operation's bookkeeping.
        try:
            return made(K.take_rows(t.array, getattr(indices, "array", indices)))
        except IndexError:
            pass  # getitem says which index is wrong
    out = getitem(t, indices)
    return clone(out) if isinstance(indices, slice) else out


class StackDataset(Dataset[Any]):
    """Datasets of one length side by side: samples are tuples, or dicts where they have names.

    >>> StackDataset(x=range(3), y="abc")[1]
    {'x': 1, 'y': 'b'}
    """

    datasets: tuple[Samples, ...] | dict[str, Samples]

    def __init__(self, *args: Samples, **kwargs: Samples):
        if args and kwargs:
            raise ValueError(
                "StackDataset: pass the datasets by position (samples are tuples) or by name "
                "(samples are dicts), not both"
            )
        if not args and not kwargs:
            raise ValueError("StackDataset: At least one dataset should be passed")
        self.datasets = args or kwargs
        lengths = [len(d) for d in self._parts()]
        if len(set(lengths)) > 1:
            raise ValueError(f"StackDataset: Size mismatch between datasets: {lengths}")
        self._length = lengths[0]

    def _parts(self) -> list[Any]:
        datasets = self.datasets
        return list(datasets.values() if isinstance(datasets, dict) else datasets)

    def _arranged(self, parts: Iterable[Any]) -> Any:
        if isinstance(self.datasets, dict):
            return dict(zip(self.datasets, parts, strict=True))
        return tuple(parts)

    @property
    def in_memory(self) -> bool:
        """Whether all datasets give whole batches."""
        return super().in_memory and all([is_in_memory(d) for d in self._parts()])

    def __getitem__(self, index: Any) -> Any:
        return self._arranged([d[index] for d in self._parts()])

    def __len__(self) -> int:
        return self._length

    def take(self, indices: Indices) -> Any:
        """The batches of all datasets, as a tuple or by name."""
        return self._arranged([d.take(indices) for d in self._parts()])


class ConcatDataset(Dataset[T]):
    """Datasets one behind the other.

    >>> both = ConcatDataset([range(3), range(10, 12)])
    >>> len(both), both[3], both[-1]
    (5, 10, 11)
    """

    datasets: list[Any]
    cumulative_sizes: list[int]

    def __init__(self, datasets: Iterable[Any]):
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("ConcatDataset: datasets should not be an empty iterable")
        if any(isinstance(d, IterableDataset) for d in self.datasets):
            raise AssertionError(
                "ConcatDataset does not support IterableDataset, whose samples have no numbers; "
                "use ChainDataset"
            )
        self.cumulative_sizes = list(itertools.accumulate(len(d) for d in self.datasets))

    @property
    def in_memory(self) -> bool:
        """Whether all datasets give whole batches."""
        return super().in_memory and all([is_in_memory(d) for d in self.datasets])

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, index: Any) -> T:
        n = len(self)
        if index < 0:
            if -index > n:
                raise ValueError(
                    "ConcatDataset: absolute value of index should not exceed dataset length, got "
                    f"{index} for {n} samples"
                )
            index += n
        if index >= n:
            raise IndexError(f"ConcatDataset: index {index} is out of range for {n} samples")
        part = bisect.bisect_right(self.cumulative_sizes, index)
        return self.datasets[part][index - self._start(part)]

    def _start(self, part: int) -> int:
        return self.cumulative_sizes[part - 1] if part else 0

    def take(self, indices: Indices) -> Any:
        """Each dataset gives its share at once; then all are brought into the order asked for."""
        n = len(self)
        if isinstance(indices, slice):
            indices = tensor(list(range(n)[indices]), dtype="int64")
        chosen: Tensor = where(indices < 0, indices + n, indices)
        part_of = bucketize(chosen, tensor(self.cumulative_sizes), right=True)
        pieces, places = [], []
        for part in sorted(set(part_of.tolist())):
            if part == len(self.datasets):
                raise IndexError(f"ConcatDataset: an index is out of range for {n} samples")
            at = nonzero(part_of == part, as_tuple=True)[0]
            pieces.append(self.datasets[part].take(getitem(chosen, at) - self._start(part)))
            places.append(at)
        if len(pieces) <= 1:
            return pieces[0] if pieces else self.datasets[0].take(chosen)
        return _merged(pieces, argsort(cat(places)))


def _merged(pieces: Sequence[Any], order: Tensor) -> Any:
    """Batches (tensors, or tuples or dicts of them) joined, their rows in this order."""
    first = pieces[0]
    if isinstance(first, Tensor):
        return getitem(cat(list(pieces)), order)
    if isinstance(first, dict):
        return {key: _merged([p[key] for p in pieces], order) for key in first}
    return tuple([_merged(p, order) for p in zip(*pieces, strict=True)])


class ChainDataset(IterableDataset[Any]):
    """Iterable datasets one after the other."""

    def __init__(self, datasets: Iterable[Any]):
        self.datasets = list(datasets)
        for d in self.datasets:
            if not isinstance(d, IterableDataset):
                raise AssertionError(
                    f"ChainDataset only supports IterableDataset, got {type(d).__name__}"
                )

    def __iter__(self) -> Iterator[Any]:
        return itertools.chain.from_iterable(self.datasets)

    def __len__(self) -> int:
        return sum(len(d) for d in self.datasets)


class Subset(Dataset[T]):
    """The samples of a dataset at these indices, in their order.

    >>> Subset("abcdef", [4, 1])[0]
    'e'
    """

    dataset: Any
    indices: Sequence[int]

    def __init__(self, dataset: Indexed, indices: Sequence[int]):
        self.dataset = dataset
        self.indices = indices
        self._numbers: Tensor | None = None  # the indices as a tensor, when first needed

    @property
    def in_memory(self) -> bool:
        """Whether the dataset gives whole batches."""
        return super().in_memory and is_in_memory(self.dataset)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, list):
            return self.dataset[[int(self.indices[i]) for i in index]]
        chosen = self.indices[index]
        return self.dataset[int(chosen) if isinstance(chosen, Tensor) else chosen]

    def __len__(self) -> int:
        return len(self.indices)

    def take(self, indices: Indices) -> Any:
        """The batch that the dataset gives for its own numbers of these samples."""
        if isinstance(indices, slice) and isinstance(self.indices, range):
            chosen = self.indices[indices]
            if chosen.step == 1 and chosen.start >= 0:
                return self.dataset.take(slice(chosen.start, chosen.stop))
        if self._numbers is None:
            self._numbers = numbers(self.indices)
        return self.dataset.take(getitem(self._numbers, indices))


def is_in_memory(dataset: object) -> TypeGuard[InMemory]:
    """Whether whole batches of this dataset come from its ``take``."""
    return isinstance(dataset, Dataset) and dataset.in_memory


def numbers(indices: ArrayLike) -> Tensor:
    """Indices as an int64 tensor."""
    if isinstance(indices, range):
        indices = list(indices)
    if isinstance(indices, (list, tuple)):
        return tensor([int(i) for i in indices], dtype="int64")
    return as_tensor(indices).long()


def random_split(
    dataset: Samples, lengths: Sequence[int | float], generator: Generator | None = None
) -> list[Subset[Any]]:
    """Splits a dataset at random into parts of these lengths, or of these fractions (of sum 1).

    A fraction f gets floor(f * len(dataset)) samples; what is left goes to the first parts, one
    each.

    >>> import chainrule
    >>> parts = random_split(range(10), [0.75, 0.25], chainrule.Generator().manual_seed(0))
    >>> [len(part) for part in parts]
    [8, 2]
    """
    n = len(dataset)
    total = sum(lengths)
    if math.isclose(total, 1) and total <= 1:
        counts = _counts_of_fractions(lengths, n)
    else:
        counts = _checked_counts(lengths, n)
    order = randperm(n, generator=generator).tolist()
    ends = itertools.accumulate(counts)
    return [Subset(dataset, order[end - c : end]) for end, c in zip(ends, counts, strict=True)]


def _checked_counts(lengths: Sequence[int | float], n: int) -> list[int]:
    if sum(lengths) != n:
        raise ValueError(
            "random_split: Sum of input lengths does not equal the length of the input dataset: "
            f"{list(lengths)} sum to {sum(lengths)}, the dataset has {n} samples (fractions must "
            "sum to 1)"
        )
    for i, length in enumerate(lengths):
        if length != int(length) or length < 0:
            raise ValueError(
                f"random_split: the length at index {i} is {length}; lengths are whole numbers, or "
                "fractions that sum to 1"
            )
    return [int(length) for length in lengths]


def _counts_of_fractions(fractions: Sequence[int | float], n: int) -> list[int]:
    counts = []
    for i, fraction in enumerate(fractions):
        if not 0 <= fraction <= 1:
            raise ValueError(
                f"random_split: Fraction at index {i} is not between 0 and 1: {fraction}"
            )
        counts.append(math.floor(n * fraction))
    for i in range(n - sum(counts)):
        counts[i % len(counts)] += 1
    for i, count in enumerate(counts):
        if count == 0:
            warnings.warn(
                f"random_split: Length of split at index {i} is 0. This might result in an empty "
                f"dataset ({n} samples in fractions {list(fractions)}).",
                stacklevel=3,
            )
    return counts

"""Splits into training, validation and test parts, with scikit-learn's names and sizes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence, Sized
from typing import Any

from chainrule.data.dataset import Dataset, Subset
from chainrule.ops.creation.from_data import tensor
from chainrule.ops.index.reading import getitem
from chainrule.ops.creation.sampling import rand, randperm
from chainrule.random import Generator
from chainrule.tensor import Tensor
from chainrule.typing import Indexed, Labels, Samples

__all__ = ["train_test_split", "train_validation_test_split"]


def train_test_split(
    *arrays: Samples,
    test_size: float | int | None = None,
    train_size: float | int | None = None,
    random_state: int | None = None,
    shuffle: bool = True,
    stratify: Labels | None = None,
    groups: Labels | None = None,
    generator: Generator | None = None,
) -> list[Any]:
    """Splits each array into a training and a test part: ``[x_train, x_test, y_train, ...]``

    Tensors, arrays, frames and lists are split into things of their kind, a dataset into subsets.

    Args:
        test_size: a number of samples, or a fraction (rounded up); what ``train_size`` leaves, or
            0.25 of all.
        train_size: a number of samples, or a fraction (rounded down); what ``test_size`` leaves.
        random_state: a seed; short for ``generator=Generator().manual_seed(seed)``.
        shuffle: False keeps the order: the test part lies behind the training part, as time asks.
        stratify: labels; both parts get each label in the proportion it has in the whole.
        groups: labels of groups that must not be torn apart; sizes then count groups.
        generator: where the random numbers come from; the default generator.

    >>> import chainrule
    >>> x, y = chainrule.randn(10, 3), chainrule.arange(10)
    >>> x_train, x_test, y_train, y_test = train_test_split(x, y, test_size=0.2, random_state=0)
    >>> x_train.shape, y_test.shape
    (chainrule.Size([8, 3]), chainrule.Size([2]))
    """
    op = "train_test_split"
    n = common_count(op, arrays)
    cut = _Cut(op, n, shuffle, stratify, groups, random_stream(op, generator, random_state))
    n_train, n_test = _sizes(op, cut.units, test_size, train_size)
    parts = cut.parts([("test_size", n_test), ("train_size", n_train)])
    return [pick(a, index) for a in arrays for index in (parts[1], parts[0])]


def train_validation_test_split(
    *arrays: Samples,
    validation_size: float | int = 0.2,
    test_size: float | int = 0.2,
    random_state: int | None = None,
    shuffle: bool = True,
    stratify: Labels | None = None,
    groups: Labels | None = None,
    generator: Generator | None = None,
) -> list[Any]:
    """Splits each array into three parts: ``[x_train, x_validation, x_test, y_train, ...]``

    Both sizes are numbers of samples, or fractions of all of them (rounded up); the rest is for
    training. The other arguments are those of :func:`train_test_split`. Without shuffling the
    validation part lies between the training part and the test part.

    >>> import chainrule
    >>> parts = train_validation_test_split(chainrule.arange(10), shuffle=False)
    >>> [part.tolist() for part in parts]
    [[0, 1, 2, 3, 4, 5], [6, 7], [8, 9]]
    """
    op = "train_validation_test_split"
    n = common_count(op, arrays)
    cut = _Cut(op, n, shuffle, stratify, groups, random_stream(op, generator, random_state))
    n_test = _size(op, "test_size", test_size, cut.units, math.ceil)
    n_validation = _size(op, "validation_size", validation_size, cut.units, math.ceil)
    n_train = cut.units - n_test - n_validation
    if n_train <= 0:
        raise ValueError(
            f"{op}: validation_size={validation_size} and test_size={test_size} leave nothing of "
            f"{cut.units} {cut.unit} for training"
        )
    sizes = [("test_size", n_test), ("validation_size", n_validation), ("train_size", n_train)]
    test, validation, train = cut.parts(sizes)
    return [pick(a, index) for a in arrays for index in (train, validation, test)]


# --- how many -------------------------------------------------------------------------------------


def _size(op: str, name: str, size: float, n: int, rounded: Callable[[float], int]) -> int:
    """A number of samples from a number or a fraction."""
    whole = isinstance(size, int)
    if isinstance(size, bool) or not isinstance(size, (int, float)):
        raise ValueError(f"{op}: Invalid value for {name}: {size!r}; expected an int or a float")
    if not 0 < size < (n if whole else 1):
        raise ValueError(
            f"{op}: {name}={size} should be either positive and smaller than the number of samples "
            f"{n} or a float in the (0, 1) range"
        )
    return int(size) if whole else rounded(size * n)


def _sizes(op: str, n: int, test_size: float | None, train_size: float | None) -> tuple[int, int]:
    if n < 2:
        raise ValueError(f"{op}: cannot split {n} samples into two parts; at least 2 are needed")
    if test_size is None and train_size is None:
        test_size = 0.25
    n_test = None if test_size is None else _size(op, "test_size", test_size, n, math.ceil)
    n_train = None if train_size is None else _size(op, "train_size", train_size, n, math.floor)
    if n_train is None:
        n_train = n - (n_test or 0)
    if n_test is None:
        n_test = n - n_train
    if n_train + n_test > n:
        raise ValueError(
            f"{op}: The sum of train_size and test_size = {n_train + n_test}, should be smaller "
            f"than the number of samples {n}. Reduce test_size and/or train_size."
        )
    if n_train == 0:
        raise ValueError(
            f"{op}: With n_samples={n}, test_size={test_size} and train_size={train_size}, the "
            "resulting train set will be empty. Adjust any of the aforementioned parameters."
        )
    return n_train, n_test


# --- which ----------------------------------------------------------------------------------------


class _Cut:
    """Cuts the numbers of n samples (or of their groups) into parts of given sizes."""

    def __init__(
        self,
        op: str,
        n: int,
        shuffle: bool,
        stratify: Labels | None,
        groups: Labels | None,
        generator: Generator | None,
    ):
        if stratify is not None and groups is not None:
            raise ValueError(f"{op}: stratify and groups cannot be used together")
        if not shuffle and (stratify is not None or groups is not None):
            name = "stratify" if groups is None else "groups"
            raise ValueError(
                f"{op}: Stratified or grouped split is not implemented for shuffle=False; leave "
                f"out {name} or shuffle"
            )
        self.op, self.n, self.shuffle, self.generator = op, n, shuffle, generator
        self.classes = None if stratify is None else codes(op, "stratify", stratify, n)
        self.groups = None if groups is None else codes(op, "groups", groups, n)
        self.units = n if self.groups is None else max(self.groups, default=-1) + 1
        self.unit = "samples" if self.groups is None else "groups"

    def parts(self, sizes: Sequence[tuple[str, int]]) -> list[Tensor]:
        """The numbers of the samples in each part (unshuffled: the last part comes first)."""
        counts = [count for _, count in sizes]
        if not self.shuffle:
            starts = [sum(counts[i + 1 :]) for i in range(len(counts))]
            return [_numbers(range(s, s + c)) for s, c in zip(starts, counts, strict=True)]
        order = randperm(self.units, generator=self.generator).tolist()
        if self.classes is not None:
            return self._stratified(order, sizes)
        starts = [sum(counts[:i]) for i in range(len(counts))]
        chosen = [order[s : s + c] for s, c in zip(starts, counts, strict=True)]
        if self.groups is None:
            return [_numbers(part) for part in chosen]
        members: list[list[int]] = [[] for _ in range(self.units)]
        for i, group in enumerate(self.groups):
            members[group].append(i)
        return [_numbers([i for group in part for i in members[group]]) for part in chosen]

    def _stratified(self, order: list[int], sizes: Sequence[tuple[str, int]]) -> list[Tensor]:
        classes = self.classes or []
        tally = Counter(classes)
        left = [tally[k] for k in range(len(tally))]
        rarest = min(left)
        if rarest < 2:
            raise ValueError(
                f"{self.op}: The least populated class in stratify has only {rarest} member, which "
                "is too few. The minimum number of members of any class is 2: leave out stratify, "
                "or the class"
            )
        for name, count in sizes:
            if count < len(left):
                raise ValueError(
                    f"{self.op}: The {name} = {count} should be greater or equal to the number of "
                    f"classes = {len(left)}"
                )
        # The training part, which comes last, is apportioned first, as scikit-learn does it.
        shares: list[list[int]] = []
        for _, count in reversed(sizes):
            share = apportioned(left, count, self.generator)
            left = [a - b for a, b in zip(left, share, strict=True)]
            shares.insert(0, share)
        parts: list[list[int]] = [[] for _ in sizes]
        for i in order:
            for part, share in zip(parts, shares, strict=True):
                if share[classes[i]]:
                    share[classes[i]] -= 1
                    part.append(i)
                    break
        return [_numbers(part) for part in parts]


def apportioned(counts: Sequence[int], draws: int, generator: Generator | None) -> list[int]:
    """How many of each class make a sample of this size that is most like the whole.

    Shares are rounded down, and what is missing goes to the largest remainders; ties are broken at
    random.
    """
    total = sum(counts)
    share = [count * draws // total for count in counts]
    ties = rand(len(counts), generator=generator).tolist()
    by_remainder = sorted(range(len(counts)), key=lambda k: (-(counts[k] * draws % total), ties[k]))
    for k in by_remainder[: draws - sum(share)]:
        share[k] += 1
    return share


# --- what splits and folds share ------------------------------------------------------------------


def _numbers(indices: Sequence[int]) -> Tensor:
    return tensor(list(indices), dtype="int64")


def count_of(op: str, data: Sized) -> int:
    """The number of samples in something that can be split."""
    shape = getattr(data, "shape", None)
    if shape is not None and not callable(shape):
        if not len(shape):
            raise TypeError(f"{op}: a tensor or array without dimensions cannot be split")
        return int(shape[0])
    try:
        return len(data)
    except TypeError:
        raise TypeError(
            f"{op}: expected tensors, arrays, frames, lists or datasets, got {type(data).__name__}"
        ) from None


def common_count(op: str, arrays: Sequence[Sized]) -> int:
    """The number of samples that all of these have."""
    if not arrays:
        raise ValueError(f"{op}: At least one array required as input")
    counts = [count_of(op, a) for a in arrays]
    if len(set(counts)) > 1:
        raise ValueError(
            f"{op}: Found input variables with inconsistent numbers of samples: {counts}"
        )
    return counts[0]


def random_stream(
    op: str, generator: Generator | None, random_state: int | None
) -> Generator | None:
    """The generator to draw from: the one given, a new one with this seed, or the default one."""
    if generator is not None and random_state is not None:
        raise ValueError(f"{op}: give a generator or a random_state (a seed), not both")
    if generator is not None and not isinstance(generator, Generator):
        raise TypeError(
            f"{op}: generator must be a Generator, not {type(generator).__name__}; a seed is given "
            "as random_state"
        )
    if random_state is None:
        return generator
    if not isinstance(random_state, int) or isinstance(random_state, bool):
        raise TypeError(
            f"{op}: random_state must be an integer, not {type(random_state).__name__}; a "
            "Generator is given as generator"
        )
    return Generator().manual_seed(random_state)


def codes(op: str, name: str, labels: Labels, n: int) -> list[int]:
    """Labels of any kind as numbers 0, 1, ... in the order of their first appearance."""
    count = count_of(op, labels)
    if count != n:
        raise ValueError(f"{op}: {name} has {count} labels for {n} samples")
    for method in ("tolist", "to_list"):
        if hasattr(labels, method):
            labels = getattr(labels, method)()
            break
    seen: dict[Any, int] = {}
    values = [tuple(v) if isinstance(v, list) else v for v in labels]
    if any(v != v for v in values):
        raise ValueError(f"{op}: {name} contains NaN; give missing labels a value of their own")
    return [seen.setdefault(v, len(seen)) for v in values]


def pick(data: Indexed, index: Tensor) -> Any:
    """These samples, as something of the same kind."""
    if isinstance(data, Tensor):
        return getitem(data, index)
    if isinstance(data, Dataset):
        return Subset(data, index.tolist())
    if hasattr(data, "iloc"):  # a pandas frame or series
        return data.iloc[index.numpy()]
    if hasattr(data, "shape"):  # arrays, sparse matrices, polars
        return data[index.numpy()]
    if hasattr(data, "take"):  # a table
        return data.take(index)
    return [data[i] for i in index.tolist()]

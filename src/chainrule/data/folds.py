"""Folds for cross-validation, with scikit-learn's names and folds, and the risk they estimate."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sized
from typing import Any, NamedTuple, Protocol

from chainrule.autograd.modes import no_grad
from chainrule.data.splits import codes, count_of, pick, random_stream
from chainrule.ops.creation.patterns import arange
from chainrule.ops.elementwise.logic import eq, ne
from chainrule.ops.creation.from_data import as_tensor, tensor
from chainrule.ops.index.reading import getitem, nonzero
from chainrule.ops.creation.sampling import randperm
from chainrule.ops.shape.views import reshape
from chainrule.ops.shape.stacking import cat, stack
from chainrule.random import Generator
from chainrule.tensor import Tensor
from chainrule.typing import Labels, Samples

__all__ = [
    "CrossValidationRisk",
    "GroupKFold",
    "KFold",
    "LeaveOneOut",
    "StratifiedKFold",
    "TimeSeriesSplit",
    "cross_validation_risk",
]

Split = tuple[Tensor, Tensor]


class Splitter(Protocol):
    """What makes folds: the classes here, and scikit-learn's."""

    def split(self, x: Any, y: Any = ..., groups: Any = ..., /) -> Iterable[tuple[Any, Any]]: ...


class _Folds:
    """Every sample is tested once: ``assign`` says in which fold."""

    _uses_groups = False

    def __init__(
        self,
        n_splits: int = 5,
        *,
        shuffle: bool = False,
        random_state: int | None = None,
        generator: Generator | None = None,
    ):
        self._op = type(self).__name__
        self.n_splits = _checked_splits(self._op, n_splits)
        if not isinstance(shuffle, bool):
            raise TypeError(f"{self._op}: shuffle must be True or False; got {shuffle}")
        if not shuffle and (random_state is not None or generator is not None):
            raise ValueError(
                f"{self._op}: a random_state or generator has no effect since shuffle is False; "
                "leave it out, or set shuffle=True"
            )
        random_stream(self._op, generator, random_state)
        self.shuffle, self.random_state, self.generator = shuffle, random_state, generator

    def get_n_splits(
        self, x: Sized | None = None, y: Labels | None = None, groups: Labels | None = None
    ) -> int:
        """The number of folds."""
        return self.n_splits

    def split(
        self, x: Sized, y: Labels | None = None, groups: Labels | None = None
    ) -> Iterator[Split]:
        """The numbers of the training samples and of the test samples, fold by fold.

        ``x`` is anything with a length; ``y`` are the labels, ``groups`` those of the groups.
        """
        n = count_of(self._op, x)
        if self.n_splits > n:
            raise ValueError(
                f"{self._op}: Cannot have number of splits n_splits={self.n_splits} greater than "
                f"the number of samples: n_samples={n}."
            )
        if groups is not None and not self._uses_groups:
            warnings.warn(f"The groups parameter is ignored by {self._op}", stacklevel=2)
        stream = random_stream(self._op, self.generator, self.random_state)
        fold_of = self.assign(n, y, groups, stream)
        return ((_where(ne(fold_of, k)), _where(eq(fold_of, k))) for k in range(self.n_splits))

    def assign(
        self, n: int, y: Labels | None, groups: Labels | None, stream: Generator | None
    ) -> Tensor:
        """The fold (n,) in which each of n samples is tested."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{self._op}(n_splits={self.n_splits}, shuffle={self.shuffle})"


def _where(mask: Tensor) -> Tensor:
    return nonzero(mask, as_tuple=True)[0]


def _checked_splits(op: str, n_splits: Any) -> int:
    if not isinstance(n_splits, int) or isinstance(n_splits, bool):
        raise ValueError(f"{op}: The number of folds must be an integer, got {n_splits!r}")
    if n_splits < 2:
        raise ValueError(
            f"{op}: k-fold cross-validation requires at least one train/test split by setting "
            f"n_splits=2 or more, got n_splits={n_splits}."
        )
    return n_splits


def _blocks(n: int, parts: int) -> list[int]:
    """n things in so many blocks, the first ones larger by one where it does not divide."""
    return [k for k in range(parts) for _ in range(n // parts + (k < n % parts))]


class KFold(_Folds):
    """Folds of equal size (the first ones larger by one), in order or shuffled.

    >>> for train, test in KFold(3).split(range(6)):
    ...     print(train.tolist(), test.tolist())
    [2, 3, 4, 5] [0, 1]
    [0, 1, 4, 5] [2, 3]
    [0, 1, 2, 3] [4, 5]
    """

    def assign(
        self, n: int, y: Labels | None, groups: Labels | None, stream: Generator | None
    ) -> Tensor:
        fold_of = tensor(_blocks(n, self.n_splits))
        return getitem(fold_of, randperm(n, generator=stream)) if self.shuffle else fold_of


class StratifiedKFold(_Folds):
    """Folds that hold each label of ``y`` in the proportion it has in the whole.

    >>> y = ["a", "a", "b", "b", "b", "b"]
    >>> [test.tolist() for _, test in StratifiedKFold(2).split(y, y)]
    [[0, 2, 3], [1, 4, 5]]
    """

    def assign(
        self, n: int, y: Labels | None, groups: Labels | None, stream: Generator | None
    ) -> Tensor:
        if y is None:
            raise ValueError(f"{self._op}: The 'y' parameter should not be None: it holds labels")
        classes = self._classes(y, n)
        in_order = sorted(classes)
        # Dealt out in turn, class after class, the folds' shares of each class are as even as can
        # be; within a class the samples keep their order.
        tallies = [Counter(in_order[k :: self.n_splits]) for k in range(self.n_splits)]
        places = []
        for c in range(max(classes) + 1):
            folds = [k for k, tally in enumerate(tallies) for _ in range(tally[c])]
            if self.shuffle:
                folds = [folds[i] for i in randperm(len(folds), generator=stream).tolist()]
            places.append(iter(folds))
        return tensor([next(places[c]) for c in classes])

    def _classes(self, y: Labels, n: int) -> list[int]:
        if isinstance(y, Tensor) and y.ndim == 2 and y.shape[1] == 1:
            y = reshape(y, (-1,))
        shape = tuple(getattr(y, "shape", (n,)))
        if len(shape) != 1:
            raise ValueError(
                f"{self._op}: y must be labels, one per sample, got shape {shape}; a one-hot y is "
                "turned into labels by argmax(1)"
            )
        classes = codes(self._op, "y", y, n)
        self._check_labels(y)
        sizes = Counter(classes).values()
        if self.n_splits > max(sizes):
            raise ValueError(
                f"{self._op}: n_splits={self.n_splits} cannot be greater than the number of "
                f"members in each class; the largest has {max(sizes)}"
            )
        if self.n_splits > min(sizes):
            warnings.warn(
                f"{self._op}: The least populated class in y has only {min(sizes)} members, which "
                f"is less than n_splits={self.n_splits}.",
                stacklevel=4,
            )
        return classes

    def _check_labels(self, y: Labels) -> None:
        values = y.tolist() if hasattr(y, "tolist") else list(y)
        if any(isinstance(v, float) and v != int(v) for v in values):
            raise ValueError(
                f"{self._op}: Supported target types are: ('binary', 'multiclass'). Got "
                "'continuous' instead; use KFold for numbers"
            )


class GroupKFold(_Folds):
    """Folds that tear no group apart, as equal in size as the groups allow.

    Without shuffling the largest group goes first, each to the fold that is smallest so far; with
    it the folds get equal numbers of groups, drawn at random.
    """

    _uses_groups = True

    def assign(
        self, n: int, y: Labels | None, groups: Labels | None, stream: Generator | None
    ) -> Tensor:
        if groups is None:
            raise ValueError(f"{self._op}: The 'groups' parameter should not be None.")
        group_of = codes(self._op, "groups", groups, n)
        count = max(group_of) + 1
        if self.n_splits > count:
            raise ValueError(
                f"{self._op}: Cannot have number of splits n_splits={self.n_splits} greater than "
                f"the number of groups: {count}."
            )
        if self.shuffle:
            order = randperm(count, generator=stream).tolist()
            fold = dict(zip(order, _blocks(count, self.n_splits), strict=True))
        else:
            fold = self._balanced(group_of, groups)
        return tensor([fold[g] for g in group_of])

    def _balanced(self, group_of: list[int], groups: Labels) -> dict[int, int]:
        tally = Counter(group_of)
        first = {g: i for i, g in reversed(list(enumerate(group_of)))}
        values = groups.tolist() if hasattr(groups, "tolist") else list(groups)
        try:  # in the order of their names, as scikit-learn has them
            names = sorted(tally, key=lambda g: values[first[g]])
        except TypeError:  # names that cannot be compared
            names = sorted(tally)
        sizes, fold = [0] * self.n_splits, {}
        for g in sorted(names, key=lambda g: tally[g])[::-1]:
            fold[g] = sizes.index(min(sizes))
            sizes[fold[g]] += tally[g]
        return fold


class LeaveOneOut:
    """As many folds as samples: each is tested once, alone.

    >>> [test.tolist() for _, test in LeaveOneOut().split(range(3))]
    [[0], [1], [2]]
    """

    def get_n_splits(self, x: Sized, y: Labels | None = None, groups: Labels | None = None) -> int:
        """The number of samples."""
        return count_of("LeaveOneOut", x)

    def split(
        self, x: Sized, y: Labels | None = None, groups: Labels | None = None
    ) -> Iterator[Split]:
        """The numbers of the training samples and of the test sample, one by one."""
        n = self.get_n_splits(x)
        if n < 2:
            raise ValueError(f"LeaveOneOut: Cannot perform LeaveOneOut with n_samples={n}.")
        if groups is not None:
            warnings.warn("The groups parameter is ignored by LeaveOneOut", stacklevel=2)
        return ((cat([arange(i), arange(i + 1, n)]), tensor([i])) for i in range(n))

    def __repr__(self) -> str:
        return "LeaveOneOut()"


class TimeSeriesSplit:
    """Folds in the order of time: what is tested always lies behind what was trained on.

    The test parts follow each other up to the end; ``gap`` samples between training and test part
    are left out, and ``max_train_size`` forgets what is long ago.

    >>> for train, test in TimeSeriesSplit(3).split(range(4)):
    ...     print(train.tolist(), test.tolist())
    [0] [1]
    [0, 1] [2]
    [0, 1, 2] [3]
    """

    def __init__(
        self,
        n_splits: int = 5,
        *,
        max_train_size: int | None = None,
        test_size: int | None = None,
        gap: int = 0,
    ):
        self.n_splits = _checked_splits("TimeSeriesSplit", n_splits)
        limits = {"max_train_size": (max_train_size, 1), "test_size": (test_size, 1)}
        for name, (value, low) in {**limits, "gap": (gap, 0)}.items():
            if value is not None and (not isinstance(value, int) or value < low):
                raise ValueError(
                    f"TimeSeriesSplit: {name} must be an integer of at least {low}, got {value!r}"
                )
        self.max_train_size, self.test_size, self.gap = max_train_size, test_size, gap

    def get_n_splits(
        self, x: Sized | None = None, y: Labels | None = None, groups: Labels | None = None
    ) -> int:
        """The number of folds."""
        return self.n_splits

    def split(
        self, x: Sized, y: Labels | None = None, groups: Labels | None = None
    ) -> Iterator[Split]:
        """The numbers of the training samples and of the test samples, fold by fold."""
        n, k = count_of("TimeSeriesSplit", x), self.n_splits
        if k + 1 > n:
            raise ValueError(
                f"TimeSeriesSplit: Cannot have number of folds={k + 1} greater than the number of "
                f"samples={n}."
            )
        size = n // (k + 1) if self.test_size is None else self.test_size
        if n - self.gap - k * size <= 0:
            raise ValueError(
                f"TimeSeriesSplit: Too many splits={k} for number of samples={n} with "
                f"test_size={size} and gap={self.gap}."
            )
        if groups is not None:
            warnings.warn("The groups parameter is ignored by TimeSeriesSplit", stacklevel=2)
        return (self._at(start, size) for start in range(n - k * size, n, size))

    def _at(self, start: int, size: int) -> Split:
        end = start - self.gap
        first = 0 if self.max_train_size is None else max(0, end - self.max_train_size)
        return arange(first, end), arange(start, start + size)

    def __repr__(self) -> str:
        return f"TimeSeriesSplit(n_splits={self.n_splits})"


# --- the risk -------------------------------------------------------------------------------------


class CrossValidationRisk(NamedTuple):
    """What cross-validation says of the risk, and how much its folds differ."""

    risk: float
    spread: float  # the standard deviation of the folds' mean losses
    folds: Tensor  # the mean loss of each fold


def cross_validation_risk(
    fit: Callable[[Any, Any], Callable[[Any], Any]],
    loss: Callable[[Any, Any], Any],
    x: Samples,
    y: Samples,
    cv: int | Splitter = 5,
    *,
    groups: Labels | None = None,
    generator: Generator | None = None,
) -> CrossValidationRisk:
    """Estimates the risk E[loss(g(x), y)] of what ``fit`` learns from the data, by L folds.

    ::

        risk = 1/L sum_l (L/N) sum_{z in fold l} loss(z) = 1/N sum_z loss(z)

    where the loss of a sample comes from the model that was fitted without its fold. The estimate
    is almost unbiased for a training set of N (1 - 1/L) samples, and its variance is high: the
    folds' training sets overlap, so the spread says less than that of independent numbers.

    Args:
        fit: ``fit(x_train, y_train)`` returns the model, a function of x.
        loss: ``loss(model(x_test), y_test)``, one number per sample (``reduction="none"``).
        cv: the number of folds L (shuffled), or an object with ``split``: ``LeaveOneOut()``, ...
        groups: labels of groups, for :class:`GroupKFold`.
        generator: what shuffles the folds if ``cv`` is a number.

    >>> import chainrule
    >>> x, y = chainrule.zeros(100, 1), chainrule.ones(100)
    >>> result = cross_validation_risk(
    ...     fit=lambda x, y: lambda x: chainrule.zeros(len(x)),
    ...     loss=chainrule.nn.MSELoss(reduction="none"), x=x, y=y)
    >>> result.risk, result.spread
    (1.0, 0.0)
    """
    op = "cross_validation_risk"
    if generator is not None and not isinstance(cv, int):
        raise ValueError(f"{op}: give the generator to {type(cv).__name__}, which makes the folds")
    folds: Splitter = KFold(cv, shuffle=True, generator=generator) if isinstance(cv, int) else cv
    sums, sizes = [], []
    for train, test in folds.split(x, y, groups):
        model = fit(pick(x, train), pick(y, train))
        with no_grad():
            losses = as_tensor(loss(model(pick(x, test)), pick(y, test)))
        if losses.numel() != len(test):
            raise ValueError(
                f"{op}: the loss must give one number per sample: got shape "
                f"{tuple(losses.shape)} for {len(test)} samples; use reduction='none'"
            )
        sums.append(losses.double().sum())
        sizes.append(len(test))
    totals = stack(sums)
    means = totals / tensor(sizes)
    spread = float(means.std()) if len(sizes) > 1 else 0.0
    return CrossValidationRisk(float(totals.sum()) / sum(sizes), spread, means)

"""Splits and folds beside scikit-learn's, and the risk that cross-validation estimates."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas
import polars
import pytest
from sklearn import model_selection as reference

import chainrule
from chainrule import nn
from chainrule.data import (
    GroupKFold,
    KFold,
    LeaveOneOut,
    StratifiedKFold,
    Subset,
    TensorDataset,
    TimeSeriesSplit,
    cross_validation_risk,
    train_test_split,
    train_validation_test_split,
)

LABELS = np.random.default_rng(0).choice(4, size=97, p=[0.5, 0.3, 0.15, 0.05])
GROUPS = np.random.default_rng(1).choice(12, size=97)

# --- two parts ------------------------------------------------------------------------------------

SIZES: list[dict[str, Any]] = [
    {},
    {"test_size": 0.2},
    {"test_size": 0.3},
    {"test_size": 7},
    {"train_size": 0.7},
    {"train_size": 11},
    {"test_size": 0.33, "train_size": 0.5},
    {"test_size": 5, "train_size": 0.1},
]


@pytest.mark.parametrize("kwargs", SIZES)
@pytest.mark.parametrize("n", [3, 10, 97])
def test_sizes_are_those_of_scikit_learn(kwargs: dict[str, Any], n: int) -> None:
    x = np.arange(n)
    try:
        expected = reference.train_test_split(x, **kwargs)
    except ValueError:
        with pytest.raises(ValueError, match="train_test_split"):
            train_test_split(x, **kwargs)
        return
    found = train_test_split(x, **kwargs)
    assert [len(a) for a in found] == [len(a) for a in expected]
    together = np.concatenate(found)
    assert len(set(together.tolist())) == len(together)


def test_unshuffled_parts_are_those_of_scikit_learn() -> None:
    for kwargs in SIZES:
        found = train_test_split(chainrule.arange(97), shuffle=False, **kwargs)
        expected = reference.train_test_split(np.arange(97), shuffle=False, **kwargs)
        assert [a.tolist() for a in found] == [a.tolist() for a in expected]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("kwargs", SIZES[1:4])
def test_stratified_parts_have_the_sizes_of_scikit_learn(kwargs: Any, seed: int) -> None:
    found = train_test_split(np.arange(97), LABELS, stratify=LABELS, random_state=seed, **kwargs)
    expected = reference.train_test_split(
        np.arange(97), LABELS, stratify=LABELS, random_state=seed, **kwargs
    )
    for a, e in zip(found[2:], expected[2:], strict=True):
        counts, reference_counts = Counter(a.tolist()), Counter(e.tolist())
        assert all(abs(counts[k] - reference_counts[k]) <= 1 for k in range(4))
        assert len(a) == len(e)
    for i, label in zip(found[0], found[2], strict=True):
        assert LABELS[i] == label


def test_stratified_shares_are_exact_where_they_can_be() -> None:
    y = ["a"] * 60 + ["b"] * 30 + ["c"] * 10
    parts = train_test_split(y, test_size=0.2, stratify=y)
    assert Counter(parts[1]) == {"a": 12, "b": 6, "c": 2}
    parts = train_validation_test_split(y, validation_size=0.1, test_size=0.2, stratify=y)
    assert [Counter(p) for p in parts] == [
        {"a": 42, "b": 21, "c": 7},
        {"a": 6, "b": 3, "c": 1},
        {"a": 12, "b": 6, "c": 2},
    ]


def test_groups_are_not_torn_apart() -> None:
    train, test = train_test_split(GROUPS, test_size=0.25, groups=GROUPS, random_state=3)
    assert not set(train.tolist()) & set(test.tolist())
    assert len(set(test.tolist())) == 3
    assert len(train) + len(test) == 97


def test_one_seed_one_split() -> None:
    def split(**kwargs: Any) -> Any:
        return train_test_split(chainrule.arange(50), **kwargs)[1].tolist()

    assert split(random_state=42) == split(random_state=42)
    assert split(random_state=42) != split(random_state=43)
    seeded = chainrule.Generator().manual_seed(42)
    assert split(generator=seeded) == split(random_state=42)
    assert split(generator=seeded) != split(random_state=42)
    chainrule.manual_seed(5)
    first = split()
    chainrule.manual_seed(5)
    assert split() == first


def test_every_kind_of_data_keeps_its_kind() -> None:
    n = 8
    data = {
        "tensor": chainrule.arange(n),
        "array": np.arange(n),
        "list": list(range(n)),
        "frame": pandas.DataFrame({"a": range(n)}, index=list("abcdefgh")),
        "series": pandas.Series(range(n)),
        "polars": polars.DataFrame({"a": range(n)}),
        "dataset": TensorDataset(chainrule.arange(n)),
    }
    parts = train_test_split(*data.values(), test_size=2, random_state=0)
    tests = dict(zip(data, parts[1::2], strict=True))
    expected = tests["tensor"].tolist()
    assert tests["array"].tolist() == expected
    assert tests["list"] == expected
    assert tests["frame"]["a"].tolist() == expected
    assert tests["series"].tolist() == expected
    assert tests["polars"]["a"].to_list() == expected
    assert isinstance(tests["dataset"], Subset)
    assert [int(s[0]) for s in (tests["dataset"][0], tests["dataset"][1])] == expected
    for name, part in tests.items():
        assert isinstance(part, type(data[name])) or name == "dataset"


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ({}, [6, 2, 2]),
        ({"validation_size": 0.1, "test_size": 0.1}, [8, 1, 1]),
        ({"validation_size": 3, "test_size": 0.15}, [5, 3, 2]),
    ],
)
def test_three_parts(sizes: dict[str, Any], expected: list[int]) -> None:
    x, y = chainrule.arange(10), chainrule.arange(10) ** 2
    parts = train_validation_test_split(x, y, random_state=0, **sizes)
    assert [len(p) for p in parts] == expected * 2
    assert sorted(i for p in parts[:3] for i in p.tolist()) == list(range(10))
    for a, b in zip(parts[:3], parts[3:], strict=True):
        assert (a**2).tolist() == b.tolist()


# --- folds ----------------------------------------------------------------------------------------


def folds_of(splitter: Any, *args: Any) -> list[tuple[list[int], list[int]]]:
    return [(train.tolist(), test.tolist()) for train, test in splitter.split(*args)]


@pytest.mark.parametrize("k", [2, 3, 5, 10])
def test_folds_in_order_are_those_of_scikit_learn(k: int) -> None:
    x = np.zeros(97)
    pairs: list[tuple[Any, Any, Any]] = [
        (KFold(k), reference.KFold(k), (x,)),
        (GroupKFold(k), reference.GroupKFold(k), (x, None, GROUPS)),
        (TimeSeriesSplit(k), reference.TimeSeriesSplit(k), (x,)),
        (
            TimeSeriesSplit(k, gap=2, test_size=4, max_train_size=20),
            reference.TimeSeriesSplit(k, gap=2, test_size=4, max_train_size=20),
            (x,),
        ),
    ]
    if k <= 3:  # the rarest label has few members
        pairs.append((StratifiedKFold(k), reference.StratifiedKFold(k), (x, LABELS)))
    for ours, theirs, args in pairs:
        assert folds_of(ours, *args) == folds_of(theirs, *args), repr(ours)
        assert ours.get_n_splits() == k


def test_named_labels_and_groups() -> None:
    names = np.array(["zebra", "ant", "cow", "dog"])[LABELS]
    groups = [f"g{g}" for g in GROUPS]
    x = np.zeros(97)
    assert folds_of(StratifiedKFold(3), x, names.tolist()) == folds_of(
        reference.StratifiedKFold(3), x, names
    )
    assert folds_of(GroupKFold(4), x, None, groups) == folds_of(
        reference.GroupKFold(4), x, None, groups
    )


def test_leave_one_out_is_that_of_scikit_learn() -> None:
    assert folds_of(LeaveOneOut(), range(6)) == folds_of(reference.LeaveOneOut(), np.zeros(6))
    assert LeaveOneOut().get_n_splits(range(6)) == 6


@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("kind", [KFold, StratifiedKFold, GroupKFold])
def test_shuffled_folds(kind: Any, k: int) -> None:
    """Every sample is tested once, and what the kind of folds promises holds."""
    y = np.repeat([0, 1, 2], [50, 30, 17])
    theirs = getattr(reference, kind.__name__)(k, shuffle=True, random_state=0)
    found = folds_of(kind(k, shuffle=True, random_state=0), y, y, _groups(kind))
    expected = folds_of(theirs, y, y, _groups(kind))
    assert sorted(i for _, test in found for i in test) == list(range(97))
    for train, test in found:
        assert sorted(train + test) == list(range(97))
    if kind is KFold:
        assert [len(test) for _, test in found] == [len(test) for _, test in expected]
    if kind is StratifiedKFold:
        for (_, a), (_, b) in zip(found, expected, strict=True):
            assert Counter(y[a].tolist()) == Counter(y[b].tolist())
    if kind is GroupKFold:
        for train, test in found:
            assert not set(GROUPS[train]) & set(GROUPS[test])
    again = kind(k, shuffle=True, random_state=0)
    assert folds_of(again, y, y, _groups(kind)) == found
    assert folds_of(again, y, y, _groups(kind)) == found
    assert folds_of(kind(k, shuffle=True, random_state=1), y, y, _groups(kind)) != found


def _groups(kind: Any) -> Any:
    return GROUPS if kind is GroupKFold else None


def test_a_generator_goes_on() -> None:
    folds = KFold(3, shuffle=True, generator=chainrule.Generator().manual_seed(0))
    first = folds_of(folds, range(30))
    assert folds_of(folds, range(30)) != first
    folds.generator.manual_seed(0)
    assert folds_of(folds, range(30)) == first


def test_folds_index_datasets() -> None:
    data = TensorDataset(chainrule.arange(10))
    for train, test in KFold(5).split(data):
        assert train.dtype == chainrule.int64
        assert len(Subset(data, train)) == 8
        assert [int(Subset(data, test)[i][0]) for i in range(2)] == test.tolist()


# --- the risk -------------------------------------------------------------------------------------

square = nn.MSELoss(reduction="none")


def constant(x: Any, y: Any) -> Callable[[Any], Any]:
    """Learns the mean of the targets."""
    mean = y.mean()
    return lambda x: mean.expand(len(x))


def test_unit_losses_have_risk_one() -> None:
    """Erratum 110: with the factor N/L the risk of a loss that is always 1 would be 400."""
    x, y = chainrule.zeros(100, 1), chainrule.ones(100)
    result = cross_validation_risk(lambda x, y: lambda x: chainrule.zeros(len(x)), square, x, y, 5)
    assert result.risk == 1
    assert result.spread == 0
    assert result.folds.tolist() == [1] * 5
    folds, samples = 5, 100
    inverted = sum(samples / folds * (samples / folds) for _ in range(folds)) / folds
    assert inverted == 400


@pytest.mark.parametrize("folds", [2, 4, 7])
def test_the_risk_is_the_mean_over_all_samples(folds: int) -> None:
    """E03 by its formula; folds of different sizes count by their size."""
    y = chainrule.randn(30, generator=chainrule.Generator().manual_seed(1), dtype="float64")
    x = chainrule.zeros(30, 1)
    result = cross_validation_risk(constant, square, x, y, KFold(folds))
    values = y.numpy()
    total, means = 0.0, []
    for train, test in reference.KFold(folds).split(values):
        losses = (values[test] - values[train].mean()) ** 2
        total += folds / 30 * losses.sum()
        means.append(losses.mean())
    assert math.isclose(result.risk, total / folds, rel_tol=1e-12)
    assert math.isclose(result.spread, float(np.std(means, ddof=1)), rel_tol=1e-12)
    np.testing.assert_allclose(result.folds.numpy(), means, rtol=1e-12)


def test_leave_one_out_of_a_mean_has_a_closed_form() -> None:
    """E04: leaving out y_i moves the mean so that the error is (y_i - mean) N / (N - 1)."""
    y = chainrule.tensor([1.0, 2.0, 4.0, 8.0, 16.0], dtype=chainrule.float64)
    result = cross_validation_risk(constant, square, chainrule.zeros(5, 1), y, LeaveOneOut())
    expected = float(((y - y.mean()) * 5 / 4).square().mean())
    assert math.isclose(result.risk, expected, rel_tol=1e-12)
    assert len(result.folds) == 5


def test_leave_one_out_of_least_squares_has_a_closed_form() -> None:
    """The errors are e_i / (1 - h_ii), with the residuals e and the hat matrix h (PRESS)."""
    r = np.random.default_rng(2)
    x, noise = r.normal(size=(12, 3)), r.normal(size=12)
    y = x @ [1.0, -2.0, 0.5] + noise

    def fit(x: Any, y: Any) -> Callable[[Any], Any]:
        w = chainrule.linalg.lstsq(x, y[:, None]).solution
        return lambda x: (x @ w)[:, 0]

    result = cross_validation_risk(
        fit, square, chainrule.tensor(x), chainrule.tensor(y), LeaveOneOut()
    )
    hat = x @ np.linalg.pinv(x)
    press = ((y - hat @ y) / (1 - np.diag(hat))) ** 2
    assert math.isclose(result.risk, float(press.mean()), rel_tol=1e-9)


def test_the_risk_of_grouped_folds() -> None:
    x, y = chainrule.zeros(97, 1), chainrule.ones(97)
    result = cross_validation_risk(constant, square, x, y, GroupKFold(3), groups=GROUPS)
    assert result.risk == 0
    assert len(result.folds) == 3


# --- bad input ------------------------------------------------------------------------------------

X10 = list(range(10))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: train_test_split(), ValueError, "At least one array"),
        (lambda: train_test_split(X10, [1]), ValueError, r"inconsistent numbers .*\[10, 1\]"),
        (lambda: train_test_split([1]), ValueError, "cannot split 1 samples into two"),
        (lambda: train_test_split(X10, test_size=10), ValueError, "test_size=10 should be"),
        (lambda: train_test_split(X10, test_size=1.0), ValueError, r"float in the \(0, 1\)"),
        (lambda: train_test_split(X10, test_size="a"), ValueError, "Invalid value for test_size"),
        (lambda: train_test_split(X10, test_size=6, train_size=6), ValueError, "sum of .* = 12"),
        (lambda: train_test_split([1, 2], train_size=0.1), ValueError, "train set will be empty"),
        (
            lambda: train_test_split(X10, stratify=[0] * 9 + [1]),
            ValueError,
            "least populated class in stratify has only 1 member",
        ),
        (
            lambda: train_test_split(X10, stratify=[0, 1, 2, 3, 4] * 2, test_size=2),
            ValueError,
            "test_size = 2 should be greater or equal to the number of classes = 5",
        ),
        (lambda: train_test_split(X10, stratify=[0, 1]), ValueError, "2 labels for 10 samples"),
        (
            lambda: train_test_split([1, 2], stratify=[math.nan, 1.0]),
            ValueError,
            "stratify contains NaN",
        ),
        (
            lambda: train_test_split(X10, stratify=X10, shuffle=False),
            ValueError,
            "not implemented for shuffle=False",
        ),
        (lambda: train_test_split(X10, stratify=X10, groups=X10), ValueError, "used together"),
        (
            lambda: train_test_split(X10, random_state=1, generator=chainrule.Generator()),
            ValueError,
            "not both",
        ),
        (lambda: train_test_split(X10, random_state=1.5), TypeError, "must be an integer"),
        (lambda: train_test_split(X10, generator=1), TypeError, "given as random_state"),
        (lambda: train_test_split(3), TypeError, "expected tensors, .* got int"),
        (lambda: train_test_split(chainrule.tensor(1)), TypeError, "without dimensions"),
        (
            lambda: train_validation_test_split(X10, validation_size=0.5, test_size=0.5),
            ValueError,
            "leave nothing of 10 samples for training",
        ),
        (lambda: KFold(1), ValueError, "n_splits=2 or more, got n_splits=1"),
        (lambda: KFold(2.0), ValueError, "number of folds must be an integer"),
        (lambda: KFold(3, random_state=1), ValueError, "no effect since shuffle is False"),
        (lambda: KFold(3, shuffle=1), TypeError, "shuffle must be True or False"),
        (
            lambda: KFold(11).split(X10),
            ValueError,
            "n_splits=11 greater than the number of samples: n_samples=10",
        ),
        (lambda: StratifiedKFold(2).split(X10), ValueError, "'y' parameter should not be None"),
        (lambda: StratifiedKFold(2).split(X10, X10), ValueError, "in each class; .* has 1"),
        (
            lambda: StratifiedKFold(2).split(X10, [0.5, 1.5] * 5),
            ValueError,
            "Got 'continuous' instead; use KFold",
        ),
        (
            lambda: StratifiedKFold(2).split(X10, chainrule.eye(10)),
            ValueError,
            "turned into labels by argmax",
        ),
        (lambda: GroupKFold(2).split(X10), ValueError, "'groups' parameter should not be None"),
        (
            lambda: GroupKFold(3).split(X10, groups=[0, 1] * 5),
            ValueError,
            "n_splits=3 greater than the number of groups: 2",
        ),
        (lambda: LeaveOneOut().split([1]), ValueError, "with n_samples=1"),
        (lambda: TimeSeriesSplit(10).split(X10), ValueError, "folds=11 greater than"),
        (
            lambda: TimeSeriesSplit(3, test_size=3, gap=2).split(X10),
            ValueError,
            "Too many splits=3 for number of samples=10 with test_size=3 and gap=2",
        ),
        (lambda: TimeSeriesSplit(3, gap=-1), ValueError, "gap must be an integer of at least 0"),
        (
            lambda: cross_validation_risk(
                constant, nn.MSELoss(), chainrule.zeros(10, 1), chainrule.zeros(10)
            ),
            ValueError,
            "one number per sample: got shape .* use reduction='none'",
        ),
        (
            lambda: cross_validation_risk(
                constant, square, X10, X10, KFold(2), generator=chainrule.Generator()
            ),
            ValueError,
            "give the generator to KFold",
        ),
    ],
)
def test_bad_input(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_rare_classes_are_warned_of() -> None:
    y = [0] * 8 + [1] * 2
    with pytest.warns(UserWarning, match="least populated class in y has only 2 members"):
        StratifiedKFold(3).split(y, y)


@pytest.mark.parametrize("kind", [KFold, LeaveOneOut, TimeSeriesSplit])
def test_ignored_groups_are_warned_of(kind: Any) -> None:
    with pytest.warns(UserWarning, match=f"groups parameter is ignored by {kind.__name__}"):
        kind().split(X10, groups=X10)

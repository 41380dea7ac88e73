"""Scores of every task, weighted and not, against scikit-learn's; and how often intervals hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import special, stats
from sklearn import metrics as sk

import chainrule
from chainrule.data import Column, Table, TargetEncoder
from chainrule.train.scoring import intervals_of, scores_of, wilson

N = 80
R = np.random.default_rng(0)
WEIGHT = R.uniform(0.2, 3, N)


def column(values: Any) -> Column:
    return Table.from_dict({"y": values})["y"]


def scored(encoder: TargetEncoder, output: Any, truth: Any, weighted: bool) -> dict[str, float]:
    weight = chainrule.tensor(WEIGHT) if weighted else None
    return scores_of(encoder, chainrule.tensor(output), chainrule.tensor(truth), weight)


def options(weighted: bool) -> dict[str, Any]:
    return {"sample_weight": WEIGHT if weighted else None}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("k", [2, 4])
def test_classes(k: int, weighted: bool) -> None:
    encoder = TargetEncoder().fit(column([str(i % k) for i in range(20)]))
    output, truth = R.normal(size=(N, k)).round(1), R.integers(0, k, N)
    output[np.arange(N), truth] += 0.5
    found = scored(encoder, output, truth, weighted)
    predicted, p, w = output.argmax(1), special.softmax(output, 1), options(weighted)
    assert found["accuracy"] == pytest.approx(sk.accuracy_score(truth, predicted, **w))
    assert found["f1"] == pytest.approx(sk.f1_score(truth, predicted, average="macro", **w))
    assert found["nll"] == pytest.approx(sk.log_loss(truth, p, **w))
    if k == 2:
        expected = sk.roc_auc_score(truth, output[:, 1] - output[:, 0], **w)
        assert found["roc_auc"] == pytest.approx(expected)
    assert ("roc_auc" in found) == (k == 2)


@pytest.mark.parametrize("weighted", [False, True])
def test_numbers(weighted: bool) -> None:
    one = TargetEncoder("regression").fit(column([0.0, 4.0]))  # spread 2
    output, truth, w = R.normal(size=(N, 1)), R.normal(size=(N, 1)), options(weighted)
    found = scored(one, output, truth, weighted)
    assert found["r2"] == pytest.approx(sk.r2_score(truth, output, **w))
    assert found["rmse"] == pytest.approx(2 * sk.root_mean_squared_error(truth, output, **w))
    assert found["mae"] == pytest.approx(2 * sk.mean_absolute_error(truth, output, **w))
    two = TargetEncoder().fit(Table.from_dict({"a": [0.0, 4.0], "b": [0.0, 20.0]}))
    output, truth = R.normal(size=(N, 2)), R.normal(size=(N, 2))
    found = scored(two, output, truth, weighted)
    assert list(found) == ["r2", "rmse a", "mae a", "rmse b", "mae b"]
    assert found["r2"] == pytest.approx(sk.r2_score(truth, output, **w))
    expected = 10 * sk.mean_absolute_error(truth[:, 1], output[:, 1], **w)
    assert found["mae b"] == pytest.approx(expected)


@pytest.mark.parametrize("weighted", [False, True])
def test_labels(weighted: bool) -> None:
    encoder = TargetEncoder().fit(Table.from_dict({"a": [0, 1], "b": [1, 0], "c": [0, 1]}))
    output, truth, w = R.normal(size=(N, 3)), R.integers(0, 2, (N, 3)), options(weighted)
    found, given = scored(encoder, output, truth.astype(float), weighted), output > 0
    assert found["label_f1"] == pytest.approx(sk.f1_score(truth, given, average="micro", **w))
    assert found["f1"] == pytest.approx(sk.f1_score(truth, given, average="macro", **w))
    assert found["hamming_loss"] == pytest.approx(sk.hamming_loss(truth, given, **w))
    assert found["subset_accuracy"] == pytest.approx(sk.accuracy_score(truth, given, **w))


@pytest.mark.parametrize("weighted", [False, True])
def test_counts(weighted: bool) -> None:
    encoder = TargetEncoder("count").fit(column([2, 4]))  # in units of 3
    output, counts, w = R.normal(size=(N, 1)), R.poisson(3, (N, 1)), options(weighted)
    found, rate = scored(encoder, output, counts / 3, weighted), 3 * np.exp(output)
    assert found["deviance"] == pytest.approx(sk.mean_poisson_deviance(counts, rate, **w))
    assert found["d2"] == pytest.approx(sk.d2_tweedie_score(counts, rate, power=1, **w))
    assert found["rmse"] == pytest.approx(sk.root_mean_squared_error(counts, rate, **w))


@pytest.mark.parametrize("weighted", [False, True])
def test_quantiles(weighted: bool) -> None:
    encoder = TargetEncoder("quantile", quantiles=(0.2, 0.5, 0.7)).fit(column([0.0, 4.0]))
    output, truth, w = np.sort(R.normal(size=(N, 3)), 1), R.normal(size=(N, 1)), options(weighted)
    found = scored(encoder, output, truth, weighted)
    each = [
        2 * sk.mean_pinball_loss(truth, output[:, k], alpha=q, **w)
        for k, q in enumerate((0.2, 0.5, 0.7))
    ]
    assert found["pinball"] == pytest.approx(np.mean(each))
    inside = (truth[:, 0] >= output[:, 0]) & (truth[:, 0] <= output[:, 2])
    assert found["coverage"] == pytest.approx(np.average(inside, weights=w["sample_weight"]))
    crossed = scored(encoder, output[:, ::-1].copy(), truth, weighted)
    assert crossed == pytest.approx(found)


@pytest.mark.parametrize("weighted", [False, True])
def test_ranks(weighted: bool) -> None:
    encoder = TargetEncoder("ordinal").fit(column([1, 2, 3, 4]))
    predicted, truth, w = R.integers(0, 4, N), R.integers(0, 4, N), options(weighted)
    output = np.where(predicted[:, None] > np.arange(3), 1.0, -1.0)
    found = scored(encoder, output, truth, weighted)
    assert found["accuracy"] == pytest.approx(sk.accuracy_score(truth, predicted, **w))
    assert found["rank_mae"] == pytest.approx(sk.mean_absolute_error(truth, predicted, **w))
    expected = sk.cohen_kappa_score(truth, predicted, weights="quadratic", **w)
    assert found["kappa"] == pytest.approx(expected)


# --- intervals ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("hits", "rows"), [(0, 12), (7, 10), (30, 30), (50, 400)])
def test_wilson_equals_scipy(hits: int, rows: int) -> None:
    expected = stats.binomtest(hits, rows).proportion_ci(method="wilson")
    assert wilson(hits / rows, rows) == pytest.approx((expected.low, expected.high), abs=1e-6)


def test_intervals_hold_as_often_as_they_say() -> None:
    """The R2 and the error of 60 rows, of which the truth is known: about 95 of 100 hold it."""
    encoder = TargetEncoder("regression").fit(column([-1.0, 1.0]))
    r, held = np.random.default_rng(1), np.zeros(2)
    for seed in range(200):
        truth = r.normal(size=(60, 1))
        output = truth + 0.5 * r.normal(size=(60, 1))
        found = intervals_of(encoder, chainrule.tensor(output), chainrule.tensor(truth), seed=seed)
        held += [
            found["r2"][0] <= 0.75 <= found["r2"][1],
            found["rmse"][0] <= 0.5 <= found["rmse"][1],
        ]
    assert (held > 0.88 * 200).all()
    assert (held < 200).all()


def test_many_rows_are_sampled_and_the_interval_is_as_narrow_as_theirs() -> None:
    encoder = TargetEncoder("regression").fit(column([-1.0, 1.0]))
    r, n = np.random.default_rng(2), 20_000
    truth = r.normal(size=(n, 1))
    error = r.normal(size=(n, 1))
    found = intervals_of(encoder, chainrule.tensor(truth + error), chainrule.tensor(truth))
    low, high = found["mae"]
    expected = 2 * 1.96 * np.abs(error).std() / np.sqrt(n)
    assert high - low == pytest.approx(expected, rel=0.2)
    assert low < np.abs(error).mean() < high


def test_intervals_leave_the_random_state_alone() -> None:
    encoder = TargetEncoder("regression").fit(column([-1.0, 1.0]))
    x = chainrule.tensor(R.normal(size=(30, 1)))
    before = chainrule.get_rng_state()
    first = intervals_of(encoder, x, x * 0.5)
    assert chainrule.equal(chainrule.get_rng_state(), before)
    assert intervals_of(encoder, x, x * 0.5) == first

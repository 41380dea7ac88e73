"""Measures of labels, counts, quantiles and ranks against scikit-learn's."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import metrics as sk

import chainrule
from chainrule import metrics, train

SEEDS = range(4)


def labels(seed: int) -> tuple[np.ndarray, np.ndarray]:
    r = np.random.default_rng(seed)
    scores, true = r.normal(size=(40, 5)), r.integers(0, 2, size=(40, 5))
    true[0], scores[0] = 0, -1.0  # a sample without labels
    return scores, true


@pytest.mark.parametrize("seed", SEEDS)
def test_labels(seed: int) -> None:
    scores, true = labels(seed)
    chosen = scores > 0
    assert metrics.hamming_loss(scores, true) == pytest.approx(sk.hamming_loss(true, chosen))
    assert metrics.subset_accuracy(scores, true) == sk.accuracy_score(true, chosen)
    for average in ("micro", "macro", "samples"):
        expected = sk.f1_score(true, chosen, average=average, zero_division=0)
        assert metrics.label_f1(scores, true, average) == pytest.approx(expected)
        assert metrics.label_f1(chosen.astype(int), true, average) == pytest.approx(expected)


def test_scores_of_labels_are_cut_where_the_loss_says() -> None:
    output, true = chainrule.tensor([[0.2, 0.7]]), chainrule.tensor([[1, 1]])
    assert metrics.hamming_loss(output, true) == 0.5
    assert metrics.hamming_loss(output, true, scores="logits") == 0
    net = chainrule.nn.Linear(2, 2)
    trainer = train.Trainer(net, "bce_with_logits", metrics=["hamming_loss"], progress=False)
    assert trainer.metrics["hamming_loss"](output, true) == 0
    with pytest.raises(ValueError, match="probabilities lie in"):
        metrics.label_f1(-output, true, scores="probabilities")
    with pytest.raises(ValueError, match="labels of the target must be 0 and 1"):
        metrics.label_f1(output, 2 * true)
    with pytest.raises(ValueError, match=r"one shape \(N, L\)"):
        metrics.subset_accuracy(output, true[0])


@pytest.mark.parametrize("seed", SEEDS)
def test_counts(seed: int) -> None:
    r = np.random.default_rng(seed)
    rate, true = r.uniform(0.1, 5, 30), r.poisson(2, 30)
    expected = sk.mean_poisson_deviance(true, rate)
    assert metrics.poisson_deviance(rate, true) == pytest.approx(expected, rel=1e-12)
    d2 = sk.d2_tweedie_score(true, rate, power=1)
    assert metrics.d2_poisson(rate, true) == pytest.approx(d2, rel=1e-12)
    assert metrics.d2_poisson_log(np.log(rate), true) == pytest.approx(d2, rel=1e-12)


def test_bad_counts() -> None:
    with pytest.raises(ValueError, match="means are positive, got -1; .* log_input=True"):
        metrics.d2_poisson([-1.0, 1.0], [1, 2])
    with pytest.raises(ValueError, match="counts are not negative, got -2"):
        metrics.poisson_deviance([1.0, 1.0], [1, -2])
    assert metrics.d2_poisson([2.0, 2.0], [2, 2]) == 1
    assert metrics.d2_poisson([1.0, 2.0], [2, 2]) == 0


def test_quantiles() -> None:
    r = np.random.default_rng(0)
    x, y = np.sort(r.normal(size=(40, 2)), 1), r.normal(size=40)
    expected = np.mean([sk.mean_pinball_loss(y, x[:, k], alpha=q) for k, q in ((0, 0.2), (1, 0.8))])
    assert metrics.pinball(x, y, [0.2, 0.8]) == pytest.approx(expected, rel=1e-12)
    inside = ((x[:, 0] <= y) & (y <= x[:, 1])).mean()
    assert metrics.coverage(x, y) == inside
    assert metrics.coverage(x[:, :1], y[:, None]) == (y <= x[:, 0]).mean()
    with pytest.raises(ValueError, match=r"expected outputs \(N, K\)"):
        metrics.coverage(y, y)


@pytest.mark.parametrize("weights", [None, "linear", "quadratic"])
def test_ranks(weights: str | None) -> None:
    r = np.random.default_rng(3)
    predicted, true = r.integers(0, 5, 60), r.integers(0, 5, 60)
    expected = sk.cohen_kappa_score(true, predicted, weights=weights)
    assert metrics.cohen_kappa(predicted, true, weights) == pytest.approx(expected, rel=1e-12)
    assert metrics.ordinal_mae(predicted, true) == pytest.approx(abs(predicted - true).mean())
    logits = np.where(predicted[:, None] > np.arange(4), 1.0, -1.0)
    np.testing.assert_array_equal(metrics.predicted_ranks(logits).numpy(), predicted)
    assert metrics.ordinal_accuracy(logits, true) == pytest.approx((predicted == true).mean())


def test_bad_ranks() -> None:
    with pytest.raises(ValueError, match="numbered from 0"):
        metrics.ordinal_mae([0, 1], [-1, 0])
    with pytest.raises(ValueError, match="weights must be None, 'linear' or 'quadratic'"):
        metrics.cohen_kappa([0, 1], [0, 1], "cubic")
    with pytest.raises(ValueError, match="of one length"):
        metrics.ordinal_accuracy([0, 1, 2], [0, 1])

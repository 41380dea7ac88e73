"""Curves over thresholds against scikit-learn's, ties among the scores included."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import metrics as sk
from sklearn.calibration import calibration_curve
from sklearn.preprocessing import label_binarize

import chainrule
from chainrule import metrics, train
from chainrule.metrics.scores import binned

SEEDS = range(5)


def binary(seed: int) -> tuple[np.ndarray, np.ndarray]:
    r = np.random.default_rng(seed)
    true = r.integers(0, 2, 50)
    return (r.normal(size=50) + true).round(1), true


@pytest.mark.parametrize("seed", SEEDS)
def test_roc(seed: int) -> None:
    scores, true = binary(seed)
    theirs = sk.roc_curve(true, scores, drop_intermediate=False)
    for ours, expected in zip(metrics.roc_curve(scores, true), theirs, strict=True):
        np.testing.assert_allclose(ours.numpy(), expected, rtol=1e-12)
    signed = metrics.roc_curve(scores, 2 * true - 1)
    np.testing.assert_array_equal(signed.true_positive_rate.numpy(), theirs[1])
    two = metrics.roc_curve(np.stack([-scores / 2, scores / 2], 1), true)
    np.testing.assert_allclose(two.false_positive_rate.numpy(), theirs[0])


@pytest.mark.parametrize("seed", SEEDS)
def test_precision_and_recall(seed: int) -> None:
    scores, true = binary(seed)
    theirs = sk.precision_recall_curve(true, scores)
    for ours, expected in zip(metrics.precision_recall_curve(scores, true), theirs, strict=True):
        keep = ours.numpy()[-len(expected) :]  # scikit-learn stops where all of class 1 is found
        np.testing.assert_allclose(keep, expected, rtol=1e-12)
    expected = sk.average_precision_score(true, scores)
    assert metrics.average_precision(scores, true) == pytest.approx(expected, rel=1e-12)


def test_average_precision_of_several_classes() -> None:
    r = np.random.default_rng(0)
    scores, true = r.normal(size=(60, 4)), r.integers(0, 4, 60)
    expected = sk.average_precision_score(label_binarize(true, classes=range(4)), scores)
    assert metrics.average_precision(scores, true) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_bins_of_a_calibration_curve(seed: int) -> None:
    r = np.random.default_rng(seed)
    p = r.random(200)
    true = (r.random(200) < p).astype(float)
    found = binned(chainrule.tensor(p), chainrule.tensor(true), 8)
    seen = (found.counts > 0).numpy()
    share, confidence = calibration_curve(true, p, n_bins=8)
    np.testing.assert_allclose(found.hits.numpy()[seen], share)
    np.testing.assert_allclose(found.confidences.numpy()[seen], confidence)


def test_reliability_is_of_the_predicted_class() -> None:
    p = np.array([[0.9, 0.1], [0.3, 0.7], [0.55, 0.45], [0.6, 0.4]])
    found = metrics.reliability(p, np.array([0, 1, 1, 0]), 2)
    assert found.counts.tolist() == [0, 4]
    assert float(found.hits[1]) == 0.75
    assert float(found.confidences[1]) == pytest.approx((0.9 + 0.7 + 0.55 + 0.6) / 4)
    assert np.isnan(found.hits[0].numpy())
    assert metrics.calibration_error(p, np.array([0, 1, 1, 0]), 2) == pytest.approx(0.0625)


@pytest.mark.parametrize("name", ["roc_curve", "precision_recall_curve"])
def test_what_has_no_curve(name: str) -> None:
    curve = getattr(metrics, name)
    with pytest.raises(ValueError, match="both classes"):
        curve([0.1, 0.2], [1, 1])
    with pytest.raises(ValueError, match="one against the rest"):
        curve(np.zeros((4, 3)), [0, 1, 2, 0])
    with pytest.raises(ValueError, match="finite"):
        curve([0.1, float("nan")], [0, 1])
    with pytest.raises(ValueError, match="one length"):
        curve([0.1, 0.2, 0.3], [0, 1])
    with pytest.raises(ValueError, match="bins"):
        metrics.reliability([0.1, 0.2], [0, 1], 0)


def test_a_training_finds_the_same_metrics() -> None:
    assert {name: getattr(train.metrics, name) for name in metrics.__all__} == {
        name: getattr(metrics, name) for name in metrics.__all__
    }
    from chainrule.train.metrics import accuracy

    assert accuracy is metrics.accuracy

"""Displays of predictions: against scikit-learn, from every kind of model, and on bad input."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn import metrics as sk
from sklearn.calibration import calibration_curve
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.svm import LinearSVC

import chainrule
from chainrule import data, inspect, metrics, nn, train
from looking.drawn import assert_drawn_well, figure_of


def three_classes(n: int = 90) -> tuple[np.ndarray, np.ndarray]:
    r = np.random.default_rng(0)
    y = np.arange(n) % 3
    return r.normal(size=(n, 4)) + 0.8 * y[:, None], y


X, Y = three_classes()
LOGISTIC = LogisticRegression().fit(X, Y)
BINARY = (Y > 0).astype(int)


def linear_module(estimator: LogisticRegression) -> nn.Linear:
    net = nn.Linear(4, len(estimator.coef_), dtype=chainrule.float64)
    with chainrule.no_grad():
        net.weight.copy_(chainrule.tensor(estimator.coef_))
        net.bias.copy_(chainrule.tensor(estimator.intercept_))
    return net


# --- confusion ------------------------------------------------------------------------------------


@pytest.mark.parametrize("normalize", [None, "true", "pred", "all"])
def test_confusion_is_that_of_scikit_learn(normalize: str | None) -> None:
    said = LOGISTIC.predict(X)
    expected = sk.confusion_matrix(Y, said, normalize=normalize)
    ways = [
        inspect.confusion(LOGISTIC, X, Y, normalize=normalize),
        inspect.confusion(linear_module(LOGISTIC), X, Y, normalize=normalize),
        inspect.Confusion.from_estimator(LOGISTIC, X, Y, normalize=normalize),
        inspect.Confusion.from_predictions(Y, said, normalize=normalize),
        inspect.Confusion.from_predictions(Y, LOGISTIC.predict_proba(X), normalize=normalize),
    ]
    for seen in ways:
        np.testing.assert_allclose(seen.matrix.numpy(), expected, rtol=1e-12)
        np.testing.assert_allclose(seen.recall, sk.recall_score(Y, said, average=None))
        np.testing.assert_allclose(seen.precision, sk.precision_score(Y, said, average=None))


def test_labels_may_be_words_and_any_numbers() -> None:
    seen = inspect.Confusion.from_predictions(["cat", "dog", "cat"], ["cat", "cat", "cat"])
    assert seen.classes == ["cat", "dog"]
    assert seen.matrix.tolist() == [[2, 0], [1, 0]]
    assert seen.worst == [("dog", "cat", 1)]
    assert "dog taken for cat: 1 times" in str(seen)
    seen = inspect.Confusion.from_predictions([3, 7, 7], [7, 7, 3])
    assert seen.classes == ["3", "7"]
    assert seen.matrix.tolist() == [[0, 1], [1, 1]]
    words = LogisticRegression().fit(X, np.array(["a", "b", "c"])[Y])
    seen = inspect.confusion(words, X, np.array(["a", "b", "c"])[Y])
    assert seen.classes == ["a", "b", "c"]
    np.testing.assert_array_equal(seen.matrix.numpy(), sk.confusion_matrix(Y, LOGISTIC.predict(X)))


def test_a_fitted_network_reads_its_own_table() -> None:
    columns = {"a": X[:, 0].tolist(), "b": X[:, 1].tolist()}
    settings = train.Settings(hidden=(4,), epochs=2)
    rows = data.Table.from_dict(columns | {"kind": ["xyz"[k] for k in Y]})
    fitted = train.fit_table(rows, "kind", settings=settings, progress=False)
    fitted.model.train()
    seen = inspect.confusion(fitted, rows, None)
    assert fitted.model.training
    assert seen.classes == ["x", "y", "z"]
    assert seen.accuracy == pytest.approx(fitted.evaluate(rows)["accuracy"])
    rows = data.Table.from_dict(columns | {"size": (100 * X[:, 2]).tolist()})
    fitted = train.fit_table(rows, "size", settings=settings, progress=False)
    left = inspect.residuals(fitted, rows, None)
    assert left.rmse == pytest.approx(fitted.evaluate(rows)["rmse"])
    np.testing.assert_allclose(left.targets.numpy(), 100 * X[:, 2], rtol=1e-5)


# --- calibration ----------------------------------------------------------------------------------


def test_calibration_of_two_classes_is_that_of_scikit_learn() -> None:
    two = LogisticRegression().fit(X, BINARY)
    p = two.predict_proba(X)[:, 1]
    share, confidence = calibration_curve(BINARY, p, n_bins=8)
    for seen in (
        inspect.calibration(two, X, BINARY, bins=8),
        inspect.calibration(linear_module(two), X, BINARY, bins=8),
        inspect.Calibration.from_predictions(BINARY, p, bins=8),
    ):
        used = (seen.counts > 0).numpy()
        np.testing.assert_allclose(seen.hits.numpy()[used], share)
        np.testing.assert_allclose(seen.confidences.numpy()[used], confidence)
        assert int(seen.counts.sum()) == len(X)
        assert seen.of == "class 1"


def test_calibration_of_several_classes_is_that_of_the_predicted_one() -> None:
    seen = inspect.calibration(LOGISTIC, X, Y, bins=15)
    p = LOGISTIC.predict_proba(X)
    assert seen.error == pytest.approx(metrics.calibration_error(p, Y, 15), rel=1e-12)
    one = inspect.calibration(LOGISTIC, X, Y, of=2)
    assert one.of == "class 2"
    with pytest.raises(ValueError, match="of must be"):
        inspect.calibration(LOGISTIC, X, Y, of="dog")


def test_overconfidence_is_named_with_a_remedy() -> None:
    sure = 6 * LOGISTIC.decision_function(X)
    assert "overconfident" in str(inspect.Calibration.from_predictions(Y, sure))
    assert "temperature above 1" in inspect.Calibration.from_predictions(Y, sure).verdict
    timid = 0.2 * LOGISTIC.decision_function(X)
    assert "underconfident" in inspect.Calibration.from_predictions(Y, timid).verdict
    assert "within chance" in inspect.calibration(LOGISTIC, X, Y).verdict


# --- thresholds -----------------------------------------------------------------------------------


def test_curves_of_each_class_against_the_rest() -> None:
    p = LOGISTIC.predict_proba(X)
    seen, curves = inspect.roc(LOGISTIC, X, Y), inspect.precision_recall(LOGISTIC, X, Y)
    assert list(seen.curves) == ["0", "1", "2"]
    for k in range(3):
        fpr, tpr, _ = sk.roc_curve(k == Y, p[:, k], drop_intermediate=False)
        np.testing.assert_allclose(seen.curves[str(k)].false_positive_rate.numpy(), fpr)
        np.testing.assert_allclose(seen.curves[str(k)].true_positive_rate.numpy(), tpr)
        assert seen.auc[str(k)] == pytest.approx(sk.roc_auc_score(k == Y, p[:, k]))
        average = sk.average_precision_score(k == Y, p[:, k])
        assert curves.average_precision[str(k)] == pytest.approx(average)
        above = p[:, k] >= 0.5
        assert seen.at[str(k)] == (above[k != Y].mean(), pytest.approx(above[k == Y].mean()))
        expected = (sk.recall_score(k == Y, above), sk.precision_score(k == Y, above))
        assert curves.at[str(k)] == pytest.approx(expected)


def test_two_classes_have_one_curve_and_labels_each_theirs() -> None:
    scores = X[:, 0]
    seen = inspect.Roc.from_predictions(BINARY, scores, threshold=0.7)
    assert list(seen.curves) == ["1"]
    assert seen.auc["1"] == pytest.approx(sk.roc_auc_score(BINARY, scores))
    best = seen.best["1"]
    rates = [((s >= best)[k == BINARY]).mean() for s in [1 / (1 + np.exp(-scores))] for k in (0, 1)]
    fpr, tpr, _ = sk.roc_curve(BINARY, scores)
    assert rates[1] - rates[0] == pytest.approx((tpr - fpr).max())
    labels = np.stack([Y == 0, Y != 2, Y >= 0], 1).astype(float)
    labels[:5] = 1.0  # several at once; the last label is on all samples and has no curve
    seen = inspect.Roc.from_predictions(labels, X[:, :3])
    assert list(seen.curves) == ["0", "1"]
    assert seen.auc["1"] == pytest.approx(sk.roc_auc_score(labels[:, 1], X[:, 1]))


def test_an_estimator_without_probabilities_has_curves() -> None:
    machine = LinearSVC().fit(X, BINARY)
    seen = inspect.roc(machine, X, BINARY)
    assert seen.auc["1"] == pytest.approx(sk.roc_auc_score(BINARY, machine.decision_function(X)))


# --- residuals ------------------------------------------------------------------------------------


def test_residuals() -> None:
    y = X[:, 0] + 0.5 * X[:, 1] ** 2
    fit = LinearRegression().fit(X, y)
    said = fit.predict(X)
    for seen in (
        inspect.residuals(fit, X, y),
        inspect.Residuals.from_predictions(y, said),
        inspect.Residuals.from_estimator(fit, X, y),
    ):
        np.testing.assert_allclose(seen.residuals.numpy(), y - said)
        assert seen.r2 == pytest.approx(sk.r2_score(y, said))
        assert seen.rmse == pytest.approx(math.sqrt(sk.mean_squared_error(y, said)))
        assert abs(seen.bias) < 1e-9  # least squares with an intercept
        assert abs(seen.tilt) < 1e-9


def test_what_residuals_show_is_said() -> None:
    r = np.random.default_rng(1)
    said, noise = r.random(300) * 10, r.normal(size=300)
    assert inspect.Residuals.from_predictions(said + noise, said).verdicts == []
    (biased,) = inspect.Residuals.from_predictions(said + noise + 2, said).verdicts
    assert "too low by" in biased
    (growing,) = inspect.Residuals.from_predictions(said + noise * said, said).verdicts
    assert "logarithm" in growing
    timid = inspect.Residuals.from_predictions(3 * (said - 5) + noise, said - 5).verdicts
    assert any("too timid" in v for v in timid)
    with pytest.raises(ValueError, match="output must lie in"):
        inspect.Residuals.from_predictions(said, said, output=1)


# --- all ------------------------------------------------------------------------------------------

DISPLAYS = [
    inspect.Confusion,
    inspect.Calibration,
    inspect.Roc,
    inspect.PrecisionRecall,
    inspect.Residuals,
]


@pytest.mark.parametrize("display", DISPLAYS, ids=lambda d: d.__name__)
def test_bad_input_is_named(display: type) -> None:
    made = display.from_predictions
    with pytest.raises(ValueError, match="as many predictions as targets"):
        made([0, 1, 1], [0.1, 0.9])
    with pytest.raises(ValueError, match="at least one"):
        made([], [])
    with pytest.raises(ValueError, match="finite"):
        made([0, 1, 1], [0.1, math.nan, 0.4])
    with pytest.raises(TypeError, match="several"):
        made([0, 1], (chainrule.ones(2), chainrule.ones(2)))
    with pytest.raises(TypeError, match="model must be"):
        display.from_estimator("a model", [[1.0]], [1])


def test_one_class_only() -> None:
    for display in (inspect.Roc, inspect.PrecisionRecall):
        with pytest.raises(ValueError, match="at least two classes"):
            display.from_predictions([1, 1], [0.1, 0.2])
        with pytest.raises(ValueError, match="not two classes"):
            display.from_predictions([0.3, 1.7], [0.1, 0.2])
        with pytest.raises(ValueError, match="threshold"):
            display.from_predictions([0, 1], [0.1, 0.2], threshold=1.5)
    seen = inspect.Confusion.from_predictions([1, 1], [1, 1])
    assert seen.accuracy == 1
    with pytest.raises(ValueError, match="names for"):
        inspect.Confusion.from_predictions([0, 1], [0.2, 0.7], classes=["a", "b", "c"])
    with pytest.raises(ValueError, match="normalize"):
        inspect.Confusion.from_predictions([0, 1], [0, 1], normalize="rows")


def test_what_is_drawn_is_what_was_found() -> None:
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("agg")
    names = ["a long name", "another", "third class"]
    ax = inspect.confusion(LOGISTIC, X, Y, classes=names).plot()
    assert_drawn_well(ax)
    assert [t.get_text() for t in ax.get_xticklabels()] == names
    seen = inspect.roc(LOGISTIC, X, Y)
    ax = seen.plot()
    np.testing.assert_array_equal(
        ax.lines[1].get_ydata(), seen.curves["0"].true_positive_rate.numpy()
    )
    fit = inspect.Residuals.from_predictions(X[:, 0], X[:, 1])
    panels = fit.plot(color="red")
    np.testing.assert_array_equal(panels[1].collections[0].get_offsets()[:, 1], fit.residuals)
    _, given = plt.subplots(1, 2)
    assert list(inspect.calibration(LOGISTIC, X, Y).plot(axes=given)) == list(given)
    for drawn in (ax, panels, given):
        plt.close(figure_of(drawn))
    plt.close("all")


def test_without_matplotlib_numbers_remain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.pyplot", None)
    seen = inspect.confusion(LOGISTIC, X, Y)
    assert seen.accuracy > 0.5
    with pytest.raises(ImportError, match=r"chainrule\[plot\]"):
        seen.plot()

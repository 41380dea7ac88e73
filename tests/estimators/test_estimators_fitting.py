"""Weights of samples, kinds of targets, going on and stopping."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification, make_multilabel_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import accuracy_score, r2_score

from chainrule import optim, train
from chainrule.estimators import NetworkClassifier, NetworkRegressor, NetworkTransformer
from chainrule.estimators.monitor import split_off


pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning", "ignore:.*SCIPY_ARRAY_API.*"
)


Rows = tuple[Any, Any, Any, Any]


def weights(model: Any) -> np.ndarray:
    return np.concatenate([p.detach().numpy().ravel() for p in model.module_.parameters()])


# --- weights --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [
        NetworkClassifier(),
        NetworkClassifier(class_weight="balanced"),
        NetworkClassifier(class_weight={0: 1.0, 1: 3.0}),
        NetworkClassifier(solver="rmsprop"),
        NetworkRegressor(),
        NetworkTransformer(),
        NetworkTransformer(task="classification"),
    ],
    ids=str,
)
def test_a_weight_is_a_repetition(model: Any) -> None:
    X, y = make_classification(40, random_state=0)
    times = np.random.default_rng(0).integers(0, 4, 40)
    model = clone(model).set_params(hidden_layer_sizes=(6,), max_iter=30, random_state=0)
    weighted = clone(model).fit(X, y, sample_weight=times)
    repeated = clone(model).fit(X.repeat(times, axis=0), y.repeat(times))
    np.testing.assert_allclose(weights(weighted), weights(repeated), rtol=1e-7, atol=1e-9)


def test_class_weights_are_sample_weights(iris: Rows) -> None:
    X, _, y, _ = iris
    names = np.array(["a", "b", "c"])[y]
    given = {"a": 1.0, "b": 5.0, "c": 0.5}
    options: dict[str, Any] = {"hidden_layer_sizes": (6,), "max_iter": 10, "random_state": 0}
    by_class = NetworkClassifier(class_weight=given, **options).fit(X, names)
    by_sample = NetworkClassifier(**options).fit(X, names, [given[n] for n in names])
    np.testing.assert_allclose(weights(by_class), weights(by_sample), rtol=1e-9)


def test_balanced_classes_are_predicted_more_often() -> None:
    X, y = make_classification(300, weights=[0.95], class_sep=0.5, random_state=0)
    plain, balanced = [
        NetworkClassifier(
            (8,), max_iter=30, learning_rate_init=0.01, class_weight=w, random_state=0
        )
        .fit(X, y)
        .predict(X)
        .sum()
        for w in (None, "balanced")
    ]
    assert balanced > plain + 20


# --- kinds of targets -----------------------------------------------------------------------------


def test_several_labels() -> None:
    X, y = make_multilabel_classification(200, n_classes=4, random_state=0)
    model = NetworkClassifier((32,), max_iter=150, learning_rate_init=0.02, random_state=0)
    assert model.fit(X, y).predict(X).shape == model.predict_proba(X).shape == (200, 4)
    assert model.out_activation_ == "logistic"
    assert model.score(X, y) == accuracy_score(y, model.predict(X)) > 0.8
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), model.predict_proba(X))


def test_several_targets_with_classes(iris: Rows) -> None:
    X, _, y, _ = iris
    both = np.column_stack([np.array(["a", "b", "c"])[y], np.where(y == 2, "yes", "no")])
    model = NetworkClassifier((16,), max_iter=100, learning_rate_init=0.02, random_state=0)
    model.fit(X, both)
    assert [list(c) for c in model.classes_] == [["a", "b", "c"], ["no", "yes"]]
    first, second = model.predict_proba(X)
    assert (first.shape, second.shape) == ((105, 3), (105, 2))
    np.testing.assert_allclose(first.sum(1), 1)
    hits = (model.predict(X) == both).all(1)
    assert model.score(X, both) == hits.mean() > 0.9
    weight = np.arange(105.0)
    assert model.score(X, both, weight) == pytest.approx(np.average(hits, weights=weight))
    assert [m.shape for m in model.decision_function(X)] == [(105, 3), (105,)]
    weighted = clone(model).fit(X, both, weight)
    assert weighted.score(X, both) > 0.9


def test_several_numbers(diabetes: Rows) -> None:
    X, _, y, _ = diabetes
    both = np.column_stack([y, -2 * y])
    model = NetworkRegressor((16,), max_iter=100, learning_rate_init=0.01, random_state=0)
    assert model.fit(X, both).predict(X).shape == both.shape
    assert model.score(X, both) == pytest.approx(r2_score(both, model.predict(X)))
    with pytest.raises(ValueError, match="y has 3 outputs, but NetworkRegressor was fitted with 2"):
        model.partial_fit(X, np.column_stack([both, y]))


def test_counts_by_the_poisson_loss() -> None:
    r = np.random.default_rng(0)
    X = r.normal(size=(400, 3))
    rate = np.exp(0.5 + X @ [0.5, -0.3, 0.2])
    model = NetworkRegressor((), loss="poisson", solver="lbfgs", alpha=0).fit(X, r.poisson(rate))
    assert model.out_activation_ == "exp"
    assert np.corrcoef(model.predict(X), rate)[0, 1] > 0.98
    with pytest.raises(ValueError, match="poisson.*y >= 0"):
        model.fit(X, -rate)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_dtype_is_that_of_the_features(iris: Rows, dtype: str) -> None:
    X, _, y, _ = iris
    model = NetworkClassifier((5,), max_iter=3, random_state=0).fit(X.astype(dtype), y)
    assert {str(p.dtype) for p in model.module_.parameters()} == {f"chainrule.{dtype}"}
    assert model.predict_proba(X.astype(dtype)).dtype == dtype
    code = NetworkTransformer((5,), max_iter=3).fit_transform(X.astype(dtype))
    assert code.dtype == dtype


# --- going on, stopping ---------------------------------------------------------------------------


def test_partial_fit_is_an_epoch() -> None:
    X, y = make_classification(50, random_state=0)
    options: dict[str, Any] = {"hidden_layer_sizes": (5,), "shuffle": False, "random_state": 0}
    whole = NetworkClassifier(max_iter=4, **options).fit(X, y)
    parts = NetworkClassifier(**options)
    for i in range(4):
        parts.partial_fit(X, y, classes=[0, 1] if i == 0 else None)
    np.testing.assert_array_equal(weights(parts), weights(whole))
    assert parts.loss_curve_ == whole.loss_curve_
    assert (parts.t_, parts.n_iter_, len(parts.history_)) == (200, 1, 4)


def test_partial_fit_checks_its_classes(iris: Rows) -> None:
    X, _, y, _ = iris
    model = NetworkClassifier((5,))
    with pytest.raises(ValueError, match="classes must be passed on the first call"):
        model.partial_fit(X, y)
    model.partial_fit(X[:10], y[:10] * 0, classes=[0, 1, 2])
    assert model.predict_proba(X).shape == (105, 3)
    with pytest.raises(ValueError, match="not in `self.classes_`.*7"):
        model.partial_fit(X, np.where(y == 0, 7, y))
    with pytest.raises(ValueError, match="not the same as on last call"):
        model.partial_fit(X, y, classes=[0, 1])
    stopping = NetworkClassifier(early_stopping=True)
    assert not hasattr(stopping, "partial_fit")
    with pytest.raises(AttributeError, match="has no attribute 'partial_fit'") as told:
        stopping.partial_fit(X, y, classes=[0, 1, 2])
    assert "does not support early_stopping" in str(told.value.__cause__)
    with pytest.raises(ValueError, match="'balanced' is not supported for partial_fit"):
        NetworkClassifier(class_weight="balanced").partial_fit(X, y, classes=[0, 1, 2])
    with pytest.raises(AttributeError, match="partial_fit"):
        NetworkClassifier(solver="lbfgs").partial_fit(X, y)


def test_warm_start_goes_on(iris: Rows) -> None:
    X, _, y, _ = iris
    model = NetworkClassifier((8,), max_iter=5, warm_start=True, random_state=0).fit(X, y)
    before = model.loss_curve_[-1]
    model.fit(X, y)
    assert (len(model.loss_curve_), model.n_iter_) == (10, 5)
    assert model.loss_curve_[5] < before * 1.05
    cold = clone(model).set_params(warm_start=False).fit(X, y)
    assert len(cold.fit(X, y).loss_curve_) == 5


def test_stops_when_the_loss_no_longer_falls(iris: Rows) -> None:
    X, _, y, _ = iris
    model = NetworkClassifier(
        (8,), tol=0.02, n_iter_no_change=3, learning_rate_init=0.02, random_state=0
    )
    with pytest.warns(ConvergenceWarning, match=r"Maximum iterations \(5\)"):
        model.set_params(max_iter=5).fit(X, y)
    model.set_params(max_iter=1000).fit(X, y)
    curve = np.array(model.loss_curve_)
    assert 5 < model.n_iter_ < 1000
    assert model.best_loss_ == curve.min()
    assert (curve[-4:] > curve[-5:-1] - 0.02).all()
    assert "Training loss did not improve" in model.history_.stopped


@pytest.mark.parametrize("weighted", [False, True])
def test_early_stopping_keeps_the_best_weights(weighted: bool) -> None:
    X, y = make_classification(200, n_informative=5, flip_y=0.2, random_state=0)
    model = NetworkClassifier(
        (30,),
        early_stopping=True,
        validation_fraction=0.3,
        learning_rate_init=0.02,
        max_iter=200,
        n_iter_no_change=8,
        random_state=0,
    )
    model.fit(X, y, np.arange(1.0, 201.0) if weighted else None)
    assert model.n_iter_ == len(model.validation_scores_) < 200
    assert model.best_validation_score_ == max(model.validation_scores_)
    assert model.validation_scores_ == model.history_["val_score"]
    assert min(model.history_["val_loss"]) > 0
    assert model.best_loss_ is None
    # The network ends as it was after its best epoch: of those with the best score, the one with
    # the lowest loss.
    scores, losses = np.array(model.validation_scores_), np.array(model.history_["val_loss"])
    best = int(np.argmin(np.where(scores == scores.max(), losses, np.inf))) + 1
    short = (
        clone(model)
        .set_params(max_iter=best)
        .fit(X, y, np.arange(1.0, 201.0) if weighted else None)
    )
    np.testing.assert_array_equal(weights(model), weights(short))


def test_validation_scores_are_scikit_learns(diabetes: Rows) -> None:
    X, _, y, _ = diabetes
    held_out: list[Any] = []

    class Keep(train.Callback):
        def on_fit_start(self, trainer: Any) -> None:
            held_out.append(trainer.callbacks[0].held_out)

    options: dict[str, Any] = {"max_iter": 3, "early_stopping": True, "random_state": 0}
    weight = np.random.default_rng(0).uniform(0.5, 2, len(X))
    model = NetworkRegressor((5,), callbacks=[Keep()], tol=0, **options).fit(X, y, weight)
    x, t, w = held_out[0]
    best = r2_score(t.numpy().ravel(), model.predict(x.numpy()), sample_weight=w.numpy())
    assert best == pytest.approx(model.best_validation_score_)
    NetworkRegressor(callbacks=[Keep()], validation_fraction=0.1, **options).fit(X[:10], y[:10])
    assert len(held_out[-1][0]) == 2
    with pytest.raises(ValueError, match="validation set is too small: with n_samples=2"):
        NetworkRegressor(early_stopping=True).fit(X[:2], y[:2])


def test_what_is_held_out_leaves_every_class() -> None:
    for labels in (
        [0] * 10 + [1],
        [0, 0, 1, 1, 2, 2],
        [*range(8), 0, 1],
        [0] * 30 + [1] * 30,
    ):
        for seed in range(5):
            train, held = split_off(len(labels), 0.1, seed, labels)
            assert sorted([*train, *held]) == list(range(len(labels)))
            assert len(held) == max(2, math.ceil(len(labels) / 10))
            assert {labels[i] for i in train} == set(labels)
    assert sum(labels[i] for i in held) == 3  # enough of each: in their proportions
    with pytest.raises(ValueError, match="n_samples=3, early_stopping=True cannot hold out two"):
        split_off(3, 0.1, 0, [0, 1, 1])


def test_rates_fall_as_asked(iris: Rows) -> None:
    X, _, y, _ = iris
    options: dict[str, Any] = {"hidden_layer_sizes": (5,), "random_state": 0, "max_iter": 4}
    falling = NetworkClassifier(
        solver="sgd", learning_rate="invscaling", learning_rate_init=0.1, **options
    ).fit(X, y)
    expected = [0.1, *[0.1 / (105 * i + 1) ** 0.5 for i in (1, 2, 3)]]
    np.testing.assert_allclose(falling.history_["lr"], expected)
    stepped = NetworkClassifier(
        learning_rate=partial(optim.lr_scheduler.StepLR, step_size=2, gamma=0.1), **options
    ).fit(X, y)
    np.testing.assert_allclose(stepped.history_["lr"], [1e-3, 1e-3, 1e-4, 1e-4])
    options |= {"max_iter": 400, "tol": 1.0, "n_iter_no_change": 1}
    adaptive = NetworkClassifier(learning_rate="adaptive", **options).fit(X, y)
    assert adaptive.history_["lr"][-1] < 1e-6
    with pytest.raises(ValueError, match="solver='bfgs', which has no learning rate"):
        NetworkClassifier(solver="bfgs", learning_rate="adaptive").fit(X, y)


def test_callbacks(iris: Rows) -> None:
    X, _, y, _ = iris
    norms = train.GradientNorms()
    stop = train.LambdaCallback(on_epoch_end=lambda t: t.stop("enough") if t.epoch == 3 else None)
    model = NetworkClassifier((5,), callbacks=[norms, stop]).fit(X, y)
    assert model.n_iter_ == 3
    assert len(norms.norms["0.weight"]) == 3
    assert model.history_.stopped == "enough"


def test_ctrl_c_keeps_what_was_learned(iris: Rows) -> None:
    X, _, y, _ = iris

    def press(trainer: Any) -> None:
        if trainer.epoch == 2:
            raise KeyboardInterrupt

    model = NetworkClassifier((5,), callbacks=[train.LambdaCallback(on_epoch_end=press)])
    with pytest.warns(UserWarning, match="Training interrupted by user"):
        model.fit(X, y)
    assert model.n_iter_ == 2
    assert model.predict(X).shape == (105,)


def test_verbose_writes_lines(iris: Rows, capsys: pytest.CaptureFixture[str]) -> None:
    X, _, y, _ = iris
    model = NetworkClassifier((5,), max_iter=2, verbose=True, early_stopping=True).fit(X, y)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"Iteration 1, loss = {model.loss_curve_[0]:.8f}"
    assert lines[1] == f"Validation score: {model.validation_scores_[0]:f}"
    assert len(lines) == 4

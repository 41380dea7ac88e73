"""The estimators against scikit-learn: its own checks, its networks, its tools."""

from __future__ import annotations

import pickle
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.datasets import (
    load_diabetes,
    load_digits,
    load_iris,
    load_wine,
    make_classification,
    make_multilabel_classification,
)
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import accuracy_score, r2_score
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import chainrule
from chainrule import models, nn, optim, train
from chainrule.estimators import NetworkClassifier, NetworkRegressor, NetworkTransformer
from chainrule.nn import functional as F

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning", "ignore:.*SCIPY_ARRAY_API.*"
)

Rows = tuple[Any, Any, Any, Any]


def scaled(load: Any) -> Rows:
    """Training and test data with features of mean 0 and variance 1."""
    X, y = load(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.3, random_state=0)
    scaler = StandardScaler().fit(X)
    return scaler.transform(X), scaler.transform(X_test), y, y_test


@pytest.fixture(scope="module")
def iris() -> Rows:
    return scaled(load_iris)


@pytest.fixture(scope="module")
def diabetes() -> Rows:
    X, X_test, y, y_test = scaled(load_diabetes)
    return X, X_test, y / 100, y_test / 100


def weights(model: Any) -> np.ndarray:
    return np.concatenate([p.detach().numpy().ravel() for p in model.module_.parameters()])


# --- scikit-learn's own checks --------------------------------------------------------------------


@parametrize_with_checks([NetworkClassifier(), NetworkRegressor(), NetworkTransformer()])
def test_scikit_learn_checks(estimator: Any, check: Any) -> None:
    check(estimator)


def test_scikit_learn_is_imported_with_the_estimators_alone() -> None:
    code = (
        "import sys, chainrule, chainrule.train\n"
        "assert 'sklearn' not in sys.modules\n"
        "chainrule.estimators.NetworkClassifier\n"
        "assert 'sklearn' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_without_scikit_learn_the_error_says_what_to_install() -> None:
    code = (
        "import sys\nsys.modules['sklearn'] = None\nimport chainrule\n"
        "try:\n    chainrule.estimators\n"
        "except ImportError as e:\n    assert \"pip install 'chainrule[sklearn]'\" in str(e)\n"
        "else:\n    raise SystemExit(1)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


# --- as good as scikit-learn's networks -----------------------------------------------------------


@pytest.mark.parametrize("load", [load_iris, load_wine, load_digits])
def test_classifies_as_well_as_scikit_learn(load: Any) -> None:
    X, X_test, y, y_test = scaled(load)
    options: dict[str, Any] = {
        "hidden_layer_sizes": (50,),
        "learning_rate_init": 0.005,
        "max_iter": 100,
    }
    ours, theirs = [
        np.mean([cls(**options, random_state=s).fit(X, y).score(X_test, y_test) for s in range(2)])
        for cls in (NetworkClassifier, MLPClassifier)
    ]
    assert ours > theirs - 0.02
    assert ours > 0.92


def test_predicts_numbers_as_well_as_scikit_learn(diabetes: Rows) -> None:
    X, X_test, y, y_test = diabetes
    options: dict[str, Any] = {"hidden_layer_sizes": (16,), "max_iter": 300, "alpha": 1.0}
    ours, theirs = [
        cls(**options, early_stopping=True, learning_rate_init=0.01, random_state=1)
        .fit(X, y)
        .score(X_test, y_test)
        for cls in (NetworkRegressor, MLPRegressor)
    ]
    assert ours > theirs - 0.05
    assert ours > 0.25


@pytest.mark.parametrize("solver", ["adam", "sgd"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["binary", "classes", "labels", "number"])
def test_a_step_is_scikit_learns(solver: str, weighted: bool, kind: str) -> None:
    """From the same weights, three epochs in the same order end at the same weights."""
    r = np.random.default_rng(0)
    X, weight = r.normal(size=(30, 4)), r.uniform(0.5, 2, 30)
    y = {
        "binary": r.integers(0, 2, 30),
        "classes": r.integers(0, 3, 30),
        "labels": r.integers(0, 2, (30, 3)),
        "number": r.normal(size=30),
    }[kind]
    options: dict[str, Any] = {
        "hidden_layer_sizes": (5,),
        "solver": solver,
        "alpha": 0.3,
        "learning_rate_init": 0.02,
        "activation": "tanh",
        "shuffle": False,
        "batch_size": 10,
        "warm_start": True,
        "random_state": 0,
    }
    if solver == "adam":
        options["epsilon"] = 1e-15  # their Adam adds it elsewhere
    tolerance = 1e-9
    numbers = kind == "number"
    ours = (NetworkRegressor if numbers else NetworkClassifier)(**options, max_iter=1)
    theirs = (MLPRegressor if numbers else MLPClassifier)(**options, max_iter=1)
    sample_weight = weight if weighted and solver == "sgd" else None
    # The penalty is divided by the weight of a batch: of the mean batch here, of each there.
    if sample_weight is not None:
        options["alpha"] = 0.0
        ours.alpha = theirs.alpha = 0.0
    for model in (ours, theirs):
        model.fit(X, y, sample_weight)
    theirs.coefs_ = [c.copy() for c in ours.coefs_]
    theirs.intercepts_ = [b.copy() for b in ours.intercepts_]
    for model in (ours, theirs):
        model.set_params(max_iter=3).fit(X, y, sample_weight)
    for a, b in zip(
        ours.coefs_ + ours.intercepts_, theirs.coefs_ + theirs.intercepts_, strict=True
    ):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance / 1000)
    np.testing.assert_allclose(ours.loss_curve_[1:], theirs.loss_curve_[1:], rtol=0.02)
    if not numbers:
        np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), rtol=tolerance)


@pytest.mark.parametrize(
    "solver",
    [
        "adamw",
        "rmsprop",
        "Adagrad",
        "rprop",
        "nadam",
        "lbfgs",
        "bfgs",
        "conjugate-gradient",
        optim.Adamax,
        partial(optim.SGD, lr=0.1, momentum=0.5),
    ],
    ids=str,
)
def test_any_optimizer(iris: Rows, solver: Any) -> None:
    X, _, y, _ = iris
    model = NetworkClassifier((8,), solver=solver, max_iter=60, random_state=0)
    assert model.fit(X, y).loss_curve_[-1] < model.loss_curve_[0]
    assert model.n_iter_ == len(model.loss_curve_) <= 60


def test_lbfgs_converges_to_the_logistic_regression(iris: Rows) -> None:
    X, X_test, y, _ = iris
    alpha = 1.0
    model = NetworkClassifier(
        (), solver="lbfgs", alpha=alpha, tol=1e-7, max_iter=500, random_state=0
    ).fit(X, y)
    linear = LogisticRegression(C=1 / alpha, tol=1e-8, max_iter=1000).fit(X, y)
    np.testing.assert_allclose(
        model.predict_proba(X_test), linear.predict_proba(X_test), rtol=0, atol=1e-4
    )
    assert model.n_iter_ < 100


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
    with pytest.raises(ValueError, match="does not support early_stopping"):
        NetworkClassifier(early_stopping=True).partial_fit(X, y, classes=[0, 1, 2])
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
    # The network ends as it was after its best epoch.
    best = int(np.argmax(model.validation_scores_)) + 1
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
    with pytest.raises(ValueError, match="validation set is too small"):
        NetworkRegressor(validation_fraction=0.1, early_stopping=True).fit(X[:10], y[:10])


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


# --- networks of the user's -----------------------------------------------------------------------


class Net(nn.Module):
    def __init__(self, features: int, outputs: int):
        super().__init__()
        self.body = nn.Linear(features, 12)
        self.head = nn.Linear(12, outputs)

    def forward(self, x: Any) -> Any:
        return self.head(self.body(x).tanh())


def test_a_module_instead_of_sizes(iris: Rows) -> None:
    X, X_test, y, y_test = iris
    chainrule.manual_seed(0)
    given = Net(4, 3)
    before = given.body.weight.detach().clone()
    for module in (Net, given):
        model = NetworkClassifier(module=module, max_iter=80, learning_rate_init=0.01)
        model.set_params(random_state=0).fit(X, y)
        assert isinstance(model.module_, Net)
        assert model.score(X_test, y_test) > 0.9
    assert model.module_ is not given
    assert chainrule.equal(given.body.weight.detach(), before)
    assert str(model.module_.body.weight.dtype) == "chainrule.float32"  # as it was given
    with pytest.raises(ValueError, match="expected 3 outputs for this target, got 5"):
        NetworkClassifier(module=Net(4, 5)).fit(X, y)
    with pytest.raises(TypeError, match="must return a chainrule.nn.Module"):
        NetworkClassifier(module=lambda i, o: None).fit(X, y)
    with pytest.raises(ValueError, match=r"output of shape \(n_samples, n_outputs\).*got \(1,\)"):
        NetworkRegressor(module=nn.Sequential(nn.Linear(4, 1), nn.Flatten(0))).fit(X, y)


@pytest.mark.parametrize("outputs", [1, 2])
def test_a_module_for_two_classes_has_one_output_or_two(outputs: int) -> None:
    X, y = make_classification(100, random_state=0)
    chainrule.manual_seed(0)
    model = NetworkClassifier(module=Net(20, outputs), max_iter=30, learning_rate_init=0.01)
    model.fit(X, y)
    proba = model.predict_proba(X)
    assert proba.shape == (100, 2)
    np.testing.assert_allclose(proba.sum(1), 1, rtol=1e-6)
    np.testing.assert_array_equal(model.decision_function(X) > 0, proba[:, 1] > 0.5)
    assert model.score(X, y) > 0.9


def test_layers_as_asked(iris: Rows) -> None:
    X, _, y, _ = iris
    model = NetworkClassifier(
        (8, 6, 4),
        activation=["tanh", nn.PReLU(), F.silu],
        dropout=0.1,
        norm="batch",
        batch_size=26,
        max_iter=2,
    ).fit(X, y)
    kinds = [type(m).__name__ for m in model.module_]
    assert kinds[:4] == ["Linear", "BatchNorm1d", "Tanh", "Dropout"]
    assert kinds[6] == "PReLU"
    assert model.n_layers_ == 5
    assert [c.shape for c in model.coefs_] == [(4, 8), (8, 6), (6, 4), (4, 3)]
    assert not model.module_.training
    np.testing.assert_array_equal(model.predict_proba(X), model.predict_proba(X))
    with pytest.raises(ValueError, match="one entry for each of the 2 hidden layers, got 1"):
        NetworkClassifier((3, 3), activation=["tanh"]).fit(X, y)


def smooth_loss(output: Any, target: Any, reduction: str = "mean") -> Any:
    return F.cross_entropy(output, target, label_smoothing=0.2, reduction=reduction)


def test_any_loss(iris: Rows, diabetes: Rows) -> None:
    X, _, y, _ = iris
    options: dict[str, Any] = {"max_iter": 60, "learning_rate_init": 0.05, "random_state": 0}
    for loss in (smooth_loss, nn.MultiMarginLoss(), "cross_entropy"):
        model = NetworkClassifier((8,), loss=loss, **options)
        assert model.fit(X, y, np.ones(len(y))).score(X, y) > 0.9
    X, _, y, _ = diabetes
    for loss in ("l1", nn.HuberLoss(), lambda o, t: (o - t).abs().mean()):
        model = NetworkRegressor((8,), loss=loss, **options)
        assert model.fit(X, y).score(X, y) > 0.3
    with pytest.raises(ValueError, match="has no argument `reduction`"):
        model.fit(X, y, np.arange(1, len(y) + 1))
    with pytest.raises(ValueError, match="unknown name 'hinge_of_doom'"):
        NetworkRegressor(loss="hinge_of_doom").fit(X, y)


# --- features -------------------------------------------------------------------------------------


def test_an_autoencoder(iris: Rows) -> None:
    X, X_test, _, _ = iris
    model = NetworkTransformer((16,), n_components=2, solver="lbfgs", max_iter=150, random_state=0)
    code = model.fit_transform(X)
    assert code.shape == (105, 2)
    back = model.inverse_transform(model.transform(X_test))
    assert model.score(X_test) == pytest.approx(r2_score(X_test, back))
    assert model.score(X_test) > 0.9
    weight = np.arange(1.0, 46.0)
    expected = r2_score(X_test, back, sample_weight=weight)
    assert model.score(X_test, sample_weight=weight) == pytest.approx(expected)
    with pytest.raises(ValueError, match="3 features, but inverse_transform expects the 2"):
        model.inverse_transform(X[:, :3])


def test_a_linear_autoencoder_finds_the_principal_subspace(iris: Rows) -> None:
    X = iris[0] - iris[0].mean(0)
    model = NetworkTransformer((), n_components=2, alpha=0, solver="lbfgs", tol=1e-7, max_iter=500)
    back = model.set_params(random_state=0).fit(X).inverse_transform(model.transform(X))
    _, _, vt = np.linalg.svd(X, full_matrices=False)
    np.testing.assert_allclose(back, X @ vt[:2].T @ vt[:2], atol=1e-3)


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_features_of_a_predictor(iris: Rows, task: str) -> None:
    X, X_test, y, y_test = iris
    model = NetworkTransformer(
        (16,),
        n_components=3,
        task=task,
        code_activation="tanh",
        max_iter=300,
        alpha=0.1,
        learning_rate_init=0.01,
        random_state=0,
    )
    head = LogisticRegression() if task == "classification" else LinearRegression()
    assert make_pipeline(model, head).fit(X, y).score(X_test, y_test) > 0.7
    assert np.abs(model.transform(X)).max() <= 1
    assert not hasattr(model, "inverse_transform")
    with pytest.raises(ValueError, match="requires y to be passed"):
        clone(model).fit(X)
    with pytest.raises(AttributeError, match="inverse_transform"):
        model.inverse_transform(X)


def test_features_of_a_users_layer(iris: Rows) -> None:
    X, _, y, _ = iris
    options: dict[str, Any] = {"task": "classification", "max_iter": 3, "random_state": 0}
    model = NetworkTransformer(module=Net, layer="body", **options).fit(X, y)
    expected = X @ model.coefs_[0] + model.intercepts_[0]
    np.testing.assert_allclose(model.transform(X), expected)
    assert not model.module_.body.has_hooks
    with pytest.raises(ValueError, match="'tail' is not a layer of the module; it has"):
        NetworkTransformer(module=Net, layer="tail", **options).fit(X, y)
    with pytest.raises(ValueError, match="Net has no method encode"):
        NetworkTransformer(module=Net, **options).fit(X, y)
    with pytest.raises(ValueError, match="names a layer of `module`, which is None"):
        NetworkTransformer(layer="body").fit(X)
    own = NetworkTransformer(module=lambda i, o: models.Autoencoder(i, [8], 2), max_iter=2).fit(X)
    assert own.inverse_transform(own.transform(X)).shape == X.shape


# --- scikit-learn's tools, frames, files ----------------------------------------------------------


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_frames(frame: Any) -> None:
    X, y = load_iris(return_X_y=True)
    names = ["sepal length", "sepal width", "petal length", "petal width"]
    table = frame(dict(zip(names, X.T, strict=True)))
    labels = frame({"species": np.array(["setosa", "versicolor", "virginica"])[y]})["species"]
    model = NetworkClassifier((8,), solver="lbfgs", random_state=0).fit(table, labels)
    assert list(model.feature_names_in_) == names
    assert list(model.classes_) == ["setosa", "versicolor", "virginica"]
    assert model.score(table, labels) > 0.95
    np.testing.assert_array_equal(
        model.predict(table),
        NetworkClassifier((8,), solver="lbfgs", random_state=0).fit(X, np.array(labels)).predict(X),
    )
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(table[names[::-1]])
    code = NetworkTransformer((8,), n_components=2, max_iter=3)
    code.set_output(transform="pandas" if frame is pd.DataFrame else "polars")
    out = code.fit_transform(table)
    assert isinstance(out, frame)
    assert list(out.columns) == ["networktransformer0", "networktransformer1"]
    both = frame({"a": y * 1.0, "b": -1.0 * y})
    numbers = NetworkRegressor((8,), solver="lbfgs", random_state=0).fit(table, both)
    assert numbers.predict(table).shape == (150, 2)


def test_pipelines_searches_and_folds() -> None:
    X, y = load_wine(return_X_y=True)
    pipe = make_pipeline(
        StandardScaler(),
        NetworkClassifier((8,), learning_rate_init=0.02, max_iter=40, random_state=0),
    )
    assert cross_val_score(pipe, X, y, cv=3).mean() > 0.93
    grid = {
        "networkclassifier__hidden_layer_sizes": [(4, 4), (8, 8)],
        "networkclassifier__activation": ["tanh", ["relu", "elu"]],
    }
    search = GridSearchCV(pipe, grid, cv=2, error_score="raise").fit(X, y)
    assert search.best_score_ > 0.9
    weighted = make_pipeline(StandardScaler(), NetworkClassifier((4,), max_iter=2))
    weighted.fit(X, y, networkclassifier__sample_weight=np.ones(len(y)))


@pytest.mark.parametrize("how", ["pickle", "joblib"])
@pytest.mark.parametrize("cls", [NetworkClassifier, NetworkRegressor, NetworkTransformer])
def test_files(iris: Rows, tmp_path: Path, cls: Any, how: str) -> None:
    """A fitted estimator goes on after loading as if it had not been saved."""
    X, _, y, _ = iris
    model = cls((5,), dropout=0.2, max_iter=5, random_state=0).fit(X, y)
    if how == "pickle":
        loaded = pickle.loads(pickle.dumps(model))
    else:
        joblib.dump(model, tmp_path / "model")
        loaded = joblib.load(tmp_path / "model")
    for each in (model, loaded):
        each.partial_fit(X, y)
    np.testing.assert_array_equal(weights(loaded), weights(model))
    assert loaded.loss_curve_ == model.loss_curve_
    np.testing.assert_array_equal(clone(loaded).fit(X, y).loss_curve_, model.loss_curve_[:5])


def test_random_state_decides_everything(iris: Rows) -> None:
    X, _, y, _ = iris
    chainrule.manual_seed(3)
    expected = chainrule.rand(3).tolist()
    chainrule.manual_seed(3)
    state = np.random.get_state()[1].tolist()  # noqa: NPY002
    options: dict[str, Any] = {
        "hidden_layer_sizes": (6,),
        "dropout": 0.3,
        "batch_size": 20,
        "max_iter": 4,
    }
    first, second, other = [
        weights(NetworkClassifier(**options, random_state=s).fit(X, y)) for s in (0, 0, 1)
    ]
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, other)
    assert chainrule.rand(3).tolist() == expected
    assert np.random.get_state()[1].tolist() == state  # noqa: NPY002
    given = np.random.RandomState(0)
    np.testing.assert_array_equal(
        weights(NetworkClassifier(**options, random_state=given).fit(X, y)), first
    )


def test_fits_in_several_threads_do_not_mix_their_random_numbers(iris: Rows) -> None:
    X, _, y, _ = iris
    model = NetworkClassifier((6,), dropout=0.3, batch_size=10, max_iter=15, random_state=0)
    expected = weights(clone(model).fit(X, y))
    models_of = [clone(model) for _ in range(4)]
    threads = [threading.Thread(target=m.fit, args=(X, y)) for m in models_of]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for m in models_of:
        np.testing.assert_array_equal(weights(m), expected)


# --- what cannot be done --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"alpha": -1.0}, r"The 'alpha' parameter of NetworkClassifier must be a float in \[0"),
        ({"max_iter": 0}, r"'max_iter'.*an int in \[1"),
        ({"max_iter": 2.5}, r"'max_iter'.*Got 2.5"),
        ({"batch_size": "all"}, "'batch_size'.*'auto', or an int.*Got 'all'"),
        ({"solver": "adamant"}, "'solver'.*Got 'adamant'.*select from .*'adamw'"),
        ({"solver": 3}, "'solver' parameter"),
        ({"learning_rate": "fast"}, "'learning_rate'.*'constant'"),
        ({"hidden_layer_sizes": (5, 0)}, r"hidden_layer_sizes must be whole numbers > 0"),
        ({"hidden_layer_sizes": "wide"}, "hidden_layer_sizes"),
        ({"activation": "rulu"}, "'rulu' is not the name of an activation"),
        ({"validation_fraction": 1.0}, r"'validation_fraction'.*\(0, 1\)"),
        ({"shuffle": "yes"}, "'shuffle'.*True or False"),
        ({"dropout": 1.0}, r"'dropout'.*\[0, 1\)"),
        ({"norm": "group"}, "'norm'.*None or 'batch' or 'layer'"),
        ({"callbacks": [3]}, "'callbacks'.*list of chainrule.train.Callback"),
        ({"module": "resnet"}, "'module'"),
        ({"loss": 1}, "'loss'"),
        ({"momentum": 0.5}, "solver 'adam' does not have the setting of momentum=0.5"),
        ({"solver": "lbfgs", "beta_1": 0.5}, "does not have the setting of beta_1 and beta_2"),
        ({"class_weight": "equal"}, "class_weight"),
    ],
    ids=lambda v: str(v)[:40],
)
def test_wrong_parameters(iris: Rows, parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        NetworkClassifier(**parameters).fit(iris[0], iris[2])


def test_wrong_data(iris: Rows) -> None:
    X, _, y, _ = iris
    model = NetworkClassifier((4,), max_iter=2)
    with pytest.raises(NotFittedError):
        model.predict(X)
    assert not hasattr(model, "coefs_")
    with pytest.raises(ValueError, match="only one class is present"):
        model.fit(X, y * 0)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.fit(X, y, np.ones(3))
    with pytest.raises(ValueError, match="Negative values in data passed to `sample_weight`"):
        model.fit(X, y, -np.ones(len(y)))
    with pytest.raises(ValueError, match="2 features, but NetworkClassifier is expecting 4"):
        model.fit(X, y).predict(X[:, :2])
    with pytest.warns(UserWarning, match="`batch_size` 500 larger than the sample size 105"):
        model.set_params(batch_size=500).fit(X, y)
    optimizer = optim.SGD(Net(1, 1).parameters(), lr=0.1)
    with pytest.raises(ValueError, match="name or class of an optimizer"):
        NetworkClassifier(solver=optimizer).fit(X, y)


def test_a_diverging_fit_says_what_helps(diabetes: Rows) -> None:
    X, _, y, _ = diabetes
    model = NetworkRegressor((8,), solver="sgd", learning_rate_init=1e6, random_state=0)
    with pytest.raises(train.DivergedError, match="not finite") as caught:
        model.fit(X, y)
    assert "StandardScaler" in caught.value.__notes__[0]

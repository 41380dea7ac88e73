"""Networks of the user's, features, and scikit-learn's tools around them."""

from __future__ import annotations

import pickle
import sys
import threading
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine, make_classification
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from estimators.tables import Net

import chainrule
from chainrule import models, nn
from chainrule.estimators import NetworkClassifier, NetworkRegressor, NetworkTransformer
from chainrule.nn import functional as F


pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning", "ignore:.*SCIPY_ARRAY_API.*"
)


Rows = tuple[Any, Any, Any, Any]


def weights(model: Any) -> np.ndarray:
    return np.concatenate([p.detach().numpy().ravel() for p in model.module_.parameters()])


# --- networks of the user's -----------------------------------------------------------------------


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


def test_features_in_several_threads() -> None:
    x = np.random.default_rng(0).normal(size=(30, 4)).astype(np.float32)
    module = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 4))
    learner = NetworkTransformer(module=module, layer="1", max_iter=2).fit(x)
    parts = [x[:10], x[10:20], x[20:]]
    alone = [learner.transform(part) for part in parts]
    found: dict[int, list[np.ndarray]] = {}

    def transform(i: int) -> None:
        found[i] = [learner.transform(parts[i]) for _ in range(30)]

    threads = [threading.Thread(target=transform, args=(i,)) for i in range(3)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sys.setswitchinterval(interval)
    for i in range(3):
        assert all([np.array_equal(features, alone[i]) for features in found[i]])

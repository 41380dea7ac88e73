"""The estimators against scikit-learn: its own checks, its networks, its errors."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks
from estimators.tables import Net, scaled

from chainrule import optim, train
from chainrule.estimators import NetworkClassifier, NetworkRegressor, NetworkTransformer


pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning", "ignore:.*SCIPY_ARRAY_API.*"
)


Rows = tuple[Any, Any, Any, Any]


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


# Which samples are held out follows from how many rows there are: a sample that stands there twice
# and one of weight 2 are not the same then. With scikit-learn's networks they are not, either.
NOT_WITH_EARLY_STOPPING = {"check_sample_weight_equivalence_on_dense_data"}
# Those that have few samples, or ask for partial_fit, or see when a fit stops.
STOPPED = {
    "check_class_weight_classifiers",
    "check_classifiers_one_label_sample_weights",
    "check_classifiers_train",
    "check_dict_unchanged",
    "check_dont_overwrite_parameters",
    "check_estimators_nan_inf",
    "check_estimators_partial_fit_n_features",
    "check_f_contiguous_array_estimator",
    "check_fit2d_1feature",
    "check_fit2d_1sample",
    "check_fit2d_predict1d",
    "check_fit_score_takes_y",
    "check_methods_sample_order_invariance",
    "check_methods_subset_invariance",
    "check_n_features_in_after_fitting",
    "check_regressors_no_decision_function",
    "check_sample_weight_equivalence_on_dense_data",
}


@pytest.mark.parametrize("kind", [NetworkClassifier, NetworkRegressor])
def test_early_stopping_on_few_samples(kind: Any) -> None:
    failed = set()
    for model, check in estimator_checks_generator(kind(early_stopping=True)):
        name = check.func.__name__
        if name in STOPPED:
            try:
                check(model)
            except Exception:  # noqa: BLE001 (whatever a check raises)
                failed.add(name)
    assert failed == NOT_WITH_EARLY_STOPPING


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

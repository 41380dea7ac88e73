"""Estimators in files: the same answers, the same training afterwards, and no trust."""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
from sklearn.datasets import load_iris, make_multilabel_classification

import chainrule
from chainrule import nn, optim
from chainrule.estimators import NetworkClassifier, NetworkRegressor, NetworkTransformer
from chainrule.train import Callback

pytestmark = pytest.mark.filterwarnings("ignore:Maximum iterations")
X, Y = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])
SHORT = {"hidden_layer_sizes": (6,), "max_iter": 4, "random_state": 0}


def again(estimator: Any) -> Any:
    file = io.BytesIO()
    chainrule.save(estimator, file)
    return chainrule.load(io.BytesIO(file.getvalue()))


PAIRS = np.column_stack([Y, Y // 2])
FRAME = pandas.DataFrame(X, columns=["a", "b", "c", "d"])
FITS: dict[str, Callable[[], Any]] = {
    "words": lambda: NetworkClassifier(**SHORT).fit(FRAME, NAMES[Y]),
    "objects": lambda: NetworkClassifier(**SHORT).fit(X, NAMES[Y].astype(object)),
    "truths": lambda: NetworkClassifier(**SHORT).fit(X, Y > 0),
    "labels": lambda: NetworkClassifier(**SHORT).fit(
        *make_multilabel_classification(40, 4, n_classes=3, random_state=0)
    ),
    "several targets": lambda: NetworkClassifier(**SHORT).fit(X, PAIRS),
    "stopping": lambda: NetworkClassifier(**SHORT, early_stopping=True, norm="batch").fit(X, Y),
    "own module": lambda: NetworkClassifier(
        module=nn.Sequential(nn.Linear(4, 3)), max_iter=3, random_state=1
    ).fit(X.astype("float32"), Y),
    "numbers": lambda: NetworkRegressor(**SHORT, solver="lbfgs").fit(X, Y / 2),
    "counts": lambda: NetworkRegressor(**SHORT, loss="poisson", dropout=0.1).fit(X, PAIRS),
    "codes": lambda: NetworkTransformer(**SHORT, n_components=2).fit(X),
    "features": lambda: NetworkTransformer(**SHORT, task="classification").fit(X, NAMES[Y]),
}


@cache
def fitted(name: str) -> Any:
    return FITS[name]()


@pytest.mark.parametrize("name", FITS)
def test_a_loaded_estimator_is_the_same(name: str) -> None:
    first = fitted(name)
    second = again(first)
    assert type(second) is type(first)
    assert str(second.get_params()) == str(first.get_params())
    data = FRAME if name == "words" else X
    for method in ("predict", "predict_proba", "transform", "decision_function"):
        if hasattr(first, method):
            found = [getattr(model, method)(data) for model in (first, second)]
            for a, b in zip(*found, strict=True):
                np.testing.assert_array_equal(a, b)
    known = [n for n in vars(first) if n.endswith("_") and n not in ("module_", "history_")]
    assert len(known) > 8
    for attribute in known:
        expected, found = getattr(first, attribute), getattr(second, attribute)
        np.testing.assert_equal(found, expected, err_msg=attribute)
        if isinstance(expected, np.ndarray):
            assert found.dtype.kind == expected.dtype.kind
    assert second.history_.rows == first.history_.rows
    assert second.history_.ending == first.history_.ending


@pytest.mark.parametrize("solver", ["adam", "sgd"])
def test_training_goes_on_as_if_nothing_had_happened(solver: str) -> None:
    first = NetworkClassifier(**SHORT, solver=solver, dropout=0.2)
    first.partial_fit(X, NAMES[Y], classes=NAMES).partial_fit(X, NAMES[Y])
    second = again(first)
    for model in (first, second):
        model.partial_fit(X, NAMES[Y]).partial_fit(X[:50], NAMES[Y][:50])
    np.testing.assert_array_equal(first.predict_proba(X), second.predict_proba(X))
    np.testing.assert_array_equal(
        again(again(second)).partial_fit(X, NAMES[Y]).predict_proba(X),
        first.partial_fit(X, NAMES[Y]).predict_proba(X),
    )


def test_an_estimator_before_fit_and_inside_of_other_values(tmp_path: Path) -> None:
    unfitted = NetworkRegressor((3, 4), solver="rmsprop")
    chainrule.save(
        {"models": [unfitted, fitted("numbers")], "note": "x"}, tmp_path / "folder", folder=True
    )
    found = chainrule.load(tmp_path / "folder")
    assert found["models"][0].get_params() == unfitted.get_params()
    assert not hasattr(found["models"][0], "module_")
    np.testing.assert_array_equal(found["models"][1].predict(X), fitted("numbers").predict(X))


class Mine(NetworkClassifier):
    """A kind that a file cannot name."""


@pytest.mark.parametrize(
    ("estimator", "told"),
    [
        (NetworkClassifier(activation=np.tanh), "'activation' is .* give its name instead"),
        (NetworkClassifier(solver=optim.Adam), "'solver' is .* give its name instead"),
        (NetworkClassifier(callbacks=[Callback()]), "'callbacks' is .* leave them out"),
        (NetworkClassifier(module=nn.Linear), "'module' is .* pass a module"),
        (NetworkClassifier(random_state=np.random.RandomState(0)), "pass a whole number"),
    ],
)
def test_what_a_file_cannot_hold(estimator: Any, told: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=told):
        chainrule.save(estimator, tmp_path / "e.safetensors")
    assert list(tmp_path.iterdir()) == []


def test_a_subclass_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="a Mine is a kind of NetworkClassifier"):
        chainrule.save(Mine(), tmp_path / "e.safetensors")


def test_nothing_is_pickled() -> None:
    file = io.BytesIO()
    chainrule.save(fitted("words"), file)
    with pytest.raises(pickle.UnpicklingError):
        pickle.loads(file.getvalue())


def test_a_place_of_the_generator_that_is_not_there() -> None:
    """Which would end the process."""
    parts = fitted("words").file_parts()
    parts["random"] = {**parts["random"], "place": 10**9}
    with pytest.raises(ValueError, match="the saved state of the generator is damaged"):
        NetworkClassifier.from_file_parts(parts)

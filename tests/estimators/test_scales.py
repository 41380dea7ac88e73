"""Features that differ by orders of magnitude are warned of, once, where nothing scales them."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn import datasets
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from chainrule.estimators import NetworkClassifier, NetworkRegressor


def told(model: object, X: np.ndarray, y: np.ndarray) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y)  # type: ignore[attr-defined]
    return [str(w.message) for w in caught if "orders of magnitude" in str(w.message)]


def test_unscaled_features_are_warned_of() -> None:
    r = np.random.default_rng(0)
    X = r.normal(size=(60, 3)) * [1, 1e5, 1e-3]
    (line,) = told(NetworkRegressor((2,), max_iter=1), X, X[:, 0])
    assert "feature 1 varies by" in line
    assert "feature 2 by" in line
    assert "make_pipeline(StandardScaler(), NetworkRegressor(...))" in line
    assert told(NetworkRegressor((2,), max_iter=1), X[:, :1], X[:, 0]) == []
    model = NetworkClassifier((2,), max_iter=1, warm_start=True)
    assert len(told(model, X, X[:, 0] > 0)) == 1
    assert told(model, X, X[:, 0] > 0) == []  # said once


@pytest.mark.parametrize("name", ["iris", "wine", "breast_cancer", "digits", "diabetes"])
def test_silent_behind_a_scaler(name: str) -> None:
    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    kind = NetworkRegressor if name == "diabetes" else NetworkClassifier
    assert told(make_pipeline(StandardScaler(), kind((2,), max_iter=1)), X[:60], y[:60]) == []


def test_constant_features_say_nothing_of_scales() -> None:
    X = np.column_stack([np.full(40, 1e9), np.arange(40.0), np.zeros(40)])
    assert told(NetworkRegressor((2,), max_iter=1), X, X[:, 1]) == []

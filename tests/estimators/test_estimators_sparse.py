"""Sparse samples of SciPy: the results of dense ones, in the memory of a batch."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from chainrule.estimators import base
from chainrule.estimators import NetworkClassifier, NetworkRegressor, NetworkTransformer

pytestmark = pytest.mark.filterwarnings("ignore:Maximum iterations")
X = np.random.default_rng(0).poisson(0.3, (90, 12)).astype("float64")
Y = (X[:, 0] + X[:, 1] > 0).astype(int)
SHORT: dict[str, Any] = {
    "hidden_layer_sizes": (5,),
    "max_iter": 5,
    "batch_size": 20,
    "random_state": 0,
}
ESTIMATORS = {
    "classes": (NetworkClassifier(**SHORT), Y),
    "stopping": (NetworkClassifier(**SHORT, early_stopping=True), Y),
    "numbers": (NetworkRegressor(**SHORT, norm="batch"), X[:, 3] / 2),
    "codes": (NetworkTransformer(**SHORT, n_components=2), None),
    "stopping codes": (NetworkTransformer(**SHORT, n_components=2, early_stopping=True), None),
}


@pytest.mark.parametrize("make", [sparse.csr_matrix, sparse.csc_array, sparse.coo_array])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_sparse_is_as_dense(name: str, make: Any) -> None:
    from sklearn.base import clone

    estimator, y = ESTIMATORS[name]
    dense, other = (clone(estimator).fit(x, y) for x in (X, make(X)))
    assert other.loss_curve_ == dense.loss_curve_
    for method in ("predict", "predict_proba", "transform"):
        if hasattr(dense, method):
            for x in (X, make(X)):
                np.testing.assert_array_equal(getattr(other, method)(x), getattr(dense, method)(X))
    assert other.score(make(X), y) == dense.score(X, y)


def test_weights_and_batches() -> None:
    weight = np.arange(90) % 3
    first, second = NetworkClassifier(**SHORT), NetworkClassifier(**SHORT)
    first.fit(X, Y, weight)
    second.fit(sparse.csr_matrix(X), Y, weight)
    np.testing.assert_array_equal(first.predict_proba(X), second.predict_proba(X))
    for x, model in ((X, first), (sparse.csr_matrix(X), second)):
        model.partial_fit(x, Y).partial_fit(x, Y)
    np.testing.assert_array_equal(first.predict_proba(X), second.predict_proba(X))


def test_memory_is_that_of_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dense, the samples would take 64 MB."""
    monkeypatch.setattr(base, "_ROWS", 200)
    x = sparse.random(4000, 2000, 0.001, format="csr", random_state=0)
    model = NetworkClassifier((2,), max_iter=1, random_state=0)
    tracemalloc.start()
    model.fit(x, np.arange(4000) % 2)
    model.predict(x)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20e6


def test_a_solver_that_needs_all_at_once() -> None:
    with pytest.raises(ValueError, match="sees all samples at once.*sparse X would become dense"):
        NetworkClassifier(solver="lbfgs").fit(sparse.csr_matrix(X), Y)

"""Fixtures of several files here."""

from __future__ import annotations

import pytest
from sklearn.datasets import load_diabetes, load_iris
from estimators.tables import Rows, scaled


@pytest.fixture(scope="module")
def iris() -> Rows:
    return scaled(load_iris)


@pytest.fixture(scope="module")
def diabetes() -> Rows:
    X, X_test, y, y_test = scaled(load_diabetes)
    return X, X_test, y / 100, y_test / 100

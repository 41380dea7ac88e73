"""The tables inside the package, against scikit-learn's copies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn import datasets

import chainrule
from chainrule import data

SHAPES = {
    "iris": (150, 4, 3),
    "wine": (178, 13, 3),
    "breast_cancer": (569, 30, 2),
    "digits": (1797, 64, 10),
    "diabetes": (442, 10, 0),
    "linnerud": (20, 5, 0),
}


def test_all_tables_are_listed() -> None:
    assert set(data.EMBEDDED) == set(SHAPES)
    for name, table in data.EMBEDDED.items():
        assert table.name == name
        assert table.description
        assert table.source


@pytest.mark.parametrize("name", list(SHAPES))
def test_shapes_kinds_and_task(name: str) -> None:
    rows, features, classes = SHAPES[name]
    chosen = data.embedded(name)
    table = chosen.table
    assert (len(table), len(table.names)) == (rows, features + 1)
    assert {c.kind for c in table.without(chosen.target)} == {"number"}
    assert not any(c.missing for c in table)
    assert data.detect_task(table[chosen.target]) == chosen.task
    x, y = chosen.tensors()
    assert x.shape == (rows, features)
    assert x.dtype is chainrule.float32
    if classes:
        assert sorted(set(y.tolist())) == list(range(classes))
        assert y.dtype is chainrule.int64
    else:
        assert y.dtype is chainrule.float32


@pytest.mark.parametrize("name", ["wine", "breast_cancer", "digits"])
def test_values_equal_scikit_learn(name: str) -> None:
    theirs = getattr(datasets, f"load_{name}")()
    x, y = data.embedded(name).tensors()
    np.testing.assert_allclose(x.numpy(), theirs.data, rtol=1e-6)
    target = 1 - theirs.target if name == "breast_cancer" else theirs.target  # benign comes first
    np.testing.assert_array_equal(y.numpy(), target)


def test_iris_is_fishers() -> None:
    """T04: 150 x 4, three classes of 50."""
    theirs: Any = datasets.load_iris()
    x, y = data.embedded("iris").tensors()
    np.testing.assert_array_equal(y.numpy(), theirs.target)
    np.testing.assert_array_equal(np.bincount(y.numpy()), [50, 50, 50])
    np.testing.assert_allclose(x.numpy(), theirs.data, rtol=1e-6)
    species = data.embedded("iris").table["species"].values
    assert [species[0], species[50], species[100]] == ["setosa", "versicolor", "virginica"]


def test_diabetes_and_linnerud_equal_scikit_learn() -> None:
    theirs = datasets.load_diabetes(scaled=False)
    x, y = data.embedded("diabetes").tensors()
    np.testing.assert_allclose(x.numpy(), theirs.data, rtol=1e-5)
    np.testing.assert_allclose(y.numpy(), theirs.target)
    bunch = datasets.load_linnerud()
    table = data.embedded("linnerud").table
    for names, values in (
        (bunch.feature_names, bunch.data),
        (bunch.target_names, bunch.target),
    ):
        for name, column in zip(names, values.T, strict=True):
            assert table[name].values == column.tolist()


def test_digits_are_pictures() -> None:
    digits = data.embedded("digits")
    assert digits.image_shape == (8, 8)
    x, _ = digits.tensors()
    assert x.reshape(-1, *digits.image_shape).shape == (1797, 8, 8)
    assert (x.min().item(), x.max().item()) == (0, 16)


def test_unknown_name() -> None:
    with pytest.raises(ValueError, match="no embedded table 'titanic'; there are .*'iris'"):
        data.embedded("titanic")


def test_encoded_table_equals_scaled_tensors() -> None:
    wine = data.embedded("wine")
    x, y = wine.tensors()
    encoder = data.TableEncoder().fit(wine.table.without(wine.target))
    target = data.TargetEncoder().fit(wine.table[wine.target])
    scaled = data.RobustScaler().fit_transform(x.double())
    scaled = scaled / (1 + (scaled / 3) ** 2).sqrt()
    np.testing.assert_allclose(
        encoder(wine.table, wine.target).numpy(), scaled.numpy(), rtol=1e-4, atol=1e-5
    )
    np.testing.assert_array_equal(target(wine.table[wine.target]).numpy(), y.numpy())

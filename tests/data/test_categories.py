"""One-hot vectors and indices of categories, and back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn import preprocessing

import chainrule
from chainrule import data, nn

NAN = float("nan")


def test_one_hot_equals_scikit_learn() -> None:
    x = np.random.default_rng(0).integers(-2, 4, size=(30, 3)) * 5
    theirs = preprocessing.OneHotEncoder(sparse_output=False).fit(x)
    ours = data.OneHot().fit(chainrule.tensor(x))
    y = ours(chainrule.tensor(x))
    np.testing.assert_array_equal(y.numpy(), theirs.transform(x))
    assert y.dtype is chainrule.float32
    np.testing.assert_array_equal(ours.inverse(y).numpy(), x)


def test_one_hot_of_classes_is_a_unit_vector() -> None:
    """P05: C_k = e_k."""
    one_hot = data.OneHot(4).fit(chainrule.tensor([0, 2]))
    y = one_hot(chainrule.arange(4))
    assert y.tolist() == np.eye(4).tolist()
    assert one_hot.inverse(y).tolist() == [0, 1, 2, 3]
    assert one_hot.inverse(chainrule.tensor([[0.1, 0.2, 0.4, 0.3]])).tolist() == [2]
    column = data.OneHot().fit(chainrule.tensor([[1], [0]]))  # as scikit-learn takes targets
    assert column.inverse(column(chainrule.tensor([[0], [1]]))).tolist() == [[0], [1]]
    truth = data.OneHot().fit_transform(chainrule.tensor([True, False]))
    assert truth.tolist() == [[0, 1], [1, 0]]


def test_one_hot_of_unknown_values() -> None:
    known = chainrule.tensor([[1, 5], [3, 6]])
    with pytest.raises(ValueError, match="row 1 of column 1.*has the value 9, which was not in tr"):
        data.OneHot().fit(known)(chainrule.tensor([[1, 5], [1, 9]]))
    one_hot = data.OneHot(unknown="zeros").fit(known)
    y = one_hot(chainrule.tensor([[1, 9]]))
    assert y.tolist() == [[1, 0, 0, 0]]
    with pytest.raises(ValueError, match="row 0 is all zeros in column 1"):
        one_hot.inverse(y)
    with pytest.raises(ValueError, match="has the value 7"):
        data.OneHot(3).fit(chainrule.tensor([1, 7]))


def test_one_hot_errors() -> None:
    with pytest.raises(TypeError, match="expected integers, got chainrule.float32"):
        data.OneHot().fit(chainrule.ones(3))
    with pytest.raises(ValueError, match="expected shape"):
        data.OneHot().fit(chainrule.tensor([[[1]]]))
    with pytest.raises(ValueError, match="is empty"):
        data.OneHot().fit(chainrule.zeros(0, dtype=chainrule.int64))
    with pytest.raises(ValueError, match="num_classes must be positive"):
        data.OneHot(0)
    with pytest.raises(ValueError, match="unknown must be"):
        data.OneHot(unknown="ignore")
    with pytest.raises(RuntimeError, match="not fitted"):
        data.OneHot()(chainrule.tensor([1]))
    one_hot = data.OneHot().fit(chainrule.tensor([[1, 2], [2, 2]]))
    with pytest.raises(ValueError, match=r"fitted on shape \(N, 2\), got \(1,\)"):
        one_hot(chainrule.tensor([1]))
    with pytest.raises(ValueError, match=r"expected shape \(N, 3\), got \(1, 2\)"):
        one_hot.inverse(chainrule.ones(1, 2))


def test_category_encoder_equals_scikit_learn() -> None:
    rows = [["red", 3], ["blue", 10], ["red", 4], ["a, b", 3]]
    theirs = preprocessing.OrdinalEncoder().fit(np.array(rows, dtype=object))
    ours = data.CategoryEncoder().fit(rows)
    y = ours(rows)
    assert y.dtype is chainrule.int64
    np.testing.assert_array_equal(y.numpy(), theirs.transform(np.array(rows, dtype=object)))
    assert ours.inverse(y) == rows
    assert ours.sizes == [3, 3]


def test_category_encoder_takes_columns_tables_and_tensors() -> None:
    column = data.Column("c", "category", ["b", None, "a"])
    encoder = data.CategoryEncoder().fit(column)
    assert encoder.categories == [[None, "a", "b"]]
    assert encoder(["a", None]).tolist() == [1, 0]
    table = data.Table.from_dict({"x": [1, 2, 2], "c": ["u", "v", "u"]})
    encoder = data.CategoryEncoder().fit(table)
    assert encoder(table).tolist() == [[0, 0], [1, 1], [1, 0]]
    assert encoder.inverse(encoder(table)) == [["1", "u"], ["2", "v"], ["2", "u"]]
    with pytest.raises(ValueError, match="fitted on column 'x', column 'c', got column 'x'"):
        encoder(table.without("c"))
    assert data.CategoryEncoder().fit_transform(chainrule.tensor([7, 3, 7])).tolist() == [1, 0, 1]
    assert data.CategoryEncoder().fit_transform(np.array([7.0, NAN])).tolist() == [1, 0]


def test_category_encoder_of_unknown_values() -> None:
    encoder = data.CategoryEncoder().fit(["a", "b"])
    with pytest.raises(ValueError, match="row 1, counted from 0, of the column has 'c', which was"):
        encoder(["a", "c"])
    encoder = data.CategoryEncoder("index").fit(["a", "b"])
    assert encoder(["c", "a", None]).tolist() == [2, 0, 2]
    assert encoder.inverse(chainrule.tensor([2, 1])) == [None, "b"]
    assert encoder.sizes == [3]
    assert nn.Embedding(encoder.sizes[0], 4)(encoder(["a", "zzz"])).shape == (2, 4)


def test_categories_to_unit_vectors_and_back(tmp_path: Path) -> None:
    pipeline = data.Pipeline(data.CategoryEncoder(), data.OneHot()).fit(["u", "w", "v", "u"])
    chainrule.save(pipeline, tmp_path / "p")
    loaded = chainrule.load(tmp_path / "p")
    assert loaded(["w", "u"]).tolist() == [[0, 0, 1], [1, 0, 0]]
    assert loaded.inverse(loaded(["w", "u"])) == ["w", "u"]
    one = data.CategoryEncoder().fit([["a", 1], [None, 2]])
    chainrule.save(one, tmp_path / "c")
    assert chainrule.load(tmp_path / "c").categories == [[None, "a"], [1, 2]]


def test_category_encoder_errors() -> None:
    with pytest.raises(ValueError, match="unknown must be"):
        data.CategoryEncoder("zeros")
    with pytest.raises(RuntimeError, match="not fitted"):
        data.CategoryEncoder()(["a"])
    with pytest.raises(ValueError, match="is empty"):
        data.CategoryEncoder().fit([])
    with pytest.raises(ValueError, match="mixes text and numbers"):
        data.CategoryEncoder().fit(["a", 1])
    with pytest.raises(TypeError, match="text or whole numbers, got 0.5"):
        data.CategoryEncoder().fit([0.5])
    with pytest.raises(TypeError, match="expected a list of values"):
        data.CategoryEncoder().fit("abc")
    with pytest.raises(ValueError, match="different lengths"):
        data.CategoryEncoder().fit([["a"], ["b", "c"]])
    encoder = data.CategoryEncoder().fit(["a", "b"])
    with pytest.raises(IndexError, match="index 2 of 2"):
        encoder.inverse(chainrule.tensor([2]))
    with pytest.raises(ValueError, match=r"expected \(N,\)"):
        encoder.inverse(chainrule.tensor([[1]]))

"""From tables to tensors: what is learned from the training rows, and every bad table."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import polars
import pytest
from sklearn import preprocessing

import chainrule
from chainrule.data import Column, Table, TableEncoder, TableError, TargetEncoder, detect_task


def mixed_table(n: int = 30, seed: int = 0) -> Table:
    r = np.random.default_rng(seed)
    x = r.normal(size=n) * 5 + 100
    gaps = np.where(r.random(n) < 0.2, np.nan, r.normal(size=n))
    gaps[0] = np.nan
    colors = r.choice(["red", "dark, blue", "green"], size=n).tolist()
    colors[1] = None
    return Table.from_dict({"x": x, "gaps": gaps, "color": colors})


# --- features -------------------------------------------------------------------------------------


def test_features_equal_scikit_learn() -> None:
    train, new = mixed_table(), mixed_table(10, seed=1)
    encoder = TableEncoder().fit(train)
    assert encoder.feature_names == [
        "x",
        "gaps",
        "gaps missing",
        "color=dark, blue",
        "color=green",
        "color=red",
        "color missing",
    ]
    scaler = preprocessing.RobustScaler()
    numbers = [np.array([t["x"].values, t["gaps"].values]).T for t in (train, new)]
    scaler.fit(numbers[0])
    one_hot = preprocessing.OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    one_hot.fit([[c] for c in train["color"].present])
    for table, raw in zip((train, new), numbers, strict=True):
        scaled = np.nan_to_num(scaler.transform(raw))
        scaled = scaled / np.sqrt(1 + (scaled / 3) ** 2)
        colors = one_hot.transform([[c or "?"] for c in table["color"].values])
        no_color = [c is None for c in table["color"].values]
        expected = np.column_stack([scaled, np.isnan(raw[:, 1]), colors, no_color])
        y = encoder(table)
        assert y.dtype is chainrule.float32
        np.testing.assert_allclose(y.numpy(), expected, rtol=1e-5, atol=1e-6)


def test_fitted_on_the_training_rows_only() -> None:
    encoder = TableEncoder().fit(mixed_table())
    before = str(encoder.features)
    encoder(mixed_table(seed=5))
    assert str(encoder.features) == before


def test_gaps_that_training_did_not_have_become_the_median() -> None:
    encoder = TableEncoder().fit(Table.from_dict({"x": [1.0, 3.0]}))
    missing, other = encoder(Table.from_dict({"x": [None, 3.0]})).tolist()
    assert missing == [0.0]
    assert other == pytest.approx([1 / math.sqrt(1 + 1 / 9)])
    assert encoder(Table.from_dict({"x": [None]})).tolist() == [[0.0]]


def test_unknown_category_becomes_zeros() -> None:
    encoder = TableEncoder().fit(Table.from_dict({"c": ["a", "b", "a"]}))
    new = Table.from_dict({"c": ["z", "b", None]})
    assert encoder(new).tolist() == [[0, 0], [0, 1], [0, 0]]


def test_categories_that_look_like_numbers_at_prediction() -> None:
    """A few rows of codes may all, or mostly, be numbers; the model knows them as text."""
    encoder = TableEncoder().fit(Table.from_text("code\nA1\n2\nB3\nA1\n"))
    assert encoder.feature_names == ["code=2", "code=A1", "code=B3"]
    assert encoder(Table.from_text("code\n2\n")).tolist() == [[1, 0, 0]]
    mostly = Table.from_text("code\n2\n2\nB3\n")
    assert mostly["code"].kind == "mixed"
    assert encoder(mostly).tolist() == [[1, 0, 0], [1, 0, 0], [0, 0, 1]]


def test_numbers_as_categories() -> None:
    table = Table.from_dict({"k": [1, 2, 1, 3]}).with_categories(["k"])
    encoder = TableEncoder().fit(table)
    assert encoder.feature_names == ["k=1", "k=2", "k=3"]
    assert encoder(Table.from_dict({"k": [3.0, 1.0]})).tolist() == [[0, 0, 1], [1, 0, 0]]


def test_columns_without_information_are_left_out() -> None:
    n = 120
    table = Table.from_dict(
        {
            "x": [i * i % 7 for i in range(n)],
            "empty": [None] * n,
            "constant": [5] * n,
            "same": ["a"] * n,
            "name": [f"person {i}" for i in range(n)],
        }
    )
    encoder = TableEncoder().fit(table)
    assert encoder.feature_names == ["x"]
    assert encoder.left_out == {
        "empty": "all values are missing",
        "constant": "it has one value only",
        "same": "it has one value only",
        "name": "it tells rows apart: 120 different values in 120 rows",
    }
    assert encoder(table).shape == (n, 1)
    assert encoder(table.without("empty", "name")).shape == (n, 1)
    few = Table.from_dict({"x": [1, 2] * 10, "id": [f"n{i}" for i in range(20)]})
    assert list(TableEncoder().fit(few).left_out) == ["id"]
    several = Table.from_dict({"c": ["a", "b", "c"] * 3})
    assert list(TableEncoder(max_categories=3).fit(several).feature_names) == ["c=a", "c=b", "c=c"]
    assert TableEncoder(max_categories=2).fit(several).feature_names == ["c frequency"]


@pytest.mark.parametrize("value", [0.1, 1e6 + 0.1, 1 / 3])
def test_constant_with_gaps(value: float) -> None:
    """The mean of equal numbers may be rounded; the difference must not be scaled up."""
    values = [value] * 7 + [None] * 3
    y = TableEncoder().fit(Table.from_dict({"x": values}))(Table.from_dict({"x": values}))
    assert y.tolist() == [[0.0, 0.0]] * 7 + [[0.0, 1.0]] * 3


def test_large_offsets_are_scaled_in_double_precision() -> None:
    seconds = [1.7e9 + i for i in range(10)]
    y = TableEncoder().fit(Table.from_dict({"t": seconds}))(Table.from_dict({"t": seconds}))
    scaled = (np.arange(10.0) - 4.5) / 4.5
    np.testing.assert_allclose(y.numpy()[:, 0], scaled / np.sqrt(1 + (scaled / 3) ** 2), rtol=1e-6)


def test_frames_and_dictionaries_encode_alike() -> None:
    columns = {"x": [1.0, None, 3.0], "c": ["a", "b", "a"]}
    tables = [
        Table.from_dict(columns),
        Table.from_frame(pandas.DataFrame(columns)),
        Table.from_frame(polars.DataFrame(columns)),
        Table.from_text("x,c\n1,a\n,b\n3,a\n"),
    ]
    results = [TableEncoder().fit(t)(t).tolist() for t in tables]
    assert results == [results[0]] * 4


# --- bad tables -----------------------------------------------------------------------------------


def test_missing_and_unknown_columns() -> None:
    encoder = TableEncoder().fit(Table.from_dict({"x": [1, 2], "y": [3, 4]}))
    with pytest.raises(TableError, match="columns that the model needs are missing: 'x'"):
        encoder(Table.from_dict({"y": [1]}))
    with pytest.raises(TableError, match="does not know the columns 'z'; it was trained on 'x', "):
        encoder(Table.from_dict({"x": [1], "y": [1], "z": [1]}))
    with_target = Table.from_dict({"x": [1], "y": [1], "label": ["a"]})
    assert encoder(with_target, "label").shape == (1, 2)


def test_order_of_columns_does_not_matter() -> None:
    encoder = TableEncoder().fit(Table.from_dict({"x": [1, 2], "y": [3, 5]}))
    a = encoder(Table.from_dict({"x": [7], "y": [8]}))
    b = encoder(Table.from_dict({"y": [8], "x": [7]}))
    assert a.tolist() == b.tolist()


def test_text_where_numbers_were() -> None:
    encoder = TableEncoder().fit(Table.from_dict({"x": [1, 2]}))
    with pytest.raises(TableError, match="'x' was numbers in training, now row 2 has 'abc'"):
        encoder(Table.from_dict({"x": [None, "abc"]}))
    with pytest.raises(TableError, match="'x' was numbers in training, now row 3 has 'abc'"):
        encoder(Table.from_dict({"x": ["1", "2", "abc"]}))


def test_mixed_types() -> None:
    table = Table.from_text("x,y\n1,1\n2,2\nabc,3\n")
    with pytest.raises(TableError, match="column 'x' mixes numbers and text: row 3 has 'abc'"):
        TableEncoder().fit(table)
    with pytest.raises(TableError, match="mixes numbers and text"):
        TableEncoder().fit(table.take([0, 1]))
    assert TableEncoder().fit(table.without("x")).feature_names == ["y"]
    assert len(TableEncoder().fit(table.with_categories(["x"])).feature_names) == 4


@pytest.mark.parametrize("value", [math.inf, -math.inf])
def test_infinite_values(value: float) -> None:
    with pytest.raises(TableError, match="column 'x' has infinite values"):
        TableEncoder().fit(Table.from_dict({"x": [1.0, value]}))
    encoder = TableEncoder().fit(Table.from_dict({"x": [1.0, 2.0]}))
    with pytest.raises(TableError, match="column 'x' has infinite values"):
        encoder(Table.from_dict({"x": [value]}))


def test_extreme_values_are_clipped_or_too_large_to_scale() -> None:
    table = Table.from_dict({"x": [0.0, 1.0, 2.0, 3.0, 4.0, -1e300]})
    y = TableEncoder().fit(table)(table)[:, 0].tolist()
    assert y[5] == pytest.approx(-3)
    assert y[:5] == sorted(y[:5])
    assert -1.5 < y[0] < y[4] < 1.5
    with pytest.raises(TableError, match=r"column 'x' has values that are too large"):
        TableEncoder().fit(Table.from_dict({"x": [1.7e308, -1.7e308] * 5}))


def test_nothing_to_learn_from() -> None:
    with pytest.raises(TableError, match="no column is left .*a: all values are missing; b: it ha"):
        TableEncoder().fit(Table.from_dict({"a": [None, None], "b": [1, 1]}))
    with pytest.raises(TableError, match="no rows"):
        TableEncoder().fit(Table.from_dict({"a": [1, 2]}).take([]))
    with pytest.raises(ValueError, match="max_categories must be at least 2, got 1"):
        TableEncoder(max_categories=1)


def test_unfitted_and_failed_fit() -> None:
    table = Table.from_dict({"x": [1, 2]})
    with pytest.raises(RuntimeError, match="TableEncoder: not fitted"):
        TableEncoder()(table)
    encoder = TableEncoder()
    bad = Table.from_dict({"x": [1, 2], "y": [1.0, math.inf]})
    with pytest.raises(TableError):
        encoder.fit(bad)
    with pytest.raises(RuntimeError, match="not fitted"):
        encoder(table)


# --- targets --------------------------------------------------------------------------------------


def column(values: Any) -> Column:
    return Table.from_dict({"y": values})["y"]


@pytest.mark.parametrize(
    ("values", "task"),
    [
        (["a", "b"], "classification"),
        ([True, False], "classification"),
        ([0, 1, 2] * 5, "classification"),
        ([0, 1, 2] * 4, "regression"),
        (list(range(21)) * 5, "regression"),
        (list(range(20)) * 5, "classification"),
        ([0.5, 1.5] * 20, "regression"),
    ],
)
def test_task_is_detected(values: Any, task: str) -> None:
    assert detect_task(column(values)) == task
    assert TargetEncoder().fit(column(values)).task == task


def test_classes() -> None:
    encoder = TargetEncoder().fit(column(["b", "a", "c, d", "b"]))
    assert encoder.classes == ["a", "b", "c, d"]
    assert encoder.outputs == 3
    y = encoder(column(["c, d", "a"]))
    assert y.dtype is chainrule.int64
    assert y.tolist() == [2, 0]
    outputs = chainrule.tensor([[0.1, 0.2, 0.7], [5.0, 0.0, 1.0]], requires_grad=True)
    assert encoder.decode(outputs) == ["c, d", "a"]


def test_classes_of_numbers_are_in_their_order() -> None:
    encoder = TargetEncoder("classification").fit(column([10, 9, 2, 10]))
    assert encoder.classes == ["2", "9", "10"]
    assert encoder(column(["9", "10"])).tolist() == [1, 2]  # text or numbers
    text = TargetEncoder().fit(Column("y", "category", ["1", "01", "1.0", "1"]))
    assert text.classes == ["01", "1", "1.0"]  # equal as numbers: by text, always the same


def test_regression_and_back() -> None:
    values = [10.0, 20.0, 40.0]
    encoder = TargetEncoder("regression").fit(column(values))
    y = encoder(column(values))
    assert y.shape == (3, 1)
    np.testing.assert_allclose(y.numpy()[:, 0], preprocessing.scale(values), rtol=1e-6)
    assert encoder.outputs == 1
    assert encoder.decode(y) == pytest.approx(values)
    assert encoder.decode(y.reshape(-1)) == pytest.approx(values)


def test_refit_detects_the_task_anew() -> None:
    encoder = TargetEncoder().fit(column(["a", "b"]))
    assert encoder.fit(column([0.5, 1.5])).task == "regression"


def test_bad_targets() -> None:
    with pytest.raises(TableError, match=r"'y' is constant \('a' in all 3 rows\)"):
        TargetEncoder().fit(column(["a"] * 3))
    with pytest.raises(TableError, match=r"'y' is constant \(2.5 in all 3 rows\)"):
        TargetEncoder("regression").fit(column([2.5] * 3))
    with pytest.raises(TableError, match="'y' is missing in 1 of 3 rows"):
        TargetEncoder().fit(column(["a", None, "b"]))
    with pytest.raises(TableError, match="'y' is missing in 2 of 2 rows"):
        TargetEncoder().fit(column([None, None]))
    with pytest.raises(TableError, match="'y' has infinite values"):
        TargetEncoder().fit(column([1.0, math.inf]))
    with pytest.raises(TableError, match="'y' has no rows"):
        TargetEncoder().fit(Column("y", "number", []))
    with pytest.raises(TableError, match="'y' is text, which cannot be predicted as a number"):
        TargetEncoder("regression").fit(column(["a", "b"]))
    with pytest.raises(ValueError, match="task must be .* got 'clustering'"):
        TargetEncoder("clustering")


def test_mixed_target() -> None:
    mixed = Table.from_text("y\n1\n2\nabc\n4\n")["y"]
    for task in ("auto", "regression"):
        with pytest.raises(TableError, match="column 'y' mixes numbers and text: row 3"):
            TargetEncoder(task).fit(mixed)
    with pytest.raises(TableError, match="mixes numbers and text"):
        detect_task(mixed)
    assert TargetEncoder("classification").fit(mixed).classes == ["1", "2", "4", "abc"]


def test_other_values_than_in_training() -> None:
    classes = TargetEncoder().fit(column(["a", "b"]))
    with pytest.raises(TableError, match="classes that were not in training: 'c', 'd'"):
        classes(column(["a", "d", "c"]))
    numbers = TargetEncoder("regression").fit(column([1.0, 2.0]))
    with pytest.raises(TableError, match="'y' was numbers in training, now text"):
        numbers(column(["a"]))
    with pytest.raises(TableError, match="'y' is missing in 1 of 2 rows"):
        numbers(column([1.0, None]))


@pytest.mark.parametrize("task", ["auto", "classification", "regression"])
def test_unfitted_target_encoder(task: str) -> None:
    encoder = TargetEncoder(task)
    with pytest.raises(RuntimeError, match="TargetEncoder: not fitted"):
        encoder(column([1.0]))
    with pytest.raises(RuntimeError, match="not fitted"):
        encoder.decode(chainrule.ones(1, 1))
    with pytest.raises(RuntimeError, match="not fitted"):
        _ = encoder.outputs


def test_outputs_of_another_shape() -> None:
    classes = TargetEncoder().fit(column(["a", "b", "c"]))
    for wrong in (chainrule.ones(3), chainrule.ones(2, 4)):
        with pytest.raises(ValueError, match=r"expected outputs of shape \(N, 3\), got"):
            classes.decode(wrong)
    numbers = TargetEncoder("regression").fit(column([1.0, 2.0]))
    with pytest.raises(ValueError, match=r"expected outputs of shape \(N, 1\), got \(2, 3\)"):
        numbers.decode(chainrule.ones(2, 3))


# --- files and time -------------------------------------------------------------------------------


@pytest.mark.parametrize("folder", [True, False])
def test_file_round_trip_is_exact(tmp_path: Path, folder: bool) -> None:
    table = mixed_table()
    features = TableEncoder({"color": "category"}, 50, indices=True).fit(table)
    classes = TargetEncoder().fit(column(["a", "b, c"] * 5))
    numbers = TargetEncoder("regression").fit(column([1.0, 2.5, 1 / 3]))
    kept = {"features": features, "classes": classes, "numbers": numbers}
    chainrule.save(kept, tmp_path / "kept", folder=folder)
    loaded = chainrule.load(tmp_path / "kept")
    new = mixed_table(seed=3)
    np.testing.assert_array_equal(loaded["features"](new).numpy(), features(new).numpy())
    assert loaded["features"].feature_names == features.feature_names
    assert loaded["features"].left_out == features.left_out
    assert loaded["classes"].classes == ["a", "b, c"]
    assert loaded["classes"].task == "classification"
    y = column([0.1, 7.0])
    np.testing.assert_array_equal(loaded["numbers"](y).numpy(), numbers(y).numpy())
    assert loaded["numbers"].decode(chainrule.ones(2, 1)) == numbers.decode(chainrule.ones(2, 1))


def test_state_dict_round_trip() -> None:
    encoder, other = TableEncoder().fit(mixed_table()), TableEncoder()
    other.load_state_dict(encoder.state_dict())
    np.testing.assert_array_equal(other(mixed_table()).numpy(), encoder(mixed_table()).numpy())
    assert str(other) == "TableEncoder(3 columns -> 7 features)"
    assert (
        str(TargetEncoder().fit(column(["a", "b"]))) == "TargetEncoder(classification, 2 classes)"
    )


def test_many_categories_and_rows_are_encoded_in_seconds() -> None:
    n = 20_000
    r = np.random.default_rng(0)
    columns: dict[str, Any] = {f"n{i}": r.normal(size=n) for i in range(10)}
    columns |= {f"c{i}": [f"v{k}" for k in r.integers(0, 90, n)] for i in range(5)}
    table = Table.from_dict(columns)
    start = time.process_time()
    y = TableEncoder(max_categories=90).fit(table)(table)
    assert TableEncoder().fit_transform(table, chainrule.tensor(r.normal(size=n))).shape == (n, 20)
    assert time.process_time() - start < 5
    assert y.shape == (n, 10 + 5 * 90)

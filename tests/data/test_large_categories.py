"""Categories of any size: means of the target without the row's own, indices, unseen values."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule
from chainrule.data import Table, TableEncoder
from chainrule.tensor import Tensor


def cities(n: int, values: int, seed: int = 0) -> tuple[Table, Tensor]:
    """Rows whose target is a number of their city, and noise."""
    r = np.random.default_rng(seed)
    city = r.integers(0, values, n)
    effect = np.random.default_rng(99).normal(size=values)
    y = effect[city] + 0.3 * r.normal(size=n)
    table = Table.from_dict({"city": [f"c{i:03}" for i in city], "x": r.normal(size=n)})
    return table, chainrule.tensor(y.reshape(-1, 1))


def r2(x: np.ndarray, y: np.ndarray, x_new: np.ndarray, y_new: np.ndarray) -> float:
    weights = np.linalg.lstsq(np.column_stack([x, np.ones(len(x))]), y, rcond=None)[0]
    predicted = np.column_stack([x_new, np.ones(len(x_new))]) @ weights
    return float(1 - ((predicted - y_new) ** 2).sum() / ((y_new - y_new.mean()) ** 2).sum())


def test_a_linear_model_sees_a_category_of_200_values() -> None:
    (table, y), (new, y_new) = cities(4000, 200), cities(1000, 200, seed=1)
    encoder = TableEncoder()
    x = encoder.fit_transform(table, y).numpy()
    assert encoder.feature_names == ["city frequency", "city mean target", "x"]
    assert encoder.sources == ["city", "city", "x"]
    assert r2(x, y.numpy()[:, 0], encoder(new).numpy(), y_new.numpy()[:, 0]) > 0.9


def test_statistics_do_not_give_the_target_away() -> None:
    """A target that is noise cannot be told from the features of its training rows."""
    r = np.random.default_rng(0)
    n = 2000
    table = Table.from_dict({"c": [f"v{i}" for i in r.integers(0, 500, n)]})
    y = chainrule.tensor(r.normal(size=(n, 1)))
    encoder = TableEncoder()
    x = encoder.fit_transform(table, y)
    inside = np.corrcoef(encoder(table).numpy()[:, 1], y.numpy()[:, 0])[0, 1]
    outside = np.corrcoef(x.numpy()[:, 1], y.numpy()[:, 0])[0, 1]
    assert inside > 0.3  # with the row's own target in it, as for rows that are not of training
    assert abs(outside) < 0.1


def test_statistics_by_hand() -> None:
    """Equal targets within each word: the mean is the word's own."""
    words = [f"w{i}" for i in range(20) for _ in range(30)]
    y = chainrule.tensor([float(i) for i in range(20) for _ in range(30)]).reshape(-1, 1)
    encoder = TableEncoder().fit(Table.from_dict({"c": words}), y)
    new = Table.from_dict({"c": ["w0", "w19", "never seen", None]})
    first, last, unseen, missing = encoder(new)[:, 1].tolist()
    spread = np.std(np.arange(20.0))
    low, high = (-9.5 / spread, 9.5 / spread)
    assert first == pytest.approx(low, rel=0.01)
    assert last == pytest.approx(high, rel=0.01)
    assert unseen == missing == pytest.approx(0, abs=1e-6)


def test_what_is_not_seen_is_near_what_was() -> None:
    """Where each word is frequent, a new one is no stranger to a network than the rarest."""
    words = [f"w{i:02}" for i in range(20) for _ in range(30 + i)]
    encoder = TableEncoder().fit(Table.from_dict({"c": words}), chainrule.rand(len(words), 1))
    new = Table.from_dict({"c": ["w00", "w19", "never seen", None]})
    rarest, most, unseen, missing = encoder(new)[:, 0].tolist()
    assert unseen == missing == rarest < most
    assert unseen > -3


@pytest.mark.parametrize(("classes", "expected"), [(2, 1), (3, 3), (15, 10)])
def test_classes(classes: int, expected: int) -> None:
    r = np.random.default_rng(0)
    city = r.integers(0, 40, 900)
    table = Table.from_dict({"c": [f"v{i}" for i in city]})
    encoder = TableEncoder()
    x = encoder.fit_transform(table, chainrule.tensor(city % classes))
    assert x.shape == (900, 1 + expected)
    assert len(encoder.feature_names) == 1 + expected
    assert bool(chainrule.isfinite(x).all())


def test_indices_come_last_and_begin_with_the_most_frequent() -> None:
    words = ["b"] * 9 + ["a"] * 5 + [f"w{i:02}" for i in range(20)] * 2
    table = Table.from_dict({"c": words, "x": list(np.arange(len(words)) % 7)})
    encoder = TableEncoder(indices=True).fit(table)
    assert encoder.feature_names == ["c frequency", "x", "c index"]
    assert encoder.sources == ["c", "x", "c"]
    assert encoder.index_sizes == [23]
    new = Table.from_dict({"c": ["b", "a", "w00", "w19", "z", None], "x": [1] * 6})
    assert encoder(new)[:, -1].tolist() == [1, 2, 3, 22, 0, 0]
    assert TableEncoder().fit(table).index_sizes == []


def test_the_same_rows_give_the_same_features() -> None:
    table, y = cities(300, 50)
    before = chainrule.get_rng_state()
    a, b = (TableEncoder().fit_transform(table, y) for _ in range(2))
    assert a.tolist() == b.tolist()
    assert chainrule.get_rng_state().tolist() == before.tolist()


def test_a_target_of_another_length() -> None:
    table, y = cities(300, 50)
    with pytest.raises(ValueError, match="the table has 300 rows, the target 299"):
        TableEncoder().fit(table, y[1:])

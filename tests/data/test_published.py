"""Published results: the numbers of the tables, and where a result stands among them."""

from __future__ import annotations

import pytest

from chainrule import data


def test_the_numbers_are_those_of_the_tables() -> None:
    """Course 004, tables D.1 and D.3 to D.5."""
    found = {name: [r.values for r in table.results] for name, table in data.PUBLISHED.items()}
    assert found == {
        "mnist": [(7.60,), (3.60,), (0.87,), (0.56,), (0.52,), (0.35,), (0.21,)],
        "cifar10": [(96.53,), (95.59,), (94.16,), (94.0,), (93.95,)],
        "cifar100": [(75.72,), (75.7,), (73.61,), (72.60,), (72.44,)],
        "imagenet": [(86.4, 98.0), (85.4, 97.6), (85.0, 97.5), (84.4, 97.2), (84.3, 97.1)],
    }
    for table in data.PUBLISHED.values():
        assert all(len(r.values) == len(table.measures) for r in table.results)


def test_a_result_is_placed_among_them() -> None:
    mnist, cifar = data.PUBLISHED["mnist"], data.PUBLISHED["cifar10"]
    assert mnist.better_than(7.7) == []
    assert mnist.better_than(0.1)[-1] == "Convolutional Neural Nets"
    assert cifar.better_than(95.0) == [r.method for r in cifar.results[2:]]
    assert mnist["K-Nearest Neighbors"].values == (0.52,)
    with pytest.raises(KeyError, match="no method 'Guess' among the results on mnist: Linear"):
        mnist["Guess"]


def test_a_table_prints_its_rows() -> None:
    lines = str(data.PUBLISHED["imagenet"]).splitlines()
    assert "top-1 accuracy %" in lines[0]
    assert "EfficientNet" in lines[5]
    assert "84.4" in lines[5]

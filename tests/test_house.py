"""The house stays in order: what ``make house`` prints, held to its targets."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path

import house
import pytest
from house import Source


def everything() -> list[Source]:
    return [*house.sources()]


def operations() -> list[Source]:
    return [s for s in house.sources() if s.name == "ops" or s.name.startswith("ops.")]


def source(text: str, name: str = "ops.planted") -> Source:
    return Source(name, Path("planted.py"), text, ast.parse(text))


def test_one_place_makes_nodes() -> None:
    assert house.nodes_by_hand(everything()) == []
    assert house.nodes_by_hand([source("out._node = Node(op, edges, None, None)")])


def test_the_library_makes_tensors_of_arrays_as_they_are() -> None:
    assert house.users_constructors(everything()) == []  # of_array(array) keeps the type
    assert house.users_constructors([source("x = Tensor(K.zeros(2, 'int64'))")])
    assert house.users_constructors([source("x = map(Tensor, arrays)")])


@pytest.mark.parametrize(("found", "limit"), [(operations, 0.15), (everything, 0.10)])
def test_public_parameters_say_what_they_take(
    found: Callable[[], list[Source]], limit: float
) -> None:
    vague, total = house.any_share(found())
    assert total > 1000
    assert vague / total < limit


def test_what_counts_as_saying_nothing() -> None:
    text = "def f(a, b: Any, c: Any | None, d: list[Any], e: 'Any', *g: int, **h: Any): ..."
    assert house.any_share([source(text)]) == (5, 7)
    hidden = (
        "class _A:\n    def f(self, x): ...\ndef _g(x): ...\nclass B:\n    def _h(self, x): ..."
    )
    assert house.any_share([source(hidden)]) == (0, 0)


def test_files_and_functions_fit_in_one_reading() -> None:
    for limit, lengths in (
        (450, house.file_lengths(everything())),
        (250, house.file_lengths(house.engine(everything()))),
        (80, house.function_lengths(everything())),
    ):
        assert not [(name, length) for length, name in lengths if length > limit]


def test_lengths_are_counted() -> None:
    text = "def f():\n    x = 1\n    return x\n"
    assert house.file_lengths([source(text)]) == [(3, "ops.planted")]
    assert house.function_lengths([source(text)]) == [(3, "ops.planted.f")]


def test_public_functions_and_classes_have_docstrings() -> None:
    assert house.undocumented(everything()) == []
    assert house.undocumented([source("def f(): ...\nclass A: ...\ndef _g(): ...")]) == [
        "ops.planted.f",
        "ops.planted.A",
    ]


def test_the_formatter_formats() -> None:
    assert house.skips() < 40


def test_every_row_has_a_value() -> None:
    assert all(what and value and target for what, value, target in house.rows())

"""Evaluation mode for a while, and which parameters a name means."""

from __future__ import annotations

from typing import Any

import pytest

from chainrule import nn
from chainrule.nn.module.evaluation import evaluating, modes_restored
from chainrule.nn.module.names import Where, listed, matches, select_names


def modes(model: nn.Module) -> list[bool]:
    return [m.training for m in model.modules()]


def test_each_module_is_afterwards_as_it_was() -> None:
    model = nn.Sequential(nn.Dropout(0.5), nn.Sequential(nn.BatchNorm1d(2), nn.Tanh()))
    model[1].eval()
    before = modes(model)
    with evaluating(model):
        assert not any(modes(model))
        model[0].train()
    assert modes(model) == before == [True, True, False, False, False]


def test_modes_are_restored_after_an_error() -> None:
    model = nn.Sequential(nn.Dropout(0.5))
    with pytest.raises(KeyError, match="inside"), evaluating(model):
        raise KeyError("inside")
    assert modes(model) == [True, True]


def test_a_module_that_says_what_training_is_to_it_is_asked() -> None:
    class Frozen(nn.Module):
        asked: list[bool]

        def train(self, mode: bool = True) -> nn.Module:
            self.asked.append(mode)
            return super().train(False)

    model = Frozen()
    model.asked = []
    with evaluating(model):
        assert model.asked == [False]
    assert model.training


def test_a_function_has_no_modes() -> None:
    with evaluating(abs), modes_restored(abs):
        assert abs(-1) == 1


def test_names_that_are_meant() -> None:
    known = [["0.weight", "2.weight"], ["0.bias"], ["head.weight"]]
    asked: list[Where] = [None, "0.*", "2.weight", ["0.bias", "head.*"], lambda n: "a" in n]
    assert [select_names("op", known, where) for where in asked] == [
        [0, 1, 2],
        [0, 1],
        [0],
        [1, 2],
        [1, 2],
    ]


def test_a_leading_star_matches_a_lone_layer() -> None:
    assert matches("weight", "*.weight")
    assert not matches("weight_g", "*.weight")


@pytest.mark.parametrize(
    ("where", "error", "message"),
    [
        ("conv*", ValueError, r"op: 'conv\*' matches no parameter; there are 0.weight, 0.bias$"),
        (["0.*", "x"], ValueError, "op: 'x' matches no parameter"),
        (3, TypeError, "op: where must be a pattern such as '.*, got 3"),
        ([], TypeError, "where must be a pattern"),
        (["0.*", 1], TypeError, "where must be a pattern"),
    ],
)
def test_what_names_nothing_is_refused(where: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        select_names("op", [["0.weight"], ["0.bias"]], where)


def test_long_lists_are_cut() -> None:
    assert listed(["a", "b", "c"], most=2) == "a, b, ... (3 in all)"

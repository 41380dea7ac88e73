"""The sentence that says what a run comes to, and what to try next."""

from __future__ import annotations

from typing import Any

import pytest

from chainrule import nn, train
from chainrule.data import TargetEncoder
from chainrule.train import FittedNetwork, History
from chainrule.train.reporting.verdict import verdict


def network(
    scores: dict[str, float],
    linear: dict[str, float] | None,
    constant: dict[str, float],
    rows: int = 1000,
    **about: Any,
) -> FittedNetwork:
    classes = "accuracy" in scores
    baselines = {"majority class" if classes else "mean": constant}
    facts: dict[str, Any] = {
        "source": "t.csv",
        "task": "classification" if classes else "regression",
        "target": "y",
        "scores": scores,
        "baselines": baselines if linear is None else {**baselines, "linear model": linear},
        "split": {"train": 10, "validation": 10, "test": rows},
        "settings": {"epochs": 50},
        "best_epoch": 3,
        "rows": 10,
        "classes": ["a", "b"] if classes else [],
        "features": ["x"],
        "left_out": {},
        "parameters": 3,
        "stopped": "stopped",
        **about,
    }
    return FittedNetwork(nn.Linear(1, 1), nn.Identity(), TargetEncoder(), facts)


def test_the_network_wins() -> None:
    found = verdict(network({"accuracy": 0.95}, {"accuracy": 0.9}, {"accuracy": 0.5}))
    assert found.level == "better"
    assert found.sentence == (
        "The network is right on 95.0% of 1,000 held-out rows, better than a linear model "
        "(90.0%; always the majority class 50.0%)."
    )
    assert found.advice == []


def test_the_linear_model_wins_and_what_to_try_then() -> None:
    found = verdict(network({"r2": 0.5, "mae": 12.0}, {"r2": 0.8}, {"r2": -0.01}))
    assert found.level == "worse"
    assert found.sentence == (
        "A linear model wins: 0.800 against 0.500 in R2 on 1,000 held-out rows (always the mean "
        "-0.010); "
        "predictions of the network are off by 12 in the mean."
    )
    assert found.advice[0].startswith('Use the linear model: `--hidden ""`')


@pytest.mark.parametrize("own", [0.5, 0.8])
def test_a_linear_network_is_not_told_to_be_one(own: float) -> None:
    settings = {"epochs": 50, "hidden": []}
    found = verdict(network({"r2": own}, {"r2": 0.8}, {"r2": 0.0}, settings=settings))
    assert found.level == ("worse" if own < 0.8 else "even")
    assert not any('--hidden ""' in text for text in found.advice)


def test_a_difference_that_chance_makes_is_none() -> None:
    few = network({"accuracy": 0.95}, {"accuracy": 0.93}, {"accuracy": 0.5}, rows=100)
    assert verdict(few).level == "even"
    assert "about as good as a linear model (93.0%" in verdict(few).sentence
    assert any("rest on 100 rows" in text for text in verdict(few).advice)
    many = network({"accuracy": 0.95}, {"accuracy": 0.93}, {"accuracy": 0.5}, rows=10_000)
    assert verdict(many).level == "better"
    told = {"intervals": {"accuracy": [0.85, 0.99]}}
    wide = network({"accuracy": 0.95}, {"accuracy": 0.93}, {"accuracy": 0.5}, 10_000, **told)
    assert verdict(wide).level == "even"


def test_nothing_was_learned() -> None:
    found = verdict(network({"r2": -0.02, "mae": 3.0}, {"r2": 0.0}, {"r2": -0.01}))
    assert found.level == "nothing"
    assert found.sentence.startswith("Little was learned: R2 -0.020 on 1,000 held-out rows")


def test_a_good_ranking_behind_a_bad_threshold() -> None:
    scores = {"accuracy": 0.9, "roc_auc": 0.85}
    for linear, level in ((0.7, "better"), (0.851, "even"), (0.95, "worse")):
        own = {"accuracy": 0.9, "roc_auc": linear}
        found = verdict(network(scores, own, {"accuracy": 0.9}))
        assert found.level == level
        assert (
            f"ranks rows well (ROC AUC 0.85 on 1,000 held-out rows, a linear model {linear:.2f})"
            in (found.sentence)
        )
        assert "choose another threshold" in found.sentence
        assert len(found.advice) == 1
        assert "`--class-weight balanced`" in found.advice[0]


def test_weighted_classes_are_judged_by_f1() -> None:
    scores = {"accuracy": 0.7, "f1": 0.62, "roc_auc": 0.75}
    constant, linear = {"accuracy": 0.82, "f1": 0.45}, {"accuracy": 0.82, "f1": 0.56}
    settings = {"epochs": 50, "class_weight": "balanced"}
    found = verdict(network(scores, linear, constant, settings=settings))
    assert found.level == "better"
    assert found.sentence == (
        "The network has F1 0.620 on 1,000 held-out rows, better than a linear model "
        "(0.560; always the majority class 0.450)."
    )


def test_a_score_that_is_not_a_number_is_no_success() -> None:
    found = verdict(network({"r2": float("nan"), "mae": 1.0}, {"r2": 0.5}, {"r2": 0.0}))
    assert found.level == "nothing"


@pytest.mark.parametrize("lower", [True, False])
def test_other_tasks_are_judged_by_their_first_score(lower: bool) -> None:
    name = "rmse" if lower else "other"
    found = verdict(
        network({name: 1.0}, {name: 2.0}, {name: 9.0 if lower else 0.1}, task="another")
    )
    assert found.level == ("better" if lower else "worse")


def test_what_the_history_says() -> None:
    rows = [{"epoch": i + 1, "accuracy": 0.99, "val_accuracy": 0.7} for i in range(50)]
    one = network({"accuracy": 0.7}, {"accuracy": 0.5}, {"accuracy": 0.5}, best_epoch=50)
    one.history = History(rows)
    advice = " ".join(verdict(one).advice)
    assert "train longer (`--epochs 100`)" in advice
    assert "accuracy 99.0% against 70.0%" in advice


def test_the_terminal_hears_the_verdict_and_the_warnings_first() -> None:
    one = network({"accuracy": 0.95}, None, {"accuracy": 0.5}, warnings=["y is in x"])
    lines = train.text_report(one).split("\n")
    assert lines[0] == (
        "The network is right on 95.0% of 1,000 held-out rows (always the majority class 50.0%)."
    )
    assert lines[1] == "warning: y is in x"

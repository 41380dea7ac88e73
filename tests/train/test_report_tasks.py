"""The report of every task: what a network says and what is true, in one form."""

from __future__ import annotations

from typing import Any

import pytest

import chainrule
from chainrule import nn, train
from chainrule.data import Table, TableEncoder, TargetEncoder
from chainrule.train.reporting.cases import worst_cases
from chainrule.train.reporting.importance import importances
from chainrule.train.reporting.predictions import predictions
from chainrule.train.reporting.seen import seen_of

ROWS = 60


def columns() -> dict[str, list[Any]]:
    g = chainrule.Generator().manual_seed(0)
    x, z = (chainrule.randn(ROWS, generator=g).tolist() for _ in range(2))
    words = ["a" if v > 0 else "b" for v in z]
    return {"x": x, "word": words, "none": [float(i % 5) for i in range(ROWS)]}


def targets() -> dict[str, tuple[str, dict[str, list[Any]]]]:
    """For each task the targets of the rows."""
    x = columns()["x"]
    count = [float(round(abs(3 * v))) for v in x]
    return {
        "several": ("regression", {"y": [2 * v + 100 for v in x], "other": [-v for v in x]}),
        "count": ("count", {"n": count}),
        "quantile": ("quantile", {"y": [10 * v for v in x]}),
        "ordinal": ("ordinal", {"stars": [min(4.0, max(1.0, float(round(v + 2)))) for v in x]}),
        "multilabel": (
            "multilabel",
            {"hot": [float(v > 0) for v in x], "wet": [float(i % 2) for i in range(ROWS)]},
        ),
    }


@pytest.fixture(params=["several", "count", "quantile", "ordinal", "multilabel"])
def network(request: pytest.FixtureRequest) -> train.FittedNetwork:
    task, named = targets()[request.param]
    goal, features = Table.from_dict(named), Table.from_dict(columns())
    target = TargetEncoder(task).fit(goal if len(named) > 1 else goal[next(iter(named))])
    whole = Table([*features, *goal])
    inputs = TableEncoder()
    y = target(goal)
    encoded = inputs.fit_transform(features, y)
    x = encoded
    chainrule.manual_seed(0)
    model = nn.Linear(x.shape[1], target.outputs)
    about = {
        "source": "t.csv",
        "rows": ROWS,
        "columns": whole.names,
        "features": inputs.feature_names,
        "left_out": {},
        "target": ", ".join(named),
        "task": target.task,
        "classes": list(target.classes),
        "split": {"train": ROWS, "validation": ROWS, "test": ROWS},
        "settings": {"seed": 0, "epochs": 1},
        "scores": {target.metric: 0.5},
        "baselines": {"linear model": {target.metric: 0.4}},
        "stopped": "finished",
        "best_epoch": 1,
        "parameters": 3,
    }
    history = train.History(
        [
            {
                "epoch": 1,
                "loss": 1.0,
                "val_loss": 1.0,
                target.metric: 0.1,
                f"val_{target.metric}": 0.1,
            }
        ]
    )
    held = {"output": model(x).detach(), "target": y, "inputs": x, "rows": whole}
    held["examples"] = (x, whole, y)
    return train.FittedNetwork(model, inputs, target, about, history, {}, held)


def test_every_section_can_be_shown(network: train.FittedNetwork) -> None:
    page = train.html_report(network)
    assert "cannot be shown" not in page
    for name in ("Predictions", "Importance", "Effects", "Worst cases", "Learning"):
        assert f"<h2>{name}</h2>" in page
    assert len(page.encode()) < 200_000
    assert train.text_report(network)


def test_numbers_are_in_their_own_unit(network: train.FittedNetwork) -> None:
    seen = seen_of(network)
    if seen.kind != "numbers":
        return
    for k, name in enumerate(network.target.names):
        true = network.held_out["rows"][name].numbers.tolist()
        assert seen.true[:, k].tolist() == pytest.approx(true, rel=1e-5, abs=1e-5)
    said = list(network.target.columns(network.held_out["output"]).values())
    for k, column in enumerate(said):
        assert seen.said[:, k].tolist() == pytest.approx(column, rel=1e-5, abs=1e-5)
    assert seen.centers.shape == seen.true.shape


def test_probabilities_are_those_of_the_target(network: train.FittedNetwork) -> None:
    seen = seen_of(network)
    if seen.kind == "numbers":
        return
    p = network.target.probabilities(network.held_out["output"].double())
    assert chainrule.allclose(seen.said, p)
    assert seen.names == network.target.classes
    if seen.kind == "classes":
        assert seen.said.sum(1).tolist() == pytest.approx([1.0] * ROWS)


def test_pictures_that_fit_the_task(network: train.FittedNetwork) -> None:
    text = predictions(network)
    expected = {
        "regression": ["<h3>y</h3>", "<h3>other</h3>", "Predicted against true"],
        "count": ["Predicted against true", "How large errors are"],
        "quantile": [
            "should lie below",
            "quantile 0.5",
            "lie between the outer ones, 80.0% should",
        ],
        "ordinal": ["Confusion matrix", "recall"],
        "multilabel": ["All labels of a row are right", "<td>hot</td>"],
    }
    for part in expected[network.task]:
        assert part in text


def test_importances_and_worst_cases(network: train.FittedNetwork) -> None:
    assert list(importances(network)) == ["x", "word", "none"]
    text = worst_cases(network)
    assert text.count('class="case"') == 8
    assert "nearest" in text
    for name in network.target.names:
        assert f"<td>{name}</td>" in text

"""Intervals, effects by what a column is, scores of several targets, and words of the page."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest

import chainrule
from chainrule import data, train
from chainrule.data import Table
from chainrule.inspect.core.svg import bar_chart, curve_chart, scatter_chart
from chainrule.train.reporting import intervals
from chainrule.train.reporting.data import columns
from chainrule.train.reporting.dependence import _in_one_unit, _since, dependence, dependence_of
from chainrule.train.reporting.importance import importances
from chainrule.train.reporting.predictions import calibration, predictions
from chainrule.train.reporting.scores import scores
from chainrule.train.reporting.verdict import measure

QUICK = train.Settings(hidden=(8,), epochs=6, lr=0.02)
ROWS = 200


def table() -> Table:
    """Dates, written numbers, an order, words, and targets of several kinds."""
    g = chainrule.Generator().manual_seed(0)
    x, z = (chainrule.randn(ROWS, generator=g).tolist() for _ in range(2))
    size = ["poor", "fair", "good", "excellent"]
    return Table.from_dict(
        {
            "sold": [f"{2010 + i % 12}-{1 + i % 12:02d}-05" for i in range(ROWS)],
            "paid": [f"${1000 + 9 * i:,}" for i in range(ROWS)],
            "state": [size[(i // 3) % 4] for i in range(ROWS)],
            "x": x,
            "y": [1e6 * (v + 0.3 * w) for v, w in zip(x, z, strict=True)],
            "rate": [1e-4 * (v - w) for v, w in zip(x, z, strict=True)],
            "hot": [float(v > 0) for v in x],
            "wet": [float(w > 0.3) for w in z],
        }
    )


def fitted(target: list[str], *others: str) -> train.FittedNetwork:
    kept = table().without(*others)
    return train.fit_table(kept, target, settings=QUICK, progress=False)


@pytest.fixture(scope="module")
def number() -> train.FittedNetwork:
    return fitted(["y"], "rate", "hot", "wet")


@pytest.fixture(scope="module")
def two() -> train.FittedNetwork:
    return fitted(["y", "rate"], "hot", "wet")


@pytest.fixture(scope="module")
def labels() -> train.FittedNetwork:
    return fitted(["hot", "wet"], "y", "rate")


# --- intervals ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["number", "two"])
def test_intervals_are_those_of_predict_interval(kind: str, request: pytest.FixtureRequest) -> None:
    network: train.FittedNetwork = request.getfixturevalue(kind)
    rows = network.held_out["rows"]
    for level in (0.5, 0.9):
        both = network.predict_interval(rows, level).double().reshape(len(rows), -1, 2)
        half = intervals.half_widths(network, level)
        assert half == pytest.approx(((both[..., 1] - both[..., 0]) / 2)[0].tolist(), rel=1e-3)
    text = intervals.intervals(network)
    true = rows["y"].numbers
    ends = network.predict_interval(rows, 0.9).double().reshape(len(rows), -1, 2)[:, 0]
    share = float(((true >= ends[:, 0]) & (true <= ends[:, 1])).double().mean())
    assert f'<td class="n">{share:.1%}</td>' in text
    assert f"holds {share:.1%} of the {len(rows)} held-out rows" in text
    assert text.count("<tr>") == 1 + 4 * len(network.target.names)
    assert 'stroke-dasharray="1 3"' in predictions(network)


def test_intervals_that_hold_too_little_or_are_not_known(
    number: train.FittedNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = number.about["calibration"]
    monkeypatch.setattr(intervals, "USUAL", 0.5)
    for factor, words in ((0.01, "less than it says"), (100.0, "more than it says")):
        errors = [[factor * e for e in known["errors"][0]]]
        monkeypatch.setitem(number.about, "calibration", {**known, "errors": errors})
        assert words in intervals.intervals(number)
    monkeypatch.setattr(intervals, "USUAL", 0.95)
    monkeypatch.setitem(number.about, "calibration", {"rows": 5, "errors": [[0.1] * 5]})
    text = intervals.intervals(number)
    assert "5 rows are too few for an interval of 95%" in text
    assert "without end" in text
    monkeypatch.setitem(number.about, "calibration", {"rows": 5})
    assert intervals.intervals(number) == ""


def test_what_chance_makes_of_a_share(number: train.FittedNetwork) -> None:
    low, high = intervals._by_chance(number, 300, 0.9)
    rows = number.about["calibration"]["rows"]
    half = 1.96 * math.sqrt(0.09 * (1 / 300 + 1 / rows))
    assert (low, high) == (pytest.approx(0.9 - half, rel=1e-3), min(1.0, 0.9 + half))


# --- effects --------------------------------------------------------------------------------------


def test_effects_follow_what_a_column_is(number: train.FittedNetwork) -> None:
    rows = number.held_out["rows"]
    found = {name: dependence_of(number, rows, name) for name in ("sold", "paid", "state", "x")}
    values = {name: pair[0] for name, pair in found.items() if pair is not None}
    assert values["state"] == ["poor", "fair", "good", "excellent"]
    for name in ("sold", "paid", "x"):
        assert len(values[name]) > 5
        assert values[name] == sorted(values[name])
    assert 1000 <= values["paid"][0] < values["paid"][-1] <= 1000 + 9 * ROWS
    year = 365.25 * 86400
    assert 2010 <= 1970 + values["sold"][0] / year < 1970 + values["sold"][-1] / year < 2022
    text = dependence(number)
    assert "sold (year)" in text
    assert text.index(">poor<") < text.index(">fair<") < text.index(">excellent<")


def test_several_numbers_are_shown_in_their_own_scales(two: train.FittedNetwork) -> None:
    """What moves the small one is as important as what moves the large one, and as far."""
    text = dependence(two)
    assert "prediction (standard deviations)" in text
    x = importances(two)["x"]
    assert 0 < x < 5
    rows = two.held_out["rows"]
    found = dependence_of(two, rows, "x")
    assert found is not None
    scaled = _in_one_unit(two, found[1])
    spans = [float(scaled[:, k].max() - scaled[:, k].min()) for k in range(2)]
    assert 0.1 < spans[0] / spans[1] < 10


def test_moments_of_an_axis() -> None:
    day = 86400.0
    assert _since([0.0, 2000 * day], "t")[1] == "t (year)"
    assert _since([10 * day, 40 * day], "t") == ([0.0, 30.0], "t (days since 1970-01-11)")
    assert _since([10 * day, 10.5 * day], "t") == ([0, 12], "t (hours since 1970-01-11 00:00)")
    assert _since([3600.0, 7200.0], "t") == ([1.0, 2.0], "t (hour)")


# --- scores ---------------------------------------------------------------------------------------


def test_each_of_several_targets_has_a_row_and_the_best_is_bold(two: train.FittedNetwork) -> None:
    text = scores(two)
    assert text.count('class="tile"') == 1
    for name in ("y", "rate"):
        models = {"own": two.about["scores"], **two.about["baselines"]}
        shown = [m[f"rmse {name}"] for m in models.values() if f"rmse {name}" in m]
        best = measure(f"rmse {name}")(min(shown))
        row = next(r for r in text.split("<tr>") if r.startswith(f"<td>{name}</td>"))
        assert f"<b>{best}</b>" in row
    assert measure("rmse rate").lower
    assert "RMSE: root mean square error" in text
    told = train.text_report(two)
    assert f"{two.about['scores']['rmse y']:,.0f}" in told


def test_labels_have_f1_and_calibration(labels: train.FittedNetwork) -> None:
    text = predictions(labels)
    said = labels.held_out["output"] > 0
    true = labels.held_out["target"] > 0.5
    for k, name in enumerate(labels.target.classes):
        hits = int((said[:, k] & true[:, k]).sum())
        f1 = 2 * hits / int(said[:, k].sum() + true[:, k].sum())
        row = next(r for r in text.split("<tr>") if r.startswith(f"<td>{name}</td>"))
        assert row.endswith(f'<td class="n">{f1:.2f}</td></tr>') or f'"n">{f1:.2f}</td></tr>' in row
    shown = calibration(labels)
    mean = float(chainrule.sigmoid(labels.held_out["output"].double()).mean())
    assert f"Mean probability of a label {mean:.1%}" in shown
    assert f"rows that have it {float(true.double().mean()):.1%}" in shown


def test_two_classes_have_two_charts_of_calibration() -> None:
    network = train.fit_table(data.embedded("breast_cancer").table, settings=QUICK, progress=False)
    text = calibration(network)
    assert text.count("<svg") == 2
    assert f"share that is {network.target.classes[1]}" in text


# --- words ----------------------------------------------------------------------------------------


def test_data_says_why_a_column_is_what_it_is(two: train.FittedNetwork) -> None:
    text = columns(two)
    assert "date: all values are dates" in text
    assert "ordinal: its values have an order" in text
    assert "number: all values are numbers, like" in text
    assert text.count("target (number)") == 2
    assert "2010-01-05 to 2021-12-05, 12 different ones" in text
    assert "<td>1000 to 2791, mean 1896</td>" in text


def test_commands_name_serve_and_what_says_how_sure(
    number: train.FittedNetwork, labels: train.FittedNetwork
) -> None:
    page = train.html_report(number, place="m")
    assert "chainrule serve m" in page
    assert "chainrule predict m new.csv --interval 0.9" in page
    assert "network.predict_interval(rows, 0.9)" in page
    assert "chainrule predict m new.csv --probabilities" in train.html_report(labels, place="m")
    assert "hidden=(8,)" in page
    assert "class_weight=None" not in page


def test_several_networks_are_told(
    number: train.FittedNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    used = [{"hidden": [96, 96], "lr": 0.02, "weight": w} for w in (0.75, 0.25)]
    trained = {"hidden": [96, 96], "members": 4, "used": used, "networks": 16}
    monkeypatch.setitem(number.about, "trained", trained)
    page = train.html_report(number)
    assert "16 networks were trained, and 2 of them answer together." in page
    assert "<td>network 1, weight 75%</td><td>hidden 96 x 96, lr 0.02</td>" in page
    assert "<td>hidden</td><td>96 x 96</td>" in page


@pytest.mark.parametrize("what", ["curve", "bars", "points"])
def test_charts_reach_what_they_are_told_to(what: str) -> None:
    if what == "curve":
        text: Any = curve_chart({"": [(2001.0, 1.0), (2009.0, 2.0)]}, "t", "year", whole=True)
        assert ">2004<" in text
        assert 'width="16" height="3"' not in text  # no legend
    elif what == "bars":
        widths = [
            float(
                re.findall(r'width="([\d.]+)" height="16"', bar_chart({"a": 1.0}, "t", "x", s))[0]
            )
            for s in ((), (2.0,))
        ]
        assert widths[0] == pytest.approx(2 * widths[1], rel=0.1)
    else:
        text = scatter_chart([0.0, 1.0], [0.0, 0.5], "t", "x", "y", "zero", band=2.0)
        assert text.count('stroke-dasharray="1 3"') == 2

"""Warnings about data: each is found where it is planted, and none where all is well."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

import chainrule
from chainrule import data, train
from chainrule.data import Table
from chainrule.train.automatic.choice import chosen, usable
from chainrule.train.automatic.parts import prepare
from chainrule.train.automatic.warnings import distance, warnings_of

N = 300


def columns(seed: int = 0) -> dict[str, Any]:
    r = np.random.default_rng(seed)
    x = r.normal(size=(N, 3))
    noisy = x[:, 0] + r.normal(size=N)
    return {"a": x[:, 0], "b": x[:, 1], "c": x[:, 2].round(), "y": noisy}


def warned(
    table: Table, target: Any = "y", task: str = "auto", roles: Any = None, **given: Any
) -> list[str]:
    table, choice, roles = chosen(table, target, task, roles, **given)
    table, choice, _ = usable(table, choice)
    return warnings_of(table, choice, prepare(table, choice, train.Settings(), roles))


@pytest.mark.parametrize("name", ["iris", "wine", "breast_cancer", "digits", "diabetes"])
def test_silent_on_tables_that_are_fine(name: str) -> None:
    for seed in range(1 if name == "digits" else 3):
        table = data.embedded(name).table
        table, choice, roles = chosen(table, data.embedded(name).target, "auto")
        parts = prepare(table, choice, train.Settings(seed=seed), roles)
        assert warnings_of(table, usable(table, choice)[1], parts) == []


def test_twenty_rows_are_few() -> None:
    linnerud = data.embedded("linnerud")
    (line,) = warned(linnerud.table, linnerud.target)
    assert line.startswith("the scores rest on 4 test rows, which is too few")
    assert "`chainrule cv`" in line


def test_silent_on_noise() -> None:
    for seed in range(5):
        assert warned(Table.from_dict(columns(seed))) == []


def large(seed: int, values: int) -> list[str]:
    return [f"shop {v}" for v in np.random.default_rng(seed).integers(0, values, N)]


@pytest.mark.parametrize("values", [30, 60, 200, 2000])
def test_silent_on_large_categories(values: int) -> None:
    """Their statistics differ between training rows and others, though the rows do not."""
    for seed in range(3):
        shops = large(seed, values)
        table = Table.from_dict({**columns(seed), "shop": shops})
        assert warned(table, roles={"shop": "category"}) == []


def test_categories_that_drift() -> None:
    shops = np.array(large(0, 100))
    late = np.arange(N) >= 0.8 * N
    for new in (np.char.add(shops, "b"), "shop 1"):
        given = {**columns(), "when": np.arange(N), "shop": np.where(late, new, shops)}
        (line,) = warned(Table.from_dict(given), time="when")
        assert line.startswith("the test rows differ from the training rows in 'shop' (")


# --- columns that may mean something else ---------------------------------------------------------


def test_numbers_that_stand_for_missing_ones() -> None:
    given = columns()
    given["b"] = np.where(np.arange(N) % 20 == 0, -999, given["b"])
    (line,) = warned(Table.from_dict(given))
    assert line.startswith("column 'b' is -999 in 15 rows and from -")
    assert "stands for a missing value, leave these cells empty" in line
    ages = np.random.default_rng(0).integers(18, 100, N)  # 99 is an age, too
    assert warned(Table.from_dict({**columns(), "age": ages})) == []


@pytest.mark.parametrize(
    ("values", "bad", "what"),
    [
        ([f"2024-{1 + i % 12:02d}-{1 + i % 28:02d}" for i in range(N)], "unknown", "dates"),
        ([f"${1000 + i % 9},000" for i in range(N)], "on request", "numbers"),
    ],
)
def test_dates_and_numbers_but_for_a_few(values: list[str], bad: str, what: str) -> None:
    mixed = [bad if i % 20 == 7 else v for i, v in enumerate(values)]
    (line,) = warned(Table.from_dict({**columns(), "c": mixed}))
    assert line.startswith("column 'c' is taken for category, but 95% of its values are " + what)
    assert f"{bad!r} is none" in line
    assert warned(Table.from_dict({**columns(), "c": mixed}), roles={"c": "category"}) == []


# --- a column that gives the target away ----------------------------------------------------------


@pytest.mark.parametrize(
    "leak",
    [
        lambda y, r: 3 - 2 * y,
        lambda y, r: np.exp(y),
        lambda y, r: y + 0.02 * r.normal(size=len(y)),
    ],
)
def test_a_number_gives_a_number_away(leak: Any) -> None:
    given = columns()
    given["id_of_price"] = leak(given["y"], np.random.default_rng(3))
    (line,) = warned(Table.from_dict(given))
    assert line.startswith("column 'id_of_price' alone predicts 'y' nearly perfectly (R2 ")
    assert "--drop 'id_of_price'" in line


def test_which_of_several_is_given_away() -> None:
    given = columns()
    rare = np.where(given["b"] > 1, 1, 0)
    labels = {"hot": np.where(given["y"] > 0, 1, 0), "rare": rare}
    others = {name: given[name] for name in "abc"}
    (line,) = warned(Table.from_dict({**others, **labels}), ["hot", "rare"])
    assert line.startswith("column 'b' alone predicts the label 'rare' nearly perfectly (R2 ")
    two = {"twice": 2 * given["b"], "y": given["y"]}
    (line,) = warned(Table.from_dict({**others, **two}), ["y", "twice"])
    assert line.startswith("column 'b' alone predicts 'twice' nearly perfectly")


@pytest.mark.parametrize("kind", ["money", "date"])
def test_words_that_are_read_as_numbers_give_a_number_away(kind: str) -> None:
    given = columns()
    if kind == "money":
        given["total"] = [f"${1.19 * y + 10:,.3f}" for y in given["y"]]
    else:
        days = np.datetime64("2024-01-01T00:00") + (1000 * given["y"]).astype("timedelta64[m]")
        given["total"] = days.astype(str).tolist()
    (line,) = warned(Table.from_dict(given))
    assert line.startswith("column 'total' alone predicts 'y' nearly perfectly (R2 ")


def test_a_column_gives_classes_away() -> None:
    given = columns()
    kind = np.where(given["y"] > 0, "yes", "no")
    given |= {"y": kind, "code": np.where(given["y"] > 0, "A7", "B2")}
    (line,) = warned(Table.from_dict(given))
    assert "column 'code' alone predicts 'y' nearly perfectly (100.0%" in line
    score = columns()["y"] + np.where(kind == "yes", 0.01, -0.01)
    (line,) = warned(Table.from_dict({**columns(), "score": score, "y": kind}))
    assert "'score'" in line


def test_a_column_gives_a_label_and_a_count_away() -> None:
    given = columns()
    u, v = (given["y"] > 0).astype(int), (given["b"] + np.random.default_rng(4).normal(size=N) > 0)
    given |= {"u": u, "v": v.astype(int), "paid": 10 * u + 5}
    (line,) = warned(Table.from_dict({k: x for k, x in given.items() if k != "y"}), ["u", "v"])
    assert "'paid'" in line
    hits = np.random.default_rng(5).poisson(20, N)
    (line,) = warned(Table.from_dict({**columns(), "total": 2 * hits, "y": hits}), task="count")
    assert "'total'" in line


# --- rows that are there twice --------------------------------------------------------------------


def test_repeated_rows() -> None:
    once = Table.from_dict(columns())
    twice = once.take([*range(N), *range(60)])
    (line,) = warned(twice)
    assert "test rows stand in the training part, too, value by value" in line
    assert "--group" in line
    few = Table.from_dict({"a": [0, 1] * 150, "b": [0, 0, 1] * 100, "y": ["u", "v", "v"] * 100})
    assert not [text for text in warned(few) if "stand in the training part" in text]


def test_repeated_rows_that_stay_together_are_fine() -> None:
    given = columns()
    table = Table.from_dict({**given, "who": np.arange(N)}).take([*range(N), *range(60)])
    assert len(warned(table)) == 1
    assert warned(table, group="who") == []


# --- drift ----------------------------------------------------------------------------------------


def test_drift() -> None:
    given = columns()
    when = np.arange(N)
    given |= {"price": np.random.default_rng(6).normal(size=N) + when / 60, "when": when}
    table = Table.from_dict({**given, "y": given.pop("y")})
    (line,) = warned(table, time="when")
    assert line.startswith("the test rows differ from the training rows in 'price' (")
    assert "Train on newer rows" in line
    assert warned(table) == []


def test_the_distance_of_distributions_is_scipys() -> None:
    r = np.random.default_rng(7)
    a, b = r.normal(size=50).round(1), r.normal(size=70).round(1) + 0.3
    found = distance(chainrule.tensor(a), chainrule.tensor(b))
    assert found == pytest.approx(stats.ks_2samp(a, b).statistic)


# --- classes --------------------------------------------------------------------------------------


def test_a_rare_class() -> None:
    given = columns()
    given["y"] = np.where(np.arange(N) % 50 == 0, "fraud", "fine")
    (line,) = warned(Table.from_dict(given))
    assert line.startswith("class 'fraud' has 2.1% of the training rows")
    assert "--class-weight balanced" in line
    given["y"] = np.where(np.arange(N) % 5 == 0, "fraud", "fine")
    assert warned(Table.from_dict(given)) == []


def test_a_class_that_only_later_rows_have() -> None:
    given = columns()
    given |= {"when": np.arange(N), "y": np.where(np.arange(N) > 280, "new", "old")}
    given["y"][:100] = "older"
    lines = warned(Table.from_dict(given), time="when")
    assert any("no training row has the class 'new'" in line for line in lines)


def test_warnings_reach_the_report_and_the_terminal() -> None:
    given = columns()
    given["leak"] = -given["y"]
    table = Table.from_dict({**given, "y": given.pop("y")})
    settings = train.Settings(hidden=(4,), epochs=1)
    net = train.fit_table(table, settings=settings, progress=False)
    assert len(net.about["warnings"]) == 1
    assert f"warning: {net.about['warnings'][0]}" in train.text_report(net)
    assert "gives the target away" in train.html_report(net)

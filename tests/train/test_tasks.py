"""Every task from a table to a network and back: fitted, scored, saved, resumed, validated."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest

import chainrule
from chainrule import train
from chainrule.data import Table, TableError
from chainrule.train.automatic.choice import chosen, usable
from chainrule.train.automatic.ensemble import Pool
from chainrule.train.automatic.parts import prepare
from chainrule.train.automatic.splitting import fold_parts, three_parts, two_parts
from chainrule.train.run_folder import RunCheckpoint, RunFolder

SETTINGS = train.Settings(hidden=(16,), lr=0.02, epochs=25, batch_size=32, patience=25)
N = 240


def table(**more: Any) -> tuple[dict[str, Any], np.ndarray]:
    r = np.random.default_rng(0)
    a, b = r.normal(size=N), r.normal(size=N)
    return {"a": a, "b": b, **more}, a + 0.5 * b


def ranks(z: np.ndarray, noise: float) -> np.ndarray:
    return np.digitize(z + noise, [-1.2, -0.4, 0.4, 1.2]) + 1


def example(name: str) -> tuple[Table, dict[str, Any]]:
    """A table, and how it is to be fitted."""
    columns, z = table()
    r = np.random.default_rng(1)
    noise = 0.1 * r.normal(size=N)
    if name == "several":
        columns |= {"y": 3 * z + noise, "w": 100 - 50 * z}
        return Table.from_dict(columns), {"target": ["y", "w"]}
    if name == "lists":
        both = zip(z > 0.2, columns["b"] < 0.5, strict=True)
        columns["y"] = [
            ";".join(n for n, yes in zip("uv", p, strict=True) if yes) or "w" for p in both
        ]
        return Table.from_dict(columns), {}
    if name == "labels":
        columns |= {"u": (z > 0.2).astype(int), "v": (columns["a"] < 0).astype(int)}
        return Table.from_dict(columns), {"target": ["u", "v"]}
    if name == "count":
        columns["y"] = r.poisson(np.exp(1.5 + z))
        return Table.from_dict(columns), {"task": "count"}
    if name == "quantile":
        columns["y"] = 10 * z + np.exp(columns["a"]) * r.normal(size=N)
        return Table.from_dict(columns), {"quantiles": [0.1, 0.5, 0.9]}
    if name == "ordinal":
        columns["y"] = ranks(z, 0.2 * r.normal(size=N).mean())
        return Table.from_dict(columns), {"task": "ordinal"}
    if name == "words":
        columns["y"] = np.array(["none", "low", "mid", "high", "top"])[ranks(z, 0) - 1]
        return Table.from_dict(columns), {"levels": ["none", "low", "mid", "high", "top"]}
    raise AssertionError(name)


TASKS = {
    "several": ("regression", "r2"),
    "lists": ("multilabel", "label_f1"),
    "labels": ("multilabel", "label_f1"),
    "count": ("count", "d2"),
    "quantile": ("quantile", "pinball"),
    "ordinal": ("ordinal", "rank_mae"),
    "words": ("ordinal", "rank_mae"),
}
LOWER = {"pinball", "rank_mae"}


def fitted(name: str, **more: Any) -> train.FittedNetwork:
    rows, given = example(name)
    return train.fit_table(rows, **{"settings": SETTINGS, "progress": False, **given, **more})


@pytest.fixture(scope="module")
def networks() -> Callable[[str], train.FittedNetwork]:
    made: dict[str, train.FittedNetwork] = {}
    return lambda name: made.setdefault(name, fitted(name)) if name not in made else made[name]


@pytest.mark.parametrize("name", list(TASKS))
def test_beats_the_constant(name: str, networks: Any) -> None:
    net = networks(name)
    task, main = TASKS[name]
    assert net.task == task
    constant = next(v for k, v in net.about["baselines"].items() if k != "linear model")
    linear = net.about["baselines"]["linear model"]
    sign = -1 if main in LOWER else 1
    assert sign * net.about["scores"][main] > sign * constant[main] + 0.1
    assert sign * linear[main] > sign * constant[main] + 0.1
    for score, (low, high) in net.about["intervals"].items():
        assert low <= net.about["scores"][score] <= high, score
    assert set(net.about["intervals"]) == set(net.about["scores"])
    assert train.text_report(net)
    assert "<html" in train.html_report(net)


@pytest.mark.parametrize("name", list(TASKS))
def test_predict_evaluate_save_load(name: str, networks: Any, tmp_path: Path) -> None:
    net, (rows, _) = networks(name), example(name)
    net.save(tmp_path / "net")
    loaded = train.FittedNetwork.load(tmp_path / "net")
    predicted = net.predict(rows)
    assert len(predicted) == N
    assert loaded.predict(rows) == predicted
    assert loaded.evaluate(rows) == net.evaluate(rows)
    assert loaded.predict(rows.without(*net.target.names)) == predicted
    if net.target.classes:
        p = loaded.predict_proba(rows)
        assert p.shape == (N, len(net.target.classes))
        assert chainrule.equal(p, net.predict_proba(rows))
    else:
        with pytest.raises(ValueError, match="predicts numbers, not classes"):
            net.predict_proba(rows)
    assert set(net.target.columns(net.outputs(rows))) == set(net.target.columns_named())


class Killed(BaseException):
    """In place of a signal."""


@pytest.mark.parametrize("name", ["several", "lists", "count", "quantile", "ordinal"])
def test_resumed_is_the_same(
    name: str, networks: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = RunCheckpoint.write

    def dying(self: RunCheckpoint, trainer: train.Trainer) -> None:
        write(self, trainer)
        if trainer.epoch == 10:
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(RunCheckpoint, "write", dying)
        with pytest.raises(Killed):
            fitted(name, checkpoints=RunFolder(tmp_path, 0.0))
    whole = networks(name)
    resumed = fitted(name, checkpoints=RunFolder(tmp_path, 0.0, resume=True))
    rows, _ = example(name)
    assert chainrule.equal(resumed.outputs(rows), whole.outputs(rows))
    assert resumed.about["scores"] == whole.about["scores"]


@pytest.mark.parametrize("name", ["several", "labels", "count", "quantile", "ordinal"])
def test_cross_validated(name: str) -> None:
    rows, given = example(name)
    quick = train.Settings(hidden=(4,), epochs=2)
    target, task = given.pop("target", "y"), given.pop("task", "auto")
    result = train.cross_validate_table(rows, target, task, quick, 2, **given)
    assert TASKS[name][1] in result.mean
    assert sum(result.folds["size"]) == N


@pytest.mark.parametrize("name", list(TASKS))
def test_the_network_that_is_chosen_beats_the_constant(name: str) -> None:
    net = fitted(name, settings=train.Settings(epochs=4))
    main = TASKS[name][1]
    constant = next(v for k, v in net.about["baselines"].items() if k != "linear model")
    sign = -1 if main in LOWER else 1
    assert sign * net.about["scores"][main] > sign * constant[main] + 0.1


# --- rows without a target, weights, groups, times ------------------------------------------------


def test_rows_without_a_target_are_left_out_with_a_word() -> None:
    columns, z = table()
    y = z.copy()
    y[[3, 7, 11]] = np.nan
    net = train.fit_table(
        Table.from_dict({**columns, "y": y}), settings=SETTINGS, progress=False, task="regression"
    )
    assert net.about["rows"] == N - 3
    assert net.about["notes"] == ["left out, as the target is missing there: 3 of 240 rows"]
    assert "note: left out" in train.text_report(net)
    found = net.evaluation(Table.from_dict({**columns, "y": y}))
    assert (found.rows, found.left_out) == (N - 3, 3)
    with pytest.raises(TableError, match="'y' is missing in all 5 rows"):
        net.evaluate(Table.from_dict({**columns, "y": [None] * N}).take(range(5)))


def test_a_rating_is_asked_about() -> None:
    columns, z = table()
    rows = Table.from_dict({**columns, "stars": ranks(z, 0)})
    _, choice, notes = usable(*chosen(rows, "stars", "auto")[:2])
    assert choice.task == "classification"
    assert len(notes) == 1
    assert "whole numbers 1 to 5 and is taken as 5 classes without an order" in notes[0]
    assert "`--task ordinal`" in notes[0]
    for task in ("ordinal", "regression", "classification", "count"):
        _, choice, notes = usable(*chosen(rows, "stars", task)[:2])
        assert (choice.task, notes) == (task, [])
    many = Table.from_dict({**columns, "hits": np.arange(N) % 50})
    _, _, notes = usable(*chosen(many, "hits", "auto")[:2])
    assert "`--task count`" in notes[0]


def test_weights_change_what_is_learned_and_scored() -> None:
    """Half of the rows say the opposite; those with the larger weights are believed."""
    columns, z = table()
    sign = np.where(np.arange(N) % 2, 1, -1)
    rows = Table.from_dict({**columns, "w": np.where(sign > 0, 5.0, 0.1), "y": sign * z})
    net = train.fit_table(rows, "y", settings=SETTINGS, progress=False, weights="w")
    assert net.about["left_out"] == {"w": "the weights of the rows"}
    assert net.about["features"] == ["a", "b"]
    assert net.about["scores"]["r2"] > 0.7
    assert net.evaluate(rows, weights="w")["r2"] > 0.7
    assert net.evaluate(rows)["r2"] < 0.3
    assert net.about["baselines"]["linear model"]["r2"] > 0.7
    zero = Table.from_dict({**columns, "w": np.where(sign > 0, 1.0, 0.0), "y": z})
    kept, _, notes = usable(*chosen(zero, "y", "regression", weights="w")[:2])
    assert len(kept) == N / 2
    assert notes == ["left out, as their weight is 0: 120 of 240 rows"]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (["x"] * N, "the weights of the rows, holds text"),
        ([None] + [1.0] * (N - 1), "is missing in 1 rows"),
        ([-1.0] + [1.0] * (N - 1), "weights are finite and not negative"),
        ([0.0] * N, "all weights are 0"),
    ],
)
def test_bad_weights(values: list[Any], message: str) -> None:
    columns, z = table()
    rows = Table.from_dict({**columns, "w": values, "y": z})
    with pytest.raises(TableError, match=message):
        train.fit_table(rows, "y", settings=SETTINGS, progress=False, weights="w")


def split_table() -> Table:
    columns, z = table()
    r = np.random.default_rng(5)
    return Table.from_dict(
        {**columns, "who": r.integers(0, 30, N), "when": r.permutation(N) // 2, "y": z > 0}
    )


@pytest.mark.parametrize("seed", range(3))
def test_groups_stay_on_one_side_of_every_split(seed: int) -> None:
    rows, choice, _ = chosen(split_table(), "y", "classification", group="who")
    settings, who = train.Settings(seed=seed), np.array(rows["who"].values)

    def apart(*parts: Any) -> None:
        sets = [set(who[np.asarray(part)]) for part in parts]
        assert all(a.isdisjoint(b) for i, a in enumerate(sets) for b in sets[:i])

    parts = [p.tolist() for p in three_parts(rows, choice, settings)]
    apart(*parts)
    assert sorted([*parts[0], *parts[1], *parts[2]]) == list(range(N))
    assert 0.1 < len(parts[2]) / N < 0.3
    for learned, scored in fold_parts(rows, choice, settings, 4):
        train_rows, held = two_parts(rows, choice, settings, learned)
        apart(train_rows.tolist(), held.tolist(), scored)


def test_later_rows_are_held_out() -> None:
    rows, choice, _ = chosen(split_table(), "y", "classification", time="when")
    when = np.array(rows["when"].values)
    parts = [when[p.numpy()] for p in three_parts(rows, choice, train.Settings())]
    assert parts[0].max() < parts[1].min()
    assert parts[1].max() < parts[2].min()  # rows of one time are not torn apart, either
    assert [len(p) for p in parts] == [156, 36, 48]
    for learned, scored in fold_parts(rows, choice, train.Settings(), 3):
        train_rows, held = two_parts(rows, choice, train.Settings(), learned)
        assert when[train_rows.numpy()].max() < when[held.numpy()].min()
        assert when[learned].max() <= when[scored].min()


@pytest.mark.parametrize("kind", ["group", "time"])
def test_members_hold_out_whole_groups_and_later_rows(kind: str) -> None:
    column = {"group": "who", "time": "when"}[kind]
    rows, choice, roles = chosen(split_table(), "y", "classification", **{kind: column})
    rows, choice, _ = usable(rows, choice)
    parts = prepare(rows, choice, train.Settings(), roles)
    pool = Pool(parts, train.Settings())
    values = np.array(rows[column].values)[np.concatenate([p.numpy() for p in parts.picked[:2]])]
    for learned, held_out in zip(pool.learned.tolist(), pool.held_out.tolist(), strict=True):
        assert len(set(learned)) == len(learned) > len(pool.y) / 2
        if kind == "group":
            assert set(values[learned]).isdisjoint(values[held_out])
        else:
            assert values[learned].max() < values[held_out].min()


def test_members_believe_weights() -> None:
    columns, z = table()
    sign = np.where(np.arange(N) % 2, 1, -1)
    rows = Table.from_dict({**columns, "w": np.where(sign > 0, 5.0, 0.1), "y": sign * z})
    net = train.fit_table(rows, "y", settings=train.Settings(epochs=3), progress=False, weights="w")
    assert net.about["scores"]["r2"] > 0.7
    assert net.evaluate(rows)["r2"] < 0.3


def test_dates_order_rows() -> None:
    columns, z = table()
    days = [f"20{20 + i // 100}-{1 + i % 12:02d}-{1 + i % 28:02d}" for i in range(N)]
    rows, choice, _ = chosen(
        Table.from_dict({**columns, "day": days, "y": z}), "y", "auto", time="day"
    )
    parts = three_parts(rows, choice, train.Settings())
    assert max(days[i] for i in parts[0].tolist()) < min(days[i] for i in parts[2].tolist())
    wrong = Table.from_dict({**columns, "day": ["soon"] * N, "y": z})
    with pytest.raises(TableError, match="neither numbers nor dates in one form.*'soon'"):
        train.fit_table(wrong, "y", settings=SETTINGS, progress=False, time="day")
    same = Table.from_dict({**columns, "day": [1.0] * N, "y": z})
    with pytest.raises(TableError, match="1 different times in 240 rows are too few"):
        train.fit_table(same, "y", settings=SETTINGS, progress=False, time="day")


@pytest.mark.parametrize(
    ("form", "role"),
    [
        ("%d.%m.%Y", None),
        ("%m/%d/%Y %I:%M %p", None),
        ("%m/%d/%Y", "date mdy"),
        ("%d %b %Y", None),
        ("%G-W%V-%u", None),
        ("%Y%m%d", None),
        ("%Y-%m-%dT%H", None),
        ("", None),
    ],
)
def test_dates_of_any_form_order_rows(form: str, role: str | None) -> None:
    columns, z = table()
    days = pandas.date_range("2023-01-01", periods=N, freq="3D")
    order = np.random.default_rng(3).permutation(N)
    said = days[order].strftime(form) if form else days[order].tz_localize("Asia/Tokyo")
    frame = pandas.DataFrame({**columns, "day": said, "y": z})
    rows, choice, _ = chosen(
        Table.of(frame), "y", "auto", {"day": role} if role else None, time="day"
    )
    first, _, last = three_parts(rows, choice, train.Settings())
    assert order[first.numpy()].max() < order[last.numpy()].min()


def test_choices_that_contradict_each_other() -> None:
    rows = split_table()
    for given, message in (
        ({"group": "who", "time": "when"}, "cannot be split by the groups 'who' and in the order"),
        ({"group": "y"}, "column 'y' is named twice"),
        ({"weights": "nope"}, "there is no column 'nope'"),
        ({"levels": ["a", "b"], "task": "count"}, "levels are for the task 'ordinal'"),
        ({"quantiles": [0.5], "task": "ordinal"}, "quantiles are for the task 'quantile'"),
        ({"quantiles": [0.9, 0.1]}, "quantiles are numbers between 0 and 1"),
        ({"task": "clustering"}, "expected one of auto, classification"),
    ):
        with pytest.raises(ValueError, match=message):
            train.fit_table(rows, "y", **{"settings": SETTINGS, "progress": False, **given})
    few = Table.from_dict({"a": list(range(20)), "g": ["x", "y"] * 10, "y": list(range(20))})
    with pytest.raises(TableError, match="'g' has 2 groups; 3 are needed"):
        train.fit_table(few, "y", settings=SETTINGS, progress=False, group="g")

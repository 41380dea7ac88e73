"""The effort high, its time limit, and how sure networks for tables are."""

from __future__ import annotations

import math
import time
from pathlib import Path

import numpy as np
import pytest

import chainrule
from chainrule import data, models, train
from chainrule.cli import main
from chainrule.train.automatic import search
from chainrule.train.automatic.calibration import HeldOut, soften
from chainrule.train.automatic.ensemble import Recipe
from chainrule.train.automatic.settings import Settings, seconds_of
from chainrule.train.intervals import half_width, kept_errors

SMALL = (Recipe(hidden=(8,), updates=40), Recipe(hidden=(4,), pieces=0, updates=40))


def numbers(n: int, seed: int = 0) -> data.Table:
    chance = np.random.default_rng(seed)
    a, b = chance.normal(size=(2, n))
    y = a * b + a + 0.5 * chance.normal(size=n)
    return data.Table.from_dict({"a": a.tolist(), "b": b.tolist(), "y": y.tolist()})


def classes(n: int, seed: int = 0) -> data.Table:
    chance = np.random.default_rng(seed)
    a, b = chance.normal(size=(2, n))
    y = np.where(a * b + a + chance.logistic(size=n) * 0.5 > 0, "yes", "no")
    return data.Table.from_dict({"a": a.tolist(), "b": b.tolist(), "y": y.tolist()})


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "CANDIDATES", SMALL)


# --- high -----------------------------------------------------------------------------------------


@pytest.mark.usefixtures("two")
def test_high_keeps_what_is_best_together_on_held_out_rows(tmp_path: Path) -> None:
    net = train.fit_table(numbers(300), settings=Settings(effort="high"), progress=False)
    trained = net.about["trained"]
    assert trained["networks"] == 2
    assert sum(used["weight"] for used in trained["used"]) == pytest.approx(1)
    assert isinstance(net.model, models.WeightedNetworks)
    net.save(tmp_path / "net")
    again = train.FittedNetwork.load(tmp_path / "net")
    assert again.predict(numbers(5)) == net.predict(numbers(5))


@pytest.mark.usefixtures("two")
def test_high_is_repeated_bit_for_bit() -> None:
    settings = Settings(effort="high", epochs=2)
    a, b = (train.fit_table(numbers(100), settings=settings, progress=False) for _ in range(2))
    assert a.predict(numbers(20)) == b.predict(numbers(20))


@pytest.mark.usefixtures("two")
def test_high_searches_until_the_time_limit() -> None:
    began = time.monotonic()
    settings = Settings(effort="high", time_limit=1.5)
    net = train.fit_table(numbers(100), settings=settings, progress=False)
    assert time.monotonic() - began < 15
    assert net.about["trained"]["networks"] >= 2
    short = Settings(effort="high", time_limit=1e-6)
    assert train.fit_table(numbers(100), settings=short, progress=False).about["trained"][
        "networks"
    ] == 1  # fmt: skip


@pytest.mark.usefixtures("two")
def test_an_interrupted_search_keeps_what_is_trained(monkeypatch: pytest.MonkeyPatch) -> None:
    train_members, count = search.train_members, []

    def interrupted(*given: object) -> object:
        if count:
            raise KeyboardInterrupt
        count.append(1)
        return train_members(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(search, "train_members", interrupted)
    net = train.fit_table(numbers(100), settings=Settings(effort="high"), progress=False)
    assert net.about["trained"]["networks"] == 1


@pytest.mark.usefixtures("two")
def test_the_command_obeys_or_refuses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["fit", "iris", "--effort", "high", "--time-limit", "1s"]) == 0
    assert "network 1: held-out loss" in capsys.readouterr().err
    for options, message in [
        (["--time-limit", "1m"], "a time limit is for the effort 'high'"),
        (["--effort", "high", "--time-limit", "soon"], "like 90s, 10m or 1h, got 'soon'"),
        (["--effort", "high", "--hidden", "4"], "its layers or its optimizer are given"),
    ]:
        assert main(["fit", "iris", *options]) == 2
        assert message in capsys.readouterr().err


def test_times() -> None:
    assert [seconds_of(t) for t in ("90", "90s", "10m", "1.5h")] == [90, 90, 600, 5400]
    for wrong in ("", "0", "-1", "1d", "m"):
        with pytest.raises(ValueError, match="a time limit is"):
            seconds_of(wrong)


# --- how sure -------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [Settings(), Settings(hidden=(16,), epochs=30)])
def test_intervals_hold_the_truth_as_often_as_they_say(settings: Settings) -> None:
    net = train.fit_table(numbers(700), settings=settings, progress=False)
    rows = numbers(2000, seed=1)
    truth = rows["y"].numbers
    for level in (0.5, 0.9):
        low, high = net.predict_interval(rows, level).mT
        held = float(((low <= truth) & (truth <= high)).float().mean())
        # Four deviations of the rows here, and of the errors (105 at least) that set the width.
        slack = 4 * math.sqrt(level * (1 - level) * (1 / 2000 + 1 / 105))
        assert level - slack < held < min(1.0, level + slack)


def test_half_widths_are_order_statistics() -> None:
    errors = [float(i) for i in range(1, 100)]
    assert half_width(errors, 99, 0.9) == 90  # the 90th of 99
    assert half_width(errors, 99, 0.999) == math.inf
    many = chainrule.arange(5000.0).reshape(-1, 1)
    (kept,) = kept_errors(many, many * 0)
    assert len(kept) == 1000
    assert half_width(kept, 5000, 0.9) >= 0.9 * 5001 - 1
    assert half_width(kept, 5000, 0.9) <= 0.9 * 5001 + 5


def test_intervals_are_refused_where_there_are_none() -> None:
    net = train.fit_table(classes(60), settings=Settings(epochs=1), progress=False)
    with pytest.raises(ValueError, match="for classification, not for numbers"):
        net.predict_interval(classes(5))
    net = train.fit_table(numbers(60), settings=Settings(epochs=1), progress=False)
    with pytest.raises(ValueError, match="level must be between 0 and 1, got 1"):
        net.predict_interval(numbers(5), 1)
    del net.about["calibration"]
    with pytest.raises(ValueError, match="without the errors"):
        net.predict_interval(numbers(5))


@pytest.mark.parametrize(
    "wrong",
    [
        {"rows": -1},
        {"rows": 3, "errors": [[0.1], [0.2]]},
        {"rows": 3, "errors": [[]]},
        {"rows": 3, "errors": [["a"]]},
        {"rows": 3, "errors": [[math.inf]]},
        {"rows": 3, "errors": 5},
    ],
)
def test_damaged_errors_are_refused(tmp_path: Path, wrong: object) -> None:
    net = train.fit_table(numbers(60), settings=Settings(epochs=1), progress=False)
    net.about["calibration"] = wrong
    net.save(tmp_path / "net")
    with pytest.raises(ValueError, match="calibration"):
        train.FittedNetwork.load(tmp_path / "net")


@pytest.mark.parametrize("settings", [Settings(), Settings(hidden=(64,), lr=0.02)])
def test_probabilities_are_calibrated(settings: Settings) -> None:
    net = train.fit_table(classes(800), settings=settings, progress=False)
    rows = classes(4000, seed=1)
    p = net.predict_proba(rows)[:, 1].numpy()
    truth = np.array([v == "yes" for v in rows["y"].values])
    for low in np.arange(0, 1, 0.25):
        inside = (p >= low) & (p < low + 0.25)
        deviation = math.sqrt(0.25 * (1 / max(1, inside.sum()) + 1 / 120))
        assert abs(p[inside].mean() - truth[inside].mean()) < 3 * deviation


@pytest.mark.parametrize(("factor", "wanted"), [(4.0, 4.0), (0.5, 0.5), (1.0, 1.0)])
def test_a_temperature_is_taken_where_it_helps(factor: float, wanted: float) -> None:
    chance = chainrule.Generator().manual_seed(0)
    x = chainrule.randn(4000, 1, generator=chance)
    y = (chainrule.rand(4000, generator=chance) < chainrule.sigmoid(2 * x[:, 0])).long()
    model = models.MLP(1, [], 2)
    with chainrule.no_grad():
        model[0].weight.copy_(chainrule.tensor([[0.0], [2 * factor]]))  # the truth, if not for it
        model[0].bias.zero_()
        found = soften(model, HeldOut(model(x), y, None), "cross_entropy")
    assert found == pytest.approx(wanted, rel=0.1)
    assert float(model[0].weight[1]) == pytest.approx(2 * factor / found)

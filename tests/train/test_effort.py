"""The effort high, its time limit, and how sure networks for tables are."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import chainrule
from chainrule import data, models, train
from chainrule.cli import main
from chainrule.train.automatic import search, together
from chainrule.train.automatic.calibration import HeldOut, soften
from chainrule.train.automatic.choice import chosen
from chainrule.train.automatic.ensemble import Pool, Recipe
from chainrule.train.automatic.parts import prepare
from chainrule.train.automatic.settings import Settings, seconds_of
from chainrule.train.intervals import half_width, kept_errors

SMALL = (Recipe(hidden=(8,), updates=40), Recipe(hidden=(4,), pieces=0, lr=0.01, updates=40))


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
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search over one small shape, with three rates, after a small first network."""
    monkeypatch.setitem(search.RECIPES, "high", SMALL[0])
    monkeypatch.setattr(search, "SHAPES", SMALL[1:])


def fitted(n: int = 100, **settings: Any) -> train.FittedNetwork:
    return train.fit_table(numbers(n), settings=Settings(effort="high", **settings), progress=False)


# --- high -----------------------------------------------------------------------------------------


@pytest.mark.usefixtures("few")
def test_high_keeps_what_is_best_together_on_held_out_rows(tmp_path: Path) -> None:
    net = fitted(300)
    trained = net.about["trained"]
    assert trained["networks"] == 4
    assert sum(used["weight"] for used in trained["used"]) == pytest.approx(1)
    assert isinstance(net.model, models.WeightedNetworks)
    net.save(tmp_path / "net")
    again = train.FittedNetwork.load(tmp_path / "net")
    assert again.predict(numbers(5)) == net.predict(numbers(5))


def test_high_begins_with_the_network_of_normal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "SHAPES", ())
    high, normal = (
        train.fit_table(classes(80), settings=Settings(effort=effort), progress=False)
        for effort in ("high", "normal")
    )
    assert high.about["trained"]["networks"] == 1
    rows = classes(50, seed=1)
    assert high.predict_proba(rows).tolist() == normal.predict_proba(rows).tolist()


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("most", [2**26, 0])
def test_high_is_repeated_bit_for_bit(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(together, "MOST", most)  # with 0 the networks are trained one by one
    a, b = (fitted(epochs=2, weight_decay=0.1) for _ in range(2))
    assert a.about["trained"]["networks"] == 4
    assert a.predict(numbers(20)) == b.predict(numbers(20))


@pytest.mark.usefixtures("few")
def test_networks_trained_at_once_are_as_good_as_one_by_one() -> None:
    settings = Settings(effort="high")
    table, choice, others = chosen(numbers(400), "y", "regression")
    pool = Pool(prepare(table, choice, settings, others), settings)
    given: Any = (pool, settings, SMALL[0], [0.005, 0.01, 0.02], [1, 2, 3], math.inf, False)
    at_once, after_another = (f(*given)[0] for f in (together.train_together, together._one_by_one))
    for a, b in zip(at_once, after_another, strict=True):
        assert a is not None
        assert b is not None
        assert a.recipe == b.recipe
        assert a.loss == pytest.approx(b.loss, rel=0.25)
        assert a.loss == pytest.approx(a.seen.loss(pool.careful_loss))
        (error,) = ((a.model(pool.x) - pool.y) ** 2).mean(0).tolist()
        assert error < 1.2 * a.loss  # members that learned from a row know it better


@pytest.mark.usefixtures("few")
def test_a_rate_that_is_given_is_the_only_one() -> None:
    trained = fitted(lr=0.015).about["trained"]
    assert trained["networks"] == 2
    assert {used["lr"] for used in trained["used"]} <= {0.015, SMALL[0].lr}


@pytest.mark.usefixtures("few")
def test_networks_that_diverge_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "FACTORS", (1.0, 1e38))
    assert fitted().about["trained"]["networks"] == 2


@pytest.mark.usefixtures("few")
def test_high_searches_until_the_time_limit() -> None:
    began = time.monotonic()
    net = fitted(time_limit=1.5)
    assert time.monotonic() - began < 15
    assert net.about["trained"]["networks"] >= 4
    assert fitted(time_limit=1e-6).about["trained"]["networks"] == 1


# In the first epoch, one of three networks came to its end before the interruption.
@pytest.mark.usefixtures("few")
@pytest.mark.parametrize(("when", "networks"), [(3, 4), (1, 2)])
def test_an_interrupted_search_keeps_what_is_trained(
    monkeypatch: pytest.MonkeyPatch, when: int, networks: int
) -> None:
    note = together._Stopping.on_epoch_end

    def interrupted(self: Any, network: Any) -> None:
        note(self, network)
        if len(network.history) == when:
            raise KeyboardInterrupt

    monkeypatch.setattr(together._Stopping, "on_epoch_end", interrupted)
    net = fitted()
    assert net.about["trained"]["networks"] == networks
    assert net.history.ending == "interrupted"
    assert net.about["stopped"] == "interrupted by the user"


@pytest.mark.usefixtures("few")
def test_the_command_obeys_or_refuses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["fit", "iris", "--effort", "high", "--time-limit", "2s"]) == 0
    told = capsys.readouterr().err
    assert "1 network: held-out loss" in told
    assert "4 networks, the last with layers of 4: held-out loss" in told
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

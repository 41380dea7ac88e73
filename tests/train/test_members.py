"""The network that is chosen for a table: its members, their rows, and the linear models."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import chainrule
from chainrule import data, nn, optim, train
from chainrule.cli import main
from chainrule.random import Generator
from chainrule.train.automatic import ensemble, linear, members
from chainrule.train.automatic.linear import linear_members
from chainrule.train.automatic.members import MemberBatches, Rows, rows_of_members
from chainrule.train.automatic.settings import Settings
from tests.faults.test_fit import end_of, kill_after


def table(n: int = 120) -> data.Table:
    chance = np.random.default_rng(0)
    a, b = chance.normal(size=(2, n))
    return data.Table.from_dict(
        {"a": a.tolist(), "b": b.tolist(), "y": (a * b + a + 0.1 * chance.normal(size=n)).tolist()}
    )


@pytest.mark.parametrize(("members", "fraction"), [(4, 0.2), (2, 0.45), (4, 0.5)])
def test_members_hold_out_their_own_rows(members: int, fraction: float) -> None:
    y = chainrule.tensor([0] * 80 + [1] * 20)
    learned, held = rows_of_members(y, members, fraction, True, Generator().manual_seed(0))
    for own, out in zip(learned.tolist(), held.tolist(), strict=True):
        assert sorted(own + out) == list(range(100))
        assert sum(i >= 80 for i in out) == pytest.approx(0.2 * len(out), abs=1)  # each class
    if members * fraction <= 1:
        together = held.flatten().tolist()
        assert len(set(together)) == len(together)


def test_batches_give_each_member_all_its_rows_in_its_own_order() -> None:
    x, y = chainrule.arange(40.0).reshape(20, 2), chainrule.arange(20)
    rows = chainrule.tensor([list(range(16)), list(range(4, 20))])
    outputs = chainrule.stack([100 * y, 200 * y]).reshape(2, 20, 1)
    loader = MemberBatches(Rows(x, y, linear=outputs), rows, 4, Generator().manual_seed(0))
    batches = list(loader)
    assert len(batches) == len(loader) == 8
    assert batches[0][0][0].shape == (4, 2, 2)
    first = chainrule.cat([b[1] for b in batches[:4]])
    assert sorted(first[:, 0].tolist()) == list(range(16))
    assert sorted(first[:, 1].tolist()) == list(range(4, 20))
    assert first[:, 0].tolist() != [i - 4 for i in first[:, 1].tolist()]
    for (bx, of_linear), by in batches:
        assert (bx[..., 0] == 2 * by).all()
        assert (of_linear[..., 0] == by * chainrule.tensor([100, 200])).all()  # of its own member


@pytest.mark.parametrize(("ahead", "short"), [(1, 2**14), (2**20, 2**14), (2**20, 0)])
def test_batches_are_the_same_rows_however_they_are_gathered(
    monkeypatch: pytest.MonkeyPatch, ahead: int, short: int
) -> None:
    monkeypatch.setattr(members, "AHEAD", ahead)
    monkeypatch.setattr(members, "SHORT", short)
    y = chainrule.arange(30)
    rows = chainrule.stack([y[:25], y[5:]])
    loader = MemberBatches(Rows(y.float().reshape(-1, 1), y), rows, 10, Generator().manual_seed(0))
    for _ in range(2):
        batches = list(loader)
        assert len(batches) == len(loader) == 8  # four passes, each without five rows
        for k in range(4):
            seen = chainrule.cat([b[1] for b in batches[2 * k : 2 * k + 2]])
            for m, own in enumerate(rows.tolist()):
                assert len(set(seen[:, m].tolist())) == 20
                assert set(seen[:, m].tolist()) < set(own)


def test_prepared_rows_are_trained_on_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = table(200)
    words = {"c": [f"w{i % 40}" for i in range(200)]}
    whole = data.Table.from_dict({**words, **{c.name: c.values for c in rows}})
    found = []
    for most in (2**25, 0):
        monkeypatch.setattr(ensemble, "PREPARED", most)
        net = train.fit_table(whole, settings=Settings(epochs=2), progress=False)
        found.append(net.history["val_loss"])
    assert found[0] == pytest.approx(found[1], rel=1e-4)


def test_linear_members_are_ridge_on_their_own_rows() -> None:
    chance = Generator().manual_seed(3)
    x = chainrule.randn(200, 5, generator=chance, dtype=chainrule.float64)
    y = x @ chainrule.randn(5, 2, generator=chance, dtype=chainrule.float64) + 3
    y = y + chainrule.randn(200, 2, generator=chance, dtype=chainrule.float64)
    weight = chainrule.ones(2, 200, dtype=chainrule.float64)
    weight[0, :40] = 0
    weight[1, 160:] = 0
    found = linear_members(x, y, "regression", 2, weight)
    assert found is not None
    for m, own in enumerate((slice(40, 200), slice(0, 160))):
        # The weights have mean 1: the penalty counts 200 / 160 times as much for 160 rows.
        wanted = optim.ridge(x[own], y[own], l2=found.l2 * 160 / 200)
        np.testing.assert_allclose(found.weight[m].mT.numpy(), wanted.weight.numpy(), rtol=1e-4)
        np.testing.assert_allclose(found.bias[m, 0].numpy(), wanted.bias.numpy(), rtol=1e-4)


def test_linear_members_are_softmax_regression() -> None:
    chance = Generator().manual_seed(4)
    x = chainrule.randn(300, 3, generator=chance, dtype=chainrule.float64)
    noise = chainrule.randn(300, generator=chance, dtype=chainrule.float64)
    y = (2 * x[:, 0] + noise > 0).long() + (x[:, 1] + noise > 1).long()
    weight = chainrule.ones(1, 300, dtype=chainrule.float64)
    weight[0, :60] = 0
    found = linear_members(x, y, "classification", 3, weight)
    assert found is not None
    wanted = optim.softmax_regression(x[60:], y[60:], 3, l2=found.l2 * 240 / 300)
    expected = chainrule.softmax(x @ wanted.weight.mT + wanted.bias, 1)
    got = chainrule.softmax(x @ found.weight[0] + found.bias[0], 1)
    assert float(abs(got - expected).max()) < 0.02
    assert linear_members(x[:, :0], y, "classification", 3, weight) is None


def weighed(n: int = 300) -> tuple[Any, Any, Any]:
    """Inputs, a line through them, and weights of which the first fifth is 0."""
    chance = Generator().manual_seed(5)
    x = chainrule.randn(n, 4, generator=chance, dtype=chainrule.float64)
    weight = chainrule.ones(1, n, dtype=chainrule.float64)
    weight[0, : n // 5] = 0
    return x, x @ chainrule.tensor([0.5, -0.4, 0.3, 0.0], dtype=chainrule.float64), weight


@pytest.mark.parametrize("task", ["count", "ordinal"])
def test_linear_members_are_where_the_gradient_is_0(task: str) -> None:
    x, line, weight = weighed()
    if task == "count":
        chainrule.manual_seed(0)
        y = chainrule.poisson(chainrule.exp(line)).reshape(-1, 1)
        goal, link = y, chainrule.exp
    else:
        y = (line > -0.3).long() + (line + x[:, 3] > 0.4).long()
        goal, link = (y.reshape(-1, 1) > chainrule.arange(2)).double(), chainrule.sigmoid
    found = linear_members(x, y, task, goal.shape[1], weight)
    assert found is not None
    residual = (link(x @ found.weight[0] + found.bias[0]) - goal) * weight.mT * (300 / 240)
    mean = found.weight[0].mean(1, keepdim=True)  # the slopes of ranks are held together
    held = mean + linear.APART * (found.weight[0] - mean)
    slope = x.mT @ residual + found.l2 * held
    assert float(abs(slope).max()) < 0.01 * float(abs(x.mT @ (goal * weight.mT)).max())
    assert float(abs(residual.sum(0)).max()) < 0.5


def test_linear_members_are_quantile_regression() -> None:
    x, line, weight = weighed(600)
    noise = chainrule.randn(600, generator=Generator().manual_seed(6), dtype=chainrule.float64)
    y = (line + 0.5 * noise).reshape(-1, 1)
    levels = [0.1, 0.5, 0.9]
    found = linear_members(x, y, "quantile", 3, weight, levels)
    assert found is not None
    output = x @ found.weight[0] + found.bias[0]
    below = (y < output)[120:].double().mean(0).tolist()
    assert below == pytest.approx(levels, abs=0.03)
    truth = line.reshape(-1, 1) + 0.5 * chainrule.tensor([-1.2816, 0.0, 1.2816])
    own, best = (nn.PinballLoss(levels)(t[120:], y[120:]) for t in (output, truth))
    assert float(own) < 1.01 * float(best)


@pytest.mark.parametrize("task", ["count", "quantile", "ordinal"])
def test_no_task_is_far_behind_its_linear_model(task: str) -> None:
    chance = np.random.default_rng(7)
    x = chance.normal(size=(500, 8))
    line = x @ chance.normal(size=8) / 3
    y = {
        "count": chance.poisson(np.exp(line)),
        "quantile": line + 0.3 * chance.normal(size=500),
        "ordinal": np.digitize(line + 0.2 * chance.normal(size=500), [-0.5, 0, 0.5]),
    }[task]
    columns = {f"x{i}": x[:, i].tolist() for i in range(8)}
    net = train.fit_table({**columns, "y": y.tolist()}, "y", task, progress=False)
    name = {"count": "d2", "quantile": "pinball", "ordinal": "accuracy"}[task]
    own, line_alone = net.about["scores"][name], net.about["baselines"]["linear model"][name]
    sign = -1 if task == "quantile" else 1
    assert sign * own > sign * line_alone - 0.02


def test_the_chosen_network_learns_what_no_line_shows_and_from_all_rows_but_the_test() -> None:
    net = train.fit_table(table(400), progress=False)
    assert net.about["scores"]["r2"] > net.about["baselines"]["linear model"]["r2"] + 0.2
    assert type(net.model).__name__ == "TabularNetwork"
    assert net.about["trained"]["members"] == 4
    assert net.about["calibration"]["rows"] == 4 * 60


def test_settings_are_obeyed() -> None:
    small = Settings(epochs=3, batch_size=16, lr=0.001, patience=9)
    net = train.fit_table(table(), settings=small, progress=False)
    assert len(net.history) == 3
    assert net.about["trained"]["batch_size"] == 16
    plain = train.fit_table(table(), settings=Settings(dropout=0.1, epochs=2), progress=False)
    assert type(plain.model).__name__ == "MLP"
    assert plain.about["settings"]["hidden"] == [64, 64]
    quick = train.fit_table(table(), settings=Settings(effort="quick"), progress=False)
    assert quick.about["trained"]["members"] == 2
    with pytest.raises(ValueError, match="effort must be one of"):
        Settings(effort="some")
    with pytest.raises(ValueError, match="chooses the network"):
        Settings(effort="quick", hidden=(3,))


def test_balanced_classes_count_the_same() -> None:
    chance = np.random.default_rng(1)
    x = chance.normal(size=400)
    rare = (x + 0.8 * chance.normal(size=400) > 1.8).astype(int)
    rows = data.Table.from_dict({"x": x.tolist(), "y": [f"c{v}" for v in rare]})
    found = []
    for weight in (None, "balanced"):
        net = train.fit_table(rows, settings=Settings(class_weight=weight), progress=False)
        found.append(sum(label == "c1" for label in net.predict(rows)))
    assert found[1] > 1.5 * found[0]


def test_the_same_seed_gives_the_same_bits() -> None:
    a, b = (train.fit_table(table(), progress=False).model.state_dict() for _ in range(2))
    assert all(a[key].tolist() == b[key].tolist() for key in a)


@pytest.mark.parametrize("epoch", [1, 4])
def test_resumed_bit_for_bit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, epoch: int) -> None:
    monkeypatch.chdir(tmp_path)
    fit = ["fit", "iris", "--epochs", "6", "--patience", "9", "--json", "--out"]
    assert main([*fit, "out"]) == 0
    whole = end_of("out")
    shutil.rmtree("out")
    kill_after(epoch, monkeypatch, [*fit, "out"])
    assert main([*fit, "out", "--resume"]) == 0
    assert end_of("out") == whole
    assert json.loads(Path("out", "model.json").read_text())

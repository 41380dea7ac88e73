"""Fitted networks: what they take, in files of each kind, and as an older version wrote them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas
import polars
import pytest

import chainrule
from chainrule import data, train
from chainrule.train import fitted

SETTINGS = train.Settings(epochs=2, hidden=(4,))
FRAME = pandas.DataFrame(
    {
        "size": [i / 7 for i in range(60)],
        "town": ["north", "west", "south"] * 20,
        "kind": ["big" if i > 30 else "small" for i in range(60)],
    }
)


@pytest.fixture(scope="module")
def network() -> train.FittedNetwork:
    table = data.Table.from_frame(FRAME)
    return train.fit_table(table, "kind", settings=SETTINGS, progress=False)


def test_what_it_takes(network: train.FittedNetwork, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = FRAME.drop(columns="kind")
    expected = network.predict_proba(data.Table.from_frame(rows)).numpy()
    for given in (rows, FRAME, polars.from_pandas(rows), rows.to_dict("list")):
        np.testing.assert_array_equal(network.predict_proba(given).numpy(), expected)
    with pytest.warns(UserWarning, match="ignored the columns .* 'garden'"):
        found = network.predict_proba(rows.assign(garden=1)).numpy()
    np.testing.assert_array_equal(found, expected)
    monkeypatch.setattr(fitted, "AT_ONCE", 50)
    np.testing.assert_allclose(network.predict_proba(rows).numpy(), expected, rtol=1e-5)
    with pytest.raises(data.TableError, match="are missing: 'town'"):
        network.predict(rows[["size"]])
    with pytest.raises(TypeError, match="columns by name, got list"):
        network.predict([[1.0, "north"]])  # type: ignore[list-item]


def test_evaluate_takes_frames(network: train.FittedNetwork) -> None:
    assert network.evaluate(FRAME) == network.evaluate(data.Table.from_frame(FRAME))


@pytest.mark.parametrize("folder", [False, True])
def test_files(network: train.FittedNetwork, folder: bool, tmp_path: Path) -> None:
    chainrule.save({"best": network}, tmp_path / "both", folder=folder)
    found = chainrule.load(tmp_path / "both")["best"]
    assert found.about == network.about
    assert found.history.rows == network.history.rows
    assert found.predict(FRAME) == network.predict(FRAME)
    network.save(tmp_path / "model")
    assert isinstance(chainrule.load(tmp_path / "model"), train.FittedNetwork)


def test_a_file_of_an_older_version(network: train.FittedNetwork, tmp_path: Path) -> None:
    chainrule.save({"kind": fitted.KIND, **network.file_parts()}, tmp_path / "old", folder=True)
    found = train.FittedNetwork.load(tmp_path / "old")
    assert found.predict(FRAME) == network.predict(FRAME)


def test_damage_is_told(network: train.FittedNetwork, tmp_path: Path) -> None:
    network.save(tmp_path / "model")
    parts = {**network.file_parts(), "target": chainrule.nn.Linear(1, 1)}
    with pytest.raises(ValueError, match="'target' should be a TargetEncoder"):
        train.FittedNetwork.from_file_parts(parts)
    chainrule.save({"kind": fitted.KIND, **parts}, tmp_path / "old", folder=True)
    with pytest.raises(ValueError, match="the network in .*old is damaged: its 'target'"):
        train.FittedNetwork.load(tmp_path / "old")


@pytest.mark.parametrize(
    "forged",
    [
        {"intervals": {"accuracy": [0.5]}},
        {"intervals": {"op": "x", "state": [None, 1]}},
        {"intervals": ["accuracy"]},
        {"warnings": "look out"},
        {"notes": [1]},
        {"given": ["weights"]},
        {"targets": ["another"]},
    ],
)
def test_a_forged_description_is_refused(
    network: train.FittedNetwork, forged: dict[str, object]
) -> None:
    parts = {**network.file_parts(), "about": {**network.about, **forged}}
    with pytest.raises(ValueError, match="FittedNetwork|interval|differ"):
        train.FittedNetwork.from_file_parts(parts)

"""Intervals hold what they say and probabilities come true, on rows that nothing was fitted to."""

from __future__ import annotations

import math

import numpy as np
import pytest

from chainrule import data, metrics, train

SEEDS, NEW = 6, 2000
HOW = {"members": train.Settings(effort="quick"), "plain": train.Settings(hidden=(16,), epochs=25)}


def rows(n: int, seed: int, classes: bool) -> data.Table:
    """A curved relation and noise; numbers, or classes drawn with known probabilities."""
    r = np.random.default_rng(seed)
    x = r.normal(size=(n, 3))
    z = np.sin(2 * x[:, 0]) + x[:, 1] * x[:, 2]
    columns = {f"x{i}": x[:, i].tolist() for i in range(3)}
    if classes:
        yes = r.random(n) < 1 / (1 + np.exp(-2 * z))
        return data.Table.from_dict({**columns, "y": np.where(yes, "yes", "no").tolist()})
    return data.Table.from_dict({**columns, "y": (z + 0.3 * r.normal(size=n)).tolist()})


@pytest.mark.parametrize("how", HOW)
def test_intervals_cover_what_they_say(how: str) -> None:
    """The mean over seeds lies within three standard deviations of both samples. The errors of
    members are larger than those of their mean, so that intervals may hold a little more."""
    found = []
    for seed in range(SEEDS):
        network = train.fit_table(rows(400, seed, False), "y", settings=HOW[how], progress=False)
        new = rows(NEW, 1000 + seed, False)
        for level in (0.5, 0.9):
            ends = network.predict_interval(new.without("y"), level).numpy()
            true = new["y"].numbers.numpy()
            found.append((level, ((true >= ends[:, 0]) & (true <= ends[:, 1])).mean()))
    known = network.about["calibration"]["rows"]
    for level in (0.5, 0.9):
        mean = np.mean([share for own, share in found if own == level])
        chance = 3 * math.sqrt(level * (1 - level) * (1 / NEW + 1 / known) / SEEDS)
        more = 0.05 if how == "members" else 0.0
        assert level - chance <= mean <= level + chance + more


@pytest.mark.parametrize("how", HOW)
def test_probabilities_come_true(how: str) -> None:
    """In the mean over seeds they are neither too high nor too low, and the error is small."""
    biases, errors = [], []
    for seed in range(SEEDS):
        network = train.fit_table(rows(400, seed, True), "y", settings=HOW[how], progress=False)
        new = rows(NEW, 1000 + seed, True)
        p, true = network.predict_proba(new.without("y")).double(), network.target(new["y"])
        hits = (p.argmax(1) == true).double()
        biases.append(float((p.max(1)[0] - hits).mean()))
        errors.append(metrics.calibration_error(p, true, 10, scores="probabilities"))
    assert abs(np.mean(biases)) < 0.03
    assert np.mean(errors) < 0.06

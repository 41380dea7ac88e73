"""Losses of quantiles and ranks against scikit-learn, SciPy and closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import assert_close
from scipy import special
from sklearn import metrics as sk

import chainrule
from chainrule import nn
from chainrule.nn import functional as F

QUANTILES = (0.1, 0.5, 0.9)


def test_pinball_equals_scikit_learn() -> None:
    r = np.random.default_rng(0)
    x, y = r.normal(size=(50, 3)), r.normal(size=50)
    losses = F.pinball_loss(chainrule.tensor(x), chainrule.tensor(y), QUANTILES, "none")
    for k, q in enumerate(QUANTILES):
        expected = sk.mean_pinball_loss(y, x[:, k], alpha=q)
        assert float(losses[:, k].mean()) == pytest.approx(expected, rel=1e-12)
    column = F.pinball_loss(chainrule.tensor(x), chainrule.tensor(y[:, None]), QUANTILES)
    assert float(column) == pytest.approx(float(losses.mean()), rel=1e-12)


@pytest.mark.parametrize("q", [0.05, 0.5, 0.8])
def test_the_best_constant_of_the_pinball_loss_is_the_quantile(q: float) -> None:
    y = np.random.default_rng(1).exponential(size=101)
    best = float(np.quantile(y, q))

    def loss(c: float) -> float:
        x = chainrule.full((101, 1), c, dtype=chainrule.float64)
        return float(F.pinball_loss(x, chainrule.tensor(y), [q]))

    assert loss(best) <= min(loss(best - 0.01), loss(best + 0.01))


def test_ordinal_loss_is_the_sum_over_the_thresholds() -> None:
    r = np.random.default_rng(2)
    x, y = r.normal(size=(20, 4)), r.integers(0, 5, 20)
    p = special.expit(x)
    above = y[:, None] > np.arange(4)
    expected = -np.where(above, np.log(p), np.log1p(-p)).sum(1)
    found = F.ordinal_loss(chainrule.tensor(x), chainrule.tensor(y), "none")
    assert_close(found, expected, rtol=1e-12)
    assert_close(nn.OrdinalLoss()(chainrule.tensor(x), chainrule.tensor(y)), expected.mean())


def test_one_threshold_is_the_binary_cross_entropy() -> None:
    x, y = chainrule.randn(10, 1), chainrule.arange(10) % 2
    expected = F.binary_cross_entropy_with_logits(x.reshape(-1), y.float())
    assert_close(F.ordinal_loss(x, y), expected)


def test_what_cannot_be_compared() -> None:
    x = chainrule.zeros(3, 2)
    with pytest.raises(ValueError, match=r"must have 3 columns at the end"):
        F.pinball_loss(x, chainrule.zeros(3), QUANTILES)
    with pytest.raises(ValueError, match=r"needs a target of shape \(3,\) or \(3, 1\).*got \(2,\)"):
        F.pinball_loss(x, chainrule.zeros(2), (0.1, 0.9))
    with pytest.raises(ValueError, match="quantiles lie between 0 and 1"):
        nn.PinballLoss([0.5, 1.0])
    with pytest.raises(ValueError, match="ranks for 2 thresholds are 0 to 2, got .* to 3"):
        F.ordinal_loss(x, chainrule.tensor([0, 1, 3]))
    with pytest.raises(ValueError, match=r"needs a target of shape \(3,\)"):
        F.ordinal_loss(x, chainrule.zeros(3, 2).long())
    with pytest.raises(RuntimeError, match="expected target of type"):
        F.ordinal_loss(x, chainrule.zeros(3))

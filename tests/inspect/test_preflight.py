"""Each line of the preflight passes on what is sound and fails on what is not."""

from __future__ import annotations

import math
from typing import Any

import chainrule
import pytest
from chainrule import inspect, models, nn
from chainrule.nn import functional as F
from looking.healthy import numbers, pictures
from looking.planted import net, table


def lines(model: nn.Module, loss: Any, given: Any) -> dict[str, Any]:
    chainrule.manual_seed(0)
    report = inspect.preflight(model, loss, given)
    return {check.name: check for check in report.checks}


@pytest.mark.parametrize("name", ["iris", "wine", "breast_cancer", "digits"])
def test_a_sound_classifier_passes(name: str) -> None:
    x, y = table(name)
    k = int(y.max()) + 1
    found = lines(models.MLP(x.shape[1], [64], k), F.cross_entropy, (x, y))
    assert [c.passed for c in found.values()] == [True] * 6
    assert found["loss at the start"].expected == pytest.approx(math.log(k))


def test_a_sound_regression_passes() -> None:
    x, y = numbers("diabetes")
    found = lines(models.MLP(10, [32], 1), F.mse_loss, (x, y))
    assert [c.passed for c in found.values()] == [True] * 6
    # The first batch's targets have about the variance of all, which is 1.
    assert found["loss at the start"].expected == pytest.approx(1, abs=0.3)


def test_a_start_that_is_sure_of_itself() -> None:
    model = net()
    with chainrule.no_grad():
        model[2].weight.mul_(100)
    line = lines(model, F.cross_entropy, table("wine"))["loss at the start"]
    assert line.passed is False
    assert "sure of itself and wrong" in line.reason
    assert "smaller weights" in line.remedy


def test_outputs_that_do_not_fit_the_loss() -> None:
    found = lines(net(13, 3, nn.Softmax(1)), F.cross_entropy, table("wine"))["output"]
    assert found.passed is False
    assert "logits" in found.remedy
    x, y = table("breast_cancer")
    target = y.float().reshape(-1, 1)
    found = lines(net(30, 1), lambda o, t: ((o - t.squeeze(-1)) ** 2).mean(), (x, target))["output"]
    assert found.passed is False
    assert "broadcasts" in found.reason
    found = lines(net(13, 3), F.nll_loss, table("wine"))["output"]
    assert found.passed is False
    assert "LogSoftmax" in found.remedy
    x, y = numbers("diabetes")
    found = lines(net(10, 1, nn.ReLU()), F.mse_loss, (x, y))["output"]
    assert found.passed is False
    assert "never negative" in found.reason


def test_inputs_that_are_not_used() -> None:
    class Blind(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = net()

        def forward(self, x: Any) -> Any:
            return self.layers(x * 0)

    found = lines(Blind(), F.cross_entropy, table("wine"))
    assert found["one batch by heart"].passed is False
    assert found["baseline without inputs"].passed is False


def test_samples_that_touch_each_other() -> None:
    found = lines(net(13, 3, nn.LogSoftmax(0)), F.cross_entropy, table("wine"))
    assert found["samples are separate"].passed is False
    normed = nn.Sequential(nn.Linear(13, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))
    line = lines(normed, F.cross_entropy, table("wine"))["samples are separate"]
    assert line.passed is True
    assert "batch norm (1)" in line.reason


def test_time_first_is_no_mixture() -> None:
    class Series(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm, self.head = nn.LSTM(2, 4), nn.Linear(4, 1)

        def forward(self, x: Any) -> Any:
            return self.head(self.lstm(x)[0])

    x = chainrule.randn(5, 6, 2)
    found = lines(Series(), F.mse_loss, (x, x[..., :1].cumsum(0)))
    assert found["samples are separate"].passed is True


def test_data_that_says_nothing() -> None:
    x, y = table("wine")
    x[3, 4] = math.nan
    report = inspect.preflight(net(), F.cross_entropy, (x, y))
    assert not report.passed
    assert "1 values are NaN" in report.checks[0].reason
    assert "FAIL" in str(report)
    same = lines(net(), F.cross_entropy, (chainrule.ones(len(y), 13), y))["data"]
    assert same.passed is False
    assert "all rows are equal" in same.reason


def test_a_batch_of_one_is_said() -> None:
    found = lines(net(), F.cross_entropy, (chainrule.randn(1, 13), chainrule.tensor([1])))
    assert found["samples are separate"].passed is None
    assert "batch of one" in found["samples are separate"].reason


def test_a_pass_that_fails_is_a_line() -> None:
    found = lines(net(5), F.cross_entropy, table("wine"))
    assert list(found) == ["data", "output"]
    assert found["output"].passed is False


def test_what_the_network_sees() -> None:
    x, y = pictures()
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 10))
    report = inspect.preflight(model, F.cross_entropy, (x, y), steps=20)
    assert report.features["highest"][20] == float(x.reshape(-1, 64)[:, 20].max())
    assert sum(report.classes.values()) == len(y)
    pytest.importorskip("matplotlib").use("agg")
    drawn = report.plot()
    picture = drawn[2].images[0].get_array()
    assert picture.shape == (4 * 9 - 1, 4 * 9 - 1)
    assert report._pictures is not None
    assert picture[:8, 9:17].argmax() == int(report._pictures[1].argmax())
    assert len(drawn[2].texts) == 16
    import matplotlib.pyplot as plt

    plt.close(drawn[0].figure)


def test_limits_are_checked() -> None:
    with pytest.raises(ValueError, match="preflight: steps and seconds must be positive"):
        inspect.preflight(net(), F.cross_entropy, table("wine"), steps=0)

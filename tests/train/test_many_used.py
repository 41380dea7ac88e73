"""Where networks are trained at once: failures, folds, sweeps."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import scipy.stats
from train.many import classes

import chainrule
from chainrule import models, nn, optim, problems, train
from chainrule.data import KFold


F64 = chainrule.float64


def folds(x: Any, y: Any, count: int = 4) -> tuple[list[Any], list[Any]]:
    splits = list(KFold(count, shuffle=True, random_state=0).split(x, y))
    return [(x[a], y[a]) for a, _ in splits], [(x[b], y[b]) for _, b in splits]


def small(**options: Any) -> Callable[[], nn.Module]:
    return lambda: models.MLP(4, [5], 2, "tanh", **options).double()


def xor() -> tuple[Any, Any]:
    p = problems.boolean("xor", dtype=F64)
    return p.inputs, p.targets


def test_cross_validation_by_many_is_cross_validation() -> None:
    x, y = classes(61)
    settings: dict[str, Any] = {"folds": 4, "epochs": 3, "metrics": ["accuracy"], "seed": 2}
    one = train.cross_validate(small(dropout=0.2), (x, y), "cross_entropy", **settings)
    other = train.cross_validate(small(dropout=0.2), (x, y), "cross_entropy", many=True, **settings)
    assert other.folds["size"] == one.folds["size"]
    for name in ("loss", "accuracy"):
        assert other.folds[name] == pytest.approx(one.folds[name], abs=1e-9)
        assert other.mean[name] == pytest.approx(one.mean[name], abs=1e-9)
    with pytest.raises(ValueError, match=r"many=True does not take \['accumulate'\]"):
        train.cross_validate(small(), (x, y), "cross_entropy", many=True, accumulate=2)
    with pytest.raises(ValueError, match="many=True is one job, got n_jobs=2"):
        train.cross_validate(small(), (x, y), "cross_entropy", many=True, n_jobs=2)


def test_a_sweep_by_many(tmp_path: Any) -> None:
    calls: list[int] = []

    def run(settings: list[dict[str, Any]]) -> list[dict[str, float]]:
        calls.append(len(settings))
        rates = [s["lr"] for s in settings]
        fits = train.fit_many(small(), classes(), "cross_entropy", "sgd", lr=rates, epochs=3)
        return [{"loss": loss} for loss in fits.last("loss")]

    path = tmp_path / "results.jsonl"
    table = train.sweep(run, train.grid({"lr": [0.1, 0.2]}), many=True, path=path)
    again = train.sweep(run, train.grid({"lr": [0.1, 0.2, 0.5]}), many=True, path=path)
    assert calls == [2, 1]
    assert again["loss"][:2] == table["loss"]
    with pytest.raises(TypeError, match="a list of 1 dictionaries"):
        train.sweep(lambda settings: [], [{"lr": 1.0}], many=True)


@pytest.mark.parametrize("method", ["wilson", "exact"])
@pytest.mark.parametrize(("k", "n"), [(0, 20), (6, 20), (20, 20), (1, 1), (37, 400)])
def test_binomial_intervals(method: str, k: int, n: int) -> None:
    expected = scipy.stats.binomtest(k, n).proportion_ci(0.9, method=method)
    low, high = train.binomial_interval(k, n, 0.9, method)
    assert low == pytest.approx(expected.low, abs=1e-9)
    assert high == pytest.approx(expected.high, abs=1e-9)


def test_wrong_intervals() -> None:
    with pytest.raises(ValueError, match="0 <= k <= n"):
        train.binomial_interval(3, 2)
    with pytest.raises(ValueError, match="'wilson' or 'exact'"):
        train.binomial_interval(1, 2, method="normal")


def test_the_starting_point_matters_for_xor() -> None:
    """Document 001: from U(-10, 10) XOR fails 6 of 20 times (here about half of the times), from
    N(0, 1 / fan_in) never."""
    x, y = xor()

    def network(start: Callable[[Any], Any]) -> Callable[[], nn.Module]:
        def make() -> nn.Module:
            net = models.MLP(2, [4], 1, "sigmoid", output_activation="sigmoid").double()
            for layer in (net[0], net[2]):
                start(layer.weight)
                nn.init.zeros_(layer.bias)
            return net

        return make

    def rate(start: Callable[[Any], Any]) -> train.FailureRate:
        return train.failure_rate(
            network(start),
            (x, y),
            "bce",
            lambda p: optim.SGD(p, lr=0.1, momentum=0.99),
            solved=lambda output, y: ((output > 0.5) == (y > 0.5)).all(),
            epochs=1000,
            batch_size=4,
        )

    wide = rate(lambda w: nn.init.uniform_(w, -10, 10))
    narrow = rate(lambda w: nn.init.normal_(w, 0, 1 / math.sqrt(w.shape[1])))
    assert narrow.failures == 0
    assert 5 <= wide.failures <= 16
    assert wide.interval[0] < 0.52 < wide.interval[1]  # the rate over many starts
    assert f"failed {wide.failures} of 20 times" in str(wide)
    assert wide.fits.jobs == 1


def test_a_start_that_diverges_is_a_failure() -> None:
    x = chainrule.linspace(-1, 1, 16).reshape(-1, 1)
    result = train.failure_rate(
        lambda: nn.Linear(1, 1), (x, x), "mse", "sgd", solved=1.0, starts=3, lr=1e6, epochs=40
    )
    assert result.failures == 3
    with pytest.raises(ValueError, match="starts must be positive"):
        train.failure_rate(lambda: nn.Linear(1, 1), (x, x), "mse", solved=1.0, starts=0)

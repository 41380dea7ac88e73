"""Sweeps and cross-validation: every setting once, resumed where they stopped, in parallel."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import chainrule
from chainrule import models, nn, optim, train
from chainrule.data import KFold


def test_a_grid_is_the_product() -> None:
    settings = train.grid({"lr": [0.1, 0.2], "hidden": [(4,), (8,)]})
    assert settings == [
        {"lr": 0.1, "hidden": (4,)},
        {"lr": 0.1, "hidden": (8,)},
        {"lr": 0.2, "hidden": (4,)},
        {"lr": 0.2, "hidden": (8,)},
    ]


def test_random_settings_are_seeded_and_within_bounds() -> None:
    space = {"lr": train.log_uniform(1e-5, 1e-1), "width": [4, 8, 16], "p": train.uniform(0, 0.5)}
    some = train.random_settings(space, 200, seed=3)
    assert some == train.random_settings(space, 200, seed=3)
    assert some != train.random_settings(space, 200, seed=4)
    logs = np.log10([s["lr"] for s in some])
    assert logs.min() >= -5
    assert logs.max() < -1
    assert abs(logs.mean() + 3) < 0.3  # uniform in the logarithm
    assert {s["width"] for s in some} == {4, 8, 16}
    assert all(0 <= s["p"] < 0.5 for s in some)


def test_an_interrupted_sweep_goes_on(tmp_path: Path) -> None:
    runs: list[float] = []

    def run(setting: dict[str, Any]) -> dict[str, float]:
        if len(runs) == 2:
            raise KeyboardInterrupt
        runs.append(setting["lr"])
        return {"loss": setting["lr"] ** 2}

    settings = train.grid({"lr": [0.1, 0.2, 0.3, 0.4]})
    with pytest.raises(KeyboardInterrupt):
        train.sweep(run, settings, path=tmp_path / "results.jsonl")
    assert runs == [0.1, 0.2]
    done: list[float] = []

    def go_on(setting: dict[str, Any]) -> dict[str, float]:
        done.append(setting["lr"])
        return {"loss": setting["lr"] ** 2}

    table = train.sweep(go_on, settings, path=tmp_path / "results.jsonl")
    assert done == [0.3, 0.4]
    assert table["lr"] == [0.1, 0.2, 0.3, 0.4]
    assert table["loss"] == pytest.approx([0.01, 0.04, 0.09, 0.16])
    assert table.best("loss")["lr"] == 0.1


def square(setting: dict[str, Any]) -> dict[str, float]:
    return {"y": setting["x"] ** 2}


def test_parallel_runs_give_the_same_table() -> None:
    settings = train.grid({"x": list(range(6))})
    assert train.sweep(square, settings, n_jobs=2).rows == train.sweep(square, settings).rows


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: train.grid({}), ValueError, "needs values"),
        (lambda: train.grid({"a": []}), ValueError, "none for \\['a'\\]"),
        (lambda: train.random_settings({"a": [1]}, 0), ValueError, "trials >= 1"),
        (lambda: train.log_uniform(0, 1), ValueError, "0 < low < high"),
        (lambda: train.sweep(square, []), ValueError, "no settings"),
        (lambda: train.sweep(lambda s: 3.0, [{"x": 1}]), TypeError, "dictionary of results"),
    ],
)
def test_bad_input(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_a_foreign_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("hello\n")
    with pytest.raises(ValueError, match="not a file of results"):
        train.sweep(square, [{"x": 1}], path=tmp_path / "x")


# --- cross-validation -----------------------------------------------------------------------------


def line(n: int = 60) -> tuple[Any, Any]:
    g = chainrule.Generator().manual_seed(0)
    x = chainrule.randn(n, 2, generator=g)
    noise = 0.1 * chainrule.randn(n, 1, generator=g)
    return x, x @ chainrule.tensor([[2.0], [-1.0]]) + noise


def test_cross_validation_is_the_mean_over_all_samples() -> None:
    """Against folds by hand: with an optimizer that finds least squares, a closed form."""
    x, y = line(50)
    result = train.cross_validate(
        lambda: nn.Linear(2, 1),
        (x.double(), y.double()),
        "mse",
        lambda p: optim.LBFGS(p, max_iter=100, line_search_fn="strong_wolfe"),
        folds=KFold(4).split(x),
        epochs=3,
        batch_size=100,
    )
    losses, a, b = [], x.double().numpy(), y.double().numpy()
    for part in np.array_split(np.arange(50), 4):
        rest = np.setdiff1d(np.arange(50), part)
        w = np.linalg.lstsq(np.c_[a[rest], np.ones(len(rest))], b[rest], rcond=None)[0]
        losses.append((np.c_[a[part], np.ones(len(part))] @ w - b[part]) ** 2)
    means = [float(v.mean()) for v in losses]
    assert result.folds["loss"] == pytest.approx(means, rel=1e-4)
    assert result.mean["loss"] == pytest.approx(float(np.concatenate(losses).mean()), rel=1e-4)
    assert result.std["loss"] == pytest.approx(float(np.std(means, ddof=1)), rel=1e-3)
    assert result.error["loss"] == pytest.approx(result.std["loss"] / math.sqrt(4))
    assert "loss:" in str(result)


def make() -> nn.Module:
    return models.MLP(2, [4], 1)


def test_cross_validation_in_parallel_and_its_seed() -> None:
    before = chainrule.get_rng_state()
    results = [
        train.cross_validate(make, line(), "mse", "adam", folds=3, epochs=2, seed=s, n_jobs=j)
        for s, j in ((0, 1), (0, 2), (1, 1))
    ]
    assert results[0].folds.rows == results[1].folds.rows
    assert results[0].folds.rows != results[2].folds.rows
    assert bool((chainrule.get_rng_state() == before).all())


def test_stratified_folds_and_metrics() -> None:
    x = chainrule.randn(60, 2)
    y = chainrule.tensor([0] * 40 + [1] * 20)
    result = train.cross_validate(
        lambda: nn.Linear(2, 2),
        (x, y),
        "cross_entropy",
        folds=4,
        stratify=True,
        epochs=1,
        metrics=["accuracy"],
    )
    assert result.folds["size"] == [15, 15, 15, 15]
    assert set(result.mean) == {"loss", "accuracy"}

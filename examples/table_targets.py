"""Counts, quantiles and ranks: chainrule beside the linear models of scikit-learn.

    python examples/table_targets.py          (fifteen tables, five seeds; a few minutes)

Needs scikit-learn. A fifth of the rows is for the score: the explained deviance of counts, the
explained pinball loss of the quantiles 0.1, 0.5 and 0.9, the explained absolute error of ranks. The
second score of each task is that of chainrule without the linear models beside its networks. Prints
the table of docs/tables.md.
"""

from __future__ import annotations

import argparse
import statistics
import warnings
from collections.abc import Iterator, Sequence
from typing import Any
from unittest import mock

import numpy as np
from sklearn.linear_model import LogisticRegression, PoissonRegressor, QuantileRegressor
from sklearn.metrics import d2_absolute_error_score, d2_pinball_score, d2_tweedie_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from chainrule.train import Settings, fit_table
from chainrule.train.automatic import ensemble

TASKS = ("count", "quantile", "ordinal")
SHAPES = (
    ("line", 200, 10),
    ("line", 1000, 20),
    ("line", 300, 40),
    ("skewed", 2000, 6),
    ("no line", 1000, 5),
)
QUANTILES = (0.1, 0.5, 0.9)


def made(task: str, kind: str, n: int, d: int, seed: int) -> tuple[Any, Any]:
    """Columns and a target that depends on a line through them, or on none."""
    r = np.random.default_rng(100 * seed + TASKS.index(task))
    x = r.normal(size=(n, d))
    line = x @ r.normal(size=d) / np.sqrt(d)
    if kind == "no line":
        line = np.sin(2 * x[:, 0]) + 0.5 * x[:, 1] * x[:, 2]
    elif kind == "skewed":
        x = np.exp(x)
        line = 0.2 * x @ r.normal(size=d) / np.sqrt(d)
    if task == "count":
        return x, r.poisson(np.exp(np.clip(0.8 + 0.8 * line, -5, 5)))
    if task == "quantile":
        return x, line + (0.3 + 0.3 * np.abs(x[:, 0])) * r.standard_t(4, size=n)
    return x, np.digitize(line + 0.3 * r.logistic(size=n), [-1, -0.3, 0.3, 1])


def of_chainrule(task: str, x: Any, y: Any, rows: Any, seed: int) -> Any:
    """Predictions for other rows of a network that is fitted as ``chainrule fit`` does it."""
    columns = {f"x{i}": x[:, i].tolist() for i in range(x.shape[1])}
    settings = Settings(test_size=max(0.02, 10 / len(y)), seed=seed)
    net = fit_table({**columns, "y": y.tolist()}, "y", task, settings, progress=False)
    told = net.predict({f"x{i}": rows[:, i].tolist() for i in range(x.shape[1])})
    return np.array(told, float)


def of_linear(task: str, x: Any, y: Any, rows: Any) -> Any:
    """The same of a linear model."""
    if task == "count":
        search = GridSearchCV(PoissonRegressor(max_iter=500), {"alpha": [1e-3, 1e-2, 0.1, 1]})
        return make_pipeline(StandardScaler(), search).fit(x, y).predict(rows)
    if task == "quantile":
        models = [QuantileRegressor(quantile=q, alpha=1e-3) for q in QUANTILES]
        found = [make_pipeline(StandardScaler(), m).fit(x, y).predict(rows) for m in models]
        return np.stack(found, 1)
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=500))
    above = [model.fit(x, y > k).predict(rows) for k in range(int(y.max()))]
    return np.minimum.accumulate(np.stack(above, 1), 1).sum(1)  # the median


def score(task: str, truth: Any, told: Any) -> float:
    """1 is the best, 0 the best constant."""
    if task == "count":
        return float(d2_tweedie_score(truth, np.maximum(told, 1e-6), power=1))
    if task == "quantile":
        columns = zip(QUANTILES, told.T, strict=True)
        return statistics.fmean(d2_pinball_score(truth, t, alpha=q) for q, t in columns)
    return float(d2_absolute_error_score(truth, told))


def scores(task: str, kind: str, n: int, d: int, seed: int) -> tuple[float, float, float]:
    """Of chainrule, of chainrule without linear models, and of the linear model."""
    x, y = made(task, kind, n, d, seed)
    cut = n * 4 // 5
    given = (task, x[:cut], y[:cut], x[cut:])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        own = of_chainrule(*given, seed)
        with mock.patch.object(ensemble, "linear_members", return_value=None):
            alone = of_chainrule(*given, seed)
        linear = of_linear(*given)
    return tuple(score(task, y[cut:], told) for told in (own, alone, linear))  # type: ignore[return-value]


def lines(seeds: int) -> Iterator[str]:
    """The rows of the table of docs/tables.md."""
    for shape in SHAPES:
        cells = []
        for task in TASKS:
            runs = [scores(task, *shape, seed) for seed in range(seeds)]
            means = [statistics.fmean(column) for column in zip(*runs, strict=True)]
            best = max(means)
            cells += [f"**{v:.3f}**" if v > best - 5e-4 else f"{v:.3f}" for v in means]
        yield f"| {shape[0]}, {shape[1]} x {shape[2]} | {' | '.join(cells)} |"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args(arguments)
    names = [f"{task}{what}" for task in TASKS for what in (": chainrule", ", alone", ", linear")]
    print(f"| rows and columns | {' | '.join(names)} |", "|---" * (len(names) + 1) + "|", sep="\n")
    for line in lines(options.seeds):
        print(line, flush=True)


if __name__ == "__main__":
    main()

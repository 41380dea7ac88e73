"""A benchmark of 25 tables: chainrule beside linear models, scikit-learn's MLP, trees and forests.

    python examples/tables.py --quick         (six small tables, two seeds; a minute)
    python examples/tables.py                 (all tables, five seeds; about 20 minutes)

Needs scikit-learn. Every method sees the same splits: 80 % for training, 20 % for the score, which
is accuracy, ROC AUC for classes of very different size, or R2 for numbers. The whole run writes its
results into docs/tables.md; ``--keep FILE`` keeps them as they come and goes on from there.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn import datasets
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegressionCV, RidgeCV
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

from chainrule.data import Table
from chainrule.random import fork_rng, manual_seed
from chainrule.train import Settings
from chainrule.train.automatic.choice import Choice
from chainrule.train.automatic.parts import encode
from chainrule.train.automatic.training import make_network, train_network

Columns = dict[str, list[Any]]
Made = tuple[Columns, list[Any], str]  # columns, target, "accuracy", "auc" or "r2"

QUICK = ("iris", "diabetes", "friedman1", "moons", "categories", "dates")
PAGE = Path(__file__).parents[1] / "docs" / "tables.md"
METHODS = ("chainrule", "chainrule high", "linear", "MLP", "boosting", "forest")


# --- tables ---------------------------------------------------------------------------------------


def _numbers(x: Any, y: Any, score: str) -> Made:
    columns = {f"x{i}": [float(v) for v in x[:, i]] for i in range(x.shape[1])}
    target = [float(v) for v in y] if score == "r2" else [f"c{int(v)}" for v in y]
    return columns, target, score


def _loaded(name: str, score: str) -> Callable[[], Made]:
    return lambda: _numbers(*getattr(datasets, f"load_{name}")(return_X_y=True), score)


def _made(name: str, score: str, **options: Any) -> Callable[[], Made]:
    make = getattr(datasets, f"make_{name}")
    return lambda: _numbers(*make(**{"random_state": 0, **options}), score)


def _steps() -> Made:
    """Jumps and conditions, which suit trees."""
    r = np.random.default_rng(1)
    x = r.normal(size=(1500, 8))
    low = np.where(x[:, 0] > 0.3, 2 * (x[:, 1] > 0), x[:, 2] * (x[:, 3] > -0.5))
    return _numbers(x, low + np.floor(x[:, 4]) + 0.3 * r.normal(size=1500), "r2")


def _skewed() -> Made:
    """Heavy tails in the columns and in the target."""
    r = np.random.default_rng(2)
    x = np.exp(r.normal(size=(1500, 6)))
    log = 0.5 * np.log(x[:, 0]) - 0.4 * np.log(x[:, 1]) + 0.3 * (x[:, 2] > 1)
    return _numbers(x, np.exp(log + 0.2 * r.normal(size=1500)), "r2")


def _spirals() -> Made:
    r = np.random.default_rng(3)
    t, kind = 3 * np.pi * np.sqrt(r.uniform(size=1000)) + 0.5, r.integers(0, 2, 1000)
    x = np.stack([t * np.cos(t + np.pi * kind), t * np.sin(t + np.pi * kind)], 1)
    return _numbers(x + 0.4 * r.normal(size=x.shape), kind, "accuracy")


def _missing() -> Made:
    """A fifth of all cells is empty, more often where the value is large."""
    x, y = datasets.make_friedman1(1500, n_features=8, noise=1.0, random_state=4)
    r = np.random.default_rng(4)
    columns, target, score = _numbers(x, y, "r2")
    for name, values in columns.items():
        gone = r.uniform(size=len(values)) < 0.4 * np.asarray(values)
        columns[name] = [None if g else v for v, g in zip(values, gone, strict=True)]
    return columns, target, score


def _categories() -> Made:
    """A category of 200 values says most, another of 5 and two numbers the rest."""
    r = np.random.default_rng(5)
    effects, n = 2 * r.normal(size=200), 2000
    shop, color = r.integers(0, 200, n), r.integers(0, 5, n)
    a, b = r.normal(size=(2, n))
    y = effects[shop] + 0.5 * color * a + np.sin(2 * b) + 0.5 * r.normal(size=n)
    columns: Columns = {"shop": [f"s{i}" for i in shop], "color": [f"k{i}" for i in color]}
    return {**columns, "a": a.tolist(), "b": b.tolist()}, y.tolist(), "r2"


def _labels() -> Made:
    """Classes by a category of 60 values that interacts with a number."""
    r = np.random.default_rng(6)
    sign, n = r.normal(size=60), 2000
    city, kind = r.integers(0, 60, n), r.integers(0, 4, n)
    a, b = r.normal(size=(2, n))
    y = (1.5 * sign[city] * a + 0.7 * (kind == 2) + 0.5 * b + 0.7 * r.normal(size=n)) > 0
    columns: Columns = {"city": [f"t{i}" for i in city], "kind": [f"k{i}" for i in kind]}
    return {**columns, "a": a.tolist(), "b": b.tolist()}, [f"c{int(v)}" for v in y], "accuracy"


def _days(r: Any, n: int) -> Any:
    return np.datetime64("2021-01-01T00", "h") + r.integers(0, 3 * 365 * 24, n)


def _dates() -> Made:
    """Sales by season, day of the week and trend."""
    r = np.random.default_rng(7)
    when, price = _days(r, 2000), r.uniform(1, 5, 2000)
    day = when.astype("datetime64[D]").astype(int)
    season, weekend = np.sin(2 * np.pi * day / 365.25), (day + 3) % 7 >= 5
    y = 3 * season + 2 * weekend + (day - day.min()) / 300 - price + 0.7 * r.normal(size=2000)
    return {"when": [f"{v}:00" for v in when], "price": price.tolist()}, y.tolist(), "r2"


def _hours() -> Made:
    """Classes of different size by the hour of the day and two numbers."""
    r = np.random.default_rng(8)
    when = _days(r, 2500)
    hour = when.astype(int) % 24
    a, b = r.normal(size=(2, 2500))
    score = 1.5 * np.cos(2 * np.pi * (hour - 20) / 24) + a * (b > 0) + r.logistic(size=2500)
    columns: Columns = {"when": [f"{v}:00" for v in when], "a": a.tolist(), "b": b.tolist()}
    return columns, [f"c{int(v)}" for v in score > 2.2], "auc"


TABLES: dict[str, Callable[[], Made]] = {
    "iris": _loaded("iris", "accuracy"),
    "wine": _loaded("wine", "accuracy"),
    "breast_cancer": _loaded("breast_cancer", "accuracy"),
    "digits": _loaded("digits", "accuracy"),
    "diabetes": _loaded("diabetes", "r2"),
    "moons": _made("moons", "accuracy", n_samples=1000, noise=0.3),
    "circles": _made("circles", "accuracy", n_samples=600, noise=0.15, factor=0.6),
    "spirals": _spirals,
    "hastie": _made("hastie_10_2", "accuracy", n_samples=4000),
    "quantiles": _made("gaussian_quantiles", "accuracy", n_samples=1500, n_features=6, n_classes=4),
    "clusters": _made(
        "classification",
        "accuracy",
        n_samples=2000,
        n_informative=6,
        n_clusters_per_class=3,
        flip_y=0.05,
    ),
    "ten classes": _made(
        "classification", "accuracy", n_samples=3000, n_informative=10, n_classes=10
    ),
    "imbalance": _made(
        "classification",
        "auc",
        n_samples=3000,
        n_features=12,
        n_informative=5,
        weights=[0.95],
        class_sep=0.8,
    ),
    "friedman1": _made("friedman1", "r2", n_samples=1000, noise=1.0),
    "friedman2": _made("friedman2", "r2", n_samples=800, noise=125.0),
    "friedman3": _made("friedman3", "r2", n_samples=600, noise=0.1),
    "linear": _made("regression", "r2", n_samples=500, n_features=30, noise=30.0),
    "sparse": _made("sparse_uncorrelated", "r2", n_samples=1000, n_features=20),
    "steps": _steps,
    "skewed": _skewed,
    "missing": _missing,
    "categories": _categories,
    "labels": _labels,
    "dates": _dates,
    "hours": _hours,
}


# --- methods --------------------------------------------------------------------------------------


def prepared(columns: Columns) -> tuple[Any, list[int], list[int]]:
    """What the peers get: dates as numbers; which columns are numbers, and which categories."""
    found: list[Any] = []
    numbers, categories = [], []
    for values in columns.values():
        known = next(v for v in values if v is not None)
        if not isinstance(known, str):
            numbers.append(len(found))
            found.append([math.nan if v is None else v for v in values])
        elif known[:4].isdigit():
            when = np.array(values, "datetime64[m]").astype("datetime64[h]")
            days = when.astype("datetime64[D]").astype(int)
            months = when.astype("datetime64[M]").astype(int) % 12
            for part in (days, months, (days + 3) % 7, when.astype(int) % 24):
                numbers.append(len(found))
                found.append(part.tolist())
        else:
            categories.append(len(found))
            found.append(values)
    return np.array(list(zip(*found, strict=True)), object), numbers, categories


def peer(method: str, task: str, seed: int, numbers: list[int], categories: list[int]) -> Any:
    """A pipeline of scikit-learn's."""
    classes = task == "classification"
    if method in ("linear", "MLP"):
        change = ColumnTransformer(
            [
                ("numbers", make_pipeline(SimpleImputer(), StandardScaler()), numbers),
                ("words", OneHotEncoder(handle_unknown="ignore", sparse_output=False), categories),
            ]
        )
    else:
        words = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
        change = ColumnTransformer(
            [("numbers", "passthrough", numbers), ("words", words, categories)]
        )
    grid = [10.0**k for k in range(-3, 5)]
    last = len(categories)
    trees: dict[str, Any] = {"random_state": seed}
    models: dict[str, Callable[[], Any]] = {
        "linear": lambda: (
            LogisticRegressionCV(Cs=10, cv=5, max_iter=500) if classes else RidgeCV(grid)
        ),
        "MLP": lambda: (MLPClassifier if classes else MLPRegressor)(
            early_stopping=True, random_state=seed
        ),
        "boosting": lambda: (
            HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor
        )(categorical_features=list(range(len(numbers), len(numbers) + last)) or None, **trees),
        "forest": lambda: (RandomForestClassifier if classes else RandomForestRegressor)(**trees),
    }
    return make_pipeline(change, models[method]())


def of_peer(method: str, made: Made, train: Any, test: Any, seed: int) -> float:
    """The score of one of scikit-learn's methods."""
    columns, target, score = made
    x, numbers, categories = prepared(columns)
    y = np.array(target)
    model = peer(
        method, "regression" if score == "r2" else "classification", seed, numbers, categories
    )
    model.fit(x[train], y[train])
    if score == "auc":
        return float(roc_auc_score(y[test], model.predict_proba(x[test])[:, 1]))
    return float(model.score(x[test], y[test]))


def of_chainrule(effort: str, made: Made, train: Any, test: Any, seed: int) -> float:
    """The score of what ``chainrule fit`` does with the same rows."""
    columns, target, score = made
    task = "regression" if score == "r2" else "classification"
    table = Table.from_dict({**columns, "target": target})
    settings = Settings(effort=effort, seed=seed)
    labels = None if task == "regression" else np.array(target)[train]
    own, held = train_test_split(
        train, test_size=settings.validation_size / 0.8, random_state=seed, stratify=labels
    )
    rows = (own.tolist(), held.tolist(), test.tolist())
    parts = encode(table, Choice(("target",), task), rows, indices=True)
    with fork_rng():
        manual_seed(seed)
        model = make_network(parts, settings)
        learned = train_network(model, parts, settings, progress=False)
    output, truth = learned.predict(parts.test[0]).numpy(), parts.test[1].numpy()
    if score == "auc":
        return float(roc_auc_score(truth, output[:, 1] - output[:, 0]))
    if score == "accuracy":
        return float((output.argmax(1) == truth).mean())
    return float(1 - ((output - truth) ** 2).sum() / ((truth - truth.mean()) ** 2).sum())


def measured(name: str, method: str, seed: int) -> dict[str, float]:
    """Score and CPU seconds of a method on a table."""
    made = TABLES[name]()
    rows, labels = np.arange(len(made[1])), None if made[2] == "r2" else made[1]
    train, test = train_test_split(rows, test_size=0.2, random_state=seed, stratify=labels)
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if method.startswith("chainrule"):
            effort = "high" if method.endswith("high") else "normal"
            score = of_chainrule(effort, made, train, test, seed)
        else:
            score = of_peer(method, made, train, test, seed)
    return {"score": score, "seconds": time.process_time() - began}


# --- results --------------------------------------------------------------------------------------

Results = dict[str, dict[str, list[dict[str, float]]]]  # by table and method, one for each seed


def run(
    names: Sequence[str], methods: Sequence[str], seeds: Sequence[int], keep: Path | None
) -> Results:
    """All measurements; those that ``keep`` holds are not made again."""
    results: Results = json.loads(keep.read_text()) if keep and keep.exists() else {}
    for name in names:
        for method in methods:
            done = results.setdefault(name, {}).setdefault(method, [])
            for seed in seeds[len(done) :]:
                done.append(measured(name, method, seed))
                if keep:
                    keep.write_text(json.dumps(results))
        print(_row(name, results[name], methods), flush=True)
    return results


def _mean(rows: list[dict[str, float]], what: str = "score") -> float:
    return statistics.fmean(row[what] for row in rows)


def _row(name: str, found: dict[str, list[dict[str, float]]], methods: Sequence[str]) -> str:
    scores = {m: _mean(found[m]) for m in methods}
    best = max(scores.values())
    cells = [f"**{v:.3f}**" if v > best - 5e-4 else f"{v:.3f}" for v in scores.values()]
    kind = "R2" if TABLES[name]()[2] == "r2" else TABLES[name]()[2]
    return f"| {name} | {kind} | " + " | ".join(cells) + " |"


def ranks(scores: dict[str, float]) -> dict[str, float]:
    """1 for the best; equal ones (to three digits) share the mean of their places."""
    rounded = {m: round(v, 3) for m, v in scores.items()}
    above = {m: sum(w > v for w in rounded.values()) for m, v in rounded.items()}
    equal = {m: sum(w == v for w in rounded.values()) for m, v in rounded.items()}
    return {m: 1 + above[m] + (equal[m] - 1) / 2 for m in scores}


def summary(results: Results, methods: Sequence[str]) -> dict[str, dict[str, float]]:
    """For each method: mean rank, mean distance to the best score, to the linear one, seconds."""
    tables = [{m: _mean(found[m]) for m in methods} for found in results.values()]
    told = {}
    for m in methods:
        seconds = [_mean(found[m], "seconds") for found in results.values()]
        base = [_mean(found["MLP"], "seconds") for found in results.values()]
        told[m] = {
            "rank": statistics.fmean(ranks(t)[m] for t in tables),
            "loss": statistics.fmean(max(t.values()) - t[m] for t in tables),
            "below linear": max(t["linear"] - t[m] for t in tables),
            "seconds": sum(seconds),
            "times the MLP": sum(seconds) / sum(base),
            "ratio": statistics.geometric_mean([s / b for s, b in zip(seconds, base, strict=True)]),
        }
    return told


def page(results: Results, methods: Sequence[str], seeds: int) -> str:
    """What docs/tables.md says between its marks."""
    told = summary(results, methods)
    lines = [
        f"{len(results)} tables, {seeds} seeds each.",
        "",
        "| method | mean rank | mean distance to the best | most below linear | CPU seconds, all "
        "tables | times the MLP | mean ratio to the MLP |",
        "|---|---|---|---|---|---|---|",
    ]
    for m in sorted(methods, key=lambda m: told[m]["rank"]):
        t = told[m]
        lines.append(
            f"| {m} | {t['rank']:.2f} | {t['loss']:.4f} | {t['below linear']:+.3f} | "
            f"{t['seconds']:.1f} | {t['times the MLP']:.2f} | {t['ratio']:.2f} |"
        )
    lines += ["", *_beaten(results, methods), ""]
    lines += [f"| table | score | {' | '.join(methods)} |", "|---" * (len(methods) + 2) + "|"]
    lines += [_row(name, found, methods) for name, found in results.items()]
    return "\n".join(lines)


def _beaten(results: Results, methods: Sequence[str]) -> list[str]:
    """Where the network of the effort normal is not the best, in words."""
    worse = []
    for name, found in results.items():
        scores = {m: _mean(found[m]) for m in methods if m != "chainrule high"}
        best = max(scores, key=lambda m: scores[m])
        behind = scores[best] - scores["chainrule"]
        if behind > 0.005:
            worse.append(f"{name} ({best}, by {behind:.3f})")
    if not worse:
        return ["No other method is ahead of chainrule by more than 0.005 on any table."]
    return [f"Ahead of chainrule (normal) by more than 0.005: {', '.join(worse)}."]


def write_page(text: str, path: Path = PAGE) -> None:
    """Replaces what is between the marks of the page."""
    begin, end = "<!-- results -->\n", "<!-- end -->"
    before, rest = path.read_text().split(begin)
    path.write_text(f"{before}{begin}\n{text}\n\n{end}{rest.split(end)[1]}")


def main(arguments: Sequence[str] | None = None) -> dict[str, dict[str, float]]:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="six small tables, two seeds")
    parser.add_argument("--tables", nargs="+", choices=TABLES, metavar="NAME", help="only these")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS, metavar="NAME")
    parser.add_argument("--seeds", type=int, help="how many (5)")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="results, kept as they come")
    options = parser.parse_args(arguments)
    names = options.tables or (QUICK if options.quick else tuple(TABLES))
    seeds = options.seeds or (2 if options.quick else 5)
    results = run(names, options.methods, range(seeds), options.keep)
    if not {"linear", "MLP", "chainrule"} <= set(options.methods):
        return {}
    told = page(results, options.methods, seeds)
    print("\n" + told)
    if tuple(names) == tuple(TABLES) and tuple(options.methods) == METHODS and seeds == 5:
        write_page(told)
        print(f"\nwritten into {PAGE}")
    return summary(results, options.methods)


if __name__ == "__main__":
    main()

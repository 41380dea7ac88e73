"""Held-out scores on the embedded tables, beside scikit-learn's MLP and a tuned linear model.

    python examples/tables.py                 (needs scikit-learn; about a minute)

Every method sees the same splits: five seeds, 80 % for training, 20 % for the score: accuracy, or
R2 for numbers.
"""

from __future__ import annotations

import statistics
import warnings
from collections.abc import Sequence
from typing import Any

from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegressionCV, RidgeCV
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from chainrule import data
from chainrule.estimators import NetworkClassifier, NetworkRegressor

TABLES = ("iris", "wine", "breast_cancer", "digits", "diabetes")


def methods(task: str, seed: int) -> dict[str, Any]:
    """The estimators; both networks with the same settings."""
    common: dict[str, Any] = {
        "hidden_layer_sizes": (64, 64),
        "max_iter": 300,
        "alpha": 1.0,
        "random_state": seed,
    }
    if task == "classification":
        return {
            "chainrule": NetworkClassifier(**common),
            "scikit-learn MLP": MLPClassifier(**common),
            "tuned linear": LogisticRegressionCV(Cs=10, cv=5, max_iter=2000),
        }
    return {
        "chainrule": NetworkRegressor(**common),
        "scikit-learn MLP": MLPRegressor(**common),
        "tuned linear": RidgeCV(alphas=[10.0**k for k in range(-3, 4)]),
    }


def scores(name: str, seeds: Sequence[int]) -> dict[str, list[float]]:
    """The held-out score of each method for each seed."""
    table = data.embedded(name)
    x, y = table.tensors()
    found: dict[str, list[float]] = {}
    for seed in seeds:
        stratify = y if table.task == "classification" else None
        parts = data.train_test_split(x, y, test_size=0.2, random_state=seed, stratify=stratify)
        x_train, x_test, y_train, y_test = (p.numpy() for p in parts)
        for label, estimator in methods(table.task, seed).items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                warnings.simplefilter("ignore", FutureWarning)
                fitted = make_pipeline(StandardScaler(), estimator).fit(x_train, y_train)
            found.setdefault(label, []).append(float(fitted.score(x_test, y_test)))
    return found


def main(names: Sequence[str] = TABLES, seeds: Sequence[int] = range(5)) -> dict[str, Any]:
    labels = ("chainrule", "scikit-learn MLP", "tuned linear")
    print(f"{'table':<15}" + "".join(f"{label:>22}" for label in labels))
    results = {}
    for name in names:
        results[name] = scores(name, seeds)
        cells = [
            f"{statistics.mean(v):.3f} +- {statistics.stdev(v) if len(v) > 1 else 0:.3f}"
            for v in (results[name][label] for label in labels)
        ]
        print(f"{name:<15}" + "".join(f"{cell:>22}" for cell in cells), flush=True)
    return results


if __name__ == "__main__":
    main()

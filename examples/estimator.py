"""A network as a scikit-learn estimator: in a pipeline, in a grid search, on a data frame.

python examples/estimator.py        (needs scikit-learn)
"""

from __future__ import annotations

from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from chainrule import data
from chainrule.estimators import NetworkClassifier


def main() -> float:
    x, y = (t.numpy() for t in data.embedded("wine").tensors())
    x_train, x_test, y_train, y_test = train_test_split(x, y, stratify=y, random_state=0)
    network = NetworkClassifier(
        hidden_layer_sizes=(32,), learning_rate_init=0.01, max_iter=300, tol=1e-3, random_state=0
    )
    search = GridSearchCV(
        make_pipeline(StandardScaler(), network),
        {
            "networkclassifier__dropout": [0.0, 0.2],
            "networkclassifier__activation": ["relu", "tanh"],
        },
        cv=3,
    )
    search.fit(x_train, y_train)
    score = float(search.score(x_test, y_test))
    print(f"best of {len(search.cv_results_['params'])} settings: {search.best_params_}")
    print(f"held-out accuracy {score:.4f}")
    return score


if __name__ == "__main__":
    main()

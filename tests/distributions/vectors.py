"""The records of the families of vectors and matrices."""

from __future__ import annotations

import numpy as np
from scipy import stats

from distributions.record import Family

__all__ = ["VECTORS"]

A = np.array
PROBS = A([[0.1, 0.2, 0.7], [0.5, 0.4, 0.1]])
LOC = A([[0.0, 1.0, -1.0], [0.5, 0.0, 2.0]])
FACTOR = A([[[1.0, 0.0, 0.0], [0.5, 0.8, 0.0], [-0.3, 0.2, 1.5]], np.diag([0.5, 1.0, 2.0])])
COVARIANCE = FACTOR @ FACTOR.transpose(0, 2, 1)
LOW_RANK = A([[[1.0], [0.5], [-1.0]], [[0.3], [0.0], [2.0]]])
DIAGONAL = A([[0.5, 1.0, 1.5], [1.0, 0.2, 0.7]])
SIMPLEX = "must satisfy simplex, got"
DEFINITE = r"must satisfy positive_definite, got \[\[1.0, 2.0\], \[2.0, 1.0\]\]"
INDEFINITE = A([[1.0, 2.0], [2.0, 1.0]])

VECTORS = [
    Family(
        "Dirichlet",
        {"concentration": A([[0.5, 1.0, 2.0], [5.0, 3.0, 8.0]])},
        lambda concentration: stats.dirichlet(concentration),
        bad=[
            ({"concentration": A([1.0, 0.0])}, r"concentration must satisfy .*, got \[1.0, 0.0\]"),
            ({"concentration": A(1.0)}, "concentration must have a dimension"),
        ],
        outside=[0.5, 0.6, 0.1],
    ),
    Family(
        "OneHotCategorical",
        {"probs": PROBS},
        lambda probs: stats.multinomial(1, probs),
        bad=[({"probs": A([-1.0, 2.0])}, f"probs {SIMPLEX}")],
        outside=[1.0, 1.0, 0.0],
    ),
    Family(
        "OneHotCategoricalStraightThrough",
        {"logits": np.log(PROBS)},
        lambda logits: stats.multinomial(1, np.exp(logits)),
        exact=False,
        outside=[0.5, 0.5, 0.0],
    ),
    Family(
        "Multinomial",
        {"total_count": 7, "probs": PROBS},
        lambda total_count, probs: stats.multinomial(total_count, probs),
        bad=[({"probs": A([-1.0, 2.0])}, f"probs {SIMPLEX}")],
        outside=[1.0, 1.0, 0.0],
        torch_rtol=1e-6,
    ),
    Family(
        "RelaxedOneHotCategorical",
        {"temperature": A(0.7), "probs": PROBS},
        bad=[
            ({"temperature": A(1.0), "probs": A([-1.0, 2.0])}, f"probs {SIMPLEX}"),
            ({"temperature": A(-1.0), "probs": PROBS}, "temperature must satisfy greater_than"),
        ],
        fixed=("temperature",),
        outside=[0.5, 0.6, 0.1],
    ),
    Family(
        "LogisticNormal",
        {"loc": LOC, "scale": A([[1.0, 0.5, 0.3], [0.4, 2.0, 1.0]])},
        bad=[({"loc": A([0.0]), "scale": A([-1.0])}, "LogisticNormal: the parameter scale must")],
        outside=[0.5, 0.6, 0.1, 0.2],
        total=False,  # there is no such vector to be inverted
    ),
    Family(
        "MultivariateNormal",
        {"loc": LOC, "scale_tril": FACTOR},
        lambda loc, scale_tril: stats.multivariate_normal(loc, scale_tril @ scale_tril.T),
        bad=[
            ({"loc": LOC}, "expected exactly one of covariance_matrix, precision_matrix, scale_"),
            (
                {"loc": LOC[:, :2], "scale_tril": -np.eye(2)},
                "scale_tril must satisfy lower_cholesky, got",
            ),
            ({"loc": A(0.0), "scale_tril": np.eye(1)}, "loc must have a dimension"),
            ({"loc": LOC, "scale_tril": A([1.0])}, "must have two dimensions or more"),
        ],
        outside=[float("nan"), 0.0, 0.0],
    ),
    Family(
        "MultivariateNormal",
        {"loc": LOC, "covariance_matrix": COVARIANCE},
        lambda loc, covariance_matrix: stats.multivariate_normal(loc, covariance_matrix),
        bad=[({"loc": LOC[:, :2], "covariance_matrix": INDEFINITE}, DEFINITE)],
        fixed=("covariance_matrix",),
        note="covariance",
    ),
    Family(
        "MultivariateNormal",
        {"loc": LOC, "precision_matrix": np.linalg.inv(COVARIANCE)},
        lambda loc, precision_matrix: stats.multivariate_normal(
            loc, np.linalg.inv(precision_matrix)
        ),
        bad=[({"loc": LOC[:, :2], "precision_matrix": INDEFINITE}, DEFINITE)],
        fixed=("precision_matrix",),
        note="precision",
    ),
    Family(
        "LowRankMultivariateNormal",
        {"loc": LOC, "cov_factor": LOW_RANK, "cov_diag": DIAGONAL},
        lambda loc, cov_factor, cov_diag: stats.multivariate_normal(
            loc, cov_factor @ cov_factor.T + np.diag(cov_diag)
        ),
        bad=[
            (
                {"loc": LOC, "cov_factor": LOW_RANK, "cov_diag": -DIAGONAL},
                "cov_diag must satisfy independent",
            ),
            (
                {"loc": LOC[:, :2], "cov_factor": LOW_RANK, "cov_diag": DIAGONAL},
                r"expected loc \(..., D\), cov_factor \(..., D, R\) and cov_diag",
            ),
        ],
        outside=[float("nan"), 0.0, 0.0],
    ),
    Family(
        "Wishart",
        {"df": A([4.0, 7.5]), "scale_tril": FACTOR},
        lambda df, scale_tril: stats.wishart(df, scale_tril @ scale_tril.T),
        bad=[
            ({"df": 1.0, "scale_tril": FACTOR}, r"df must satisfy greater_than\(lower_bound=2\)"),
            ({"df": 3.0, "covariance_matrix": INDEFINITE}, DEFINITE),
            ({"df": 3.0}, "expected exactly one of covariance_matrix"),
        ],
        by_value=False,
        outside=(-np.eye(3)).tolist(),
        total=False,
    ),
    Family(
        "Wishart",
        {"df": A([4.0, 7.5]), "covariance_matrix": COVARIANCE},
        lambda df, covariance_matrix: stats.wishart(df, covariance_matrix),
        fixed=("covariance_matrix",),
        by_value=False,
        note="covariance",
    ),
    Family(
        "LKJCholesky",
        {"dim": 3, "concentration": A([0.5, 1.0, 4.0])},
        bad=[
            ({"dim": 3, "concentration": 0.0}, "concentration must satisfy greater_than"),
            ({"dim": 1}, "dim must be an integer of at least 2, got 1"),
        ],
        outside=np.ones((3, 3)).tolist(),
    ),
]

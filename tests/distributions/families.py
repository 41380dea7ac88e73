"""The records of all families."""

from __future__ import annotations

import numpy as np
from scipy import stats

from distributions.record import Family

__all__ = ["ALL", "BY_LABEL"]

A = np.array
POSITIVE = r"must satisfy greater_than\(lower_bound=0.0\)"

# --- on the line ----------------------------------------------------------------------------------

LINE = [
    Family(
        "Normal",
        {"loc": A([0.0, -1.5, 3.0]), "scale": A([1.0, 0.3, 2.0])},
        lambda loc, scale: stats.norm(loc, scale),
        bad=[
            ({"loc": 0.0, "scale": -1.0}, f"Normal: the parameter scale {POSITIVE}, got -1.0"),
            ({"loc": float("nan"), "scale": 1.0}, "parameter loc must satisfy real, got nan"),
        ],
        outside=float("nan"),
    ),
    Family(
        "Laplace",
        {"loc": A([0.0, -1.5, 3.0]), "scale": A([1.0, 0.3, 2.0])},
        lambda loc, scale: stats.laplace(loc, scale),
        bad=[({"loc": 0.0, "scale": 0.0}, f"Laplace: the parameter scale {POSITIVE}, got 0.0")],
        outside=float("nan"),
    ),
    Family(
        "Cauchy",
        {"loc": A([0.0, -1.5, 3.0]), "scale": A([1.0, 0.3, 2.0])},
        lambda loc, scale: stats.cauchy(loc, scale),
        bad=[({"loc": 0.0, "scale": 0.0}, f"Cauchy: the parameter scale {POSITIVE}, got 0.0")],
        outside=float("nan"),
    ),
]

# --- on a part of it ------------------------------------------------------------------------------

HALF_LINE = [
    Family(
        "Exponential",
        {"rate": A([0.5, 1.0, 4.0])},
        lambda rate: stats.expon(scale=1 / rate),
        bad=[({"rate": -2.0}, f"Exponential: the parameter rate {POSITIVE}, got -2.0")],
        outside=-1.0,
    ),
]
INTERVAL = [
    Family(
        "Uniform",
        {"low": A([0.0, -1.0, 2.0]), "high": A([1.0, 3.0, 2.5])},
        lambda low, high: stats.uniform(low, high - low),
        bad=[({"low": 1.0, "high": 0.5}, r"high must satisfy greater_than\(lower_bound=1.0\)")],
        outside=7.0,
    ),
]

ALL = [*LINE, *HALF_LINE, *INTERVAL]
BY_LABEL = {family.label: family for family in ALL}

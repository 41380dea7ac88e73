"""Tables of numbers."""

from __future__ import annotations

import numpy as np


def numbers(n: int = 40, d: int = 5, seed: int = 0) -> np.ndarray:
    """Correlated columns of different sizes."""
    r = np.random.default_rng(seed)
    return r.normal(size=(n, d)) @ r.normal(size=(d, d)) * 10.0 ** np.arange(d) + np.arange(d)

"""Records of special functions that are no public operations: those of the test problems."""

from __future__ import annotations

import numpy as np
from scipy import special

from chainrule import problems
from samples.record import Sample, uniform


def radial(x: np.ndarray) -> np.ndarray:
    r, half = np.linalg.norm(x, axis=-1), x.shape[-1] / 2
    return (0.2 / r) ** half * special.jv(half, 2 * np.pi * 0.2 * r)


NAME = f"problems.{problems.radial_function.__name__}"
SAMPLES = [
    Sample(NAME, uniform(0.5, 5.0, 4, d), reference=radial, torch="", note=f"{d}d") for d in (2, 3)
]

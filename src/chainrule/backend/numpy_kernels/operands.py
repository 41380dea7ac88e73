"""What kernels take and return, where it is not simply an array."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

Operand: TypeAlias = np.ndarray | np.generic | int | float | complex
# NumPy gives a number of its own, not an array, for a result without dimensions.
Result: TypeAlias = np.ndarray | np.generic

"""Products of matrices and convolutions of float32, as exact as was asked for.

See ``backend/precision.py``. Sums are of float32 numbers, whatever the operands are rounded to.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from chainrule.backend import precision

__all__ = ["Convolving", "matmul", "product"]

Array = Any
ROUNDED = jax.lax.Precision.DEFAULT
PRECISIONS = {"highest": jax.lax.Precision.HIGHEST, "high": jax.lax.Precision.HIGH}


def _way(level: str, *operands: Array) -> tuple[Any, Any]:
    """The type that operands are rounded to (None: none), and XLA's precision."""
    exact = PRECISIONS["highest"]
    if any([a.dtype.kind == "c" for a in operands]):
        return None, PRECISIONS.get(level, exact)
    if any([a.dtype != np.float32 for a in operands]):
        return None, exact
    rounded = precision.current().operands
    if rounded is None and level == "medium":
        rounded = jnp.bfloat16
    return (rounded, ROUNDED) if rounded is not None else (None, PRECISIONS[level])


def _multiplied(a: Array, b: Array, level: str) -> Array:
    rounded, how = _way(level, a, b)
    if rounded is None:
        return jnp.matmul(a, b, precision=how)
    return jnp.matmul(
        a.astype(rounded), b.astype(rounded), precision=how, preferred_element_type=np.float32
    )


def matmul(a: Array, b: Array) -> Array:
    """a @ b, by the level of products of matrices."""
    return _multiplied(a, b, precision.current().matmul)


def product(a: Array, b: Array) -> Array:
    """a @ b inside a recurrent layer."""
    return _multiplied(a, b, precision.current().layers)


class Convolving:
    """How two arrays are convolved: what they are rounded to, and XLA's precision.

    What comes out has the type of the rounded operands, in which convolutions on GPUs hand it on;
    ``back`` gives it the type of the arrays.
    """

    def __init__(self, a: Array, b: Array):
        self.rounded, self.how = _way(precision.current().layers, a, b)
        self.type = a.dtype

    def given(self, a: Array) -> Array:
        """An operand."""
        return a if self.rounded is None else a.astype(self.rounded)

    def back(self, out: Array) -> Array:
        """A result."""
        return out if self.rounded is None else out.astype(self.type)

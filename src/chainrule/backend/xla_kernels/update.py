"""Updates of parameters: one call for all arrays of an optimizer's step.

These return the new arrays: those of JAX do not change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from chainrule.backend.xla_kernels.memory import narrowed, widened
from chainrule.backend.xla_kernels.rearrange import view_as_complex, view_as_real

__all__ = [
    "all_finite",
    "norm_of_all",
    "total_norm",
    "write_clamped",
    "write_clipped",
    "write_scaled",
    "write_updates",
]

Array = Any


def write_updates(
    rule: Callable[..., Sequence[Any]],
    params: Sequence[Array],
    grads: Sequence[Array],
    rates: Any,
    states: Sequence[Sequence[Array]],
    constants: dict[str, Any],
) -> tuple[list[Array], list[list[Array]]]:
    """``rule(p, g, lr, *states, **constants) -> (new p, *new states)`` of many arrays.

    The new parameters, and a list for each state.
    """
    rows = []
    one = not isinstance(rates, (list, tuple))
    for i, (p, g) in enumerate(zip(params, grads, strict=True)):
        given = (p, g, *[column[i] for column in states])
        rows.append(_updated(rule, given, rates if one else rates[i], constants))
    return [row[0] for row in rows], [[row[k + 1] for row in rows] for k in range(len(states))]


def _updated(rule: Any, row: Sequence[Array], rate: Any, constants: dict[str, Any]) -> list[Array]:
    """One parameter and its states; complex numbers as pairs of real ones."""
    dtype, is_complex = row[0].dtype, row[0].dtype.kind == "c"
    # Numbers that a program takes are of 64 bits; those of Python take the type of the parameters.
    real = np.dtype(f"f{max(row[0].dtype.itemsize // (2 if is_complex else 1), 4)}")
    rate = _in_type(rate, real)
    constants = {name: _in_type(value, real) for name, value in constants.items()}
    if is_complex:
        row = [view_as_real(a) for a in row]
        rate = view_as_real(rate.real) if getattr(rate, "ndim", 0) else rate
    p, g, *rest = [widened(jnp.asarray(a)) for a in row]
    new = [jnp.asarray(a) for a in rule(p, g, rate, *rest, **constants)]
    if is_complex:
        return [view_as_complex(a) for a in new]
    # A number of a schedule may be float64: parameters keep their type.
    return [narrowed(a, dtype).reshape(p.shape) for a in new]


def _in_type(value: Any, dtype: np.dtype) -> Any:
    """Numbers of Python's stay what they are, also where they are arguments of a program."""
    is_number = getattr(value, "ndim", 1) == 0 and value.dtype == np.float64
    is_literal = getattr(value, "weak_type", False)
    return value.astype(dtype) if is_number and not is_literal else value


# Arrays up to this size are looked at together: a reduction of its own takes two kernels on a GPU,
# some microseconds each.
SMALL = 1 << 20


def all_finite(arrays: Sequence[Array]) -> Array:
    """Whether no element of any array is NaN or infinite."""
    found = [jnp.all(jnp.isfinite(a)) for a in arrays if a.size > SMALL]
    small = [a for a in arrays if 0 < a.size <= SMALL]
    for dtype in dict.fromkeys([a.dtype for a in small]):
        flat = jnp.concatenate([a.reshape(-1) for a in small if a.dtype == dtype])
        found.append(jnp.all(jnp.isfinite(flat)))
    return jnp.all(jnp.stack(found)) if found else jnp.ones((), bool)


def norm_of_all(arrays: Sequence[Array], order: float, dtype: Any, total_norm: Any) -> Array:
    """The norm of all arrays as if they were one vector, as an array of this dtype."""
    return _norm(arrays, order).astype(dtype)


def total_norm(arrays: Sequence[Array], order: float) -> float:
    """The norm of all arrays as if they were one vector, of order 2 or infinity."""
    return float(_norm(arrays, order))


def _norm(arrays: Sequence[Array], order: float) -> Array:
    flat = [widened(a).reshape(-1) for a in arrays if a.size]
    if not flat:
        return jnp.zeros((), np.float64)
    sizes = [jnp.max(jnp.abs(a)).astype(np.float64) for a in flat]
    largest = jnp.max(jnp.stack(sizes))
    if order != 2:
        return largest
    # Summed in float64, where the squares of float32 numbers lie.
    squares = [jnp.sum(jnp.square(jnp.abs(a).astype(np.float64))) for a in flat]
    return jnp.sqrt(sum(squares))


def write_scaled(arrays: Sequence[Array], factor: Any) -> list[Array]:
    """All arrays by a number."""
    return [(a * factor).astype(a.dtype) for a in arrays]


def write_clamped(arrays: Sequence[Array], low: float, high: float) -> list[Array]:
    """All elements of all arrays moved into [low, high]."""
    return [jnp.clip(a, low, high) for a in arrays]


def write_clipped(
    arrays: Sequence[Array], norm: Array, limit: float, write_scaled: Any
) -> list[Array]:
    """All arrays by limit / (norm + 1e-6) where that is below 1."""
    factor = limit / (norm.astype(np.float64) + 1e-6)
    factor = jnp.where(factor >= 1, 1.0, factor)  # NaN then is in every array
    return [(a * factor.astype(a.dtype)).astype(a.dtype) for a in arrays]

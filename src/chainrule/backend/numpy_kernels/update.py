"""Updates of parameters: one call for all arrays of an optimizer's step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from chainrule.backend.numpy_kernels.narrow import narrowed, widened

__all__ = [
    "all_finite",
    "norm_of_all",
    "total_norm",
    "write_clamped",
    "write_clipped",
    "write_scaled",
    "write_updates",
]

# Elements that are updated at once: a dozen temporaries of this size stay in the cache.
BLOCK = 16384

# A sum of squares below this may have lost terms that are too small for float32.
SMALLEST_SQUARE = 1e-30

Rule = Callable[..., Sequence[Any]]


def write_updates(
    rule: Rule,
    params: Sequence[np.ndarray],
    grads: Sequence[np.ndarray],
    rates: float | Sequence[np.ndarray],
    states: Sequence[Sequence[np.ndarray]],
    constants: dict[str, Any],
) -> None:
    """Applies ``rule(p, g, lr, *states, **constants) -> (new p, *new states)`` to many arrays.

    float16 and bfloat16 are computed with in float32, and rounded when they are stored.

    ``states`` has a list for each state, with one array per parameter, and so has ``rates`` unless
    it is one number. All that belongs to a parameter has its dtype, and the rule works element by
    element. Small arrays are joined and updated together, large ones block by block: how many array
    operations there are depends on the number of elements, not on that of the parameters. A
    constant may be an array or tensor with one number.
    """
    constants = {k: float(v) if hasattr(v, "item") else v for k, v in constants.items()}
    lr = rates if isinstance(rates, float) else None
    given = [] if isinstance(rates, float) else [[_for_both_parts(r) for r in rates]]
    columns = [[_real(a) for a in column] for column in (params, grads, *states)]
    rows = [list(row) for row in zip(*columns[:2], *given, *columns[2:], strict=True)]
    for batch in _batches(rows):
        if len(batch) > 1:
            _update_joined(rule, batch, lr, constants)
        else:
            _update_blocks(rule, batch[0], lr, constants)


def _real(a: np.ndarray) -> np.ndarray:
    """A complex array as pairs of real numbers, which are updated like any others."""
    return a[..., None].view(a.real.dtype) if a.dtype.kind == "c" else a


def _for_both_parts(rate: np.ndarray) -> np.ndarray:
    """The rate of a complex number, for its real and its imaginary part."""
    return np.stack([rate.real, rate.real], axis=-1) if rate.dtype.kind == "c" else rate


def _batches(rows: list[list[np.ndarray]]) -> list[list[list[np.ndarray]]]:
    """Rows of one dtype in batches of at most a block of elements; a larger row stands alone."""
    batches: list[list[list[np.ndarray]]] = []
    room = 0
    for row in rows:
        if not batches or row[0].size > room or row[0].dtype != batches[-1][0][0].dtype:
            batches.append([])
            room = BLOCK
        batches[-1].append(row)
        room -= row[0].size
    return batches


def _values(rule: Rule, row: Sequence[np.ndarray], lr: float | None, constants: Any) -> Any:
    p, g, *rest = [widened(a) for a in row]
    new = rule(p, g, *rest, **constants) if lr is None else rule(p, g, lr, *rest, **constants)
    return new if p is row[0] else [narrowed(a, row[0].dtype) for a in new]


def _written(row: Sequence[np.ndarray], lr: float | None) -> Sequence[np.ndarray]:
    """The parameter and its states: all but the gradient and the rate."""
    return [row[0], *row[2 if lr is not None else 3 :]]


def _update_joined(rule: Rule, rows: Any, lr: float | None, constants: dict[str, Any]) -> None:
    joined = [np.concatenate(column, axis=None) for column in zip(*rows, strict=True)]
    values = _values(rule, joined, lr, constants)
    stop = 0
    for row in rows:
        start, stop = stop, stop + row[0].size
        for a, value in zip(_written(row, lr), values, strict=True):
            a[...] = value[start:stop].reshape(a.shape)


def _update_blocks(rule: Rule, row: Any, lr: float | None, constants: dict[str, Any]) -> None:
    size = row[0].size
    if size > BLOCK and all(a.flags.c_contiguous for a in _written(row, lr)):
        flat = [a.reshape(-1) for a in row]
        parts = [[a[i : i + BLOCK] for a in flat] for i in range(0, size, BLOCK)]
    else:
        # Operations on arrays without dimensions would return numbers instead of arrays.
        parts = [[np.atleast_1d(a) for a in row]]
    for part in parts:
        values = _values(rule, part, lr, constants)
        for a, value in zip(_written(part, lr), values, strict=True):
            a[...] = value


def all_finite(arrays: Sequence[np.ndarray]) -> bool:
    """Whether no element of any array is NaN or infinite."""
    for a in arrays:
        flat = a.reshape(-1)
        # The sum of squares is one fast pass; it may overflow where the elements do not.
        if not np.isfinite(np.vdot(flat, flat)) and not np.isfinite(flat).all():
            return False
    return True


def total_norm(arrays: Sequence[np.ndarray], order: float) -> float:
    """The norm of all arrays as if they were one vector, of order 2 or infinity."""
    flat = [widened(a).reshape(-1) for a in arrays if a.size]
    if order != 2:
        return float(np.max([np.max(np.abs(a)) for a in flat])) if flat else 0.0
    return float(np.sqrt(sum([_sum_of_squares(a) for a in flat])))


def _sum_of_squares(a: np.ndarray) -> float:
    """In the range of float64, where the squares of float32 numbers lie."""
    total = float(np.vdot(a, a))
    if a.dtype == np.float32 and not SMALLEST_SQUARE < total < np.inf:
        a = a.astype(np.float64)
        return float(np.vdot(a, a))
    return total


def write_scaled(arrays: Sequence[np.ndarray], factor: float) -> None:
    """Multiplies all arrays by a number, in place."""
    for a in arrays:
        np.multiply(a, factor, out=a)


def write_clamped(arrays: Sequence[np.ndarray], low: float, high: float) -> None:
    """Moves all elements of all arrays into [low, high], in place."""
    for a in arrays:
        np.clip(a, low, high, out=a)


def norm_of_all(
    arrays: Sequence[np.ndarray],
    order: float,
    dtype: np.dtype,
    total_norm: Callable[[Sequence[np.ndarray], float], float],
) -> np.ndarray:
    """The norm by the kernel ``total_norm`` that is in use, as an array of this dtype."""
    return np.asarray(total_norm(arrays, order), dtype)


def write_clipped(
    arrays: Sequence[np.ndarray],
    norm: np.ndarray,
    limit: float,
    write_scaled: Callable[[Sequence[np.ndarray], float], None],
) -> None:
    """Multiplies all arrays by limit / (norm + 1e-6) where that is below 1, in place.

    The last argument is the kernel ``write_scaled`` that is in use.
    """
    factor = limit / (float(norm) + 1e-6)
    if not factor >= 1:  # NaN then is in every array
        write_scaled(arrays, factor)

"""Factors as LAPACK has them, matrix by matrix: LU, LDL', Householder vectors; where it stopped."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule.backend.openblas import before_loading

__all__ = [
    "cholesky_info",
    "first_zero",
    "geqrf",
    "inverse_order",
    "ldl_factor",
    "ldl_solve",
    "lu_factors",
    "lu_info",
    "lu_pivots",
    "lu_rows",
]


def _function(name: str, a: np.ndarray) -> Callable[..., Any]:
    """LAPACK's function for the type of the elements."""
    before_loading("scipy.linalg")
    from scipy.linalg import lapack

    (found,) = lapack.get_lapack_funcs((name,), (a,))
    return found


# --- where a factorization stops ------------------------------------------------------------------


def lu_info(a: np.ndarray) -> np.ndarray:
    """The place (from 1) of the first zero on the diagonal of U for each matrix; 0 if none is."""
    out = np.zeros(a.shape[:-2], np.int32)
    if a.size:
        getrf = _function("getrf", a)
        for i in np.ndindex(a.shape[:-2]):
            out[i] = getrf(a[i])[2]
    return out


def cholesky_info(a: np.ndarray) -> np.ndarray:
    """The order of the first leading minor that is not positive for each matrix; 0 if none is."""
    out = np.zeros(a.shape[:-2], np.int32)
    if a.size:
        potrf = _function("potrf", a)
        for i in np.ndindex(a.shape[:-2]):
            factor, out[i] = potrf(a[i], lower=True)
            unknown = np.isnan(factor.diagonal())
            if not out[i] and unknown.any():
                out[i] = unknown.argmax() + 1
    return out


# --- LU -------------------------------------------------------------------------------------------


def lu_pivots(a: np.ndarray, pivot: bool) -> np.ndarray:
    """The rows (from 1) that LAPACK exchanges with row 1, 2, ... when it factors each matrix."""
    k = min(a.shape[-2:])
    out = np.empty((*a.shape[:-2], k), np.int32)
    out[...] = np.arange(1, k + 1)
    if pivot and a.size:
        getrf = _function("getrf", a)
        for i in np.ndindex(a.shape[:-2]):
            out[i] = getrf(a[i])[1] + 1
    return out


def lu_rows(pivots: np.ndarray, size: int) -> np.ndarray:
    """The order of rows that these exchanges come to."""
    out = np.empty((*pivots.shape[:-1], size), np.int64)
    out[...] = np.arange(size)
    for i in np.ndindex(pivots.shape[:-1]):
        for k, other in enumerate(pivots[i] - 1):
            out[i][[k, other]] = out[i][[other, k]]
    return out


def inverse_order(rows: np.ndarray) -> np.ndarray:
    """The order that undoes this one."""
    return np.argsort(rows, axis=-1, kind="stable")


def lu_factors(a: np.ndarray) -> np.ndarray:
    """L (without its diagonal of ones) and U of each square matrix, without exchanges of rows."""
    out = np.array(a)
    for k in range(a.shape[-1] - 1):
        pivot = out[..., k, k, None]
        column = out[..., k + 1 :, k]
        column[...] = np.where(pivot == 0, column, column / np.where(pivot == 0, 1, pivot))
        out[..., k + 1 :, k + 1 :] -= column[..., :, None] * out[..., k, None, k + 1 :]
    return out


def first_zero(a: np.ndarray) -> np.ndarray:
    """The place (from 1) of the first zero on the diagonal of each matrix; 0 if there is none."""
    zero = a.diagonal(0, -2, -1) == 0
    if not zero.shape[-1]:
        return np.zeros(a.shape[:-2], np.int32)
    return np.where(zero.any(-1), zero.argmax(-1) + 1, 0).astype(np.int32)


# --- Householder vectors --------------------------------------------------------------------------


def geqrf(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """R with the Householder vectors of Q below its diagonal, and their factors tau."""
    out = np.array(a)
    tau = np.zeros((*a.shape[:-2], min(a.shape[-2:])), a.dtype)
    if a.size:
        function = _function("geqrf", a)
        for i in np.ndindex(a.shape[:-2]):
            out[i], tau[i] = function(a[i])[:2]
    return out, tau


# --- LDL' of symmetric and Hermitian matrices -----------------------------------------------------


def ldl_factor(a: np.ndarray, hermitian: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """L and D in one matrix, the exchanges of rows, and the first zero in D (from 1, 0 if none).

    D has blocks of size 1 and 2; the exchanges of the latter are negative. The lower triangle of
    ``a`` is read.
    """
    out = np.tril(a)
    pivots = np.zeros(a.shape[:-1], np.int32)
    info = np.zeros(a.shape[:-2], np.int32)
    if a.size:
        function = _function("hetrf" if hermitian and a.dtype.kind == "c" else "sytrf", a)
        for i in np.ndindex(a.shape[:-2]):
            packed, pivots[i], info[i] = function(a[i], lower=True)
            out[i] = np.tril(packed)
    return out, pivots, info


def ldl_solve(packed: np.ndarray, pivots: np.ndarray, b: np.ndarray, hermitian: bool) -> np.ndarray:
    """The solution x of L D L' x = b from what ``ldl_factor`` returns."""
    out = np.array(b)
    for i in np.ndindex(b.shape[:-2]):
        _ldl_solve_one(packed[i], pivots[i], out[i], hermitian)
    return out


def _ldl_solve_one(packed: np.ndarray, pivots: np.ndarray, x: np.ndarray, hermitian: bool) -> None:
    """Writes the solution over the right side ``x``: by P, L and D, then back by L' and P."""
    other = packed.conj() if hermitian else packed
    blocks, k = [], 0
    while k < len(pivots):
        size = 1 if pivots[k] > 0 else 2
        blocks.append(slice(k, k + size))
        k += size
    for block in blocks:
        _exchange(x, block, pivots)
        x[block.stop :] -= packed[block.stop :, block] @ x[block]
        d = np.tril(packed[block, block])
        x[block] = np.linalg.solve(d + np.tril(other[block, block], -1).T, x[block])
    for block in reversed(blocks):
        x[block] -= other[block.stop :, block].T @ x[block.stop :]
        _exchange(x, block, pivots)


def _exchange(x: np.ndarray, block: slice, pivots: np.ndarray) -> None:
    last = block.stop - 1
    row = abs(int(pivots[last])) - 1
    x[[last, row]] = x[[row, last]]

"""Inverse Hessians from which weights can be taken out one by one.

Taking weight i out of a quadratic 1/2 dw^T H dw leaves H without row and column i, the inverse of
which is H^-1 - (H^-1 e_i)(H^-1 e_i)^T / [H^-1]_ii: here row and column i become zero. All work in
float64.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from chainrule.backend import K, dtypes
from chainrule.linalg import norm, solve_triangular
from chainrule.ops.creation.patterns import zeros
from chainrule.ops.linalg.decompositions import cholesky, eigvalsh
from chainrule.ops.shape.diagonal import diagonal
from chainrule.ops.index.reading import index_select
from chainrule.ops.linalg.matmul import matmul
from chainrule.ops.linalg.products import outer
from chainrule.ops.core.promotion import cast
from chainrule.ops.index.scatter import scatter
from chainrule.ops.linalg.solving import inverse_of as matrix_inverse
from chainrule.regularize.prune.problem import Problem
from chainrule.tensor import Tensor, of_array

__all__ = ["Blocks", "Dense", "Inverse", "LowRank", "check_memory", "inverse_of"]

METHODS = ("auto", "exact", "layerwise", "fisher")
SMALLEST = 1e-8  # eigenvalue of a Hessian that is inverted, of its largest one
GIB = 1 << 30


class Inverse:
    """An inverse Hessian, of the matrix ``damping`` I + H."""

    damping: float

    def diagonal(self) -> Tensor:
        """[H^-1]_ii for all i."""
        raise NotImplementedError

    def column(self, i: int) -> Tensor:
        """H^-1 e_i."""
        raise NotImplementedError

    def times(self, v: Tensor) -> Tensor:
        """H^-1 v."""
        raise NotImplementedError

    def hessian_times(self, v: Tensor) -> Tensor:
        """H v, without damping and with all weights."""
        raise NotImplementedError

    def take_out(self, i: int) -> None:
        """Forgets weight i."""
        raise NotImplementedError

    def error(self) -> float:
        """The norm of I - H^-1 H (Frobenius) over that of I, before anything was taken out."""
        raise NotImplementedError


class Dense(Inverse):
    """The inverse of a whole matrix H.

    ``damping`` I is added; to a matrix that is singular or not positive definite at least as much
    as lifts the smallest eigenvalue to 1e-8 of the largest. If the inverse is still inaccurate, its
    :meth:`error` above ``beta``, there is ten times more of it.
    """

    def __init__(self, hessian: Tensor, damping: float | None = None, beta: float = 1e-2):
        h = cast(hessian.detach(), dtypes.float64)
        self.h = (h + h.T) / 2
        if not bool(self.h.isfinite().all()):
            raise ValueError("obs: the Hessian has entries that are not finite")
        self.damping = max(_least_damping(self.h), damping or 0.0)
        self._invert()
        largest = float(abs(self.h).amax()) or 1.0
        while not self.error() <= beta:
            self.damping = max(10 * self.damping, SMALLEST * largest)
            if self.damping > largest:
                raise RuntimeError(
                    f"obs: the inverse of the Hessian stays inaccurate, ||I - H^-1 H|| = "
                    f"{self.error():.2g} > beta = {beta:g}, with any damping; raise beta"
                )
            self._invert()

    def _invert(self) -> None:
        self.damped = self.h + self.damping * _eye(self.h.shape[0])
        self.inverse = matrix_inverse(self.damped, check=False)
        self.inverse = (self.inverse + self.inverse.T) / 2

    def error(self) -> float:
        size = int(self.h.shape[0])
        rest = _eye(size) - matmul(self.inverse, self.damped)
        return float(norm(rest)) / math.sqrt(size)

    def diagonal(self) -> Tensor:
        return diagonal(self.inverse)

    def column(self, i: int) -> Tensor:
        return self.inverse[:, i]

    def times(self, v: Tensor) -> Tensor:
        return matmul(self.inverse, v)

    def hessian_times(self, v: Tensor) -> Tensor:
        return matmul(self.h, v)

    def take_out(self, i: int) -> None:
        column = self.inverse[:, i]
        self.inverse = self.inverse - outer(column, column) / self.inverse[i, i]


class Blocks(Inverse):
    """A block of the Hessian for each weight tensor, all else taken for zero."""

    def __init__(self, parts: Sequence[tuple[Tensor, Dense]], size: int):
        self.parts, self.size = list(parts), size
        self.damping = max(block.damping for _, block in self.parts)
        self.place = {
            i: (k, j) for k, (at, _) in enumerate(self.parts) for j, i in enumerate(at.tolist())
        }

    def _put(self, pieces: Sequence[tuple[Tensor, Tensor]]) -> Tensor:
        full = zeros(self.size, dtype=dtypes.float64)
        for at, piece in pieces:
            full = scatter(full, 0, at, piece)
        return full

    def diagonal(self) -> Tensor:
        return self._put([(at, block.diagonal()) for at, block in self.parts])

    def column(self, i: int) -> Tensor:
        k, j = self.place[i]
        at, block = self.parts[k]
        return self._put([(at, block.column(j))])

    def times(self, v: Tensor) -> Tensor:
        return self._put([(at, b.times(index_select(v, 0, at))) for at, b in self.parts])

    def hessian_times(self, v: Tensor) -> Tensor:
        return self._put([(at, b.hessian_times(index_select(v, 0, at))) for at, b in self.parts])

    def take_out(self, i: int) -> None:
        k, j = self.place[i]
        self.parts[k][1].take_out(j)

    def error(self) -> float:
        return max(block.error() for _, block in self.parts)


class LowRank(Inverse):
    """The inverse of damping I + 1/N sum_n g_n g_n^T (the empirical Fisher), of rank N beside I.

    By Woodbury's formula it is (I - B^T B) / damping with B = L^-1 G, L L^T = damping N I + G G^T:
    no matrix has W rows and columns. Taking out weight i, with b = B e_i, multiplies B by a root of
    I + b b^T / (1 - b^T b) from the left.
    """

    def __init__(self, gradients: Tensor, damping: float):
        self.g = cast(gradients.detach(), dtypes.float64)
        self.damping = damping
        n = int(self.g.shape[0])
        self.n = n
        core = matmul(self.g, self.g.T) + damping * n * _eye(n)
        self.b = solve_triangular(cholesky(core), self.g, upper=False)
        self.gone: set[int] = set()
        self._error = self._measure()

    def _measure(self) -> float:
        """The error on a vector of alternating signs, the Frobenius norm being out of reach."""
        size = int(self.g.shape[1])
        v = 1.0 - 2.0 * (of_array(K.arange(0, size, 1, dtype=self.g.array.dtype)) % 2)
        rest = v - self.times(self.hessian_times(v) + self.damping * v)
        return float(norm(rest)) / math.sqrt(size)

    def error(self) -> float:
        return self._error

    def diagonal(self) -> Tensor:
        return self._without_gone((1.0 - (self.b * self.b).sum(0)) / self.damping)

    def column(self, i: int) -> Tensor:
        return self.times(_unit(i, int(self.b.shape[1])))

    def times(self, v: Tensor) -> Tensor:
        v = self._without_gone(v)
        return self._without_gone((v - matmul(self.b.T, matmul(self.b, v))) / self.damping)

    def hessian_times(self, v: Tensor) -> Tensor:
        return matmul(self.g.T, matmul(self.g, v)) / self.n

    def _without_gone(self, v: Tensor) -> Tensor:
        if not self.gone:
            return v
        at = of_array(K.asarray(sorted(self.gone)))
        return scatter(v, 0, at, zeros(len(self.gone), dtype=v.dtype, device=v.device))

    def take_out(self, i: int) -> None:
        b = self.b[:, i]
        square = float(matmul(b, b))
        rest = max(1.0 - square, 1e-12)
        if square > 0:
            factor = (1 / math.sqrt(rest) - 1) / square
            self.b = self.b + factor * outer(b, matmul(b, self.b))
        self.gone.add(i)


# --- which one ------------------------------------------------------------------------------------


def inverse_of(
    problem: Problem, method: str, damping: float | None, beta: float, memory: float
) -> Inverse:
    """The inverse Hessian of a problem by a method: see :func:`obs`."""
    if method not in METHODS:
        raise ValueError(f"{problem.op}: method must be one of {METHODS}, got {method!r}")
    if damping is not None and not damping > 0:
        raise ValueError(f"{problem.op}: damping must be None or greater than 0, got {damping}")
    if method == "auto":
        method = _method_that_fits(problem, memory)
    if method == "exact":
        check_memory(problem.op, problem.count, problem.count, memory, "the Hessian of")
        return Dense(problem.hessian(), damping, beta)
    if method == "layerwise":
        return _blocks(problem, damping, beta, memory)
    n = int(problem.inputs[0].shape[0])
    check_memory(problem.op, n, problem.count, memory, f"the gradients of {n} samples by")
    gradients = problem.sample_gradients()
    if damping is None:
        # The mean eigenvalue of the empirical Fisher matrix, a hundredth of it.
        mean = float((gradients * gradients).sum()) / (n * problem.count)
        damping = max(1e-2 * mean, 1e-12)
    return LowRank(gradients, damping)


def _blocks(problem: Problem, damping: float | None, beta: float, memory: float) -> Blocks:
    parts = []
    for weight in problem.weights:
        at = problem.positions(weight)
        if at.numel():
            what = f"the block of {weight.name!r} in the Hessian, for"
            check_memory(problem.op, at.numel(), at.numel(), memory, what)
            parts.append((at, Dense(problem.hessian(weight), damping, beta)))
    return Blocks(parts, problem.count)


def _method_that_fits(problem: Problem, memory: float) -> str:
    """The exact inverse up to 1500 weights, layer by layer up to as many in each, else Fisher."""
    most = min(1500, math.isqrt(int(memory * GIB / 32)))
    if problem.count <= most:
        return "exact"
    if all(problem.positions(w).numel() <= most for w in problem.weights):
        return "layerwise"
    return "fisher"


def check_memory(op: str, rows: int, columns: int, memory: float, what: str) -> None:
    """Raises MemoryError if a matrix, its inverse and what is between take more than ``memory``."""
    needed = 4 * 8 * rows * columns / GIB
    if needed > memory:
        raise MemoryError(
            f"{op}: {what} {columns} weights, a matrix of {rows} x {columns} numbers, would take "
            f"{needed:.3g} GiB with its inverse, more than the {memory:g} GiB of memory_limit; use "
            "method='layerwise' (a block for each weight tensor) or method='fisher' (a low-rank "
            "inverse from the gradients of some samples), prune fewer weights with where=..., or "
            "use obd, which needs the diagonal alone"
        )


def _least_damping(h: Tensor) -> float:
    """What lifts the smallest eigenvalue of a matrix to SMALLEST of the largest."""
    values = eigvalsh(h)
    low, high = float(values.amin()), float(abs(values).amax())
    if high == 0.0:
        return 1.0
    return max(0.0, SMALLEST * high - low)


def _eye(size: Any) -> Tensor:
    return of_array(K.eye(int(size), dtype=dtypes.float64.array_dtype))


def _unit(i: int, size: int) -> Tensor:
    at = of_array(K.asarray([i]))
    return scatter(zeros(size, dtype=dtypes.float64), 0, at, zeros(1, dtype=dtypes.float64) + 1.0)

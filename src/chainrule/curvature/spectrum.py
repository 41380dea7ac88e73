"""The spectrum of a symmetric matrix from its products: Lanczos' method.

``multiply`` makes of rows (S, W) the rows times the matrix, (S, W). Nothing of size (W, W) is
formed; the memory is that of the basis, a few dozen vectors.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import NamedTuple

from chainrule.backend import K, dtypes
from chainrule.curvature.estimates import Multiply, random_signs
from chainrule.curvature.memory import CHUNK_BYTES, at_once, check_matrix
from chainrule.ops.linalg.decompositions import eigh, svd
from chainrule.ops.shape.diagonal import diag, diag_embed
from chainrule.ops.elementwise.functions import exp, sqrt
from chainrule.ops.elementwise.logic import where
from chainrule.ops.linalg.matrices import vector_norm
from chainrule.ops.linalg.matmul import matmul
from chainrule.ops.reduce.reductions import sum as sum_over
from chainrule.ops.creation.sampling import Generator, randn
from chainrule.ops.shape.stacking import cat
from chainrule.tensor import Tensor
from chainrule.typing import Random

__all__ = ["Eigenpairs", "SpectralDensity", "lanczos_eigenpairs", "spectral_density"]


class Eigenpairs(NamedTuple):
    """Eigenvalues (k), eigenvectors in rows (k, W), and their residuals ||A v - value v|| (k)."""

    values: Tensor
    vectors: Tensor
    residuals: Tensor
    converged: bool
    products: int


_ORDERS = {"largest": lambda v: -v, "smallest": lambda v: v, "magnitude": lambda v: -abs(v)}


def lanczos_eigenpairs(
    multiply: Multiply,
    size: int,
    k: int,
    dtype: dtypes.dtype,
    *,
    which: str = "largest",
    tolerance: float = 1e-5,
    max_products: int | None = None,
    generator: Random = None,
) -> Eigenpairs:
    """The k eigenvalues at an end of the spectrum, by Lanczos' method with blocks and restarts.

    The basis starts with k random vectors, so that an eigenvalue is found as often as it occurs (up
    to k times). It grows by the residuals of the pairs that are not exact enough, and by what the
    matrix makes of them, all made orthogonal to the vectors before: for k = 1 that is Lanczos'
    method. When it is full, it is replaced by its best vectors (thick restart).

    Args:
        which: "largest", "smallest" (the most negative) or "magnitude" (the largest |values|).
        tolerance: a pair is exact enough if its residual is below tolerance * max |eigenvalue|. The
            error of an eigenvalue is at most its residual, and mostly of the order of its square.
        max_products: after about so many, what was found is returned with a warning and
            ``converged=False``; 40 (k + 10) unless given.

    >>> import chainrule
    >>> from chainrule import curvature
    >>> d = chainrule.arange(1.0, 101.0, dtype=chainrule.float64)
    >>> found = curvature.lanczos_eigenpairs(lambda rows: rows * d, 100, 2, chainrule.float64)
    >>> found.values, found.converged
    (tensor([100.0000,  99.0000], dtype=chainrule.float64), True)
    """
    _check_request(which, k, size, tolerance)
    most = 40 * (k + 10) if max_products is None else max_products
    fits = CHUNK_BYTES // (2 * size * dtype.itemsize)
    capacity = min(size, max(32, 5 * k, min(fits, 200)))
    check_matrix("eigenvalues", 2 * capacity, size, dtype, "Ask for fewer eigenvalues")
    start = randn(k, size, dtype=dtype, generator=generator)
    basis = _Basis(multiply, start, capacity, generator)
    while True:
        values, turn = _sorted_eigenpairs(basis.projected, which)
        vectors = matmul(turn[:, :k].mT, basis.vectors)
        errors = matmul(turn[:, :k].mT, basis.images) - values[:k, None] * vectors
        residuals = vector_norm(errors, dim=1)
        scale = float(abs(values).max())
        open_pairs = (residuals > tolerance * scale).nonzero()[:, 0]
        complete = len(basis) == size
        if open_pairs.numel() == 0 or complete or basis.products >= most:
            break
        if len(basis) + open_pairs.numel() > capacity and capacity < size:
            basis.restart(values, turn, k + (capacity - 2 * k) // 3)
        basis.grow(errors[open_pairs])
    converged = open_pairs.numel() == 0 or complete
    if not converged:
        warnings.warn(
            f"eigenvalues: after {basis.products} products {open_pairs.numel()} of {k} pairs have "
            f"a residual above {tolerance:g} of the largest eigenvalue {scale:g} (the worst "
            f"{float(residuals.max()):.2g}); raise max_products or the tolerance",
            RuntimeWarning,
            stacklevel=3,
        )
    return Eigenpairs(values[:k], vectors, residuals, converged, basis.products)


class _Basis:
    """Orthonormal vectors in rows, what the matrix makes of them, and the matrix between them."""

    def __init__(self, multiply: Multiply, rows: Tensor, capacity: int, generator: Random):
        self._multiply, self._capacity, self._generator = multiply, capacity, generator
        self.vectors = _orthonormal(rows, None, generator)
        self.images = multiply(self.vectors)
        self.projected = matmul(self.vectors, self.images.mT)
        self.products = len(self)

    def __len__(self) -> int:
        return int(self.vectors.shape[0])

    def restart(self, values: Tensor, turn: Tensor, kept: int) -> None:
        """Goes on with the best vectors alone, between which the matrix is diagonal."""
        turn = turn[:, :kept].mT
        self.vectors, self.images = matmul(turn, self.vectors), matmul(turn, self.images)
        self.projected = diag(values[:kept])

    def grow(self, rows: Tensor) -> None:
        """Takes in some vectors, and what the matrix makes of them, as far as there is room."""
        for _ in range(1 + len(self) // 32):  # several, where the projected matrix is large
            rows = rows[: self._capacity - len(self)]
            if rows.shape[0] == 0:
                break
            new = _orthonormal(rows, self.vectors, self._generator)
            rows = self._multiply(new)
            self.products += int(new.shape[0])
            corner, side = matmul(new, rows.mT), matmul(self.vectors, rows.mT)
            above, below = cat([self.projected, side], 1), cat([side.mT, corner], 1)
            self.projected = cat([above, below])
            self.vectors, self.images = cat([self.vectors, new]), cat([self.images, rows])


def _check_request(which: str, k: int, size: int, tolerance: float) -> None:
    if which not in _ORDERS:
        raise ValueError(f"eigenvalues: which must be one of {[*_ORDERS]}, got {which!r}")
    if not 1 <= k <= size:
        raise ValueError(f"eigenvalues: k must lie between 1 and {size}, the parameters, got {k}")
    if not tolerance > 0:
        raise ValueError(f"eigenvalues: tolerance should be greater than 0, got {tolerance}")


def _sorted_eigenpairs(matrix: Tensor, which: str) -> tuple[Tensor, Tensor]:
    """The eigenvalues of a small matrix, the wanted first, and the eigenvectors in columns."""
    values, vectors = eigh((matrix + matrix.mT) / 2)
    order = _ORDERS[which](values).argsort()
    return values[order], vectors[:, order]


def _orthonormal(rows: Tensor, basis: Tensor | None, generator: Generator | None) -> Tensor:
    """Orthonormal rows that span the given ones outside the space of the basis.

    Random directions instead if nothing is left: the basis holds a space that the matrix maps to
    itself, and other eigenvectors lie outside of it.
    """
    for attempt in range(3):
        if attempt > 0:
            rows = randn(rows.shape, dtype=rows.dtype, device=rows.device, generator=generator)
        lengths = vector_norm(rows, dim=1)
        rows = rows[lengths > 0] / lengths[lengths > 0][:, None]
        before = rows
        for _ in range(2):  # the second time removes what rounding left
            rows = _outside(rows, basis)
        # What is left of a unit vector that lies in the space is noise.
        rows = rows[vector_norm(rows, dim=1) > 100 * K.rounding_error(rows.array.dtype)]
        if rows.shape[0] == 0:
            rows = before
            continue
        rows = rows / vector_norm(rows, dim=1)[:, None]
        _, s, vh = svd(rows, full_matrices=False)
        rows = _outside(vh[s > 1e-3 * s[0]], basis)
        return rows / vector_norm(rows, dim=1)[:, None]
    raise RuntimeError("eigenvalues: the basis spans the whole space but was not recognized so")


def _outside(rows: Tensor, basis: Tensor | None) -> Tensor:
    return rows if basis is None else rows - matmul(matmul(rows, basis.mT), basis)


# --- the density of all eigenvalues ---------------------------------------------------------------


@dataclass(frozen=True)
class SpectralDensity:
    """Where the eigenvalues lie: points and the share of the spectrum that each stands for.

    ``nodes`` and ``weights`` are (samples, steps); the weights of a sample add up to 1.
    """

    nodes: Tensor
    weights: Tensor

    def __call__(self, x: Tensor, width: float) -> Tensor:
        """The density at x, with each node spread as a normal distribution of this width."""
        if not width > 0:
            raise ValueError(f"SpectralDensity: width should be greater than 0, got {width}")
        z = (x[..., None, None] - self.nodes) / width
        bells = exp(-z * z / 2) / (width * math.sqrt(2 * math.pi))
        return sum_over(self.weights * bells, (-1, -2)) / self.nodes.shape[0]

    def share(self, low: float, high: float) -> float:
        """The share of the eigenvalues between two values."""
        inside = (self.nodes >= low) & (self.nodes <= high)
        return float(sum_over(where(inside, self.weights, 0.0))) / self.nodes.shape[0]

    def moment(self, power: int) -> float:
        """The mean of the eigenvalues to a power: exact in expectation up to 2 steps - 1."""
        return float(sum_over(self.weights * self.nodes**power)) / self.nodes.shape[0]


def spectral_density(
    multiply: Multiply,
    size: int,
    dtype: dtypes.dtype,
    *,
    samples: int = 10,
    steps: int = 30,
    generator: Random = None,
) -> SpectralDensity:
    """The density of the eigenvalues by stochastic Lanczos quadrature.

    ``steps`` of Lanczos' method from a random vector give the points and weights of a Gauss
    quadrature of the spectrum as that vector sees it; on average over random vectors that is the
    spectrum itself. Ghorbani, Krishnan and Xiao, 2019.

    >>> import chainrule
    >>> from chainrule import curvature
    >>> d = chainrule.tensor([1.0, 1.0, 5.0, 5.0])
    >>> density = curvature.spectral_density(lambda rows: rows * d, 4, chainrule.float32)
    >>> round(density.moment(1), 3)
    3.0
    """
    if samples < 1 or steps < 1:
        raise ValueError(
            f"spectral_density: samples and steps should be at least 1, got {samples} and {steps}"
        )
    steps = min(steps, size)
    check_matrix("spectral_density", steps, size, dtype, "Use fewer steps")
    together = at_once(steps * size * dtype.itemsize)
    parts = []
    for start in range(0, samples, together):
        v = random_signs(min(together, samples - start), size, dtype, generator) / math.sqrt(size)
        parts.append(eigh(_tridiagonal(multiply, v, steps)))
    nodes, vectors = (cat([getattr(p, f) for p in parts]) for f in parts[0]._fields)
    return SpectralDensity(nodes, vectors[:, 0] ** 2)


def _tridiagonal(multiply: Multiply, v: Tensor, steps: int) -> Tensor:
    """The matrices (S, steps, steps) to which Lanczos' method reduces the matrix from each row."""
    history: list[Tensor] = []
    diagonals: list[Tensor] = []
    offs: list[Tensor] = []
    for _ in range(steps):
        history.append(v)
        w = multiply(v)
        diagonals.append(sum_over(v * w, 1))
        for _ in range(2):
            for old in history:
                w = w - sum_over(w * old, 1)[:, None] * old
        length = sqrt(sum_over(w * w, 1))
        # A row whose space is exhausted ends here: zeros, which add nothing to the quadrature.
        ended = length <= 100 * K.rounding_error(v.array.dtype) * _largest(diagonals, offs)
        length = where(ended, 0.0, length)
        v = where(ended[:, None], 0.0, w / where(ended, 1.0, length)[:, None])
        offs.append(length)
    return _banded(diagonals, offs[:-1])


def _largest(diagonals: list[Tensor], offs: list[Tensor]) -> Tensor:
    """The size of the largest entry of each tridiagonal matrix so far."""
    return abs(cat([t[:, None] for t in [*diagonals, *offs]], 1)).amax(1)


def _banded(diagonals: list[Tensor], offs: list[Tensor]) -> Tensor:
    matrix = diag_embed(cat([d[:, None] for d in diagonals], 1))
    if offs:
        off = cat([b[:, None] for b in offs], 1)
        matrix = matrix + diag_embed(off, 1) + diag_embed(off, -1)
    return matrix

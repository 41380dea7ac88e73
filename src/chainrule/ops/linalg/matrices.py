"""Linear algebra made of other operations: norms, powers, least squares.

``__all__`` are the functions that are also found at the top of the package, as in PyTorch; the
whole of ``chainrule.linalg`` is listed in ``chainrule/linalg.py``.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

from chainrule.ops.core.arguments import placed_like
from chainrule.backend import K, dtypes
from chainrule.ops.core.synonyms import also_named, numpy_names
from chainrule.ops.linalg.decompositions import cholesky, eigvalsh, svdvals
from chainrule.ops.shape.diagonal import diagonal as _diagonal
from chainrule.ops.elementwise.complex_numbers import abs, conj, real
from chainrule.ops.elementwise.functions import log
from chainrule.ops.creation.conversion import clone
from chainrule.ops.elementwise.logic import where
from chainrule.ops.index.reading import narrow
from chainrule.ops.linalg.matmul import matmul
from chainrule.ops.reduce.order import amax, amin
from chainrule.ops.core.promotion import cast, is_complex_value
from chainrule.ops.linalg.products import cross_along
from chainrule.ops.reduce.norms import p_norm
from chainrule.ops.reduce.reductions import sum
from chainrule.ops.shape.views import (
    canonical_dims,
    movedim,
    reshape,
    squeeze,
    tensors_argument,
    unsqueeze,
)
from chainrule.ops.linalg.solving import (
    check_matrix,
    cholesky_solve,
    det,
    inv,
    inverse_of,
    matrix_exp,
    pinv,
    slogdet,
    tolerances,
)
from chainrule.graph import Box
from chainrule.tensor import Tensor, of_array
from chainrule.typing import DType, Dims, Shape, V, Value

__all__ = [
    "chain_matmul",
    "cholesky",
    "cholesky_solve",
    "det",
    "inverse",
    "logdet",
    "matrix_exp",
    "matrix_power",
    "pinverse",
    "slogdet",
]

METHODS = tuple(name for name in __all__ if name != "chain_matmul")
INPLACE: tuple[str, ...] = ()

inverse = inv

# --- norms ----------------------------------------------------------------------------------------


@numpy_names
def vector_norm(
    x: V, ord: float = 2, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None
) -> V:
    """(sum |x|^ord)^(1/ord) over all elements or along ``dim``; see :func:`chainrule.norm`."""
    order = _as_number(ord)
    return p_norm(abs(x) if is_complex_value(x) else x, order, dim, keepdim, dtype)


def _as_number(ord: float | str) -> float:
    if isinstance(ord, str):
        raise TypeError(f"linalg.vector_norm(): argument 'ord' must be a number, not {ord!r}")
    return ord


@numpy_names
def matrix_norm(
    A: V,
    ord: float | str = "fro",
    dim: Shape = (-2, -1),
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
) -> V:
    """A norm of the matrices in the dimensions ``dim``.

    =================  ===================================================
    ord                norm
    =================  ===================================================
    ``"fro"``          the root of the sum of squares
    ``"nuc"``          the sum of the singular values
    2, -2              the largest, smallest singular value
    1, -1              the largest, smallest sum of absolute values of a column
    inf, -inf          the largest, smallest sum of absolute values of a row
    =================  ===================================================
    """
    if dtype is not None:
        A = cast(A, dtype)
    check_matrix("linalg.matrix_norm", A, few_bits=ord in ("fro", 1, -1, math.inf, -math.inf))
    dims = canonical_dims("linalg.matrix_norm", dim, A.ndim)
    if len(dims) != 2:
        raise RuntimeError(
            f"linalg.matrix_norm: dim must be a pair of different dimensions, got {dim!r}"
        )
    if ord not in ("fro", "nuc", 2, -2, 1, -1, math.inf, -math.inf):
        raise RuntimeError(
            f"linalg.matrix_norm: order {ord!r} is not supported; use 'fro', 'nuc', inf, -inf, 1, "
            "-1, 2 or -2"
        )
    if ord == "fro":
        return vector_norm(A, 2, dims, keepdim)
    rows, columns = dims
    if 0 in (A.shape[rows], A.shape[columns]) and ord in ("nuc", 2, 1, math.inf):
        return real(sum(A, dims, keepdim))
    if not isinstance(ord, str) and math.fabs(ord) in (1, math.inf):
        along, across = (rows, columns) if math.fabs(ord) == 1 else (columns, rows)
        sums = sum(abs(A), along, True)
        out = (amax if ord > 0 else amin)(sums, across, True)
        return out if keepdim else squeeze(out, dims)
    values = svdvals(movedim(A, dims, (-2, -1)))
    out = sum(values, -1) if ord == "nuc" else (amax if ord == 2 else amin)(values, -1)
    return reshape(out, _reduced_shape(A, dims)) if keepdim else out


def _reduced_shape(A: Value, dims: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(1 if i in dims else n for i, n in enumerate(A.shape, -A.ndim))


@numpy_names
def norm(
    A: V,
    ord: float | str | None = None,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
) -> V:
    """A vector norm along one dimension, a matrix norm along two; over all elements if not given.

    >>> import chainrule
    >>> chainrule.linalg.norm(chainrule.tensor([[3.0, 0.0], [0.0, 4.0]]))
    tensor(5.)
    >>> chainrule.linalg.norm(chainrule.tensor([[3.0, 0.0], [0.0, 4.0]]), 2)
    tensor(4.)
    """
    if ord is None:
        return vector_norm(A, 2, dim, keepdim, dtype=dtype)
    if dim is None:
        if A.ndim not in (1, 2):
            raise RuntimeError(
                "linalg.norm: if dim is not specified but ord is, the input must be 1-D or 2-D, "
                f"got shape {tuple(A.shape)}"
            )
        dim = tuple(range(A.ndim))
    if isinstance(dim, int) or len(dim) == 1:
        return vector_norm(A, _as_number(ord), dim, keepdim, dtype=dtype)
    return matrix_norm(A, ord, dim, keepdim, dtype=dtype)


def cond(A: Tensor, p: float | str | None = None) -> Tensor:
    """The condition number: norm(A, p) * norm(inv(A), p), infinite if A is singular.

    Without ``p``, or with 2 and -2, the ratio of the largest and the smallest singular value.
    """
    check_matrix("linalg.cond", A, square=p not in (None, 2, -2))
    if 0 in A.shape:
        return real(sum(A, (-2, -1)))
    if p in (None, 2, -2):
        values = svdvals(A)
        largest, smallest = amax(values, -1), amin(values, -1)
        return smallest / largest if p == -2 else largest / smallest
    return matrix_norm(A, p) * matrix_norm(inverse_of(A, check=False), p)


# --- rank and least squares -----------------------------------------------------------------------


def matrix_rank(
    A: Tensor,
    tol: float | Tensor | None = None,
    hermitian: bool = False,
    *,
    atol: float | Tensor | None = None,
    rtol: float | Tensor | None = None,
) -> Tensor:
    """The number of singular values above max(atol, rtol * largest), or above ``tol``."""
    check_matrix("linalg.matrix_rank", A, square=hermitian)
    if tol is not None:
        atol, rtol = tol, 0.0
    atol, rtol = tolerances(A, atol, rtol)
    values = abs(eigvalsh(A)) if hermitian else svdvals(A)
    if values.shape[-1] == 0:
        return sum(values > 0, -1)
    limit = amax(values, -1) * rtol
    return sum(values > unsqueeze(where(limit > atol, limit, atol), -1), -1)


class LeastSquares(NamedTuple):
    """What :func:`lstsq` returns."""

    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor


def lstsq(
    A: Tensor, B: Tensor, rcond: float | None = None, *, driver: str | None = None
) -> LeastSquares:
    """The X with the least sum of squares of AX - B, and of those the smallest.

    ``residuals`` are the sums of squares (if there are more equations than unknowns, the rank is
    full and ``driver`` is not ``"gelsy"``, the default, as in PyTorch). ``rank`` counts the
    singular values above ``rcond`` times the largest; ``singular_values`` are given by the drivers
    ``"gelsd"`` and ``"gelss"``, without derivative. All drivers compute the same: X = pinv(A) B,
    which is also how X is differentiated.
    """
    check_matrix("linalg.lstsq", A)
    driver = "gelsy" if driver is None else driver
    if driver not in ("gels", "gelsy", "gelsd", "gelss"):
        raise RuntimeError(
            f"linalg.lstsq: driver should be one of gels, gelsy, gelsd, gelss, got {driver!r}"
        )
    vector = B.ndim == A.ndim - 1
    if vector:
        B = unsqueeze(B, -1)
    if A.dtype != B.dtype or B.ndim < 2 or A.shape[-2] != B.shape[-2]:
        raise RuntimeError(
            f"linalg.lstsq: A and B must have the same dtype and the same number of rows, got "
            f"{A.dtype} {tuple(A.shape)} and {B.dtype} {tuple(B.shape)}"
        )
    solution = matmul(pinv(A, rcond), B)
    rank = matrix_rank(A, rtol=rcond)
    residuals = values = placed_like(A, of_array(K.zeros((0,), A.array.dtype).real))
    if solution.requires_grad:  # an output of a differentiable function, even if empty
        residuals = reshape(narrow(real(solution), -1, 0, 0), (-1,))
    rows, columns = A.shape[-2:]
    if driver != "gelsy" and rows > columns and _all_equal(rank, columns):
        rest = matmul(A, solution) - B
        residuals = sum(real(conj(rest) * rest), -2)
    if driver in ("gelsd", "gelss"):
        values = svdvals(A.detach())
    if driver == "gels":
        rank = placed_like(A, of_array(K.zeros((0,), dtypes.int64.array_dtype)))
    return LeastSquares(squeeze(solution, -1) if vector else solution, residuals, rank, values)


def _all_equal(x: Tensor, value: int) -> bool:
    """Whether all elements have this value; taken for granted inside vmap, which hides them."""
    return isinstance(x.array, Box) or bool((x.array == value).all())


# --- products and powers --------------------------------------------------------------------------


def logdet(input: Tensor) -> Tensor:
    """The logarithm of the determinant: NaN if that is negative, -inf if it is zero; the complex
    logarithm of a complex determinant."""
    sign, value = slogdet(input)
    return value + log(sign) if is_complex_value(sign) else where(sign < 0, math.nan, value)


def pinverse(input: V, rcond: float = 1e-15) -> V:
    """The pseudoinverse; see :func:`chainrule.linalg.pinv`."""
    return pinv(input, rcond)


@also_named(input="A")
def matrix_power(A: Tensor, n: int) -> Tensor:
    """A multiplied by itself n times; its inverse for negative n, the identity for 0."""
    if not isinstance(n, int):
        raise TypeError(f"linalg.matrix_power(): argument 'n' must be int, not {type(n).__name__}")
    check_matrix("linalg.matrix_power", A, square=True, few_bits=True)
    if n == 0:
        one = placed_like(A, of_array(K.eye(A.shape[-1], dtype=A.array.dtype)))
        return where(of_array(K.zeros((), "bool")), A, one)  # with a derivative, which is 0
    if n == 1:
        return clone(A)
    base = inv(A) if n < 0 else A
    n, factors = int(math.fabs(n)), []
    while n:
        if n % 2:
            factors.append(base)
        n //= 2
        if n:
            base = matmul(base, base)
    return functools.reduce(matmul, factors)


def multi_dot(tensors: Sequence[V]) -> V:
    """The product of matrices in the cheapest order; the first and last may be vectors."""
    tensors = list(tensors)
    if len(tensors) < 2:
        raise RuntimeError(f"linalg.multi_dot: expected at least 2 tensors but got {len(tensors)}")
    for i, x in enumerate(tensors):
        if x.ndim != 2 and not (x.ndim == 1 and i in (0, len(tensors) - 1)):
            raise RuntimeError(
                f"linalg.multi_dot: tensor {i} must be 2-D (the first and last may be 1-D), got "
                f"shape {tuple(x.shape)}"
            )
    for i, (x, y) in enumerate(itertools.pairwise(tensors)):
        if x.shape[-1] != y.shape[0]:
            raise RuntimeError(
                f"linalg.multi_dot: tensors {i} and {i + 1} with shapes {tuple(x.shape)} and "
                f"{tuple(y.shape)} cannot be multiplied"
            )
    first, last = tensors[0], tensors[-1]
    sizes = [first.shape[0] if first.ndim == 2 else 1, *[x.shape[-1] for x in tensors[:-1]]]
    sizes.append(last.shape[-1] if last.ndim == 2 else 1)
    return _multiply(tensors, _best_splits(sizes), 0, len(tensors) - 1)


def _best_splits(sizes: Sequence[int]) -> dict[tuple[int, int], int]:
    """Where to split each product of factors i to j, factor i having sizes[i] x sizes[i + 1]."""
    count = len(sizes) - 1
    cost: dict[tuple[int, int], int] = {(i, i): 0 for i in range(count)}
    split: dict[tuple[int, int], int] = {}
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            costs = [
                cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1]
                for k in range(i, j)
            ]
            cost[i, j] = min(costs)
            split[i, j] = i + costs.index(cost[i, j])
    return split


def _multiply(tensors: Sequence[V], split: dict[tuple[int, int], int], i: int, j: int) -> V:
    if i == j:
        return tensors[i]
    k = split[i, j]
    return matmul(_multiply(tensors, split, i, k), _multiply(tensors, split, k + 1, j))


def chain_matmul(*matrices: Tensor | Sequence[Tensor]) -> Tensor:
    """The product of matrices; see :func:`chainrule.linalg.multi_dot`."""
    factors = tensors_argument(matrices)
    for x in factors:
        if x.ndim != 2:
            raise RuntimeError(
                f"chain_matmul: expected matrices, got a tensor of shape {tuple(x.shape)}"
            )
    return factors[0] if len(factors) == 1 else multi_dot(factors)


@numpy_names
def vecdot(x: V, y: V, *, dim: int = -1) -> V:
    """The dot products of the vectors along ``dim``, broadcast."""
    return sum(conj(x) * y, dim)


@numpy_names
def cross(input: V, other: V, *, dim: int = -1) -> V:
    """The cross products of the vectors of size 3 along ``dim``, broadcast."""
    return cross_along("linalg.cross", input, other, dim)


def diagonal(A: V, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> V:
    """The diagonals of matrices, by default of the last two dimensions."""
    return _diagonal(A, offset, dim1, dim2)

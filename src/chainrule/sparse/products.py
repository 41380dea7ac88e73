"""Products of sparse matrices: with dense ones, with each other, and at a pattern."""

from __future__ import annotations

from typing import Any

from chainrule.backend import K, dtypes
from chainrule.ops.core.promotion import cast
from chainrule.ops.elementwise.options import clamp
from chainrule.ops.index.scatter import scatter_reduce
from chainrule.ops.creation.patterns import ones, zeros
from chainrule.ops.linalg.sparse import sparse_product, sparse_sampled
from chainrule.ops.shape.views import expand, movedim, reshape, unsqueeze
from chainrule.sparse.base import Sparse, gathered, summed
from chainrule.sparse.elementwise import add, scaled
from chainrule.sparse.structure import Structure
from chainrule.tensor import Tensor, of_array, sparse_csr
from chainrule.typing import Number

__all__ = ["addmm", "linear", "matmul", "reduced_product", "sampled_addmm"]


def matmul(x: Any, y: Any, op: str = "matmul") -> Any:
    """x @ y, of which at least one is sparse: sparse if both are, dense if one is."""
    _check(op, x, y)
    if not isinstance(x, Sparse):
        return _from_right(x, y)
    return _of_sparse(x, y) if isinstance(y, Sparse) else _from_left(x, y)


def _check(op: str, x: Any, y: Any) -> None:
    for z in (x, y):
        if not isinstance(z, (Sparse, Tensor)):
            raise TypeError(
                f"{op}: expected a tensor, got {type(z).__name__}; multiply by a number with *"
            )
        if isinstance(z, Sparse) and (z.sparse_dim() != 2 or z.dense_dim()):
            raise RuntimeError(
                f"{op}: a sparse factor must be a matrix with 2 sparse dimensions, got shape "
                f"{tuple(z.shape)} with {z.sparse_dim()}"
            )
    if x.dtype is not y.dtype:
        raise RuntimeError(
            f"{op}: expected both tensors to have the same dtype, but got {x.dtype} and {y.dtype}; "
            "convert one of them, for example with .to(other.dtype)"
        )
    if x.dtype is dtypes.bool_:
        raise NotImplementedError(
            f"{op}: not implemented for booleans; convert with .float() or .long()"
        )
    if x.ndim == 0 or y.ndim == 0 or x.shape[-1] != y.shape[-2 if y.ndim > 1 else 0]:
        raise RuntimeError(
            f"{op}: shapes {tuple(x.shape)} and {tuple(y.shape)} cannot be multiplied: the last "
            "dimension of the first must equal the second to last of the second (the only one of "
            "a vector)"
        )


def _from_left(x: Sparse, y: Tensor) -> Tensor:
    """A sparse matrix times a vector, a matrix, or the matrices of a batch."""
    pattern, n = x.structure.pattern, x.shape[0]
    if y.ndim == 2:
        return sparse_product(x.entries, y, pattern=pattern)
    if y.ndim == 1:
        return reshape(sparse_product(x.entries, unsqueeze(y, -1), pattern=pattern), (n,))
    first = movedim(y, -2, 0)
    out = sparse_product(x.entries, reshape(first, (y.shape[-2], -1)), pattern=pattern)
    return movedim(reshape(out, (n, *first.shape[1:])), 0, -2)


def _from_right(x: Tensor, y: Sparse) -> Tensor:
    """A vector, a matrix or a batch of them times a sparse matrix."""
    pattern = y.structure.pattern.transposed
    if x.ndim == 1:
        out = sparse_product(y.entries, unsqueeze(x, -1), pattern=pattern)
        return reshape(out, (y.shape[1],))
    rows = reshape(x, (-1, x.shape[-1]))
    out = sparse_product(y.entries, rows.mT, pattern=pattern).mT
    return reshape(out, (*x.shape[:-1], y.shape[1]))


def _of_sparse(x: Sparse, y: Sparse) -> Any:
    """The product of two sparse matrices: entries (i, j) and (j, k) make one at (i, k)."""
    a, b = K.matching_entries(x.structure.indices[1], y.structure.indices[0], y.shape[0])
    shape = (x.shape[0], y.shape[1])
    places = K.cat(x.structure.indices[:1, a], y.structure.indices[1:, b], dim=0)
    values = gathered(x.entries, a) * gathered(y.entries, b)
    out = x.of(Structure(places, shape), values)
    return out.distinct() if x.structure.starts is None else out.in_rows()


def linear(input: Any, weight: Any, bias: Tensor | None = None) -> Any:
    """input @ weight.T + bias, of which input or weight is sparse."""
    out = matmul(input, weight.mT, "linear")
    return out if bias is None else add(bias, out) if isinstance(out, Sparse) else out + bias


def addmm(mat: Any, mat1: Any, mat2: Any, beta: Number, alpha: Number) -> Any:
    """beta * mat + alpha * (mat1 @ mat2)"""
    product = matmul(mat1, mat2, "addmm")
    if alpha != 1:
        product = scaled(product, alpha) if isinstance(product, Sparse) else product * alpha
    if beta == 0:
        return product
    if not isinstance(mat, Sparse) and not isinstance(product, Sparse):
        return (mat if beta == 1 else mat * beta) + product
    if beta != 1:
        mat = scaled(mat, beta) if isinstance(mat, Sparse) else mat * beta
    return add(mat, product)


def sampled_addmm(
    input: Any, mat1: Tensor, mat2: Tensor, beta: Number = 1, alpha: Number = 1
) -> Any:
    """beta * input + alpha * (mat1 @ mat2) at the entries of ``input``."""
    op = "sampled_addmm"
    if not isinstance(input, Sparse) or input.layout is not sparse_csr:
        raise RuntimeError(
            f"{op}: expected input to have layout chainrule.sparse_csr, got "
            f"{getattr(input, 'layout', type(input).__name__)}; convert it with .to_sparse_csr()"
        )
    shape = (*mat1.shape[:-1], *mat2.shape[1:])
    if mat1.ndim != 2 or mat2.ndim != 2 or shape != tuple(input.shape):
        raise RuntimeError(
            f"{op}: expected matrices whose product has shape {tuple(input.shape)}, got "
            f"{tuple(mat1.shape)} and {tuple(mat2.shape)}"
        )
    product = sparse_sampled(mat1, mat2.mT, pattern=input.structure.pattern) * alpha
    return input.with_values(product if beta == 0 else input.entries * beta + product)


def reduced_product(x: Any, y: Any, reduce: str) -> Tensor:
    """The product of a sparse and a dense matrix with another reduction than the sum: of the terms
    x[i, j] y[j] of each row i, the mean, the largest or the smallest; 0 where there are none."""
    if reduce not in ("sum", "mean", "amax", "amin"):
        raise ValueError(f"sparse.mm: reduce must be sum, mean, amax or amin, got {reduce!r}")
    _check("sparse.mm", x, y)
    if not isinstance(x, Sparse) or not isinstance(y, Tensor) or y.ndim != 2:
        raise RuntimeError(f"sparse.mm: reduce={reduce!r} is for a sparse and a dense matrix")
    if reduce == "sum":
        return matmul(x, y)
    x = x.distinct()
    rows, columns = x.structure.indices
    if reduce == "mean":
        count = summed(ones(x._nnz(), dtype=y.dtype, device=y.device), rows, x.shape[0])
        return matmul(x, y) / unsqueeze(clamp(count, min=1), -1)
    terms = unsqueeze(x.entries, -1) * gathered(y, columns)
    start = zeros(x.shape[0], y.shape[1], dtype=y.dtype, device=y.device)
    index = expand(unsqueeze(cast(of_array(rows), dtypes.int64), -1), *terms.shape)
    return scatter_reduce(start, 0, index, terms, reduce, include_self=False)

"""Products by name: of vectors, matrices and batches, and products added to a tensor."""

from __future__ import annotations

from chainrule.backend import dtypes
from chainrule.ops.core.out import into
from chainrule.ops.core.synonyms import numpy_names, takes_out
from chainrule.ops.core.rounding import rounds_product_once
from chainrule.ops.shape.diagonal import diagonal
from chainrule.ops.elementwise.complex_numbers import conj
from chainrule.ops.linalg.matmul import as_rows, check_fits, product
from chainrule.ops.core.promotion import broadcast_shapes, cast, promote, result_type
from chainrule.ops.core.primitive import Bilinear, broadcast_to, sum_to
from chainrule.ops.reduce.reductions import sum
from chainrule.ops.shape.views import canonical_dim, reshape, unsqueeze
from chainrule.tensor import Tensor
from chainrule.typing import Number, V, Value

__all__ = [
    "addbmm",
    "addmm",
    "addmv",
    "addr",
    "baddbmm",
    "bmm",
    "cross",
    "dot",
    "ger",
    "inner",
    "kron",
    "mm",
    "mv",
    "outer",
    "trace",
    "vdot",
]

METHODS = tuple(__all__)
INPLACE = ("addbmm", "addmm", "addmv", "addr", "baddbmm")


def _check_ranks(op: str, **tensors: tuple[Value, int]) -> None:
    for name, (x, rank) in tensors.items():
        if x.ndim != rank:
            what = ("a number", "a vector", "a matrix", "a batch of matrices")[rank]
            raise RuntimeError(
                f"{op}: {name} must be {what} ({rank}-D tensor), got shape {tuple(x.shape)}"
            )


def mm(input: V, mat2: V, *, out: Tensor | None = None) -> V:
    """The product of two matrices."""
    if out is not None:
        return into("mm", out, mm(input, mat2), (input, mat2), exact=True)
    _check_ranks("mm", input=(input, 2), mat2=(mat2, 2))
    return product("mm", input, mat2)


def bmm(input: V, mat2: V, *, out: Tensor | None = None) -> V:
    """The products of the matrices of two batches of the same size, without broadcasting."""
    if out is not None:
        return into("bmm", out, bmm(input, mat2), (input, mat2), exact=True)
    _check_ranks("bmm", input=(input, 3), mat2=(mat2, 3))
    if input.shape[0] != mat2.shape[0]:
        raise RuntimeError(
            f"bmm: the batches must have the same size, got {input.shape[0]} and {mat2.shape[0]} "
            f"(shapes {tuple(input.shape)} and {tuple(mat2.shape)}); matmul broadcasts"
        )
    return product("bmm", input, mat2)


@takes_out()
def mv(input: V, vec: V) -> V:
    """The product of a matrix and a vector."""
    _check_ranks("mv", input=(input, 2), vec=(vec, 1))
    return product("mv", input, vec)


@takes_out()
def dot(input: V, tensor: V) -> V:
    """The dot product of two vectors."""
    _check_ranks("dot", input=(input, 1), tensor=(tensor, 1))
    return product("dot", input, tensor)


@takes_out()
def vdot(input: V, other: V) -> V:
    """The dot product of two vectors, the first conjugated."""
    _check_ranks("vdot", input=(input, 1), other=(other, 1))
    return product("vdot", conj(input), other)


@takes_out()
def inner(input: V, other: V) -> V:
    """The products summed along the last dimensions; with a number, the product."""
    if input.ndim == 0 or other.ndim == 0:
        return input * other
    if input.shape[-1] != other.shape[-1]:
        raise RuntimeError(
            f"inner: the last dimension must match on both input tensors but got shapes "
            f"{tuple(input.shape)} and {tuple(other.shape)}"
        )
    if other.ndim == 1:
        return product("inner", input, other)
    out = product("inner", input, as_rows(other).mT)
    return reshape(out, (*input.shape[:-1], *other.shape[:-1]))


@takes_out()
def outer(input: V, vec2: V) -> V:
    """All products of an element of one vector and an element of another."""
    _check_ranks("outer", input=(input, 1), vec2=(vec2, 1))
    return unsqueeze(input, -1) * vec2


@takes_out()
def kron(input: V, other: V) -> V:
    """The Kronecker product: every element of ``input`` times the whole of ``other``."""
    rank = max(input.ndim, other.ndim)
    a = (1,) * (rank - input.ndim) + tuple(input.shape)
    b = (1,) * (rank - other.ndim) + tuple(other.shape)
    left = reshape(input, tuple(n for size in a for n in (size, 1)))
    right = reshape(other, tuple(n for size in b for n in (1, size)))
    return reshape(left * right, tuple(n * m for n, m in zip(a, b, strict=True)))


_cross = Bilinear(
    "cross",
    (
        lambda g, x_shape, y, dim: _cross(y, g, dim=dim),
        lambda g, x, y_shape, dim: _cross(g, x, dim=dim),
    ),
    batch="align",
)


@takes_out()
@numpy_names
def cross(input: V, other: V, dim: int | None = None) -> V:
    """The cross product of vectors along ``dim`` (the first dimension of size 3 if not given)."""
    if dim is None:
        if 3 not in input.shape:
            raise RuntimeError(
                f"cross: no dimension of size 3 in input of shape {tuple(input.shape)}"
            )
        dim = tuple(input.shape).index(3)
    return cross_along("cross", input, other, dim)


def cross_along(op: str, input: V, other: V, dim: int) -> V:
    """The cross product after all checks; ``op`` is the name in a message."""
    if input.ndim != other.ndim:
        raise RuntimeError(
            f"{op}: inputs must have the same number of dimensions, got shapes "
            f"{tuple(input.shape)} and {tuple(other.shape)}"
        )
    d = canonical_dim(op, dim, input.ndim)
    if input.shape[d] != 3 or other.shape[d] != 3:
        raise RuntimeError(
            f"{op}: inputs dimension {dim} must have length 3, got {input.shape[d]} and "
            f"{other.shape[d]}"
        )
    broadcast_shapes(input.shape, other.shape, op=op)
    return _cross(*promote(input, other), dim=d)


def trace(input: V) -> V:
    """The sum of the elements on the diagonal of a matrix."""
    _check_ranks("trace", input=(input, 2))
    return sum(diagonal(input))


# --- products added to a tensor -------------------------------------------------------------------


def _add_scaled(op: str, input: V, product: V, beta: Number, alpha: Number) -> V:
    check_fits(op, "input", input, tuple(product.shape))
    kind = (product.array if isinstance(product, Tensor) else product).dtype.kind
    if kind in "biu" and result_type(input, product).category <= dtypes.INTEGER:
        return _add_integers(op, input, product, beta, alpha)
    product = product if alpha == 1 else product * alpha
    if beta == 0:
        # Not 0 * input: infinities and NaN in the input do not count.
        return product
    return (input if beta == 1 else input * beta) + product


def _add_integers(op: str, input: V, product: V, beta: Number, alpha: Number) -> V:
    """The same of integers, whose factors are cut to integers, and of truth values."""
    if op == "addr" and (isinstance(beta, float) or isinstance(alpha, float)):
        raise RuntimeError(
            f"addr: for integral input tensors, beta and alpha must not be floating point numbers, "
            f"got {beta} and {alpha}"
        )
    dtype = result_type(input, product)
    parts = [
        cast(x, dtypes.int64) * int(bool(c) if dtype is dtypes.bool_ else _real(op, c))
        for x, c in ((input, beta), (product, alpha))
        if c != 0
    ]
    out = parts[0] + parts[1] if len(parts) == 2 else parts[0] if parts else product * 0
    return cast(broadcast_to(out, shape=tuple(product.shape)), dtype)


def _real(op: str, factor: Number) -> float:
    if isinstance(factor, complex):
        raise RuntimeError(f"{op}: integers cannot be multiplied by the complex number {factor}")
    return factor


@takes_out()
@rounds_product_once
def addmm(input: V, mat1: V, mat2: V, *, beta: Number = 1, alpha: Number = 1) -> V:
    """beta * input + alpha * (mat1 @ mat2), for matrices."""
    if mat1.ndim != 2 or mat2.ndim != 2:
        _check_ranks("addmm", mat1=(mat1, 2), mat2=(mat2, 2))
    return _add_scaled("addmm", input, product("addmm", mat1, mat2), beta, alpha)


@takes_out()
@rounds_product_once
def addmv(input: V, mat: V, vec: V, *, beta: Number = 1, alpha: Number = 1) -> V:
    """beta * input + alpha * (mat @ vec), for a matrix and a vector."""
    _check_ranks("addmv", mat=(mat, 2), vec=(vec, 1))
    return _add_scaled("addmv", input, product("addmv", mat, vec), beta, alpha)


@takes_out()
@rounds_product_once
def addr(input: V, vec1: V, vec2: V, *, beta: Number = 1, alpha: Number = 1) -> V:
    """beta * input + alpha * outer(vec1, vec2)"""
    return _add_scaled("addr", input, outer(vec1, vec2), beta, alpha)


@takes_out()
@rounds_product_once
def baddbmm(input: V, batch1: V, batch2: V, *, beta: Number = 1, alpha: Number = 1) -> V:
    """beta * input + alpha * bmm(batch1, batch2)"""
    return _add_scaled("baddbmm", input, bmm(batch1, batch2), beta, alpha)


@takes_out()
@rounds_product_once
def addbmm(input: V, batch1: V, batch2: V, *, beta: Number = 1, alpha: Number = 1) -> V:
    """beta * input + alpha * (the sum of bmm(batch1, batch2) over the batch)"""
    product = bmm(batch1, batch2)
    return _add_scaled(
        "addbmm", input, sum_to(product, shape=tuple(product.shape[1:])), beta, alpha
    )


ger = outer

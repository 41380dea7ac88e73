"""Diagonals and triangles of matrices."""

from __future__ import annotations


from chainrule.ops.core.arguments import placed_like
from chainrule.ops.core.synonyms import takes_out
from chainrule.backend import K
from chainrule.ops.elementwise.logic import where
from chainrule.ops.core.promotion import promote
from chainrule.ops.core.primitive import Linear
from chainrule.ops.creation.conversion import clone
from chainrule.ops.creation.patterns import empty
from chainrule.ops.shape.padding import pad
from chainrule.ops.shape.views import canonical_dim, reshape
from chainrule.ops.shape.stacking import cat
from chainrule.tensor import Tensor, of_array
from chainrule.typing import V

__all__ = [
    "block_diag",
    "diag",
    "diag_embed",
    "diagflat",
    "diagonal",
    "diagonal_scatter",
    "tril",
    "triu",
]
METHODS = (
    "diag",
    "diag_embed",
    "diagflat",
    "diagonal",
    "diagonal_scatter",
    "tril",
    "triu",
)
INPLACE = ("tril", "triu")

_diagonal = Linear(
    "diagonal",
    lambda g, shape_in, **where: _diagonal_place(g, shape=tuple(shape_in), **where),
    is_view=True,
)
_diagonal_place = Linear(
    "diagonal_place", lambda g, shape_in, shape, **where: _diagonal(g, **where), batch="shape"
)
_triangle = Linear("triangle", lambda g, shape_in, **which: _triangle(g, **which))


def diagonal(input: V, offset: int = 0, dim1: int = 0, dim2: int = 1) -> V:
    """A view of the diagonal of two dimensions, as the last dimension of the result.

    >>> import chainrule
    >>> chainrule.arange(9).reshape(3, 3).diagonal()
    tensor([0, 4, 8])
    """
    d1, d2 = _two_dims("diagonal", dim1, dim2, input.ndim)
    return _diagonal(input, offset=int(offset), dim1=d1, dim2=d2)


def _two_dims(op: str, dim1: int, dim2: int, ndim: int) -> tuple[int, int]:
    d1, d2 = canonical_dim(op, dim1, ndim), canonical_dim(op, dim2, ndim)
    if d1 == d2:
        raise RuntimeError(f"{op}: diagonal dimensions cannot be identical: {dim1}, {dim2}")
    return d1, d2


def diag_embed(input: V, offset: int = 0, dim1: int = -2, dim2: int = -1) -> V:
    """Matrices with the last dimension of ``input`` on their diagonal and zeros elsewhere."""
    d1, d2 = _two_dims("diag_embed", dim1, dim2, input.ndim + 1)
    n = input.shape[-1] + abs(offset)
    others = iter(input.shape[:-1])
    sizes = [n if d in (d1, d2) else next(others) for d in range(-input.ndim - 1, 0)]
    return _diagonal_place(input, shape=tuple(sizes), offset=int(offset), dim1=d1, dim2=d2)


@takes_out()
def diag(input: Tensor, diagonal: int = 0) -> Tensor:
    """The diagonal of a matrix, or the matrix with a given diagonal."""
    if input.ndim == 1:
        return diag_embed(input, diagonal)
    if input.ndim != 2:
        raise RuntimeError(
            f"diag: supports 1D or 2D tensors, got {input.ndim}D (shape {tuple(input.shape)}); use "
            "diagonal or diag_embed for batches"
        )
    return clone(_diagonal(input, offset=int(diagonal), dim1=-2, dim2=-1))


def diagflat(input: Tensor, offset: int = 0) -> Tensor:
    """The matrix with all elements of ``input`` on its diagonal."""
    return diag_embed(reshape(input, (-1,)), offset)


def diagonal_scatter(
    input: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> Tensor:
    """A copy of ``input`` with ``src`` on the diagonal of two dimensions."""
    shown = diagonal(input, offset, dim1, dim2)
    if tuple(src.shape) != tuple(shown.shape):
        raise RuntimeError(
            "diagonal_scatter: expected src to have the size of the diagonal of input, "
            f"{tuple(shown.shape)}, but it has {tuple(src.shape)}"
        )
    d1, d2 = _two_dims("diagonal_scatter", dim1, dim2, input.ndim)
    place = {"shape": tuple(input.shape), "offset": int(offset), "dim1": d1, "dim2": d2}
    on_diagonal = _diagonal_place(
        placed_like(shown, of_array(K.ones(tuple(shown.shape), "bool"))), **place
    )
    return where(on_diagonal, _diagonal_place(src, **place), input)


@takes_out()
def tril(input: V, diagonal: int = 0) -> V:
    """The lower triangle of each matrix, the other elements zero."""
    return _triangle(_matrices("tril", input), diagonal=int(diagonal), upper=False)


@takes_out()
def triu(input: V, diagonal: int = 0) -> V:
    """The upper triangle of each matrix, the other elements zero."""
    return _triangle(_matrices("triu", input), diagonal=int(diagonal), upper=True)


def _matrices(op: str, input: V) -> V:
    if input.ndim < 2:
        raise RuntimeError(
            f"{op}: input tensor must have at least 2 dimensions, got shape {tuple(input.shape)}"
        )
    return input


def block_diag(*tensors: Tensor) -> Tensor:
    """A matrix with the given matrices along its diagonal; vectors count as rows."""
    if not tensors:
        return empty(1, 0)
    for i, t in enumerate(tensors):
        if t.ndim > 2:
            raise RuntimeError(
                "block_diag: input tensors must have 2 or fewer dimensions, input "
                f"{i} has shape {tuple(t.shape)}"
            )
    blocks = [reshape(t, (1, -1)) if t.ndim < 2 else t for t in promote(*tensors)]
    total, left, rows = sum(b.shape[1] for b in blocks), 0, []
    for b in blocks:
        right = total - left - b.shape[1]
        rows.append(pad(b, (left, right)))
        left += b.shape[1]
    return cat(rows)

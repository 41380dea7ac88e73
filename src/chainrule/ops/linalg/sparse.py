"""The products of a sparse matrix, given by the values of its entries at a fixed pattern.

All of it is one sum, over the entries e = (i, j) of the pattern and the columns k,

    sum  g[i, k] * values[e] * x[j, k]

linear in each of g, values and x. Its gradient by g is ``sparse_product`` (the matrix times x), by
x the same with the pattern transposed (the transposed matrix times g), and by the values
``sparse_sampled``: of the product g x' what stands at the pattern. So each one's derivatives are
the others, to any order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chainrule.ops.core.batching import carry
from chainrule.ops.core.primitive import Bilinear, Op
from chainrule.ops.shape.views import movedim, reshape
from chainrule.tensor import Tensor

__all__ = ["sparse_product", "sparse_sampled"]


def _batch_of_products(
    op: Op, size: int, values: Sequence[Tensor], mapped: Sequence[bool], params: dict[str, Any]
) -> Tensor:
    """vmap: of one matrix and many operands, one product with all their columns side by side."""
    if mapped[0] or values[1].ndim > 3:
        return carry(op, size, values, mapped, params)
    x = movedim(values[1], 0, 1)
    rows, _, columns = x.shape
    out = op(values[0], reshape(x, (rows, size * columns)), **params)
    return movedim(reshape(out, (-1, size, columns)), 1, 0)


sparse_product = Bilinear(
    "sparse_product",
    (
        lambda g, v_shape, x, pattern: sparse_sampled(g, x, pattern=pattern),
        lambda g, v, x_shape, pattern: sparse_product(v, g, pattern=pattern.transposed),
    ),
    batch=_batch_of_products,
)
sparse_sampled = Bilinear(
    "sparse_sampled",
    (
        lambda g, x_shape, y, pattern: sparse_product(g, y, pattern=pattern),
        lambda g, x, y_shape, pattern: sparse_product(g, x, pattern=pattern.transposed),
    ),
    batch="carry",
)

"""The product of elements, whose gradient is exact also where elements are zero."""

from __future__ import annotations

from chainrule.ops.core.synonyms import numpy_names, takes_out
from chainrule.ops.reduce.reductions import as_summands, reduction
from chainrule.ops.reduce.scan import product_after, product_before
from chainrule.ops.shape.views import canonical_dim, reshape
from chainrule.typing import DType, V

__all__ = ["prod"]
METHODS = ("prod",)
INPLACE: tuple[str, ...] = ()

_prod = reduction("prod", lambda d, x, out, dim: d * _product_of_others(x, dim[0]))


def _product_of_others(x: V, dim: int) -> V:
    """For each element the product of all others, exact also where elements are zero."""
    return product_before(x, dim) * product_after(x, dim)


@takes_out(exact=False)
@numpy_names
def prod(
    input: V, dim: int | None = None, keepdim: bool = False, *, dtype: DType | None = None
) -> V:
    """The product of all elements, or along one dimension; its gradient is exact also at zeros."""
    input = as_summands("prod", input, dtype)
    d = -1 if dim is None else canonical_dim("prod", dim, input.ndim)
    if dim is None or input.ndim == 0:
        out = _prod(reshape(input, (-1,)), dim=(-1,), keepdim=False)
        return reshape(out, (1,) * input.ndim) if keepdim else out
    return _prod(input, dim=(d,), keepdim=keepdim)

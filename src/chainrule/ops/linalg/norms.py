"""Norms by name or number, and the distance that goes with them."""

from __future__ import annotations

from chainrule.ops.core.synonyms import numpy_names, takes_out
from chainrule.ops.elementwise.logic import where
from chainrule.ops.linalg.matrices import matrix_norm
from chainrule.ops.reduce.norms import p_norm
from chainrule.ops.reduce.reductions import need_floating
from chainrule.ops.shape.views import canonical_dim, canonical_dims
from chainrule.typing import Dims, DType, V

__all__ = ["dist", "norm", "renorm"]
METHODS = tuple(__all__)
INPLACE = ("renorm",)


@takes_out()
@numpy_names
def norm(
    input: V,
    p: float | str | None = "fro",
    dim: Dims = None,
    keepdim: bool = False,
    dtype: DType | None = None,
) -> V:
    """(sum |x|^p)^(1/p); the largest |x| for p = inf, the smallest for -inf, nonzeros for 0.

    ``"fro"`` is p = 2 over all elements or the given dimensions; ``"nuc"`` is the nuclear norm of a
    matrix. The gradient is 0 where the norm is 0.

    >>> import chainrule
    >>> chainrule.norm(chainrule.tensor([3.0, 4.0]))
    tensor(5.)
    """
    need_floating("norm", input)
    if isinstance(p, str) and p != "fro":
        if p != "nuc":
            raise RuntimeError(f"norm: order {p!r} is not supported; use a number, 'fro' or 'nuc'")
        return matrix_norm(input, p, canonical_dims("norm", dim, input.ndim), keepdim, dtype=dtype)
    return p_norm(input, 2.0 if p is None or isinstance(p, str) else float(p), dim, keepdim, dtype)


def dist(input: V, other: V, p: float = 2) -> V:
    """The p-norm of ``input - other``."""
    need_floating("dist", input)
    return norm(input - other, p)


@takes_out()
@numpy_names
def renorm(input: V, p: float, dim: int, maxnorm: float) -> V:
    """The slices along ``dim`` scaled down to a p-norm of ``maxnorm`` where theirs is larger.

    >>> import chainrule
    >>> chainrule.renorm(chainrule.tensor([[3.0, 4.0], [0.3, 0.4]]), 2, 0, 1.0)
    tensor([[0.6000, 0.8000],
            [0.3000, 0.4000]])
    """
    if input.ndim < 2:
        raise RuntimeError(
            f"renorm: input needs at least 2 dimensions, got {input.ndim} dimensions"
        )
    kept = canonical_dim("renorm", dim, input.ndim)
    others = tuple(d for d in range(-input.ndim, 0) if d != kept)
    size = p_norm(input, float(p), others, True, None)
    # The 1e-7 is PyTorch's.
    return input * where(size > maxnorm, maxnorm / (size + 1e-7), 1.0)

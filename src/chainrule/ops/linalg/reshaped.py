"""Equations between tensors of any rank, and matrices of powers."""

from __future__ import annotations

import math
from collections.abc import Sequence

from chainrule.ops.core.promotion import cast
from chainrule.ops.creation.patterns import ones
from chainrule.ops.linalg.solving import inv, solve
from chainrule.ops.reduce.scan import cumprod
from chainrule.ops.shape.stacking import cat
from chainrule.ops.shape.views import canonical_dims, expand, movedim, reshape, unsqueeze
from chainrule.backend import dtypes
from chainrule.tensor import Tensor

__all__ = ["tensorinv", "tensorsolve", "vander"]


def tensorinv(A: Tensor, ind: int = 2) -> Tensor:
    """The inverse of ``A`` as a map from its last dimensions to its first ``ind``:
    ``tensordot(tensorinv(A, ind), A, ind)`` is the identity.

    >>> import chainrule
    >>> chainrule.linalg.tensorinv(chainrule.eye(6).reshape(2, 3, 6)).shape
    chainrule.Size([6, 2, 3])
    """
    if ind <= 0:
        raise RuntimeError(f"linalg.tensorinv: ind must be a strictly positive integer, got {ind}")
    first, last = tuple(A.shape[:ind]), tuple(A.shape[ind:])
    n = math.prod(first)
    if n != math.prod(last):
        raise RuntimeError(
            "linalg.tensorinv: expected prod(A.shape[ind:]) == prod(A.shape[:ind]), got "
            f"{math.prod(last)} and {n} for ind={ind} and shape {tuple(A.shape)}"
        )
    return reshape(inv(reshape(A, (n, n))), (*last, *first))


def tensorsolve(A: Tensor, B: Tensor, dims: Sequence[int] | None = None) -> Tensor:
    """The solution X of ``tensordot(A, X, X.ndim) = B``; the dimensions ``dims`` of A are moved to
    the end first."""
    if dims is not None:
        places = canonical_dims("linalg.tensorsolve", tuple(dims), A.ndim)
        A = movedim(A, places, tuple(range(-len(places), 0)))
    first, last = tuple(A.shape[: B.ndim]), tuple(A.shape[B.ndim :])
    n = math.prod(last)
    if math.prod(first) != n or B.numel() != n:
        raise RuntimeError(
            "linalg.tensorsolve: expected A to satisfy prod(A.shape[B.ndim:]) == "
            f"prod(A.shape[:B.ndim]) == B.numel(), got shapes {tuple(A.shape)} and "
            f"{tuple(B.shape)}"
        )
    return reshape(solve(reshape(A, (n, n)), reshape(B, (n,))), last)


def vander(x: Tensor, *, N: int | None = None) -> Tensor:
    """The matrices with rows 1, x, x^2, ..., x^(N-1) for the elements x of vectors (*, n).

    N is n if not given. Integers and booleans give int64.

    >>> import chainrule
    >>> chainrule.linalg.vander(chainrule.tensor([1, 2, 3]))
    tensor([[1, 1, 1],
            [1, 2, 4],
            [1, 3, 9]])
    """
    count = N if N is not None else (x.shape[-1] if x.ndim else 1)
    if count <= 1:
        raise RuntimeError(f"linalg.vander: N must be greater than 1, got {count}")
    if x.array.dtype.kind in "biu":
        x = cast(x, dtypes.int64)
    column = unsqueeze(x if x.ndim else reshape(x, (1,)), -1)
    rest = expand(column, (*column.shape[:-1], count - 1))
    return cumprod(cat([ones(*column.shape, dtype=x.dtype, device=x.device), rest], -1), -1)

"""The operations: a file per family, each primitive declared once with both derivative rules."""

from __future__ import annotations

from types import ModuleType

from chainrule.ops import (
    assignment, complex_numbers, composed, conv, conversion, creation, diagonal, einsum,
    elementwise, filling, from_data, index, joining, linalg, matmul, norm, order, padding, pool,
    products, rearrange, recurrent, reduce, sampling, scan, scatter, shape, softmax, sort,
)  # fmt: skip

families: tuple[ModuleType, ...] = (
    elementwise, composed, complex_numbers, shape, rearrange, joining, diagonal, padding, reduce,
    order, scan, index, assignment, scatter, sort, matmul, products, einsum, linalg, creation,
    from_data, conversion, sampling, filling, softmax, conv, pool, norm,
    recurrent,
)  # fmt: skip

__all__ = ["families", "linalg"]

"""The operations: a file per family, each primitive declared once with both derivative rules."""

from __future__ import annotations

from types import ModuleType

from chainrule.ops.creation import conversion, patterns as creation, filling, from_data, sampling
from chainrule.ops.elementwise import complex_numbers, derived as composed, functions as elementwise
from chainrule.ops.index import assignment, reading as index, scatter
from chainrule.ops.layers import avg_pool, conv, max_pool, norm, softmax
from chainrule.ops.linalg import einsum, matrices as linalg, matmul, products
from chainrule.ops.recurrent import sequence as recurrent
from chainrule.ops.reduce import order, reductions as reduce, scan, sort
from chainrule.ops.shape import diagonal, joining, padding, rearrange, views as shape

families: tuple[ModuleType, ...] = (
    elementwise,
    composed,
    complex_numbers,
    shape,
    rearrange,
    joining,
    diagonal,
    padding,
    reduce,
    order,
    scan,
    index,
    assignment,
    scatter,
    sort,
    matmul,
    products,
    einsum,
    linalg,
    creation,
    from_data,
    conversion,
    sampling,
    filling,
    softmax,
    conv,
    max_pool,
    avg_pool,
    norm,
    recurrent,
)

__all__ = ["families", "linalg"]

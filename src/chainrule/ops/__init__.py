"""The operations: a file per family, each primitive declared once with both derivative rules."""

from __future__ import annotations

from types import ModuleType

from chainrule.ops.creation import (
    conversion,
    filling,
    from_data,
    memory,
    patterns,
    sampling,
    typed,
    windows,
)
from chainrule.ops.elementwise import (
    complex_numbers,
    derived,
    functions,
    integers,
    logic,
    options,
    special_methods,
)
from chainrule.ops.index import assignment, places, reading, replacing, scatter
from chainrule.ops.layers import avg_pool, columns, conv, max_pool, norm, softmax
from chainrule.ops.linalg import (
    einsum,
    matmul,
    matrices,
    norms,
    older,
    products,
    statistics,
    stft,
)
from chainrule.ops.recurrent import gru, lstm, rnn
from chainrule.ops.reduce import order, product, quantiles, reductions, scan, sort
from chainrule.ops.shape import diagonal, joining, padding, rearrange, stacking, strided, views

families: tuple[ModuleType, ...] = (
    *(functions, logic, options, derived, complex_numbers, special_methods, integers),
    *(views, stacking, rearrange, joining, diagonal, padding, strided),
    *(reductions, product, order, quantiles, scan, sort),
    *(reading, assignment, replacing, scatter, places),
    *(matmul, products, einsum, matrices, norms, older, statistics, stft),
    *(patterns, from_data, conversion, sampling, filling, typed, windows, memory),
    *(softmax, conv, columns, max_pool, avg_pool, norm, rnn, lstm, gru),
)

__all__ = ["families"]

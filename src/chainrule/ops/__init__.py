"""The operations: a file per family, each primitive declared once with both derivative rules."""

from __future__ import annotations

from types import ModuleType

from chainrule.ops.core import rounding  # noqa: F401 (operations on float16 and bfloat16)
from chainrule.ops.creation import (
    conversion,
    filling,
    from_data,
    like,
    memory,
    patterns,
    sampling,
    typed,
    uncommon,
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
from chainrule.ops.layers import attention, avg_pool, columns, conv, max_pool, norm, softmax
from chainrule.ops.linalg import (
    einsum,
    lowrank,
    matmul,
    matrices,
    norms,
    older,
    products,
    statistics,
    stft,
)
from chainrule.ops.recurrent import gru, lstm, rnn
from chainrule.ops.reduce import histograms, order, product, quantiles, reductions, scan, sort
from chainrule.ops.shape import (
    copies,
    diagonal,
    joining,
    padding,
    rearrange,
    stacking,
    strided,
    views,
)

families: tuple[ModuleType, ...] = (
    *(functions, logic, options, derived, complex_numbers, special_methods, integers),
    *(views, stacking, rearrange, joining, diagonal, padding, strided, copies),
    *(reductions, product, order, quantiles, scan, sort, histograms),
    *(reading, assignment, replacing, scatter, places),
    *(matmul, products, einsum, matrices, norms, older, lowrank, statistics, stft),
    *(patterns, like, from_data, conversion, sampling, filling, typed, windows, memory, uncommon),
    *(softmax, conv, columns, max_pool, avg_pool, norm, attention, rnn, lstm, gru),
)

__all__ = ["families"]

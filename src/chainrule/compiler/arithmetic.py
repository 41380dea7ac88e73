"""Functions of NumPy's, as derivative rules on bare arrays have them, by compiled kernels.

A sum, a product, a comparison, a choice has one right result, so that the kernel gives NumPy's
bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from chainrule.backend import K
from chainrule.backend.recorded import is_ufunc
from chainrule.compiler.program import Instruction

__all__ = ["EXACT", "called_with_place", "kernel_for"]

# Kernels, also under the names of functions of NumPy, that round once.
EXACT = {
    "numpy.add": "add",
    "numpy.subtract": "sub",
    "numpy.multiply": "mul",
    "numpy.divide": "div",
    "numpy.negative": "neg",
    "numpy.absolute": "abs",
    "numpy.square": "square",
    "numpy.sqrt": "sqrt",
    "numpy.maximum": "maximum",
    "numpy.minimum": "minimum",
    **{name: name for name in ("add", "sub", "mul", "div", "neg")},
}
_TRUTH = {
    "numpy.equal": "eq",
    "numpy.not_equal": "ne",
    "numpy.less": "lt",
    "numpy.less_equal": "le",
    "numpy.greater": "gt",
    "numpy.greater_equal": "ge",
    "numpy.bitwise_and": "bitwise_and",
    "numpy.bitwise_or": "bitwise_or",
    "numpy.bitwise_xor": "bitwise_xor",
    "numpy.invert": "bitwise_not",
    "numpy.logical_and": "logical_and",
    "numpy.logical_or": "logical_or",
    "numpy.logical_not": "logical_not",
    "numpy.isnan": "isnan",
    "numpy.isfinite": "isfinite",
    "numpy.isinf": "isinf",
}


def kernel_for(step: Instruction, args: Any, places: Any) -> tuple[Callable[..., Any], Any]:
    """The kernel of a call and its arguments: numbers as arrays of the type of the others."""
    if step.kwargs or len(places) != 1:
        return step.function, args
    kind = places[0].dtype.kind
    name = (EXACT if kind == "f" else _TRUTH if kind == "b" else {}).get(step.kernel)
    dtype = places[0].dtype if kind == "f" else _type_of(args)
    if name is None or not all([_fits(a, dtype) for a in args]):
        return step.function, args
    return getattr(K, name), tuple(
        [a if isinstance(a, K.Array) else K.asarray(a, dtype) for a in args]
    )


def _type_of(args: Any) -> Any:
    """The type of the arrays; of whole numbers and a fraction NumPy makes another one."""
    types = [a.dtype for a in args if isinstance(a, K.Array)]
    whole = types and types[0].kind != "f"
    return None if whole and any([isinstance(a, float) for a in args]) else (types or [None])[0]


def _fits(a: Any, dtype: Any) -> bool:
    return a.dtype == dtype if isinstance(a, K.Array) else a.__class__ in (int, float)


def called_with_place(step: Instruction, function: Any, args: Any, places: Any) -> Any:
    """Arguments that have a function of NumPy's write where its result belongs; None if not."""
    plain = len(places) == 1 and not step.kwargs and len(args) == getattr(function, "nin", -1)
    return (*args, places[0]) if plain and is_ufunc(function) else None

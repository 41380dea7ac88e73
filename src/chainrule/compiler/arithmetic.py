"""Arithmetic of NumPy's, as derivative rules on bare arrays have it, by compiled kernels.

A sum, difference, product or quotient has one right result, so that the kernel gives NumPy's bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from chainrule.backend import K
from chainrule.backend.recorded import is_ufunc
from chainrule.compiler.program import Instruction

__all__ = ["EXACT", "called_with_place", "kernel_for"]

# Kernels, also under the names of NumPy's functions, which round once.
EXACT = {
    "numpy.add": "add",
    "numpy.subtract": "sub",
    "numpy.multiply": "mul",
    "numpy.divide": "div",
    "numpy.negative": "neg",
    **{name: name for name in ("add", "sub", "mul", "div", "neg")},
}


def kernel_for(step: Instruction, args: Any, places: Any) -> tuple[Callable[..., Any], Any]:
    """The kernel of a call and its arguments: numbers as arrays of the type of the result."""
    name = EXACT.get(step.kernel)
    if name is None or step.kwargs or len(places) != 1 or places[0].dtype.kind != "f":
        return step.function, args
    dtype = places[0].dtype
    if not all([_fits(a, dtype) for a in args]):
        return step.function, args
    return getattr(K, name), tuple(
        [a if isinstance(a, K.Array) else K.asarray(a, dtype) for a in args]
    )


def _fits(a: Any, dtype: Any) -> bool:
    return a.dtype == dtype if isinstance(a, K.Array) else a.__class__ in (int, float)


def called_with_place(step: Instruction, function: Any, args: Any, places: Any) -> Any:
    """Arguments that have a function of NumPy's write where its result belongs; None if not."""
    plain = len(places) == 1 and not step.kwargs and len(args) == getattr(function, "nin", -1)
    return (*args, places[0]) if plain and is_ufunc(function) else None

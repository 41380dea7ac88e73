"""Results that are written into tensors of the caller: ``add(x, y, out=z)``.

What was computed is copied into the memory of ``out``, with PyTorch's rules: it takes the shape of
the result, keeps its own type, and no gradient flows through it.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from typing import Any

from chainrule.backend import K
from chainrule.graph import Box, Mode, mode, next_seq
from chainrule.ops.core.apply import INFERENCE
from chainrule.tensor import Tensor, of_array

__all__ = ["check_memory", "into", "touch"]


def check_memory(x: Tensor, op: str) -> None:
    """Refuses memory in which several elements share a place, and makes it writable."""
    if K.is_shared_inside(x.array):
        raise RuntimeError(
            f"{op}: unsupported operation: more than one element of the written-to tensor (an "
            "expanded view) refers to a single memory location; clone() the tensor before "
            "writing to it"
        )
    if x._store is not None or not x.array.size:
        K.allow_writing(x.array)


def touch(x: Tensor) -> None:
    """Notes that the memory of a tensor was written."""
    if x._store is not INFERENCE:
        x.storage().last_write = next_seq()


def into(
    op: str,
    out: object,
    result: Any,
    inputs: Sequence[object] = (),
    exact: bool = False,
    apart: bool = False,
) -> Any:
    """``out`` with the result in it, or several of both.

    ``exact`` says that the type of ``out`` must be that of the result; ``inputs`` are what may not
    lie in part in the memory of ``out``, nor as a whole if they are to be ``apart``.

    >>> import chainrule
    >>> x = chainrule.zeros(2)
    >>> chainrule.add(chainrule.ones(2), 1, out=x) is x, x
    (True, tensor([2., 2.]))
    """
    if isinstance(result, tuple):
        if not isinstance(out, (tuple, list)) or len(out) != len(result):
            raise TypeError(f"{op}(): argument 'out' must be a tuple of {len(result)} Tensors")
        parts = [into(op, o, r, inputs, exact, apart) for o, r in zip(out, result, strict=True)]
        return type(result)(*parts) if hasattr(result, "_fields") else tuple(parts)
    if not isinstance(out, Tensor):
        raise TypeError(f"{op}(): argument 'out' must be Tensor, not {type(out).__name__}")
    _check(op, out, result, inputs, exact, apart)
    check_memory(out, op)
    if out.array.shape != result.array.shape:
        if out.array.size:
            warnings.warn(
                f"{op}: an output with one or more elements was resized since it had shape "
                f"{tuple(out.shape)}, which does not match the required output shape "
                f"{tuple(result.shape)}; give one of that shape, or an empty one",
                stacklevel=_caller(),
            )
        out.data = of_array(K.empty(result.array.shape, out.array.dtype))
    out.array = K.write(out.array, result.array)
    touch(out)
    return out


def _caller() -> int:
    """How far above the function that asks the one is that called an operation."""
    frame, level = sys._getframe(1), 1
    # Text that exec runs need not be of a module.
    while frame.f_back and frame.f_globals.get("__name__", "").startswith(_OPERATIONS):
        frame, level = frame.f_back, level + 1
    return level


_OPERATIONS = __name__.rpartition("core.")[0]


def _check(
    op: str, out: Tensor, result: Any, inputs: Sequence[object], exact: bool, apart: bool
) -> None:
    if not isinstance(result, Tensor) or isinstance(result.array, Box):
        where = "of bare arrays" if not isinstance(result, Tensor) else "inside a transformation"
        raise RuntimeError(f"{op}: no result {where} can be written to out=; leave it away")
    if result.requires_grad or (out.requires_grad and mode.flags & Mode.GRAD):
        raise RuntimeError(
            f"{op}(): functions with out=... arguments don't support automatic differentiation, "
            "but one of the arguments requires grad; use no_grad(), or leave out= away"
        )
    if exact and out.dtype is not result.dtype:
        raise RuntimeError(
            f"{op}: expected out tensor to have dtype {result.dtype}, but got {out.dtype} instead"
        )
    if result.dtype.category > out.dtype.category:
        raise RuntimeError(
            f"{op}: result type {result.dtype} can't be cast to the desired output type {out.dtype}"
        )
    for x in inputs:
        if isinstance(x, (tuple, list)):
            _check(op, out, result, x, exact, apart)
        elif isinstance(x, Tensor) and _overlap(x.array, out.array, apart):
            raise RuntimeError(
                f"{op}: unsupported operation: some elements of the input tensor and the "
                "written-to tensor refer to a single memory location; clone() one of them"
            )


def _overlap(a: Any, b: Any, apart: bool) -> bool:
    """Whether two arrays share memory, and are not the same or may not be."""
    if isinstance(a, Box) or (not apart and (a.shape, a.strides) == (b.shape, b.strides)):
        return False
    return bool(K.may_share_memory(a, b))

"""What all losses share: the check of the shapes, the reduction to one number, the base class."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from chainrule.backend import dtypes
from chainrule.nn.module.base import Module
from chainrule.ops.layers.class_targets import REDUCTIONS
from chainrule.ops.elementwise.options import clamp
from chainrule.ops.core.promotion import broadcast_shapes
from chainrule.ops.reduce.reductions import mean, sum
from chainrule.ops.index.subscript import numbers_of
from chainrule.tensor import Tensor, check_layout

__all__ = [
    "Flag",
    "Loss",
    "at_least",
    "check_floating",
    "check_integers",
    "check_same_shape",
    "check_tensors",
    "check_weight",
    "difference_of",
    "has_negative",
    "reduced",
    "reduction_of",
]

Flag = bool | None  # PyTorch's size_average and reduce

# --- reduction ------------------------------------------------------------------------------------


def reduction_of(
    op: str,
    reduction: str,
    size_average: Flag = None,
    reduce: Flag = None,
    allowed: Sequence[str] = REDUCTIONS,
) -> str:
    """The reduction that is asked for, also by the two flags that PyTorch had before its name."""
    if size_average is not None or reduce is not None:
        if reduce is False:
            reduction = "none"
        else:
            reduction = "sum" if size_average is False else "mean"
        warnings.warn(
            f"{op}: size_average and reduce are deprecated; use reduction={reduction!r} instead",
            stacklevel=3,
        )
    if reduction not in allowed:
        raise ValueError(
            f"{op}: {reduction!r} is not a valid value for reduction; use one of {tuple(allowed)}"
        )
    return reduction


def reduced(losses: Tensor, reduction: str) -> Tensor:
    """The losses as they are ("none"), their "mean" or their "sum"."""
    if reduction == "mean":
        return mean(losses)
    return sum(losses) if reduction == "sum" else losses


def at_least(limit: float, x: Tensor) -> Tensor:
    """``x``, at least ``limit``, but with the gradient of ``x`` itself, as PyTorch has it."""
    below = x.detach()
    return x + (clamp(below, min=limit) - below)


# --- checks ---------------------------------------------------------------------------------------


def check_tensors(op: str, **tensors: object) -> None:
    """Refuses what is not a tensor, by the name of its argument."""
    for name, x in tensors.items():
        if not isinstance(x, Tensor):
            check_layout(op, x)
            raise TypeError(f"{op}(): argument {name!r} must be Tensor, not {type(x).__name__}")


def check_same_shape(op: str, **tensors: Tensor) -> None:
    """Shapes must be equal: (N, 1) against (N,) would broadcast to (N, N) without a word."""
    (first, x), *others = tensors.items()
    for name, y in others:
        if isinstance(x, Tensor) and isinstance(y, Tensor) and x.array.shape == y.array.shape:
            continue
        check_tensors(op, **tensors)
        a, b = tuple(x.shape), tuple(y.shape)
        # PyTorch broadcasts what it can, and has another error for the rest.
        error = ValueError if _broadcast(a, b) else RuntimeError
        raise error(
            f"{op}: {first} has shape {a} but {name} has shape {b}; a loss does not broadcast, "
            f"make the shapes equal{_fix(first, a, name, b)}"
        )


def _broadcast(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    return all(n == m or 1 in (n, m) for n, m in zip(reversed(a), reversed(b), strict=False))


def _fix(first: str, a: tuple[int, ...], second: str, b: tuple[int, ...]) -> str:
    """Which calls of squeeze or unsqueeze would do, if any."""
    if len(a) < len(b):
        return _fix(second, b, first, a)
    for dim, size in enumerate(a):
        if size == 1 and (*a[:dim], *a[dim + 1 :]) == b:
            d = -1 if dim == len(a) - 1 else dim
            return f": {first}.squeeze({d}) or {second}.unsqueeze({d})"
    return " (reshape, or expand what is meant to repeat)"


def check_weight(op: str, name: str, weight: Tensor | None, shape: Sequence[int]) -> None:
    """A weight may broadcast to the shape of the losses, but must not change it."""
    if weight is None:
        return
    check_tensors(op, **{name: weight})
    given, shape = tuple(weight.shape), tuple(shape)
    try:
        fits = tuple(broadcast_shapes(given, shape)) == shape
    except (RuntimeError, ValueError):
        fits = False
    if not fits:
        raise RuntimeError(
            f"{op}: {name} of shape {given} does not broadcast to the shape {shape} of the losses; "
            "reshape or unsqueeze it"
        )


def has_negative(x: Tensor) -> bool:
    """Whether a number is below zero (not known inside vmap, where it counts as no)."""
    numbers = numbers_of(x)
    return numbers is not None and bool((numbers < 0).any())


def check_floating(op: str, name: str, x: Tensor) -> None:
    """Refuses a tensor that is not of floating type."""
    if not dtypes.as_dtype(x.dtype).is_floating_point:
        raise NotImplementedError(
            f"{op}: not implemented for {name} of type {x.dtype}; convert it with .float()"
        )


def check_integers(op: str, name: str, x: Tensor) -> None:
    """Refuses a tensor that is not of int64."""
    if x.dtype is not dtypes.int64:
        raise RuntimeError(
            f"{op}: expected {name} of type {dtypes.int64}, but found {x.dtype}; convert it with "
            ".long()"
        )


def difference_of(op: str, input: Tensor, target: Tensor, complex_numbers: bool = False) -> Tensor:
    """input - target, of one shape and with a decimal point."""
    check_same_shape(op, input=input, target=target)
    result = input - target
    if not (complex_numbers and result.is_complex()):
        check_floating(op, "input and target", result)
    return result


# --- modules --------------------------------------------------------------------------------------


class Loss(Module):
    """A loss as a module: its function, and the settings it is called with."""

    reductions: Sequence[str] = REDUCTIONS

    def __init__(
        self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"
    ):
        super().__init__()
        self.reduction = reduction_of(
            type(self).__name__, reduction, size_average, reduce, self.reductions
        )

"""Tests, comparisons, logic and bits, which have no derivative; and :func:`where`, which chooses
between two values by what they say."""

from __future__ import annotations

from typing import Any, overload

from chainrule.backend import K
from chainrule.ops.core.apply import apply, as_operand
from chainrule.ops.core.out import into
from chainrule.ops.core.pointwise import comparison, unary
from chainrule.ops.core.primitive import REGISTRY, Elementwise
from chainrule.ops.core.promotion import NUMBERS, broadcast_shapes, promote
from chainrule.tensor import Tensor
from chainrule.typing import Number, V, Value

__all__ = [
    "bitwise_and",
    "bitwise_left_shift",
    "bitwise_not",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "eq",
    "ge",
    "greater",
    "greater_equal",
    "gt",
    "isfinite",
    "isinf",
    "isnan",
    "isneginf",
    "isposinf",
    "le",
    "less",
    "less_equal",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "lt",
    "ne",
    "not_equal",
    "signbit",
    "where",
]

METHODS = tuple(name for name in __all__ if name != "where")
INPLACE = tuple(name for name in METHODS if not name.startswith("is"))

# --- tests ----------------------------------------------------------------------------------------

isnan = unary("isnan", None, "Whether x is not a number.", floating=False)
isinf = unary("isinf", None, "Whether x is infinite.", floating=False)
isfinite = unary("isfinite", None, "Whether x is neither infinite nor NaN.", floating=False)
isposinf = unary("isposinf", None, "Whether x is +inf.", floating=False, kinds="biuf")
isneginf = unary("isneginf", None, "Whether x is -inf.", floating=False, kinds="biuf")
signbit = unary("signbit", None, "Whether the sign bit of x is set.", floating=False, kinds="biuf")

# --- comparisons ----------------------------------------------------------------------------------

eq = comparison("eq", "Whether x equals y.")
ne = comparison("ne", "Whether x differs from y.")
lt = comparison("lt", "Whether x < y.", kinds="biuf")
le = comparison("le", "Whether x <= y.", kinds="biuf")
gt = comparison("gt", "Whether x > y.", kinds="biuf")
ge = comparison("ge", "Whether x >= y.", kinds="biuf")
greater, greater_equal, less, less_equal, not_equal = gt, ge, lt, le, ne

# --- logic ----------------------------------------------------------------------------------------

logical_not = unary("logical_not", None, "Whether x is zero.", floating=False)
logical_and = comparison("logical_and", "Whether x and y are both nonzero.")
logical_or = comparison("logical_or", "Whether x or y is nonzero.")
logical_xor = comparison("logical_xor", "Whether exactly one of x and y is nonzero.")

# --- bits -----------------------------------------------------------------------------------------

bitwise_not = unary("bitwise_not", None, "x with every bit flipped.", floating=False, kinds="biu")
bitwise_and = comparison("bitwise_and", "The bits set in both x and y.", kinds="biu")
bitwise_or = comparison("bitwise_or", "The bits set in x or y.", kinds="biu")
bitwise_xor = comparison("bitwise_xor", "The bits set in exactly one of x and y.", kinds="biu")
bitwise_left_shift = comparison("bitwise_left_shift", "x shifted left by y bits.", kinds="iu")
bitwise_right_shift = comparison("bitwise_right_shift", "x shifted right by y bits.", kinds="iu")

# --- a choice -------------------------------------------------------------------------------------

_where = Elementwise(
    "where",
    [None, lambda d, x: where(x, d, 0.0), lambda d, x: where(x, 0.0, d)],
)


@overload
def where(condition: Tensor) -> tuple[Tensor, ...]: ...
@overload
def where(condition: Tensor, input: Tensor | Number, other: Tensor | Number) -> Tensor: ...
@overload
def where(condition: Value | bool, input: V | Number, other: V | Number) -> V: ...
def where(
    condition: Any, input: Any = None, other: Any = None, *, out: Tensor | None = None
) -> Any:
    """``input`` where the condition holds, ``other`` elsewhere; both are broadcast. Without them
    the indices at which it holds, a vector for each dimension.

    >>> import chainrule
    >>> x = chainrule.tensor([-1.0, 2.0])
    >>> chainrule.where(x > 0, x, 0.0)
    tensor([0., 2.])
    >>> chainrule.where(x > 0)
    (tensor([1]),)
    """
    if out is not None:
        return into("where", out, where(condition, input, other), (condition, input, other))
    if not any(isinstance(v, Tensor) for v in (condition, input, other)):
        return K.where(condition, input, other)
    condition = as_operand(condition)
    if input is None and other is None:
        return REGISTRY["nonzero"](condition)
    if condition.array.dtype.kind != "b":
        raise RuntimeError(
            f"where: expected condition to be a boolean tensor, but got {condition.dtype}; "
            "compare first, for example x != 0"
        )
    if isinstance(input, NUMBERS) or isinstance(other, NUMBERS) or input.dtype != other.dtype:
        input, other = promote(input, other)
    input, other = as_operand(input), as_operand(other)
    broadcast_shapes(condition.array.shape, input.array.shape, other.array.shape, op="where")
    return apply(_where, (condition, input, other), {})

"""Operations on float16 and bfloat16: computed in float32, rounded once.

The one place where that happens. An operation that meets such a number is replaced by its
:class:`Rounded` form before it is computed or recorded, so that no kernel and no rule has to know
of these types. A function that is made of several operations would round after each of them;
:func:`rounds_once` has it computed in float32 as a whole.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from chainrule.backend import K, dtypes
from chainrule.backend.precision import rounding_to
from chainrule.graph import Node
from chainrule.ops.core.apply import round_with
from chainrule.ops.core.mixing import PRODUCTS, Around, autocasting
from chainrule.ops.core.primitive import Op
from chainrule.ops.core.promotion import cast
from chainrule.ops.core.recording import output_tensor, restated
from chainrule.tensor import Tensor, of_array
from chainrule.typing import ArrayDType, Gradients, Tangent, Tangents, Value

__all__ = ["Rounded", "rounds_once", "rounds_product_once"]

F = TypeVar("F", bound=Callable[..., Any])


class Rounded(Around):
    """An operation on float32 copies of its inputs, whose output is rounded once.

    So are its rules: they run on float32 copies of what was saved, and each gradient is rounded to
    the type of its input. A view is taken of the memory itself. Products on a device take the
    numbers as they were, before they became float32, and sum in float32.
    """

    rounds = False

    def __init__(self, op: Op, types: tuple[ArrayDType, ...]):
        super().__init__(op)
        self.types = types
        self.target = next(t for t in types if K.kind_of(t) in "fc")
        one_type = all([t == self.target for t in types if K.kind_of(t) in "fc"])
        self.operands = self.target if one_type and op.name in PRODUCTS else None

    def raw(self, *arrays: Any, **params: Any) -> Any:
        if self.is_view:
            return self.op.raw(*arrays, **params)
        with rounding_to(self.operands):
            out = self.op.raw(*map(K.widened, arrays), **params)
        return _each(lambda a: K.narrowed(a, self.target), out)

    def vjp(self, node: Node, g: Value, tensors: bool) -> Gradients:
        out = output_tensor(node) if tensors and node.out is not None else node.out
        saved = _each(_wide if tensors else _wide_constant, node.saved)
        wide = restated(node, self.op, saved, _each(_wide, out))
        with rounding_to(self.operands):
            parts = self.op.vjp(wide, _each(_wide, g), tensors)
        return [_narrow(part, t) for part, t in zip(parts, self.types, strict=True)]

    def jvp(
        self, tangents: Tangents, out: Value, inputs: Sequence[Value], params: dict[str, Any]
    ) -> Tangent:
        changes, values = _each(_wide, tuple(tangents)), _each(_wide, tuple(inputs))
        tangent = self.op.jvp(changes, _each(_wide, out), values, params)
        return _each(lambda t: _narrow(t, self.target), tangent)


_made: dict[tuple[Op, tuple[ArrayDType, ...]], Rounded] = {}


@round_with
def rounded(op: Op, types: tuple[ArrayDType, ...]) -> Op:
    """The operation for inputs of these types."""
    if op.takes_tensors:  # the user's own operation, which is made of operations
        return op
    made = _made.get((op, types))
    if made is None:
        made = _made[op, types] = Rounded(op, types)
    return made


def rounds_once(function: F) -> F:
    """The function, whose first argument is a tensor, computed in float32 where all floating
    tensors among its arguments are float16, or all are bfloat16; its results are rounded to that
    type.

    >>> import chainrule
    >>> from chainrule.ops.core.rounding import rounds_once
    >>> f = rounds_once(lambda x: (x + 2048) - 2048)
    >>> f(chainrule.ones(1, dtype=chainrule.float16) / 2)
    tensor([0.5000], dtype=chainrule.float16)
    """

    return _once(function, lambda args, target: contextlib.nullcontext())


def rounds_product_once(function: F) -> F:
    """The same for a function that multiplies its arguments themselves: products on a device take
    the numbers as they were, before they became float32."""
    return _once(function, _as_they_were)


def _once(function: Any, context: Callable[[Any, Any], Any]) -> Any:
    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        if args and isinstance(args[0], Tensor) and args[0].array.dtype.itemsize != 2:
            return function(*args, **kwargs)
        target = _common_type(*args, *kwargs.values())
        if target is None:
            return function(*args, **kwargs)
        with context(args, target):
            out = function(*map(_wide, args), **{name: _wide(x) for name, x in kwargs.items()})
        return _each(lambda y: _narrow(y, target), out)

    return wrapped


def _as_they_were(args: Any, target: ArrayDType) -> Any:
    place = getattr(args[0].array, "place", None)
    return contextlib.nullcontext() if place is None else autocasting({place.kind: target})


def _common_type(*arguments: Any) -> ArrayDType | None:
    """The one narrow type that all floating tensors have, None if there is no such type."""
    types = {x.array.dtype for x in arguments if isinstance(x, Tensor) and x.is_floating_point()}
    return next(iter(types)) if len(types) == 1 and all(map(K.is_narrow, types)) else None


def _each(function: Callable[[Any], Any], values: Any) -> Any:
    """The function of a value, or of each one of several; None stays."""
    if isinstance(values, (tuple, list)):
        return type(values)([None if v is None else function(v) for v in values])
    return None if values is None else function(values)


def _wide(x: Any) -> Any:
    """float16 and bfloat16 numbers, in a tensor or in an array, as float32; others as they are."""
    if isinstance(x, Tensor):
        return cast(x, dtypes.float32) if K.is_narrow(x.array.dtype) else x
    return K.widened(x)


def _wide_constant(x: Tensor) -> Tensor:
    """The same for a tensor of which only the array will be read."""
    return of_array(K.widened(x.array))


def _narrow(x: Any, dtype: ArrayDType) -> Any:
    """Floating numbers, in a tensor or in an array, rounded to a type."""
    if isinstance(x, Tensor):
        return cast(x, dtype) if x.is_floating_point() else x
    return None if x is None else K.narrowed(x, dtype)

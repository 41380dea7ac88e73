"""Functions over elementwise primitives: Python numbers, and a short way through.

``unary`` and ``binary`` declare a primitive and return the function a user calls. They are the
hottest Python in the library, so the ordinary case (tensors of one floating type, nothing unusual
going on) is written out; everything else goes through :func:`chainrule.ops.core.primitive.apply`.
"""

from __future__ import annotations

import numbers
import sys
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from chainrule.backend import ARRAYS, K, dtypes
from chainrule.ops.core.apply import apply, as_operand
from chainrule.ops.core.out import into
from chainrule.ops.core.recording import one, output_tensor, two
from chainrule.ops.core.primitive import Differential, Elementwise, Op, sum_to
from chainrule.ops.core.promotion import (
    NUMBERS,
    broadcast_error,
    cast,
    check_broadcast,
    check_kind,
    promote,
    result_type,
    to_floating,
    type_error,
)
from chainrule.graph import Edges, Node, Saved, mode
from chainrule.tensor import OtherLayout, Tensor
from chainrule.typing import Array, ArrayDType, Gradients, Number, Tangents, V, Value

__all__ = [
    "binary",
    "comparison",
    "constant",
    "unary",
]

ARRAY = K.Array
BARE: Any = (*ARRAYS, numbers.Number)
F32, F64 = dtypes.float32.array_dtype, dtypes.float64.array_dtype


ANY_KIND = "biufc"  # bool, integer, unsigned integer, floating, complex


# --- one input ------------------------------------------------------------------------------------


class Unary(Elementwise):
    """An elementwise function of one input."""

    differential: Differential  # if it is differentiable

    def __init__(self, name: str, differential: Differential | None):
        super().__init__(name, [differential])
        if differential is not None:
            self.differential = differential
        self.pattern = self.reads[0]

    def vjp(self, node: Node, g: Value, tensors: bool) -> Gradients:
        pattern = self.pattern
        if tensors:
            return super().vjp(node, g, True)
        if pattern == (1,):
            return (self.differential(g, node.out),)
        if pattern == (0,):
            return (self.differential(g, node.saved[0].array),)
        return super().vjp(node, g, False)


class UnaryFunction(Protocol):
    """What :func:`unary` returns: a function of a tensor (or of an array, inside a rule)."""

    __name__: str

    def __call__(self, input: V, *, out: Tensor | None = None) -> V: ...


def unary(
    name: str,
    differential: Differential | None,
    doc: str,
    *,
    floating: bool = True,
    kinds: str = ANY_KIND,
) -> UnaryFunction:
    """Declares an elementwise function of one input and returns it.

    ``floating`` says that integers become floating before it is applied, ``kinds`` which kinds of
    elements it is for.
    """
    op = Unary(name, differential)
    differentiable = op.differentiable
    f32, f64 = (F32, F64) if "f" in kinds else (None, None)  # need no check and no conversion

    def function(input: Any, *, out: Any = None) -> Any:
        if out is not None:
            return into(name, out, function(input), (input,))
        if input.__class__ is not Tensor and not isinstance(input, Tensor):
            return _unary_bare(op, input, floating)
        a = input.array
        flags = mode.flags
        dtype = a.dtype
        if flags > 1 or (dtype is not f32 and dtype is not f64):
            check_kind(name, kinds, dtype)
            return apply(op, (to_floating(input) if floating else input,), {})
        return one(op, input, op.raw(a), flags and differentiable)

    return named(function, name, doc, {"input": "V", "out": "Tensor | None", "return": "V"})


def named(function: Callable[..., Any], name: str, doc: str, types: dict[str, str]) -> Any:
    """A function with its name, its docstring, its types and the module that declares it, from
    which it can be pickled."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals["__name__"] == __name__:
        frame = frame.f_back
    function.__name__ = function.__qualname__ = name
    function.__module__ = frame.f_globals["__name__"]
    function.__doc__ = doc
    function.__annotations__ = types
    return function


def _unary_bare(op: Op, x: Any, floating: bool) -> Any:
    is_bare = isinstance(x, BARE) and x.__class__ not in NUMBERS
    if isinstance(x, OtherLayout):
        return x.operate(op.name, (x,), {})
    if not is_bare:
        raise TypeError(
            f"{op.name}(): argument 'input' (position 1) must be Tensor, not {type(x).__name__}; "
            "convert it with chainrule.tensor(...)"
        )
    return op.free(to_floating(x) if floating else x)


# --- two inputs -----------------------------------------------------------------------------------


class Binary(Elementwise):
    """An elementwise function of two inputs."""

    by_x: Differential  # the change that x makes and the one that y makes, if differentiable
    by_y: Differential

    def __init__(
        self,
        name: str,
        differentials: tuple[Differential | None, Differential | None],
        kernel: str | None,
        floating: bool,
        kinds: str,
        refuses_bool: str,
    ):
        super().__init__(name, differentials, kernel)
        dx, dy = differentials
        if dx is not None:
            self.by_x = dx
        if dy is not None:
            self.by_y = dy
        self.floating, self.kinds, self.refuses_bool = floating, kinds, refuses_bool
        # The types of tensors that need no check and no conversion.
        self.f32: Any = F32 if "f" in kinds else None
        self.f64: Any = F64 if "f" in kinds else None
        self.left, self.right = WithNumber(self, 0), WithNumber(self, 1)
        x_reads, y_reads = self.reads
        # The gradient of one input reads the other one (a product), or nothing (a sum).
        self.is_product = x_reads == (1,) and y_reads == (0,)
        self.is_sum = not x_reads and not y_reads

    def vjp(self, node: Node, g: Value, tensors: bool) -> Gradients:
        if not (self.is_product or self.is_sum):
            return super().vjp(node, g, tensors)
        (edge_x, edge_y), shapes = node.edges, node.shapes
        if self.is_sum:
            gx = None if edge_x is None else self.by_x(g)
            gy = None if edge_y is None else self.by_y(g)
        else:
            x, y = node.saved
            gx = None if edge_x is None else self.by_x(g, y if tensors else y.array)
            gy = None if edge_y is None else self.by_y(g, x if tensors else x.array)
        if shapes is not None:
            if gx is not None and gx.shape != shapes[0]:
                gx = sum_to(gx, shape=shapes[0])
            if gy is not None and gy.shape != shapes[1]:
                gy = sum_to(gy, shape=shapes[1])
        return gx, gy


class WithNumber(Elementwise):
    """An elementwise operation of two inputs of which one is a Python number.

    The number is part of the operation, not an input, so that ``x * 2`` saves nothing.
    """

    differential: Differential  # if it is differentiable

    def __init__(self, op: Binary, side: int):
        self.name = op.name
        self.batch = "align"
        self.op = op
        self.f32, self.f64 = op.f32, op.f64
        self.side = side  # where the tensor stands: 0 on the left, 1 on the right
        differential = op.differentials[side]
        if differential is not None:
            self.differential = differential
        self.pattern = op.reads[side]
        self.saves_out = 2 in self.pattern
        self.saves_input = side in self.pattern
        self.reads_number_alone = self.pattern == (1 - side,)
        self.reads_both = self.pattern == (0, 1)
        self.differentiable = differential is not None

    def raw(self, a: Array, number: Number) -> Array:
        return self.op.raw(a, number) if self.side == 0 else self.op.raw(number, a)

    def save(self, inputs: tuple[Tensor, ...], edges: Edges) -> Saved:
        return inputs if self.saves_input else None

    def _push(self, d: Any, x: Any, out: Any, number: Number) -> Value:
        values = (x, number, out) if self.side == 0 else (number, x, out)
        return self.differential(d, *[values[k] for k in self.pattern])

    def vjp(self, node: Node, g: Value, tensors: bool) -> Gradients:
        number = node.params["number"]
        if self.reads_number_alone:
            return (self.differential(g, number if tensors else constant(number, g.dtype)),)
        if not self.pattern:
            return (self.differential(g),)
        x: Any = None if node.saved is None else node.saved[0]
        if self.reads_both and not tensors:
            pair = (x.array, number) if self.side == 0 else (number, x.array)
            return (self.differential(g, *pair),)
        if tensors:
            return (self._push(g, x, None if node.out is None else output_tensor(node), number),)
        return (self._push(g, None if x is None else x.array, node.out, number),)

    def jvp(
        self, tangents: Tangents, out: Value, inputs: Sequence[Value], params: dict[str, Any]
    ) -> Value:
        return self._push(tangents[0], inputs[0], out, params["number"])


class BinaryFunction(Protocol):
    """What :func:`binary` returns: a function of two tensors, or of a tensor and a number."""

    __name__: str
    op: Binary

    def __call__(self, input: V | Number, other: V | Number, *, out: Tensor | None = None) -> V: ...


def binary(
    name: str,
    differential_x: Differential | None,
    differential_y: Differential | None,
    doc: str,
    *,
    floating: bool = False,
    kinds: str = ANY_KIND,
    refuses_bool: str = "",
    kernel: str | None = None,
    second: str = "other",
) -> BinaryFunction:
    """Declares an elementwise function of two inputs and returns it.

    ``floating`` says that integers become floating before it is applied, ``kinds`` which kinds of
    elements it is for, ``refuses_bool`` why (and that) neither input may be boolean, ``second`` how
    the second argument is called.
    """
    differentials = (differential_x, differential_y)
    op = Binary(name, differentials, kernel, floating, kinds, refuses_bool)
    left, right, differentiable = op.left, op.right, op.differentiable
    f32, f64 = op.f32, op.f64

    def function(input: Any, other: Any, *, out: Any = None) -> Any:
        if out is not None:
            return into(name, out, function(input, other), (input, other))
        if input.__class__ is not Tensor or other.__class__ is not Tensor:
            kind = other.__class__
            if (kind is float or kind is int) and input.__class__ is Tensor:
                return _with_number(left, input, other)
            if kind is Tensor and (input.__class__ is float or input.__class__ is int):
                return _with_number(right, other, input)
            if not (isinstance(input, Tensor) and isinstance(other, Tensor)):
                return _mixed(op, input, other)
        a, b = input.array, other.array
        flags = mode.flags
        dtype = a.dtype
        if flags > 1 or dtype is not b.dtype or (dtype is not f32 and dtype is not f64):
            return _general(op, input, other)
        try:
            array = op.raw(a, b)
        except ValueError:
            raise broadcast_error(name, a.shape, b.shape) from None
        return two(op, input, other, array, flags and differentiable)

    if second != "other":  # the bytecode knows its variables by their numbers
        first, _, *rest = function.__code__.co_varnames
        function.__code__ = function.__code__.replace(co_varnames=(first, second, *rest))
    types = {"input": "V", second: "V | Number", "out": "Tensor | None", "return": "V"}
    declared = named(function, name, doc, types)
    declared.op = op
    return declared


def _general(op: Binary, input: Tensor, other: Tensor) -> Tensor:
    """Two tensors of any types, whatever else is going on."""
    dtype = input.array.dtype
    if dtype is not other.array.dtype or (dtype is not op.f32 and dtype is not op.f64):
        input, other = _fitted(op, input, other)
    check_broadcast(op.name, input.array.shape, other.array.shape)
    return apply(op, (input, other), {})


def _fitted(op: Binary, input: Tensor, other: Tensor) -> tuple[Tensor, Tensor]:
    """Two tensors brought to the type that their operation has."""
    if op.refuses_bool and "b" in (input.array.dtype.kind, other.array.dtype.kind):
        raise RuntimeError(f"{op.name}: a bool tensor is not supported; {op.refuses_bool}")
    if input.array.dtype != other.array.dtype:
        input, other = promote(input, other)
    check_kind(op.name, op.kinds, input.array.dtype)
    return (to_floating(input), to_floating(other)) if op.floating else (input, other)


# What PyTorch computes for two numbers, too.
ARITHMETIC = {"add", "sub", "mul", "div", "floor_divide", "trunc_divide"}
PYTHON_NUMBERS = {bool, int, float, complex}  # scalars of NumPy are what derivative rules pass


def _mixed(op: Binary, input: Any, other: Any) -> Any:
    """Operands of which at least one is no tensor."""
    for x in (input, other):
        if isinstance(x, OtherLayout):
            return x.operate(op.name, (input, other), {})
    if op.refuses_bool and bool in (input.__class__, other.__class__):
        raise RuntimeError(f"{op.name}: a bool is not supported; {op.refuses_bool}")
    if isinstance(input, Tensor):
        if isinstance(other, NUMBERS):
            return _with_number(op.left, input, other)
    elif isinstance(other, Tensor):
        if isinstance(input, NUMBERS):
            return _with_number(op.right, other, input)
    elif isinstance(input, ARRAYS) or isinstance(other, ARRAYS):
        return op.free(input, other)
    elif isinstance(input, numbers.Number) and isinstance(other, numbers.Number):
        if op.name not in ARITHMETIC and {input.__class__, other.__class__} <= PYTHON_NUMBERS:
            raise TypeError(
                f"{op.name}(): one of the operands must be a Tensor, got the numbers {input!r} "
                f"and {other!r}; make one of them a tensor with chainrule.tensor(...)"
            )
        return op.free(input, other)
    for x in (input, other):
        if not isinstance(x, (Tensor, *ARRAYS, numbers.Number)):
            raise type_error(op.name, input, other)
    return _general(op, as_operand(input), as_operand(other))


def _with_number(variant: WithNumber, x: Tensor, number: Number) -> Tensor:
    """A tensor and a Python number."""
    a = x.array
    flags = mode.flags
    dtype = a.dtype
    if (
        flags > 1
        or (dtype is not variant.f32 and dtype is not variant.f64)
        or number.__class__ is complex
    ):
        return _with_any_number(variant, x, number)
    c, params = _constants.get((number, dtype)) or _new_constant(number, dtype)
    raw = variant.op.raw
    array = raw(a, c) if variant.side == 0 else raw(c, a)
    return one(variant, x, array, flags and variant.differentiable, params)


def _with_any_number(variant: WithNumber, x: Tensor, number: Number) -> Tensor:
    """A tensor of any type and any number, whatever else is going on."""
    op, dtype = variant.op, x.array.dtype
    if (dtype is not op.f32 and dtype is not op.f64) or number.__class__ is complex:
        if op.refuses_bool and dtype.kind == "b":
            raise RuntimeError(f"{op.name}: a bool tensor is not supported; {op.refuses_bool}")
        check_kind(op.name, op.kinds, result_type(x, number).array_dtype)
        x, number = _fit_number(x, number, op.floating)
    return apply(variant, (x,), {"number": number})


# Python numbers as arrays without dimensions and as parameters, kept for the next time: NumPy takes
# twice as long for a small array and a Python number as for two arrays.
_constants: dict[tuple[Number, ArrayDType], tuple[Array, dict[str, Any]]] = {}


def constant(number: Number, dtype: ArrayDType) -> Array:
    """A Python number as an array without dimensions."""
    return (_constants.get((number, dtype)) or _new_constant(number, dtype))[0]


def is_constant(a: Array) -> bool:
    """Whether an array is a Python number that is kept for the next time."""
    return not a.shape and any([kept is a for kept, _ in _constants.values()])


def _new_constant(number: Number, dtype: ArrayDType) -> tuple[Array, dict[str, Any]]:
    if len(_constants) > 1000:
        _constants.clear()
    made = (K.asarray(number, dtype=dtype), {"number": number})
    if number == number and number != 0:  # NaN is never found again, and -0 would be found as 0
        _constants[number, dtype] = made
    return made


def _fit_number(x: Tensor, number: Number, floating: bool) -> tuple[Tensor, Number]:
    """A tensor and a Python number brought to the type that their operation has."""
    d = result_type(x, number)
    x = cast(x, d)
    if floating:
        x = to_floating(x)
    if x.array.dtype.kind in "iu":
        # Wraps around like PyTorch, where NumPy would refuse a number out of range.
        number = K.asarray(number).astype(x.array.dtype)[()]
    return x, number


def comparison(name: str, doc: str, *, kinds: str = ANY_KIND) -> BinaryFunction:
    """Declares an elementwise comparison: promoted like arithmetic, without derivative."""
    return binary(name, None, None, doc, kinds=kinds)

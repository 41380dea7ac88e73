"""Functions over elementwise primitives: Python numbers, and a short way through.

``unary`` and ``binary`` declare a primitive and return the function a user calls. They are the
hottest Python in the library, so the ordinary case (tensors of one floating type, nothing unusual
going on) is written out; everything else goes through :func:`chainrule.ops.core.primitive.apply`.
"""

from __future__ import annotations

import numbers
import sys
from collections.abc import Callable, Sequence
from typing import Any

from chainrule.backend import K, dtypes
from chainrule.ops.core.apply import apply, as_operand, edge_of, output_tensor
from chainrule.ops.core.primitive import Elementwise, Op, sum_to
from chainrule.ops.core.promotion import (
    Number,
    broadcast_error,
    cast,
    check_broadcast,
    check_kind,
    promote,
    result_type,
    to_floating,
    type_error,
)
from chainrule.graph import Node, mode
from chainrule.tensor import Tensor

__all__ = [
    "binary",
    "comparison",
    "constant",
    "unary",
]

Array = K.Array
F32, F64 = dtypes.float32.array_dtype, dtypes.float64.array_dtype


ANY_KIND = "biufc"  # bool, integer, unsigned integer, floating, complex


# --- one input ------------------------------------------------------------------------------------


class Unary(Elementwise):
    """An elementwise function of one input."""

    def __init__(self, name: str, differential: Callable[..., Any] | None):
        super().__init__(name, [differential])
        self.differential = differential
        self.pattern = self.reads[0]

    def vjp(self, node: Node, g: Any, tensors: bool) -> Sequence[Any]:
        pattern = self.pattern
        if tensors:
            return super().vjp(node, g, True)
        if pattern == (1,):
            return (self.differential(g, node.out),)  # type: ignore[misc]
        if pattern == (0,):
            return (self.differential(g, node.saved[0].array),)  # type: ignore[misc]
        return super().vjp(node, g, False)


def unary(
    name: str,
    differential: Callable[..., Any] | None,
    doc: str,
    *,
    floating: bool = True,
    kinds: str = ANY_KIND,
) -> Callable[[Any], Any]:
    """Declares an elementwise function of one input and returns it.

    ``floating`` says that integers become floating before it is applied, ``kinds`` which kinds of
    elements it is for.
    """
    op = Unary(name, differential)
    reads_input = 0 in op.reads[0]
    saves_out = op.saves_out
    differentiable = op.differentiable
    # The types of tensors that need no check and no conversion.
    f32, f64 = (F32, F64) if "f" in kinds else (None, None)

    def function(input: Any) -> Any:
        if input.__class__ is not Tensor and not isinstance(input, Tensor):
            return _unary_bare(op, input, floating)
        a = input.array
        flags = mode.flags
        dtype = a.dtype
        if flags > 1 or (dtype is not f32 and dtype is not f64):
            check_kind(name, kinds, dtype)
            return apply(op, (to_floating(input) if floating else input,), {})
        array = op.raw(a)
        if array.__class__ is not Array:
            array = K.asarray(array)
        out = Tensor(array)
        if flags and differentiable and (input.needs_grad or input._view is not None):
            edge = input._node
            if edge is None or input._view is not None:
                edge = edge_of(input)
            if edge is not None:
                saved = (input,) if reads_input else None
                out._node = Node(op, (edge,), saved, array if saves_out else None)
                out.needs_grad = True
        return out

    function.__name__ = function.__qualname__ = name
    function.__module__ = sys._getframe(1).f_globals["__name__"]  # where it can be pickled from
    function.__doc__ = doc
    return function


def _unary_bare(op: Op, x: Any, floating: bool) -> Any:
    if not isinstance(x, (Array, numbers.Number)) or x.__class__ in Number:
        raise TypeError(
            f"{op.name}(): argument 'input' (position 1) must be Tensor, not {type(x).__name__}; "
            "convert it with chainrule.tensor(...)"
        )
    return op.raw(to_floating(x) if floating else x)


# --- two inputs -----------------------------------------------------------------------------------


class Binary(Elementwise):
    """An elementwise function of two inputs."""

    def __init__(self, name: str, differentials: Sequence[Any], kernel: str | None):
        super().__init__(name, differentials, kernel)
        x_reads, y_reads = self.reads
        # The gradient of one input reads the other one (a product), or nothing (a sum).
        self.is_product = x_reads == (1,) and y_reads == (0,)
        self.is_sum = not x_reads and not y_reads

    def vjp(self, node: Node, g: Any, tensors: bool) -> Sequence[Any]:
        if not (self.is_product or self.is_sum):
            return super().vjp(node, g, tensors)
        (edge_x, edge_y), shapes = node.edges, node.shapes
        dx, dy = self.differentials
        if self.is_sum:
            gx = None if edge_x is None else dx(g)
            gy = None if edge_y is None else dy(g)
        else:
            x, y = node.saved
            gx = None if edge_x is None else dx(g, y if tensors else y.array)
            gy = None if edge_y is None else dy(g, x if tensors else x.array)
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

    def __init__(self, op: Elementwise, side: int):
        self.name = op.name
        self.batch = "align"
        self.op = op
        self.side = side  # where the tensor stands: 0 on the left, 1 on the right
        self.differential = op.differentials[side]
        self.pattern = op.reads[side]
        self.saves_out = 2 in self.pattern
        self.reads_input = side in self.pattern
        self.reads_number_alone = self.pattern == (1 - side,)
        self.reads_both = self.pattern == (0, 1)
        self.differentiable = self.differential is not None

    def raw(self, a: Any, number: Any) -> Any:
        return self.op.raw(a, number) if self.side == 0 else self.op.raw(number, a)

    def save(self, inputs: tuple[Tensor, ...], edges: tuple[Any, ...]) -> Any:
        return inputs if self.reads_input else None

    def _push(self, d: Any, x: Any, out: Any, number: Any) -> Any:
        values = (x, number, out) if self.side == 0 else (number, x, out)
        return self.differential(d, *[values[k] for k in self.pattern])

    def vjp(self, node: Node, g: Any, tensors: bool) -> Sequence[Any]:
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
        self, tangents: Sequence[Any], out: Any, inputs: Sequence[Any], params: dict[str, Any]
    ) -> Any:
        return self._push(tangents[0], inputs[0], out, params["number"])


def binary(
    name: str,
    differential_x: Callable[..., Any] | None,
    differential_y: Callable[..., Any] | None,
    doc: str,
    *,
    floating: bool = False,
    kinds: str = ANY_KIND,
    refuses_bool: str = "",
    kernel: str | None = None,
) -> Callable[[Any, Any], Any]:
    """Declares an elementwise function of two inputs and returns it.

    ``floating`` says that integers become floating before it is applied, ``kinds`` which kinds of
    elements it is for, ``refuses_bool`` why (and that) neither input may be boolean.
    """
    op = Binary(name, [differential_x, differential_y], kernel)
    x_reads, y_reads = op.reads
    x_reads_x, x_reads_y = 0 in x_reads, 1 in x_reads
    y_reads_x, y_reads_y = 0 in y_reads, 1 in y_reads
    saves_out = op.saves_out
    differentiable = op.differentiable
    left, right = WithNumber(op, 0), WithNumber(op, 1)
    # The types of tensors that need no check and no conversion.
    f32, f64 = (F32, F64) if "f" in kinds else (None, None)

    def function(input: Any, other: Any) -> Any:
        if input.__class__ is not Tensor or other.__class__ is not Tensor:
            kind = other.__class__
            if (kind is float or kind is int) and input.__class__ is Tensor:
                return with_number(left, input, other)
            if kind is Tensor and (input.__class__ is float or input.__class__ is int):
                return with_number(right, other, input)
            if not (isinstance(input, Tensor) and isinstance(other, Tensor)):
                return mixed(input, other)
        a, b = input.array, other.array
        flags = mode.flags
        dtype = a.dtype
        if flags > 1 or dtype is not b.dtype or (dtype is not f32 and dtype is not f64):
            return general(input, other)
        try:
            array = op.raw(a, b)
        except ValueError:
            raise broadcast_error(name, a.shape, b.shape) from None
        if array.__class__ is not Array:
            array = K.asarray(array)
        out = Tensor(array)
        if flags and differentiable:
            edge_x = edge_of(input) if input.needs_grad or input._view is not None else None
            edge_y = edge_of(other) if other.needs_grad or other._view is not None else None
            if edge_x is not None or edge_y is not None:
                save_x = (edge_x is not None and x_reads_x) or (edge_y is not None and y_reads_x)
                save_y = (edge_x is not None and x_reads_y) or (edge_y is not None and y_reads_y)
                saved = None
                if save_x or save_y:
                    saved = (input if save_x else None, other if save_y else None)
                shape_a, shape_b = a.shape, b.shape
                shapes = None if shape_a == shape_b else (shape_a, shape_b)
                node = Node(op, (edge_x, edge_y), saved, array if saves_out else None, shapes)
                out._node = node
                out.needs_grad = True
        return out

    def general(input: Any, other: Any) -> Any:
        dtype = input.array.dtype
        if dtype is not other.array.dtype or (dtype is not f32 and dtype is not f64):
            input, other = fitted(input, other)
        check_broadcast(name, input.array.shape, other.array.shape)
        return apply(op, (input, other), {})

    def fitted(input: Any, other: Any) -> tuple[Any, Any]:
        if refuses_bool and "b" in (input.array.dtype.kind, other.array.dtype.kind):
            raise RuntimeError(f"{name}: a bool tensor is not supported; {refuses_bool}")
        if input.array.dtype != other.array.dtype:
            input, other = promote(input, other)
        check_kind(name, kinds, input.array.dtype)
        return (to_floating(input), to_floating(other)) if floating else (input, other)

    def mixed(input: Any, other: Any) -> Any:
        if refuses_bool and bool in (input.__class__, other.__class__):
            raise RuntimeError(f"{name}: a bool is not supported; {refuses_bool}")
        if isinstance(input, Tensor):
            if isinstance(other, Number):
                return with_number(left, input, other)
        elif isinstance(other, Tensor):
            if isinstance(input, Number):
                return with_number(right, other, input)
        elif isinstance(input, Array) or isinstance(other, Array):
            return op.raw(input, other)
        elif isinstance(input, numbers.Number) and isinstance(other, numbers.Number):
            return op.raw(input, other)
        for x in (input, other):
            if not isinstance(x, (Tensor, Array, numbers.Number)):
                raise type_error(name, input, other)
        return general(as_operand(input), as_operand(other))

    def fitted_to_number(x: Tensor, number: Any) -> tuple[Tensor, Any]:
        if refuses_bool and x.array.dtype.kind == "b":
            raise RuntimeError(f"{name}: a bool tensor is not supported; {refuses_bool}")
        check_kind(name, kinds, result_type(x, number).array_dtype)
        return _fit_number(x, number, floating)

    def with_number(variant: WithNumber, x: Tensor, number: Any) -> Any:
        a = x.array
        flags = mode.flags
        dtype = a.dtype
        if flags > 1 or (dtype is not f32 and dtype is not f64) or number.__class__ is complex:
            if (dtype is not f32 and dtype is not f64) or number.__class__ is complex:
                x, number = fitted_to_number(x, number)
            return apply(variant, (x,), {"number": number})
        c = constant(number, dtype)
        array = op.raw(a, c) if variant is left else op.raw(c, a)
        if array.__class__ is not Array:
            array = K.asarray(array)
        out = Tensor(array)
        if flags and variant.differentiable and (x.needs_grad or x._view is not None):
            edge = edge_of(x)
            if edge is not None:
                saved = (x,) if variant.reads_input else None
                kept = array if variant.saves_out else None
                out._node = Node(variant, (edge,), saved, kept, None, {"number": number})
                out.needs_grad = True
        return out

    function.__name__ = function.__qualname__ = name
    function.__module__ = sys._getframe(1).f_globals["__name__"]  # where it can be pickled from
    function.__doc__ = doc
    function.op = op  # type: ignore[attr-defined]
    return function


_constants: dict[tuple[Any, Any], Any] = {}


def constant(number: Any, dtype: Any) -> Any:
    """A Python number as an array without dimensions, kept for the next time.

    NumPy takes twice as long for a small array and a Python number as for two arrays.
    """
    key = (number, dtype)
    array = _constants.get(key)
    if array is None:
        if len(_constants) > 1000:
            _constants.clear()
        array = K.asarray(number, dtype=dtype)
        if number == number and number != 0:  # NaN is never found again, and -0 would be found as 0
            _constants[key] = array
    return array


def _fit_number(x: Tensor, number: Any, floating: bool) -> tuple[Tensor, Any]:
    """A tensor and a Python number brought to the type that their operation has."""
    d = result_type(x, number)
    x = cast(x, d)
    if floating:
        x = to_floating(x)
    if x.array.dtype.kind in "iu":
        # Wraps around like PyTorch, where NumPy would refuse a number out of range.
        number = K.asarray(number).astype(x.array.dtype)[()]
    return x, number


def comparison(name: str, doc: str, *, kinds: str = ANY_KIND) -> Callable[[Any, Any], Any]:
    """Declares an elementwise comparison: promoted like arithmetic, without derivative."""
    return binary(name, None, None, doc, kinds=kinds)

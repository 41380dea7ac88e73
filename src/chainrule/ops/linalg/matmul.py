"""The product of matrices, and the linear map of a layer.

Both have a short way through for two-dimensional tensors of one floating type: most of the time of
a small network is spent here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import Any

from chainrule.backend import ARRAYS, K, dtypes
from chainrule.ops.core.out import into
from chainrule.ops.core.apply import apply, as_operand
from chainrule.ops.core.recording import affine
from chainrule.ops.core.batching import ON_ARRAYS, spread
from chainrule.ops.core.promotion import broadcast_shapes
from chainrule.ops.core.primitive import Bilinear, Op, Primitive, broadcast_to, sum_to
from chainrule.ops.shape.views import reshape, squeeze, unsqueeze
from chainrule.graph import Edges, Node, Saved, mode
from chainrule.tensor import OtherLayout, Tensor
from chainrule.typing import Gradients, Shape, Tangents, V, Value

__all__ = ["linear", "matmul"]

METHODS = ("matmul",)
INPLACE: tuple[str, ...] = ()

F32, F64 = dtypes.float32.array_dtype, dtypes.float64.array_dtype
_NOTHING: dict[str, Any] = {}

# --- matmul ---------------------------------------------------------------------------------------


def as_rows(x: V) -> V:
    """All dimensions but the last as one."""
    shape = x.shape
    return x if len(shape) == 2 else reshape(x, (math.prod(shape[:-1]), shape[-1]))


def _from_left(g: V, x_shape: Shape, y: V) -> V:
    """The gradient of x: g y'."""
    if y.ndim == 1:
        return unsqueeze(g, -1) * y
    if len(x_shape) == 1:
        return squeeze(matmul(y, unsqueeze(g, -1)), -1)
    return matmul(g, y.mT)


def _from_right(g: V, x: V, y_shape: Shape) -> V:
    """The gradient of y: x' g."""
    if x.ndim == 1:
        return g * x if len(y_shape) == 1 else unsqueeze(x, -1) * unsqueeze(g, -2)
    if len(y_shape) == 1:
        return matmul(reshape(g, (-1,)), as_rows(x)) if g.ndim > 1 else matmul(g, x)
    if len(y_shape) == 2 and x.ndim > 2:
        # One product over the whole batch, which a sum over the batch would follow otherwise.
        return matmul(as_rows(x).mT, as_rows(g))
    return matmul(x.mT, g)


def _batch_of_products(
    op: Op, size: int, values: Sequence[Tensor], mapped: Sequence[bool], params: dict[str, Any]
) -> Tensor:
    """vmap: as a product of matrices, with the batch as one more leading dimension."""
    (x, y), (mapped_x, mapped_y) = values, mapped
    rank_x, rank_y = x.ndim - mapped_x, y.ndim - mapped_y
    if rank_y == 1 and rank_x == 2 and not mapped_x:
        return _matmul(y, x.mT)
    if rank_x == 1 and rank_y == 2 and not mapped_y:
        return _matmul(x, y)
    if rank_x == 1:
        x = unsqueeze(x, -2)
    if rank_y == 1:
        y = unsqueeze(y, -1)
    rank = max(rank_x, rank_y, 2)
    if mapped_x and (mapped_y or y.ndim > 2):
        x = _with_rank(x, rank)
    if mapped_y:
        y = _with_rank(y, rank)
    out = _matmul(x, y)
    if rank_x == 1:
        out = squeeze(out, -2)
    return squeeze(out, -1) if rank_y == 1 else out


def _with_rank(x: Tensor, rank: int) -> Tensor:
    """A mapped tensor with dimensions of size 1 behind the batch, ``rank`` without the batch."""
    missing = rank - (x.ndim - 1)
    if missing == 0:
        return x
    return reshape(x, (x.shape[0], *[1] * missing, *x.shape[1:]))


class _MatMul(Bilinear):
    def vjp(self, node: Node, g: Value, tensors: bool) -> Gradients:
        if tensors or g.ndim != 2 or len(node.shapes[0]) != 2 or len(node.shapes[1]) != 2:
            return super().vjp(node, g, tensors)
        # An ordinary backward pass through a product of two matrices.
        x, y = node.saved
        raw = self.raw
        return (
            None if y is None else raw(g, y.array.T),
            None if x is None else raw(x.array.T, g),
        )


_matmul = _MatMul("matmul", (_from_left, _from_right), _batch_of_products)
ON_ARRAYS.add(_batch_of_products)


def matmul(input: V, other: V, *, out: Tensor | None = None) -> V:
    """The product of two tensors, ``input @ other``.

    Vectors and matrices multiply as usual (two vectors give a number); dimensions before the last
    two are a batch and are broadcast.

    >>> import chainrule
    >>> x, y = chainrule.ones(5, 2, 3), chainrule.ones(3, 4)
    >>> (x @ y).shape
    chainrule.Size([5, 2, 4])
    """
    if out is not None:
        return into("matmul", out, matmul(input, other), (input, other), exact=True)
    x: Any = input  # a tensor, unless a rule computes on arrays
    y: Any = other
    if x.__class__ is not Tensor or y.__class__ is not Tensor:
        if not (isinstance(x, Tensor) and isinstance(y, Tensor)):
            return _matmul_bare(x, y)
    a, b = x.array, y.array
    flags = mode.flags
    dtype = a.dtype
    if (
        flags > 1
        or a.ndim != 2
        or b.ndim != 2
        or dtype is not b.dtype
        or (dtype is not F32 and dtype is not F64)
    ):
        return product("matmul", input, other)
    try:
        array = _matmul.raw(a, b)
    except ValueError:
        raise _shape_error("matmul", x, y) from None
    result: Any = affine(_matmul, x, y, None, array, flags, _NOTHING)
    return result


def _matmul_bare(input: Any, other: Any) -> Any:
    """matmul where at least one of the two is not a tensor."""
    for position, x in enumerate((input, other), 1):
        if isinstance(x, OtherLayout):
            return x.operate("matmul", (input, other), {})
        if not isinstance(x, (Tensor, *ARRAYS)):
            raise TypeError(
                f"matmul(): argument {position} must be a Tensor, not {type(x).__name__}; multiply "
                "by a number with *, convert a list with chainrule.tensor(...)"
            )
    if isinstance(input, ARRAYS) and isinstance(other, ARRAYS):
        return _matmul.free(input, other)
    return matmul(as_operand(input), as_operand(other))


def product(op: str, x: V, y: V) -> V:
    """x @ y after all checks; ``op`` is the name in a message."""
    left: Any = x
    right: Any = y
    if not (isinstance(left, Tensor) and isinstance(right, Tensor)):
        for operand in (left, right):
            if isinstance(operand, OtherLayout):
                return operand.operate("matmul", (left, right), {"op": op})
        if not (isinstance(left, Tensor) or isinstance(right, Tensor)):
            return _matmul.free(left, right)
    a, b = left.array, right.array
    _check_types(op, left, right)
    if a.ndim == 0 or b.ndim == 0:
        raise RuntimeError(
            f"{op}: both arguments need to be at least 1-D, but they are {a.ndim}-D and "
            f"{b.ndim}-D; multiply by a number with *"
        )
    if a.shape[-1] != (b.shape[-2] if b.ndim > 1 else b.shape[0]):
        raise _shape_error(op, x, y)
    if a.ndim > 2 and b.ndim > 2:
        check_batch(op, x, y)
    return apply(_matmul, (left, right), {})


def check_batch(op: str, x: Value, y: Value) -> None:
    """Refuses two batches of matrices of which neither fits the other."""
    a, b = tuple(x.shape), tuple(y.shape)
    for i in range(3, min(len(a), len(b)) + 1):
        if a[-i] != b[-i] and 1 not in (a[-i], b[-i]):
            raise RuntimeError(
                f"{op}: the batch dimensions of shapes {a} and {b} cannot be broadcast: sizes "
                f"{a[-i]} and {b[-i]} at dimension {-i} must be equal or 1"
            )


def _check_types(op: str, x: Tensor, y: Tensor) -> None:
    if x.array.dtype != y.array.dtype:
        raise RuntimeError(
            f"{op}: expected both tensors to have the same dtype, but got {x.dtype} and {y.dtype}; "
            "convert one of them, for example with .to(other.dtype)"
        )
    if x.array.dtype.kind == "b":
        raise NotImplementedError(
            f"{op}: not implemented for booleans; convert with .float() or .long()"
        )


def _shape_error(op: str, x: Value, y: Value) -> RuntimeError:
    a, b = tuple(x.shape), tuple(y.shape)
    rows = b[-2] if len(b) > 1 else b[0]
    hint = ""
    if a[-1] == b[-1]:
        hint = "; transpose the second (.mT) to multiply along its last dimension"
    elif len(a) > 1 and a[-2] == rows:
        hint = "; transpose the first (.mT) to multiply along its second to last dimension"
    return RuntimeError(
        f"{op}: shapes {a} and {b} cannot be multiplied: the last dimension of the first ({a[-1]}) "
        f"must equal {'the second to last' if len(b) > 1 else 'the only'} dimension of the second "
        f"({rows})" + hint
    )


# --- linear ---------------------------------------------------------------------------------------


def _linear_vjp(g: V, out: None, x: V, w: V, b: None = None, *, needs: Sequence[bool]) -> Gradients:
    gx = matmul(g, w) if needs[0] else None
    gw = None
    if needs[1]:
        gw = unsqueeze(g, -1) * x if g.ndim == 1 else matmul(as_rows(g).mT, as_rows(x))
    return (gx, gw, g)[: len(needs)]


def _linear_jvp(
    tangents: Tangents, out: Value, x: Value, w: Value, b: Value | None = None
) -> Value:
    parts = []
    if tangents[0] is not None:
        parts.append(_linear(tangents[0], w))
    if tangents[1] is not None:
        parts.append(_linear(x, tangents[1]))
    if len(tangents) > 2 and tangents[2] is not None:
        change = tangents[2] if tangents[2].ndim == 1 else unsqueeze(tangents[2], -2)
        parts.append(broadcast_to(change, shape=tuple(out.shape)))
    return reduce(add, parts)


def _batch_of_linear(
    op: Op, size: int, values: Sequence[Tensor], mapped: Sequence[bool], params: dict[str, Any]
) -> Tensor:
    """vmap: as it is if only the input is mapped, as a stack of layers if all weights are, else as
    a product and a sum."""
    if mapped[0] and not any(mapped[1:]) and values[1].ndim == 2:
        return op(*values)
    x, w, *bias = values
    if w.ndim - mapped[1] > 2:  # of a stack already
        return op(*[v if m else spread(v, size) for v, m in zip(values, mapped, strict=True)])
    if all(mapped[1:]) and x.ndim - mapped[0] == 2:
        return op(*values)
    if mapped[0] or mapped[1]:
        out = _batch_of_products(_matmul, size, (x, w.mT), mapped[:2], {})
        rank = out.ndim - 1
    else:
        out = matmul(x, w.mT)
        rank = out.ndim
    for b in bias:
        out = out + (_with_rank(b, rank) if mapped[2] else b)
    return out


class LinearMap(Primitive):
    """x @ weight.T + bias, for one layer or a stack of layers."""

    def save(self, inputs: tuple[Tensor, ...], edges: Edges) -> Saved:
        """The gradient of each of input and weight reads the other; nothing reads the bias."""
        x = inputs[0] if edges[1] is not None else None
        w = inputs[1] if edges[0] is not None else None
        return (x, w, None)[: len(inputs)]

    def vjp(self, node: Node, g: Value, tensors: bool) -> Gradients:
        if len(node.shapes[1]) > 2:
            return self._stack_vjp(node, g) if tensors else self._bare_stack_vjp(node, g)
        if tensors or g.ndim != 2:
            return super().vjp(node, g, tensors)
        x, w, edges, shapes = node.saved[0], node.saved[1], node.edges, node.shapes
        has_bias = len(edges) > 2 and edges[2] is not None
        whole = has_bias and shapes[2] == shapes[1][:1]
        gx, gw, gb = K.linear_backward(
            g, None if x is None else x.array, None if w is None else w.array, whole
        )
        if len(edges) == 2:
            return gx, gw
        return gx, gw, sum_to.raw(g, shapes[2]) if has_bias and not whole else gb

    def _stack_vjp(self, node: Node, g: Value) -> Gradients:
        """Of a stack of layers, each with weights of its own: what vmap makes of many networks."""
        x, w = node.saved[:2]
        edges, shapes = node.edges, node.shapes
        grads = [
            None if edges[0] is None else matmul(g, w),
            None if edges[1] is None else matmul(g.mT, x),
        ]
        if len(edges) > 2:
            *batch, out = shapes[2]
            total = None if edges[2] is None else sum_to(g, shape=(*batch, 1, out))
            grads.append(None if total is None else reshape(total, shapes[2]))
        return [
            gi if gi is None or gi.shape == shape else sum_to(gi, shape=shape)
            for gi, shape in zip(grads, shapes, strict=True)
        ]

    @staticmethod
    def _bare_stack_vjp(node: Node, g: Value) -> Gradients:
        x, w, edges, shapes = node.saved[0], node.saved[1], node.edges, node.shapes
        gx, gw, gb = K.linear_backward(
            g,
            None if x is None else x.array,
            None if w is None else w.array,
            len(edges) > 2 and edges[2] is not None,
        )
        total = sum_to.raw
        if gx is not None and gx.shape != shapes[0]:  # an input for all layers
            gx = total(gx, shapes[0])
        if gw is not None and gw.shape != shapes[1]:
            gw = total(gw, shapes[1])
        if gb is not None and gb.shape != shapes[2]:
            gb = total(gb, shapes[2])
        return (gx, gw) if len(edges) == 2 else (gx, gw, gb)


# A primitive for speed: one node instead of three, and no transposed copy of the weight's gradient.
_linear = LinearMap("linear", _linear_vjp, _linear_jvp, _batch_of_linear, saves_out=False)


def linear(input: V, weight: V, bias: V | None = None) -> V:
    """input @ weight.T + bias

    Shape: input (\\*, D_in), weight (D_out, D_in), bias (D_out), output (\\*, D_out). A weight of
    shape (D_in) gives one number for each row.
    """
    out: Any = ordinary_linear(_linear, input, weight, bias)
    return _linear_checked(input, weight, bias) if out is None else out


def ordinary_linear(
    op: Op, input: Value, weight: Value | None, bias: Value | None
) -> Tensor | None:
    """The linear map, or one with an activation, in the ordinary case: matrices of one floating
    type and nothing unusual going on. None in any other."""
    flags = mode.flags
    if not isinstance(input, Tensor) or not isinstance(weight, Tensor) or flags > 1:
        return None
    x, w = input.array, weight.array
    dtype, size = x.dtype, w.shape
    if (
        x.ndim != 2
        or len(size) != 2
        or x.shape[1] != size[1]
        or dtype is not w.dtype
        or (dtype is not F32 and dtype is not F64)
    ):
        return None
    if bias is None:
        array = op.raw(x, w)
    elif isinstance(bias, Tensor) and bias.array.dtype is dtype and bias.array.shape == size[:1]:
        array = op.raw(x, w, bias.array)
    else:
        return None
    return affine(op, input, weight, bias, array, flags, _NOTHING)


def _linear_checked(input: Any, weight: Any, bias: Any) -> Any:
    """linear in any case that is not the ordinary one."""
    inputs: tuple[Any, ...] = (input, weight) if bias is None else (input, weight, bias)
    for name, t in zip(("input", "weight", "bias"), inputs, strict=False):
        if isinstance(t, OtherLayout):
            return t.operate("linear", inputs, {})
        if not isinstance(t, (Tensor, *ARRAYS)):
            raise TypeError(
                f"linear(): argument {name!r} must be Tensor, not {type(t).__name__}; convert it "
                "with chainrule.tensor(...)"
            )
    if not any(isinstance(t, Tensor) for t in inputs):
        return _linear.free(*inputs)
    inputs = tuple([as_operand(t) for t in inputs])
    x, w, *terms = inputs
    _check_types("linear", x, w)
    if x.ndim == 0 or w.ndim not in (1, 2) or (w.ndim == 1 and terms):
        raise RuntimeError(
            f"linear: input must have at least one dimension and weight two (or one, without a "
            f"bias), got shapes {tuple(x.shape)} and {tuple(w.shape)}"
        )
    if x.shape[-1] != w.shape[-1]:
        raise RuntimeError(
            f"linear: input of shape {tuple(x.shape)} and weight of shape {tuple(w.shape)} cannot "
            f"be multiplied: the last dimension of the input ({x.shape[-1]}) must equal the number "
            f"of input features of the weight ({w.shape[-1]})"
        )
    shape = (*x.shape[:-1], *w.shape[:-1])
    for b in terms:
        _check_types("linear", x, b)
        check_fits("linear", "bias", b, shape)
    if w.ndim == 1:
        return product("linear", x, w)
    if x.ndim > 2 and _is_scattered(x) and all([b.ndim == 1 for b in terms]):
        return reshape(linear(reshape(x, (-1, x.shape[-1])), w, *terms), shape)
    return apply(_linear, inputs, {})


def _is_scattered(x: Tensor) -> bool:
    """Whether the rows of x do not lie one behind the other, as after a transposition: a copy of
    them costs less than a product that reads them as they are."""
    array = x.array
    return isinstance(array, ARRAYS) and array.size > 0 and not array.flags.c_contiguous


def check_fits(op: str, name: str, x: Value, shape: Shape) -> None:
    """Refuses a term that cannot be expanded to the shape of the result."""
    if tuple(broadcast_shapes(x.shape, shape, op=op)) != tuple(shape):
        raise RuntimeError(
            f"{op}: {name} of shape {tuple(x.shape)} cannot be expanded to the shape of the "
            f"result, {tuple(shape)}"
        )

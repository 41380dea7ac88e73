"""Types and shapes of operands: PyTorch's rules of promotion and broadcasting, and their errors."""

from __future__ import annotations

from typing import Any

from chainrule.backend import ARRAYS, K, dtypes
from chainrule.ops.core.primitive import Linear, Nondifferentiable
from chainrule.tensor import OtherLayout, Size, Tensor, of_array
from chainrule.typing import ArrayDType, DType, Number, Shape, V, Value

__all__ = [
    "NUMBERS",
    "broadcast_error",
    "broadcast_shapes",
    "cast",
    "check_broadcast",
    "check_kind",
    "is_complex_value",
    "promote",
    "result_type",
    "to_floating",
    "type_error",
]

NUMBERS = (bool, int, float, complex)

# --- types ----------------------------------------------------------------------------------------

_cast = Linear(
    "cast", lambda g, shape, dtype, source: _cast(g, dtype=source, source=dtype), kernel="cast"
)


_cast.rounds = False  # it is what rounds


def cast(x: V, dtype: DType) -> V:
    """``x`` (tensor or bare array) with elements of another type; itself if it has that type."""
    target = dtypes.to_array_dtype(dtype)
    source = x.array.dtype if isinstance(x, Tensor) else x.dtype
    if source == target:
        return x
    if K.kind_of(target) in "fc":
        return _cast(x, dtype=target, source=source)
    return _round(x, dtype=target)


_round = Nondifferentiable("cast_to_integer", "carry", kernel="cast_to_integer")


def result_type(*operands: Value | Number) -> dtypes.dtype:
    """The type that an operation on these tensors and numbers has, by PyTorch's table.

    >>> import chainrule
    >>> chainrule.result_type(chainrule.tensor([1, 2]), 1.5)
    chainrule.float32
    """
    best: list[dtypes.dtype | None] = [None, None, None]
    for x in operands:
        if isinstance(x, NUMBERS):
            priority, d = 0, _number_type(x)
        else:
            a = x.array if isinstance(x, (Tensor, OtherLayout)) else x
            priority, d = (2 if a.ndim else 1), dtypes.from_array_dtype(a.dtype)
        before = best[priority]
        best[priority] = d if before is None else dtypes.promote_types(before, d)
    result: dtypes.dtype | None = None
    for found in reversed(best):
        if found is None:
            continue
        d = found
        if result is None:
            result = d
        elif d.category > result.category:
            if d.is_complex and result.is_floating_point:  # as wide as the real type
                d = dtypes.complex128 if result is dtypes.float64 else dtypes.complex64
            result = d
    if result is None:
        raise ValueError("result_type: no operands")
    return result


def _number_type(x: Number) -> dtypes.dtype:
    default = dtypes.get_default_dtype()
    wide = default is dtypes.float64
    kinds = (dtypes.bool_, dtypes.int64, default, dtypes.complex128 if wide else dtypes.complex64)
    return kinds[dtypes.category(x)]


def is_complex_value(x: Value) -> bool:
    """Whether a tensor or a bare array holds complex numbers."""
    return (x.array if isinstance(x, Tensor) else x).dtype.kind == "c"


def to_floating(x: V) -> V:
    """``x`` in the default floating type if it holds integers or booleans."""
    kind = (x.array if isinstance(x, Tensor) else x).dtype.kind
    return cast(x, dtypes.get_default_dtype()) if kind in "iub" else x


def promote(*operands: V | Number) -> tuple[V, ...]:
    """The operands with one common type; Python numbers become zero-dimensional tensors."""
    d = result_type(*operands)
    promoted: Any = tuple(
        of_array(K.asarray(x, dtype=d.array_dtype)) if isinstance(x, NUMBERS) else cast(x, d)
        for x in operands
    )
    return promoted


# --- errors ---------------------------------------------------------------------------------------


def broadcast_shapes(*shapes: Any, op: str = "broadcast_shapes") -> tuple[int, ...]:
    """The shape that tensors of these shapes broadcast to; a number is the shape of a vector.

    >>> import chainrule
    >>> chainrule.broadcast_shapes((3, 1), (4,))
    chainrule.Size([3, 4])
    """
    try:
        ndim = max([len(s) for s in shapes], default=0)
    except TypeError:
        return broadcast_shapes(*[(s,) if isinstance(s, int) else tuple(s) for s in shapes], op=op)
    out = [1] * ndim
    for shape in shapes:
        for i, n in enumerate(shape, start=ndim - len(shape)):
            if n != 1 and out[i] not in (1, n):
                raise broadcast_error(op, *shapes)
            if n != 1:
                out[i] = n
    return Size(out)


def check_broadcast(op: str, a: tuple[int, ...], b: tuple[int, ...]) -> None:
    """Refuses two shapes that do not fit; where one ends like the other, that is seen at once."""
    if a[len(a) - len(b) :] != b and b[len(b) - len(a) :] != a:
        broadcast_shapes(a, b, op=op)


def broadcast_error(op: str, *shapes: Shape) -> RuntimeError:
    """Two shapes do not fit: says where, and what would."""
    listed = " and ".join(str(tuple(s)) for s in shapes)
    if len(shapes) == 2:
        a, b = (tuple(s) for s in shapes)
        for i in range(1, min(len(a), len(b)) + 1):
            if a[-i] != b[-i] and 1 not in (a[-i], b[-i]):
                where = max(len(a), len(b)) - i
                return RuntimeError(
                    f"{op}: the size of tensor a ({a[-i]}) must match the size of tensor b "
                    f"({b[-i]}) at non-singleton dimension {where}; the shapes are {listed}. "
                    "Sizes must be equal or 1, counted from the last dimension: use reshape, "
                    "unsqueeze or transpose to line them up"
                )
    return RuntimeError(f"{op}: shapes {listed} cannot be broadcast together")


def type_error(op: str, *operands: object) -> TypeError:
    """One of the operands is neither tensor nor number: says which type it has."""
    bad = next(x for x in operands if not isinstance(x, (Tensor, *ARRAYS, *NUMBERS)))
    return TypeError(
        f"{op}(): an operand must be a Tensor or a number, not {type(bad).__name__}; "
        "convert it with chainrule.tensor(...)"
    )


_NAMES = {"b": "bool", "i": "integer", "u": "integer", "f": "floating-point", "c": "complex"}


def check_kind(op: str, kinds: str, dtype: ArrayDType) -> None:
    """Refuses elements of a type that an operation is not for."""
    if K.kind_of(dtype) not in kinds:
        wanted = " or ".join(dict.fromkeys(_NAMES[k] for k in kinds))
        got = dtypes.from_array_dtype(dtype)
        raise RuntimeError(f"{op}: not implemented for {got}; it is for {wanted} tensors")

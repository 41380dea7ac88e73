"""Tensor's operators and methods, attached here because Tensor lies a room below the operations.

A family lists in ``METHODS`` which of its functions are methods too, and in ``INPLACE`` which of
them have a form with a trailing underscore; ``INPLACE_VIEWS`` are those whose form changes the
shape of the tensor, not its elements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from chainrule.ops import absent_methods, families
from chainrule.ops.shape import rearrange
from chainrule.ops.index.assignment import setitem
from chainrule.ops.elementwise import complex_numbers, derived, functions, logic, options
from chainrule.ops.index.reading import getitem
from chainrule.ops.core.inplace import in_place, in_place_operator, in_place_view
from chainrule.ops.core.pointwise import BinaryFunction
from chainrule.ops.linalg.matmul import matmul
from chainrule.printing import format_tensor
from chainrule.tensor import Tensor
from chainrule.typing import Operand

__all__ = ["attach", "attributes"]


def _reflected(function: Callable[[Any, Any], Tensor]) -> Callable[[Tensor, Operand], Tensor]:
    def operator(self: Tensor, other: Operand) -> Tensor:
        return function(other, self)

    return operator


def _operator(function: BinaryFunction) -> Callable[[Any, Any], Any]:
    """An operator that lets Python try the other operand's if it does not know the type."""

    def operator(self: Tensor, other: Any) -> Any:
        try:
            return function(self, other)
        except TypeError:
            if isinstance(other, (Tensor, int, float, complex)):
                raise
            return NotImplemented

    return operator


BINARY_OPERATORS: dict[str, BinaryFunction] = {
    "add": functions.plus,
    "sub": functions.minus,
    "mul": functions.mul,
    "truediv": functions.true_divide,
    "floordiv": functions.floor_divide,
    "mod": functions.remainder,
    "pow": functions.pow,
    "and": logic.bitwise_and,
    "or": logic.bitwise_or,
    "xor": logic.bitwise_xor,
    "lshift": logic.bitwise_left_shift,
    "rshift": logic.bitwise_right_shift,
}
COMPARISONS: dict[str, BinaryFunction] = {
    "eq": logic.eq,
    "ne": logic.ne,
    "lt": logic.lt,
    "le": logic.le,
    "gt": logic.gt,
    "ge": logic.ge,
}
UNARY_OPERATORS: dict[str, Callable[[Tensor], Tensor]] = {
    "neg": functions.neg,
    "pos": derived.positive,
    "abs": complex_numbers.abs,
    "invert": logic.bitwise_not,
}

PROPERTIES: dict[str, Callable[[Tensor], Tensor]] = {
    "real": complex_numbers.real,
    "imag": complex_numbers.imag,
    "T": rearrange.transpose_all,
    "mT": rearrange.matrix_transpose,
    "mH": rearrange.adjoint,
    "H": rearrange.conjugate_transpose,
}

# NumPy's name for a function, where it differs from ours.
UFUNCS = {
    "subtract": "sub",
    "multiply": "mul",
    "divide": "true_divide",
    "power": "pow",
    "negative": "neg",
    "absolute": "abs",
    "arcsin": "asin",
    "arccos": "acos",
    "arctan": "atan",
    "arctan2": "atan2",
    "arcsinh": "asinh",
    "arccosh": "acosh",
    "arctanh": "atanh",
    "equal": "eq",
    "not_equal": "ne",
    "less": "lt",
    "less_equal": "le",
    "greater": "gt",
    "greater_equal": "ge",
    "invert": "bitwise_not",
    "conjugate": "conj",
}
_ELEMENTWISE: dict[str, Callable[..., Any]] = {
    name: getattr(family, name)
    for family in (functions, logic, options, derived, complex_numbers)
    for name in family.METHODS
}


def _array_ufunc(self: Tensor, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
    """``np.sin(tensor)`` and ``array * tensor`` are operations of this library."""
    name = UFUNCS.get(ufunc.__name__, ufunc.__name__)
    function = matmul if name == "matmul" else _ELEMENTWISE.get(name)
    if function is None or method != "__call__" or kwargs:
        return NotImplemented
    return function(*inputs)


def _iterate(self: Tensor) -> Iterator[Tensor]:
    if self.ndim == 0:
        raise TypeError("iteration over a 0-d tensor")
    return iter([self[i] for i in range(len(self))])


def attributes() -> Iterator[tuple[str, Any]]:
    """The operators, properties and methods of Tensor, by name."""
    yield "__array_ufunc__", _array_ufunc
    yield "__iter__", _iterate
    yield "__repr__", format_tensor
    yield "__getitem__", getitem
    yield "__setitem__", setitem
    for name, function in BINARY_OPERATORS.items():
        yield f"__{name}__", function
        yield f"__r{name}__", _reflected(function)
        yield f"__i{name}__", in_place_operator(function, f"__i{name}__")
    # PyTorch has no in-place form of @ either.
    yield "__matmul__", matmul
    yield "__rmatmul__", _reflected(matmul)
    for name, function in COMPARISONS.items():
        yield f"__{name}__", _operator(function)
    for name, operator in UNARY_OPERATORS.items():
        yield f"__{name}__", operator
    for name, read in PROPERTIES.items():
        yield name, property(read)
    for family in families:
        for name in family.METHODS:
            yield name, getattr(family, name)
        for name in family.INPLACE:
            yield name + "_", in_place(getattr(family, name), name + "_")
        for name in getattr(family, "INPLACE_VIEWS", ()):
            yield name + "_", in_place_view(getattr(family, name), name + "_")


def attach() -> None:
    """Gives Tensor its operators and methods."""
    for name, value in attributes():
        setattr(Tensor, name, value)
    for name in absent_methods.NAMES:
        if name not in vars(Tensor):
            setattr(Tensor, name, absent_methods.Absent(name))

"""The types a tensor's elements can have, and the rules by which they mix.

A :class:`dtype` is one object per type, compared by identity, printed as PyTorch prints its own.
Promotion follows PyTorch's table: the *category* (bool < integer < floating < complex) of every
operand counts, the *width* only of those of the highest priority: tensors with dimensions come
before zero-dimensional tensors, which come before Python numbers.

NumPy has no bfloat16: its arrays have the type of ``ml_dtypes``, an extra, which is imported when
bfloat16 is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = [
    "DTYPES",
    "bfloat16",
    "bool_",
    "category",
    "complex128",
    "complex64",
    "dtype",
    "float16",
    "float32",
    "float64",
    "from_array_dtype",
    "get_default_dtype",
    "int16",
    "int32",
    "int64",
    "int8",
    "promote_types",
    "set_default_dtype",
    "to_array_dtype",
    "with_own_dtype",
    "uint8",
    "as_dtype",
]


class dtype:
    """The type of a tensor's elements, such as ``chainrule.float32``.

    >>> import chainrule
    >>> chainrule.float32, chainrule.float32.itemsize, chainrule.int64.is_floating_point
    (chainrule.float32, 4, False)
    """

    __slots__ = ("array_dtype", "category", "name")

    def __init__(self, name: str, category: int):
        self.name = name
        self.category = category
        self.array_dtype = np.dtype(name)

    @property
    def itemsize(self) -> int:
        """The bytes that one element takes."""
        return self.array_dtype.itemsize

    @property
    def kind(self) -> str:
        """The kind of the elements as arrays name it: "b", "i", "u", "f" or "c"."""
        return self.array_dtype.kind

    @property
    def is_floating_point(self) -> bool:
        """Whether the elements are real numbers with a fraction."""
        return self.category == FLOATING

    @property
    def is_complex(self) -> bool:
        """Whether the elements are complex numbers."""
        return self.category == COMPLEX

    @property
    def is_signed(self) -> bool:
        """Whether the elements can be negative."""
        return self.name not in ("bool", "uint8")

    def __repr__(self) -> str:
        return f"chainrule.{self.name}"

    def __reduce__(self) -> tuple[Any, ...]:
        return as_dtype, (self.name,)


class BFloat16(dtype):
    """float32 with 8 bits of precision instead of 24, in half the memory.

    >>> import chainrule
    >>> chainrule.bfloat16, chainrule.bfloat16.itemsize
    (chainrule.bfloat16, 2)
    """

    __slots__ = ()
    itemsize = 2  # known without ml_dtypes

    def __init__(self) -> None:
        self.name, self.category = "bfloat16", FLOATING

    def __getattr__(self, name: str) -> np.dtype:
        """The type of its arrays, when it is first asked for; from then on it is an attribute."""
        if name != "array_dtype":
            raise AttributeError(f"chainrule.bfloat16 has no attribute {name!r}")
        try:
            self.array_dtype = np.dtype(import_module("ml_dtypes").bfloat16)
        except ImportError:
            raise ImportError(
                "bfloat16: its arrays are those of ml_dtypes, which is not installed: "
                "pip install 'chainrule[bfloat16]'; or use chainrule.float16 or chainrule.float32"
            ) from None
        _BY_ARRAY_DTYPE[self.array_dtype] = self
        return self.array_dtype


BOOL, INTEGER, FLOATING, COMPLEX = range(4)

bool_ = dtype("bool", BOOL)
uint8 = dtype("uint8", INTEGER)
int8 = dtype("int8", INTEGER)
int16 = dtype("int16", INTEGER)
int32 = dtype("int32", INTEGER)
int64 = dtype("int64", INTEGER)
float16 = dtype("float16", FLOATING)
bfloat16 = BFloat16()
float32 = dtype("float32", FLOATING)
float64 = dtype("float64", FLOATING)
complex64 = dtype("complex64", COMPLEX)
complex128 = dtype("complex128", COMPLEX)

DTYPES = (
    bool_,
    uint8,
    int8,
    int16,
    int32,
    int64,
    float16,
    bfloat16,
    float32,
    float64,
    complex64,
    complex128,
)
_BY_NAME = {d.name: d for d in DTYPES} | {
    "float": float32,
    "double": float64,
    "half": float16,
    "long": int64,
    "int": int32,
    "short": int16,
    "cfloat": complex64,
    "cdouble": complex128,
}
_BY_ARRAY_DTYPE = {d.array_dtype: d for d in DTYPES if d is not bfloat16}
_BY_PYTHON_TYPE: dict[Any, dtype] = {bool: bool_, int: int64, float: float64, complex: complex128}

_default = float32


def get_default_dtype() -> dtype:
    """The floating type that new tensors get from Python numbers."""
    return _default


def set_default_dtype(d: dtype | npt.DTypeLike) -> None:
    """Sets the floating type that new tensors get from Python numbers."""
    global _default
    d = as_dtype(d)
    if not d.is_floating_point:
        raise TypeError(
            f"set_default_dtype: only floating-point types are supported as the default, got {d}"
        )
    _ = d.array_dtype  # which for bfloat16 has to be there
    _default = d


def as_dtype(d: dtype | npt.DTypeLike) -> dtype:
    """Any way to name a type (ours, NumPy's, Python's, a string) as a :class:`dtype`."""
    if isinstance(d, dtype):
        return d
    if isinstance(d, str):
        name = d.removeprefix("chainrule.")
        if name in _BY_NAME:
            return _BY_NAME[name]
    elif d in _BY_PYTHON_TYPE:
        return _BY_PYTHON_TYPE[d]
    try:
        return from_array_dtype(np.dtype(d))
    except TypeError:
        names = ", ".join(t.name for t in DTYPES)
        raise TypeError(
            f"dtype: {d!r} is not a type of tensor elements; use one of {names}"
        ) from None


def from_array_dtype(array_dtype: np.dtype) -> dtype:
    """The :class:`dtype` of an array's ``dtype``."""
    try:
        return _BY_ARRAY_DTYPE[array_dtype]
    except KeyError:
        if array_dtype.name == "bfloat16" and array_dtype is bfloat16.array_dtype:
            return bfloat16  # an array from elsewhere is its first use
        names = ", ".join(t.name for t in DTYPES)
        raise TypeError(
            f"a tensor cannot hold elements of type {array_dtype}; the types it can hold are "
            f"{names}"
        ) from None


def with_own_dtype(array: np.ndarray) -> np.ndarray:
    """The array, with the one object that stands for its type here: kernels are chosen by identity.

    What was unpickled or read from a file has an equal object of its own.
    """
    known = from_array_dtype(array.dtype).array_dtype
    return array if array.dtype is known else array.view(known)


def to_array_dtype(d: dtype | npt.DTypeLike) -> np.dtype:
    """The array library's name for any way to name a type."""
    return as_dtype(d).array_dtype


def category(value: bool | int | float | complex) -> int:
    """The category of a Python number."""
    if isinstance(value, bool):
        return BOOL
    if isinstance(value, int):
        return INTEGER
    return COMPLEX if isinstance(value, complex) else FLOATING


def promote_types(a: dtype | npt.DTypeLike, b: dtype | npt.DTypeLike) -> dtype:
    """The smallest type that holds both, by PyTorch's table.

    >>> import chainrule
    >>> chainrule.promote_types(chainrule.int64, chainrule.float16)
    chainrule.float16
    """
    a, b = as_dtype(a), as_dtype(b)
    if a is b:
        return a
    if a.category < b.category:
        a, b = b, a
    if a.category == b.category:
        if bfloat16 in (a, b):  # as wide as float16, which holds other numbers
            return float64 if float64 in (a, b) else float32
        return _BY_ARRAY_DTYPE[np.promote_types(a.array_dtype, b.array_dtype)]
    # The higher category alone decides, except that a complex type keeps the width of a real one.
    if a is complex64 and b is float64:
        return complex128
    return a

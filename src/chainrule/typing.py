"""The words of the signatures: what an argument may be.

``Value`` is what a derivative rule computes with: a tensor while a graph is kept, a bare array in
an ordinary backward pass. A function that takes either and returns the same kind is written with
``V``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import EllipsisType
from typing import TYPE_CHECKING, Any, Protocol, SupportsIndex, TypeAlias, TypedDict, TypeVar, Union

from chainrule.backend import K, dtypes

if TYPE_CHECKING:
    import numpy as np

    from chainrule.attributes import layout as Layout
    from chainrule.attributes import memory_format as MemoryFormat
    from chainrule.random import Generator
    from chainrule.tensor import Tensor, device

    Array: TypeAlias = np.ndarray[Any, Any]
else:
    Array = K.Array

__all__ = [
    "Array",
    "ArrayDType",
    "ArrayLike",
    "Device",
    "Dims",
    "DType",
    "Factory",
    "Features",
    "Frame",
    "Gradients",
    "HasArray",
    "HasMemory",
    "Index",
    "Indexed",
    "Inputs",
    "Labels",
    "LikeMemory",
    "MaybeNone",
    "Memory",
    "Nested",
    "Number",
    "Operand",
    "Params",
    "Random",
    "Rate",
    "Rates",
    "Real",
    "Rows",
    "Samples",
    "Shape",
    "Sizes",
    "Tangent",
    "Tangents",
    "Tensors",
    "V",
    "Value",
]


class Value(Protocol):
    """A tensor or an array: what both of them can do, and therefore what a rule may ask for."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def ndim(self) -> int: ...
    @property
    def dtype(self) -> Any: ...
    @property
    def mT(self) -> Any: ...
    def __getitem__(self, index: Any, /) -> Any: ...
    def __add__(self, other: Any, /) -> Any: ...
    def __radd__(self, other: Any, /) -> Any: ...
    def __sub__(self, other: Any, /) -> Any: ...
    def __rsub__(self, other: Any, /) -> Any: ...
    def __mul__(self, other: Any, /) -> Any: ...
    def __rmul__(self, other: Any, /) -> Any: ...
    def __truediv__(self, other: Any, /) -> Any: ...
    def __rtruediv__(self, other: Any, /) -> Any: ...
    def __pow__(self, other: Any, /) -> Any: ...
    def __matmul__(self, other: Any, /) -> Any: ...
    def __neg__(self) -> Any: ...
    def __invert__(self) -> Any: ...
    def __and__(self, other: Any, /) -> Any: ...
    def __or__(self, other: Any, /) -> Any: ...
    def __eq__(self, other: Any, /) -> Any: ...
    def __ne__(self, other: Any, /) -> Any: ...
    def __lt__(self, other: Any, /) -> Any: ...
    def __le__(self, other: Any, /) -> Any: ...
    def __gt__(self, other: Any, /) -> Any: ...
    def __ge__(self, other: Any, /) -> Any: ...


# The same kind as what was given: of a subclass of Tensor, a Tensor.
V = TypeVar("V", "Tensor", "Array", Value)


class HasArray(Protocol):
    """What NumPy can read: its scalars, the columns of a table."""

    def __array__(self) -> Any: ...


class HasMemory(Protocol):
    """An array of another library whose memory can be shared, through DLPack."""

    def __dlpack__(self) -> Any: ...


Gradients: TypeAlias = Sequence[Value | None]  # one for each input, None where not asked
Tangents: TypeAlias = Sequence[Value | None]  # one for each input, None where it is zero
Tangent: TypeAlias = Value | Sequence[Value | None] | None  # of an output, or of each of several

Real: TypeAlias = int | float
Number: TypeAlias = int | float | complex
Shape: TypeAlias = Sequence[int]
Sizes: TypeAlias = int | Sequence[int]  # one number for all dimensions, or one for each
Dims: TypeAlias = int | Sequence[int] | None  # None: all dimensions
ArrayDType: TypeAlias = "np.dtype[Any]"  # of a bare array
# Ours, a name, the type of a number, NumPy's.
DType: TypeAlias = Union[dtypes.dtype, str, type, "np.dtype[Any]"]
Device: TypeAlias = Union[str, int, "device"]
# What stands between the brackets of x[...]: one of these, or a tuple of them.
Index: TypeAlias = Union[
    SupportsIndex,
    slice,
    EllipsisType,
    "Tensor",
    "Array",
    list[Any],
    range,
    tuple[Any, ...],
    None,
]
# Beside the type of an attribute: None in cases that the user knows of, such as a gradient before
# the first backward pass. Checkers do not ask about it at every use, but know the type.
MaybeNone: TypeAlias = Any
Operand: TypeAlias = Union["Tensor", "Array", Number]  # of an operator beside a tensor
Random: TypeAlias = Union["Generator", None]  # None: the default generator
# Numbers in any form that chainrule.tensor takes: nested sequences, arrays, tensors.
ArrayLike: TypeAlias = Union["Tensor", "Array", Number, Sequence[Any], HasArray]
Rows: TypeAlias = Union["Tensor", "Array", Sequence[Any]]  # one for each sample
Tensors: TypeAlias = Union["Tensor", Sequence["Tensor"]]
Inputs: TypeAlias = Union["Tensor", tuple[Any, ...]]  # of a model: one, or all arguments of a call
# Nested tuples, lists and dicts of tensors, as the transformations of functions take them.
Nested: TypeAlias = Union["Tensor", Sequence["Nested"], Mapping[str, "Nested"]]
# What an optimizer takes: parameters, named ones, or groups with settings of their own.
Params: TypeAlias = Iterable[Union["Tensor", "tuple[str, Tensor]", dict[str, Any]]]
Rate: TypeAlias = Union[float, "Tensor"]  # a tensor: one rate for each number of a parameter
Rates: TypeAlias = Rate | Sequence[Rate]  # one for all parameters of a group, or for each


class Factory(TypedDict):
    """What the functions that make a tensor are told of it, as keyword arguments."""

    device: Device | None
    dtype: DType | None


class Memory(TypedDict, total=False):
    """What PyTorch's functions that make a tensor are told besides: here it has one value each."""

    layout: Layout | None
    pin_memory: bool | None


class LikeMemory(Memory, total=False):
    """The same where the new tensor is like another one."""

    memory_format: MemoryFormat | None


class Indexed(Protocol):
    """Samples by number (or by what else stands for one), such as a dataset, a list or a tensor."""

    def __getitem__(self, index: Any, /) -> Any: ...


class Samples(Indexed, Protocol):
    """Samples by number that can be counted."""

    def __len__(self) -> int: ...


class Labels(Protocol):
    """One label for each sample: a list, a tensor, an array, a column of a frame."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Any]: ...


class Frame(Protocol):
    """A data frame of pandas or polars: what both of them have."""

    @property
    def columns(self) -> Iterable[Any]: ...
    def __len__(self) -> int: ...
    def to_numpy(self) -> Array: ...


Features: TypeAlias = ArrayLike | Frame  # samples in rows, numbers in columns

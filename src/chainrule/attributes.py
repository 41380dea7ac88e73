"""What a tensor has besides its numbers: a size, a layout and an order in memory."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = [
    "LayoutError",
    "OtherLayout",
    "Size",
    "channels_last",
    "channels_last_3d",
    "check_format",
    "check_layout",
    "contiguous_format",
    "layout",
    "memory_format",
    "no_dimension",
    "one_name",
    "preserve_format",
    "sparse_coo",
    "sparse_csr",
    "strided",
]


class Size(tuple[int, ...]):
    """A tensor's shape: a tuple with PyTorch's ``numel``."""

    def numel(self) -> int:
        n = 1
        for s in self:
            n *= s
        return n

    def __repr__(self) -> str:
        return f"chainrule.Size({list(self)})"


def no_dimension(op: str, dim: int, shape: tuple[int, ...]) -> IndexError:
    """The error for a dimension that is not there."""
    return IndexError(f"{op}: dimension {dim} is out of range for a tensor of shape {shape}")


def one_name(op: str, dim: int | None, axis: int) -> int:
    """A dimension under NumPy's name for it."""
    if dim is not None:
        raise TypeError(f"{op}(): 'dim' and 'axis' are the same argument; give one of them")
    return axis


class layout:
    """How the elements of a tensor lie in memory: ``strided``, all of them at fixed distances, or
    as the entries of a sparse tensor, ``sparse_coo`` and ``sparse_csr``.

    >>> import chainrule
    >>> chainrule.zeros(2).layout
    chainrule.strided
    >>> chainrule.eye(2).to_sparse().layout
    chainrule.sparse_coo
    """

    __slots__ = ("name",)

    def __init__(self, name: str):
        self.name = name

    def __repr__(self) -> str:
        return f"chainrule.{self.name}"

    def __reduce__(self) -> str:
        return self.name  # there is one of each


strided = layout("strided")
sparse_coo = layout("sparse_coo")
sparse_csr = layout("sparse_csr")


class memory_format:
    """In which order the elements of a tensor lie in memory. It changes strides and no result.

    ``order`` names the dimensions from the outermost to the innermost, counted from the end.

    >>> import chainrule
    >>> chainrule.zeros(1, 3, 2, 2).to(memory_format=chainrule.channels_last).stride()
    (12, 1, 6, 3)
    """

    __slots__ = ("name", "order")

    def __init__(self, name: str, order: tuple[int, ...] | None = None):
        self.name = name
        self.order = order

    def __repr__(self) -> str:
        return f"chainrule.{self.name}"

    def __reduce__(self) -> str:
        return self.name  # one object for each, also after a copy


def check_format(op: str, value: object) -> memory_format:
    """A memory format as it is; refuses anything else."""
    if not isinstance(value, memory_format):
        raise TypeError(
            f"{op}(): argument 'memory_format' must be chainrule.memory_format, not "
            f"{type(value).__name__}"
        )
    return value


contiguous_format = memory_format("contiguous_format")  # the last dimension is the innermost
preserve_format = memory_format("preserve_format")  # as in the tensor that is copied
channels_last = memory_format("channels_last", (-4, -2, -1, -3))
channels_last_3d = memory_format("channels_last_3d", (-5, -3, -2, -1, -4))


class LayoutError(TypeError):
    """An operation on arrays was given a tensor that has none."""


class OtherLayout:
    """A tensor whose elements are not the elements of one array, such as a sparse one.

    An operation that is given one asks it (:meth:`operate`) what comes out. Where an operation
    reads the array of a tensor, the answer is that there is none.
    """

    __slots__ = ()
    layout: layout
    shape: Size
    entries: Any  # the tensor through which derivatives flow

    def gradient_of(self, entries: Any) -> Any:
        """The gradient of this tensor from that of its entries."""
        raise self.refusal("this derivative")

    def to_dense(self) -> Any:
        """The same elements in one array."""
        raise self.refusal("to_dense")

    def copy_(self, src: Any) -> Any:
        """Takes the elements of another tensor, in place."""
        raise self.refusal("copy_")

    def operate(self, name: str, operands: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """What the operation of this name makes of operands of which this is one."""
        raise self.refusal(name)

    def refusal(self, name: str) -> LayoutError:
        """The error for an operation on arrays."""
        return LayoutError(
            f"{name}: expected dense tensors, got one of layout {self.layout} and shape "
            f"{tuple(self.shape)}; convert it with .to_dense()"
        )

    @property
    def array(self) -> NoReturn:
        """There is none."""
        raise self.refusal("this operation")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NoReturn:
        raise self.refusal("this operation")


def check_layout(op: str, value: object) -> None:
    """Refuses a tensor that has no array, where an operation asks for one that has."""
    if isinstance(value, OtherLayout):
        raise value.refusal(op)

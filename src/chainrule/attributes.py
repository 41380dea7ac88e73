"""What a tensor has besides its numbers: a size, a place and a layout."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = [
    "LayoutError",
    "OtherLayout",
    "Size",
    "check_layout",
    "device",
    "layout",
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


class device:
    """Where a tensor lives. The arrays of this library live on the CPU.

    >>> import chainrule
    >>> chainrule.device("cpu")
    device(type='cpu')
    """

    __slots__ = ("index", "type")

    def __init__(self, type: str | device, index: int | None = None):
        name, _, number = str(type).partition(":")
        if name != "cpu" or (number and number != "0") or index not in (None, 0):
            raise RuntimeError(f"device: {str(type)!r} is not available; tensors live on 'cpu'")
        self.type = name
        self.index = int(number) if number else index

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str):
            return other in ("cpu", "cpu:0")
        return isinstance(other, device) and other.type == self.type

    def __hash__(self) -> int:
        return hash(self.type)

    def __enter__(self) -> device:
        return self  # a block whose tensors are made here, as all are

    def __exit__(self, *error: object) -> None:
        return None

    def __str__(self) -> str:
        return self.type

    def __repr__(self) -> str:
        return f"device(type='{self.type}')"


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

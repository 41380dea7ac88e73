"""What a tensor has besides its numbers: a size, a place and a layout."""

from __future__ import annotations

__all__ = ["Size", "device", "layout", "strided"]


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
    """How the elements of a tensor lie in memory: ``strided``, at fixed distances, is all there is.

    >>> import chainrule
    >>> chainrule.zeros(2).layout
    chainrule.strided
    """

    __slots__ = ("name",)

    def __init__(self, name: str):
        self.name = name

    def __repr__(self) -> str:
        return f"chainrule.{self.name}"


strided = layout("strided")

"""Where tensors live, and where they are made."""

from __future__ import annotations

import threading
from typing import Any

from chainrule.backend import devices
from chainrule.backend.placed import Place, Placed
from chainrule.random import Generator

__all__ = [
    "Located",
    "current_number",
    "default_place",
    "device",
    "device_of_array",
    "place_asked_for",
    "set_current_number",
    "set_default_place",
]


class _Default(threading.local):
    place: device | None = None  # where tensors are made that are asked for nowhere else
    number = 0  # of the device that a kind without a number names


_default = _Default()


class device:
    """Where a tensor lives: "cpu", or with JAX installed "cuda" ("gpu"), "tpu", and "xla", which is
    whatever JAX computes on. Used as a context, tensors are made there.

    >>> import chainrule
    >>> chainrule.device("cpu")
    device(type='cpu')
    """

    __slots__ = ("_outer", "index", "type")

    def __init__(self, type: str | int | device, index: int | None = None):
        name, _, number = str(type).partition(":")
        if name.isdecimal():  # PyTorch's number of an accelerator
            name, number = "cuda", name
        name = "cuda" if name == "gpu" else name
        if number:
            if index is not None or not number.isdecimal():
                raise RuntimeError(f"device: invalid device string: {str(type)!r}")
            index = int(number)
        if name in devices.KINDS:
            devices.find(name, index)
        elif name != "cpu" or index not in (None, 0):
            raise RuntimeError(
                f"device: {str(type)!r} is not available; tensors live on 'cpu', and with JAX on "
                "'cuda' (or 'gpu'), 'tpu' and 'xla'"
            )
        self.type, self.index = name, index
        self._outer: list[device | None] = []  # a stack: a block may enter itself again

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str):
            try:
                other = device(other)
            except RuntimeError:
                return False
        if not isinstance(other, device) or other.type != self.type:
            return False
        return self.type == "cpu" or self.index == other.index

    def __hash__(self) -> int:
        return hash(self.type)

    def __enter__(self) -> device:
        self._outer.append(_default.place)
        _default.place = self
        return self

    def __exit__(self, *error: object) -> None:
        _default.place = self._outer.pop()

    def home(self) -> Place | None:
        """Where arrays go; None is the host."""
        if self.type == "cpu":
            return None
        return Place(self.type, _default.number if self.index is None else self.index)

    def __str__(self) -> str:
        return f"{self.type}:{self.index}" if self._has_number() else self.type

    def __repr__(self) -> str:
        number = f", index={self.index}" if self._has_number() else ""
        return f"device(type='{self.type}'{number})"

    def _has_number(self) -> bool:
        return self.type != "cpu" and self.index is not None

    def __reduce__(self) -> tuple[Any, ...]:
        return device, (self.type, self.index)


def set_default_place(place: device | None) -> None:
    """Has this thread make tensors there from now on."""
    _default.place = place


def default_place() -> device:
    """Where this thread makes tensors."""
    return _default.place or device("cpu")


def current_number() -> int:
    """The number of the device that this thread means by a kind of devices alone."""
    return _default.number


def set_current_number(number: int) -> None:
    """Has this thread mean the device of this number by a kind of devices alone."""
    _default.number = number


def place_asked_for(wanted: object) -> Place | None:
    """Where a new tensor goes, by the argument ``device`` or the default one; None is the host."""
    if wanted is None:
        return None if _default.place is None else _default.place.home()
    return (wanted if isinstance(wanted, device) else device(wanted)).home()  # type: ignore[arg-type]


def device_of_array(array: Any) -> device:
    """Where an array lives, also one inside a transformation."""
    while array.__class__ is not Placed and hasattr(array, "held"):
        inside = array.held()
        array = inside[0].array if inside else None
    return device(array.place.kind, array.place.number) if array.__class__ is Placed else _CPU


_CPU = device("cpu")
Generator.place = staticmethod(device)


class Located:
    """Where a tensor lives: where its array does."""

    __slots__ = ()
    array: Any

    @property
    def device(self) -> device:
        return device_of_array(self.array)

    @property
    def is_cpu(self) -> bool:
        return self.device.type == "cpu"

    @property
    def is_cuda(self) -> bool:
        return self.device.type == "cuda"

    @property
    def is_xla(self) -> bool:
        return self.device.type == "xla"

    def _check_beside(self, grad: Any) -> None:
        if grad.device != self.device:
            raise RuntimeError(
                f"grad: assigned grad has data located on a different device: {grad.device}, and "
                f"the tensor is on {self.device}; move it with .to({str(self.device)!r})"
            )

    def _check_on_host(self, op: str) -> None:
        if self.array.__class__ is Placed:
            raise TypeError(
                f"{op}: can't convert {self.device} device type tensor to numpy. Use Tensor.cpu() "
                "to copy the tensor to host memory first."
            )

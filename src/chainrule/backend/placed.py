"""Arrays on a device: a cell that holds an array of JAX's.

Those never change and share no memory; tensors do both. So a tensor on a device holds a cell: what
writes puts another array into it, and whoever has the cell sees that. A view is a cell that reads
from another one, its base, and writes into it.

This file does not import JAX: a cell is only made where it is in use (``backend/devices.py``).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

import numpy as np

__all__ = ["Place", "Placed", "Taken", "compute", "row_major", "several_places", "unsettled"]


class Place(NamedTuple):
    """A device by its kind ("cuda", "tpu", "xla") and its number."""

    kind: str
    number: int

    def __str__(self) -> str:
        return f"{self.kind}:{self.number}"


class Taken(NamedTuple):
    """How a view is taken from its base: a kernel of the device, and the NumPy kernel, which finds
    out which elements the view shows."""

    kernel: str
    function: Callable[..., Any]
    twin: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


class _Flags(NamedTuple):
    """What NumPy says of memory, and tensors ask for."""

    c_contiguous: bool
    owndata: bool
    writeable: bool = True


_OWN, _SHARED = _Flags(True, True), _Flags(True, False)


class Placed:
    """A cell with an array on a device.

    ``raw`` is the array, up to date. Arithmetic makes new cells.
    """

    __slots__ = (
        *("__weakref__", "_raw", "_seen", "_strides", "_version"),
        *("base", "owner", "place", "taken"),
    )
    __array_ufunc__ = None  # NumPy leaves arithmetic with cells to this class

    def __init__(
        self,
        raw: Any,
        place: Place,
        base: Placed | None = None,
        taken: Any = None,
        strides: tuple[int, ...] | None = None,
    ):
        self._raw, self.place = raw, place
        self.base, self.taken = base, taken
        self.owner: Any = None  # who has its numbers together with others (compiler/together.py)
        self._strides = strides  # of a view: those that it has on the CPU
        self._version = 0  # how often it was written to
        self._seen = 0 if base is None else base.version  # of a view: which version it shows

    # --- its array --------------------------------------------------------------------------------

    @property
    def version(self) -> int:
        """A number that grows with every write into its memory."""
        if self.base is not None:
            return self.base.version
        if self.owner is not None:
            self.owner.hand_out()
        return self._version

    @property
    def raw(self) -> Any:
        """The array, for a view that of its base as it is now."""
        base = self.base
        if base is None:
            if self.owner is not None:
                self.owner.hand_out()
        elif self._seen != base.version:
            self._seen = base.version
            self._raw = compute.again(self, base)
        return self._raw

    def write(self, raw: Any) -> Placed:
        """Puts another array of the same shape and type into the cell, and into its base."""
        if self.base is None:
            if self.owner is not None:
                self.owner.hand_out()
            self._raw = raw
            self._version += 1
        else:
            compute.into_base(self, raw)
        return self

    # --- what NumPy's arrays have, too ------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        return self._raw.shape

    @property
    def dtype(self) -> np.dtype:
        return self._raw.dtype

    @property
    def ndim(self) -> int:
        return len(self._raw.shape)

    @property
    def size(self) -> int:
        return math.prod(self._raw.shape)

    @property
    def itemsize(self) -> int:
        return self._raw.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self.size * self._raw.dtype.itemsize

    @property
    def strides(self) -> tuple[int, ...]:
        """Steps in bytes as the same tensor has them on the CPU: what may be viewed in another
        shape is the same everywhere. XLA lays out memory as it likes."""
        return row_major(self.shape, self.itemsize) if self._strides is None else self._strides

    @property
    def flags(self) -> _Flags:
        """Of the memory that the strides tell of."""
        if self._strides is None:
            return _OWN if self.base is None else _SHARED
        own = row_major(self.shape, self.itemsize)
        pairs = zip(self.shape, self.strides, own, strict=True)
        in_order = 0 in self.shape or all([n == 1 or a == b for n, a, b in pairs])
        return _Flags(in_order, self.base is None)

    def form(self) -> tuple[Any, ...]:
        """What tells arrays of different forms apart: shape, type and place, and how a view lies
        that is not in order."""
        raw = self._raw
        if self._strides is None or self.flags.c_contiguous:
            return (raw.shape, None, raw.dtype, self.place)
        return (raw.shape, self._strides, raw.dtype, self.place)

    @property
    def T(self) -> Placed:
        return compute("transpose", self)

    @property
    def mT(self) -> Placed:
        return compute("matrix_transpose", self)

    def reshape(self, *shape: Any) -> Placed:
        return compute("reshape", self, *shape)

    def transpose(self, *dims: Any) -> Placed:
        return compute("transpose", self, *dims)

    def astype(self, dtype: Any, **_: Any) -> Placed:
        return compute("astype", self, np.dtype(dtype))

    def sum(self, *args: Any, **kwargs: Any) -> Placed:
        return compute("sum", self, *args, **kwargs)

    def any(self, *args: Any, **kwargs: Any) -> Placed:
        return compute("any", self, *args, **kwargs)

    def all(self, *args: Any, **kwargs: Any) -> Placed:
        return compute("all", self, *args, **kwargs)

    def max(self, *args: Any, **kwargs: Any) -> Placed:
        return compute("max", self, *args, **kwargs)

    def min(self, *args: Any, **kwargs: Any) -> Placed:
        return compute("min", self, *args, **kwargs)

    def item(self, *args: Any) -> Any:
        return self.numpy().item(*args)

    def tolist(self) -> Any:
        return self.numpy().tolist()

    def tobytes(self) -> bytes:
        return self.numpy().tobytes()

    def numpy(self) -> np.ndarray:
        """A copy on the host; ends what is being recorded."""
        return compute.read(self)

    def __bool__(self) -> bool:
        return bool(self.numpy())

    def __float__(self) -> float:
        return float(self.numpy())

    def __int__(self) -> int:
        return int(self.numpy())

    def __complex__(self) -> complex:
        return complex(self.numpy())

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Any) -> Placed:
        return compute("getitem", self, index)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NoReturn:
        raise TypeError(
            f"can't convert {self.place} device type tensor to numpy. Use Tensor.cpu() to copy the "
            "tensor to host memory first."
        )

    def __repr__(self) -> str:
        return f"<{self.dtype}{list(self.shape)} on {self.place}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("pickle: an array on a device; pickle that of tensor.cpu()")


def several_places(kernel: str, a: object, b: object) -> RuntimeError:
    """The error for tensors on different devices."""
    return RuntimeError(
        f"{kernel}: Expected all tensors to be on the same device, but found at least two devices, "
        f"{a} and {b}! Move one of them with .to(...)"
    )


def row_major(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Strides in bytes where the last dimension is the innermost."""
    steps, step = [], itemsize
    for n in reversed(shape):
        steps.append(step)
        step *= max(n, 1)
    return tuple(reversed(steps))


def _operator(name: str, turned: bool = False) -> Callable[..., Placed]:
    def method(self: Placed, *others: Any) -> Placed:
        return compute(name, *others, self) if turned else compute(name, self, *others)

    return method


_OPERATORS = {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "truediv": "divide",
    "floordiv": "floor_divide",
    "mod": "remainder",
    "pow": "power",
    "matmul": "matmul",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
    "lshift": "left_shift",
    "rshift": "right_shift",
}
for _short, _name in _OPERATORS.items():
    setattr(Placed, f"__{_short}__", _operator(_name))
    setattr(Placed, f"__r{_short}__", _operator(_name, turned=True))
for _short, _name in {
    "eq": "equal",
    "ne": "not_equal",
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
    "neg": "negative",
    "pos": "positive",
    "abs": "abs",
    "invert": "invert",
}.items():
    setattr(Placed, f"__{_short}__", _operator(_name))
Placed.__hash__ = object.__hash__  # type: ignore[method-assign]  # by identity, like a tensor


class _Compute:
    """Who computes with cells: nobody, until ``backend/dispatch.py`` puts its own class here."""

    def __call__(self, name: str, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("no device is in use")

    def is_active(self) -> bool:
        """Whether a device is in use."""
        return False

    def again(self, view: Placed, base: Placed) -> Any:
        """The array that a view shows of its base now."""
        raise RuntimeError("no device is in use")

    def into_base(self, view: Placed, raw: Any) -> None:
        """Writes what a view holds from now on into its base."""
        raise RuntimeError("no device is in use")

    def read(self, cell: Placed) -> np.ndarray:
        """The numbers of a cell."""
        raise RuntimeError("no device is in use")


class _Computing:
    """Hands all on to whoever computes."""

    def __init__(self) -> None:
        self.by: Any = _Compute()

    def __call__(self, name: str, *args: Any, **kwargs: Any) -> Any:
        return self.by(name, *args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.by, name)


compute = _Computing()

# What is to be looked at before Python reads a number: steps whose checks are open.
unsettled: dict[int, Callable[[], None]] = {}

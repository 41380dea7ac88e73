"""Arrays that tell a recorder what is computed with them, and kernels that do.

While a step is recorded (``compiler/capture.py``), every kernel of ``K`` is replaced by a function
that hands the call to the recorder. What NumPy computes outside of kernels, as in a derivative rule
``g * y`` on bare arrays, is seen by the class of the arrays.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import numpy as np

from chainrule import backend
from chainrule.backend import K
from chainrule.backend.effects import effect_of

__all__ = [
    "Recorded",
    "Recorder",
    "as_array",
    "called_again",
    "cannot_repeat",
    "check_fails_with",
    "is_passing",
    "is_ufunc",
    "place_of",
    "plain",
    "recording",
    "thread",
    "view_at",
]


class Recorder(Protocol):
    """What gets the calls."""

    passing: bool  # whether this call is none like those to come

    def call(self, kernel: str, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Computes a call, and notes it."""
        ...

    def refuse(self, reason: str) -> None:
        """Notes why the step cannot be repeated; it goes on as if nothing were recorded."""
        ...

    def fails_with(self, error: Callable[[], Exception]) -> None:
        """Notes which error follows where the check that was made last fails."""
        ...

    def again(
        self, function: Callable[..., Any], args: Any
    ) -> contextlib.AbstractContextManager[Any]:
        """Notes a call of Python's that is part of the step; what it comes to is not noted."""
        ...


class Thread(threading.local):
    """What is recorded by this thread; others go on without notice."""

    recorder: Recorder | None = None


thread = Thread()


class Recorded(np.ndarray):
    """An array that was made during a recording; without one, an array like any other."""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        function = getattr(ufunc, method)
        if thread.recorder is None:
            out = kwargs.pop("out", None)
            if out is not None:
                kwargs["out"] = tuple([plain(a) for a in out])
            return function(*[plain(a) for a in inputs], **kwargs)
        name = f"numpy.{ufunc.__name__}" + ("" if method == "__call__" else f".{method}")
        return thread.recorder.call(name, function, inputs, kwargs)

    def __getitem__(self, index: Any) -> Any:
        """A view also of a single element, whose number would otherwise be frozen."""
        simple = index.__class__ is tuple or isinstance(index, (int, slice)) or index is None
        parts = index if index.__class__ is tuple else (index,)
        if simple and Ellipsis not in parts and not any([isinstance(i, np.ndarray) for i in parts]):
            return super().__getitem__((*parts, Ellipsis))
        return super().__getitem__(index)

    def astype(self, dtype: Any, *args: Any, **kwargs: Any) -> Any:
        """As a kernel, so that it is seen."""
        if thread.recorder is None:
            return plain(self).astype(dtype, *args, **kwargs)
        return thread.recorder.call("numpy.astype", _astype, (self, dtype, *args), kwargs)

    def copy(self, order: Any = "C") -> Any:
        """As a kernel, so that it is seen."""
        if thread.recorder is None:
            return plain(self).copy(order)
        return thread.recorder.call("numpy.copy", _copy, (self, order), {})

    def _read(self) -> np.ndarray:
        """The array for what takes its numbers, which a program that is repeated cannot know."""
        cannot_repeat("it reads numbers of a tensor")
        return plain(self)

    def item(self, *args: Any) -> Any:
        """One number."""
        return self._read().item(*args)

    def tolist(self) -> Any:
        """All numbers."""
        return self._read().tolist()

    def tobytes(self, *args: Any) -> Any:
        """All bytes."""
        return self._read().tobytes(*args)

    def __bool__(self) -> bool:
        return bool(self._read())

    def __float__(self) -> float:
        return float(self._read())

    def __int__(self) -> int:
        return int(self._read())

    def __complex__(self) -> complex:
        return complex(self._read())

    def __index__(self) -> int:
        return self._read().__index__()


def cannot_repeat(reason: str) -> None:
    """Says, if a step is being recorded, why it cannot be repeated from its record."""
    if thread.recorder is not None:
        thread.recorder.refuse(reason)


def is_passing() -> None:
    """Says, if a step is being recorded, that this call is none like those to come: it runs as it
    is, and the next one is recorded."""
    if thread.recorder is not None:
        thread.recorder.passing = True


def check_fails_with(error: Callable[[], Exception]) -> None:
    """Says, if a step is being recorded, which error follows if the last check fails later on."""
    if thread.recorder is not None:
        thread.recorder.fails_with(error)


def called_again(
    function: Callable[..., Any], *args: Any
) -> contextlib.AbstractContextManager[Any]:
    """Around what a function does that has to be called again when a step is repeated."""
    if thread.recorder is None:
        return _nothing
    return thread.recorder.again(function, args)


_nothing = contextlib.nullcontext()


def _astype(a: np.ndarray, dtype: Any, *args: Any, **kwargs: Any) -> np.ndarray:
    return a.astype(dtype, *args, **kwargs)


def _copy(a: np.ndarray, order: Any) -> np.ndarray:
    return a.copy(order)


def plain(value: Any) -> Any:
    """An array of NumPy's own class, over the same memory."""
    return value.view(np.ndarray) if isinstance(value, Recorded) else value


def as_array(value: Any) -> np.ndarray:
    """A number of NumPy's as an array without dimensions."""
    return np.asarray(value)


def is_ufunc(function: Any) -> bool:
    """Whether a function is one of NumPy's that can be told where to write."""
    return isinstance(function, np.ufunc)


def place_of(a: np.ndarray) -> int:
    """The address of the first element."""
    return int(a.__array_interface__["data"][0])


class _Memory:
    """Memory of another array under a shape of its own; holds that array."""

    def __init__(self, base: np.ndarray, address: int, like: tuple[Any, ...]):
        self.base = base
        shape, strides, dtype = like
        self.__array_interface__ = {
            "data": (address, not base.flags.writeable),
            "shape": shape,
            "strides": strides,
            "typestr": dtype.str,
            "version": 3,
        }


def view_at(base: np.ndarray, offset: int, shape: Any, strides: Any, dtype: Any) -> np.ndarray:
    """The elements so many bytes behind the first one of ``base``, and on by the strides."""
    dtype = np.dtype(dtype)
    array = np.asarray(_Memory(base, place_of(base) + offset, (shape, strides, dtype)))
    return array if array.dtype == dtype else array.view(dtype)  # bfloat16 and its like


_one_at_a_time = threading.RLock()
under_way = False  # whether any thread records


@contextlib.contextmanager
def recording(recorder: Recorder) -> Iterator[None]:
    """Hands all calls of kernels by this thread to the recorder."""
    global under_way
    with _one_at_a_time:
        if thread.recorder is not None:
            raise RuntimeError("compile: a recording is under way in this thread")
        name = backend.current()
        _replace()
        thread.recorder, under_way = recorder, True
        try:
            yield
        finally:
            thread.recorder, under_way = None, False
            backend.use(name)


def _replace() -> None:
    for kernel, function in list(vars(K).items()):
        known = _handing.get(kernel)
        if known is None or known.recorded is not function:
            if effect_of(kernel) == "static" and isinstance(function, (type, tuple)):
                continue
            known = _handing[kernel] = _handed(kernel, function)
        setattr(K, kernel, known)
    backend.rebind()


_handing: dict[str, Any] = {}  # made once: there are hundreds


def _handed(kernel: str, function: Any) -> Any:
    """A kernel that hands its calls on to what records in this thread."""

    def handed(*args: Any, **kwargs: Any) -> Any:
        recorder = thread.recorder
        if recorder is None:
            return function(*args, **kwargs)
        return recorder.call(kernel, function, args, kwargs)

    handed.__name__ = kernel
    handed.recorded = function  # type: ignore[attr-defined]
    return handed

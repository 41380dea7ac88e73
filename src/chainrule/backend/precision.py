"""In which precision products of float32 numbers are computed on a device.

What is read where a product is computed (``backend/xla_kernels/products.py``): the settings, which
hold for all threads, and the type that this thread rounds operands to, under ``autocast``. The
defaults are PyTorch's: products of matrices in float32, those in convolutions and recurrent layers
in TF32 where the device has it. Kernels of the host compute in the types of their arrays.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

__all__ = ["DEFAULT", "LEVELS", "Precision", "current", "held", "rounding_to", "set_levels"]

LEVELS = ("highest", "high", "medium")  # float32; TF32 or its like; bfloat16


class Precision(NamedTuple):
    """How products of float32 are computed."""

    operands: Any = None  # the type that this thread rounds operands to, whatever the levels say
    matmul: str = "highest"
    layers: str = "high"  # convolutions and recurrent layers


DEFAULT = Precision()


class _Thread(threading.local):
    operands: Any = None  # a type of arrays
    held: Precision | None = None  # while a recorded call is repeated: what it was recorded under


_thread = _Thread()
_levels = [DEFAULT.matmul, DEFAULT.layers]


def current() -> Precision:
    """What holds now in this thread."""
    return _thread.held or Precision(_thread.operands, *_levels)


def set_levels(matmul: str | None = None, layers: str | None = None) -> None:
    """Sets the level of products of matrices, that of convolutions and recurrent layers, or both;
    for all threads."""
    for i, level in enumerate((matmul, layers)):
        if level is not None:
            _levels[i] = level


@contextlib.contextmanager
def rounding_to(operands: Any) -> Iterator[None]:
    """Rounds the operands of this thread's products on devices to a type; None: to none."""
    before, _thread.operands = _thread.operands, operands
    try:
        yield
    finally:
        _thread.operands = before


def held(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, computing in the precision of now whenever it is called."""
    now = current()
    return function if now == DEFAULT else _holding(function, now)


@functools.lru_cache(4096)
def _holding(function: Callable[..., Any], precision: Precision) -> Callable[..., Any]:
    def holding(*args: Any, **kwargs: Any) -> Any:
        before, _thread.held = _thread.held, precision
        try:
            return function(*args, **kwargs)
        finally:
            _thread.held = before

    holding.precision = precision  # type: ignore[attr-defined]
    return holding

"""Where arrays are computed: one explicit list of raw array functions, and who implements it.

``K`` holds the kernels in use. Every function in it takes arrays, returns new arrays (or views) and
never writes into its arguments; the few that may write say so in their name (``write``,
``write_index``, ``write_into``) and *return* the array that holds the result, so that a library
with immutable arrays can return a new one.
"""

from __future__ import annotations

import os
from types import ModuleType
from typing import Any

from chainrule.backend import dtypes
from chainrule.backend.numpy_kernels import (
    activation, conv, ctc, elementwise, index, linalg, memory, norm, pool, random, rearrange,
    recurrent, reduce, softmax, sort,
)  # fmt: skip

__all__ = ["K", "available", "bind", "current", "dtypes", "use"]


class Kernels:
    """The kernels in use, as attributes: ``K.tanh(a)``."""

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"the backend {current()!r} has no kernel named {name!r}")


K: Any = Kernels()
_IMPLEMENTATIONS: dict[str, tuple[ModuleType, ...]] = {
    "numpy": (
        memory,
        elementwise,
        reduce,
        index,
        rearrange,
        sort,
        linalg,
        softmax,
        ctc,
        conv,
        pool,
        recurrent,
        norm,
        activation,
        random,
    ),
}
_bound: list[tuple[Any, str]] = []
_current = ""


def available() -> list[str]:
    """The names that :func:`use` accepts on this machine."""
    return list(_IMPLEMENTATIONS)


def current() -> str:
    """The name of the kernels in use."""
    return _current


def use(name: str) -> None:
    """Computes everything that follows with the kernels of this name.

    >>> from chainrule import backend
    >>> backend.use("numpy")
    >>> backend.current()
    'numpy'
    """
    global _current
    if name not in _IMPLEMENTATIONS:
        raise ValueError(f"backend.use: no kernels named {name!r}; available: {available()}")
    for family in _IMPLEMENTATIONS[name]:
        for kernel in family.__all__:
            setattr(K, kernel, getattr(family, kernel))
    _current = name
    for op, kernel in _bound:
        op.raw = getattr(K, kernel)


def bind(op: Any, kernel: str) -> None:
    """Sets ``op.raw`` to the kernel of this name, now and whenever the backend changes."""
    _bound.append((op, kernel))
    op.raw = getattr(K, kernel)


use(os.environ.get("CHAINRULE_KERNELS", "numpy"))

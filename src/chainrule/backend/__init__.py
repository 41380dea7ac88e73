"""Where arrays are computed: one explicit list of raw array functions, and who implements it.

``K`` holds the kernels in use. Every function in it takes arrays, returns new arrays (or views) and
never writes into its arguments; the few that may write say so in their name (``write``,
``write_index``, ``write_into``) and *return* the array that holds the result, so that a library
with immutable arrays can return a new one.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any, Protocol

from chainrule.backend import openblas  # first: it looks before NumPy is imported
from chainrule.backend import dtypes, instructions
from chainrule.backend.placed import Placed
from chainrule.backend.numpy_kernels import (
    activation,
    attention,
    bags,
    cells,
    conv,
    ctc,
    elementwise,
    fourier,
    gamma,
    index,
    lapack,
    linalg,
    memory,
    narrow,
    norm,
    polynomials,
    pool,
    random,
    rearrange,
    recurrent,
    recurrent_conv,
    recurrent_deep,
    recurrent_peephole,
    reduce,
    slopes,
    softmax,
    sort,
    sparse,
    special,
    update,
)

__all__ = [
    "ARRAYS",
    "K",
    "available",
    "bind",
    "current",
    "dtypes",
    "openblas",
    "use",
    "use_winograd",
]


class Kernels:
    """The kernels in use, as attributes: ``K.tanh(a)``."""

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"the backend {current()!r} has no kernel named {name!r}")


class Bound(Protocol):
    """An operation that holds the kernel which computes it: ``raw`` for the arrays of tensors, and
    ``free`` for bare ones, which have no place until they meet one that has."""

    raw: Callable[..., Any]


K: Any = Kernels()
ARRAYS: Any = (
    memory.Array,
    Placed,
)  # what a tensor wraps: an array of the host, or one on a device
_IMPLEMENTATIONS: dict[str, tuple[ModuleType, ...]] = {
    "numpy": (
        memory,
        narrow,
        elementwise,
        special,
        polynomials,
        gamma,
        slopes,
        reduce,
        index,
        bags,
        rearrange,
        sort,
        lapack,
        linalg,
        sparse,
        fourier,
        softmax,
        attention,
        ctc,
        conv,
        pool,
        recurrent,
        recurrent_conv,
        recurrent_deep,
        recurrent_peephole,
        norm,
        activation,
        random,
        update,
        cells,
    ),
}
_bound: list[tuple[Bound, str]] = []
_current = ""
_host: dict[str, Any] = {}  # the kernels of the host that are in use
# When a device is in use: what makes of a kernel one that looks where its arguments are, and of
# that one the kernel of an operation.
_looking: Callable[[str, Any], Any] | None = None
_strict: Callable[[str, Any], Any] | None = None


def _compiled() -> str:
    """Adds the compiled kernels, where they were built; says why not, where they were not.

    They take the place of NumPy kernels of the same names, which serve for all others, and for what
    the compiled ones leave to them: other dtypes, odd strides.
    """
    try:
        _native = import_module("chainrule.backend._native")
    except ImportError as error:
        return f"not built when the package was installed ({error})"
    families = _IMPLEMENTATIONS["numpy"]
    reference = {name: getattr(f, name) for f in families for name in f.__all__}
    missing = [name for name in _native.kernels if name not in reference]
    if missing:
        return f"compiled from other sources: {missing} have no NumPy kernel; install again"
    instructions.choose(_native, os.environ.get("CHAINRULE_ISA"))
    _native.bind_reference(reference)
    family: Any = ModuleType("chainrule.backend.native_kernels")
    family.__all__ = list(_native.kernels)
    for name in _native.kernels:
        setattr(family, name, getattr(_native, name))
    _IMPLEMENTATIONS["native"] = (*families, family)
    return ""


why_not_native = _compiled()
if why_not_native:
    instructions.refuse(os.environ.get("CHAINRULE_ISA"), why_not_native)


def native_module() -> ModuleType | None:
    """The compiled module, None if there is none."""
    return None if why_not_native else import_module("chainrule.backend._native")


def use_winograd(mode: bool) -> None:
    """Whether convolutions of 3 by 3 in float32 may be computed by Winograd's algorithm.

    The compiled kernels use it where it saves time: it takes 36 multiplications where the plain sum
    takes 144. Its rounding errors are some five times those of the plain sum (root mean square),
    1e-5 of the size of the results at most. Float64 is always the plain sum. Without compiled
    kernels nothing changes. ``CHAINRULE_WINOGRAD=0`` in the environment turns it off, too.

    >>> from chainrule import backend
    >>> backend.use_winograd(False)
    >>> backend.use_winograd(True)
    """
    native = native_module()
    if native is not None:
        native.set_winograd(bool(mode))


def available() -> list[str]:
    """The names that :func:`use` accepts on this machine."""
    return list(_IMPLEMENTATIONS)


def current() -> str:
    """The name of the kernels in use."""
    return _current


def use(name: str) -> None:
    """Computes everything that follows with the kernels of this name.

    >>> from chainrule import backend
    >>> before = backend.current()
    >>> backend.use("numpy")
    >>> backend.current()
    'numpy'
    >>> backend.use(before)
    """
    global _current
    if name not in _IMPLEMENTATIONS:
        reason = f"; native: {why_not_native}" if name == "native" else ""
        raise ValueError(
            f"backend.use: no kernels named {name!r}; available: {available()}{reason}"
        )
    for family in _IMPLEMENTATIONS[name]:
        for kernel in family.__all__:
            _host[kernel] = getattr(family, kernel)
    for kernel, function in _host.items():
        setattr(K, kernel, function if _looking is None else _looking(kernel, function))
    _current = name
    rebind()


def rebind() -> None:
    """Hands every operation the kernel that ``K`` holds now."""
    for op, kernel in _bound:
        vars(op)["free"] = function = getattr(K, kernel)
        op.raw = function if _strict is None else _strict(kernel, function)


def bind(op: Bound, kernel: str) -> None:
    """Sets ``op.raw`` to the kernel of this name, now and whenever the backend changes."""
    _bound.append((op, kernel))
    op.raw = vars(op)["free"] = getattr(K, kernel)


def look_with(looking: Callable[[str, Any], Any], strict: Callable[[str, Any], Any]) -> None:
    """Has all kernels look where their arguments are; see ``backend/devices.py``."""
    global _looking, _strict
    _looking, _strict = looking, strict
    use(_current)


def host(kernel: str) -> Any:
    """The kernel of this name that computes on the host."""
    return _host[kernel]


def reference(kernel: str) -> Any:
    """The NumPy kernel of this name."""
    return next(getattr(f, kernel) for f in _IMPLEMENTATIONS["numpy"] if kernel in f.__all__)


use(os.environ.get("CHAINRULE_KERNELS") or available()[-1])
use_winograd(os.environ.get("CHAINRULE_WINOGRAD") != "0")

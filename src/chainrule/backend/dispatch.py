"""How a kernel finds out where to compute, once a device is in use.

Every kernel of ``K`` becomes one that looks at the class of its arguments: arrays of the host go to
the kernel of the host, cells (``backend/placed.py``) to its version in ``xla_kernels``. Arrays that
an operation makes for itself have no place until they meet a cell; inputs of operations have one,
and two places in one call are PyTorch's error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule import backend
from chainrule.backend import meshes
from chainrule.backend.cells import (
    VIEWS,
    again,
    checked,
    computed,
    in_cells,
    into_base,
    mapped,
    offset_between,
    place_of_all,
    viewed,
    written,
)
from chainrule.backend.devices import is_full, jax, of_kind, out_of_memory
from chainrule.backend.effects import CHECKS, STATIC, WRITES
from chainrule.backend.placed import Place, Placed, compute, several_places, unsettled
from chainrule.backend.recorded import thread
from chainrule.backend.xla_kernels import table
from chainrule.backend.tracing import is_tracing

__all__ = ["activate"]

# --- what is asked of cells outside of kernels ----------------------------------------------------


class Engine:
    """Computes with cells where no kernel is called; see ``compute`` in ``backend/placed.py``."""

    def __init__(self) -> None:
        self.jnp: Any = jax().numpy
        self.functions: dict[str, Callable[..., Any]] = {
            "getitem": lambda a, index: a[index],
            "astype": lambda a, dtype: a.astype(dtype),
            "matmul": table.TABLE["matmul"],
            "reshape": lambda a, *shape: a.reshape(*shape),
            "transpose": lambda a, *dims: a.transpose(*dims),
        }
        self.known: dict[str, Callable[..., Any]] = {}

    def is_active(self) -> bool:
        """Whether a device is in use."""
        return True

    def __call__(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """An operator or a method of cells, by the name of JAX's function for it."""
        if not all(map(_is_operand, args)):
            return NotImplemented
        function = self.known.get(name)
        if function is None:
            function = self.known[name] = self._named(name)
        if thread.recorder is not None:
            return thread.recorder.call(f"xla.{name}", function, args, kwargs)
        return function(*args, **kwargs)

    def _named(self, name: str) -> Callable[..., Any]:
        function = self.functions.get(name) or getattr(self.jnp, name)

        def of_cells(*args: Any, **kwargs: Any) -> Any:
            return computed(name, function, args, kwargs)

        return of_cells

    def again(self, view: Placed, base: Placed) -> Any:
        """The array that a view shows of its base now."""
        return again(view, base)

    def into_base(self, view: Placed, raw: Any) -> None:
        """Writes what a view holds from now on into its base."""
        into_base(view, raw)

    def put(self, a: Any, place: Place, model: Any = None) -> Placed:
        """A cell on a device with the numbers of an array of the host, or of another cell; where
        a model lies on several devices, so does the new one."""
        if model is not None and meshes.are_in_use():
            return self._called("xla.like", meshes.like, place, a, model)
        return self._called("xla.put", _put, a, place)

    def bring(self, a: Any, place: Place) -> Placed:
        """What the user moves to a device."""
        found = meshes.brought(a, place)
        if found is not None and thread.recorder is not None:
            thread.recorder.refuse("it moves the share of a process to a device; do it before")
        return self.put(a, place) if found is None else found

    def lay(self, cell: Placed, mesh: Any, layout: Any, op: str) -> Placed:
        """The same numbers on several devices."""
        return self._called("xla.lay", meshes.placed, cell, mesh, layout, op)

    def _called(self, name: str, function: Callable[..., Any], *args: Any) -> Any:
        if thread.recorder is not None:
            return thread.recorder.call(name, function, args, {})
        return function(*args)

    def read(self, cell: Placed) -> np.ndarray:
        """A copy of the numbers of a cell on the host."""
        if thread.recorder is not None:
            thread.recorder.refuse("it reads numbers of a tensor")
        try:
            for settle in list(unsettled.values()):
                settle()
            return meshes.read(cell.raw)
        except Exception as error:  # what was computed meanwhile, and had no room
            if isinstance(error, MemoryError) or not is_full(error):
                raise
            what = f"a tensor of {cell.dtype}{list(cell.shape)}, or what it is made of"
            raise out_of_memory(what, str(error)) from error


def _put(a: Any, place: Place) -> Placed:
    # JAX may keep the memory that it is given: it gets its own.
    raw = a.raw if isinstance(a, Placed) else np.array(a)
    if is_tracing():
        return Placed(jax().numpy.asarray(raw), place)
    return Placed(jax().device_put(raw, of_kind(place.kind)[place.number]), place)


_OPERANDS = (Placed, np.ndarray, np.generic, bool, int, float, complex, slice, tuple, list)


def _is_operand(a: Any) -> bool:
    known = isinstance(a, (*_OPERANDS, type(None), type(Ellipsis), np.dtype))
    return known or hasattr(a, "__index__")


# --- kernels that look where their arguments are --------------------------------------------------


def _asarray(a: Any, dtype: Any = None, copy: bool | None = None) -> Any:
    if dtype is None or np.dtype(dtype) == a.dtype:
        return _copied(a) if copy else a
    return computed("asarray", table.TABLE["astype"], (a, np.dtype(dtype)), {})


def _copied(a: Placed) -> Placed:
    return Placed(a.raw, a.place)


def _owned(a: Placed, shared: bool) -> Placed:
    return a if not shared and a.base is None else _copied(a)


def _to_contiguous(a: Placed) -> Placed:
    return a if a.flags.c_contiguous else _copied(a)


def _arrange(a: Placed, order: tuple[int, ...]) -> Placed:
    """Row-major order, whatever is asked for: how memory is laid out is XLA's to choose."""
    return _to_contiguous(a)


def _root(a: Any) -> Any:
    while isinstance(a, Placed) and a.base is not None:
        a = a.base
    return a


def _write(target: Any, value: Any) -> Any:
    """``write`` between devices, as ``copy_`` of PyTorch's."""
    if not isinstance(target, Placed):
        return backend.host("write")(target, compute.read(value))
    if not isinstance(value, Placed) or value.place != target.place:
        value = _put(value, target.place)  # else the target would lie on JAX's first device
    return written("write", table.TABLE["write"], (target, value), {})


# What is about cells, not about the arrays in them.
OF_CELLS: dict[str, Callable[..., Any]] = {
    "arrange": _arrange,
    "asarray": _asarray,
    "copy": _copied,
    "from_python": _asarray,
    "is_contiguous": lambda a: a.flags.c_contiguous,
    "may_share_memory": lambda a, b: _root(a) is _root(b),
    "offset_between": offset_between,
    "owned": _owned,
    "to_contiguous": _to_contiguous,
    "to_numpy": lambda a: compute.read(a),
    "write": _write,
}


def activate() -> None:
    """Has kernels look where their arguments are, from now on."""
    if not compute.is_active():
        jax()
        compute.by = Engine()
        backend.look_with(_looking, _strict)


_known: dict[tuple[str, Any], Any] = {}


def _looking(kernel: str, host: Any) -> Any:
    """A kernel that computes on the host or on a device, wherever its arguments are."""
    if not callable(host) or isinstance(host, type):
        return host
    found = _known.get((kernel, host))
    if found is None:
        found = _made(kernel, host)
        if kernel in OF_INPUTS:
            found = _strict(kernel, found)
        _known[kernel, host] = found
    return found


def _made(kernel: str, host: Any) -> Any:
    there = _on_device(kernel, host)

    def looking(*args: Any, **kwargs: Any) -> Any:
        for a in args:
            kind = a.__class__
            if kind is Placed or ((kind is list or kind is tuple) and _has_cells(a)):
                return there(*args, **kwargs)
        if kwargs and _has_cells(kwargs.values()):
            return there(*args, **kwargs)
        return host(*args, **kwargs)

    return _named_as(looking, kernel, host)


def _named_as(function: Any, kernel: str, host: Any) -> Any:
    function.__name__ = kernel
    function.host = host
    if kernel in table.TABLE:
        function.on_device = table.TABLE[kernel]
    return function


def _has_cells(parts: Any) -> bool:
    for a in parts:
        kind = a.__class__
        if kind is Placed or ((kind is list or kind is tuple) and _has_cells(a)):
            return True
    return False


def _on_device(kernel: str, host: Any) -> Callable[..., Any]:
    """What computes a kernel some of whose arguments are cells."""
    if kernel in OF_CELLS:
        return OF_CELLS[kernel]
    if kernel in table.ABSENT:
        return _refusing(kernel, table.ABSENT[kernel])
    if kernel in table.HOSTED:
        return _hosted(kernel, host)
    function = table.TABLE.get(kernel)
    if function is None or kernel in STATIC:  # it takes no arrays, or looks at their form alone
        return function or host
    ways = {**dict.fromkeys(VIEWS, viewed), **dict.fromkeys(WRITES, written)}
    way = ways.get(kernel) or (checked if kernel in CHECKS else computed)

    def there(*args: Any, **kwargs: Any) -> Any:
        return way(kernel, function, args, kwargs)

    return there


def _refusing(kernel: str, why: str) -> Callable[..., Any]:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        place = place_of_all(kernel, args, kwargs)
        raise RuntimeError(f"{kernel}: not available on {place}: {why}; use .cpu() first")

    return refuse


def _hosted(kernel: str, host: Any) -> Callable[..., Any]:
    """A kernel that is computed on the host; its results go to where its arguments are."""

    def there(*args: Any, **kwargs: Any) -> Any:
        place = place_of_all(kernel, args, kwargs)
        if thread.recorder is not None:
            thread.recorder.refuse(f"{kernel} is computed on the CPU: {table.HOSTED[kernel]}")
        args, kwargs = mapped(args, compute.read), mapped(kwargs, compute.read)
        return in_cells(host(*args, **kwargs), place)

    return there


# From which argument on numbers of the host choose elements, as they may on a device, too.
INDEXED = {"index": 1, "index_place": 1, "index_put": 2}
# Kernels of ``K`` that operations call with nothing but their inputs, and what users call these.
OF_INPUTS = {
    "attention": "scaled_dot_product_attention",
    "bag_rows": "embedding_bag",
    "normalize_parts": "normalize",
    "scale_channels": "normalize",
}


def _strict(kernel: str, looking: Any) -> Any:
    """The kernel of an operation, whose inputs have to be on one device.

    What operations make for themselves has no place, but is handed to kernels of ``K``; arrays of
    the host among the inputs of an operation are tensors on the CPU, if they have dimensions.
    """
    host = getattr(looking, "host", None)
    if host is None:
        return looking

    end = INDEXED.get(kernel)

    def strict(*args: Any, **kwargs: Any) -> Any:
        cell = other = None
        given = args if end is None or args[0].__class__ is not Placed else args[:end]
        for a in (*given, *kwargs.values()) if kwargs else given:
            kind = a.__class__
            if kind is Placed:
                cell = a
            elif kind is np.ndarray and a.shape:
                other = a
            elif (kind is list or kind is tuple) and a:
                for part in a:
                    if part.__class__ is Placed:
                        cell = part
                    elif part.__class__ is np.ndarray and part.shape:
                        other = part
        if cell is not None and other is not None:
            raise several_places(OF_INPUTS.get(kernel, kernel), cell.place, "cpu")
        return looking(*args, **kwargs)

    return _named_as(strict, kernel, host)

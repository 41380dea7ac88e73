"""Calls of kernels on cells: their arrays are taken out, and what comes out goes into cells.

See ``backend/placed.py`` for what a cell is, and ``backend/dispatch.py`` for who calls this.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import FunctionType, MethodType
from typing import Any

import numpy as np

from chainrule import backend
from chainrule.backend import meshes
from chainrule.backend.devices import is_full, jax, out_of_memory
from chainrule.backend.effects import WRITES
from chainrule.backend.placed import Place, Placed, Taken, compute, several_places
from chainrule.backend.tracing import is_tracing
from chainrule.backend.xla_calls import called
from chainrule.backend.xla_kernels.checks import is_traced

__all__ = [
    "VIEWS",
    "OnRaw",
    "again",
    "cells_in",
    "checked",
    "computed",
    "in_cells",
    "into_base",
    "mapped",
    "offset_between",
    "place_of_all",
    "raw_of",
    "viewed",
    "written",
]

# --- the arguments of a call ----------------------------------------------------------------------


def cells_in(tree: Any) -> Iterator[Placed]:
    """The cells in nested lists, tuples and dictionaries."""
    if tree.__class__ is Placed:
        yield tree
    elif isinstance(tree, (list, tuple)):
        for part in tree:
            yield from cells_in(part)
    elif isinstance(tree, dict):
        for part in tree.values():
            yield from cells_in(part)


def mapped(tree: Any, function: Callable[[Placed], Any]) -> Any:
    """Arguments with something else in the places of cells, and kernels as they are on a device."""
    kind = tree.__class__
    if kind is Placed:
        return function(tree)
    if kind is list:
        return [mapped(part, function) for part in tree]
    if kind is tuple:
        return tuple([mapped(part, function) for part in tree])
    if isinstance(tree, tuple):
        return kind(*[mapped(part, function) for part in tree])
    if kind is dict:
        return {key: mapped(part, function) for key, part in tree.items()}
    if kind is FunctionType:
        return getattr(tree, "on_device", tree)
    if isinstance(tree, np.ndarray):
        return tree.view(np.ndarray)  # not one that a recorder watches
    return tree


def raw_of(cell: Placed) -> Any:
    """The array in a cell."""
    return cell.raw


def place_of_all(kernel: str, *trees: Any) -> Place:
    """Where the cells among the arguments are: PyTorch's error if that is not one place."""
    place: Any = None
    for cell in cells_in(trees):
        if place is None:
            place = cell.place
        elif cell.place != place:
            raise several_places(kernel, place, cell.place)
    return place


# --- computing ------------------------------------------------------------------------------------


def computed(kernel: str, function: Any, args: Any, kwargs: Any) -> Any:
    """A function of arrays of JAX's, on cells."""
    place = place_of_all(kernel, args, kwargs)
    given, named = _raws(kernel, args, kwargs)
    with jax().default_matmul_precision("highest"):  # XLA's own default is less: TF32 on GPUs
        out = _called(kernel, function, given, named, whole=True)
    return in_cells(out, place)


def _called(kernel: str, function: Any, given: Any, named: Any, whole: bool = False) -> Any:
    """What a function of arrays of JAX's returns; as a ``whole`` it is one program, unless it is
    part of one that is being traced. PyTorch's error where memory runs out."""
    try:
        if whole and not (is_tracing() or meshes.are_in_use()):
            return called(function, given, named)
        return meshes.in_turn(function(*given, **named))
    except Exception as error:
        if not is_full(error):
            raise
        raise _translated(error, kernel, function, given, named) from error


def _raws(kernel: str, args: Any, kwargs: Any) -> tuple[Any, Any]:
    """The arguments with arrays in the places of cells, all of them on the same devices."""
    if not meshes.are_in_use():
        return mapped(args, raw_of), mapped(kwargs, raw_of)
    cells = list({id(c): c for c in cells_in((args, kwargs))}.values())
    known = dict(zip(map(id, cells), meshes.joined(kernel, [c.raw for c in cells]), strict=True))
    return mapped((args, kwargs), lambda cell: known[id(cell)])


def _translated(error: Exception, kernel: str, function: Any, given: Any, named: Any) -> Exception:
    """What XLA says when memory runs out, with what was asked for."""
    sizes = _sizes((given, named))
    with contextlib.suppress(Exception):  # XLA has not computed what it makes, but knows its shape
        made = jax().eval_shape(lambda: function(*given, **named))
        sizes += f", which makes {_sizes(made)}"
    return out_of_memory(f"{kernel} of {sizes}", str(error))


def _sizes(tree: Any) -> str:
    leaves = [a for a in jax().tree_util.tree_leaves(tree) if hasattr(a, "dtype") and a.shape != ()]
    return ", ".join([f"{a.dtype}{list(a.shape)}" for a in leaves[:6]]) or "numbers"


def in_cells(out: Any, place: Place) -> Any:
    """Results with arrays in cells."""
    if isinstance(out, jax().Array):
        return Placed(out, place)
    if isinstance(out, np.ndarray):
        return compute.put(out, place)
    if isinstance(out, tuple) and out.__class__ is not tuple:
        return out.__class__(*[in_cells(part, place) for part in out])
    if isinstance(out, (list, tuple)):
        return out.__class__([in_cells(part, place) for part in out])
    return out


def checked(kernel: str, function: Any, args: Any, kwargs: Any) -> Any:
    """The answer of a check; one that is not known while a program is traced stays an array."""
    given, named = _raws(kernel, args, kwargs)
    ok = _called(kernel, function, given, named, whole=True)
    try:
        return ok if is_traced(ok) else bool(ok)
    except Exception as error:  # of what was computed meanwhile
        if not is_full(error):
            raise
        raise _translated(error, kernel, function, given, named) from error


def written(kernel: str, function: Any, args: Any, kwargs: Any) -> Any:
    """Puts what a kernel returns into the cells that it writes to."""
    place = place_of_all(kernel, args, kwargs)
    if isinstance(args[WRITES[kernel][0]], np.ndarray):
        if kernel not in ("write_index", "write_subscript"):
            raise several_places(kernel, place, "cpu")
        return backend.host(kernel)(*mapped(args, compute.read), **mapped(kwargs, compute.read))
    given, named = _raws(kernel, args, kwargs)
    if kernel == "write_updates":  # its rule is written in operations, which know cells
        given = (OnRaw(args[0], place), *given[1:])
    out = _called(kernel, function, given, named, whole=True)
    places = WRITES[kernel]
    if len(places) == 1:
        return _into(args[places[0]], out)
    return tuple([_into(args[i], part) for i, part in zip(places, out, strict=True)])


@dataclass(frozen=True)
class OnRaw:
    """A function of cells as one of arrays of JAX's."""

    rule: Callable[..., Any]
    place: Place

    def __hash__(self) -> int:
        if isinstance(self.rule, MethodType):  # a key that is kept would keep its object
            raise TypeError("a rule that belongs to an object is no key")
        return hash((self.rule, self.place))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        named = {name: self._in_cell(a) for name, a in kwargs.items()}
        return mapped(self.rule(*map(self._in_cell, args), **named), raw_of)

    def _in_cell(self, a: Any) -> Any:
        return Placed(a, self.place) if isinstance(a, jax().Array) else a


def _into(target: Any, out: Any) -> Any:
    if target.__class__ is Placed:
        return target.write(out)
    for cell, part in zip(target, out, strict=True):
        _into(cell, part)
    return target


# --- views ----------------------------------------------------------------------------------------

# The result shares the memory of the first argument.
VIEWS = {
    "as_strided",
    "broadcast_to",
    "diagonal",
    "imag",
    "permute",
    "real",
    "reshape",
    "slice_view",
    "unfold",
    "view_as_complex",
    "view_as_real",
    "view_bits",
}


def viewed(kernel: str, function: Any, args: Any, kwargs: Any) -> Any:
    """A view of a cell; a copy where a tensor on the CPU is one, too."""
    cell, *rest = args
    place = place_of_all(kernel, args, kwargs)
    twin = backend.reference(kernel)
    strides = _strides(kernel, twin, cell, rest, kwargs)
    raw = _called(kernel, function, (cell.raw, *rest), kwargs)
    if strides is None:
        return Placed(raw, place)
    return Placed(raw, place, cell, Taken(kernel, function, twin, tuple(rest), kwargs), strides)


def _strides(kernel: str, twin: Any, cell: Placed, args: Any, kwargs: Any) -> Any:
    """The strides of a view; None where NumPy would have to copy.

    NumPy finds them from an array over memory that is not there, and that it does not read.
    """
    like = _like(cell)
    if kernel != "reshape":
        out = twin(like, *args, **kwargs)
        return out.strides if np.may_share_memory(out, like) or not out.size else None
    try:
        return like.reshape(*args, *kwargs.values(), copy=False).strides
    except ValueError:  # it cannot without a copy
        return None


def _like(cell: Placed) -> np.ndarray:
    return np.lib.stride_tricks.as_strided(np.empty(1, cell.dtype), cell.shape, cell.strides)


def offset_between(base: Placed, view: Placed) -> int:
    """The place of the first element of a view in its base on the CPU, in elements."""
    start = 0
    while view is not base and view.base is not None:
        start += _start(view.base, view.taken)
        view = view.base
    return start // base.itemsize


def _start(cell: Placed, taken: Taken) -> int:
    """Where a view begins in the memory of a cell, in bytes."""
    if taken.kernel == "reshape":
        return 0
    like = _like(cell)
    out = taken.twin(like, *taken.args, **taken.kwargs)
    address = backend.reference("address")
    return address(out) - address(like) if out.size else 0


def again(view: Placed, base: Placed) -> Any:
    """The array that a view shows of its base now."""
    taken = view.taken
    return _called(taken.kernel, taken.function, (base.raw, *taken.args), taken.kwargs)


def into_base(view: Placed, raw: Any) -> None:
    """Writes what a view holds from now on into its base."""
    base: Any = view.base
    taken = view.taken
    put_back = _PUT_BACK.get(taken.kernel, _put_back_anywhere)
    base.write(_called("in-place", put_back, (base.raw, raw, taken), {}))


def _put_back_anywhere(whole: Any, part: Any, taken: Taken) -> Any:
    """By the numbers of the elements that the view shows."""
    numbers = np.arange(whole.size).reshape(whole.shape)
    try:
        shown = np.asarray(taken.twin(numbers, *taken.args, **taken.kwargs)).reshape(-1)
    except (TypeError, ValueError):
        raise RuntimeError(
            "in-place: a tensor on a device that shows parts of complex numbers cannot be changed "
            "in place; make a new one with chainrule.complex"
        ) from None
    return whole.reshape(-1).at[shown].set(part.reshape(-1)).reshape(whole.shape)


def _put_back_slice(whole: Any, part: Any, taken: Taken) -> Any:
    return whole.at[(..., *_told(taken))].set(part)


def _put_back_permuted(whole: Any, part: Any, taken: Taken) -> Any:
    dims, n = _told(taken), whole.ndim
    order = [*range(n - len(dims)), *[n + d for d in dims]]
    return part.transpose([order.index(d) for d in range(n)])


def _told(taken: Taken) -> Any:
    """The one argument of a view besides its base."""
    (value,) = (*taken.args, *taken.kwargs.values())
    return value


_PUT_BACK: dict[str, Callable[..., Any]] = {
    "permute": _put_back_permuted,
    "reshape": lambda whole, part, taken: part.reshape(whole.shape),
    "slice_view": _put_back_slice,
}

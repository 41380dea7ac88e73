"""A call of a kernel on a device as one program of XLA's, where no step is traced as a whole.

A kernel consists of a few up to some dozen functions of JAX's. One by one, each of them is
compiled for each shape, which takes a GPU up to a tenth of a second, and sent by itself, which
takes some microseconds. Here arrays are the arguments of one program, and everything else is part
of it: sizes, flags, and numbers, until one is another than the last time: it is an argument then.

A kernel that looks at values or returns something besides arrays runs as it is, and so does one
that is called with ever other sizes.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np

from chainrule.backend import precision
from chainrule.backend.tracing import NotLowered
from chainrule.backend.xla_programs import tracing

__all__ = ["called"]

MOST = 32  # forms of a kernel's arguments


class _NotWhole(Exception):
    """A call that cannot be one program."""


class _Form:
    """What is known of the calls with arguments of one form: of the same kinds, sizes and flags."""

    def __init__(self, numbers: list[float]):
        self.numbers = numbers
        self.moving: frozenset[int] = frozenset()  # the places of those that were others once
        self.as_it_is = False

    def part(self, numbers: list[float]) -> tuple[tuple[Any, ...], list[float]]:
        """The numbers that stay, with None for the others, and the others."""
        moving = self.moving  # as it is now: other threads may add to it meanwhile
        if numbers != self.numbers or 0.0 in numbers:  # -0.0 is 0.0, but is not alike
            pairs = enumerate(zip(numbers, self.numbers, strict=True))
            moving |= {i for i, (now, before) in pairs if repr(now) != repr(before)}
            self.numbers, self.moving = numbers, self.moving | moving
        if not moving:
            return tuple(numbers), []
        stay = tuple([None if i in moving else number for i, number in enumerate(numbers)])
        return stay, [number for i, number in enumerate(numbers) if i in moving]


_forms: dict[Any, dict[Any, _Form]] = {}  # by kernel


def called(kernel: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """What ``kernel(*args, **kwargs)`` returns, arrays and nothing else, of arrays of JAX's."""
    arrays: list[Any] = []
    numbers: list[float] = []
    try:
        key = _taken_apart((args, kwargs), arrays, numbers)
        form = _form_of(kernel, key, numbers)
    except (TypeError, _NotWhole):  # what has no hash, for instance
        return kernel(*args, **kwargs)
    if form is None or form.as_it_is:
        return kernel(*args, **kwargs)
    stay, moving = form.part(numbers)
    try:
        out, held = _program((kernel, precision.current(), key, stay), arrays, moving)
    except (TypeError, NotLowered, _NotWhole, jax.errors.JAXTypeError, jax.errors.JAXIndexError):
        out = kernel(*args, **kwargs)
        form.as_it_is = True  # it can be computed, but not be traced
        return out
    if not all(map(bool, held)):
        return kernel(*args, **kwargs)  # raises its error, with the values that it names
    return out


def _form_of(kernel: Any, key: Any, numbers: list[float]) -> _Form | None:
    """What is known of a form of arguments; None if the kernel had too many."""
    known = _forms.setdefault(kernel, {})
    form = known.get(key)
    if form is None and len(known) < MOST:
        form = known[key] = _Form(numbers)
    return form


def _run(call: Any, arrays: Any, moving: Any) -> Any:
    """What a kernel returns, and whether each of its checks held."""
    kernel, _, key, stay = call
    others = iter(moving)
    numbers = iter([next(others) if number is None else number for number in stay])
    held: list[Any] = []
    with tracing(lambda ok, error: held.append(ok)):
        args, kwargs = _put_together(key, iter(arrays), numbers)
        out = kernel(*args, **kwargs)
    if not all([isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(out)]):
        raise _NotWhole
    return out, held


_program = jax.jit(_run, static_argnums=0)


# --- the arguments of a call ----------------------------------------------------------------------


class _Hole:
    """Stands for an array, or for a number, among the arguments."""


_ARRAY, _NUMBER = _Hole(), _Hole()


def _taken_apart(tree: Any, arrays: list[Any], numbers: list[float]) -> Any:
    """A key for the form of arguments; arrays and numbers go into the lists."""
    kind = tree.__class__
    if isinstance(tree, (jax.Array, np.ndarray, np.generic)):
        arrays.append(tree)
        return _ARRAY
    if kind is float:
        numbers.append(tree)
        return _NUMBER
    if isinstance(tree, (list, tuple)):
        return (kind, *[_taken_apart(part, arrays, numbers) for part in tree])
    if kind is dict:
        parts = [(key, _taken_apart(part, arrays, numbers)) for key, part in tree.items()]
        return (dict, *parts)
    if kind is slice:
        parts = [tree.start, tree.stop, tree.step]
        return (slice, *[_taken_apart(part, arrays, numbers) for part in parts])
    if isinstance(tree, (int, float, complex)):  # 1 is True, and 0j is -0j, but they are not alike
        return (kind, repr(tree), tree)
    if kind is types.FunctionType and "<locals>" in tree.__qualname__:
        raise _NotWhole  # another one at each call
    if kind is types.MethodType:
        raise _NotWhole  # its object would be kept
    return tree


def _put_together(key: Any, arrays: Iterator[Any], numbers: Iterator[float]) -> Any:
    """The arguments again."""
    if key is _ARRAY:
        return next(arrays)
    if key is _NUMBER:
        return next(numbers)
    if key.__class__ is not tuple:
        return key
    kind, *parts = key
    if kind is dict:
        return {name: _put_together(part, arrays, numbers) for name, part in parts}
    if issubclass(kind, (int, float, complex)):
        return parts[1]
    found = [_put_together(part, arrays, numbers) for part in parts]
    return kind(*found) if kind is slice or hasattr(kind, "_fields") else kind(found)

"""The transformations that are under way in this thread, innermost last.

Each has a level, a number larger than those of all transformations around it. A value of one
transformation is a box of its level, and an operation is carried out by the innermost
transformation whose box it meets: so a tangent of one ``jvp`` is never taken for a tangent of
another (perturbation confusion), and transformations nest in any order.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from chainrule.backend import K
from chainrule.graph import Box, Mode, mode
from chainrule.tensor import Tensor, of_array

if TYPE_CHECKING:
    from chainrule.ops.core.primitive import Op

__all__ = ["flags_within", "innermost", "level_of", "lift", "new_level"]

Array = K.Array
_numbers = itertools.count(1)


class _Stack(threading.local):
    def __init__(self) -> None:
        self.levels: list[tuple[int, Callable[[Tensor], Box]]] = []


_stack = _Stack()


@contextmanager
def new_level(constant: Callable[[int, Tensor], Box]) -> Iterator[int]:
    """A new innermost transformation; ``constant(level, tensor)`` boxes what stays unchanged."""
    level = next(_numbers)
    _stack.levels.append((level, lambda t: constant(level, t)))
    before = mode.flags
    mode.flags |= Mode.BOXED
    try:
        yield level
    finally:
        mode.flags = before
        _stack.levels.pop()


def flags_within(op: Op, tensors: Iterable[Tensor | None], flags: int) -> int:
    """What is recorded while a box computes an operation on the tensors it held.

    Where no transformation is left around them, they are computed as ordinary tensors are. (The
    user's own operations may hold tensors that are not among their inputs.)
    """
    for t in tensors:
        if t is not None and isinstance(t.array, Box):
            return flags
    return flags if op.takes_tensors else flags & ~Mode.BOXED


def innermost() -> int:
    """The level of the innermost transformation, 0 outside of all."""
    return _stack.levels[-1][0] if _stack.levels else 0


def level_of(x: Tensor) -> int:
    """The level of the innermost transformation that a tensor belongs to, 0 if none."""
    if x._view is not None:
        x._refresh()
    return x.array.level if isinstance(x.array, Box) else 0


def lift(x: Tensor) -> Tensor:
    """A tensor as a value of the innermost transformation, where its history stays outside."""
    if not _stack.levels or level_of(x) == innermost():
        return x
    return of_array(_stack.levels[-1][1](x))

"""The state of a program between its steps on a device, and the gradients that these hand out.

The arrays stay in the list in which a step gave them back, and the next one takes that list; a cell
gets its array when somebody asks for it. Many small arrays go in and out as one array of each type:
a call of XLA's takes some microseconds for each argument and each result, and a small array takes a
kernel of its own. Larger ones go by themselves: to join and to part them takes longer.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Container, Sequence
from sys import getrefcount
from typing import Any

from chainrule.backend import xla_programs as xla
from chainrule.backend.placed import Placed

__all__ = ["FEWEST", "Together", "donated", "update_joined", "worth_packing"]

# Bytes of an array that is small, and how many small ones lie together, by the kind of device. An
# H200 copies two megabytes in the time that the host needs for one more argument.
SMALL = {"xla": 1 << 15}
MANY = {"xla": 32}
SMALL_THERE, MANY_THERE = 1 << 21, 8  # on all others
FEWEST = 4  # gradients


def worth_packing(cells: Sequence[Placed]) -> list[int]:
    """Which of some cells are many and small enough that copies cost less than arguments."""
    seen: dict[int, int] = {}
    for k, c in enumerate(cells):
        seen.setdefault(id(c), k)
    own = [k for k in seen.values() if cells[k].base is None]
    if len(own) < len(cells):
        return []
    kind = cells[0].place.kind if cells else ""
    limit = SMALL.get(kind, SMALL_THERE)
    small = [k for k in own if cells[k].nbytes <= limit]
    return small if len(small) >= MANY.get(kind, MANY_THERE) else []


class Together:
    """Cells whose arrays lie in a list between steps, and in them when one of them is looked at.

    Args:
        cells: the first ``apart`` of them go by themselves, the others together.
        columns: numbers of those that belong together (``Pack``).
    """

    def __init__(
        self, cells: Sequence[Placed], columns: Sequence[Sequence[int]] = (), apart: int = 0
    ):
        self.cells, self.apart = list(cells), apart
        self.pack = xla.Pack(self.cells[apart:], columns)
        self._arrays: list[Any] | None = None
        self._lock = threading.RLock()

    def begin(self) -> None:
        """Zeros in cells whose arrays are still to come."""
        for cell in self.cells:
            cell.write(xla.zeros_like(cell))

    def take(self) -> list[Any]:
        """The arrays, ready to be donated."""
        if self._arrays is not None:
            return self._arrays
        found = donated(self.cells[: self.apart])
        if self.pack.groups:
            found += self.pack.packed([c.raw for c in self.cells[self.apart :]])
        return found

    def put(self, arrays: Sequence[Any]) -> None:
        """The cells hold this from now on."""
        with self._lock:
            if self._arrays is None:
                for cell in self.cells:
                    if cell.owner is not None and cell.owner is not self:
                        cell.owner.hand_out()
                    cell.owner = self
            self._arrays = list(arrays)

    def hand_out(self) -> None:
        """Gives each cell its own array."""
        with self._lock:
            arrays, self._arrays = self._arrays, None
            if arrays is None:
                return
            for cell in self.cells:
                cell.owner = None
            own = arrays[: self.apart]
            if self.pack.groups:
                own += self.pack.unpacked(arrays[self.apart :])
            for cell, raw in zip(self.cells, own, strict=True):
                cell.write(raw)


class _Holder:
    def __init__(self) -> None:
        self._raw = object()

    @property
    def raw(self) -> object:
        return self._raw


def _references() -> int:
    raw = _Holder().raw
    return getrefcount(raw)


def donated(cells: Sequence[Placed]) -> list[Any]:
    """The arrays of cells, to be taken for others: one that somebody else has is copied, its memory
    must stay."""
    found = []
    for cell in cells:
        raw = cell.raw
        found.append(raw if getrefcount(raw) <= ALONE else xla.copied(raw))
        raw = None
    return found


ALONE = _references() + 1  # of an array that only its cell has, besides who looks at it


def update_joined(
    small: Container[int],
    write: Callable[..., Any],
    rule: Any,
    params: Sequence[Placed],
    grads: Sequence[Placed],
    rates: Any,
    states: Sequence[Sequence[Placed]],
    constants: Any,
) -> None:
    """``write_updates`` with those parameters as one whose cells are ``small``, by their identity:
    its rule works element by element."""
    packed = [k for k, c in enumerate(params) if id(c) in small]
    alike = len({params[k].dtype for k in packed} | {grads[k].dtype for k in packed}) == 1
    if not alike or params[packed[0]].dtype.kind == "c" or isinstance(rates, (list, tuple)):
        write(rule, params, grads, rates, states, constants)
        return
    columns = [params, grads, *states]
    large = [[column[k] for k in range(len(params)) if k not in packed] for column in columns]
    if large[0]:
        write(rule, large[0], large[1], rates, large[2:], constants)
    columns = [[column[k] for k in packed] for column in columns]
    pack, place = xla.Pack(columns[0]), columns[0][0].place
    joined = [Placed(pack.pack([c.raw for c in column])[0], place) for column in columns]
    write(rule, joined[:1], joined[1:2], rates, [[state] for state in joined[2:]], constants)
    del columns[1], joined[1]
    for column, whole in zip(columns, joined, strict=True):
        for cell, raw in zip(column, pack.unpack([whole.raw]), strict=True):
            cell.write(raw)

"""Arrays of many cells as one: the state of short steps on a device, and their gradients.

A call of XLA's takes some microseconds for each argument and each result, which is most of the time
of a short step. So all parameters and moments go in and out as one array of each type, and a cell
gets its own when somebody asks for it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Container, Sequence
from typing import Any

from chainrule.backend import xla_programs as xla
from chainrule.backend.placed import Placed

__all__ = ["FEWEST", "Together", "update_joined", "worth_packing"]

PACKED = 1 << 25  # bytes: of a larger state only small arrays lie together,
SMALL = 1 << 15  # those up to so many bytes
FEWEST = 4


def worth_packing(cells: Sequence[Placed]) -> list[int]:
    """Which of some cells are many and small enough that copies cost less than arguments."""
    seen: dict[int, int] = {}
    for k, c in enumerate(cells):
        seen.setdefault(id(c), k)
    own = [k for k in seen.values() if cells[k].base is None]
    if len(own) < len(cells):
        return []
    small = [k for k in own if cells[k].nbytes <= SMALL]
    found = own if sum([c.nbytes for c in cells]) <= PACKED else small
    return found if len(found) >= FEWEST else []


class Together:
    """Cells whose arrays lie together between steps, and apart when one of them is looked at."""

    def __init__(self, cells: Sequence[Placed], columns: Sequence[Sequence[int]] = ()):
        self.cells = list(cells)
        self.pack = xla.Pack(self.cells, columns)
        self._flats: list[Any] | None = None
        self._lock = threading.RLock()

    def take(self) -> list[Any]:
        """The arrays together."""
        if self._flats is None:
            return list(self.pack.packed([c.raw for c in self.cells]))
        return self._flats

    def put(self, flats: Sequence[Any]) -> None:
        """They hold this from now on."""
        with self._lock:
            if self._flats is None:
                for cell in self.cells:
                    if cell.owner is not None and cell.owner is not self:
                        cell.owner.hand_out()
                    cell.owner = self
            self._flats = list(flats)

    def hand_out(self) -> None:
        """Gives each cell its own array."""
        with self._lock:
            flats, self._flats = self._flats, None
            if flats is None:
                return
            for cell in self.cells:
                cell.owner = None
            for cell, raw in zip(self.cells, self.pack.unpacked(flats), strict=True):
                cell.write(raw)


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

"""Arrays of many cells as one: the state of short steps on a device, and their gradients.

A call of XLA's takes some microseconds for each argument and each result, which is most of the time
of a short step. So all parameters and moments go in and out as one array of each type, and a cell
gets its own when somebody asks for it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from chainrule.backend import xla_programs as xla
from chainrule.backend.placed import Placed

__all__ = ["FEWEST", "Together", "update_joined", "worth_packing"]

PACKED = 1 << 25  # bytes: of larger ones a copy costs more than the arguments
FEWEST = 4


def worth_packing(cells: Sequence[Placed]) -> bool:
    """Whether cells are many and small, and have memory of their own."""
    if len({id(c) for c in cells}) < max(len(cells), FEWEST):
        return False
    return all([c.base is None for c in cells]) and sum([c.nbytes for c in cells]) <= PACKED


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
    write: Callable[..., Any], rule: Any, params: Any, grads: Any, rates: Any, states: Any,
    constants: Any,
) -> None:  # fmt: skip
    """``write_updates`` of all parameters as one: its rule works element by element."""
    alike = len({c.dtype for c in (*params, *grads)}) == 1 and params[0].dtype.kind != "c"
    if not alike or isinstance(rates, (list, tuple)):
        write(rule, params, grads, rates, states, constants)
        return
    pack, place = xla.Pack(params), params[0].place
    columns = [params, grads, *states]
    joined = [Placed(pack.pack([c.raw for c in column])[0], place) for column in columns]
    write(rule, joined[:1], joined[1:2], rates, [[state] for state in joined[2:]], constants)
    for column, whole in zip([params, *states], [joined[0], *joined[2:]], strict=True):
        for cell, raw in zip(column, pack.unpack([whole.raw]), strict=True):
            cell.write(raw)

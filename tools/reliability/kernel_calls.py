"""Random calls of compiled kernels, as ``tests/native`` makes them, beside their NumPy twins."""

from __future__ import annotations

import random
from pathlib import Path

from reliability.cases import Case, Kind

__all__ = ["Calls", "HostileCalls"]


class Calls(Kind):
    name = "calls of kernels beside their twins"
    rule = "the same result up to rounding, or an exception of both"
    memory = 64 << 30  # a twin may need what the kernel does not

    def prepare(self, folder: Path) -> None:
        """Finds the kernels."""
        from native.twins import native

        self.names = sorted(native.kernels)

    def begin(self) -> None:
        """What is left unwritten is the same in both."""
        from native.random_calls import written

        self.kept = written()
        self.kept.__enter__()

    def case(self, r: random.Random, folder: Path) -> Case:
        """A call of one kernel: valid, odd or nonsense."""
        name, seed = r.choice(self.names), r.randrange(2**31)
        return Case(lambda: _compared(name, seed))


def _compared(name: str, seed: int) -> None:
    from native.random_calls import difference

    found = difference(name, seed)
    if found:
        raise AssertionError(found)


class HostileCalls(Calls):
    name = "calls of kernels with absurd sizes"
    rule = "a result or an exception; the process lives"

    def begin(self) -> None:
        """Without the twins, which would take forever."""
        from native.twins import native

        native.bind_reference({})

    def case(self, r: random.Random, folder: Path) -> Case:
        """A call at the edge of what is accepted, and beyond."""
        from native.random_calls import hostile, outcome
        from native.twins import native
        from native.valid_calls import Draw

        name = r.choice(self.names)
        call = hostile(Draw(r.randrange(2**31)), name)
        return Case(lambda: outcome(getattr(native, name), call) and None)

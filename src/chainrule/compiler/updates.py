"""The step of an optimizer as a part of a program."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from chainrule.tensor import Tensor

__all__ = ["Update"]


@dataclass
class Update:
    """The step of an optimizer that an instruction belongs to: asked for its numbers each time."""

    optimizer: Any
    group: dict[str, Any]
    params: list[Tensor]
    held: list[Any]

    def __post_init__(self) -> None:
        self.names = self.optimizer.states(self.group)
        # Where each parameter has rates of its own they are arrays, which are part of the program.
        own = self.own_rates()
        self.rates = [r.array for r in own] if own else None
        self._bases: tuple[dict[str, Any], dict[str, float] | None] | None = None
        self._settings: dict[str, Any] | None = None  # those that it was last seen to have,
        self.seen = 0  # and how often they were others than before
        self._list = self.group["params"]

    def own_rates(self) -> list[Tensor]:
        """The rates of each parameter; none, if one number is that of all."""
        rates = self.optimizer._rates(self.group, self.params)
        return [] if isinstance(rates, float) else rates

    def is_current(self) -> bool:
        """Whether the optimizer still keeps the states that this updates, and rates of the kind."""
        states = self.optimizer.state
        for p, h in zip(self.params, self.held, strict=True):
            if states.get(p) is not h:
                return False
        group = self.group
        same = group["params"] is self._list and group == self._settings
        return same or self.has_form()

    def has_form(self) -> bool:
        """Whether the settings ask for the same states as when it was recorded, and rates of the
        same kind: one number, or the very arrays."""
        if self.optimizer.states(self.group) != self.names:
            return False
        own = self.own_rates()
        if self.rates is None or not own:
            if self.rates is None and not own:
                self._see()
                return True
            return False
        return all([r.array is a for r, a in zip(own, self.rates, strict=True)])

    def _see(self) -> None:
        """Notes the settings, if they say all: a tensor may change, and is the same one."""
        group = self.group
        self.seen += 1
        plain = [_is_settled(v) for name, v in group.items() if name != "params"]
        self._list = group["params"]
        self._settings = dict(group) if all(plain) else None

    def numbers(self, key: Any) -> tuple[dict[str, Any], float | None]:
        """The constants of a step and its rate; None where the rates are arrays."""
        constants, rates = self.optimizer.numbers(self.group, self.params, key)
        return constants, rates if isinstance(rates, float) else None

    def next(self) -> tuple[Any, dict[str, Any], float | None]:
        """Counts a step; what tells it apart, its constants and its rate."""
        key = self.optimizer._count(self.held, [False] * len(self.held))[0]
        return key, *self.numbers(key)

    def foreseen(self, state: dict[str, Any]) -> tuple[dict[str, Any], float | None]:
        """The numbers of the step after a state of counts and scalars, which goes on by it."""
        step = state["step"] + 1 if self.optimizer.keeps_step else 2
        names = self.optimizer.scalar_states
        scalars = {name: state[name] for name in names}
        found = self.numbers((step, *scalars.values()) if names else step)
        if names:
            state.update(self.optimizer.advance(self.group, step, **scalars))
        state["step"] = step
        return found

    def advance(self, key: Any) -> None:
        """The scalar states after the step."""
        if self.optimizer.scalar_states:
            self.optimizer.advance_scalars(self.group, self.held, key)

    @contextlib.contextmanager
    def counted(self) -> Iterator[tuple[dict[str, Any], float | None]]:
        """Around a step: its constants and rate; it does not count if it raises an error."""
        key, constants, rate = self.next()
        try:
            yield constants, rate
        except BaseException:
            self.back(key)
            raise
        self.advance(key)

    def back(self, key: Any) -> None:
        """Takes back a step that was counted, and not taken."""
        self.skip(-1)
        names = self.optimizer.scalar_states
        if names:
            for state in self.held:
                state.update(zip(names, key[1:], strict=True))

    def skip(self, steps: int) -> None:
        """Counts steps that were taken elsewhere."""
        if self.optimizer.keeps_step:
            for state in self.held:
                state["step"] += steps

    def moving(self) -> dict[str, float] | None:
        """The constants that are 1 - base^t at step t, with their bases; None if others move."""
        if self.optimizer.scalar_states:
            return None
        if not self.optimizer.keeps_step:
            return {}
        first = self.optimizer.constants(self.group, 1)
        if self._bases is None or self._bases[0] != first:
            rows = [self.optimizer.constants(self.group, t) for t in PROBES]
            self._bases = first, _bases_in(rows)
        return self._bases[1]

    def prepare(self, tape: Any, number: int) -> int | None:
        """Tells a tape the numbers of the steps to come; the number of the last one.

        None if they have another form than was recorded.
        """
        if not self.has_form():
            return None
        first = {"step": 1, **self.held[0]}
        t = first["step"]
        self.tell(tape, number, *self.foreseen(first))
        tape.set_moving(number, float(t), self.moving() or {})
        return int(t)

    @staticmethod
    def tell(tape: Any, number: int, constants: dict[str, Any], rate: float | None) -> None:
        """Tells a tape the numbers of the next step."""
        if not tape.set_numbers(number, rate, constants):
            raise ZeroDivisionError("compile: an update divides by zero")


# Steps whose constants tell which of them move. Two steps after each other do not: 1 - 0.9^t stays
# where it is for some steps before it comes to 1.
PROBES = (1, 2, 3, 4, 6, 10, 30, 100, 300, 1000, 10_000, 100_000)


def _is_settled(value: Any) -> bool:
    """Whether a setting is the same value as long as it is the same object."""
    if value.__class__ is tuple:
        return all(map(_is_settled, value))
    return isinstance(value, (bool, int, float, str, type(None)))


def _bases_in(rows: list[dict[str, Any]]) -> dict[str, float] | None:
    """The bases of the constants that move, from those of some steps."""
    found = {}
    for name, value in rows[0].items():
        if all([row[name] == value for row in rows]):
            continue
        pairs = [(t, row[name]) for t, row in zip(PROBES, rows, strict=True)]
        candidates = [b for b in rows[0].values() if isinstance(b, float) and 0 <= b < 1]
        bases = [b for b in candidates if all([value == 1 - b**t for t, value in pairs])]
        if not bases:
            return None
        found[name] = bases[0]
    return found

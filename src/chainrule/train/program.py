"""A call recorded once, and repeated operation by operation with other tensors.

Inside :func:`chainrule.func.vmap` a function cannot look at the values of its tensors, so the
operations it comes to are the same for all values. Repeated alone, without the Python between them,
they cost a small network a fraction of the time.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from chainrule.graph import Box, Mode, mode
from chainrule.ops.apply import apply, on_applied
from chainrule.tensor import Tensor

__all__ = ["Program"]


class Program:
    """The operations between some tensors and others that are computed from them.

    A tensor that is neither an input nor computed from one is a constant.

    >>> import chainrule
    >>> x = chainrule.ones(2)
    >>> program = Program([x])
    >>> with program.recording():
    ...     y = (x * 3).sum()
    >>> program.finish([y])
    >>> program.run([chainrule.full((2,), 5.0)])
    [tensor(30.)]
    """

    def __init__(self, inputs: Sequence[Tensor]):
        self.steps: list[tuple[Any, Any, Any, int, int]] = []
        self.values: list[Any] = []
        self.draws = 0  # how often random numbers are drawn
        self._slots: dict[int, int] = {}
        self._arrays: dict[int, int] = {}
        self._alive: list[Any] = []  # what the numbers above belong to
        for t in inputs:
            self._new(t)
        self.inputs = len(inputs)
        self.outputs: list[int] = []

    @contextlib.contextmanager
    def recording(self) -> Iterator[None]:
        """Notes all operations on ordinary tensors, also those that transformations come to."""
        before = mode.flags
        mode.flags |= Mode.TRACE
        on_applied.append(self._note)
        try:
            yield
        finally:
            on_applied.remove(self._note)
            mode.flags = before

    def finish(self, outputs: Sequence[Tensor]) -> None:
        """Says which tensors are wanted, and forgets those between."""
        self.outputs = [self._slot(t) for t in outputs]
        made = {t + k for _, _, _, t, count in self.steps for k in range(count)}
        made |= set(range(self.inputs))
        self.values = [None if i in made else v for i, v in enumerate(self.values)]
        self._slots, self._arrays, self._alive = {}, {}, []

    def run(self, inputs: Sequence[Tensor]) -> list[Tensor]:
        """The outputs for other inputs, with their history."""
        values = self.values.copy()
        values[: self.inputs] = inputs
        for op, sources, params, target, count in self.steps:
            if op is None:
                values[target] = sources(values)
                continue
            out = apply(op, tuple([values[i] for i in sources]), params)
            if count == 1 and out.__class__ is not tuple:
                values[target] = out
            else:
                values[target : target + count] = out
        return [values[i] for i in self.outputs]

    def noted_draw(self, draw: Callable[[], Tensor]) -> Tensor:
        """The result of a function that draws random numbers, which is called again each time."""
        result = draw()
        self.draws += 1
        self.steps.append((None, lambda values: draw(), None, self._new(result), 1))
        return result

    # --- recording --------------------------------------------------------------------------------

    def _note(self, op: Any, inputs: tuple[Tensor, ...], params: dict[str, Any], out: Any) -> None:
        results = out if out.__class__ is tuple else (out,)
        if any([isinstance(t.array, Box) for t in (*inputs, *results)]):
            return  # carried out on ordinary tensors further out, where it is noted
        sources = tuple([self._slot(t) for t in inputs])
        self.steps.append((op, sources, params, len(self.values), len(results)))
        for t in results:
            self._new(t)

    def _new(self, t: Tensor) -> int:
        slot = len(self.values)
        self.values.append(t)
        self._slots[id(t)] = slot
        self._arrays.setdefault(id(t.array), slot)
        self._alive += [t, t.array]
        return slot

    def _slot(self, t: Tensor) -> int:
        if id(t) in self._slots:
            return self._slots[id(t)]
        if id(t.array) in self._arrays:  # a known tensor, detached from its history
            source = self._arrays[id(t.array)]
            slot = self._new(t)
            self.steps.append((None, lambda values: values[source].detach(), None, slot, 1))
            return slot
        return self._new(t)

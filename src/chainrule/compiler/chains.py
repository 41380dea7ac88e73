"""Elementwise calls of one size, brought next to each other and computed together.

A *chain* is some instructions after each other of which each makes one array of the same number of
elements, element by element. The compiled tape takes it block by block through all its calls
(native/chain.hpp), so that a value that nobody reads later needs no memory of its own.
"""

from __future__ import annotations

import functools
import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from chainrule.backend import native_module
from chainrule.compiler.arithmetic import EXACT
from chainrule.compiler.program import Instruction, Program, Slot, refs_in

__all__ = ["Chain", "chains_of", "in_order"]

Size = tuple[int, str]  # elements, and the letter of their type


@dataclass
class Chain:
    """The instructions from ``begin`` to before ``end``; values that only they need."""

    begin: int
    end: int
    temporaries: list[int] = field(default_factory=list)


@functools.cache
def _elementwise() -> frozenset[str]:
    """The kernels that can be parts of chains."""
    return frozenset(native_module().elementwise)  # type: ignore[union-attr]


def size_of(program: Program, step: Instruction) -> Size | None:
    """The size of a chain that an instruction can be part of; None if of no chain."""
    if step.effect != "pure" or step.update is not None:
        return None
    made = list(step.makes())
    if len(made) != 1 or program.slots[made[0]].kind != "made":
        return None
    name = EXACT.get(step.kernel, step.kernel)
    if name == "spread":
        if len(step.args) != 1:
            return None
    elif step.kwargs or name not in _elementwise():
        return None
    slots = [program.slots[i] for i in (*made, *step.reads())]
    dtype = slots[0].dtype
    if dtype.char not in "fd" or any([s.dtype != dtype for s in slots]):
        return None
    if not slots[0].is_contiguous() or not all([_fits(s, slots[0].shape) for s in slots[1:]]):
        return None
    size = slots[0].count()
    return (size, dtype.char) if size else None


def _fits(slot: Slot, shape: tuple[int, ...]) -> bool:
    """Whether a value lies in one piece, repeated along dimensions before or after it alone.

    The twin of ``chain_operand`` in native/arguments.hpp.
    """
    count, ended = 1, False
    extra = len(shape) - len(slot.shape)
    own = [*[(1, 0)] * extra, *zip(slot.shape, slot.strides, strict=True)]
    for (n, stride), wanted in zip(reversed(own), reversed(shape), strict=True):
        if n == wanted == 1:
            continue
        if n == 1 or stride == 0:
            ended = count != 1
        elif ended or stride != count * slot.dtype.itemsize:
            return False
        else:
            count *= n
    return True


def in_order(program: Program) -> list[Instruction]:
    """The instructions in an order that brings together what can be chained.

    Nothing is moved before what it needs. Whatever writes, draws or checks keeps its order; a call
    of Python's stays where it is among all others. Single numbers come as early as they can.
    """
    return list(_Ordering(program).run())


class _Ordering:
    def __init__(self, program: Program):
        self.program = program
        self.steps = program.instructions
        self.sizes = [size_of(program, step) for step in self.steps]
        self.waiting, self.followers = _dependencies(program)
        self.ready: list[int] = []
        self.numbers: list[int] = []
        self.by_size: dict[Size, list[int]] = {}
        for i, count in enumerate(self.waiting):
            if count == 0:
                self._is_ready(i)

    def _is_ready(self, i: int) -> None:
        size = self.sizes[i]
        if size is None:
            heapq.heappush(self.ready, i)
        elif size[0] == 1:
            heapq.heappush(self.numbers, i)
        else:
            heapq.heappush(self.ready, i)
            self.by_size.setdefault(size, []).append(i)

    def run(self) -> Iterator[Instruction]:
        done = [False] * len(self.steps)
        near: set[int] = set()  # roots of the values of the chain that grows
        size: Size | None = None
        while True:
            i = self._next(done, size, near)
            if i is None:
                return
            if self.sizes[i] != size or size is None:
                near, size = set(), self.sizes[i]
            step = self.steps[i]
            near.update([self.program.root(s) for s in (*step.reads(), *step.makes())])
            done[i] = True
            if size is not None and size[0] != 1:
                self.by_size[size].remove(i)
            yield step
            for j in self.followers[i]:
                self.waiting[j] -= 1
                if self.waiting[j] == 0:
                    self._is_ready(j)

    def _next(self, done: list[bool], size: Size | None, near: set[int]) -> int | None:
        """What goes on with the chain, a number, or whatever came first; None at the end."""
        if size is not None and size[0] != 1:
            related = [i for i in self.by_size.get(size, ()) if self._touches(i, near)]
            if related:
                return min(related)
        if self.numbers:
            return heapq.heappop(self.numbers)
        while self.ready:
            i = heapq.heappop(self.ready)
            if not done[i]:
                return i
        return None

    def _touches(self, i: int, near: set[int]) -> bool:
        return any([self.program.root(s) in near for s in self.steps[i].reads()])


def _dependencies(program: Program) -> tuple[list[int], list[list[int]]]:
    """How many instructions each one waits for, and which wait for it."""
    before: list[set[int]] = []
    writer: dict[int, int] = {}  # of a root, the last that changed it
    readers: dict[int, list[int]] = {}  # of a root, since then
    ordered, wall = -1, -1  # the last with an effect, and the last call of Python's
    for i, step in enumerate(program.instructions):
        needs = {wall, ordered} if step.effect != "pure" else {wall}
        read = {program.root(s) for s in step.reads()}
        written = {program.root(s) for s in step.makes()} | _written(program, step)
        needs.update([writer.get(r, -1) for r in read | written])
        for r in written:
            needs.update(readers.pop(r, ()))
            writer[r] = i
        for r in read - written:
            readers.setdefault(r, []).append(i)
        if step.effect == "python":
            needs.update(range(wall + 1, i))
            wall = i
        if step.effect != "pure":
            ordered = i
        before.append(needs - {-1, i})
    followers: list[list[int]] = [[] for _ in before]
    for i, needs in enumerate(before):
        for j in needs:
            followers[j].append(i)
    return [len(needs) for needs in before], followers


def _written(program: Program, step: Instruction) -> set[int]:
    """The roots of what an instruction changes: all that it is given, to be sure."""
    return {program.root(s) for s in step.reads()} if step.effect == "writes" else set()


def chains_of(program: Program) -> list[Chain]:
    """The chains of a program, of at least two instructions each."""
    found: list[Chain] = []
    begin, size = 0, None
    sizes: list[Any] = [size_of(program, step) for step in program.instructions]
    for i, own in enumerate([*sizes, None]):
        if own is not None and own == size:
            continue
        if size is not None and i - begin > 1:
            found.append(Chain(begin, i))
        begin, size = i, own
    _find_temporaries(program, found)
    return found


def _find_temporaries(program: Program, chains: list[Chain]) -> None:
    """What a chain makes, and nothing after it needs."""
    chain_at = {i: c for c in chains for i in range(c.begin, c.end)}
    maker: dict[int, Chain] = {}
    kept = {program.root(s) for s in refs_in(program.result)}
    kept |= {program.root(s) for _, s in program.grads}
    for i, step in enumerate(program.instructions):
        chain = chain_at.get(i)
        for root in map(program.root, step.reads()):
            if maker.get(root) is not chain:
                kept.add(root)
        for root in map(program.root, step.makes()):
            if chain is not None:
                maker[root] = chain
    for root, chain in maker.items():
        if root not in kept:
            chain.temporaries.append(root)

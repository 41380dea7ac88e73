"""How much memory a forward pass fills: at once, and until the backward pass has read it.

Memory is counted where it lies: a view adds nothing, and what several operations keep is there
once. Parameters, buffers and the inputs are counted apart, since a pass does not make them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from chainrule.graph import Box
from chainrule.inspect.core.tracing import Call, Trace
from chainrule.tensor import Tensor

__all__ = ["Memory", "arrays_of", "bytes_of", "memory_of", "owner"]


@dataclass
class Memory:
    """Bytes: of the activations that are alive at once in a forward pass (``peak``), of those that
    the graph keeps for the backward pass (``kept``), and these by the call that made them."""

    peak: int = 0
    kept: int = 0
    by_call: dict[int, int] = field(default_factory=dict)


def owner(array: Any) -> Any:
    """The array whose memory this one shows."""
    while hasattr(array.base, "nbytes") and hasattr(array.base, "base"):
        array = array.base
    return array


def bytes_of(tensors: Iterable[Any]) -> int:
    """The memory of tensors, each place counted once."""
    owners = {id(o): o.nbytes for o in (owner(a) for t in tensors for a in arrays_of(t))}
    return sum(owners.values())


def arrays_of(value: Any) -> Iterator[Any]:
    """The arrays in a tensor, a tuple of them, or what a node saved."""
    if isinstance(value, (tuple, list)):
        for part in value:
            yield from arrays_of(part)
        return
    array = value.array if isinstance(value, Tensor) else value
    if isinstance(array, Box):
        for tensor in array.held():
            yield from arrays_of(tensor)
    elif hasattr(array, "nbytes") and hasattr(array, "base"):
        yield array


def memory_of(seen: Trace) -> Memory:
    """What the pass of a trace filled. ``kept`` is known of a trace with gradients."""
    given = _given(seen)
    made: dict[int, tuple[int, Call, int]] = {}  # size, the call, the place in time
    last_use: dict[int, int] = {}
    for time, op in enumerate(seen.operations):
        for o in map(owner, arrays_of([*op.inputs, *op.outputs])):
            last_use[id(o)] = time
            if id(o) not in given and id(o) not in made:
                made[id(o)] = (o.nbytes, op.call, time)
    end = len(seen.operations)
    for o in map(owner, arrays_of(seen.root.outputs)):
        last_use[id(o)] = end
    memory = Memory(_peak(made, last_use, end))
    for key, size in _kept(seen).items():
        if key in given:
            continue
        memory.kept += size
        call = made[key][1].number if key in made else 0
        memory.by_call[call] = memory.by_call.get(call, 0) + size
    return memory


def _given(seen: Trace) -> set[int]:
    """The memory that was there before."""
    tensors = [*seen.model.parameters(), *seen.model.buffers(), *seen.root.inputs]
    return {id(owner(a)) for t in tensors for a in arrays_of(t)}


def _peak(made: dict[int, tuple[int, Call, int]], last_use: dict[int, int], end: int) -> int:
    """The most that is alive at once, if each memory is given back after its last use."""
    change = [0] * (end + 2)
    for key, (size, _, time) in made.items():
        change[time] += size
        change[last_use[key] + 1] -= size
    alive = peak = 0
    for step in change:
        alive += step
        peak = max(peak, alive)
    return peak


def _kept(seen: Trace) -> dict[int, int]:
    """The memory that the nodes of the graph hold, by its identity."""
    held: dict[int, int] = {}
    for op in seen.operations:
        if op.node is None:
            continue
        for o in map(owner, arrays_of([*(op.node.saved or ()), op.node.out])):
            held[id(o)] = o.nbytes
    return held

"""What several processes compute of their arrays, over messages.

Sums are made in the order of the ranks, by one process for each element, so they are the same bits
in all processes and in every run; numbers of 16 bits are summed in float32 and rounded once.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce as fold
from typing import Any, TypeAlias

import numpy as np

from chainrule.backend.processes.mail import Message
from chainrule.backend.processes.messages import DistBackendError, DistError
from chainrule.backend.processes.world import World, world

__all__ = ["REDUCTIONS", "Call", "Members", "call", "collective", "from_first"]

Array: TypeAlias = "np.ndarray[Any, Any]"
LARGE = 2**15  # bytes from which each process sums a part
REDUCTIONS: dict[str, Callable[..., Any]] = {
    "sum": np.add,
    "avg": np.add,
    "product": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
    "band": np.bitwise_and,
    "bor": np.bitwise_or,
    "bxor": np.bitwise_xor,
}


@dataclass
class Members:
    """The processes of a group, and how many calls they have made together."""

    name: str
    ranks: tuple[int, ...]
    calls: int = field(default=0, compare=False)


@dataclass
class Call:
    """One call that all members of a group make."""

    name: str
    world: World
    ranks: tuple[int, ...]
    key: str
    wait: float

    def __post_init__(self) -> None:
        self.me = self.ranks.index(self.world.rank)
        self.end = time.monotonic() + self.wait

    def send(self, to: int, array: Array) -> None:
        """An array for the member with this number."""
        data = np.ascontiguousarray(array)
        head = {"name": self.name, "dtype": data.dtype.name, "shape": array.shape}
        body: Any = data.reshape(-1).view(np.uint8)
        self.world.mailbox.send(self.ranks[to], self.key, head, memoryview(body))

    def take(self, source: int, like: Array | None = None) -> Array:
        """The array of the member with this number, which looks like the own one."""
        message = self.world.mailbox.receive(
            [self.ranks[source]], self.key, self.name, self.end, self.wait
        )
        return self.opened(message, like)

    def opened(self, message: Message, like: Array | None) -> Array:
        """The array in a message."""
        head, (theirs, shape) = message.head, (message.head["dtype"], tuple(message.head["shape"]))
        if head["name"] != self.name:
            raise DistBackendError(
                f"{self.name}: process {message.source} called {head['name']} where process "
                f"{self.world.rank} called {self.name}; all make the same calls in the same order"
            )
        if like is not None and (theirs != like.dtype.name or shape != like.shape):
            raise DistBackendError(
                f"{self.name}: process {message.source} has {theirs}{list(shape)}, process "
                f"{self.world.rank} {like.dtype.name}{list(like.shape)}; all need tensors of one "
                "dtype and shape"
            )
        dtype = np.dtype(theirs) if like is None else like.dtype
        return np.frombuffer(message.body, dtype).reshape(shape)

    def others(self) -> list[int]:
        """The other members, each process beginning with another one."""
        n = len(self.ranks)
        return [(self.me + i) % n for i in range(1, n)]

    def exchange(self, outgoing: Sequence[Array], incoming: Sequence[Array | None]) -> list[Array]:
        """A part for each member, and one of each; ``incoming`` is what they look like."""
        for to in self.others():
            self.send(to, outgoing[to])
        taken = [
            np.array(outgoing[i]) if i == self.me else self.take(i, like)
            for i, like in enumerate(incoming)
        ]
        pairs = zip(taken, incoming, strict=True)
        return [t if like is None else _same(self.name, t, like) for t, like in pairs]

    def same(self, array: Array) -> list[Array]:
        """The arrays of all members."""
        return self.exchange([array] * len(self.ranks), [array] * len(self.ranks))


def _same(name: str, own: Array, like: Array) -> Array:
    if own.shape != like.shape or own.dtype != like.dtype:
        raise DistBackendError(
            f"{name}: the tensor for this process itself is {own.dtype.name}{list(own.shape)}, and "
            f"is to be written into {like.dtype.name}{list(like.shape)}"
        )
    return own


# --- reductions -----------------------------------------------------------------------------------


def check_reduction(name: str, op: str, array: Array) -> None:
    """Refuses what has no meaning for a dtype."""
    kind = "f" if array.dtype.name == "bfloat16" else array.dtype.kind
    wrong = (op == "avg" and kind not in "fc") or (op in ("min", "max") and kind == "c")
    if wrong or (op in ("band", "bor", "bxor") and kind not in "biu"):
        raise DistError(f"{name}: ReduceOp.{op.upper()} is not defined for {array.dtype.name}")


def reduced(op: str, arrays: Sequence[Array]) -> Array:
    """One array of those of all members, in the order of their ranks."""
    dtype = arrays[0].dtype
    wide = np.dtype("float32") if dtype.itemsize == 2 and dtype.kind not in "iu" else dtype
    total = fold(REDUCTIONS[op], [a.astype(wide, copy=False) for a in arrays])
    if op == "avg":
        total = total / wide.type(len(arrays))
    return np.asarray(total).astype(dtype)  # a copy: of one array alone it would be that itself


def all_reduce(call: Call, array: Array, op: str) -> Array:
    """The sum, or another reduction, of the arrays of all."""
    check_reduction(call.name, op, array)
    n = len(call.ranks)
    if array.nbytes < LARGE or n == 1:
        return reduced(op, call.same(array))
    cuts = [array.size * i // n for i in range(n + 1)]
    parts = [array.reshape(-1)[a:b] for a, b in itertools.pairwise(cuts)]
    own = reduced(op, call.exchange(parts, [parts[call.me]] * n))
    return np.concatenate(call.exchange([own] * n, parts)).reshape(array.shape)


def reduce(call: Call, array: Array, op: str, to: int) -> Array | None:
    """The reduction, for one member."""
    check_reduction(call.name, op, array)
    arrays = gather(call, array, to)
    return None if arrays is None else reduced(op, arrays)


def reduce_scatter(call: Call, arrays: Sequence[Array], like: Array, op: str) -> Array:
    """The reduction of the arrays that all have for this member."""
    check_reduction(call.name, op, like)
    return reduced(op, call.exchange(arrays, [like] * len(arrays)))


# --- arrays as they are ---------------------------------------------------------------------------


def broadcast(call: Call, array: Array, source: int) -> Array:
    """The array of one member, for all: passed on along a tree."""
    return _along_tree(call, array, source, array)


def _along_tree(call: Call, array: Array, source: int, like: Array | None) -> Array:
    n = len(call.ranks)
    place, step = (call.me - source) % n, 1
    while step < n and not place & step:
        step *= 2
    if place:
        array = call.take((place - step + source) % n, like)
    step //= 2
    while step:
        if place + step < n:
            call.send((place + step + source) % n, array)
        step //= 2
    return array


def all_gather(call: Call, array: Array) -> list[Array]:
    """The arrays of all."""
    return call.same(array)


def gather(call: Call, array: Array, to: int) -> list[Array] | None:
    """The arrays of all, for one member."""
    if call.me != to:
        call.send(to, array)
        return None
    n = range(len(call.ranks))
    return [np.array(array) if i == to else call.take(i, array) for i in n]


def scatter(call: Call, arrays: Sequence[Array] | None, like: Array, source: int) -> Array:
    """The array that one member has for this one."""
    if arrays is None or call.me != source:
        return call.take(source, like)
    for to in call.others():
        call.send(to, arrays[to])
    return _same(call.name, np.array(arrays[source]), like)


def all_to_all(call: Call, arrays: Sequence[Array], likes: Sequence[Array]) -> list[Array]:
    """The arrays that all members have for this one."""
    return call.exchange(arrays, likes)


def barrier(call: Call) -> None:
    """Returns when all have come: each waits for those behind it in the tree, then for the word."""
    n, nothing, step = len(call.ranks), np.zeros(0, np.uint8), 1
    while step < n:
        if call.me & step:
            call.send(call.me - step, nothing)
            break
        if call.me + step < n:
            call.take(call.me + step)
        step *= 2
    _along_tree(call, nothing, 0, None)


def monitored_barrier(call: Call, wait_all: bool) -> None:
    """A barrier at which the first member says who is missing."""
    nothing = np.zeros(0, np.uint8)
    if call.me:
        call.send(0, nothing)
        call.take(0)
        return
    missing = []
    for i in call.others():
        try:
            call.take(i)
        except DistBackendError:
            missing.append(str(call.ranks[i]))
            if not wait_all:
                break
    if missing:
        raise DistBackendError(
            f"{call.name}: process {', '.join(missing)} has not come to it within {call.wait:.6g} s"
        )
    for i in call.others():
        call.send(i, nothing)


# --- bytes of any length --------------------------------------------------------------------------


def as_bytes(data: bytes) -> Array:
    """Bytes as an array."""
    return np.frombuffer(data, np.uint8)


def broadcast_bytes(call: Call, data: bytes, source: int) -> bytes:
    """The bytes of one member, for all."""
    return _along_tree(call, as_bytes(data), source, None).tobytes()


def all_gather_bytes(call: Call, data: bytes) -> list[bytes]:
    """The bytes of all."""
    n = len(call.ranks)
    return [a.tobytes() for a in call.exchange([as_bytes(data)] * n, [None] * n)]


def gather_bytes(call: Call, data: bytes, to: int) -> list[bytes] | None:
    """The bytes of all, for one member."""
    if call.me != to:
        call.send(to, as_bytes(data))
        return None
    n = range(len(call.ranks))
    return [data if i == to else call.take(i).tobytes() for i in n]


def scatter_bytes(call: Call, parts: Sequence[bytes] | None, source: int) -> bytes:
    """The bytes that one member has for this one."""
    if parts is None or call.me != source:
        return call.take(source).tobytes()
    for to in call.others():
        call.send(to, as_bytes(parts[to]))
    return parts[source]


# --- from one to another --------------------------------------------------------------------------


def send(call: Call, array: Array, to: int) -> None:
    """Sends an array; does not wait until it is taken."""
    call.send(to, array)


def receive(call: Call, like: Array | None, sources: Sequence[int]) -> tuple[int, Array]:
    """The next array from one of these members, and whose it is."""
    ranks = [call.ranks[s] for s in sources]
    message = call.world.mailbox.receive(ranks, call.key, call.name, call.end, call.wait)
    return call.ranks.index(message.source), call.opened(message, like)


def send_bytes(call: Call, data: bytes, to: int) -> None:
    """Sends bytes; does not wait until they are taken."""
    call.send(to, as_bytes(data))


def receive_bytes(call: Call, sources: Sequence[int]) -> tuple[int, bytes]:
    """The next bytes from one of these members, and whose they are."""
    source, data = receive(call, None, sources)
    return source, data.tobytes()


# --- the entry ------------------------------------------------------------------------------------

COLLECTIVES: Mapping[str, Callable[..., Any]] = {
    f.__name__: f
    for f in (
        all_gather,
        all_gather_bytes,
        all_reduce,
        all_to_all,
        barrier,
        broadcast,
        broadcast_bytes,
        gather,
        gather_bytes,
        monitored_barrier,
        receive,
        receive_bytes,
        reduce,
        reduce_scatter,
        scatter,
        scatter_bytes,
        send,
        send_bytes,
    )
}


def call(name: str, members: Members, tag: int | None = None, wait: float | None = None) -> Call:
    """The next call of a group; with a tag, messages from one member to another."""
    ours = world()
    if ours is None:
        raise ValueError(f"{name}: the process group was destroyed")
    if tag is None:
        members.calls += 1
        key = f"{members.name}/{members.calls}"
    else:
        key = f"{members.name}/tag {tag}"
    return Call(name, ours, members.ranks, key, ours.timeout if wait is None else wait)


def collective(call: Call, kind: str, *args: Any) -> Any:
    """Runs one of ``COLLECTIVES`` on raw arrays: the one place that all of them go through."""
    return COLLECTIVES[kind](call, *args)


_EVERYBODY: dict[int, Members] = {}


def from_first(a: Array) -> Array:
    """The array of process 0, in all processes: a call that all of them make."""
    ours = world()
    if ours is None or ours.size == 1:
        return a
    members = _EVERYBODY.setdefault(id(ours), Members("from first", tuple(range(ours.size))))
    return broadcast(call("from_first", members), a, 0)

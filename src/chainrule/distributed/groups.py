"""Which processes there are, and groups of them."""

from __future__ import annotations

import enum
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any, ClassVar

from chainrule.backend import processes
from chainrule.backend.processes import Members, World

__all__ = [
    "Backend",
    "GroupMember",
    "ProcessGroup",
    "ReduceOp",
    "default_pg_timeout",
    "get_backend",
    "get_global_rank",
    "get_group_rank",
    "get_node_local_rank",
    "get_pg_count",
    "get_process_group_ranks",
    "get_rank",
    "get_world_size",
    "group",
    "is_available",
    "is_backend_available",
    "is_gloo_available",
    "is_initialized",
    "is_mpi_available",
    "is_nccl_available",
    "is_torchelastic_launched",
    "is_ucc_available",
    "is_writer",
    "is_xccl_available",
    "reduce_op",
]

default_pg_timeout = timedelta(minutes=30)
NO_GROUP = (
    "Default process group has not been initialized: call init_process_group first, in a program "
    "that was started by `chainrule launch --processes 2 script.py`"
)


class ReduceOp(enum.Enum):
    """How tensors of several processes are made one."""

    SUM = "sum"
    AVG = "avg"
    PRODUCT = "product"
    MIN = "min"
    MAX = "max"
    BAND = "band"
    BOR = "bor"
    BXOR = "bxor"


reduce_op = ReduceOp


class Backend:
    """The names of ways in which processes exchange tensors."""

    GLOO = "gloo"
    MPI = "mpi"
    NCCL = "nccl"
    UCC = "ucc"
    UNDEFINED = "undefined"


class ProcessGroup:
    """Processes that compute together: made by ``init_process_group`` and ``new_group``."""

    def __init__(self, name: str, ranks: tuple[int, ...], timeout: float):
        self.members = Members(name, ranks)
        self.timeout = timeout

    def rank(self) -> int:
        """The number of this process in the group."""
        return self.members.ranks.index(processes.rank())

    def size(self) -> int:
        """How many processes are in the group."""
        return len(self.members.ranks)

    def name(self) -> str:
        """How its processes exchange tensors."""
        return get_backend()

    def __repr__(self) -> str:
        return f"ProcessGroup({list(self.members.ranks)})"


class _World:
    """The group of all processes and the groups that were made of them."""

    group: ProcessGroup | None = None
    others: ClassVar[list[ProcessGroup]] = []
    made: ClassVar[Counter[tuple[int, ...]]] = Counter()

    @classmethod
    def begin(cls, world: World) -> None:
        cls.group = ProcessGroup("world", tuple(range(world.size)), world.timeout)

    @classmethod
    def end(cls) -> None:
        cls.group = None
        cls.others.clear()
        cls.made.clear()


class _OfGroups(type):
    @property
    def WORLD(cls) -> ProcessGroup | None:
        """The group of all processes, None where there is none."""
        return _World.group if processes.world() is not None else None


class GroupMember(metaclass=_OfGroups):
    """``GroupMember.WORLD`` is the group of all; ``NON_GROUP_MEMBER`` stands for others' groups."""

    NON_GROUP_MEMBER: ClassVar[Any] = -100


group = GroupMember


def member(op: str, given: ProcessGroup | None) -> ProcessGroup:
    """The group that is meant, of which this process must be a member."""
    everybody = group.WORLD
    if everybody is None:
        raise ValueError(f"{op}: {NO_GROUP}")
    if given is None:
        return everybody
    if given is GroupMember.NON_GROUP_MEMBER or not isinstance(given, ProcessGroup):
        raise ValueError(
            f"{op}: process {processes.rank()} is not in this group ({given!r}); only its members "
            "call it"
        )
    if given is not everybody and given not in _World.others:
        raise ValueError(f"{op}: {given!r} was destroyed")
    return given


def place_of(
    op: str, group: ProcessGroup, rank: int | None, group_rank: int | None, names: str
) -> int:
    """The number in the group of the process that is meant by ``src`` or ``group_src``."""
    if (rank is None) == (group_rank is None):
        raise ValueError(f"{op}: give one of {names} and group_{names}, got {rank}, {group_rank}")
    if group_rank is not None:
        if not 0 <= group_rank < group.size():
            raise ValueError(
                f"{op}: group_{names} is to be from 0 to {group.size() - 1}, got {group_rank}"
            )
        return group_rank
    if rank not in group.members.ranks:
        raise ValueError(f"{op}: {names}={rank} is not one of {_numbers(group.members.ranks)}")
    return group.members.ranks.index(rank)


def _numbers(ranks: Sequence[int]) -> str:
    return ", ".join(map(str, ranks[:8])) + (", ..." if len(ranks) > 8 else "")


# --- what can be asked ----------------------------------------------------------------------------


def is_available() -> bool:
    """Whether processes can compute together: whether JAX is installed (``chainrule[xla]``)."""
    return processes.is_installed()


def is_initialized() -> bool:
    """Whether this process is one of several that compute together."""
    return processes.world() is not None


def is_writer() -> bool:
    """Whether this process writes what all processes have: files, reports, lines about progress.

    One of all processes does, the one of rank 0; where there is only one, it does.
    """
    return processes.is_writer()


def _foreign(group: object) -> bool:
    return group is GroupMember.NON_GROUP_MEMBER


def get_rank(group: ProcessGroup | None = None) -> int:
    """The number of this process in the group, -1 if it is in another; 0 where it is alone."""
    if group is None:
        return processes.rank()
    return -1 if _foreign(group) else member("get_rank", group).rank()


def get_world_size(group: ProcessGroup | None = None) -> int:
    """How many processes are in the group, -1 if it is another's; 1 where this one is alone."""
    if group is None:
        return processes.size()
    return -1 if _foreign(group) else member("get_world_size", group).size()


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """The number of this process among those of its machine (LOCAL_RANK)."""
    text = os.environ.get("LOCAL_RANK")
    if text is not None:
        return int(text)
    if fallback_rank is not None:
        return int(fallback_rank)
    raise RuntimeError(
        "get_node_local_rank: LOCAL_RANK is not set; start the program by `chainrule launch`, or "
        "give a fallback_rank"
    )


def get_backend(group: ProcessGroup | None = None) -> str:
    """How processes exchange tensors: "nccl" between GPUs, "gloo" between CPUs."""
    member("get_backend", group)
    world = processes.world()
    return Backend.UNDEFINED if world is None else world.backend


def get_process_group_ranks(group: ProcessGroup | None) -> list[int]:
    """The ranks of the members among all processes."""
    return list(member("get_process_group_ranks", group).members.ranks)


def get_global_rank(group: ProcessGroup, group_rank: int) -> int:
    """The rank among all processes of a member of the group."""
    ours = member("get_global_rank", group)
    return ours.members.ranks[place_of("get_global_rank", ours, None, group_rank, "rank")]


def get_group_rank(group: ProcessGroup, global_rank: int) -> int:
    """The number in the group of a process."""
    return place_of("get_group_rank", member("get_group_rank", group), global_rank, None, "rank")


def get_pg_count() -> int:
    """How many groups there are."""
    return 0 if group.WORLD is None else 1 + len(_World.others)


def is_torchelastic_launched() -> bool:
    """Whether this process was started by ``torchrun`` or by ``chainrule launch``."""
    return "TORCHELASTIC_RUN_ID" in os.environ


def is_backend_available(backend: str) -> bool:
    """Whether processes can exchange tensors in this way."""
    known = {"gloo": is_gloo_available, "nccl": is_nccl_available}
    return backend.lower() in known and known[backend.lower()]()


def is_gloo_available() -> bool:
    """Whether processes can exchange tensors between CPUs: with JAX."""
    return is_available()


def is_nccl_available() -> bool:
    """Whether JAX is installed with what it needs for GPUs of NVIDIA, which have NCCL."""
    return processes.is_installed("cuda")


def is_mpi_available() -> bool:
    """Whether processes can exchange tensors through MPI: never here."""
    return False


def is_ucc_available() -> bool:
    """Whether processes can exchange tensors through UCC: never here."""
    return False


def is_xccl_available() -> bool:
    """Whether GPUs can exchange tensors through XCCL: never here."""
    return False


def groups() -> Iterator[ProcessGroup]:
    """All groups of this process but that of all processes."""
    yield from _World.others


def begin(world: World) -> None:
    """Makes the group of all processes."""
    _World.begin(world)


def end(which: ProcessGroup | None = None) -> None:
    """Forgets one group, or all."""
    if which is None:
        _World.end()
    else:
        _World.others.remove(which)


def made_of(ranks: tuple[int, ...], timeout: float) -> ProcessGroup:
    """A group of these processes, of which this is one; members name it alike."""
    _World.made[ranks] += 1
    made = ProcessGroup(f"{','.join(map(str, ranks))}#{_World.made[ranks]}", ranks, timeout)
    _World.others.append(made)
    return made

"""``init_process_group``: from the variables of ``chainrule launch`` or torchrun to a group."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

from chainrule.placement import device
from chainrule.backend import processes, threads
from chainrule.distributed import groups
from chainrule.distributed.collectives import barrier
from chainrule.distributed.groups import GroupMember, ProcessGroup, default_pg_timeout, member

__all__ = [
    "destroy_process_group",
    "init_process_group",
    "new_group",
    "new_subgroups",
    "new_subgroups_by_enumeration",
]

OP = "init_process_group"
BACKENDS = ("gloo", "nccl")
TO_COME = 300.0  # seconds that processes wait for each other at the start
HOW = (
    "start the program by `chainrule launch --processes 2 script.py`, or set RANK, WORLD_SIZE, "
    "MASTER_ADDR and MASTER_PORT for each process"
)


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: timedelta | None = None,
    world_size: int = -1,
    rank: int = -1,
    store: Any = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: Any = None,
) -> None:
    """Makes this process one of several that compute together, and waits for the others.

    What is not given is read from the environment: RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT and
    LOCAL_RANK, which ``chainrule launch`` and torchrun set. It comes before anything is computed on
    a device. Each process of a machine with several GPUs gets the one of its LOCAL_RANK; those of
    one machine share its processors, unless ``set_num_threads`` was called before.

    Args:
        backend: ``"gloo"``, ``"nccl"``, or both as ``"cpu:gloo,cuda:nccl"``. Tensors on the CPU go
            over sockets, those on devices the way of JAX (gloo, NCCL); ``"nccl"`` insists on GPUs.
        init_method: ``"env://"``, or ``"tcp://host:port"`` with the address of process 0.
        timeout: how long processes wait for each other (by default 5 minutes at the start, then
            30 minutes for each message).
        world_size: how many processes there are.
        rank: the number of this one, from 0 on.
        store: must be None; processes find each other by address.
        group_name: must be empty, for there is one group of all processes.
        pg_options: must be None.
        device_id: the GPU of this process, as a number or a device.
    """
    if groups.is_initialized():
        raise ValueError(
            f"{OP}: trying to initialize the default process group twice! Call "
            "destroy_process_group first"
        )
    processes.check_installed()
    _refuse(store=store, group_name=group_name or None, pg_options=pg_options)
    _check_backend(backend)
    host, port, rank, size = _place(init_method, rank, world_size)
    local = _variable("LOCAL_RANK", 0)
    start = float(os.environ.get("CHAINRULE_START_TIMEOUT", TO_COME))
    waits = (
        (start, default_pg_timeout.total_seconds()) if timeout is None else (_seconds(timeout),) * 2
    )
    world = processes.start(host, port, rank, size, local, _devices(device_id), waits)
    groups.begin(world)
    threads.share_among(_variable("LOCAL_WORLD_SIZE", 1))
    if backend is not None and "nccl" in backend.lower() and world.backend != "nccl":
        destroy_process_group()
        raise RuntimeError(
            f"{OP}: backend={backend!r} needs GPUs, and JAX sees none; use 'gloo' or None, or "
            "install JAX for GPUs: pip install 'jax[cuda13]'"
        )


def _refuse(**given: Any) -> None:
    for name, value in given.items():
        if value is not None:
            raise NotImplementedError(
                f"{OP}: {name}={value!r} is not supported: processes find each other by "
                "MASTER_ADDR and MASTER_PORT, and there is one group of all"
            )


def _check_backend(backend: str | None) -> None:
    if backend is None:
        return
    if not isinstance(backend, str):
        raise TypeError(f"{OP}: backend is to be a string like 'gloo', got {backend!r}")
    for part in backend.lower().split(","):
        place, _, name = part.rpartition(":")
        if name not in BACKENDS or place not in ("", "cpu", "cuda"):
            raise ValueError(
                f"{OP}: backend={backend!r} is not one of 'gloo' (CPUs) and 'nccl' (GPUs)"
            )


def _seconds(timeout: Any) -> float:
    if not isinstance(timeout, timedelta):
        raise TypeError(
            f"{OP}: expected timeout argument to be of type datetime.timedelta, got {timeout!r}"
        )
    if timeout <= timedelta(0):
        raise ValueError(f"{OP}: timeout={timeout} is over before it begins")
    return timeout.total_seconds()


def _place(init_method: str | None, rank: int, size: int) -> tuple[str, int, int, int]:
    """Address and port of process 0, the number of this process, and how many there are."""
    url = urlsplit(init_method or "env://")
    if url.scheme == "tcp":
        try:
            host, port = url.hostname, url.port
        except ValueError:
            host = port = None
        if host is None or port is None:
            raise ValueError(f"{OP}: init_method={init_method!r} is not like 'tcp://host:port'")
        asked = parse_qs(url.query)
        given: Mapping[str, str] = {
            "RANK": asked.get("rank", [""])[0],
            "WORLD_SIZE": asked.get("world_size", [""])[0],
        }
        names = {n: v for n, v in given.items() if v}
        rank, size = _numbers(names, rank, size, f"{OP}: init_method={init_method!r} needs")
        return host, port, rank, size
    if url.scheme != "env" or url.netloc:
        raise ValueError(
            f"{OP}: init_method={init_method!r} is not 'env://' or 'tcp://host:port'; there is no "
            "meeting by files"
        )
    names = {n: os.environ[n] for n in ("RANK", "WORLD_SIZE") if n in os.environ}
    missing = [n for n in ("MASTER_ADDR", "MASTER_PORT") if not os.environ.get(n)]
    if missing:
        lack = [n for n, v in (("RANK", rank), ("WORLD_SIZE", size)) if v < 0 and n not in names]
        raise ValueError(
            f"{OP}: environment variable {', '.join(lack + missing)} expected, but not set: {HOW}"
        )
    rank, size = _numbers(names, rank, size, f"{OP}: environment variable")
    port = _number("MASTER_PORT", os.environ["MASTER_PORT"])
    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
        port += 1  # on MASTER_PORT itself torchrun listens
    if not 0 < port < 2**16:
        raise ValueError(f"{OP}: MASTER_PORT={port} is not from 1 to 65535")
    return os.environ["MASTER_ADDR"], port, rank, size


def _numbers(names: Mapping[str, str], rank: int, size: int, what: str) -> tuple[int, int]:
    """Rank and size, from the arguments or else from these names."""
    missing = [n for n, v in (("RANK", rank), ("WORLD_SIZE", size)) if v < 0 and n not in names]
    if missing:
        raise ValueError(f"{what} {', '.join(missing)} expected, but not set: {HOW}")
    size = _number("WORLD_SIZE", names["WORLD_SIZE"]) if size < 0 else size
    rank = _number("RANK", names["RANK"]) if rank < 0 else rank
    if size < 1:
        raise ValueError(f"{OP}: world_size={size}: there is at least one process")
    if not 0 <= rank < size:
        raise ValueError(
            f"{OP}: rank={rank} is outside the world: with WORLD_SIZE={size} ranks are 0 to "
            f"{size - 1}"
        )
    return rank, size


def _number(name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{OP}: {name}={text!r} is not a whole number") from None


def _variable(name: str, default: int) -> int:
    return _number(name, os.environ.get(name, str(default)))


def _devices(device_id: Any) -> list[int] | None:
    """The GPU of this process among those of its machine; None: all that it sees."""
    if device_id is not None:
        number = device_id if isinstance(device_id, int) else device(device_id).index
        if number is None:
            raise ValueError(f"{OP}: device_id={device_id!r} has no number, like 'cuda:0'")
        return [number]
    local = _variable("LOCAL_RANK", 0)
    together = _variable("LOCAL_WORLD_SIZE", local + 1)
    if together == 1:
        return None  # one process on this machine computes on all of its GPUs
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    seen = None if visible is None else [d for d in visible.split(",") if d.strip()]
    if seen is None:
        return [local]
    if len(seen) <= 1:
        return None  # whoever started the processes has given each its own, or none
    if local >= len(seen):
        raise ValueError(
            f"{OP}: LOCAL_RANK={local}, but CUDA_VISIBLE_DEVICES={visible} has {len(seen)} GPUs: "
            "start as many processes on a machine as it has GPUs"
        )
    return [local]


# --- groups ---------------------------------------------------------------------------------------


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """Parts from the other processes once all of them have called this, or forgets one group.

    It is called by itself at the end of a program.
    """
    ours = member("destroy_process_group", group)
    if ours is GroupMember.WORLD:
        groups.end()
        processes.stop()
    else:
        groups.end(ours)


def new_group(
    ranks: Sequence[int] | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
    device_id: Any = None,
) -> ProcessGroup | Any:
    """A group of some processes; all processes call this, those outside get ``NON_GROUP_MEMBER``.

    With ``use_local_synchronization`` its members alone need to.
    """
    op = "new_group"
    everybody = member(op, None)
    _refuse(pg_options=pg_options, device_id=device_id)
    _check_backend(backend)
    if backend is not None and backend.lower() != groups.get_backend():
        raise ValueError(f"{op}: backend={backend!r}: all groups have {groups.get_backend()!r}")
    chosen = everybody.members.ranks if ranks is None else tuple(sorted(ranks))
    wrong = [r for r in chosen if r not in everybody.members.ranks]
    if wrong or len(set(chosen)) < len(chosen) or not chosen:
        raise ValueError(
            f"{op}: ranks={list(chosen)} are to be different numbers from 0 to "
            f"{everybody.size() - 1}"
        )
    inside = processes.rank() in chosen
    wait = everybody.timeout if timeout is None else _seconds(timeout)
    made = groups.made_of(chosen, wait) if inside else GroupMember.NON_GROUP_MEMBER
    if not use_local_synchronization:
        barrier()
    elif inside:
        barrier(made)
    return made


def new_subgroups(
    group_size: int | None = None,
    group: ProcessGroup | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[ProcessGroup | Any, list[Any]]:
    """Groups of so many processes, one after the other: that of this process, and all."""
    op = "new_subgroups"
    ranks = member(op, group).members.ranks
    size = _variable("LOCAL_WORLD_SIZE", 1) if group_size is None else group_size
    if size < 1 or len(ranks) % size:
        raise ValueError(f"{op}: {len(ranks)} processes cannot be groups of {size}")
    parts = [list(ranks[i : i + size]) for i in range(0, len(ranks), size)]
    return new_subgroups_by_enumeration(parts, timeout, backend, pg_options, group_desc)


def new_subgroups_by_enumeration(
    ranks_per_subgroup_list: Sequence[Sequence[int]],
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[ProcessGroup | Any, list[Any]]:
    """Groups of these processes, of which none is in two: that of this process, and all."""
    op = "new_subgroups_by_enumeration"
    flat = [r for part in ranks_per_subgroup_list for r in part]
    if len(set(flat)) < len(flat):
        raise ValueError(f"{op}: a rank is in two groups of {list(ranks_per_subgroup_list)}")
    made = [new_group(part, timeout, backend, pg_options) for part in ranks_per_subgroup_list]
    own = next((g for g in made if isinstance(g, ProcessGroup)), None)
    return own, made

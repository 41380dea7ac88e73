"""Python objects that go to other processes, as pickles.

Pickles can run code when they are read. These come from processes of the same program, over
connections that only who knows the secret of this start can open; send nothing by them that a
stranger gave you as a pickle.
"""

from __future__ import annotations

import pickle
from typing import Any

from chainrule.backend import processes
from chainrule.distributed.groups import ProcessGroup, member, place_of

__all__ = [
    "all_gather_object",
    "broadcast_object_list",
    "gather_object",
    "recv_object_list",
    "scatter_object_list",
    "send_object_list",
]


def _call(op: str, ours: ProcessGroup, tag: int | None = None) -> processes.Call:
    return processes.call(op, ours.members, tag, ours.timeout)


def _check_device(op: str, device: Any) -> None:
    if device is not None and str(device) != "cpu":
        raise ValueError(f"{op}: device={device!r}: objects travel over the CPU; leave it out")


def all_gather_object(object_list: list[Any], obj: Any, group: ProcessGroup | None = None) -> None:
    """``object_list`` becomes the objects of all processes. They travel as pickles."""
    name = "all_gather_object"
    ours = member(name, group)
    _check_length(name, "object_list", object_list, ours.size())
    found = processes.collective(_call(name, ours), "all_gather_bytes", pickle.dumps(obj))
    object_list[:] = [pickle.loads(f) for f in found]


def _check_length(op: str, name: str, given: Any, count: int) -> None:
    if not isinstance(given, list) or len(given) != count:
        got = f"{len(given)} places" if isinstance(given, list) else type(given).__name__
        raise ValueError(
            f"{op}: {name} is to be a list with {count} places, one for each process, got {got}"
        )


def broadcast_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: ProcessGroup | None = None,
    device: Any = None,
    group_src: int | None = None,
) -> None:
    """``object_list`` becomes that of process ``src`` (by default 0). They travel as pickles."""
    name = "broadcast_object_list"
    _check_device(name, device)
    ours = member(name, group)
    source = place_of(name, ours, src, group_src if src is not None else group_src or 0, "src")
    is_source = ours.rank() == source
    data = pickle.dumps(object_list) if is_source else b""
    found = processes.collective(_call(name, ours), "broadcast_bytes", data, source)
    if not is_source:
        _fill(name, object_list, pickle.loads(found))


def _fill(op: str, object_list: list[Any], found: list[Any]) -> None:
    if len(object_list) != len(found):
        raise ValueError(
            f"{op}: object_list has {len(object_list)} places for {len(found)} objects"
        )
    object_list[:] = found


def gather_object(
    obj: Any,
    object_gather_list: list[Any] | None = None,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    group_dst: int | None = None,
) -> None:
    """``object_gather_list`` of process ``dst`` (by default 0) becomes the objects of all.

    They travel as pickles.
    """
    name = "gather_object"
    ours = member(name, group)
    to = place_of(name, ours, dst, group_dst if dst is not None else group_dst or 0, "dst")
    if ours.rank() == to:
        _check_length(name, "object_gather_list", object_gather_list, ours.size())
    elif object_gather_list:
        raise ValueError(f"{name}: object_gather_list is for process dst alone")
    found = processes.collective(_call(name, ours), "gather_bytes", pickle.dumps(obj), to)
    if found is not None and object_gather_list is not None:
        object_gather_list[:] = [pickle.loads(f) for f in found]


def scatter_object_list(
    scatter_object_output_list: list[Any],
    scatter_object_input_list: list[Any] | None = None,
    src: int | None = None,
    group: ProcessGroup | None = None,
    group_src: int | None = None,
) -> None:
    """``scatter_object_output_list[0]`` becomes what process ``src`` has for this process.

    The objects travel as pickles.
    """
    name = "scatter_object_list"
    ours = member(name, group)
    source = place_of(name, ours, src, group_src if src is not None else group_src or 0, "src")
    if not isinstance(scatter_object_output_list, list) or not scatter_object_output_list:
        raise ValueError(f"{name}: scatter_object_output_list is to be a list with one place")
    parts = None
    if ours.rank() == source:
        given: Any = scatter_object_input_list
        _check_length(name, "scatter_object_input_list", given, ours.size())
        parts = [pickle.dumps(o) for o in given]
    found = processes.collective(_call(name, ours), "scatter_bytes", parts, source)
    scatter_object_output_list[0] = pickle.loads(found)


TAG = -1  # beside the tags of tensors, which are not negative


def send_object_list(
    object_list: list[Any],
    dst: int | None = None,
    group: ProcessGroup | None = None,
    device: Any = None,
    group_dst: int | None = None,
    use_batch: bool = False,
) -> None:
    """Sends objects to a process, as pickles. With and without ``use_batch`` it is one message."""
    name = "send_object_list"
    _check_device(name, device)
    ours = member(name, group)
    to = place_of(name, ours, dst, group_dst, "dst")
    if to == ours.rank():
        raise ValueError(f"{name}: process {dst} is this one; nothing is sent to oneself")
    processes.collective(_call(name, ours, TAG), "send_bytes", pickle.dumps(object_list), to)


def recv_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: ProcessGroup | None = None,
    device: Any = None,
    group_src: int | None = None,
    use_batch: bool = False,
) -> int:
    """Receives objects from a process (by default from any) as pickles; returns from which.

    With and without ``use_batch`` they are one message.
    """
    name = "recv_object_list"
    _check_device(name, device)
    ours = member(name, group)
    sources = [i for i in range(ours.size()) if i != ours.rank()]
    if src is not None or group_src is not None:
        sources = [place_of(name, ours, src, group_src, "src")]
    call = _call("send_object_list", ours, TAG)
    place, data = processes.collective(call, "receive_bytes", sources)
    _fill(name, object_list, pickle.loads(data))
    return ours.members.ranks[place]

"""Tensors that go from one process to another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from chainrule.autograd.modes import no_grad
from chainrule.backend import processes
from chainrule.distributed.groups import ProcessGroup, member, place_of
from chainrule.distributed.work import Source, Work, call_of, checked, finish, nothing
from chainrule.ops.index.assignment import copy_
from chainrule.tensor import Tensor, of_array

__all__ = ["P2POp", "batch_isend_irecv", "irecv", "isend", "recv", "send"]


def isend(
    tensor: Tensor,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> Work | None:
    """Sends a tensor to a process without waiting for it."""
    return _send("isend", tensor, dst, group, tag, group_dst, True)


def send(
    tensor: Tensor,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> None:
    """Sends a tensor to a process; returns when it is on its way."""
    _send("send", tensor, dst, group, tag, group_dst, False)


def _send(
    name: str,
    tensor: Tensor,
    dst: int | None,
    group: ProcessGroup | None,
    tag: int,
    group_dst: int | None,
    later: bool,
) -> Work | None:
    ours = member(name, group)
    to = place_of(name, ours, dst, group_dst, "dst")
    if to == ours.rank():
        raise ValueError(f"{name}: process {dst} is this one; nothing is sent to oneself")
    array = checked(name, "tensor", tensor).array
    return finish(call_of("send", ours, tag), "send", [array, to], nothing, later)


def irecv(
    tensor: Tensor,
    src: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_src: int | None = None,
) -> Work | None:
    """Receives a tensor while the program goes on."""
    call, sources, like = _reception("irecv", tensor, src, group, tag, group_src)
    ranks = member("irecv", group).members.ranks

    def write(found: Any) -> list[Tensor]:
        place, array = found
        written.rank = ranks[place]
        return [copy_(tensor, of_array(array))]

    written = Source()
    work = finish(call, "receive", [like, sources], write, True)
    if work is not None:
        work._from = written
    return work


def recv(
    tensor: Tensor,
    src: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_src: int | None = None,
) -> int:
    """Receives a tensor from a process, by default from any; returns from which."""
    call, sources, like = _reception("recv", tensor, src, group, tag, group_src)
    place, array = processes.collective(call, "receive", like, sources)
    with no_grad():
        copy_(tensor, of_array(array))
    return member("recv", group).members.ranks[place]


def _reception(
    name: str,
    tensor: Tensor,
    src: int | None,
    group: ProcessGroup | None,
    tag: int,
    group_src: int | None,
) -> tuple[processes.Call, list[int], Any]:
    ours = member(name, group)
    if src is None and group_src is None:
        sources = [i for i in range(ours.size()) if i != ours.rank()]
    else:
        sources = [place_of(name, ours, src, group_src, "src")]
    if sources in ([], [ours.rank()]):
        raise ValueError(f"{name}: there is no other process to receive from; src={src}")
    # Both sides name the call alike: what is sent by send is received by recv.
    return call_of("send", ours, tag), sources, checked(name, "tensor", tensor).array


class P2POp:
    """One of the calls of ``batch_isend_irecv``.

    Args:
        op: ``isend`` or ``irecv``.
        tensor: what is sent, or where the received is written.
        peer: the other process.
        group: the group of both.
        tag: which messages belong together.
        group_peer: the other process by its number in the group.
    """

    def __init__(
        self,
        op: Callable[..., Work | None],
        tensor: Tensor,
        peer: int | None = None,
        group: ProcessGroup | None = None,
        tag: int = 0,
        group_peer: int | None = None,
    ):
        if op not in (isend, irecv):
            raise ValueError("P2POp: op is to be distributed.isend or distributed.irecv")
        self.op, self.tensor, self.group, self.tag = op, tensor, group, tag
        ours = member("P2POp", group)
        self.group_peer = place_of("P2POp", ours, peer, group_peer, "peer")
        self.peer = ours.members.ranks[self.group_peer]


def batch_isend_irecv(p2p_op_list: Sequence[P2POp]) -> list[Work]:
    """Starts several calls of ``isend`` and ``irecv``; each is waited for."""
    if not p2p_op_list or not all([isinstance(p, P2POp) for p in p2p_op_list]):
        raise ValueError("batch_isend_irecv: expected a list of P2POp that is not empty")
    works = [p.op(p.tensor, p.peer, p.group, p.tag) for p in p2p_op_list]
    return [w for w in works if w is not None]

"""What several processes compute together: reductions, and tensors that go to other processes.

All members of a group make the same calls in the same order. Results are written into the tensors
that are given, and no gradient flows through them. With ``async_op=True`` a call returns at once a
:class:`Work`, whose ``wait()`` ends when the result is there.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from chainrule.backend import processes
from chainrule.distributed.groups import ProcessGroup, ReduceOp, member, place_of
from chainrule.distributed.work import (
    Work,
    alike,
    call_of,
    checked,
    finish,
    into_all,
    into_one,
    listed,
    nothing,
    reduction,
)
from chainrule.ops.index.assignment import copy_
from chainrule.ops.shape.stacking import stack
from chainrule.tensor import Tensor, of_array

__all__ = [
    "all_gather",
    "all_gather_into_tensor",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "broadcast",
    "gather",
    "monitored_barrier",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "scatter",
]


# --- reductions -----------------------------------------------------------------------------------


def all_reduce(
    tensor: Tensor,
    op: ReduceOp = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """The tensor becomes the sum (or another reduction) of the tensors of all processes.

    The sum is made in the order of the ranks and is the same in all processes, bit for bit.
    """
    name = "all_reduce"
    call, array = call_of(name, group), checked(name, "tensor", tensor).array
    args = [array, reduction(name, op)]
    return finish(call, name, args, into_one(tensor), async_op)


def reduce(
    tensor: Tensor,
    dst: int | None = None,
    op: ReduceOp = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """The tensor of process ``dst`` becomes the sum of the tensors of all; others keep theirs."""
    name = "reduce"
    ours = member(name, group)
    to = place_of(name, ours, dst, group_dst, "dst")
    array = checked(name, "tensor", tensor).array

    def write(found: Any) -> list[Tensor]:
        return [] if found is None else [copy_(tensor, of_array(found))]

    return finish(call_of(name, ours), name, [array, reduction(name, op), to], write, async_op)


def reduce_scatter(
    output: Tensor,
    input_list: Sequence[Tensor],
    op: ReduceOp = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """``output`` becomes the sum of the tensors that all processes have for this one."""
    name = "reduce_scatter"
    ours = member(name, group)
    arrays = [t.array for t in listed(name, "input_list", input_list, ours.size())]
    args = [arrays, checked(name, "output", output).array, reduction(name, op)]
    return finish(call_of(name, ours), name, args, into_one(output), async_op)


def reduce_scatter_tensor(
    output: Tensor,
    input: Tensor,
    op: ReduceOp = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """The same with the tensors for all processes in one: one after the other, or stacked."""
    name = "reduce_scatter_tensor"
    ours = member(name, group)
    checked(name, "output", output)
    parts = _parts(name, "input", checked(name, "input", input), output, ours.size())
    args = [[p.array for p in parts], output.array, reduction(name, op)]
    return finish(call_of(name, ours), "reduce_scatter", args, into_one(output), async_op)


def _parts(op: str, name: str, whole: Tensor, part: Tensor, n: int) -> list[Tensor]:
    """A tensor as parts for (or of) n processes, as views."""
    shape = tuple(part.shape)
    joined = (n * shape[0], *shape[1:]) if shape else (n,)
    if tuple(whole.shape) not in (joined, (n, *shape)):
        raise ValueError(
            f"{op}: {name} of shape {list(whole.shape)} does not hold {n} tensors of shape "
            f"{list(shape)}; it is to be {list(joined)} or {[n, *shape]}"
        )
    if whole.dtype != part.dtype:
        raise ValueError(f"{op}: {name} is {whole.dtype}, and the tensors are {part.dtype}")
    stacked = whole.detach().reshape(n, *shape)
    return [stacked[i] for i in range(n)]


# --- tensors as they are --------------------------------------------------------------------------


def broadcast(
    tensor: Tensor,
    src: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """The tensor becomes that of process ``src``, in all processes."""
    name = "broadcast"
    ours = member(name, group)
    source = place_of(name, ours, src, group_src, "src")
    array = checked(name, "tensor", tensor).array
    write = nothing if ours.rank() == source else into_one(tensor)
    return finish(call_of(name, ours), name, [array, source], write, async_op)


def all_gather(
    tensor_list: list[Tensor],
    tensor: Tensor,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """``tensor_list`` becomes the tensors of all processes."""
    name = "all_gather"
    ours = member(name, group)
    array = checked(name, "tensor", tensor).array
    given = listed(name, "tensor_list", tensor_list, ours.size())
    write = into_all(alike(name, "tensor_list", given, tensor))
    return finish(call_of(name, ours), name, [array], write, async_op)


def all_gather_into_tensor(
    output_tensor: Tensor,
    input_tensor: Tensor,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """``output_tensor`` becomes the tensors of all processes, one after the other or stacked."""
    name = "all_gather_into_tensor"
    ours = member(name, group)
    array = checked(name, "input_tensor", input_tensor).array
    checked(name, "output_tensor", output_tensor)
    _parts(name, "output_tensor", output_tensor, input_tensor, ours.size())

    def write(found: Any) -> list[Tensor]:
        whole = stack([of_array(a) for a in found])
        return [copy_(output_tensor, whole.reshape(output_tensor.shape))]

    return finish(call_of(name, ours), "all_gather", [array], write, async_op)


def gather(
    tensor: Tensor,
    gather_list: list[Tensor] | None = None,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """``gather_list`` of process ``dst`` (by default 0) becomes the tensors of all."""
    name = "gather"
    ours = member(name, group)
    to = place_of(name, ours, dst, group_dst if dst is not None else group_dst or 0, "dst")
    array = checked(name, "tensor", tensor).array
    if ours.rank() == to:
        given = listed(name, "gather_list", gather_list, ours.size())
        write = into_all(alike(name, "gather_list", given, tensor))
    elif gather_list:
        raise ValueError(f"{name}: gather_list is for process dst alone; leave it out elsewhere")
    else:
        write = nothing
    return finish(call_of(name, ours), name, [array, to], write, async_op)


def scatter(
    tensor: Tensor,
    scatter_list: list[Tensor] | None = None,
    src: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """The tensor becomes that which process ``src`` (by default 0) has for this one."""
    name = "scatter"
    ours = member(name, group)
    source = place_of(name, ours, src, group_src if src is not None else group_src or 0, "src")
    array = checked(name, "tensor", tensor).array
    arrays = None
    if ours.rank() == source:
        arrays = [t.array for t in listed(name, "scatter_list", scatter_list, ours.size())]
    elif scatter_list:
        raise ValueError(f"{name}: scatter_list is for process src alone; leave it out elsewhere")
    return finish(call_of(name, ours), name, [arrays, array, source], into_one(tensor), async_op)


def all_to_all(
    output_tensor_list: list[Tensor],
    input_tensor_list: list[Tensor],
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Process i gets ``input_tensor_list[i]``; ``output_tensor_list`` becomes what others had."""
    name = "all_to_all"
    ours = member(name, group)
    given = listed(name, "input_tensor_list", input_tensor_list, ours.size())
    taken = listed(name, "output_tensor_list", output_tensor_list, ours.size())
    args = [[t.array for t in given], [t.array for t in taken]]
    return finish(call_of(name, ours), name, args, into_all(taken), async_op)


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """The same with one tensor, which is cut along its first dimension."""
    name = "all_to_all_single"
    ours = member(name, group)
    given = _cut(name, "input", checked(name, "input", input), input_split_sizes, ours.size())
    taken = _cut(name, "output", checked(name, "output", output), output_split_sizes, ours.size())
    args = [[t.array for t in given], [t.array for t in taken]]
    return finish(call_of(name, ours), "all_to_all", args, into_all(taken), async_op)


def _cut(op: str, name: str, x: Tensor, sizes: Sequence[int] | None, n: int) -> list[Tensor]:
    length = x.shape[0] if x.ndim else 0
    if not sizes:
        if not x.ndim or length % n:
            raise ValueError(
                f"{op}: {name} of shape {list(x.shape)} cannot be cut into {n} equal parts; give "
                f"{name}_split_sizes"
            )
        sizes = [length // n] * n
    if len(sizes) != n or sum(sizes) != length:
        raise ValueError(
            f"{op}: {name}_split_sizes={list(sizes)} are to be {n} numbers with the sum {length}"
        )
    starts = [sum(sizes[:i]) for i in range(n)]
    x = x.detach()
    return [x[a : a + size] for a, size in zip(starts, sizes, strict=True)]


# --- waiting for each other -----------------------------------------------------------------------


def barrier(
    group: ProcessGroup | None = None,
    async_op: bool = False,
    device_ids: Sequence[int] | None = None,
) -> Work | None:
    """Returns when all processes have come to it.

    ``device_ids`` must be None: processes wait without their GPUs.
    """
    if device_ids is not None:
        raise ValueError(f"barrier: device_ids={device_ids}: processes wait without their GPUs")
    return finish(call_of("barrier", group), "barrier", [], nothing, async_op)


def monitored_barrier(
    group: ProcessGroup | None = None,
    timeout: timedelta | None = None,
    wait_all_ranks: bool = False,
) -> None:
    """A barrier at which process 0 says who has not come in time: the first, or all of them."""
    name = "monitored_barrier"
    ours = member(name, group)
    wait = ours.timeout if timeout is None else timeout.total_seconds()
    call = processes.call(name, ours.members, None, wait)
    finish(call, name, [wait_all_ranks], nothing, False)

"""A program for several processes: every collective of tensors, against NumPy."""

from __future__ import annotations

import os
from datetime import timedelta
from functools import reduce as fold

import numpy as np
import pytest

import chainrule
from chainrule import distributed as dist
from chainrule.utils.data import DistributedSampler


def mine(of: int, dtype: str = "float32", shape: tuple[int, ...] = (2, 3)) -> np.ndarray:
    return (np.random.default_rng(of).normal(size=shape) * 10).astype(dtype)


def main() -> None:
    dist.init_process_group(timeout=timedelta(seconds=60))
    rank, n = dist.get_rank(), dist.get_world_size()
    assert (rank, n) == (int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]))
    assert dist.is_initialized()
    assert dist.is_available()
    assert dist.get_backend() == "gloo"
    assert dist.is_writer() == (rank == 0)
    assert dist.get_node_local_rank() == rank
    assert dist.is_torchelastic_launched()
    last, ranks = n - 1, list(range(n))

    # Reductions, of several types; in views and parameters, too.
    ops = {
        dist.ReduceOp.SUM: np.add,
        dist.ReduceOp.PRODUCT: np.multiply,
        dist.ReduceOp.MIN: np.minimum,
        dist.ReduceOp.MAX: np.maximum,
    }
    for dtype in ("float32", "float64", "int64", "int8"):
        for op, function in ops.items():
            x = chainrule.tensor(mine(rank, dtype))
            assert dist.all_reduce(x, op) is None
            np.testing.assert_array_equal(
                x.numpy(), fold(function, [mine(r, dtype) for r in ranks])
            )
    large = chainrule.tensor(mine(rank, "float64", (300, 200)))
    work = dist.all_reduce(large.T, async_op=True)
    assert work.wait()
    assert work.is_completed()
    assert work.is_success()
    total = sum(mine(r, "float64", (300, 200)) for r in ranks)
    np.testing.assert_array_equal(large.numpy(), total)
    p = chainrule.nn.Parameter(chainrule.tensor(mine(rank)))
    y = (p * p).sum()
    dist.broadcast(p, last)
    np.testing.assert_array_equal(p.detach().numpy(), mine(last))
    assert p.requires_grad
    assert p.grad_fn is None
    if rank != last:
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.backward()
    half = chainrule.ones(3, dtype=chainrule.float16) * (rank + 1)
    dist.all_reduce(half, dist.ReduceOp.AVG)
    assert half.tolist() == [(n + 1) / 2] * 3
    b = chainrule.tensor([rank == 0, True])
    dist.all_reduce(b, dist.ReduceOp.BAND)
    assert b.tolist() == [n == 1, True]
    x = chainrule.tensor(mine(rank))
    dist.reduce(x, dst=last)
    expected = sum(mine(r) for r in ranks) if rank == last else mine(rank)
    np.testing.assert_array_equal(x.numpy(), expected)

    # Tensors as they are.
    x = chainrule.tensor(mine(rank))
    parts = [chainrule.zeros(2, 3) for _ in ranks]
    dist.all_gather(parts, x)
    for r in ranks:
        np.testing.assert_array_equal(parts[r].numpy(), mine(r))
    for shape in ((2 * n, 3), (n, 2, 3)):
        whole = chainrule.zeros(*shape)
        dist.all_gather_into_tensor(whole, x)
        np.testing.assert_array_equal(whole.numpy().reshape(n, 2, 3), [mine(r) for r in ranks])
    turned = chainrule.zeros(3, 2 * n).T
    dist.all_gather_into_tensor(turned, x)
    np.testing.assert_array_equal(turned.numpy(), whole.numpy().reshape(2 * n, 3))
    parts = [chainrule.zeros(2, 3) for _ in ranks] if rank == 0 else None
    dist.gather(x, parts)
    if parts is not None:
        for r in ranks:
            np.testing.assert_array_equal(parts[r].numpy(), mine(r))
    x = chainrule.zeros(2, 3)
    dist.scatter(x, [chainrule.tensor(mine(r)) for r in ranks] if rank == last else None, src=last)
    np.testing.assert_array_equal(x.numpy(), mine(rank))
    given = [chainrule.tensor([10 * rank + r]) for r in ranks]
    x = chainrule.tensor([0])
    dist.reduce_scatter(x, given)
    assert x.tolist() == [sum(10 * r + rank for r in ranks)]
    dist.reduce_scatter_tensor(x, chainrule.cat(given), dist.ReduceOp.MAX)
    assert x.tolist() == [10 * last + rank]
    taken = [chainrule.tensor([0]) for _ in ranks]
    dist.all_to_all(taken, given)
    assert [t.tolist() for t in taken] == [[10 * r + rank] for r in ranks]
    x = chainrule.zeros(n, dtype=chainrule.int64)
    dist.all_to_all_single(x, chainrule.cat(given))
    assert x.tolist() == [10 * r + rank for r in ranks]
    sizes = [r + 1 for r in ranks]
    x = chainrule.zeros((rank + 1) * n)
    dist.all_to_all_single(x, chainrule.ones(sum(sizes)) * rank, [rank + 1] * n, sizes)
    assert x.tolist() == [float(r) for r in ranks for _ in range(rank + 1)]
    dist.barrier()
    dist.monitored_barrier()

    # Objects.
    objects = [None] * n
    dist.all_gather_object(objects, {"rank": rank, "size": (rank,)})
    assert objects == [{"rank": r, "size": (r,)} for r in ranks]
    objects = ["a", {"b": 1}] if rank == last else [None, None]
    dist.broadcast_object_list(objects, src=last)
    assert objects == ["a", {"b": 1}]
    objects = [None] * n if rank == 0 else None
    dist.gather_object(str(rank), objects)
    assert objects == ([str(r) for r in ranks] if rank == 0 else None)
    out = [None]
    dist.scatter_object_list(out, [f"for {r}" for r in ranks] if rank == 0 else None)
    assert out == [f"for {rank}"]

    # From one to another, around a ring.
    ahead, behind = (rank + 1) % n, (rank - 1) % n
    if n > 1:
        x, got = chainrule.tensor(mine(rank)), chainrule.zeros(2, 3)
        sent = dist.isend(x, ahead, tag=1)
        assert dist.recv(got, behind, tag=1) == behind
        sent.wait()
        np.testing.assert_array_equal(got.numpy(), mine(behind))
        works = dist.batch_isend_irecv(
            [dist.P2POp(dist.isend, x * 2, ahead), dist.P2POp(dist.irecv, got, behind)]
        )
        for work in works:
            work.wait()
        assert works[1].source_rank() == behind
        np.testing.assert_array_equal(got.numpy(), 2 * mine(behind))
        if rank == 0:
            for _ in ranks[1:]:
                source = dist.recv(got)
                np.testing.assert_array_equal(got.numpy(), mine(source))
            objects = [None, None]
            assert dist.recv_object_list(objects, src=last) == last
            assert objects == [last, "words"]
        else:
            dist.send(x, 0)
            if rank == last:
                dist.send_object_list([last, "words"], 0)

    # Groups: all, one, and the outer two.
    everybody = dist.new_group()
    alone = [dist.new_group([r]) for r in ranks]
    assert alone[rank].size() == 1
    assert all(g is dist.GroupMember.NON_GROUP_MEMBER for r, g in enumerate(alone) if r != rank)
    x = chainrule.ones(1)
    dist.all_reduce(x, group=alone[rank])
    dist.all_reduce(x, group=everybody)
    assert x.tolist() == [n]
    outer = dist.new_group(sorted({0, last}))
    if rank in (0, last):
        assert dist.get_rank(outer) == (0 if rank == 0 else dist.get_world_size(outer) - 1)
        assert dist.get_process_group_ranks(outer) == sorted({0, last})
        assert dist.get_global_rank(outer, dist.get_world_size(outer) - 1) == last
        x = chainrule.tensor([float(rank)])
        dist.broadcast(x, src=last, group=outer)
        assert x.tolist() == [last]
        dist.destroy_process_group(outer)
    own, made = dist.new_subgroups(1)
    assert own is made[rank]

    # What is refused, with one process after the other in step.
    for call, message in (
        (lambda: dist.init_process_group(), "twice"),
        (lambda: dist.all_reduce(3), "expected tensor to be a tensor, got int"),
        (lambda: dist.all_reduce(chainrule.ones(1), "sum"), "one of ReduceOp"),
        (lambda: dist.broadcast(chainrule.ones(1)), "give one of src and group_src"),
        (lambda: dist.broadcast(chainrule.ones(1), n), f"src={n} is not one of 0"),
        (lambda: dist.all_gather([], chainrule.ones(1)), f"has 0 tensors for {n} processes"),
        (lambda: dist.send(chainrule.ones(1), rank), "nothing is sent to oneself"),
        (lambda: dist.new_group([0, n]), f"different numbers from 0 to {last}"),
        (lambda: dist.barrier(device_ids=[0]), "without their GPUs"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            call()

    shares = [None] * n
    dist.all_gather_object(shares, list(DistributedSampler(range(7), shuffle=False)))
    assert shares == [list(DistributedSampler(range(7), n, r, shuffle=False)) for r in ranks]
    dist.destroy_process_group()
    assert not dist.is_initialized()
    assert (dist.get_rank(), dist.get_world_size()) == (0, 1)
    print("all is right")


if __name__ == "__main__":
    main()

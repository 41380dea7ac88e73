"""The shares of processes are PyTorch's."""

from __future__ import annotations

import pytest

from chainrule.utils.data import DistributedSampler

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("n", [0, 1, 2, 7, 8, 100])
@pytest.mark.parametrize("replicas", [1, 2, 3, 8])
@pytest.mark.parametrize("drop_last", [False, True])
def test_shares(n: int, replicas: int, drop_last: bool) -> None:
    theirs = torch.utils.data.DistributedSampler
    for rank in range(replicas):
        given = (range(n), replicas, rank, False, 0, drop_last)
        ours, reference = DistributedSampler(*given), theirs(*given)
        assert list(ours) == list(reference)
        assert len(ours) == len(reference)
        assert (ours.num_samples, ours.total_size) == (reference.num_samples, reference.total_size)


@pytest.mark.parametrize("n", [7, 8])
@pytest.mark.parametrize("drop_last", [False, True])
def test_a_shuffled_order_is_shared_out_by_the_same_rule(n: int, drop_last: bool) -> None:
    """Each epoch has its own order; the shares cut it as PyTorch cuts its."""
    for sampler in (DistributedSampler, torch.utils.data.DistributedSampler):
        drawn = []
        for epoch in (0, 1):
            whole = sampler(range(n), 1, 0, seed=5)
            parts = [sampler(range(n), 3, r, seed=5, drop_last=drop_last) for r in range(3)]
            for s in (whole, *parts):
                s.set_epoch(epoch)
            order = list(whole)
            total = parts[0].total_size
            padded = (order + order)[:total]
            assert [list(p) for p in parts] == [padded[r::3] for r in range(3)]
            drawn.append(order)
        assert drawn[0] != drawn[1]


@pytest.mark.parametrize("rank", [-1, 2])
def test_a_rank_outside(rank: int) -> None:
    for sampler in (DistributedSampler, torch.utils.data.DistributedSampler):
        with pytest.raises(ValueError, match=rf"Invalid rank {rank}, .*interval \[0, 1\]"):
            sampler(range(3), 2, rank)

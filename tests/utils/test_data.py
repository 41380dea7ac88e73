"""``utils.data``: the same loader under PyTorch's paths, and the sampler for several processes."""

from __future__ import annotations

import pytest

import chainrule
from chainrule import absent, data
from chainrule.utils.data import DataLoader, Dataset, DistributedSampler, TensorDataset
from chainrule.utils.data.dataloader import default_collate
from chainrule.utils.data.dataset import random_split
from chainrule.utils.data.distributed import DistributedSampler as SameSampler
from chainrule.utils.data.sampler import SubsetRandomSampler


def test_they_are_the_same() -> None:
    assert chainrule.utils.data.DataLoader is data.DataLoader is DataLoader
    assert issubclass(TensorDataset, Dataset)
    assert Dataset is data.Dataset
    assert random_split is data.random_split
    assert SubsetRandomSampler is data.SubsetRandomSampler
    assert default_collate is data.default_collate
    assert SameSampler is DistributedSampler is data.DistributedSampler


def test_pinned_memory_warns_once_and_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(absent, "_told", set())
    with pytest.warns(UserWarning, match="pin_memory=True changes nothing") as seen:
        loader = DataLoader(range(4), 2, pin_memory=True)
    assert seen[0].filename == __file__
    assert loader.pin_memory
    assert [x.tolist() for x in loader] == [[0, 1], [2, 3]]
    DataLoader(range(4), 2, pin_memory=True, pin_memory_device="cuda", in_order=False)


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("n", [1, 7, 8, 20])
def test_processes_share_all_samples(n: int, drop_last: bool) -> None:
    parts = [DistributedSampler(range(n), 3, rank, drop_last=drop_last) for rank in range(3)]
    drawn = [list(p) for p in parts]
    assert {len(d) for d in drawn} == {len(parts[0])}
    together = [i for d in drawn for i in d]
    if drop_last:
        assert len(set(together)) == len(together) == n // 3 * 3
    else:
        assert set(together) == set(range(n))


def test_every_epoch_has_an_order_of_its_own() -> None:
    sampler = DistributedSampler(range(50), 2, 0, seed=3)
    first = list(sampler)
    assert list(sampler) == first
    sampler.set_epoch(1)
    assert list(sampler) != first
    sampler.set_epoch(0)
    assert list(sampler) == first


def test_one_process_gets_all_by_default() -> None:
    sampler = DistributedSampler(range(5))
    assert sorted(sampler) == [0, 1, 2, 3, 4]
    loader = DataLoader(TensorDataset(chainrule.arange(5)), 2, sampler=sampler)
    assert len(loader) == 3
    assert sorted(chainrule.cat([x for (x,) in loader]).tolist()) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("rank", [2, -1])
def test_a_wrong_rank(rank: int) -> None:
    with pytest.raises(ValueError, match=f"Invalid rank {rank}.*\\[0, 1\\]"):
        DistributedSampler(range(5), 2, rank)


def test_pipes_are_explained() -> None:
    with pytest.raises(AttributeError, match="PyTorch has given up data pipes"):
        chainrule.utils.data.IterDataPipe  # noqa: B018

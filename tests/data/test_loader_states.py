"""A loader that goes on in the middle of an epoch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from data.loading import Count, Slow, plain

import chainrule
from chainrule.data import (
    BatchSampler,
    DataLoader,
    RandomSampler,
    SubsetRandomSampler,
    TensorDataset,
)


def seeded(seed: int = 0) -> chainrule.Generator:
    return chainrule.Generator().manual_seed(seed)


def in_memory(n: int) -> TensorDataset:
    return TensorDataset(chainrule.arange(n), chainrule.arange(n) * 10)


class Noisy(Slow):
    """Samples that draw random numbers when they are read."""

    def __getitem__(self, index: int) -> Any:
        return index, chainrule.rand(2)


def batches(loader: Any) -> list[Any]:
    return [plain(batch) for batch in loader]


def numbers(loader: Any) -> list[int]:
    return [i for batch in loader for i in batch[0].tolist()]


Make = Callable[[], DataLoader]


RESUMED: dict[str, Make] = {
    "in memory": lambda: DataLoader(in_memory(23), 4, shuffle=True, generator=seeded(1)),
    "in order": lambda: DataLoader(in_memory(23), 4),
    "sample by sample": lambda: DataLoader(Slow(23), 4, shuffle=True, generator=seeded(1)),
    "own sampler": lambda: DataLoader(
        in_memory(23), 4, sampler=RandomSampler(range(23), True, generator=seeded(1))
    ),
    "own batch sampler": lambda: DataLoader(
        in_memory(23),
        batch_sampler=BatchSampler(SubsetRandomSampler(range(5, 23), seeded(1)), 3, True),
    ),
    "stream": lambda: DataLoader(Count(0, 23), 4),
    "workers": lambda: DataLoader(Noisy(23), 4, shuffle=True, generator=seeded(1), num_workers=2),
    "persistent workers": lambda: DataLoader(
        Noisy(23), 4, shuffle=True, generator=seeded(1), num_workers=3, persistent_workers=True
    ),
    "stream with workers": lambda: DataLoader(Count(0, 23), 4, generator=seeded(1), num_workers=2),
}


@pytest.mark.parametrize("stop", [1, 4])
@pytest.mark.parametrize("name", RESUMED)
def test_resumed_in_the_middle_of_an_epoch(name: str, stop: int) -> None:
    """The rest of the interrupted epoch and the epoch after it are the same."""
    loader = RESUMED[name]()
    list(loader)
    it = iter(loader)
    for _ in range(stop):
        next(it)
    state = loader.state_dict()
    expected = [plain(b) for b in it], batches(loader)
    resumed = RESUMED[name]()
    resumed.load_state_dict(state)
    assert repr(resumed.state_dict()) == repr(state)
    assert batches(resumed) == expected[0]
    assert batches(resumed) == expected[1]
    assert len(expected[0]) == len(loader) - stop


def test_resumed_between_epochs() -> None:
    loader = RESUMED["in memory"]()
    list(loader)
    state = loader.state_dict()
    assert state["position"] == 0
    expected = batches(loader)
    resumed = RESUMED["in memory"]()
    resumed.load_state_dict(state)
    assert batches(resumed) == expected


def test_resumed_behind_the_last_batch() -> None:
    """Saved in the last turn of the loop: nothing is left, then comes the next epoch."""
    loader = RESUMED["in memory"]()
    for _ in loader:
        state = loader.state_dict()
    expected = batches(loader)
    resumed = RESUMED["in memory"]()
    resumed.load_state_dict(state)
    assert batches(resumed) == []
    assert batches(resumed) == expected


def test_resumed_with_the_default_generator() -> None:
    """Its state is saved by whoever saves the run; other draws from it are not disturbed."""

    def run(loader: DataLoader, log: list[Any], stop: int | None = None) -> None:
        for i, (x, _) in enumerate(loader):
            log.append((x.tolist(), float(chainrule.rand(()))))
            if i + 1 == stop:
                break

    chainrule.manual_seed(11)
    loader = DataLoader(in_memory(20), 4, shuffle=True)
    log: list[Any] = []
    run(loader, log, stop=2)
    saved, states = chainrule.get_rng_state(), loader.state_dict()
    chainrule.manual_seed(11)
    whole: list[Any] = []
    for _ in range(2):
        run(loader, whole)
    chainrule.manual_seed(99)
    fresh = DataLoader(in_memory(20), 4, shuffle=True)
    chainrule.set_rng_state(saved)
    fresh.load_state_dict(states)
    for _ in range(2):
        run(fresh, log)
    assert log == whole


def test_interrupted_epochs_can_be_saved() -> None:
    loader = RESUMED["in memory"]()
    seen = []
    try:
        for x, _ in loader:
            seen += x.tolist()
            if len(seen) > 10:
                raise KeyboardInterrupt
    except KeyboardInterrupt:
        state = loader.state_dict()
    resumed = RESUMED["in memory"]()
    resumed.load_state_dict(state)
    assert sorted(seen + numbers(resumed)) == list(range(23))


def test_a_new_epoch_forgets_the_one_that_was_left() -> None:
    loader = RESUMED["in memory"]()
    for _ in loader:
        break
    assert len(numbers(loader)) == 23
    assert loader.state_dict()["position"] == 0


@pytest.mark.parametrize(
    ("make", "change", "message"),
    [
        (
            lambda: DataLoader(in_memory(23), 5, generator=seeded()),
            {},
            "batch_size=4, .*batch_size=5",
        ),
        (lambda: DataLoader(in_memory(22), 4, generator=seeded()), {}, "samples=23, .*samples=22"),
        (lambda: DataLoader(in_memory(23), 4), {}, "holds 1 generators, this loader has 0"),
        (
            lambda: DataLoader(in_memory(23), 4, generator=seeded(), num_workers=2),
            {},
            "num_workers=0, .*num_workers=2",
        ),
        (lambda: DataLoader(in_memory(23), 4), {"position": None}, "the state has no position"),
    ],
)
def test_states_of_another_loader(make: Make, change: dict[str, Any], message: str) -> None:
    loader = DataLoader(in_memory(23), 4, generator=seeded())
    next(iter(loader))
    state = {k: v for k, v in loader.state_dict().items() if k not in change}
    with pytest.raises(ValueError, match=message):
        make().load_state_dict(state)

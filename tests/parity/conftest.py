"""What all comparisons with PyTorch share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="session")
def _seed_of_the_processor_alone() -> Iterator[None]:
    """``torch.manual_seed`` seeds every kind of device. For those that are not there it keeps the
    seed and the caller's stack as text: most of the time of what PyTorch's records take, as they
    seed for every sample."""
    torch = pytest.importorskip("torch")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch, "manual_seed", torch.default_generator.manual_seed)
        yield


@pytest.fixture(autouse=True, scope="session")
def _one_thread_of_pytorch() -> Iterator[None]:
    """There is a process of tests for each processor, and threads that wait for one take three
    times as long."""
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)

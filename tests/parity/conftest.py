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

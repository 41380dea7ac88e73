"""Random calls of every compiled kernel: valid ones, odd ones, and plain nonsense.

Whatever it is given, a compiled kernel does what its NumPy twin does: the same result, or an
exception. ``CHAINRULE_FUZZ=20`` makes twenty times as many calls.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator

import pytest

from native.random_calls import difference, hostile, outcome, written
from native.twins import native, reference
from native.valid_calls import MAKERS, Draw

TIMES = float(os.environ.get("CHAINRULE_FUZZ") or 1)
CALLS = int(200 * TIMES)
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True)
def setting() -> Iterator[None]:
    before = native.get_isa(), native.get_num_threads()
    with written():
        yield
    native.set_isa(before[0])
    native.set_num_threads(before[1])


def test_every_kernel_has_a_maker() -> None:
    assert sorted(MAKERS) == sorted(native.kernels)


@pytest.mark.parametrize("name", native.kernels)
def test_does_what_its_twin_does(name: str) -> None:
    for seed in range(CALLS):
        found = difference(name, seed)
        assert not found, found


@pytest.mark.parametrize("name", native.kernels)
def test_absurd_sizes_do_no_harm(name: str) -> None:
    """Without the twin, which would take forever: the result does not matter."""
    twins = {n: reference(n) for n in native.kernels}
    native.bind_reference({})
    try:
        for seed in range(CALLS // 4):
            outcome(getattr(native, name), hostile(Draw(seed + zlib.crc32(name.encode())), name))
    finally:
        native.bind_reference(twins)

"""What all tests share: reproducible examples, and nothing a test leaves behind for the next."""

from __future__ import annotations

import gc
from collections.abc import Generator, Iterator
from importlib.util import find_spec

import hypothesis
import pytest

from chainrule import backend
from chainrule.backend import dtypes, openblas
from chainrule.graph import mode

# Programs that are run by tests or read by type checkers, what runs PyTorch's records, and the
# comparison with PyTorch, which runs wherever PyTorch is installed.
collect_ignore = ["programs", "typed", "parity/database"] + (
    [] if find_spec("torch") else ["parity"]
)

hypothesis.settings.register_profile("suite", deadline=None, derandomize=True, max_examples=50)
hypothesis.settings.load_profile("suite")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What describes the tests, millions of objects, is there to the end: nothing searches it.

    A test that collects garbage, or a recording that looks for the holders of an array, would
    spend a second on it.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


@pytest.fixture(autouse=True)
def _settings_as_before() -> Iterator[None]:
    """Restores what a test may set for everybody: kernels, default type, grad mode.

    BLAS has one thread: there is a process of tests for each processor, and threads that wait for
    one take five times as long. A test of threads asks for more.
    """
    openblas.set_threads(1)
    kernels, default, flags = backend.current(), dtypes.get_default_dtype(), mode.flags
    yield
    mode.flags = flags
    dtypes.set_default_dtype(default)
    if backend.current() != kernels:
        backend.use(kernels)

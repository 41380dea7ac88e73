"""Threads: how many, after fork, from several Python threads, and what depends on them."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import chainrule
from chainrule import backend, nn


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    count = chainrule.get_num_threads()
    yield
    chainrule.use_deterministic_algorithms(False)
    chainrule.set_num_threads(count)


def work(seed: int = 0) -> np.ndarray:
    """Large enough for several threads: products, a convolution, sums, an update."""
    g = chainrule.Generator().manual_seed(seed)
    x = chainrule.randn(64, 8, 24, 24, generator=g)
    w = chainrule.randn(16, 8, 3, 3, generator=g).requires_grad_()
    v = chainrule.randn(16 * 24 * 24, 32, generator=g).requires_grad_()
    out = nn.functional.conv2d(x, w, padding=1).tanh().flatten(1) @ v
    out.logsumexp(1).mean().backward()
    return np.concatenate([w.grad.numpy().ravel(), v.grad.numpy().ravel()])


def test_the_number_of_threads() -> None:
    chainrule.set_num_threads(3)
    assert chainrule.get_num_threads() == 3
    for bad in (0, -1, 5000):
        with pytest.raises(RuntimeError, match="expected 1 to 1024 threads"):
            chainrule.set_num_threads(bad)
    with pytest.raises(TypeError, match="whole number"):
        chainrule.set_num_threads(1.5)  # type: ignore[arg-type]
    assert chainrule.get_num_threads() == 3


def test_results_do_not_depend_on_the_run() -> None:
    chainrule.set_num_threads(2)
    np.testing.assert_array_equal(work(), work())


def test_deterministic_results_do_not_depend_on_the_number_of_threads() -> None:
    chainrule.use_deterministic_algorithms(True)
    assert chainrule.are_deterministic_algorithms_enabled()
    results = []
    for count in (1, 2, 4):
        chainrule.set_num_threads(count)
        results.append(work())
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])


def test_several_python_threads() -> None:
    chainrule.set_num_threads(2)
    alone = [work(seed) for seed in range(4)]
    found: dict[int, np.ndarray] = {}
    threads = [
        threading.Thread(target=lambda s=seed: found.__setitem__(s, work(s))) for seed in range(4)
    ]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for seed in range(4):
        np.testing.assert_allclose(found[seed], alone[seed], rtol=1e-4, atol=1e-5)


FORK = """
import os, sys
import chainrule
chainrule.set_num_threads(2)
def work():
    x = chainrule.ones(1_000_000)
    square = chainrule.ones(400, 400)
    return float(chainrule.exp(x).sum() + (square @ square).sum())
before = work()
child = os.fork()
if child == 0:
    os._exit(0 if work() == before else 3)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_forked_process_computes() -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(chainrule.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", FORK], env=environment, timeout=60)
    assert done.returncode == 0


def test_kernels_can_be_chosen() -> None:
    before = backend.current()
    try:
        backend.use("numpy")
        by_numpy = work()
        backend.use(before)
        np.testing.assert_allclose(work(), by_numpy, rtol=1e-3, atol=1e-4)
    finally:
        backend.use(before)
    with pytest.raises(ValueError, match="no kernels named 'cuda'"):
        backend.use("cuda")


def test_the_environment_chooses_kernels() -> None:
    code = "from chainrule import backend; print(backend.current())"
    environment = {
        **os.environ,
        "CHAINRULE_KERNELS": "numpy",
        "PYTHONPATH": str(Path(chainrule.__file__).parents[1]),
    }
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True
    )
    assert done.stdout.strip() == "numpy"

"""Convolutions of 3 by 3 by Winograd's algorithm against the sums they stand for."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from chainrule import backend
from chainrule.backend.numpy_kernels import conv as reference
from native.test_conv import KERNELS, SETS, Case

native: Any = pytest.importorskip("chainrule.backend._native", reason=backend.why_not_native)

# Largest and root mean square error, by the root mean square of the results.
LARGEST, USUAL = 2e-5, 2e-6


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    threads, isa, winograd = native.get_num_threads(), native.get_isa(), native.get_winograd()
    yield
    native.set_num_threads(threads)
    native.set_isa(isa)
    native.set_winograd(winograd)


def case(
    batch: int, channels: tuple[int, int], inputs: list[int], padding: int, groups: int = 1
) -> Case:
    return Case(
        np.float32, batch, groups, channels, inputs, [3, 3], [1, 1], [padding, padding], [1, 1]
    )


LAYERS = {
    "even": case(3, (32, 64), [8, 8], 1),
    "one tile": case(16, (64, 48), [4, 4], 1),
    "odd channels": case(2, (33, 37), [16, 12], 1),
    "no padding": case(3, (40, 32), [13, 19], 0),
    "wide padding": case(2, (35, 34), [14, 9], 2),
    "groups": case(4, (32, 32), [14, 14], 1, groups=2),
    "many tiles": case(9, (32, 32), [33, 31], 1),
    "many channels": case(4, (256, 192), [8, 8], 1),
}


def in_double(case: Case, kernel: str) -> Any:
    a, b = (operand.astype(np.float64) for operand in case.operands(kernel))
    return getattr(reference, kernel)(a, b, size=case.size[kernel], **case.settings)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", LAYERS)
def test_error_is_what_is_stated(name: str, kernel: str) -> None:
    layer = LAYERS[name]
    exact = in_double(layer, kernel)
    size = float(np.sqrt(np.mean(np.square(exact))))
    for isa in SETS:
        native.set_isa(isa)
        error = (layer.by(native, kernel) - exact) / size
        assert float(np.abs(error).max()) < LARGEST
        assert float(np.sqrt(np.mean(np.square(error)))) < USUAL


@pytest.mark.parametrize("kernel", KERNELS)
def test_it_can_be_turned_off(kernel: str) -> None:
    layer = LAYERS["even"]
    fast = layer.by(native, kernel)
    backend.use_winograd(False)
    plain = layer.by(native, kernel)
    assert (fast != plain).any()  # so the two are computed in different ways
    np.testing.assert_allclose(fast, plain, atol=LARGEST * float(plain.std()), rtol=0)
    backend.use_winograd(True)
    np.testing.assert_array_equal(layer.by(native, kernel), fast)


def test_the_environment_turns_it_off() -> None:
    code = "from chainrule.backend import _native; print(_native.get_winograd())"
    for value, expected in (("0", "False"), ("1", "True")):
        environment = os.environ | {"CHAINRULE_WINOGRAD": value}
        command = [sys.executable, "-c", code]
        out = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        assert out.stdout.strip() == expected


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", ["odd channels", "groups", "many tiles", "many channels"])
def test_number_of_threads_changes_nothing(name: str, kernel: str) -> None:
    results = []
    for threads in (1, 2, 3, 5):
        native.set_num_threads(threads)
        results.append(LAYERS[name].by(native, kernel))
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, 3e38])
def test_what_is_not_finite_stays_where_it_belongs(value: float, kernel: str) -> None:
    layer = case(3, (32, 40), [9, 8], 1)
    layer.operands(kernel)[0][1, 5, 3, 4] = value
    with np.errstate(invalid="ignore", over="ignore"):
        got, expected = layer.by(native, kernel), layer.by(reference, kernel)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(expected))
    np.testing.assert_array_equal(np.isinf(got), np.isinf(expected))
    near = np.isfinite(expected) & (np.abs(expected) < 1e30)
    assert near.any()
    np.testing.assert_allclose(got[near], expected[near], atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize("kernel", KERNELS)
def test_float64_is_the_plain_sum(kernel: str) -> None:
    layer = Case(np.float64, 3, 1, (32, 48), [12, 12], [3, 3], [1, 1], [1, 1], [1, 1])
    expected = layer.by(reference, kernel)
    np.testing.assert_allclose(layer.by(native, kernel), expected, rtol=0, atol=1e-11)

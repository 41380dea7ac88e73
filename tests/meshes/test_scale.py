"""The model of costs (``benchmarks/scale.py``) beside what JAX says of compiled steps."""

from __future__ import annotations

import pytest

pytest.importorskip("jax")

from scale import FLOAT, WIDTH, measure


@pytest.mark.parametrize("devices", [1, 4])
def test_bytes_are_those_of_the_model(devices: int) -> None:
    """Parameters, gradients and states exactly; gradients and one loss are all-reduced."""
    found = measure(devices, batch=64)
    assert found.held == 4 * FLOAT * found.parameters
    loss = FLOAT
    assert found.reduced == (FLOAT * found.parameters + loss if devices > 1 else 0)
    assert found.sample == pytest.approx(2 * FLOAT * WIDTH, rel=1.5)

"""Four devices: those that JAX makes of the CPU where it is told so at its start (``make xla``)."""

from __future__ import annotations

import os

import pytest

FLAG = "--xla_force_host_platform_device_count=4"


@pytest.fixture(autouse=True, scope="session")
def four_devices() -> None:
    """Skips where there are fewer."""
    pytest.importorskip("jax")
    if FLAG not in os.environ.get("XLA_FLAGS", ""):
        pytest.skip(f"needs XLA_FLAGS={FLAG}: make xla")

"""Complex numbers: values and gradients of real losses, as in PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import chainrule

torch = pytest.importorskip("torch")

PROGRAMS = {
    "product": lambda lib, z, w: (z * w).abs().sum(),
    "quotient": lambda lib, z, w: (z / w).real.sum() if lib is torch else lib.real(z / w).sum(),
    "exp": lambda lib, z, w: lib.abs(lib.exp(z * 0.5) * w).sum(),
    "log": lambda lib, z, w: lib.real(lib.log(z) * lib.conj(w)).sum(),
    "tanh": lambda lib, z, w: lib.imag(lib.tanh(z) + lib.sin(w)).sum(),
    "angle": lambda lib, z, w: (lib.angle(z) * lib.abs(w)).sum(),
    "power": lambda lib, z, w: lib.real(z**3 + w**2).sum(),
    "matmul": lambda lib, z, w: lib.abs(z @ w).sum(),
    "solve": lambda lib, z, w: lib.abs(lib.linalg.solve(z, w)).sum(),
    "inverse": lambda lib, z, w: lib.real(lib.linalg.inv(z) @ w).sum(),
    "conjugate": lambda lib, z, w: lib.real(lib.conj(z) * z * w).sum(),
    "number": lambda lib, z, w: lib.real(z * (2 + 3j) - 1j * w).sum(),
    "sign": lambda lib, z, w: lib.real(lib.sgn(z) * w).sum(),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_value_and_gradient(name: str) -> None:
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=(3, 3)) + 1j * rng.normal(size=(3, 3)) for _ in range(2)]
    results: list[list[Any]] = []
    for lib in (chainrule, torch):
        z, w = (lib.tensor(a, requires_grad=True) for a in arrays)
        loss = PROGRAMS[name](lib, z, w)
        loss.backward()
        values = [loss.detach(), z.grad, w.grad]
        results.append([v.resolve_conj().numpy() if lib is torch else v.numpy() for v in values])
    for ours, theirs in zip(*results, strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-12)

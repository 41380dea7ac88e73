"""``GradScaler`` on the CPU beside PyTorch's: factors, counts and parameters, step by step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import chainrule

torch = pytest.importorskip("torch")


def steps(lib: Any, overflows: set[int], growth: float, interval: int) -> np.ndarray:
    w = lib.tensor([[0.5, -1.0], [2.0, 0.25]], requires_grad=True)
    optimizer = lib.optim.SGD([w], lr=0.01, momentum=0.9)
    scaler = lib.amp.GradScaler(
        "cpu", init_scale=1000.0, growth_factor=growth, growth_interval=interval
    )
    found = []
    for i in range(14):
        optimizer.zero_grad()
        x = lib.tensor([1.0, 1e35 if i in overflows else i / 7])
        loss = ((w @ x) ** 2).mean()
        scaler.scale(loss).backward()
        if i % 2:
            scaler.unscale_(optimizer)
            lib.nn.utils.clip_grad_norm_([w], 1.0)
        scaler.step(optimizer)
        scaler.update(5e3 if i == 11 else None)
        state = scaler.state_dict()
        found.append([state["scale"], state["_growth_tracker"], *w.detach().flatten().tolist()])
    return np.array(found)


@pytest.mark.parametrize("overflows", [set(), {0, 1}, {3, 4, 8}])
@pytest.mark.parametrize(("growth", "interval"), [(2.0, 2), (1.7, 3), (1e30, 1)])
def test_steps(overflows: set[int], growth: float, interval: int) -> None:
    ours, theirs = (steps(lib, overflows, growth, interval) for lib in (chainrule, torch))
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)

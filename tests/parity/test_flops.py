"""Multiply-adds are half of the FLOPs that PyTorch counts for products."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import chainrule
from chainrule import inspect

torch = pytest.importorskip("torch")
flop_counter = pytest.importorskip("torch.utils.flop_counter")

LAYERS: dict[str, tuple[Any, tuple[int, ...]]] = {
    "dense": (lambda lib: lib.nn.Linear(7, 5), (4, 7)),
    "dense of rank 4": (lambda lib: lib.nn.Linear(7, 5), (2, 3, 4, 7)),
    "convolution": (lambda lib: lib.nn.Conv2d(4, 6, 3, 2, 1, 2, 2), (2, 4, 11, 12)),
    "convolution 1d": (lambda lib: lib.nn.Conv1d(4, 6, 5, groups=2), (2, 4, 11)),
    "convolution 3d": (lambda lib: lib.nn.Conv3d(2, 3, 2), (1, 2, 4, 5, 6)),
    "transposed": (lambda lib: lib.nn.ConvTranspose2d(4, 6, 3, 2, groups=2), (2, 4, 5, 6)),
    "stack": (
        lambda lib: lib.nn.Sequential(
            lib.nn.Conv2d(1, 4, 3), lib.nn.ReLU(), lib.nn.Flatten(), lib.nn.Linear(144, 3)
        ),
        (2, 1, 8, 8),
    ),
}


@pytest.mark.parametrize("name", list(LAYERS))
def test_layers(name: str) -> None:
    build, shape = LAYERS[name]
    x = np.ones(shape, np.float32)
    with flop_counter.FlopCounterMode(display=False) as counter:
        build(torch)(torch.tensor(x))
    assert (
        2 * inspect.count(build(chainrule), chainrule.tensor(x)).macs == counter.get_total_flops()
    )


def test_attention_and_products() -> None:
    q, k, v = (np.ones((2, 3, n, 8), np.float32) for n in (5, 7, 7))

    def work(lib: Any) -> None:
        a, b, c = (lib.tensor(t) for t in (q, k, v))
        lib.nn.functional.scaled_dot_product_attention(a, b, c)
        lib.einsum("nhqd,nhkd->nhqk", a, b)

    class Work(chainrule.nn.Module):
        def forward(self, x: chainrule.Tensor) -> chainrule.Tensor:
            work(chainrule)
            return x

    composed = torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH)
    with composed, flop_counter.FlopCounterMode(display=False) as counter:
        work(torch)  # its fused attention on the CPU is not counted
    assert 2 * inspect.count(Work(), chainrule.ones(1)).macs == counter.get_total_flops()

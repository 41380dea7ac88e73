"""interpolate against PyTorch over a grid of modes, sizes, factors and types."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from helpers import assert_close

import chainrule
from chainrule.nn.functional import interpolate

torch = pytest.importorskip("torch")

MODES = {
    1: ("nearest", "nearest-exact", "area", "linear"),
    2: ("nearest", "nearest-exact", "area", "bilinear", "bicubic"),
    3: ("nearest", "nearest-exact", "area", "trilinear"),
}
FACTORS = (0.3, 0.5, 0.7, 1.0, 1.03, 1.5, 2, 2.0, 2.1, 2.7, 3, 1 / 3, 4.0)


def drawn(seed: int) -> tuple[np.ndarray, dict[str, Any]]:
    """An input and settings."""
    r = random.Random(seed)
    nd = r.choice([1, 2, 3])
    mode = r.choice(MODES[nd])
    spatial = [r.randint(1, 12 if nd < 3 else 5) for _ in range(nd)]
    settings: dict[str, Any] = {"mode": mode}
    if r.random() < 0.5:
        settings["size"] = tuple(r.randint(1, 30 if nd < 3 else 9) for _ in range(nd))
    else:
        settings["scale_factor"] = tuple(r.choice(FACTORS) for _ in range(nd))
        settings["recompute_scale_factor"] = r.choice([None, True, False])
    if mode.endswith(("linear", "cubic")):
        settings["align_corners"] = r.choice([None, True, False])
    if mode.startswith("bi"):
        settings["antialias"] = r.choice([True, False])
    dtype = r.choice([np.float32, np.float64])
    return np.random.default_rng(seed).normal(size=(2, 2, *spatial)).astype(dtype), settings


def result(function: Any, x: Any, settings: dict[str, Any]) -> Any:
    try:
        return function(x, **settings)
    except (RuntimeError, ValueError) as error:
        return type(error)


@pytest.mark.parametrize("start", range(0, 400, 40))
def test_interpolate(start: int) -> None:
    for seed in range(start, start + 40):
        x, settings = drawn(seed)
        ours, theirs = (library.from_numpy(x.copy()) for library in (chainrule, torch))
        ours.requires_grad_()
        theirs.requires_grad_()
        a = result(interpolate, ours, settings)
        b = result(torch.nn.functional.interpolate, theirs, settings)
        if isinstance(b, type):
            assert a is b, settings
            continue
        assert str(a.dtype).rpartition(".")[2] == str(b.dtype).rpartition(".")[2]
        tolerance = 1e-11 if x.dtype == np.float64 else 1e-5
        assert_close(a.detach(), b.detach(), rtol=tolerance, atol=tolerance)
        if 0 in b.shape or not consistent(x, settings, tuple(b.shape)):
            continue
        g = np.random.default_rng(0).normal(size=tuple(b.shape)).astype(x.dtype)
        a.backward(chainrule.from_numpy(g))
        b.backward(torch.from_numpy(g))
        assert_close(ours.grad, theirs.grad, rtol=10 * tolerance, atol=10 * tolerance)


def consistent(x: np.ndarray, settings: dict[str, Any], shape: tuple[int, ...]) -> bool:
    """Whether PyTorch's backward pass belongs to its forward pass. Where a size stays or doubles
    although the factor is not exactly 1 or 2, "nearest", "bicubic" and antialiasing forget the
    factor on one of the two ways."""
    forgetful = settings["mode"] in ("nearest", "bicubic") or settings.get("antialias")
    if not forgetful or settings.get("recompute_scale_factor"):
        return True
    factors = settings.get("scale_factor", ())
    sizes = zip(factors, x.shape[2:], shape[2:], strict=False)
    return not any(n_out in (n, 2 * n) and f * n != n_out for f, n, n_out in sizes)

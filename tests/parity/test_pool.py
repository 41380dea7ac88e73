"""Pooling against PyTorch over random settings: value, shape, indices, gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers import assert_close
from parity.compare import assert_agree, random_choice, refused_by_both

import chainrule

torch = pytest.importorskip("torch")
F = torch.nn.functional

LARGEST = {1: 14, 2: 9, 3: 7}


def image(r: np.random.Generator, nd: int) -> np.ndarray:
    """An input, sometimes without a batch, sometimes with many equal values."""
    lead = (2,) if r.random() < 0.15 else (int(r.integers(1, 3)), 2)
    x = r.normal(size=(*lead, *r.integers(3, LARGEST[nd], size=nd)))
    return np.round(x) if r.random() < 0.3 else x


def compare(name: str, x: np.ndarray, *args: Any, **kwargs: Any) -> None:
    def ours(x: Any) -> Any:
        return getattr(chainrule, name)(x, *args, **kwargs)

    def theirs(x: Any) -> Any:
        return getattr(F, name)(x, *args, **kwargs)

    if refused_by_both(ours, theirs, [x]):
        return
    if kwargs.get("return_indices"):
        index = ours(chainrule.as_tensor(x))[1]
        assert_close(index, theirs(torch.from_numpy(x))[1])
        assert index.dtype is chainrule.int64
        assert_agree(lambda x: ours(x)[0], lambda x: theirs(x)[0], [x])
    else:
        assert_agree(ours, theirs, [x])


@pytest.mark.parametrize("seed", range(150))
def test_max_pool(seed: int) -> None:
    r = np.random.default_rng(seed)
    nd = seed % 3 + 1
    kernel = random_choice(r, 1, 5, nd)
    args = (
        random_choice(r, 1, 4, nd) if r.random() < 0.7 else None,
        random_choice(r, 0, 2, nd),
        random_choice(r, 1, 3, nd),
        bool(r.integers(0, 2)),
    )
    compare(f"max_pool{nd}d", image(r, nd), kernel, *args, return_indices=seed % 2 == 0)


@pytest.mark.parametrize("seed", range(150))
def test_avg_pool(seed: int) -> None:
    r = np.random.default_rng(1000 + seed)
    nd = seed % 3 + 1
    x, kernel = image(r, nd), random_choice(r, 1, 4, nd)
    settings: dict[str, Any] = {
        "stride": random_choice(r, 1, 4, nd) if r.random() < 0.7 else None,
        "padding": random_choice(r, 0, 2, nd),
        "ceil_mode": bool(r.integers(0, 2)),
        "count_include_pad": bool(r.integers(0, 2)),
    }
    if nd > 1 and r.random() < 0.3:
        settings["divisor_override"] = int(r.integers(1, 7))
    compare(f"avg_pool{nd}d", x, kernel, **settings)


@pytest.mark.parametrize("seed", range(90))
def test_adaptive_pools(seed: int) -> None:
    r = np.random.default_rng(2000 + seed)
    nd = seed % 3 + 1
    x, size = image(r, nd), random_choice(r, 1, 8, nd)
    compare(f"adaptive_avg_pool{nd}d", x, size)
    compare(f"adaptive_max_pool{nd}d", x, size, return_indices=seed % 2 == 0)


@pytest.mark.parametrize("seed", range(45))
def test_lp_pool(seed: int) -> None:
    r = np.random.default_rng(3000 + seed)
    nd = seed % 3 + 1
    kernel = random_choice(r, 1, 4, nd) if nd > 1 else int(r.integers(1, 4))
    x = np.abs(image(r, nd)) + 0.5
    compare(f"lp_pool{nd}d", x, float(r.integers(1, 4)), kernel, ceil_mode=bool(r.integers(0, 2)))


@pytest.mark.parametrize("seed", range(60))
def test_max_unpool(seed: int) -> None:
    """Of windows side by side, in derivatives too; of overlapping ones in value."""
    r = np.random.default_rng(4000 + seed)
    nd = seed % 3 + 1
    x, kernel, stride = image(r, nd), int(r.integers(2, 4)), int(r.integers(1, 4))
    pooled, index = getattr(F, f"max_pool{nd}d")(
        torch.from_numpy(x), kernel, stride, return_indices=True
    )
    settings = {"output_size": x.shape[-nd:]} if r.random() < 0.5 else {}
    name = f"max_unpool{nd}d"

    def ours(y: Any) -> Any:
        places = chainrule.as_tensor(index.numpy())
        return getattr(chainrule, name)(y, places, kernel, stride, **settings)

    def theirs(y: Any) -> Any:
        return getattr(F, name)(y, index, kernel, stride, **settings)

    values = pooled.numpy()
    if refused_by_both(ours, theirs, [values]):
        return
    if stride >= kernel:
        assert_agree(ours, theirs, [values])
    else:
        assert_close(ours(chainrule.as_tensor(values)), theirs(pooled))


@pytest.mark.parametrize("settings", [(2, 1, 0), (3, 2, 1), (5, 5, 2), (4, 1, 2)])
def test_nan_and_infinity(settings: tuple[int, int, int]) -> None:
    nan, inf = np.nan, np.inf
    row = [1.0, nan, 3.0, nan, 0.0, 2.0, -inf, -inf, -inf, -inf, inf, 1.0, nan]
    x = np.array([row] * 5)[None]
    for name, value in (("max_pool1d", x[:, 0]), ("max_pool2d", x)):
        ours = getattr(chainrule, name)(chainrule.as_tensor(value), *settings, return_indices=True)
        theirs = getattr(F, name)(torch.from_numpy(value), *settings, return_indices=True)
        assert_close(list(ours), list(theirs))

"""Pooling and padding layers: the figures of the courses, and errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers import assert_close

import chainrule
from chainrule import nn


def image(*shape: int) -> chainrule.Tensor:
    return chainrule.tensor(np.random.default_rng(0).normal(size=shape))


def test_max_pooling_is_the_maximum_of_the_patch() -> None:
    """L10 and erratum 9: 2x2 halves rows and columns, and nothing is summed."""
    x = image(2, 3, 8, 6)
    patches = x.numpy().reshape(2, 3, 4, 2, 3, 2)
    out = nn.MaxPool2d(2)(x)
    assert out.shape == (2, 3, 4, 3)
    assert_close(out, patches.max(axis=(3, 5)))


def test_average_pooling_is_the_mean_of_the_patch() -> None:
    """L09: no parameters, and channels stay apart."""
    x = image(2, 3, 8, 6)
    layer = nn.AvgPool2d(2)
    assert not list(layer.parameters())
    assert_close(layer(x), x.numpy().reshape(2, 3, 4, 2, 3, 2).mean(axis=(3, 5)))


def test_dilated_average_by_hand() -> None:
    x = image(1, 1, 7)
    out = nn.AvgPool1d(3, stride=1, dilation=2)(x)
    v = x.numpy()[0, 0]
    assert_close(out[0, 0], np.array([(v[i] + v[i + 2] + v[i + 4]) / 3 for i in range(3)]))
    assert repr(nn.AvgPool2d(2, dilation=2)).endswith("padding=0, dilation=2)")


def test_lp_pooling_goes_from_sum_to_maximum() -> None:
    x = image(1, 2, 6, 6).abs()
    total = 4 * nn.AvgPool2d(2)(x)
    assert_close(nn.LPPool2d(1, 2)(x), total)
    assert_close(nn.LPPool2d(200, 2)(x), nn.MaxPool2d(2)(x), rtol=0.01)


def test_maxima_go_back() -> None:
    x = image(1, 2, 4, 6)
    values, indices = nn.MaxPool2d(2, return_indices=True)(x)
    back = nn.MaxUnpool2d(2)(values, indices)
    assert_close(back, np.where(np.isin(x.numpy(), values.numpy()), x.numpy(), 0))
    longer, where = nn.MaxPool1d(2, return_indices=True)(image(1, 5))
    assert nn.MaxUnpool1d(2)(longer, where).shape == (1, 4)
    assert nn.MaxUnpool1d(2)(longer, where, output_size=(5,)).shape == (1, 5)


@pytest.mark.parametrize(
    ("layer", "shape", "message"),
    [
        (nn.MaxPool2d(3, padding=2), (1, 8, 8), "max_pool2d: pad should be at most half"),
        (nn.AvgPool2d(5), (1, 4, 4), "avg_pool2d:.*output size is too small"),
        (nn.MaxPool2d(2), (8, 8), r"expected 3D \(unbatched\) or 4D"),
        (nn.AvgPool1d(2, stride=0), (1, 8), "non-positive stride is not supported"),
        (nn.AdaptiveAvgPool2d((2, 2, 2)), (1, 4, 4), "output_size must have 2 elements"),
        (nn.AvgPool2d(2, divisor_override=0), (1, 4, 4), "divisor must be not zero"),
    ],
)
def test_pools_refuse(layer: nn.Module, shape: Any, message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        layer(chainrule.ones(*shape))


def test_unpooling_refuses() -> None:
    x = chainrule.ones(1, 2)
    with pytest.raises(RuntimeError, match="shape of indices to be same"):
        nn.MaxUnpool1d(2)(x, chainrule.tensor([[0]]))
    with pytest.raises(ValueError, match="invalid output_size"):
        nn.MaxUnpool1d(2)(x, chainrule.tensor([[0, 2]]), output_size=(9,))


# --- padding --------------------------------------------------------------------------------------

MODES = {
    "Constant": {"mode": "constant", "constant_values": 2.5},
    "Zero": {"mode": "constant"},
    "Reflection": {"mode": "reflect"},
    "Replication": {"mode": "edge"},
    "Circular": {"mode": "wrap"},
}


@pytest.mark.parametrize("name", list(MODES))
@pytest.mark.parametrize("nd", [1, 2, 3])
def test_padding_as_numpy_does_it(name: str, nd: int) -> None:
    x = image(2, 2, *(4, 5, 3)[:nd])
    pairs = [(1, 2), (2, 0), (0, 2)][:nd]
    flat = [n for pair in reversed(pairs) for n in pair]
    value = (2.5,) if name == "Constant" else ()
    layer = getattr(nn, f"{name}Pad{nd}d")(flat, *value)
    assert_close(layer(x), np.pad(x.numpy(), [(0, 0), (0, 0), *pairs], **MODES[name]))


def test_negative_padding_crops() -> None:
    assert nn.ZeroPad2d((-1, 1, 0, -2))(chainrule.ones(1, 4, 4)).shape == (1, 2, 4)


def test_padding_refuses() -> None:
    with pytest.raises(ValueError, match=r"CircularPad1d: expected 2D or 3D input, got shape"):
        nn.CircularPad1d(1)(chainrule.ones(4))
    with pytest.raises(RuntimeError, match="padding size should be less than the corresponding"):
        nn.ReflectionPad1d(4)(chainrule.ones(1, 4))
    with pytest.raises(RuntimeError, match="wrapping around more than once"):
        nn.CircularPad1d(5)(chainrule.ones(1, 4))
    with pytest.raises(RuntimeError, match="ZeroPad2d: expected padding to be a single integer"):
        nn.ZeroPad2d((1, 2, 3))

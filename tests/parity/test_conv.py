"""Convolutions against PyTorch over random settings: value, shape, first and second derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from parity.compare import assert_agree, random_choice, refused_by_both

import chainrule

torch = pytest.importorskip("torch")
F = torch.nn.functional

# PyTorch warns of the copy it makes for an even kernel and padding="same".
pytestmark = pytest.mark.filterwarnings("ignore:Using padding='same'")


def operands(
    r: np.random.Generator, nd: int, groups: int, largest: int, transposed: bool
) -> list[np.ndarray]:
    """An input (sometimes without a batch), a weight and sometimes a bias."""
    c, o = (int(n) for n in r.integers(1, 4, size=2))
    size = [int(n) for n in r.integers(2 - transposed, largest, size=nd)]
    kernel = [int(n) for n in r.integers(1, 4, size=nd)]
    lead = [] if r.random() < 0.15 else [int(r.integers(1, 4))]
    shape = (groups * c, o, *kernel) if transposed else (groups * o, c, *kernel)
    inputs = [r.normal(size=(*lead, groups * c, *size)), r.normal(size=shape)]
    if r.random() < 0.5:
        inputs.append(r.normal(size=groups * o))
    return inputs


def compare(name: str, inputs: list[np.ndarray], settings: dict[str, Any]) -> None:
    def ours(*args: Any) -> Any:
        return getattr(chainrule, name)(*args, **settings)

    def theirs(*args: Any) -> Any:
        return getattr(F, name)(*args, **settings)

    if not refused_by_both(ours, theirs, inputs):
        assert_agree(ours, theirs, inputs)


@pytest.mark.parametrize("seed", range(270))
def test_convolution(seed: int) -> None:
    r = np.random.default_rng(seed)
    nd, groups = seed % 3 + 1, int(r.integers(1, 4))
    settings = {
        "stride": random_choice(r, 1, 4, nd),
        "padding": random_choice(r, 0, 3, nd),
        "dilation": random_choice(r, 1, 3, nd),
        "groups": groups,
    }
    if r.random() < 0.2:
        settings |= {"stride": 1, "padding": ("same", "valid")[seed % 2]}
    compare(f"conv{nd}d", operands(r, nd, groups, {1: 12, 2: 9, 3: 7}[nd], False), settings)


@pytest.mark.parametrize("seed", range(180))
def test_transposed_convolution(seed: int) -> None:
    r = np.random.default_rng(1000 + seed)
    nd, groups = seed % 3 + 1, int(r.integers(1, 4))
    settings = {
        "stride": random_choice(r, 1, 4, nd),
        "padding": random_choice(r, 0, 3, nd),
        "output_padding": random_choice(r, 0, 2, nd),
        "dilation": random_choice(r, 1, 4, nd),
        "groups": groups,
    }
    compare(f"conv_transpose{nd}d", operands(r, nd, groups, {1: 9, 2: 6, 3: 4}[nd], True), settings)


@pytest.mark.parametrize("seed", range(60))
def test_columns(seed: int) -> None:
    """unfold and fold."""
    r = np.random.default_rng(2000 + seed)
    settings = {
        "kernel_size": random_choice(r, 1, 4, 2),
        "stride": random_choice(r, 1, 4, 2),
        "padding": random_choice(r, 0, 3, 2),
        "dilation": random_choice(r, 1, 3, 2),
    }
    size = tuple(int(n) for n in r.integers(4, 9, size=2))
    x = r.normal(size=((2, 3, *size) if r.random() < 0.7 else (3, *size)))

    def ours(x: Any) -> Any:
        return chainrule.im2col(x, **settings)

    def theirs(x: Any) -> Any:
        return F.unfold(x, **settings)

    if refused_by_both(ours, theirs, [x]):
        return
    assert_agree(ours, theirs, [x])
    columns = r.normal(size=theirs(torch.from_numpy(x)).shape)
    assert_agree(
        lambda c: chainrule.col2im(c, size, **settings),
        lambda c: F.fold(c, size, **settings),
        [columns],
    )


def test_output_sizes() -> None:
    """The formula over 405 settings."""
    checked = 0
    for size in range(6, 15):
        for kernel in (1, 2, 3, 4, 5):
            for stride in (1, 2, 3):
                for padding, dilation in ((0, 1), (1, 1), (2, 1)):
                    x, w = torch.zeros(1, 1, size), torch.zeros(1, 1, kernel)
                    out = F.conv1d(x, w, stride=stride, padding=padding, dilation=dilation)
                    ours = chainrule.conv_output_size(size, kernel, stride, padding, dilation)
                    assert ours == out.shape[2]
                    checked += 1
    assert checked == 405

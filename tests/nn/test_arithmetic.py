"""Convolution arithmetic: the courses' numbers, and networks that agree with them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import chainrule
from chainrule import models, nn
from chainrule.nn.layers import arithmetic
from chainrule.nn.layers.arithmetic import (
    conv_cost,
    conv_output_size,
    conv_transpose_output_size,
    dense_weights,
    effective_kernel_size,
    half_width,
    receptive_field,
    shared_weights,
    stack_cost,
)


def test_half_width() -> None:
    """L14: l = (R - 1) / 2; as padding it keeps the size."""
    assert (half_width(3), half_width(5)) == (1, 2)
    for k, d in ((3, 1), (5, 1), (3, 2), (7, 3), (4, 2)):
        assert conv_output_size(40, k, padding=half_width(k, d), dilation=d) == 40
    with pytest.raises(ValueError, match="half_width: only a kernel that spans an odd number"):
        half_width(4)


def test_effective_kernel_size() -> None:
    assert [effective_kernel_size(3, d) for d in (1, 2, 3)] == [3, 5, 7]
    assert conv_output_size(20, 3, dilation=3) == conv_output_size(20, 7)


def test_shared_weights() -> None:
    """L15: 20 kernels of 5x5 have 520 weights, a dense layer 784-30 has 23,550."""
    assert shared_weights(1, 20, 5) == 520
    assert dense_weights(784, 30) == 23550


@pytest.mark.parametrize(
    "settings",
    [(1, 20, 5), (3, 6, 5), (4, 6, (3, 2), 2), (4, 8, 3, 4, False)],
)
def test_counts_are_those_of_layers(settings: Any) -> None:
    inputs, outputs, kernel, groups, bias = (
        (*settings, 1, True)[:5] if len(settings) == 3 else (*settings, True)[:5]
    )
    layer = nn.Conv2d(inputs, outputs, kernel, groups=groups, bias=bias)
    count = sum(p.numel() for p in layer.parameters())
    assert shared_weights(inputs, outputs, kernel, groups, bias) == count
    dense = nn.Linear(inputs, outputs, bias=bias)
    assert dense_weights(inputs, outputs, bias) == sum(p.numel() for p in dense.parameters())


def test_cost() -> None:
    """L16: the sum of C_(l-1) C_l k^2 m^2; each multiplication makes one entry of the columns."""
    assert conv_cost(1, 1, 3, 10) == 900
    assert conv_cost(4, 6, (3, 2), (5, 7), groups=2) == 2 * 6 * 6 * 35
    assert conv_cost(2, 3, 3, 10, nd=1) == 180
    net = nn.Sequential(
        nn.Conv2d(3, 6, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Sequential(nn.Conv2d(6, 16, 3, stride=2, padding=1), nn.ReLU()),
        nn.Conv2d(16, 8, 4, padding="same"),
    )
    assert stack_cost(net, 32) == 3 * 6 * 25 * 28**2 + 6 * 16 * 9 * 7**2 + 16 * 8 * 16 * 7**2


def test_cost_of_networks_that_are_no_stacks() -> None:
    """The shortcut of a strided block sees its input, not what the block made of it."""
    shortcut = nn.Sequential(nn.Conv2d(4, 8, 1, stride=2, bias=False), nn.BatchNorm2d(8))
    block = nn.ResidualBlock(4, 8, 2, shortcut).train()
    before = block.state_dict()
    before = {name: value.clone() for name, value in before.items()}
    assert stack_cost(block, 16) == 8**2 * (4 * 8 * 9 + 8 * 8 * 9 + 4 * 8)
    assert block.training
    assert all(chainrule.equal(v, before[k]) for k, v in block.state_dict().items())
    assert stack_cost(models.LeNet(), 32) == 117600 + 240000 + 48000
    assert stack_cost(models.ResNet(8, width=4), 32) > 0
    assert stack_cost([nn.ConvTranspose2d(2, 3, 4, stride=2)], 5) == 25 * 2 * 3 * 16
    assert stack_cost([nn.Conv2d(1, 2, 3), (2, 2), nn.Conv2d(2, 1, 3)], 8) == 36 * 18 + 18
    assert stack_cost([(3,), (2, 2)], 8) == 0
    with pytest.raises(ValueError, match="does not know its channels yet"):
        stack_cost(nn.LazyConv2d(3, 3), 8)


def test_transposed_sizes_undo() -> None:
    for k, s, p in ((4, 2, 1), (3, 1, 1), (5, 3, 2)):
        up = conv_transpose_output_size(14, k, s, p)
        assert conv_output_size(up, k, s, p) == 14


# --- receptive fields -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("layers", "size"),
    [
        ([(3,)], 3),
        ([(3,), (3,)], 5),
        ([(3,), (3,), (3,)], 7),
        ([(3,), (2, 2), (3,)], 8),  # grows with pooling,
        ([(3, 2), (3,)], 7),  # with stride
        ([(3, 1, 0, 1), (3, 1, 0, 2), (3, 1, 0, 4)], 15),  # and with dilation
        ([], 1),
    ],
)
def test_receptive_field_by_hand(layers: Any, size: int) -> None:
    """L17"""
    assert receptive_field(layers).size == size


def positive(net: nn.Module) -> nn.Module:
    """With positive weights no two paths cancel."""
    for p in net.parameters():
        p.detach().fill_(1.0)
    return net


STACKS = {
    "lenet": [nn.Conv1d(1, 2, 5, padding=2), nn.AvgPool1d(2), nn.Conv1d(2, 2, 5), nn.AvgPool1d(2)],
    "strided": [nn.Conv1d(1, 2, 3, stride=2, padding=1), nn.Conv1d(2, 1, 3, stride=2, padding=1)],
    "dilated": [nn.Conv1d(1, 1, 3, dilation=4), nn.Conv1d(1, 1, 2, dilation=3, padding=1)],
    "same": [nn.Conv1d(1, 1, 4, padding="same"), nn.LPPool1d(1, 3), nn.Conv1d(1, 1, 2)],
    "valid": [nn.Conv1d(1, 1, 4, padding="valid"), nn.Identity(), nn.MaxPool1d(1)],
}


@pytest.mark.parametrize("name", list(STACKS))
def test_receptive_field_is_where_the_gradient_is(name: str) -> None:
    net = positive(nn.Sequential(*STACKS[name]))
    field = receptive_field(net)
    for unit in (4, 5):
        x = chainrule.ones(1, 60, requires_grad=True)
        net(x)[0, unit].backward()
        seen = np.flatnonzero(x.grad.numpy())
        assert seen[0] == field.start + unit * field.stride
        assert seen[-1] - seen[0] + 1 == field.size


def test_receptive_field_of_two_dimensions() -> None:
    wide = receptive_field([nn.Conv2d(1, 1, (3, 5)), nn.MaxPool2d((2, 1))])
    assert [f.size for f in wide] == [4, 5]
    assert [f.stride for f in wide] == [2, 1]
    assert receptive_field([((3, 5), 1)]) == ((3, 1, 0), (5, 1, 0))
    assert receptive_field(nn.Sequential(nn.Conv2d(1, 6, 5), nn.MaxPool2d(2))).size == 6


def test_refusals() -> None:
    with pytest.raises(ValueError, match="receptive_field: Linear.*sees its whole input"):
        receptive_field([nn.Linear(3, 2)])
    with pytest.raises(ValueError, match="AdaptiveAvgPool2d.*sees its whole input"):
        receptive_field([nn.AdaptiveAvgPool2d(1)])
    with pytest.raises(ValueError, match="ConvTranspose1d.*enlarges its input"):
        receptive_field([nn.ConvTranspose1d(1, 1, 2)])
    with pytest.raises(ValueError, match="differ in their numbers of dimensions"):
        receptive_field([nn.Conv1d(1, 1, 2), nn.Conv2d(1, 1, 2)])
    with pytest.raises(TypeError, match="expected a layer or .*got 3"):
        receptive_field([3])
    assert arithmetic.receptive_field is receptive_field

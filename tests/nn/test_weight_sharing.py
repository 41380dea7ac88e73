"""Hard weight sharing: one weight in many places gets the sum of their gradients (R12)."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import chainrule
from chainrule import nn

DOUBLE = chainrule.float64


def places(layer: nn.Conv2d, size: int) -> tuple[np.ndarray, np.ndarray]:
    """A dense layer that computes the convolution: which weight stands where, and its matrix.

    The first array has for each connection the number of the weight of the kernel, or -1.
    """
    k, stride, pad = layer.kernel_size[0], layer.stride[0], int(layer.padding[0])
    out = (size + 2 * pad - k) // stride + 1
    which = np.full((layer.out_channels, out, out, layer.in_channels, size, size), -1)
    numbers = np.arange(layer.weight.numel()).reshape(layer.weight.shape)
    for a, b, i, j in itertools.product(range(out), range(out), range(k), range(k)):
        row, column = a * stride + i - pad, b * stride + j - pad
        if 0 <= row < size and 0 <= column < size:
            which[:, a, b, :, row, column] = numbers[:, :, i, j]
    which = which.reshape(layer.out_channels * out * out, -1)
    values = layer.weight.detach().numpy().ravel()
    return which, np.where(which >= 0, values[which], 0.0)


@pytest.mark.parametrize(("stride", "padding"), [(1, 0), (2, 1)])
def test_a_convolution_is_a_dense_layer_with_shared_weights(stride: int, padding: int) -> None:
    chainrule.manual_seed(0)
    conv = nn.Conv2d(2, 3, 3, stride, padding).double()
    which, matrix = places(conv, 6)
    dense = nn.Linear(matrix.shape[1], matrix.shape[0]).double()
    x = chainrule.randn(4, 2, 6, 6, dtype=DOUBLE)
    out = conv(x)
    spots = out.shape[2] * out.shape[3]
    with chainrule.no_grad():
        dense.weight.copy_(chainrule.tensor(matrix))
        dense.bias.copy_(conv.bias.repeat_interleave(spots))
    flat = dense(x.flatten(1))
    np.testing.assert_allclose(flat.detach().numpy(), out.detach().flatten(1).numpy(), atol=1e-12)
    direction = chainrule.randn(*out.shape, dtype=DOUBLE)
    (out * direction).sum().backward()
    (flat * direction.flatten(1)).sum().backward()
    grads = dense.weight.grad.numpy()
    summed = [grads[which == n].sum() for n in range(conv.weight.numel())]
    np.testing.assert_allclose(conv.weight.grad.numpy().ravel(), summed, rtol=1e-10)
    by_channel = dense.bias.grad.reshape(3, spots).sum(1)
    np.testing.assert_allclose(conv.bias.grad.numpy(), by_channel.numpy(), rtol=1e-10)
    used = int((which >= 0).sum())
    assert conv.weight.numel() == 54
    assert used == (864 if stride == 1 else 384)  # connections share them


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_a_recurrent_layer_is_a_deep_network_with_shared_weights(kind: str) -> None:
    """Unfolded in time, with copies of the weights for each step."""
    chainrule.manual_seed(0)
    layer = getattr(nn, kind)(3, 4).double()
    cells = [getattr(nn, f"{kind}Cell")(3, 4).double() for _ in range(5)]
    for cell in cells:
        cell.load_state_dict({k.removesuffix("_l0"): v for k, v in layer.state_dict().items()})
    x = chainrule.randn(5, 2, 3, dtype=DOUBLE)
    state: Any = None
    outputs = []
    for t, cell in enumerate(cells):
        state = cell(x[t], state)
        outputs.append(state[0] if kind == "LSTM" else state)
    out, unfolded = layer(x)[0], chainrule.stack(outputs)
    np.testing.assert_allclose(out.detach().numpy(), unfolded.detach().numpy(), atol=1e-12)
    direction = chainrule.randn(*out.shape, dtype=DOUBLE)
    (out * direction).sum().backward()
    (unfolded * direction).sum().backward()
    for name, p in layer.named_parameters():
        copies = [cell.get_parameter(name.removesuffix("_l0")).grad for cell in cells]
        total = sum(g.numpy() for g in copies)
        np.testing.assert_allclose(p.grad.numpy(), total, rtol=1e-9, atol=1e-12)
        assert all(float(g.abs().max()) > 0 for g in copies[1:])


def test_sharing_by_assignment_survives_an_update() -> None:
    """Two layers with one weight: the sum of both gradients, and still one weight afterwards."""
    chainrule.manual_seed(0)
    tied = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 3)).double()
    free = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 3)).double()
    tied[2].weight = tied[0].weight
    with chainrule.no_grad():
        for a, b in zip(free, tied, strict=True):
            if isinstance(a, nn.Linear):
                a.weight.copy_(b.weight)
                a.bias.copy_(b.bias)
    x = chainrule.randn(6, 3, dtype=DOUBLE)
    for net in (tied, free):
        net(x).square().sum().backward()
    both = free[0].weight.grad + free[2].weight.grad
    np.testing.assert_allclose(tied[0].weight.grad.numpy(), both.numpy(), rtol=1e-12)
    assert len(list(tied.parameters())) == 3
    optimizer = chainrule.optim.SGD(tied.parameters(), lr=0.1)
    before = tied[0].weight.detach().clone()
    optimizer.step()
    np.testing.assert_allclose(tied[2].weight.detach().numpy(), (before - 0.1 * both).numpy())
    assert tied[2].weight is tied[0].weight

"""From images (N, C, H, W) to rows (N, -1): the batch stays, channels come one after another."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule
from chainrule import nn, tensor


def images(n: int, c: int, h: int, w: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(n, c, h, w))


def test_a_row_has_all_channels_of_its_image_one_after_another() -> None:
    x = images(2, 3, 4, 5)
    rows = nn.Flatten()(tensor(x)).numpy()
    assert rows.shape == (2, 60)
    for n in range(2):
        for c in range(3):
            np.testing.assert_array_equal(rows[n, 20 * c : 20 * c + 20], x[n, c].ravel())
    back = nn.Unflatten(1, (3, 4, 5))(tensor(rows))
    np.testing.assert_array_equal(back.numpy(), x)


def test_the_gradient_of_a_row_goes_back_to_its_image() -> None:
    x = tensor(images(2, 3, 4, 5)).requires_grad_()
    weight = np.random.default_rng(1).normal(size=(2, 60))
    (nn.Flatten()(x) * tensor(weight)).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), weight.reshape(2, 3, 4, 5))


@pytest.mark.parametrize(
    ("dims", "shape"),
    [((1, -1), (2, 60)), ((0, -1), (120,)), ((2, 3), (2, 3, 20)), ((1, 2), (2, 12, 5))],
)
def test_which_dimensions_are_joined(dims: tuple[int, int], shape: tuple[int, ...]) -> None:
    x = images(2, 3, 4, 5)
    found = nn.Flatten(*dims)(tensor(x))
    np.testing.assert_array_equal(found.numpy(), x.reshape(shape))


def test_samples_of_a_batch_do_not_meet() -> None:
    """What one image gives is the same alone and in a batch, through all layers of a classifier."""
    chainrule.manual_seed(0)
    net = nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(16, 2)
    ).double()
    x = tensor(images(5, 3, 6, 6))
    together = net(x).detach().numpy()
    alone = [net(x[i : i + 1])[0].detach().numpy() for i in range(5)]
    np.testing.assert_allclose(together, alone, rtol=1e-12)


def test_a_channel_more_or_less_is_refused() -> None:
    with pytest.raises(RuntimeError, match="3"):
        nn.Conv2d(3, 4, 3)(chainrule.zeros(2, 1, 6, 6))


def test_channels_are_the_second_dimension() -> None:
    """A kernel of 1 by 1 is a matrix on the channels of every pixel."""
    x = images(2, 3, 4, 5)
    layer = nn.Conv2d(3, 2, 1, bias=False).double()
    w = layer.weight.detach().numpy()[:, :, 0, 0]
    expected = np.einsum("oc,nchw->nohw", w, x)
    np.testing.assert_allclose(layer(tensor(x)).detach().numpy(), expected, rtol=1e-12)

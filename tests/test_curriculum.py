"""What courses state about convolutions, activations and losses, checked by formula.

Each test compares the library's answer with the formula, written out with NumPy.
``docs/coverage.md`` says which item is proven here; derivatives have ``test_derivatives.py``.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from helpers import assert_close

import chainrule
from chainrule.func import jacrev


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def tensor(array: Any, requires_grad: bool = False) -> chainrule.Tensor:
    return chainrule.tensor(np.asarray(array), requires_grad=requires_grad)


def sigma(a: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-a))


def softmax(a: np.ndarray) -> np.ndarray:
    e = np.exp(a - a.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


# --- convolution ----------------------------------------------------------------------------------


def correlate(
    x: np.ndarray, w: np.ndarray, stride: int = 1, padding: int = 0, dilation: int = 1
) -> np.ndarray:
    """s_ab = sum_c sum_ij w_ijc x_{a+i,b+j,c}, written as loops."""
    x = np.pad(x, ((0, 0), (0, 0), (padding,) * 2, (padding,) * 2))
    (n, _, height, width), (k, _, rows, columns) = x.shape, w.shape
    h = (height - (rows - 1) * dilation - 1) // stride + 1
    v = (width - (columns - 1) * dilation - 1) // stride + 1
    out = np.zeros((n, k, h, v))
    for a, b, i, j in itertools.product(range(h), range(v), range(rows), range(columns)):
        pixel = x[:, :, a * stride + i * dilation, b * stride + j * dilation]
        out[:, :, a, b] += pixel @ w[:, :, i, j].T
    return out


@pytest.mark.parametrize(
    ("stride", "padding", "dilation"), [(1, 0, 1), (2, 0, 1), (1, 1, 1), (1, 0, 2), (2, 1, 2)]
)
def test_convolution_by_loops(stride: int, padding: int, dilation: int) -> None:
    x, w, b = (
        rng().normal(size=(2, 3, 7, 8)),
        rng(1).normal(size=(4, 3, 3, 3)),
        rng(2).normal(size=4),
    )
    out = chainrule.conv2d(tensor(x), tensor(w), tensor(b), stride, padding, dilation)
    assert_close(out, correlate(x, w, stride, padding, dilation) + b[:, None, None])


def test_convolution_sizes() -> None:
    """28 x 28 with 5 x 5 gives 24 x 24; padding (k - 1)/2 keeps the size; stride 2 halves it."""
    x, w = chainrule.zeros(1, 1, 28, 28), chainrule.zeros(1, 1, 5, 5)
    assert chainrule.conv2d(x, w).shape == (1, 1, 24, 24)
    assert chainrule.conv2d(x, w, padding=2).shape == (1, 1, 28, 28)
    assert chainrule.conv2d(x, w, padding=2, stride=2).shape == (1, 1, 14, 14)


def test_convolution_output_size_formula() -> None:
    """o = floor((i + 2p - k - (k - 1)(d - 1))/s) + 1."""
    for i, k, p, s, d in itertools.product((7, 10), (1, 3), (0, 1, 2), (1, 2, 3), (1, 2)):
        out = chainrule.conv1d(chainrule.zeros(1, 1, i), chainrule.zeros(1, 1, k), None, s, p, d)
        size = (i + 2 * p - k - (k - 1) * (d - 1)) // s + 1
        assert out.shape[-1] == size
        assert chainrule.conv_output_size(i, k, s, p, d) == size


def test_convolution_in_one_dimension() -> None:
    """The true convolution is the correlation with the flipped kernel."""
    x, k = rng().normal(size=9), rng(1).normal(size=3)
    out = chainrule.conv1d(tensor(x)[None, None], tensor(k[::-1].copy())[None, None])
    assert_close(out[0, 0], np.convolve(x, k, mode="valid"))


def test_convolution_backward() -> None:
    """dL/dw correlates delta with x; dL/dx correlates padded delta with the flipped kernel."""
    x, w = rng().normal(size=(1, 1, 6, 6)), rng(1).normal(size=(1, 1, 3, 3))
    delta = rng(2).normal(size=(1, 1, 4, 4))
    leaves = [tensor(x, True), tensor(w, True)]
    chainrule.conv2d(*leaves).backward(tensor(delta))
    assert_close(leaves[0].grad, correlate(delta, w[:, :, ::-1, ::-1], padding=2))
    assert_close(leaves[1].grad, correlate(x, delta))


def test_transposed_convolution_is_the_adjoint() -> None:
    x, w, y = (
        rng().normal(size=(1, 2, 7, 7)),
        rng(1).normal(size=(3, 2, 3, 3)),
        rng(2).normal(size=(1, 3, 3, 3)),
    )
    forward = correlate(x, w, stride=2)
    back = chainrule.conv_transpose2d(tensor(y), tensor(w), stride=2)
    assert (forward * y).sum() == pytest.approx((x * back.numpy()).sum())
    flipped = correlate(y, w.transpose(1, 0, 2, 3)[:, :, ::-1, ::-1], padding=2)
    assert_close(chainrule.conv_transpose2d(tensor(y), tensor(w)), flipped)


def test_pooling_by_loops() -> None:
    x = rng().normal(size=(2, 3, 6, 8))
    patches = x.reshape(2, 3, 3, 2, 4, 2).transpose(0, 1, 2, 4, 3, 5).reshape(2, 3, 3, 4, 4)
    assert_close(chainrule.avg_pool2d(tensor(x), 2), patches.mean(axis=-1))
    assert_close(chainrule.max_pool2d(tensor(x), 2), patches.max(axis=-1))


# --- activations ----------------------------------------------------------------------------------


def test_sigmoid_and_tanh() -> None:
    """Values, derivatives s(1 - s) and 1 - tanh^2, the largest derivatives, and how they relate."""
    x = np.linspace(-4, 4, 81)
    for function, value, slope, largest in (
        (chainrule.sigmoid, sigma(x), sigma(x) * (1 - sigma(x)), 0.25),
        (chainrule.tanh, np.tanh(x), 1 - np.tanh(x) ** 2, 1.0),
    ):
        t = tensor(x, True)
        out = function(t)
        out.sum().backward()
        assert_close(out, value)
        assert_close(t.grad, slope)
        assert t.grad.max().item() == largest
    assert_close(chainrule.sigmoid(tensor(x)), (np.tanh(x / 2) + 1) / 2)
    assert_close(chainrule.tanh(tensor(x)), 2 * sigma(2 * x) - 1)


def test_steps() -> None:
    """0 below zero and 1 from there on; the sign with 0 at zero. Both are flat."""
    x = tensor([-2.0, 0.0, 3.0], True)
    one = tensor(1.0)
    assert chainrule.heaviside(x.detach(), one).tolist() == [0.0, 1.0, 1.0]
    assert chainrule.sign(x).tolist() == [-1.0, 0.0, 1.0]
    chainrule.sign(x).sum().backward()
    assert x.grad.tolist() == [0.0, 0.0, 0.0]


def test_softplus() -> None:
    """ln(1 + e^x), whose derivative is the sigmoid; no overflow far out."""
    x = np.linspace(-5, 5, 21)
    t = tensor(x, True)
    out = chainrule.softplus(t)
    out.sum().backward()
    assert_close(out, np.log1p(np.exp(x)))
    assert_close(t.grad, sigma(x))
    assert chainrule.softplus(tensor([-1000.0, 1000.0])).tolist() == [0.0, 1000.0]


def test_softmax_jacobian() -> None:
    """J_ij = p_i (delta_ij - p_j); the outputs sum to 1."""
    s = rng().normal(size=5)
    p = softmax(s)
    out = chainrule.softmax(tensor(s), dim=0)
    assert_close(out, p)
    assert out.sum().item() == pytest.approx(1)
    jacobian = jacrev(lambda t: chainrule.softmax(t, dim=0))(tensor(s))
    assert_close(jacobian, np.diag(p) - np.outer(p, p))


# --- losses ---------------------------------------------------------------------------------------


def test_binary_cross_entropy() -> None:
    """-(y log a + (1 - y) log(1 - a)); through the sigmoid its gradient is a - y."""
    s, y = rng().normal(size=6), np.array([0.0, 1, 1, 0, 1, 0])
    a = sigma(s)
    t = tensor(s, True)
    loss = chainrule.binary_cross_entropy(chainrule.sigmoid(t), tensor(y), reduction="sum")
    loss.backward()
    assert_close(loss, -(y * np.log(a) + (1 - y) * np.log(1 - a)).sum())
    assert_close(t.grad, a - y)


def test_categorical_cross_entropy() -> None:
    """-sum_k y_k log a_k, with labels and with one-hot targets; its gradient is a - y."""
    s, labels = rng().normal(size=(5, 3)), np.array([0, 2, 1, 1, 0])
    y, a = np.eye(3)[labels], softmax(s)
    for target in (tensor(labels), tensor(y)):
        t = tensor(s, True)
        loss = chainrule.cross_entropy(t, target, reduction="sum")
        loss.backward()
        assert_close(loss, -(y * np.log(a)).sum())
        assert_close(t.grad, a - y)


def test_negative_log_likelihood_of_a_class() -> None:
    """-ln sigma_c of the class c that is the case."""
    s, labels = rng().normal(size=(5, 3)), np.array([0, 2, 1, 1, 0])
    log_p = chainrule.log_softmax(tensor(s), dim=1)
    expected = -np.log(softmax(s))[np.arange(5), labels]
    assert_close(chainrule.nll_loss(log_p, tensor(labels), reduction="none"), expected)


def test_cross_entropy_from_logits_is_stable() -> None:
    logits = tensor([[1000.0, 0.0], [0.0, -1000.0]], True)
    loss = chainrule.cross_entropy(logits, tensor([1, 0]))
    loss.backward()
    assert loss.item() == 500.0
    assert logits.grad.tolist() == [[0.5, -0.5], [0.0, 0.0]]


# --- what the examples of the courses use of a framework ------------------------------------------


def test_gradient_bookkeeping() -> None:
    w = chainrule.tensor([1.0, 2.0], requires_grad=True)
    y = (w * 3).sum()
    assert w.is_leaf
    assert w.grad is None
    assert not y.is_leaf
    assert y.grad_fn is not None
    y.backward()
    (w * w).sum().backward()
    assert w.grad.tolist() == [5.0, 7.0]
    w.grad.zero_()
    assert w.grad.tolist() == [0.0, 0.0]
    with chainrule.no_grad():
        w -= 0.5 * chainrule.ones(2)
        assert not (w * 2).requires_grad
    assert w.tolist() == [0.5, 1.5]
    assert w.requires_grad


def test_seed_repeats() -> None:
    chainrule.manual_seed(42)
    first = [chainrule.randn(3).tolist(), chainrule.rand(2).tolist()]
    chainrule.manual_seed(42)
    assert [chainrule.randn(3).tolist(), chainrule.rand(2).tolist()] == first


def test_half_precision_and_device() -> None:
    x = chainrule.ones(3, dtype=chainrule.float16, device="cpu", requires_grad=True)
    (x * 2).sum().backward()
    assert x.grad.dtype is chainrule.float16
    assert x.to(chainrule.float64).dtype is chainrule.float64
    assert x.cpu().device == chainrule.device("cpu")


def test_shapes_as_in_the_examples() -> None:
    x = chainrule.arange(24.0).view(2, 3, 4)
    assert x.unsqueeze(1).shape == (2, 1, 3, 4)
    assert x.flatten(1).shape == (2, 12)
    assert chainrule.concatenate([x, x], dim=1).shape == (2, 6, 4)
    assert x.flatten(1).argmax(dim=1).tolist() == [11, 11]
    assert x.norm().item() == pytest.approx(np.linalg.norm(np.arange(24.0)))


def test_numpy_there_and_back() -> None:
    a = np.ones((2, 2), "float32")
    t = chainrule.from_numpy(a).requires_grad_()
    out = (t * 2).detach().cpu().numpy()
    assert out.dtype == np.float32
    assert_close(out, 2 * a)
    assert np.shares_memory(t.detach().numpy(), a)


def test_one_hot() -> None:
    labels = np.array([2, 0, 1, 2])
    assert_close(chainrule.one_hot(tensor(labels)), np.eye(3, dtype="int64")[labels])


def test_training_loop_on_a_line() -> None:
    """Gradient descent with raw tensors ends at the least-squares line."""
    x = rng().uniform(-1, 1, size=50)
    y = 3 * x + 2 + rng(1).uniform(-0.1, 0.1, size=50)
    w, b = tensor(0.0, True), tensor(0.0, True)
    for _ in range(400):
        loss = ((w * tensor(x) + b - tensor(y)) ** 2).mean()
        loss.backward()
        with chainrule.no_grad():
            for p in (w, b):
                p -= 0.3 * p.grad
                p.grad.zero_()
    slope, intercept = np.polyfit(x, y, 1)
    assert [w.item(), b.item()] == pytest.approx([slope, intercept], abs=1e-9)

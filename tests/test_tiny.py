"""The product on a page: ten short programs that a user would write."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule
from chainrule import Tensor
from chainrule.func import grad, hessian, jvp, vmap


def test_gradient_of_a_function() -> None:
    x = chainrule.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = (x**2).sum() + x.prod()
    y.backward()
    assert y.item() == 20.0
    assert x.grad.tolist() == [8.0, 7.0, 8.0]


def test_linear_regression_by_sgd() -> None:
    r = np.random.default_rng(0)
    x = chainrule.from_numpy(r.uniform(-1, 1, 30))
    y = 3 * x + 2 + chainrule.from_numpy(r.uniform(-0.1, 0.1, 30))
    theta = chainrule.tensor([10.0, 5.0], dtype=chainrule.float64, requires_grad=True)
    for step in range(1000):
        loss = (theta[0] + theta[1] * x[step % 30] - y[step % 30]) ** 2
        (g,) = chainrule.autograd.grad(loss, theta)
        theta = (theta - 0.05 * g).detach().requires_grad_()
    assert theta.tolist() == pytest.approx([2.0, 3.0], abs=0.1)


def test_xor() -> None:
    chainrule.manual_seed(0)
    x = chainrule.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    target = chainrule.tensor([[0.0], [1.0], [1.0], [0.0]])
    w = [chainrule.randn(3, 4, requires_grad=True), chainrule.randn(5, 1, requires_grad=True)]
    one = chainrule.ones(4, 1)
    for _ in range(1500):
        hidden = chainrule.tanh(chainrule.cat([x, one], 1) @ w[0])
        out = chainrule.sigmoid(chainrule.cat([hidden, one], 1) @ w[1])
        chainrule.binary_cross_entropy(out, target).backward()
        with chainrule.no_grad():
            for p in w:
                p -= 0.5 * p.grad
                p.grad.zero_()
    assert out.round().tolist() == target.tolist()


def test_second_derivative() -> None:
    x = chainrule.tensor(0.5, dtype=chainrule.float64, requires_grad=True)
    (first,) = chainrule.autograd.grad(chainrule.sin(x**2), x, create_graph=True)
    first.backward()
    assert x.grad.item() == pytest.approx(2 * np.cos(0.25) - 4 * 0.25 * np.sin(0.25))


def test_hessian() -> None:
    def rosenbrock(p: Tensor) -> Tensor:
        return (1 - p[0]) ** 2 + 100 * (p[1] - p[0] ** 2) ** 2

    h = hessian(rosenbrock)(chainrule.tensor([1.0, 1.0]))
    assert h.tolist() == [[802.0, -400.0], [-400.0, 200.0]]


def test_jvp() -> None:
    a = chainrule.tensor([[1.0, 2.0], [3.0, 4.0]])
    x, direction = chainrule.tensor([0.0, 1.0]), chainrule.tensor([1.0, 0.0])
    value, tangent = jvp(lambda v: (a @ v).exp(), (x,), (direction,))
    assert tangent.tolist() == pytest.approx((value * a[:, 0]).tolist())


def test_gradient_of_every_sample() -> None:
    w = chainrule.tensor([1.0, -1.0])
    x = chainrule.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    y = chainrule.tensor([0.0, 1.0, 0.0])

    def loss(w: Tensor, x: Tensor, y: Tensor) -> Tensor:
        return ((w * x).sum() - y) ** 2

    each = vmap(grad(loss), in_dims=(None, 0, 0))(w, x, y)
    assert each.tolist() == [[-2.0, -4.0], [-12.0, -16.0], [-10.0, -12.0]]


def test_softmax_classifier() -> None:
    logits = chainrule.tensor([[2.0, 1.0, 0.0], [0.0, 0.0, 0.0]], requires_grad=True)
    labels = chainrule.tensor([0, 2])
    chainrule.cross_entropy(logits, labels).backward()
    expected = (logits.softmax(dim=1) - chainrule.eye(3)[labels]) / 2
    assert chainrule.allclose(logits.grad, expected)


def test_update_in_place() -> None:
    w = chainrule.tensor([1.0, 2.0], requires_grad=True)
    (w**2).sum().backward()
    with chainrule.no_grad():
        w -= 0.25 * w.grad
    assert w.tolist() == [0.5, 1.0]
    with pytest.raises(RuntimeError, match="leaf"):
        w.mul_(2)


def test_numpy_bridge() -> None:
    a = np.arange(6.0).reshape(2, 3)
    t = chainrule.from_numpy(a)
    t += 1
    a[0, 0] = 100
    assert t[0].tolist() == [100.0, 2.0, 3.0]
    assert np.shares_memory(t.numpy(), a)
    assert np.mean(t.numpy()) == t.mean().item()

"""A first look: exact derivatives in both modes and both orders, and a network that learns XOR."""

from __future__ import annotations

import math

import chainrule
from chainrule import Tensor
from chainrule.func import jvp

DOUBLE = chainrule.float64


def f(x: Tensor, y: Tensor) -> Tensor:
    return x**2 * chainrule.sin(y) + chainrule.exp(x * y)


def first_derivative(x: float, y: float) -> None:
    """The derivative of f with respect to x, found in four ways."""
    a = chainrule.tensor(x, dtype=DOUBLE, requires_grad=True)
    b = chainrule.tensor(y, dtype=DOUBLE)
    f(a, b).backward()

    constant = a.detach()
    _, forward = jvp(lambda t: f(t, b), (constant,), (chainrule.ones_like(constant),))

    by_hand = 2 * x * math.sin(y) + y * math.exp(x * y)
    step = 1e-6
    difference = (f(constant + step, b) - f(constant - step, b)) / (2 * step)

    print(f"f(x, y) = x^2 sin(y) + exp(x y) at x = {x}, y = {y}. df/dx is")
    print(f"  {by_hand:.12f}  by hand: 2 x sin(y) + y exp(x y)")
    print(f"  {a.grad.item():.12f}  reverse mode (backward)")
    print(f"  {forward.item():.12f}  forward mode (func.jvp)")
    print(f"  {difference.item():.12f}  finite difference, for comparison: right to about 9 digits")


def second_derivative(x: float, y: float) -> None:
    """The derivative of the derivative."""
    a = chainrule.tensor(x, dtype=DOUBLE, requires_grad=True)
    b = chainrule.tensor(y, dtype=DOUBLE)
    (first,) = chainrule.autograd.grad(f(a, b), a, create_graph=True)
    (second,) = chainrule.autograd.grad(first, a)
    by_hand = 2 * math.sin(y) + y**2 * math.exp(x * y)
    print("The gradient is a tensor with a history, so it can be differentiated again. d2f/dx2 is")
    print(f"  {by_hand:.12f}  by hand: 2 sin(y) + y^2 exp(x y)")
    print(f"  {second.item():.12f}  autograd.grad of the gradient")


def learn_xor(epochs: int = 1500, rate: float = 0.5) -> None:
    """A 2-4-1 network (tanh, sigmoid) by full-batch gradient descent, with raw tensors."""
    chainrule.manual_seed(0)
    x = chainrule.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    target = chainrule.tensor([[0.0], [1.0], [1.0], [0.0]])
    w1 = chainrule.randn(2, 4, requires_grad=True)
    b1 = chainrule.zeros(4, requires_grad=True)
    w2 = chainrule.randn(4, 1, requires_grad=True)
    b2 = chainrule.zeros(1, requires_grad=True)
    parameters = [w1, b1, w2, b2]

    def network() -> Tensor:
        return chainrule.sigmoid(chainrule.tanh(x @ w1 + b1) @ w2 + b2)

    print("A 2-4-1 network learns XOR by gradient descent, four samples at a time:")
    for epoch in range(epochs + 1):
        out = network()
        loss = -(target * out.log() + (1 - target) * (1 - out).log()).mean()
        if epoch % 500 == 0:
            print(f"  epoch {epoch:4}  cross-entropy {loss.item():.4f}")
        loss.backward()
        with chainrule.no_grad():
            for p in parameters:
                p -= rate * p.grad
                p.grad = None
    for inputs, p in zip(x.tolist(), network().flatten().tolist(), strict=True):
        print(f"  {inputs[0]:.0f} xor {inputs[1]:.0f} = {p:.3f}, so {round(p)}")


def main() -> None:
    first_derivative(1.3, 0.7)
    second_derivative(1.3, 0.7)
    learn_xor()


if __name__ == "__main__":
    main()

"""Linear, bilinear and second-order layers, and maxout."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import assert_close

import chainrule
from chainrule import nn
from chainrule.nn.functional import bilinear, maxout, second_order


def normal(*shape: int, seed: int = 0) -> chainrule.Tensor:
    return chainrule.tensor(np.random.default_rng(seed).normal(size=shape))


def test_dense_layer() -> None:
    """L01: n = W x + b for one x."""
    layer, x = nn.Linear(3, 2).double(), normal(3)
    w, b = layer.weight.detach().numpy(), layer.bias.detach().numpy()
    assert_close(layer(x).detach(), w @ x.numpy() + b)


def test_bilinear_form() -> None:
    x, y, w = normal(3), normal(4, seed=1), normal(2, 3, 4, seed=2)
    assert_close(bilinear(x, y, w), np.array([x.numpy() @ a @ y.numpy() for a in w.numpy()]))


def test_starts_are_uniform() -> None:
    chainrule.manual_seed(0)
    weight = nn.Bilinear(16, 30, 20).weight.detach().numpy()
    assert 0.24 < abs(weight).max() <= 0.25
    weight = nn.SecondOrder(9, 40).weight.detach().numpy()
    assert 0.099 < abs(weight).max() <= 0.1


def test_one_second_order_unit_computes_xor() -> None:
    """M41: x1 + x2 - 2 x1 x2, with a_0 = 1 for the linear terms."""
    weight = chainrule.tensor([[[0.0, 1.0, 1.0], [0.0, 0.0, -2.0], [0.0, 0.0, 0.0]]])
    x = chainrule.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    assert second_order(x, weight)[:, 0].tolist() == [0, 1, 1, 0]


def test_second_order_units_are_quadratic() -> None:
    """Their Hessian is w + w^T without the first row and column, everywhere."""
    layer = nn.SecondOrder(3, 1).double()
    hessian = chainrule.func.hessian(lambda x: layer(x)[0])(normal(3))
    w = layer.weight.detach().numpy()[0, 1:, 1:]
    assert_close(hessian.detach(), w + w.T)
    zero = layer(chainrule.zeros(3, dtype=chainrule.float64))
    assert_close(zero.detach(), layer.weight[:, 0, 0].detach())


def test_maxout_has_slope_one_at_the_maximum() -> None:
    """M42: rho(x) = max_i x_i; at a tie the first gets it all."""
    x = chainrule.tensor([1.0, 3.0, 2.0, 3.0], requires_grad=True)
    y = maxout(x)
    y.backward()
    assert y.item() == 3.0
    assert x.grad.tolist() == [0, 1, 0, 0]


def test_a_maxout_layer_is_convex_and_can_be_relu() -> None:
    layer = nn.Maxout(1, 1, num_pieces=2)
    layer.linear.weight.detach().copy_(chainrule.tensor([[1.0], [0.0]]))
    layer.linear.bias.detach().zero_()
    x = chainrule.linspace(-2, 2, 9).reshape(9, 1)
    assert_close(layer(x).detach(), np.maximum(x.numpy(), 0))
    many = nn.Maxout(1, 1, num_pieces=5)
    y = many(chainrule.linspace(-3, 3, 61).reshape(61, 1)).detach().numpy()[:, 0]
    assert (np.diff(y, 2) > -1e-6).all()


def test_refusals() -> None:
    w = chainrule.ones(2, 3, 4)
    with pytest.raises(RuntimeError, match="bilinear: the last dimension of input2 must be 4"):
        bilinear(chainrule.ones(5, 3), chainrule.ones(5, 3), w)
    with pytest.raises(RuntimeError, match="batch dimensions of input1 and input2 do not match"):
        bilinear(chainrule.ones(5, 3), chainrule.ones(6, 4), w)
    with pytest.raises(RuntimeError, match=r"weight must have shape \(out, in1, in2\)"):
        bilinear(chainrule.ones(5, 3), chainrule.ones(5, 4), w[0])
    with pytest.raises(ValueError, match="Bilinear: in1_features must be > 0, but got 0"):
        nn.Bilinear(0, 3, 2)
    with pytest.raises(
        RuntimeError, match="size 5 at dimension 1 .* not a multiple of num_pieces=2"
    ):
        maxout(chainrule.ones(3, 5), 2)
    with pytest.raises(ValueError, match="Maxout: num_pieces must be at least 1, got 0"):
        nn.Maxout(3, 2, num_pieces=0)


@pytest.mark.parametrize("name", ["input", "weight", "bias"])
@pytest.mark.parametrize("wrong", ["x", [1.0, 2.0], 3.0])
def test_linear_of_what_is_no_tensor(name: str, wrong: object) -> None:
    given = {
        "input": chainrule.ones(2, 3),
        "weight": chainrule.ones(4, 3),
        "bias": None,
        name: wrong,
    }
    with pytest.raises(TypeError, match=rf"linear\(\): argument '{name}' must be Tensor"):
        nn.functional.linear(**given)
    with pytest.raises(TypeError, match="argument 'input' must be Tensor, not NoneType"):
        nn.Sequential(nn.Linear(3, 4), nn.ReLU())(None)

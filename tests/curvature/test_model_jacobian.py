"""The Jacobians of a model, against formulas written out with NumPy and against backward passes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from helpers import assert_close

import chainrule
from chainrule import Tensor
from chainrule.curvature.hessian import gauss_newton, gauss_newton_product
from chainrule.curvature.information import fisher
from chainrule.curvature.jacobian import (
    input_jacobian,
    layer_jacobian,
    parameter_jacobian,
    per_output_hvp,
)
from chainrule.curvature.parameters import as_function, blocks, ravel
from chainrule.func import grad, hessian, jacrev, vmap


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape)


def tensor(array: Any) -> Tensor:
    return chainrule.tensor(np.asarray(array))


class Layer:
    """An object that keeps tensors as attributes, as a module does."""

    def __init__(self, weight: np.ndarray, bias: np.ndarray):
        self.weight = tensor(weight).requires_grad_()
        self.bias = tensor(bias).requires_grad_()

    def __call__(self, x: Tensor) -> Tensor:
        return x @ self.weight.T + self.bias


class Network:
    """tanh between two layers; the parameters have dotted names."""

    def __init__(self) -> None:
        self.first = Layer(normal(4, 3), normal(4, seed=1))
        self.last = Layer(normal(2, 4, seed=2), normal(2, seed=3))

    def named_parameters(self) -> Iterator[tuple[str, Tensor]]:
        for name in ("first", "last"):
            layer = getattr(self, name)
            yield f"{name}.weight", layer.weight
            yield f"{name}.bias", layer.bias

    def __call__(self, x: Tensor) -> Tensor:
        return self.last(self.first(x).tanh())


def by_backward(model: Network, x: Tensor) -> dict[str, np.ndarray]:
    """Each row of the parameter Jacobian from a backward pass of its own."""
    y = model(x)
    rows: dict[str, list[np.ndarray]] = {name: [] for name, _ in model.named_parameters()}
    for index in np.ndindex(*y.shape):
        for _, p in model.named_parameters():
            p.grad = None
        y[index].backward(retain_graph=True)
        for name, p in model.named_parameters():
            rows[name].append(p.grad.numpy())
    return {
        name: np.stack(rows[name]).reshape(*y.shape, *p.shape)
        for name, p in model.named_parameters()
    }


# --- parameters -----------------------------------------------------------------------------------


def test_parameter_jacobian_of_a_layer() -> None:
    """dh_k/dW_ij = f'(s_k) delta_ki x_j."""
    w, x = normal(3, 4), normal(4, seed=1)
    expected = np.einsum("k,ki,j->kij", 1 - np.tanh(w @ x) ** 2, np.eye(3), x)
    f = lambda p, x: (p @ x).tanh()  # noqa: E731
    for strategy in ("reverse-mode", "forward-mode"):
        got = parameter_jacobian(f, tensor(x), tensor(w), strategy=strategy)
        assert_close(got, expected)


def test_parameter_jacobian_of_a_scalar_loss_is_its_gradient() -> None:
    w, x = normal(4), normal(4, seed=1)
    got = parameter_jacobian(lambda p, x: (p @ x) ** 2, tensor(x), tensor(w))
    assert_close(got, 2 * (w @ x) * x)


@pytest.mark.parametrize("strategy", ["reverse-mode", "forward-mode"])
def test_parameter_jacobian_of_a_module(strategy: str) -> None:
    model, x = Network(), tensor(normal(5, 3, seed=4))
    got = parameter_jacobian(model, x, strategy=strategy)
    expected = by_backward(model, x)
    assert list(got) == ["first.weight", "first.bias", "last.weight", "last.bias"]
    for name, block in got.items():
        assert not block.requires_grad
        assert_close(block, expected[name])


def test_parameter_jacobian_in_denominator_layout() -> None:
    model, x = Network(), tensor(normal(5, 3, seed=4))
    numerator = parameter_jacobian(model, x)
    denominator = parameter_jacobian(model, x, layout="denominator")
    for name, block in denominator.items():
        assert_close(block, np.moveaxis(numerator[name].numpy(), (0, 1), (-2, -1)))
    assert denominator["first.weight"].shape == (4, 3, 5, 2)


def test_parameter_jacobian_in_chunks_and_of_some_parameters() -> None:
    model, x = Network(), tensor(normal(5, 3, seed=4))
    whole = parameter_jacobian(model, x)
    some = {"last.bias": model.last.bias.detach()}
    got = parameter_jacobian(model, x, some, chunk_size=3)
    assert list(got) == ["last.bias"]
    assert_close(got["last.bias"], whole["last.bias"].numpy())


def test_a_module_as_a_function() -> None:
    model, x = Network(), tensor(normal(5, 3, seed=4))
    function, params = as_function(model)
    assert all(not p.requires_grad for p in params.values())
    assert_close(function(params, x), model(x).detach())
    doubled = {name: 2 * p for name, p in params.items()}
    before = [p.detach().numpy().copy() for _, p in model.named_parameters()]
    g = grad(lambda p: function(p, x).sum())(doubled)
    assert_close(g["last.bias"], np.full(2, 5.0))
    assert_close([p.detach() for _, p in model.named_parameters()], before)
    assert all(p.requires_grad for _, p in model.named_parameters())


def test_a_module_goes_wherever_a_function_goes() -> None:
    model, x = Network(), tensor(normal(5, 3, seed=4))
    function, params = as_function(model)
    square = lambda z: (z**2).sum()  # noqa: E731
    for tool, arguments in (
        (gauss_newton, (square,)),
        (gauss_newton_product, (square, params)),
        (fisher, ("categorical",)),
        (per_output_hvp, (parameter_jacobian(model, x),)),
    ):
        got, expected = tool(model, x, *arguments), tool(function, x, *arguments, params)
        assert_close(ravel(got)[0], ravel(expected)[0].numpy(), rtol=0, atol=0)
        assert not ravel(got)[0].requires_grad


# --- inputs ---------------------------------------------------------------------------------------


def two_layers(x: np.ndarray) -> np.ndarray:
    """The Jacobian W2 diag(1 - h^2) W1 of the network at one sample."""
    w1, b1, w2 = normal(4, 3), normal(4, seed=1), normal(2, 4, seed=2)
    return w2 @ np.diag(1 - np.tanh(w1 @ x + b1) ** 2) @ w1


@pytest.mark.parametrize("strategy", ["reverse-mode", "forward-mode"])
def test_input_jacobian_is_outputs_by_inputs(strategy: str) -> None:
    model, x = Network(), normal(3, seed=5)
    expected = two_layers(x)
    numerator = input_jacobian(model, tensor(x), strategy=strategy)
    denominator = input_jacobian(model, tensor(x), layout="denominator", strategy=strategy)
    assert numerator.shape == (2, 3)
    assert_close(numerator, expected)
    assert_close(denominator, expected.T)
    assert not numerator.requires_grad


def test_input_jacobian_with_other_parameters_and_without_any() -> None:
    x = tensor(normal(3, seed=5))
    function, params = as_function(Network())
    assert_close(input_jacobian(function, x, params), two_layers(x.numpy()))
    zeros = {name: 0 * p for name, p in params.items()}
    assert_close(input_jacobian(Network(), x, zeros), np.zeros((2, 3)))
    assert_close(input_jacobian(lambda v: v**2, x), np.diag(2 * x.numpy()))


def test_input_jacobian_of_each_sample() -> None:
    model, x = Network(), normal(5, 3, seed=5)
    expected = np.stack([two_layers(row) for row in x])
    assert_close(input_jacobian(model, tensor(x), per_sample=True), expected)
    full = input_jacobian(model, tensor(x)).numpy()
    assert full.shape == (5, 2, 5, 3)
    assert_close(np.einsum("nknd->nkd", full), expected)
    got = input_jacobian(model, tensor(x), per_sample=True, layout="denominator", chunk_size=2)
    assert_close(got, expected.transpose(0, 2, 1))


def test_input_jacobian_by_the_second_input() -> None:
    a, b = normal(3, 3), normal(3, seed=1)
    got = input_jacobian(lambda m, v: m @ v, (tensor(a), tensor(b)), argnum=1)
    assert_close(got, a)
    by_matrix = input_jacobian(lambda m, v: m @ v, (tensor(a), tensor(b)))
    assert_close(by_matrix, np.einsum("ki,j->kij", np.eye(3), b))
    swapped = input_jacobian(lambda m, v: m @ v, (tensor(a), tensor(b)), layout="denominator")
    assert_close(swapped, np.einsum("ki,j->ijk", np.eye(3), b))


# --- one layer ------------------------------------------------------------------------------------


def test_layer_jacobian_names_both_matrices() -> None:
    """diag(f'(W x + b)) W takes activations to activations, W diag(f'(s)) signals to signals."""
    w, x, b = normal(3, 4), normal(4, seed=1), normal(3, seed=2)
    first = np.diag(1 - np.tanh(w @ x + b) ** 2) @ w
    second = w @ np.diag(1 - np.tanh(x) ** 2)
    got = layer_jacobian(tensor(w), tensor(x), chainrule.tanh, tensor(b))
    assert_close(got.activation_to_activation, first)
    assert_close(got.signal_to_signal, second)
    assert np.abs(first - second).max() > 0.1
    turned = layer_jacobian(tensor(w), tensor(x), chainrule.tanh, tensor(b), layout="denominator")
    assert_close([*turned], [first.T, second.T])


def test_layer_jacobians_multiply_to_that_of_the_network() -> None:
    """delta[l-1] = delta[l] W[l] diag f'(s[l-1]), over three layers."""
    weights = [tensor(normal(4, 4, seed=i)) for i in range(3)]
    s = tensor(normal(4, seed=3))
    jacobian, signal = np.eye(4), s
    for w in weights:
        jacobian = layer_jacobian(w, signal, chainrule.sigmoid).signal_to_signal.numpy() @ jacobian
        signal = w @ chainrule.sigmoid(signal)

    def network(v: Tensor) -> Tensor:
        for w in weights:
            v = w @ chainrule.sigmoid(v)
        return v

    assert_close(jacobian, jacrev(network)(s))


def test_layer_jacobian_of_softmax_is_not_diagonal() -> None:
    w, x = normal(3, 4), normal(4, seed=1)
    p = np.exp(w @ x) / np.exp(w @ x).sum()
    got = layer_jacobian(tensor(w), tensor(x), lambda s: chainrule.softmax(s, dim=0))
    assert_close(got.activation_to_activation, (np.diag(p) - np.outer(p, p)) @ w)
    q = np.exp(x) / np.exp(x).sum()
    assert_close(got.signal_to_signal, w @ (np.diag(q) - np.outer(q, q)))


def test_layer_jacobian_of_a_batch_by_vmap() -> None:
    w, x = normal(3, 4), normal(5, 4, seed=1)
    got = vmap(lambda v: layer_jacobian(tensor(w), v, chainrule.tanh))(tensor(x))
    expected = (1 - np.tanh(x @ w.T) ** 2)[:, :, None] * w
    assert_close(got.activation_to_activation, expected)


# --- second derivatives of every output -----------------------------------------------------------


def test_per_output_hvp_is_a_sum_of_hessians_times_vectors() -> None:
    model, x = Network(), tensor(normal(3, seed=5))
    function, params = as_function(model)
    vectors = {
        name: tensor(normal(2, *p.shape, seed=10 + i)) for i, (name, p) in enumerate(params.items())
    }
    expected = 0.0
    for k in range(2):
        h = hessian(lambda p, k=k: function(p, x)[k])(params)
        flat = np.block(
            [[h[a][b].numpy().reshape(params[a].numel(), -1) for b in params] for a in params]
        )
        v = np.concatenate([vectors[name][k].numpy().reshape(-1) for name in params])
        expected = expected + flat @ v
    assert_close(ravel(per_output_hvp(model, x, vectors))[0], expected)
    assert_close(ravel(per_output_hvp(model, x, vectors, chunk_size=1))[0], expected)


def test_per_output_hvp_is_the_gradient_of_a_function_of_the_jacobian() -> None:
    """The first part of the flat-minimum penalty, 1/2 sum_w log sum_k (dy_k/dw)^2."""
    x = tensor(normal(3, seed=5))
    f = lambda p, x: (p["v"] @ (p["w"] @ x).tanh()).sigmoid()  # noqa: E731
    params = {"w": tensor(normal(4, 3)), "v": tensor(normal(2, 4, seed=1))}

    def penalty(jacobian: dict[str, Tensor]) -> Tensor:
        return 0.5 * sum((j**2).sum(0).log().sum() for j in jacobian.values())

    vectors = grad(penalty)(parameter_jacobian(f, x, params))
    got = per_output_hvp(f, x, vectors, params)
    expected = grad(lambda p: penalty(jacrev(f)(p, x)))(params)
    for name in params:
        assert_close(got[name], expected[name])


# --- parameters as a vector, matrices as blocks ---------------------------------------------------


def test_ravel_follows_tree_order_and_keeps_types() -> None:
    tree = {"b": tensor([1.0, 2.0]), "a": (tensor([[3.0]]), [chainrule.tensor(4.0)])}
    vector, unravel = ravel(tree)
    assert vector.tolist() == [1, 2, 3, 4]
    assert vector.dtype is chainrule.float64
    back = unravel(vector * 2)
    assert list(back) == ["b", "a"]
    assert back["a"][0].tolist() == [[6]]
    assert back["a"][1][0].dtype is chainrule.float32
    assert back["a"][1][0].shape == ()


def test_blocks_of_a_matrix() -> None:
    params = {"w": tensor(normal(2, 3)), "b": tensor(normal(2))}
    m = normal(8, 8)
    got = blocks(tensor(m), params)
    assert_close(got["w"]["b"], m[:6, 6:].reshape(2, 3, 2))
    assert_close(got["b"]["w"], m[6:, :6].reshape(2, 2, 3))
    assert_close(got["w"]["w"], m[:6, :6].reshape(2, 3, 2, 3))
    assert_close(blocks(tensor(m), tensor(normal(2, 4))), m.reshape(2, 4, 2, 4))


# --- errors ---------------------------------------------------------------------------------------


def test_wrong_models_are_refused() -> None:
    x = tensor(normal(3))
    with pytest.raises(TypeError, match="needs its parameters.*params="):
        parameter_jacobian(lambda p, x: p * x, x)
    with pytest.raises(TypeError, match="named_parameters.*got int"):
        parameter_jacobian(3, x, x)
    with pytest.raises(TypeError, match="must return one Tensor, got tuple"):
        parameter_jacobian(lambda p, x: (p, x), x, x)
    with pytest.raises(TypeError, match="must return one Tensor, got float"):
        input_jacobian(lambda x: 1.0, x)


def test_wrong_options_are_refused() -> None:
    x = tensor(normal(3))
    with pytest.raises(ValueError, match="layout must be 'numerator' or 'denominator', got 'rows'"):
        input_jacobian(chainrule.sin, x, layout="rows")
    with pytest.raises(ValueError, match="strategy must be.*got 'both'"):
        parameter_jacobian(lambda p, x: p * x, x, x, strategy="both")


def test_wrong_shapes_are_refused() -> None:
    x = tensor(normal(3))
    with pytest.raises(RuntimeError, match=r"layer_jacobian.*\(2, 4\) and \(3,\)"):
        layer_jacobian(tensor(normal(2, 4)), x, chainrule.tanh)
    with pytest.raises(RuntimeError, match=r"per_output_hvp.*\(3, 3\).*got \[\(3,\)\]"):
        per_output_hvp(lambda p, x: p * x, x, x, x)
    with pytest.raises(RuntimeError, match=r"blocks.*3 rows.*\(2, 2\)"):
        blocks(tensor(normal(2, 2)), x)
    with pytest.raises(RuntimeError, match=r"unravel.*3 elements.*\(4,\)"):
        ravel(x)[1](tensor(normal(4)))
    with pytest.raises(TypeError, match="must be Tensors, got float"):
        ravel({"w": 1.0})
    with pytest.raises(ValueError, match="no parameters"):
        ravel({})

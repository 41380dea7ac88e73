"""Parametrized tensors: registering, removing, caching, copies."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from helpers import assert_close

import chainrule
from chainrule import Tensor, nn, ones, zeros
from chainrule.func import functional_call, grad
from chainrule.nn.utils import parametrize
from chainrule.nn.utils.parametrize import register_parametrization, remove_parametrizations
from chainrule.tensor import of_array


float64 = chainrule.float64


class Symmetric(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.triu() + x.triu(1).T

    def right_inverse(self, a: Tensor) -> Tensor:
        return a.triu()


class Exp(nn.Module):
    calls = 0

    def forward(self, x: Tensor) -> Tensor:
        Exp.calls += 1
        return x.exp()

    def right_inverse(self, y: Tensor) -> Tensor:
        return y.abs().log()


class RankOne(nn.Module):
    """The outer product of two vectors."""

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return x[:, None] * y

    def right_inverse(self, z: Tensor) -> tuple[Tensor, Tensor]:
        u, s, vh = chainrule.linalg.svd(z, full_matrices=False)
        return u[:, 0] * s[0].sqrt(), vh[0] * s[0].sqrt()


class Changed(nn.Module):
    """Returns what it was told to."""

    def __init__(self, value: Any, inverse: Any = None):
        super().__init__()
        self.value, self.inverse = value, inverse

    def forward(self, x: Any) -> Any:
        return self.value(x)

    def right_inverse(self, x: Any) -> Any:
        return x if self.inverse is None else self.inverse(x)


def square() -> nn.Linear:
    return nn.Linear(3, 3).double()


# --- registering ----------------------------------------------------------------------------------


def test_the_weight_is_what_the_function_gives() -> None:
    layer = square()
    before = layer.weight.detach().clone()
    assert register_parametrization(layer, "weight", Symmetric()) is layer
    assert_close(layer.weight, layer.weight.T)
    assert_close(layer.weight, before.triu() + before.triu(1).T)
    assert [n for n, _ in layer.named_parameters()] == ["bias", "parametrizations.weight.original"]
    assert parametrize.is_parametrized(layer)
    assert parametrize.is_parametrized(layer, "weight")
    assert not parametrize.is_parametrized(layer, "bias")
    assert parametrize.type_before_parametrizations(layer) is nn.Linear
    assert isinstance(layer, nn.Linear)
    assert type(layer).__name__ == "ParametrizedLinear"


def test_gradients_go_to_the_original() -> None:
    layer = register_parametrization(square(), "weight", Symmetric())
    layer(ones(1, 3, dtype=float64)).sum().backward()
    original = layer.parametrizations.weight.original
    assert_close(original.grad, np.array([[1, 2, 2], [0, 1, 2], [0, 0, 1.0]]))
    with chainrule.no_grad():
        original -= 0.1 * original.grad
    assert_close(layer.weight, layer.weight.T)


def test_assigning_goes_through_the_right_inverse() -> None:
    layer = register_parametrization(square(), "weight", Symmetric())
    a = of_array(np.arange(9.0).reshape(3, 3))
    layer.weight = a + a.T
    assert_close(layer.weight, a + a.T)
    assert_close(layer.parametrizations.weight.original, (a + a.T).triu())


def test_functions_are_stacked() -> None:
    layer = square()
    register_parametrization(layer, "weight", Exp())
    register_parametrization(layer, "weight", Symmetric())
    original = layer.parametrizations.weight.original.detach()
    x = original.exp()
    assert_close(layer.weight, x.triu() + x.triu(1).T)
    target = ones(3, 3, dtype=float64) * 2
    layer.weight = target
    assert_close(layer.weight, target)
    assert len(layer.parametrizations.weight) == 2


def test_several_originals() -> None:
    layer = nn.Linear(4, 3).double()
    best = np.linalg.svd(layer.weight.numpy(force=True))
    register_parametrization(layer, "weight", RankOne())
    assert list(layer.state_dict()) == [
        "bias",
        "parametrizations.weight.original0",
        "parametrizations.weight.original1",
    ]
    assert_close(layer.weight, best[1][0] * np.outer(best[0][:, 0], best[2][0]))
    layer.weight = ones(3, 4, dtype=float64)
    assert_close(layer.weight, np.ones((3, 4)))


def test_buffers_and_several_tensors() -> None:
    layer = square()
    layer.register_buffer("shift", ones(3, 3, dtype=float64))
    register_parametrization(layer, "shift", Symmetric())
    register_parametrization(layer, "weight", Symmetric())
    register_parametrization(layer, "bias", Exp())
    assert [n for n, _ in layer.named_buffers()] == ["parametrizations.shift.original"]
    assert_close(layer.shift, np.ones((3, 3)))
    assert (layer.bias > 0).all()
    remove_parametrizations(layer, "shift")
    assert [n for n, _ in layer.named_buffers()] == ["shift"]
    assert parametrize.is_parametrized(layer, "weight")


def test_mode_follows_the_module() -> None:
    layer = register_parametrization(square().eval(), "weight", Symmetric())
    assert not layer.parametrizations.weight[0].training
    assert layer.train().parametrizations.weight[0].training


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (Changed(lambda x: x[0]), r"may not change the shape.*forward makes .*\[3\].*\[3, 3\]"),
        (Changed(lambda x: x.float()), "may not change the dtype.*forward makes chainrule.float32"),
        (Changed(lambda x: 3), "must return a tensor from forward. Got int"),
        (Changed(lambda x: x, lambda x: x.float()), "dtype.*right_inverse makes chainrule.float32"),
        (Changed(lambda x: x, lambda x: 3), "must return a Tensor or a Sequence of tensors.*int"),
        (Changed(lambda x: x, lambda x: (3,)), "must return a Tensor or a Sequence of tensors"),
    ],
)
def test_functions_that_do_not_fit(function: nn.Module, message: str) -> None:
    layer = square()
    with pytest.raises(ValueError, match=message):
        register_parametrization(layer, "weight", function)
    assert type(layer) is nn.Linear


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (Changed(lambda x: x[0]), "may not change the shape"),
        (Changed(lambda x: x, lambda x: x[0]), "shape.*right_inverse makes"),
    ],
)
def test_further_functions_that_do_not_fit(function: nn.Module, message: str) -> None:
    layer = register_parametrization(square(), "weight", Symmetric())
    with pytest.raises(ValueError, match=message):
        register_parametrization(layer, "weight", function)
    assert len(layer.parametrizations.weight) == 1


def test_unsafe_functions_may_change_the_shape() -> None:
    layer = nn.Linear(3, 3)
    register_parametrization(layer, "weight", Changed(lambda x: x[:2]), unsafe=True)
    assert layer.weight.shape == (2, 3)


def test_other_errors() -> None:
    layer = square()
    with pytest.raises(ValueError, match="does not have a parameter, a buffer.*name 'none'"):
        register_parametrization(layer, "none", Symmetric())
    with pytest.raises(ValueError, match="does not have a parametrization on weight"):
        remove_parametrizations(layer, "weight")

    class OneWay(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x * 2

    register_parametrization(layer, "weight", OneWay())
    with pytest.raises(RuntimeError, match="OneWay does not implement right_inverse"):
        layer.weight = zeros(3, 3, dtype=float64)
    with pytest.raises(ValueError, match="requires one or more modules"):
        parametrize.ParametrizationList([], zeros(1))


# --- removing -------------------------------------------------------------------------------------


@pytest.mark.parametrize("leave", [True, False])
def test_removal(leave: bool) -> None:
    layer = square()
    x = ones(2, 3, dtype=float64)
    register_parametrization(layer, "weight", Exp())
    original = layer.parametrizations.weight.original
    value, y = layer.weight.detach(), layer(x)
    raw = original.detach().clone()
    remove_parametrizations(layer, "weight", leave_parametrized=leave)
    assert type(layer) is nn.Linear
    assert layer.weight is original
    assert_close(layer.weight, value if leave else raw)
    assert not hasattr(layer, "parametrizations")
    if leave:
        assert_close(layer(x), y)
    assert set(layer.state_dict()) == {"weight", "bias"}


def test_removal_with_several_originals() -> None:
    layer = register_parametrization(nn.Linear(4, 3), "weight", RankOne())
    with pytest.raises(ValueError, match="in terms of a sequence of tensors"):
        remove_parametrizations(layer, "weight", leave_parametrized=False)
    value = layer.weight.detach()
    remove_parametrizations(layer, "weight")
    assert isinstance(layer.weight, nn.Parameter)
    assert_close(layer.weight, value)


# --- caching, copies, transforms ------------------------------------------------------------------


def test_cached_computes_once() -> None:
    layer = register_parametrization(square(), "weight", Exp())
    Exp.calls = 0
    with parametrize.cached():
        first = layer.weight
        with parametrize.cached():
            assert layer.weight is first
        assert layer.weight is first
        assert Exp.calls == 1
    assert layer.weight is not first


def test_copies_pickles_and_states() -> None:
    layer = register_parametrization(square(), "weight", Symmetric())
    x = ones(1, 3, dtype=float64)
    other = register_parametrization(square(), "weight", Symmetric())
    other.load_state_dict(layer.state_dict())
    for module in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer)), other):
        assert type(module) is type(layer)
        assert_close(module(x), layer(x), rtol=0, atol=0)
        module.weight = zeros(3, 3, dtype=float64)
        assert float(layer.weight.abs().sum()) > 0


def test_functional_call_takes_the_originals() -> None:
    layer = register_parametrization(square(), "weight", Symmetric())
    x = ones(1, 3, dtype=float64)
    name = "parametrizations.weight.original"
    new = {name: zeros(3, 3, dtype=float64), "bias": ones(3, dtype=float64)}
    assert_close(functional_call(layer, new, x), np.ones((1, 3)))
    assert grad(lambda p: functional_call(layer, p, x).sum())(new)[name].shape == (3, 3)


def test_transfer() -> None:
    a, b = square(), square()
    parametrize.transfer_parametrizations_and_params(a, b)
    assert not parametrize.is_parametrized(b)
    register_parametrization(a, "weight", Symmetric())
    parametrize.transfer_parametrizations_and_params(a, b)
    assert b.parametrizations.weight.original is a.parametrizations.weight.original
    assert_close(b.weight, a.weight)

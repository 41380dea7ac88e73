"""Layers that infer the size of their input."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from helpers import assert_close

import chainrule
from chainrule import Tensor, nn, ones, zeros
from chainrule.tensor import of_array

LAYERS: dict[str, tuple[tuple[Any, ...], dict[str, Any], tuple[int, ...]]] = {
    "LazyLinear": ((4,), {}, (2, 3)),
    "LazyConv1d": ((4, 3), {}, (2, 3, 5)),
    "LazyConv2d": ((4, 3), {"groups": 2, "bias": False, "padding": 1}, (2, 6, 5, 5)),
    "LazyConv3d": ((2, 2), {}, (1, 3, 4, 4, 4)),
    "LazyConvTranspose1d": ((4, 3), {}, (2, 3, 5)),
    "LazyConvTranspose2d": ((4, 3), {"groups": 2}, (2, 6, 5, 5)),
    "LazyConvTranspose3d": ((2, 2), {}, (1, 3, 4, 4, 4)),
    "LazyBatchNorm1d": ((), {}, (4, 3)),
    "LazyBatchNorm2d": ((), {"affine": False}, (4, 3, 2, 2)),
    "LazyBatchNorm3d": ((), {}, (2, 3, 2, 2, 2)),
    "LazyInstanceNorm1d": ((), {}, (4, 3, 5)),
    "LazyInstanceNorm2d": ((), {"affine": False, "track_running_stats": False}, (4, 3, 2, 2)),
    "LazyInstanceNorm3d": ((), {"affine": True}, (2, 3, 2, 2, 2)),
}
each_layer = pytest.mark.parametrize("name", LAYERS)


def lazy(name: str) -> tuple[Any, Tensor]:
    args, kwargs, shape = LAYERS[name]
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    return getattr(nn, name)(*args, **kwargs), of_array(x)


def test_every_lazy_layer_is_tested() -> None:
    public = {name for name in dir(nn) if name.startswith("Lazy")} - {"LazyModuleMixin"}
    assert public == set(LAYERS)


@each_layer
def test_becomes_the_plain_layer_of_that_size(name: str) -> None:
    layer, x = lazy(name)
    args, kwargs, shape = LAYERS[name]
    chainrule.manual_seed(1)
    out = layer(x)
    size = shape[-1] if name == "LazyLinear" else shape[1]
    chainrule.manual_seed(1)
    # As in PyTorch, the lazy instance normalization learns and keeps moments by default.
    more = {"affine": True, "track_running_stats": True} if "InstanceNorm" in name else {}
    expected = type(layer)(size, *args, **(more | kwargs))
    assert type(layer).__name__ == name.removeprefix("Lazy")
    assert repr(layer) == repr(expected)
    assert_close(out, expected(x), rtol=0, atol=0)
    assert not hasattr(layer, "_arguments")
    assert all(isinstance(p, nn.Parameter) for p in layer.parameters())


@each_layer
def test_copies_and_states_before_the_first_call(name: str) -> None:
    layer, x = lazy(name)
    copies = [copy.deepcopy(layer), pickle.loads(pickle.dumps(layer)), lazy(name)[0]]
    expected = layer.eval()(x)
    for other in copies:
        assert list(other.state_dict()) == list(layer.state_dict())
        other.load_state_dict(layer.state_dict())
        assert_close(other.eval()(x), expected, rtol=0, atol=0)
        assert type(other) is type(layer)
        assert not other.training


def test_nothing_is_known_before_the_first_call() -> None:
    layer = nn.LazyLinear(2)
    assert layer.has_uninitialized_params()
    assert repr(layer.weight) == "<UninitializedParameter>"
    assert repr(nn.LazyBatchNorm1d().running_mean) == "<UninitializedBuffer>"
    with pytest.raises(RuntimeError, match="Can't access the shape of an uninitialized"):
        _ = layer.weight.shape
    for use in (lambda: layer.weight.numel(), lambda: layer.weight + 1, lambda: layer.weight[0]):
        with pytest.raises(ValueError, match="Attempted to use an uninitialized parameter"):
            use()
    layer.requires_grad_(False)
    layer(zeros(1, 3))
    assert [p.requires_grad for p in layer.parameters()] == [False, False]


def test_type_is_chosen_before_the_first_call() -> None:
    layer = nn.LazyLinear(2).double()
    assert layer.weight.dtype == chainrule.float64
    layer(zeros(1, 3, dtype=chainrule.float64))
    assert layer.weight.dtype == chainrule.float64
    assert nn.LazyLinear(2, dtype=chainrule.float16).weight.dtype == chainrule.float16


def test_parameters_stay_the_same_objects() -> None:
    layer = nn.LazyLinear(2)
    held = list(layer.parameters())
    layer(zeros(1, 3)).sum().backward()
    assert all(a is b for a, b in zip(held, layer.parameters(), strict=True))
    assert held[0].grad.shape == (2, 3)


def test_states_that_never_ran() -> None:
    state = nn.LazyLinear(2).state_dict()
    other = nn.LazyLinear(2)
    other.load_state_dict(state)
    assert other.has_uninitialized_params()
    with pytest.raises(
        RuntimeError, match='"weight": the state is of a lazy module that never ran'
    ):
        nn.Linear(3, 2).load_state_dict(state)


def test_loaded_weights_that_do_not_fit_the_input() -> None:
    layer = nn.LazyLinear(2)
    layer.load_state_dict(nn.Linear(3, 2).state_dict())
    with pytest.raises(RuntimeError, match="linear"):
        layer(zeros(1, 5))


@pytest.mark.parametrize(
    ("layer", "shape", "message"),
    [
        (lambda: nn.LazyConv2d(1, 1), (2, 2), "cannot infer in_channels from.*at least 3 dim"),
        (lambda: nn.LazyLinear(1), (), "cannot infer in_features from an input of shape"),
        (lambda: nn.LazyBatchNorm1d(), (2,), "cannot infer num_features from.*at least 2 dim"),
    ],
)
def test_inputs_without_that_dimension(layer: Any, shape: tuple[int, ...], message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        layer()(zeros(shape))


def test_arguments_are_checked_when_it_is_made() -> None:
    with pytest.raises(TypeError):
        nn.LazyLinear()
    with pytest.raises(TypeError):
        nn.LazyConv2d(3, 3, wrong=1)


def test_a_network_of_lazy_layers() -> None:
    net = nn.Sequential(
        nn.LazyConv2d(4, 3), nn.LazyBatchNorm2d(), nn.ReLU(), nn.Flatten(), nn.LazyLinear(2)
    )
    assert net(ones(2, 3, 6, 6)).shape == (2, 2)
    assert net[4].in_features == 64
    assert [type(m).__name__ for m in net][::2] == ["Conv2d", "ReLU", "Linear"]


def test_a_lazy_module_of_ones_own() -> None:
    class Scale(nn.LazyModuleMixin, nn.Module):
        def __init__(self, forget: bool = False):
            super().__init__()
            self.factor = nn.UninitializedParameter()
            self.forget = forget

        def initialize_parameters(self, x: Tensor) -> None:
            if not self.forget and self.has_uninitialized_params():
                self.factor.materialize(x.shape[-1:])
                nn.init.ones_(self.factor)

        def forward(self, x: Tensor) -> Tensor:
            return x * self.factor

    scale = Scale()
    assert_close(scale(ones(2, 3)), np.ones((2, 3), np.float32))
    assert_close(scale(ones(2, 3)), np.ones((2, 3), np.float32))
    with pytest.raises(RuntimeError, match="module Scale has not been fully initialized"):
        Scale(forget=True)(ones(2, 3))

    class Lost(nn.LazyModuleMixin, nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.p = nn.UninitializedParameter()

    with pytest.raises(NotImplementedError, match="initialize_parameters is not implemented for L"):
        Lost()(1)

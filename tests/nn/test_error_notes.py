"""An error inside a network says in which layer it was raised."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

import chainrule
from chainrule import Tensor, nn


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.head = nn.Conv2d(3, 4, 3), nn.Linear(7, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.conv(x))


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(nn.ReLU(), Block())

    def forward(self, x: Tensor, **_: Any) -> Tensor:
        return self.features(x)


X = chainrule.ones(2, 3, 8, 8)
NOTE = (
    "in layer 'features.1.head' (Linear(in_features=7, out_features=2, bias=True)) of Net, "
    "called with (2, 4, 6, 6); chainrule.inspect.summary(model, inputs) shows the shapes up to it"
)


def error_of(function: Any, *args: Any, **kwargs: Any) -> Exception:
    kinds = (RuntimeError, KeyError, ZeroDivisionError)
    with pytest.raises(kinds) as caught:
        function(*args, **kwargs)
    return caught.value


def test_the_layer_is_named_once_with_its_path() -> None:
    error = error_of(Net(), X)
    assert error.__notes__ == [NOTE]
    assert str(error).startswith("linear: input of shape (2, 4, 6, 6)")
    assert type(error) is RuntimeError


def test_with_hooks_and_with_other_parameters() -> None:
    net = Net()
    net.features.register_forward_pre_hook(lambda module, args: None)
    net.features[1].head.register_forward_hook(lambda module, args, out: None)
    assert error_of(net, X).__notes__ == [NOTE]
    assert error_of(chainrule.func.functional_call, Net(), {}, (X,)).__notes__ == [NOTE]
    failing = nn.Sequential(nn.ReLU())
    failing[0].register_forward_pre_hook(lambda module, args: 1 / 0)
    assert error_of(failing, X).__notes__[0].startswith("in layer '0' (ReLU()) of Sequential")


def test_a_fused_layer_is_named_too() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(5, 2), nn.Tanh())
    (note,) = error_of(model, chainrule.ones(2, 3)).__notes__
    assert note.startswith("in layer '2' (Linear(in_features=5")


def test_functional_code_is_named_by_its_module() -> None:
    class Functional(Net):
        def forward(self, x: Tensor, **_: Any) -> Tensor:
            return self.features[0](x) @ chainrule.ones(9, 9)

    (note,) = error_of(Functional(), X, more=None, scale=chainrule.ones(2)).__notes__
    assert note.startswith(
        "in the forward of Functional, called with (2, 3, 8, 8), more=None, scale=(2,);"
    )


def test_a_layer_by_itself_needs_no_path() -> None:
    assert not hasattr(error_of(nn.Linear(2, 3), chainrule.ones(1, 5)), "__notes__")


def test_what_is_caught_inside_leaves_no_trace() -> None:
    class Careful(Net):
        def forward(self, x: Tensor, **_: Any) -> Tensor:
            try:
                return self.features(x)
            except RuntimeError:
                return x * 2

    class Translating(Net):
        def forward(self, x: Tensor, **_: Any) -> Tensor:
            try:
                return self.features(x)
            except RuntimeError as error:
                raise KeyError("translated") from error

    assert Careful()(X).shape == X.shape
    error = error_of(Translating(), X)
    assert type(error) is KeyError
    assert error.__notes__[0].startswith("in the forward of Translating")


def test_a_module_that_is_not_registered() -> None:
    class Hidden(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.parts = [Block()]
            self.act = nn.ReLU()

        def forward(self, x: Tensor) -> Tensor:
            return self.parts[0](self.act(x))

    (note,) = error_of(Hidden(), X).__notes__
    assert note.startswith(
        "in layer 'head' (Linear(in_features=7, out_features=2, bias=True)) of Block"
    )


def test_a_repr_that_fails_does_not_hide_the_error() -> None:
    class Silent(nn.Linear):
        def extra_repr(self) -> str:
            raise ValueError("no words")

    error = error_of(nn.Sequential(Silent(2, 3)), chainrule.ones(1, 5))
    assert str(error).startswith("linear: input of shape")


def test_endless_recursion_stays_what_it_is() -> None:
    class Endless(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.ReLU()

        def forward(self, x: Tensor) -> Tensor:
            return self(x)

    assert type(error_of(Endless(), X)) is RecursionError


def test_an_error_travels_to_another_process_without_the_network() -> None:
    error = error_of(Net(), X)
    data = pickle.dumps(error)
    assert len(data) < 2000
    assert pickle.loads(data).__notes__ == [NOTE]
    assert copy.copy(error).__notes__ == [NOTE]

"""Printing without PyTorch at hand: a few tensors and what they print."""

from __future__ import annotations

import pytest

import chainrule
from chainrule import Tensor, printing
from chainrule.func import jvp, vmap

PRINTED = {
    "tensor(1.)": chainrule.tensor(1.0),
    "tensor([1.0000, 2.5000])": chainrule.tensor([1.0, 2.5]),
    "tensor([ 1., -2.])": chainrule.tensor([1.0, -2.0]),
    "tensor([1.0000e+00, 1.0000e+09])": chainrule.tensor([1.0, 1e9]),
    "tensor([1.0000e-05])": chainrule.tensor([1e-5]),
    "tensor([nan, inf, -inf, 0.])": chainrule.tensor(
        [float("nan"), float("inf"), -float("inf"), 0.0]
    ),
    "tensor([1, 2])": chainrule.tensor([1, 2]),
    "tensor([ True, False])": chainrule.tensor([True, False]),
    "tensor([1.+2.j, 3.-1.j])": chainrule.tensor([1 + 2j, 3 - 1j]),
    "tensor([1, 2], dtype=chainrule.int8)": chainrule.tensor([1, 2], dtype=chainrule.int8),
    "tensor([])": chainrule.zeros(0),
    "tensor([], size=(0, 3))": chainrule.zeros(0, 3),
    "tensor([], dtype=chainrule.int64)": chainrule.zeros(0, dtype=chainrule.int64),
    "tensor([1.], requires_grad=True)": chainrule.ones(1, requires_grad=True),
    "tensor([2.], grad_fn=<MulBackward>)": chainrule.ones(1, requires_grad=True) * 2,
    "tensor([[1., 0.],\n        [0., 1.]])": chainrule.eye(2),
    "tensor([   0,    1,    2,  ..., 1998, 1999, 2000])": chainrule.arange(2001),
}


@pytest.mark.parametrize("text", PRINTED)
def test_prints(text: str) -> None:
    assert repr(PRINTED[text]) == text


def test_options_last_as_long_as_their_block() -> None:
    x = chainrule.tensor([1.23456])
    with printing.printoptions(precision=2):
        assert repr(x) == "tensor([1.23])"
        with printing.printoptions(sci_mode=True):
            assert repr(x) == "tensor([1.23e+00])"
    assert repr(x) == "tensor([1.2346])"
    with pytest.raises(ValueError, match="no profile 'long'"):
        printing.set_printoptions(profile="long")


def test_inside_transformations() -> None:
    seen: list[str] = []

    def look(x: Tensor) -> Tensor:
        seen.append(repr(x))
        return x

    vmap(look)(chainrule.ones(1, 2))
    jvp(look, (chainrule.ones(1),), (chainrule.zeros(1),))
    assert seen[0].startswith("BatchedTensor(lvl=")
    assert seen[0].endswith(", bdim=0, value=\n    tensor([[1., 1.]])\n)")
    assert seen[1].startswith("DualTensor(lvl=")
    assert "primal=\n    tensor([1.]),\ntangent=\n    tensor([0.])" in seen[1]


def test_a_subclass_prints_its_name() -> None:
    class Weights(Tensor):
        pass

    assert repr(Weights(chainrule.ones(2).numpy())) == "Weights([1., 1.])"

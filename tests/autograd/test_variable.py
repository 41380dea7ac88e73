"""``Variable``: what tensors with gradients were called."""

from __future__ import annotations

import pytest

import chainrule
from chainrule.autograd import Variable


def test_it_is_the_tensor_without_history() -> None:
    x = chainrule.ones(2, requires_grad=True)
    y = Variable(x * 2)
    assert y.is_leaf
    assert not y.requires_grad
    z = Variable(x, requires_grad=True)
    assert z.requires_grad
    z.data[0] = 5
    assert x.tolist() == [5, 1]  # the same memory
    assert Variable().shape == (0,)


def test_all_tensors_are_instances() -> None:
    assert isinstance(chainrule.ones(1), Variable)
    assert isinstance(chainrule.nn.Parameter(chainrule.ones(1)), Variable)
    assert not isinstance(3, Variable)


def test_volatile_has_no_effect() -> None:
    with pytest.warns(UserWarning, match="volatile was removed"):
        assert not Variable(chainrule.ones(1), volatile=True).requires_grad


def test_only_tensors() -> None:
    with pytest.raises(TypeError, match="has to be a tensor, but got list"):
        Variable([1.0])  # type: ignore[arg-type]

"""NumPy's words for arguments."""

from __future__ import annotations

import inspect
import pickle
from typing import Any

import pytest

import chainrule
from chainrule.ops.core.synonyms import numpy_names


@pytest.mark.parametrize("name", ["sum", "mean", "amax", "logsumexp", "std"])
def test_an_argument_has_one_name_at_a_time(name: str) -> None:
    x = chainrule.ones(2, 3)
    method, function = getattr(x, name), getattr(chainrule, name)
    assert chainrule.equal(method(axis=1, keepdims=True), method(1, keepdim=True))
    assert chainrule.equal(function(x, 1, keepdims=True), method(dim=1, keepdim=True))
    assert chainrule.equal(function(x, axis=-1, keepdim=False), method(1))
    for args, kwargs in (
        ((1,), {"axis": 1}),
        ((), {"dim": 1, "axis": 1}),
        ((), {"axis": 1, "dim": 0}),
        ((1,), {"keepdim": True, "keepdims": True}),
    ):
        with pytest.raises(TypeError, match="are the same argument; give one of them"):
            method(*args, **kwargs)


@pytest.mark.parametrize("name", ["sum", "mean", "amax", "cumsum"])
def test_other_keywords_are_refused(name: str) -> None:
    method: Any = getattr(chainrule.ones(2, 3), name)
    with pytest.raises(TypeError, match="unexpected keyword argument 'axes'"):
        method(axes=1)
    with pytest.raises(TypeError, match="unexpected keyword argument 'axes'"):
        method(axis=1, axes=1)


def test_a_required_argument_may_have_the_other_name() -> None:
    x = chainrule.arange(6.0).reshape(2, 3)
    assert chainrule.equal(x.softmax(axis=1), x.softmax(1))
    assert chainrule.equal(x.index_select(axis=1, index=chainrule.tensor([2])), x[:, 2:])
    assert chainrule.cat([x, x], axis=1).shape == (2, 6)
    assert x.clone().cumsum_(axis=0).tolist() == x.cumsum(0).tolist()
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'dim'"):
        x.softmax()  # type: ignore[call-overload]


def test_a_function_stays_what_it_is() -> None:
    function = chainrule.amax
    assert list(inspect.signature(function).parameters) == ["input", "dim", "keepdim"]
    assert function.__name__ == "amax"
    assert pickle.loads(pickle.dumps(function)) is function


def test_only_parameters_that_are_there_have_a_synonym() -> None:
    @numpy_names
    def f(input: int, dim: int = 0) -> int:
        return input + dim

    assert f(1, axis=2) == 3  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="keepdims"):
        f(1, keepdims=True)  # type: ignore[call-arg]

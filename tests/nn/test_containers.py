"""Modules that hold modules or parameters."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import numpy as np
import pytest
from helpers import assert_close

from chainrule import nn, ones, zeros


def chain() -> nn.Sequential:
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))


def names(module: Any) -> list[str]:
    return [type(m).__name__ for m in module]


# --- Sequential -----------------------------------------------------------------------------------


def test_sequential_is_the_composition() -> None:
    s, x = chain(), ones(5, 3)
    assert_close(s(x), s[2](s[1](s[0](x))), rtol=0, atol=0)
    assert_close(nn.Sequential()(x), x)


def test_sequential_by_name() -> None:
    s = nn.Sequential(OrderedDict([("hidden", nn.Linear(3, 4)), ("act", nn.Tanh())]))
    s.add_module("out", nn.Linear(4, 1))
    assert list(dict(s.named_children())) == ["hidden", "act", "out"]
    assert s.hidden is s[0]
    assert s(ones(2, 3)).shape == (2, 1)


def test_slices_share_the_modules() -> None:
    s = chain()
    head = s[:2]
    assert isinstance(head, nn.Sequential)
    assert head[0] is s[0]
    assert names(s[::-1]) == ["Linear", "Tanh", "Linear"]


def test_sequential_changes() -> None:
    s = chain()
    s.append(nn.Tanh()).insert(1, nn.ReLU()).extend([nn.Sigmoid()])
    assert names(s) == ["Linear", "ReLU", "Tanh", "Linear", "Tanh", "Sigmoid"]
    del s[1]
    assert type(s.pop(-1)) is nn.Sigmoid
    s[1] = nn.ReLU()
    assert names(s) == ["Linear", "ReLU", "Linear", "Tanh"]
    assert list(s.state_dict()) == ["0.weight", "0.bias", "2.weight", "2.bias"]
    del s[1:3]
    assert list(s._modules) == ["0", "1"]


def test_sequential_sums_and_multiples() -> None:
    a, b = chain(), nn.Sequential(nn.Tanh())
    assert names(a + b) == ["Linear", "Tanh", "Linear", "Tanh"]
    assert len(b * 3) == len(3 * b) == 3
    assert (b * 2)[0] is (b * 2)[1] is b[0]
    a += b
    b *= 2
    assert (len(a), len(b)) == (4, 2)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda s: s[3], IndexError, "index 3 is out of range for 3 entries"),
        (lambda s: s.__setitem__(-4, nn.Tanh()), IndexError, "index -4 is out of range"),
        (lambda s: s.insert(5, nn.Tanh()), IndexError, "insert: index 5 is out of range for 3"),
        (lambda s: s.append(3), TypeError, "int is not a Module subclass"),
        (lambda s: s.insert(0, zeros(1)), TypeError, "Tensor is not a Module subclass"),
        (lambda s: s.extend(3), TypeError, "extend should be called with an iterable, but got int"),
        (lambda s: s.__add__([]), ValueError, "only objects of Sequential class"),
        (lambda s: s * 0, ValueError, "Non-positive multiplication factor 0"),
        (lambda s: s * 1.5, TypeError, "'Sequential' and 'float'"),
        (lambda s: nn.Sequential(zeros(1)), TypeError, "Tensor is not a Module subclass"),
        (lambda s: nn.Sequential({"a.b": nn.Tanh()}), KeyError, "empty or contain"),
    ],
)  # fmt: skip
def test_what_sequential_refuses(change: Any, error: type[Exception], message: str) -> None:
    s = chain()
    with pytest.raises(error, match=message):
        change(s)
    assert names(s) == ["Linear", "Tanh", "Linear"]


# --- ModuleList, ModuleDict -----------------------------------------------------------------------


def test_module_list_registers() -> None:
    m = nn.ModuleList(nn.Linear(2, 2) for _ in range(3))
    m += [nn.Tanh()]
    assert len(list(m.parameters())) == 6
    assert names(m[1:]) == ["Linear", "Linear", "Tanh"]
    assert m[-1] is m[3]
    assert m[3] in m
    with pytest.raises(NotImplementedError, match="ModuleList"):
        m(1)


def test_module_list_prints_repetitions_once() -> None:
    m = nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2), nn.Tanh()])
    assert repr(m) == (
        "ModuleList(\n  (0-1): 2 x Linear(in_features=2, out_features=2, bias=True)\n"
        "  (2): Tanh()\n)"
    )
    assert repr(nn.ModuleList()) == "ModuleList()"


def test_module_dict() -> None:
    m = nn.ModuleDict({"b": nn.Linear(2, 2), "a": nn.Tanh()})
    m["c"] = nn.ReLU()
    m.update([("a", nn.Sigmoid())])
    assert list(m) == list(m.keys()) == ["b", "a", "c"]
    assert type(m.pop("a")) is nn.Sigmoid
    assert [type(v).__name__ for v in m.values()] == ["Linear", "ReLU"]
    assert list(m.state_dict()) == ["b.weight", "b.bias"]
    assert "a" not in m
    m.clear()
    assert len(m) == 0


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (3, TypeError, "ModuleDict.update should be called with an iterable, but got int"),
        ([3], TypeError, "element #0 should be a pair of key and value, is int"),
        ([("a", nn.Tanh(), 1)], ValueError, "element #0 has length 3; 2 is required"),
        ({"keys": nn.Tanh()}, KeyError, "'keys' already exists"),
        ({"a": 3}, TypeError, "int is not a Module subclass"),
    ],
)
def test_what_module_dict_refuses(given: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        nn.ModuleDict(given)


# --- ParameterList, ParameterDict -----------------------------------------------------------------


def test_parameter_list() -> None:
    p = nn.ParameterList([zeros(2), nn.Parameter(ones(2, 3))])
    p.append(zeros(1)).extend([ones(4)])
    assert [tuple(q.shape) for q in p.parameters()] == [(2,), (2, 3), (1,), (4,)]
    assert all(isinstance(q, nn.Parameter) for q in p)
    assert len(p[1:3]) == 2
    p[0] = ones(5)
    assert list(p.state_dict()) == ["0", "1", "2", "3"]
    assert_close(p.state_dict()["0"], np.ones(5, np.float32))
    assert "(1): Parameter containing: [chainrule.float32 of size 2x3]" in repr(p)
    with pytest.raises(RuntimeError, match="ParameterList should not be called"):
        p(1)
    with pytest.raises(TypeError, match="iterable, but got Tensor"):
        p.extend(zeros(2))
    with pytest.raises(IndexError, match="index 4 is out of range for 4 entries"):
        p[4]


def test_parameter_dict() -> None:
    p = nn.ParameterDict({"b": zeros(2), "a": ones(3)})
    assert list(p) == ["a", "b"]
    p["c"] = zeros(1)
    assert [name for name, _ in p.named_parameters()] == ["a", "b", "c"]
    assert p.pop("a").shape == (3,)
    assert p.popitem()[0] == "c"
    assert p.get("c") is None
    assert p.setdefault("d", zeros(7)).shape == (7,)
    both = p | {"e": zeros(1)}
    assert (list(both), list(reversed(both))) == (["b", "d", "e"], ["e", "d", "b"])
    assert both["b"] is p["b"]
    del p["b"]
    assert "b" not in p
    assert list(p.fromkeys(["x", "y"], zeros(1))) == ["x", "y"]
    p |= [("z", zeros(1))]
    assert len(p) == 2
    p.clear()
    assert list(p.state_dict()) == []
    with pytest.raises(TypeError, match="a key must be a string, got int"):
        p[3] = zeros(1)
    with pytest.raises(KeyError, match="x"):
        p["x"]
    with pytest.raises(RuntimeError, match="ParameterDict should not be called"):
        p(1)

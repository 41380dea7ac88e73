"""Modules that hold modules or parameters."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import numpy as np
import pytest
from helpers import assert_close

import chainrule
from chainrule import autograd, func, nn, ones, randn, zeros
from chainrule.nn.modules.module import register_module_forward_hook


def chain() -> nn.Sequential:
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))


def names(module: Any) -> list[str]:
    return [type(m).__name__ for m in module]


# --- Sequential -----------------------------------------------------------------------------------


def test_sequential_is_the_composition() -> None:
    s, x = chain(), ones(5, 3)
    assert_close(s(x), s[2](s[1](s[0](x))), rtol=0, atol=0)
    assert_close(nn.Sequential()(x), x)


# --- a linear layer and its activation as one operation -------------------------------------------

ACTIVATIONS = [nn.ReLU, nn.Sigmoid, nn.Tanh]


def one_by_one(net: nn.Sequential, x: Any) -> Any:
    for module in net:
        x = module(x)
    return x


def test_hooks_of_all_modules_see_the_layers_apart_and_only_while_they_are_there() -> None:
    net, x, seen = nn.Sequential(nn.Linear(3, 4), nn.Tanh()), ones(5, 3), []
    with register_module_forward_hook(lambda module, args, output: seen.append(type(module))):
        assert net(x).grad_fn.name() == "TanhBackward"
    assert seen == [nn.Linear, nn.Tanh, nn.Sequential]
    assert net(x).grad_fn.name().startswith("Linear")


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("kind", ACTIVATIONS)
def test_fused_layers_have_the_derivatives_of_the_two(kind: Any, bias: bool) -> None:
    net = nn.Sequential(nn.Linear(3, 4, bias), kind(), nn.Linear(4, 2, bias), kind()).double()
    x = randn(5, 3, dtype="float64").requires_grad_()
    inputs = [x, *net.parameters()]
    fused, plain = net(x), one_by_one(net, x)
    assert fused.grad_fn.name().startswith("Linear")
    assert not plain.grad_fn.name().startswith("Linear")
    assert_close(fused, plain, rtol=1e-14)
    weights = randn(5, 2, dtype="float64")
    for ours, theirs in zip(
        autograd.grad((fused * weights).sum(), inputs, create_graph=True),
        autograd.grad((plain * weights).sum(), inputs, create_graph=True),
        strict=True,
    ):
        assert_close(ours, theirs, rtol=1e-12, atol=1e-14)
        if not ours.requires_grad:
            continue
        second = autograd.grad(ours.square().sum(), inputs, retain_graph=True, allow_unused=True)
        wanted = autograd.grad(theirs.square().sum(), inputs, retain_graph=True, allow_unused=True)
        for a, b in zip(second, wanted, strict=True):
            assert (a is None) == (b is None)
            if a is not None:
                assert_close(a, b, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("frozen", ["weight", "bias", "input"])
def test_fused_layers_with_parts_that_do_not_learn(frozen: str) -> None:
    net, x = chain(), randn(5, 3).requires_grad_(frozen != "input")
    if frozen != "input":
        getattr(net[0], frozen).requires_grad_(False)
    net(x).sum().backward()
    ours = [None if t.grad is None else t.grad.clone() for t in (x, *net.parameters())]
    for t in (x, *net.parameters()):
        t.grad = None
    one_by_one(net, x).sum().backward()
    for a, t in zip(ours, (x, *net.parameters()), strict=True):
        assert (a is None) == (t.grad is None)
        if a is not None:
            assert_close(a, t.grad, rtol=1e-6)


def test_hooks_and_transformations_see_both_modules() -> None:
    net, x, seen = chain(), randn(5, 3), []
    expected = net(x)
    for module in net:
        handle = module.register_forward_hook(lambda m, args, out: seen.append(type(m).__name__))
        assert_close(net(x), expected)
        handle.remove()
    assert seen == ["Linear", "Tanh", "Linear"]
    with autograd.detect_anomaly():
        assert net(x)._node.edges[0].name() == "TanhBackward"
    assert_close(func.vmap(net)(x), expected, rtol=1e-6)
    _, change = func.jvp(net, (x,), (ones(5, 3),))
    assert_close(change, func.jvp(lambda x: one_by_one(net, x), (x,), (ones(5, 3),))[1])


def test_a_layer_with_its_own_forward_is_called() -> None:
    class Twice(nn.Linear):
        def forward(self, input: Any) -> Any:
            return 2 * super().forward(input)

    net, x = nn.Sequential(Twice(3, 2), nn.ReLU()), randn(4, 3)
    assert_close(net(x), (2 * nn.functional.linear(x, net[0].weight, net[0].bias)).relu())
    net = nn.Sequential(nn.Linear(3, 2), nn.ReLU())
    net[0].forward = lambda input: ones(4, 2)
    assert_close(net(x), ones(4, 2))
    net = nn.Sequential(nn.Linear(3, 2), nn.ReLU())
    net[1].forward = lambda input: ones(4, 2)
    assert_close(net(x), ones(4, 2))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("act", [nn.ReLU(), nn.ReLU(inplace=True), nn.ReLU6()])
@pytest.mark.parametrize("shape", [(5, 3), (4, 3, 7), (2, 3, 5, 4), (2, 3, 1, 2, 3), (0, 3)])
def test_evaluated_normalization_has_its_activation_in_one_pass(
    shape: tuple[int, ...], act: Any, dtype: str
) -> None:
    kind = {2: nn.BatchNorm1d, 3: nn.BatchNorm1d, 4: nn.BatchNorm2d, 5: nn.BatchNorm3d}[len(shape)]
    for options in ({}, {"affine": False}, {"bias": False}, {"track_running_stats": False}):
        norm = kind(3, **options).to(getattr(chainrule, dtype))
        for t in (norm.running_mean, norm.weight, norm.bias):
            if t is not None:
                t.data.copy_(randn(3, dtype=dtype))
        net = nn.Sequential(norm, act, nn.Identity()).eval()
        x = 4 * randn(*shape, dtype=dtype)
        kept = x.clone()
        with chainrule.no_grad():
            assert net(x).tolist() == one_by_one(net, x).tolist()
        assert x.tolist() == kept.tolist()
        assert_close(net(x), one_by_one(net, x))


def test_what_is_between_a_normalization_and_its_activation_can_be_seen() -> None:
    norm, act, seen = nn.BatchNorm1d(3).eval(), nn.ReLU(), []
    net, x = nn.Sequential(norm, act), randn(4, 3)
    with chainrule.no_grad():
        for module in net:
            with module.register_forward_hook(lambda m, args, out: seen.append(out.min().item())):
                net(x)
        assert seen[0] < 0 <= seen[1]
        act.forward = lambda input: ones(4, 3)
        assert_close(net(x), ones(4, 3))
        with pytest.raises(RuntimeError, match="batch_norm") as caught:
            nn.Sequential(norm, nn.ReLU())(randn(4, 2))
    assert caught.value.__notes__[0].startswith("in layer '0' (BatchNorm1d(3")


def test_a_wrong_shape_is_told_by_the_layer() -> None:
    with pytest.raises(RuntimeError, match=r"linear: input of shape \(5, 2\)"):
        chain()(ones(5, 2))
    out = nn.Sequential(nn.Linear(3, 4), nn.Tanh())(randn(5, 3))
    total = (out * 1.0).sum()
    out.mul_(2)
    with pytest.raises(RuntimeError, match="changed after it was saved"):
        total.backward()


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
)
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


@pytest.mark.parametrize("kind", [nn.ReLU, nn.Tanh, nn.Sigmoid, nn.Linear])
def test_a_function_patched_into_a_class_is_seen(
    kind: type[nn.Module], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A linear layer and its activation are one operation only while both are as they come."""
    activation = kind() if kind is not nn.Linear else nn.ReLU()
    net = nn.Sequential(nn.Linear(3, 2), activation)
    x = randn(4, 3)
    before = net(x)
    monkeypatch.setattr(kind, "forward", lambda self, input: input * 0 + 7)
    assert (net(x) == 7).all()
    monkeypatch.undo()
    assert (net(x) == before).all()
    monkeypatch.setattr(kind, "__call__", lambda self, input: input * 0 + 5)
    assert (net(x) == 5).all()

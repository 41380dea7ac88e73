"""Modules: what they hold, how they are called, saved, copied and printed."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from helpers import assert_close

import chainrule
from chainrule import nn, ones, tensor, zeros
from chainrule.curvature.jacobian import input_jacobian, layer_jacobian, parameter_jacobian
from chainrule.func import functional_call, grad, jvp, vmap


class Net(nn.Module):
    """Parameters, buffers and modules of every kind."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(3, 4)
        self.scale = nn.Parameter(ones(4))
        self.register_buffer("count", zeros(2))
        self.register_buffer("hidden", zeros(1), persistent=False)
        self.last = nn.Sequential(nn.Tanh(), nn.Linear(4, 2))

    def forward(self, x: Any) -> Any:
        return self.last(self.first(x) * self.scale)


# --- what a module holds --------------------------------------------------------------------------


def test_attributes_are_registered_by_their_kind() -> None:
    n = Net()
    assert list(n._parameters) == ["scale"]
    assert list(n._buffers) == ["count", "hidden"]
    assert list(n._modules) == ["first", "last"]
    n.plain = zeros(3)
    n.buffer = nn.Buffer(zeros(3))
    assert "plain" not in dict(n.named_buffers())
    assert "buffer" in n.state_dict()


def test_a_tensor_stays_a_buffer_when_it_is_replaced() -> None:
    n = Net()
    n.count = ones(5)
    n.hidden = ones(5)
    assert_close(n.state_dict()["count"], np.ones(5, np.float32))
    assert "hidden" not in n.state_dict()
    assert dict(n.named_buffers())["hidden"].shape == (5,)


def test_replacing_keeps_the_order() -> None:
    n, names = Net(), list(Net().state_dict())
    n.scale = nn.Parameter(zeros(4))
    n.first = nn.Linear(3, 4)
    assert list(n.state_dict()) == names


def test_none_keeps_the_place_of_a_parameter() -> None:
    layer = nn.Linear(2, 3, bias=False)
    assert layer.bias is None
    assert "bias" not in layer.state_dict()
    layer.bias = nn.Parameter(zeros(3))
    assert list(layer.state_dict()) == ["weight", "bias"]


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda n: setattr(n, "scale", zeros(4)), TypeError, "'Tensor' as parameter 'scale'.*None"),
        (lambda n: setattr(n, "first", 3), TypeError, "'int' as child module 'first'"),
        (lambda n: setattr(n, "count", 3), TypeError, "'int' object to buffer 'count'"),
        (lambda n: n.register_parameter("p", zeros(1)), TypeError, "nn.Parameter or None required"),
        (lambda n: n.register_parameter("a.b", None), KeyError, "be empty or contain"),
        (lambda n: n.register_parameter("", None), KeyError, "be empty or contain"),
        (lambda n: n.register_parameter("first", None), KeyError, "'first' already exists"),
        (lambda n: n.register_buffer("forward", zeros(1)), KeyError, "'forward' already exists"),
        (lambda n: n.register_buffer("b", [1.0]), TypeError, "'list' object to buffer 'b'"),
        (lambda n: n.register_buffer(3, zeros(1)), TypeError, "buffer name should be a string"),
        (lambda n: n.add_module("scale", nn.Tanh()), KeyError, "'scale' already exists"),
        (lambda n: n.add_module("m", zeros(1)), TypeError, "Tensor is not a Module subclass"),
        (lambda n: n.register_parameter("p", made()), ValueError, "non-leaf.*'p'; detach"),
        (lambda n: n.get_submodule("last.5"), AttributeError, "Sequential has no attribute `5`"),
        (lambda n: n.get_parameter("count"), AttributeError, "Net has no parameter `count`"),
        (lambda n: n.get_buffer("scale"), AttributeError, "Net has no buffer `scale`"),
        (lambda n: n.missing, AttributeError, "'Net' object has no attribute 'missing'"),
        (lambda n: n.train(1), ValueError, "training mode is expected to be boolean"),
        (lambda n: n.to("cuda"), RuntimeError, "'cuda' is not available"),
        (lambda n: n.to(chainrule.int64), TypeError, "only be floating or complex, got"),
        (lambda n: n.to(typo=1), TypeError, "unexpected keyword argument 'typo'"),
        (lambda n: n.get_extra_state(), RuntimeError, "Net has no extra state"),
        (lambda n: n.load_state_dict(3), TypeError, "expected a dict of tensors, got int"),
        (lambda n: n.set_submodule("", nn.Tanh()), ValueError, "the target is empty"),
        (lambda n: n.set_submodule("x", nn.Tanh(), strict=True), AttributeError, "no attribute"),
        (lambda n: nn.Module()(1), NotImplementedError, 'missing the required "forward"'),
    ],
)
def test_what_is_refused(change: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        change(Net())


def made() -> Any:
    """A parameter that is not a leaf."""
    p = nn.Parameter(zeros(1))
    p._node = (p * 2)._node
    return p


def test_super_init_must_come_first() -> None:
    class Early(nn.Module):
        def __init__(self) -> None:
            self.weight = nn.Parameter(zeros(1))

    with pytest.raises(AttributeError, match=r"'weight' before Module.__init__.*super"):
        Early()


def test_deleting() -> None:
    n = Net()
    del n.scale, n.hidden, n.last
    assert list(n.state_dict()) == ["count", "first.weight", "first.bias"]
    with pytest.raises(AttributeError):
        del n.scale


def test_dir_lists_what_is_held() -> None:
    assert {"scale", "count", "first", "forward"} <= set(dir(Net()))


def test_a_module_can_be_put_in_the_place_of_another() -> None:
    n = Net()
    n.set_submodule("last.1", nn.Linear(4, 7), strict=True)
    assert n(zeros(1, 3)).shape == (1, 7)


# --- types ----------------------------------------------------------------------------------------


def test_conversion_keeps_the_parameters_and_converts_their_gradients() -> None:
    n = Net()
    n.register_buffer("steps", zeros(1, dtype=chainrule.int64))
    n(ones(1, 3)).sum().backward()
    weight = n.first.weight
    assert n.to(chainrule.float64) is n
    assert n.first.weight is weight
    assert weight.dtype == weight.grad.dtype == chainrule.float64
    assert n.steps.dtype == chainrule.int64
    assert n(ones(1, 3, dtype=chainrule.float64)).dtype == chainrule.float64


def test_half_precision() -> None:
    n = Net().half()
    y = n(ones(2, 3, dtype=chainrule.float16))
    assert y.dtype == chainrule.float16
    y.sum().backward()
    assert {p.grad.dtype for p in n.parameters()} == {chainrule.float16}


def test_complex_parameters_stay_complex() -> None:
    n = nn.Module()
    n.weight = nn.Parameter(zeros(2, dtype=chainrule.complex64))
    assert n.double().weight.dtype == chainrule.complex64
    assert n.to(chainrule.complex128).weight.dtype == chainrule.complex128


# --- hooks ----------------------------------------------------------------------------------------


def test_a_hook_may_remove_itself() -> None:
    layer, seen = nn.Linear(2, 2), []

    def once(*args: Any) -> None:
        seen.append(1)
        handle.remove()

    handle = layer.register_forward_hook(once)
    layer(zeros(1, 2))
    layer(zeros(1, 2))
    handle.remove()
    assert seen == [1]


def test_forward_hook_sees_activations_and_backward_hook_their_gradients() -> None:
    n, seen = Net(), {}
    n.first.register_forward_hook(lambda m, a, y: seen.update(value=y))
    n.first.register_full_backward_hook(lambda m, gi, go: seen.update(gradient=go[0]))
    x = ones(2, 3).requires_grad_()
    out = n(x).sum()
    (expected,) = chainrule.autograd.grad(out, seen["value"], retain_graph=True)
    out.backward()
    assert_close(seen["gradient"], expected)


def test_hooks_do_not_disturb_forward_mode_and_second_order() -> None:
    n = Net().double()
    plain = copy.deepcopy(n)
    n.first.register_full_backward_hook(lambda m, gi, go: None)
    n.first.register_full_backward_pre_hook(lambda m, go: None)
    x, t = ones(2, 3, dtype=chainrule.float64), ones(2, 3, dtype=chainrule.float64)
    assert_close(jvp(n, (x,), (t,))[1], jvp(plain, (x,), (t,))[1])
    second = [
        grad(lambda v, m=m: (grad(lambda w: m(w).sum())(v) ** 2).sum())(x) for m in (n, plain)
    ]
    assert_close(second[0], second[1])


def test_wrong_number_of_gradients_from_a_hook() -> None:
    layer = nn.Linear(2, 2)
    layer.register_full_backward_hook(lambda m, gi, go: (gi[0], gi[0]))
    out = layer(ones(1, 2).requires_grad_()).sum()
    with pytest.raises(RuntimeError, match="invalid number of grad_input, got 2, but expected 1"):
        out.backward()


def test_pre_hook_with_keywords_must_return_both() -> None:
    layer = nn.Linear(2, 2)
    layer.register_forward_pre_hook(lambda m, a, k: a, with_kwargs=True)
    with pytest.raises(RuntimeError, match="None or a tuple of .new_args, new_kwargs."):
        layer(zeros(1, 2))


# --- states ---------------------------------------------------------------------------------------


def test_mismatch_lists_everything_at_once() -> None:
    state = Net().state_dict()
    del state["scale"], state["first.bias"]
    state |= {"more": zeros(1), "again": zeros(1), "count": zeros(3), "last.1.bias": "text"}
    with pytest.raises(RuntimeError) as error:
        Net().load_state_dict(state)
    text = str(error.value)
    assert text.startswith("Error(s) in loading state_dict for Net:\n\tMissing key(s)")
    for part in (
        'Missing key(s) in state_dict: "scale", "first.bias".',
        'Unexpected key(s) in state_dict: "more", "again".',
        "size mismatch for count: copying a param with shape (3,)",
        "the shape in current model is (2,)",
        '"last.1.bias": expected a tensor, got str.',
    ):
        assert part in text


def test_not_strict_returns_what_did_not_fit() -> None:
    state = Net().state_dict()
    del state["scale"]
    state["more"] = zeros(1)
    keys = Net().load_state_dict(state, strict=False)
    assert keys.missing_keys == ["scale"]
    assert keys.unexpected_keys == ["more"]
    assert repr(keys).startswith("_IncompatibleKeys(missing_keys=['scale']")
    with pytest.raises(RuntimeError, match="size mismatch for scale"):
        Net().load_state_dict({"scale": zeros(3)}, strict=False)


def test_arrays_load_like_tensors() -> None:
    a, b = Net(), Net()
    b.load_state_dict({name: t.numpy() for name, t in a.state_dict().items()})
    x = ones(2, 3)
    assert_close(b(x), a(x), rtol=0, atol=0)


def test_loading_converts_to_the_type_of_the_module() -> None:
    n = Net()
    n.load_state_dict({k: v.double() for k, v in Net().state_dict().items()})
    assert {p.dtype for p in n.parameters()} == {chainrule.float32}


def test_assign_takes_the_tensors_themselves() -> None:
    n = Net()
    state = {k: v.double() for k, v in Net().state_dict().items()}
    n.scale.requires_grad_(False)
    n.load_state_dict(state, assign=True)
    assert {p.dtype for p in n.parameters()} == {chainrule.float64}
    assert isinstance(n.first.weight, nn.Parameter)
    assert [p.requires_grad for p in n.parameters()] == [False, True, True, True, True]
    state["scale"].fill_(7)
    assert float(n.scale.detach()[0]) == 7


def test_state_dict_shares_memory_with_the_module() -> None:
    n = Net()
    n.state_dict()["scale"].fill_(3)
    assert_close(n.scale, np.full(4, 3, np.float32))


def test_best_weights_are_kept_by_deepcopy() -> None:
    n = Net()
    best = copy.deepcopy(n.state_dict())
    with chainrule.no_grad():
        n.scale.fill_(9)
    n.load_state_dict(best)
    assert_close(n.scale, np.ones(4, np.float32))


def test_scalars_saved_with_one_dimension_load() -> None:
    n = nn.Module()
    n.register_buffer("steps", zeros((), dtype=chainrule.int64))
    n.load_state_dict({"steps": tensor([3])})
    assert int(n.steps) == 3


# --- copies ---------------------------------------------------------------------------------------


def test_copies_share_nothing_and_keep_what_is_tied() -> None:
    n = Net()
    n.again = n.first
    n.tied = n.scale
    n.eval()
    n.first.register_forward_hook(doubled)
    x = ones(2, 3)
    for other in (copy.deepcopy(n), pickle.loads(pickle.dumps(n))):
        assert other.again is other.first
        assert other.tied is other.scale
        assert not other.training
        assert_close(other(x), n(x), rtol=0, atol=0)
        with chainrule.no_grad():
            other.scale.fill_(0)
        assert_close(n.scale, np.ones(4, np.float32))


def doubled(module: Any, args: Any, output: Any) -> Any:
    return output * 2


# --- printing -------------------------------------------------------------------------------------


def test_repr_is_indented_by_depth() -> None:
    assert repr(Net()) == (
        "Net(\n"
        "  (first): Linear(in_features=3, out_features=4, bias=True)\n"
        "  (last): Sequential(\n"
        "    (0): Tanh()\n"
        "    (1): Linear(in_features=4, out_features=2, bias=True)\n"
        "  )\n"
        ")"
    )


def test_extra_repr_of_several_lines() -> None:
    class Told(nn.Module):
        def __init__(self, *lines: str):
            super().__init__()
            self.lines = lines

        def extra_repr(self) -> str:
            return "\n".join(self.lines)

    assert repr(Told("a")) == "Told(a)"
    assert repr(Told("a", "b")) == "Told(\n  a\n  b\n)"


# --- as functions ---------------------------------------------------------------------------------


def test_functional_call_leaves_the_module_alone() -> None:
    n, x = Net(), ones(2, 3)
    before = n(x)
    other = functional_call(n, {"scale": zeros(4), "last.1.bias": ones(2)}, x)
    assert_close(other, np.ones((2, 2), np.float32))
    assert_close(n(x), before, rtol=0, atol=0)
    with pytest.raises(RuntimeError, match=r"no tensor is given for \['count'"):
        functional_call(n, {"scale": zeros(4)}, x, strict=True)
    with pytest.raises(KeyError, match="no tensor named 'none'"):
        functional_call(n, {"none": zeros(4)}, x)


def test_functional_call_replaces_tied_weights_everywhere() -> None:
    a, b = nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False)
    b.weight = a.weight
    n, x = nn.Sequential(a, b), ones(1, 2)
    twice = {"0.weight": 2 * chainrule.eye(2)}
    assert_close(functional_call(n, twice, x), 4 * x)
    once = functional_call(n, twice, x, tie_weights=False)
    assert_close(once, functional_call(a, {"weight": a.weight * 2}, x))


def test_gradients_and_ensembles_by_functional_call() -> None:
    n, x = Net(), ones(2, 3)
    params = dict(n.named_parameters())
    gradient = grad(lambda p: functional_call(n, p, x).sum())(params)
    n(x).sum().backward()
    for name, p in n.named_parameters():
        assert_close(gradient[name], p.grad, rtol=1e-6)
    nets = [Net() for _ in range(3)]
    stacked = {k: chainrule.stack([dict(m.named_parameters())[k] for m in nets]) for k in params}
    together = vmap(lambda p: functional_call(n, p, x))(stacked)
    assert_close(together, chainrule.stack([m(x) for m in nets]), rtol=1e-5, atol=1e-6)


def test_jacobians_of_modules() -> None:
    """dy/dx = W2 diag(1 - tanh^2) W1 and dy/db2 = I; a layer alone has diag(f'(s)) W."""
    n = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)).double()
    x = tensor([0.3, -0.4, 0.8], dtype=chainrule.float64)
    w1, w2 = n[0].weight.numpy(force=True), n[2].weight.numpy(force=True)
    slope = 1 - np.tanh(n[0](x).numpy(force=True)) ** 2
    assert_close(input_jacobian(n, x), w2 @ np.diag(slope) @ w1)
    alone = layer_jacobian(n[0].weight, x, n[1], n[0].bias)
    assert_close(alone[0], np.diag(slope) @ w1)
    assert_close(alone[1], w1 @ np.diag(1 - np.tanh(x.numpy()) ** 2))
    assert_close(input_jacobian(n[:2], x), alone[0])
    jacobian = parameter_jacobian(n, x)
    assert_close(jacobian["2.bias"], np.eye(2))
    expected = np.einsum("ki,i,j->kij", w2, slope, x.numpy())
    assert_close(jacobian["0.weight"], expected)

"""The order of elements in memory: strides as in PyTorch where a format is named, and no result
depends on it."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from helpers import assert_close

import chainrule

torch = pytest.importorskip("torch")

FORMATS = ("channels_last", "contiguous_format", "preserve_format")
RNG = np.random.default_rng(0)
X = RNG.normal(size=(2, 3, 4, 5))
V = RNG.normal(size=(2, 3, 4, 5, 2))


def made(library: Any, format: str | None = "channels_last", a: np.ndarray = X) -> Any:
    x = library.tensor(a)
    return x if format is None else x.contiguous(memory_format=getattr(library, format))


CALLS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "contiguous": lambda lib, x, f: (
        x if f is lib.preserve_format else x.contiguous(memory_format=f)
    ),
    "clone": lambda lib, x, f: x.clone(memory_format=f),
    "to": lambda lib, x, f: x.to(memory_format=f),
    "to, with type": lambda lib, x, f: x.to("cpu", lib.float64, memory_format=f),
    "to, copied": lambda lib, x, f: x.to(lib.float64, copy=True, memory_format=f),
    "double": lambda lib, x, f: x.double(memory_format=f),
    "cpu": lambda lib, x, f: x.cpu(memory_format=f),
    "zeros_like": lambda lib, x, f: lib.zeros_like(x, memory_format=f),
    "ones_like": lambda lib, x, f: lib.ones_like(x, memory_format=f, layout=lib.strided),
    "full_like": lambda lib, x, f: lib.full_like(x, 3.0, memory_format=f),
}
SHAPES_ALONE: dict[str, Callable[[Any, Any, Any], Any]] = {
    "empty_like": lambda lib, x, f: lib.empty_like(x, memory_format=f, pin_memory=False),
    "rand_like": lambda lib, x, f: lib.rand_like(x, memory_format=f),
    "randn_like": lambda lib, x, f: lib.randn_like(x, memory_format=f),
    "randint_like": lambda lib, x, f: lib.randint_like(x, 5, memory_format=f),
}


@pytest.mark.parametrize("source", [None, "channels_last"])
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", [*CALLS, *SHAPES_ALONE])
def test_strides_and_values(name: str, format: str, source: str | None) -> None:
    function = {**CALLS, **SHAPES_ALONE}[name]
    ours, theirs = (
        function(lib, made(lib, source), getattr(lib, format)) for lib in (chainrule, torch)
    )
    assert ours.stride() == theirs.stride()
    assert ours.shape == tuple(theirs.shape)
    if name in CALLS:
        assert_close(ours.numpy(), theirs.numpy())


@pytest.mark.parametrize(
    "make",
    [
        lambda lib: lib.ones(2, 3, 4, 5),
        lambda lib: made(lib),
        lambda lib: made(lib)[:, :2],
        lambda lib: made(lib).permute(0, 2, 3, 1),
        lambda lib: made(lib, None).permute(0, 3, 1, 2),
        lambda lib: lib.ones(2, 1, 4, 5),
        lambda lib: lib.ones(2, 3, 1, 1),
        lambda lib: lib.ones(0, 3, 4, 5),
        lambda lib: lib.ones(3, 4, 5),
        lambda lib: lib.ones(1, 1, 1, 1),
        lambda lib: lib.ones(2, 1, 1, 1).expand(2, 3, 4, 5),
        lambda lib: made(lib, "channels_last_3d", V),
        lambda lib: lib.empty(2, 3, 4, 5, memory_format=lib.channels_last),
        lambda lib: lib.empty(2, 3, 4, 5, 2, memory_format=lib.channels_last_3d),
    ],
)
def test_questions_are_answered_truly(make: Callable[[Any], Any]) -> None:
    ours, theirs = make(chainrule), make(torch)
    for format in (*FORMATS, "channels_last_3d"):
        expected = theirs.is_contiguous(memory_format=getattr(torch, format))
        assert ours.is_contiguous(memory_format=getattr(chainrule, format)) is expected, format


def test_what_lies_so_is_not_copied() -> None:
    x = made(chainrule)
    assert x.contiguous(memory_format=chainrule.channels_last) is x
    assert x.to(memory_format=chainrule.channels_last) is x
    assert x.to(memory_format=chainrule.preserve_format) is x
    assert x.to(copy=True) is not x
    y = chainrule.ones(2, 3, requires_grad=True).transpose(0, 1)
    assert y.clone(memory_format=chainrule.preserve_format).stride() == (1, 3)
    assert y.clone().stride() == (2, 1)
    assert y[::-1].clone(memory_format=chainrule.preserve_format).is_contiguous()


def errors(function: Callable[[Any], Any], kind: type[Exception], match: str) -> None:
    with pytest.raises(kind):
        function(torch)
    with pytest.raises(kind, match=match):
        function(chainrule)


def test_what_has_no_such_order_is_refused() -> None:
    rank = "required rank 4 tensor to use channels_last format"
    last = {lib: {"memory_format": lib.channels_last} for lib in (chainrule, torch)}
    errors(lambda lib: made(lib, a=X[0]), RuntimeError, rank)
    errors(lambda lib: lib.empty(2, **last[lib]), RuntimeError, f"empty: {rank}")
    errors(lambda lib: lib.ones_like(lib.ones(2), **last[lib]), RuntimeError, f"ones_like: {rank}")
    errors(lambda lib: lib.nn.Conv3d(1, 1, 2).to(**last[lib]), RuntimeError, rank)
    errors(lambda lib: lib.ones(2).contiguous(memory_format=1), TypeError, "not int")
    errors(lambda lib: lib.ones(2).is_contiguous(memory_format=1), TypeError, "not int")
    errors(lambda lib: lib.ones(2).clone(memory_format="last"), TypeError, "not str")
    errors(lambda lib: lib.ones(2, memory_format=lib.channels_last), TypeError, "'memory_format'")
    errors(
        lambda lib: made(lib).contiguous(memory_format=lib.preserve_format),
        RuntimeError,
        "preserve_format names no order",
    )


def test_formats_have_names_and_are_one_of_each() -> None:
    for name in (*FORMATS, "channels_last_3d"):
        ours = getattr(chainrule, name)
        assert isinstance(ours, chainrule.memory_format)
        assert repr(ours) == f"chainrule.{name}"
        assert copy.deepcopy(ours) is ours
        assert pickle.loads(pickle.dumps(ours)) is ours


def test_gradients_flow_through_a_new_order() -> None:
    def f(x: chainrule.Tensor) -> chainrule.Tensor:
        return x.contiguous(memory_format=chainrule.channels_last) ** 2

    x = chainrule.tensor(X[:1, :2, :2, :2], requires_grad=True)
    assert chainrule.autograd.gradcheck(f, (x,))
    assert chainrule.autograd.gradgradcheck(f, (x,))
    batch = chainrule.func.vmap(lambda x: x.clone(memory_format=chainrule.channels_last) + 1)
    assert_close(batch(chainrule.tensor(V.transpose(4, 0, 1, 2, 3))).numpy()[0], V[..., 0] + 1)


# --- networks -------------------------------------------------------------------------------------


def network(library: Any) -> Any:
    nn = library.nn
    return nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=1),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(4, 4, 2, groups=2),
        nn.GroupNorm(2, 4),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(4, 2),
    )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_network_in_channels_last_computes_the_same(dtype: str) -> None:
    theirs = network(torch).to(getattr(torch, dtype))
    state = {name: chainrule.tensor(value.numpy()) for name, value in theirs.state_dict().items()}
    results = []
    for format in (None, "channels_last"):
        net = network(chainrule).to(dtype)
        net.load_state_dict(state)
        x = chainrule.tensor(X, dtype=dtype)
        if format is not None:
            last = chainrule.channels_last
            net, x = net.to(memory_format=last), x.to(memory_format=last)
            assert net[0].weight.is_contiguous(memory_format=last)
            assert net[0].bias.stride() == (1,)
        x.requires_grad_()
        (net(x) ** 2).sum().backward()
        results.append([x.grad, *[p.grad for p in net.parameters()], net[1].running_var])
    x = torch.tensor(X, dtype=getattr(torch, dtype), requires_grad=True)
    (theirs(x) ** 2).sum().backward()
    expected = [x.grad, *[p.grad for p in theirs.parameters()], theirs[1].running_var]
    for plain, last, other in zip(*results, expected, strict=True):
        assert_close(last.numpy(), plain.numpy(), 1e-4 if dtype == "float32" else 1e-9)
        if dtype == "float64":  # gradients through normalizations are small differences
            assert_close(last.numpy(), other.numpy(), 1e-9)


def test_a_step_of_an_optimizer_keeps_the_order_and_the_values() -> None:
    weights = []
    for format in (chainrule.contiguous_format, chainrule.channels_last):
        chainrule.manual_seed(0)
        net = network(chainrule).to(memory_format=format)
        optimizer = chainrule.optim.AdamW(net.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            net(chainrule.tensor(X, dtype=chainrule.float32)).square().sum().backward()
            optimizer.step()
        assert net[0].weight.is_contiguous(memory_format=format)
        weights.append(net[0].weight.detach().numpy())
    assert_close(weights[0], weights[1], 1e-4)


def test_a_network_in_channels_last_is_saved() -> None:
    net = network(chainrule).to(memory_format=chainrule.channels_last).eval()
    file = io.BytesIO()
    chainrule.save(net, file)
    file.seek(0)
    x = chainrule.tensor(X, dtype=chainrule.float32)
    for again in (chainrule.load(file), copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert_close(again(x).detach().numpy(), net(x).detach().numpy(), 1e-5)
        assert chainrule.equal(again[0].weight, net[0].weight)
    other = network(chainrule).to(memory_format=chainrule.channels_last)
    other.load_state_dict(net.state_dict())
    assert chainrule.equal(other[0].weight, net[0].weight)
    assert other[0].weight.is_contiguous(memory_format=chainrule.channels_last)


def test_weights_of_convolutions_alone() -> None:
    for library in (chainrule, torch):
        net = library.nn.Sequential(library.nn.Conv2d(3, 4, 2), library.nn.Conv3d(3, 4, 2))
        utils = library.nn.utils
        utils.convert_conv2d_weight_memory_format(net, library.channels_last)
        utils.convert_conv3d_weight_memory_format(net, library.channels_last_3d)
        assert net[0].weight.stride() == (12, 1, 6, 3)
        assert net[1].weight.stride() == (24, 1, 12, 6, 3)


# --- functions that make tensors ------------------------------------------------------------------

MAKERS: dict[str, Callable[..., Any]] = {
    "zeros": lambda lib, **m: lib.zeros(2, **m),
    "ones": lambda lib, **m: lib.ones(2, **m),
    "empty": lambda lib, **m: lib.empty(2, **m),
    "full": lambda lib, **m: lib.full((2,), 1.0, **m),
    "arange": lambda lib, **m: lib.arange(3, **m),
    "linspace": lambda lib, **m: lib.linspace(0, 1, 3, **m),
    "logspace": lambda lib, **m: lib.logspace(0, 1, 3, **m),
    "eye": lambda lib, **m: lib.eye(2, **m),
    "rand": lambda lib, **m: lib.rand(2, **m),
    "randn": lambda lib, **m: lib.randn(2, **m),
    "randint": lambda lib, **m: lib.randint(3, (2,), **m),
    "randperm": lambda lib, **m: lib.randperm(3, **m),
    "normal": lambda lib, **m: lib.normal(0.0, 1.0, (2,), **m),
    "scalar_tensor": lambda lib, **m: lib.scalar_tensor(1.0, **m),
    "hann_window": lambda lib, **m: lib.hann_window(3, **m),
    "kaiser_window": lambda lib, **m: lib.kaiser_window(3, **m),
    "fftfreq": lambda lib, **m: lib.fft.fftfreq(3, **m),
    "zeros_like": lambda lib, **m: lib.zeros_like(lib.ones(2), **m),
    "randn_like": lambda lib, **m: lib.randn_like(lib.ones(2), **m),
    "new_zeros": lambda lib, **m: lib.ones(1).new_zeros(2, **m),
    "new_full": lambda lib, **m: lib.ones(1).new_full((2,), 1.0, **m),
}


@pytest.mark.parametrize("name", MAKERS)
def test_layout_and_pinned_memory(name: str) -> None:
    make = MAKERS[name]
    for library in (chainrule, torch):
        out = make(library, layout=library.strided, pin_memory=False)
        assert out.layout is library.strided
        assert tuple(make(library, layout=None).shape) == tuple(out.shape)
    with pytest.raises(RuntimeError, match="pin_memory=True needs a GPU"):
        make(chainrule, pin_memory=True)
    with pytest.raises(TypeError, match="argument 'layout' must be chainrule.strided"):
        make(chainrule, layout=chainrule.sparse_coo)
    with pytest.raises(TypeError, match="unexpected keyword argument 'layuot'"):
        make(chainrule, layuot=None)


def test_data_and_indices() -> None:
    for library in (chainrule, torch):
        assert library.tensor([1.0], pin_memory=False).tolist() == [1.0]
        assert library.tril_indices(2, 2, layout=library.strided).shape == (2, 3)
    with pytest.raises(RuntimeError, match="tensor: pin_memory=True needs a GPU"):
        chainrule.tensor([1.0], pin_memory=True)

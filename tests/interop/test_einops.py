"""einops on tensors: values and gradients as on PyTorch's, layers as modules, both imports."""

from __future__ import annotations

import copy
import importlib
import io
import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from helpers import assert_close

import chainrule
from chainrule import interop, nn

einops = pytest.importorskip("einops")


@pytest.fixture
def torch() -> Any:
    """The reference, where it is installed."""
    return pytest.importorskip("torch")


RNG = np.random.default_rng(0)
X = RNG.uniform(0.5, 2.0, size=(2, 3, 4, 6))
Y = RNG.normal(size=(3, 5))

CALLS: dict[str, Callable[..., Any]] = {
    "rearrange": lambda x, y: einops.rearrange(x, "b c (h p) w -> (b w) p (h c)", p=2),
    "rearrange back": lambda x, y: einops.rearrange(x, "b c h w -> w h c b"),
    "rearrange a list": lambda x, y: einops.rearrange([x, 2 * x], "n b c h w -> b (n c) h w"),
    "rearrange with dots": lambda x, y: einops.rearrange(x, "b ... w -> w (b ...) 1"),
    "repeat": lambda x, y: einops.repeat(x, "b c h w -> b (h 2) c (r w)", r=3),
    "repeat anew": lambda x, y: einops.repeat(y, "i j -> i k j", k=4),
    "einsum": lambda x, y: einops.einsum(x, y, "batch c h w, c out -> batch out h"),
    "pack": lambda x, y: einops.pack([x, x[:, :, 0], x[:, :, 0, 0]], "b c *")[0],
    "unpack": lambda x, y: einops.unpack(x, [(), (2,)], "b * h w")[1],
    **{
        f"reduce by {name}": lambda x, y, name=name: einops.reduce(
            x, "b c (h p) (w q) -> b h w c", name, p=2, q=3
        )
        for name in ("min", "max", "sum", "mean", "prod")
    },
    "reduce by a function": lambda x, y: einops.reduce(
        x, "b c h w -> b c", lambda a, axes: a.logsumexp(axes)
    ),
}


def value_and_gradients(library: Any, function: Callable[..., Any]) -> list[np.ndarray]:
    x, y = (library.tensor(a, requires_grad=True) for a in (X, Y))
    out = function(x, y)
    weight = library.arange(1, out.numel() + 1).reshape(out.shape) / 7
    grads = library.autograd.grad((out * weight).sum(), (x, y), allow_unused=True)
    return [out.detach().numpy(), *[np.zeros(1) if g is None else g.numpy() for g in grads]]


@pytest.mark.parametrize("name", CALLS)
def test_values_and_gradients_are_those_on_pytorch(torch: Any, name: str) -> None:
    ours, theirs = (value_and_gradients(lib, CALLS[name]) for lib in (chainrule, torch))
    for a, b in zip(ours, theirs, strict=True):
        assert_close(a, b)


@pytest.mark.parametrize("reduction", ["any", "all"])
def test_booleans(reduction: str) -> None:
    x = X > 0.6
    out = einops.reduce(chainrule.tensor(x), "b c h w -> b h", reduction)
    assert out.tolist() == getattr(x, reduction)((1, 3)).tolist()
    assert out.dtype == chainrule.bool


def test_numbers_out_and_shapes() -> None:
    x = chainrule.tensor(X, requires_grad=True)
    assert_close(einops.asnumpy(x), X)
    assert einops.parse_shape(x, "b c _ w") == {"b": 2, "c": 3, "w": 6}
    with pytest.raises(einops.EinopsError, match="can't divide axis"):
        einops.rearrange(x, "b (c d) h w -> b c d h w", d=2)
    with pytest.raises(NotImplementedError, match="reduce_mean"):
        einops.reduce(chainrule.arange(4), "n -> ", "mean")


def test_derivatives_of_any_order() -> None:
    def f(x: chainrule.Tensor) -> chainrule.Tensor:
        return einops.reduce(x.exp(), "(n k) -> k", "prod", k=2).sum()

    x = chainrule.tensor([0.1, 0.2, 0.3, 0.4], dtype=chainrule.float64)
    assert chainrule.autograd.gradcheck(f, (x.clone().requires_grad_(),))
    h = chainrule.func.hessian(f)(x)
    assert_close(h[0, 2].numpy(), np.exp(0.4))
    assert_close(h[0, 1].numpy(), 0.0)
    batch = chainrule.func.vmap(lambda x: einops.rearrange(x, "a b -> b a"))(
        chainrule.ones(5, 2, 3)
    )
    assert batch.shape == (5, 3, 2)


# --- layers ---------------------------------------------------------------------------------------


def layers(library: str) -> Any:
    return importlib.import_module(f"einops.layers.{library}")


def network(library: str, nn: Any) -> Any:
    made = layers(library)
    return nn.Sequential(
        made.Rearrange("b c (h p) w -> b (c p) h w", p=2),
        made.Reduce("b c h (w q) -> b c h w", "mean", q=2),
        made.EinMix("b c h w -> b (h w) d", weight_shape="c d", bias_shape="d", c=6, d=5),
        made.EinMix("b n (g d) -> b n g", weight_shape="g d", g=1, d=5),
    )


def test_layers_compute_what_they_compute_on_pytorch(torch: Any) -> None:
    ours, theirs = network("chainrule", nn).double(), network("torch", torch.nn).double()
    assert list(ours.state_dict()) == list(theirs.state_dict())
    ours.load_state_dict({k: chainrule.tensor(v.numpy()) for k, v in theirs.state_dict().items()})
    results = []
    for net, library in ((ours, chainrule), (theirs, torch)):
        x = library.tensor(X, requires_grad=True)
        out = net(x)
        (out**2).sum().backward()
        results.append([out.detach(), x.grad, *[p.grad for p in net.parameters()]])
    for a, b in zip(*results, strict=True):
        assert_close(a.numpy(), b.numpy())
    assert repr(ours) == repr(theirs)


def test_weights_start_between_the_bounds_of_einops() -> None:
    chainrule.manual_seed(0)
    mix = layers("chainrule").EinMix("b c -> b d", weight_shape="c d", bias_shape="d", c=300, d=40)
    assert 0.098 < mix.weight.abs().max().item() <= 0.1
    assert 0 < mix.bias.abs().max().item() <= 300**-0.5
    assert mix.weight.requires_grad
    assert {p.numel() for p in mix.parameters()} == {12000, 40}


def test_layers_are_copied_saved_and_loaded() -> None:
    net = network("chainrule", nn)
    net[0].eval()
    x = chainrule.tensor(X, dtype=chainrule.float32)
    file = io.BytesIO()
    chainrule.save(net, file)
    file.seek(0)
    again = (copy.deepcopy(net), pickle.loads(pickle.dumps(net)), chainrule.load(file))
    for other in again:
        assert chainrule.equal(other(x), net(x))
        assert repr(other) == repr(net)
        assert [m.training for m in other] == [False, True, True, True]
    second = io.BytesIO()
    chainrule.save(again[1], second)  # a copy knows what it was made with


# --- imports --------------------------------------------------------------------------------------

BOTH = "assert einops.rearrange(chainrule.ones(2, 3), 'a b -> b a').shape == (3, 2)"
LAYER = (
    "from einops.layers.chainrule import Rearrange\n"
    "assert issubclass(Rearrange, chainrule.nn.Module)"
)


@pytest.mark.parametrize(
    "program",
    [
        f"import einops\nimport chainrule\n{BOTH}\n{LAYER}",
        f"import chainrule\nimport einops\n{BOTH}\n{LAYER}",
        f"import chainrule\n{LAYER}\nimport einops\n{BOTH}",
        f"import einops, numpy, chainrule\neinops.rearrange(numpy.ones(2), 'a -> a 1')\n{BOTH}",
        f"import chainrule, einops, importlib\nimportlib.reload(einops)\n{BOTH}",
        "import sys, chainrule\nassert not any(name.startswith('einops') for name in sys.modules)",
        "import chainrule, io, sys\nchainrule.save(chainrule.nn.Linear(1, 1), io.BytesIO())\n"
        "class Own(chainrule.nn.Linear): ...\nchainrule.save(Own(1, 1), io.BytesIO())\n"
        "assert 'einops' not in sys.modules",
    ],
)
def test_either_is_imported_first_and_only_if_asked_for(program: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_the_finder_answers_for_two_names() -> None:
    finder = interop.Finder()
    assert finder.find_spec("einops.layers.torch", ["."]) is None
    assert finder.find_spec("numpy") is None
    assert sum(isinstance(f, interop.Finder) for f in sys.meta_path) == 1
    interop.announce()
    assert sum(isinstance(f, interop.Finder) for f in sys.meta_path) == 1


def test_an_einops_that_is_not_installed_is_not_found(monkeypatch: pytest.MonkeyPatch) -> None:
    finder = interop.Finder()
    monkeypatch.setattr(sys, "meta_path", [finder])
    assert finder.find_spec("einops") is None


def test_another_einops_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "chainrule.interop.einops_backend", raising=False)
    monkeypatch.delattr("einops._backends.AbstractBackend")
    with pytest.warns(UserWarning, match=r"einops 0\..* does not take chainrule's tensors: .*0\.8"):
        interop.describe_to_einops()

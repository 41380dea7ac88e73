"""Weights computed by hooks, pruning and hooks of leaves: step by step as PyTorch."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from helpers import assert_close

import chainrule

torch = pytest.importorskip("torch")
pytest.importorskip("torch.nn.utils.prune")

Build = Callable[[Any], Any]


def both(build: Build) -> tuple[Any, Any]:
    """A module in both libraries with PyTorch's state."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's, of functions that have newer names
        theirs = build(torch.nn).double()
    ours = build(chainrule.nn).double()
    assert list(ours.state_dict()) == list(theirs.state_dict())
    ours.load_state_dict(theirs.state_dict())
    return ours, theirs


def run(library: Any, module: Any, x: np.ndarray) -> list[Any]:
    """The output and all gradients, then the state."""
    out = module(library.from_numpy(x))
    module.zero_grad()
    (out * out).sum().backward()
    return [out.detach(), *[p.grad for p in module.parameters()], *module.state_dict().values()]


def assert_same_runs(ours: Any, theirs: Any, *shape: int) -> None:
    x = np.random.default_rng(3).normal(size=shape)
    for training in (True, True, False):
        a = run(chainrule, ours.train(training), x)
        b = run(torch, theirs.train(training), x)
        for mine, other in zip(a, b, strict=True):
            assert_close(mine, other.numpy(), rtol=1e-9, atol=1e-12)


NORMALIZED: dict[str, tuple[Build, tuple[int, ...]]] = {
    "weight_norm": (lambda nn: nn.utils.weight_norm(nn.Linear(3, 4)), (5, 3)),
    "weight_norm of all": (lambda nn: nn.utils.weight_norm(nn.Linear(3, 4), dim=None), (5, 3)),
    "weight_norm of columns": (lambda nn: nn.utils.weight_norm(nn.Linear(3, 4), dim=1), (5, 3)),
    "weight_norm of a convolution": (
        lambda nn: nn.utils.weight_norm(nn.Conv1d(2, 3, 2)),
        (5, 2, 4),
    ),
    "spectral_norm": (lambda nn: nn.utils.spectral_norm(nn.Linear(3, 4)), (5, 3)),
    "spectral_norm, 3 steps": (
        lambda nn: nn.utils.spectral_norm(nn.Conv2d(2, 3, 2), n_power_iterations=3),
        (2, 2, 4, 4),
    ),
    "spectral_norm, transposed": (
        lambda nn: nn.utils.spectral_norm(nn.ConvTranspose1d(2, 3, 2)),
        (2, 2, 4),
    ),
}


@pytest.mark.parametrize("name", NORMALIZED)
def test_normalized_weights(name: str) -> None:
    build, shape = NORMALIZED[name]
    assert_same_runs(*both(build), *shape)


@pytest.mark.parametrize("kind", ["weight_norm", "spectral_norm"])
def test_a_normalized_weight_becomes_an_ordinary_one(kind: str) -> None:
    ours, theirs = both(lambda nn: getattr(nn.utils, kind)(nn.Linear(3, 4)))
    assert_same_runs(ours, theirs, 5, 3)
    for library, module in ((chainrule, ours), (torch, theirs)):
        assert getattr(library.nn.utils, f"remove_{kind}")(module) is module
    assert list(ours.state_dict()) == list(theirs.state_dict()) == ["bias", "weight"]
    assert_same_runs(ours, theirs, 5, 3)
    with pytest.raises(ValueError, match=f"{kind} of 'weight' not found in Linear"):
        getattr(chainrule.nn.utils, f"remove_{kind}")(ours)


def test_a_weight_is_normalized_once() -> None:
    layer = chainrule.nn.utils.weight_norm(chainrule.nn.Linear(3, 4))
    with pytest.raises(RuntimeError, match="two weight_norm hooks on the same parameter weight"):
        chainrule.nn.utils.weight_norm(layer)
    with pytest.raises(ValueError, match="has no parameter 'wight'"):
        chainrule.nn.utils.spectral_norm(chainrule.nn.Linear(3, 4), "wight")
    with pytest.raises(ValueError, match="n_power_iterations=0"):
        chainrule.nn.utils.spectral_norm(chainrule.nn.Linear(3, 4), n_power_iterations=0)


# --- pruning --------------------------------------------------------------------------------------


def twice(nn: Any, layer: Any) -> Any:
    nn.utils.prune.l1_unstructured(layer, "weight", amount=0.3)
    nn.utils.prune.ln_structured(layer, "weight", amount=0.5, n=2, dim=0)
    return nn.utils.prune.l1_unstructured(layer, "weight", amount=2)


PRUNED: dict[str, Callable[[Any, Any], Any]] = {
    "l1": lambda nn, layer: nn.utils.prune.l1_unstructured(layer, "weight", 5),
    "l1 of a bias": lambda nn, layer: nn.utils.prune.l1_unstructured(layer, "bias", 0.5),
    "structured": lambda nn, layer: nn.utils.prune.ln_structured(layer, "weight", 0.4, n=1, dim=-1),
    "identity": lambda nn, layer: nn.utils.prune.identity(layer, "weight"),
    "three times": twice,
}


def layer_of(nn: Any) -> Any:
    layer = nn.Linear(4, 6)
    r, library = np.random.default_rng(0), torch if nn is torch.nn else chainrule
    layer.weight.data = library.from_numpy(r.normal(size=(6, 4)))
    layer.bias.data = library.from_numpy(r.normal(size=6))
    return layer


@pytest.mark.parametrize("name", PRUNED)
def test_pruning(name: str) -> None:
    ours, theirs = (PRUNED[name](nn, layer_of(nn)).double() for nn in (chainrule.nn, torch.nn))
    assert list(ours.state_dict()) == list(theirs.state_dict())
    for key in ours.state_dict():
        if key.endswith("_mask"):
            assert_close(ours.state_dict()[key], theirs.state_dict()[key].numpy(), rtol=0, atol=0)
    ours.load_state_dict(theirs.state_dict())
    assert_same_runs(ours, theirs, 5, 4)
    assert chainrule.nn.utils.prune.is_pruned(chainrule.nn.Sequential(ours))
    pruned = next(key for key in ours.state_dict() if key.endswith("_mask"))[: -len("_mask")]
    for library, module in ((chainrule, ours), (torch, theirs)):
        library.nn.utils.prune.remove(module, pruned)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    assert not chainrule.nn.utils.prune.is_pruned(ours)
    assert_same_runs(ours, theirs, 5, 4)


def test_global_pruning_with_scores_and_again() -> None:
    masks = []
    for library in (chainrule, torch):
        nn, prune = library.nn, library.nn.utils.prune
        first, second = layer_of(nn), layer_of(nn)
        held = [(first, "weight"), (second, "weight")]
        scores = {(first, "weight"): 0.5 * first.weight.detach()}
        for amount in (0.4, 6):
            prune.global_unstructured(
                held, prune.L1Unstructured, importance_scores=scores, amount=amount
            )
        masks.append([layer.weight_mask.numpy() for layer in (first, second)])
    assert np.array_equal(masks[0], masks[1])
    assert np.sum(masks[0]) == 48 - 19 - 6


@pytest.mark.parametrize("kind", ["random_unstructured", "random_structured"])
def test_random_pruning_takes_what_it_says(kind: str) -> None:
    prune, layer = chainrule.nn.utils.prune, layer_of(chainrule.nn)
    more = {} if kind == "random_unstructured" else {"dim": 0}
    getattr(prune, kind)(layer, "weight", amount=0.5, **more)
    assert int(layer.weight_mask.sum()) == 12
    getattr(prune, kind)(layer, "weight", amount=0.5, **more)
    assert int(layer.weight_mask.sum()) == (6 if not more else 4)


PRUNING_ERRORS: list[tuple[Callable[[Any], Any], type[Exception], str]] = [
    (lambda p: p.L1Unstructured(1.5), ValueError, "float in the range"),
    (lambda p: p.L1Unstructured("2"), TypeError, "Must be int or float"),
    (lambda p: p.l1_unstructured(layer_of(chainrule.nn), "weight", 25), ValueError, "amount=25"),
    (lambda p: p.ln_structured(layer_of(chainrule.nn), "bias", 1, 1, 0), ValueError, "multidim"),
    (lambda p: p.ln_structured(layer_of(chainrule.nn), "weight", 1, 1, 2), IndexError, "index 2"),
    (lambda p: p.remove(layer_of(chainrule.nn), "weight"), ValueError, "has to be pruned before"),
    (
        lambda p: p.custom_from_mask(layer_of(chainrule.nn), "weight", chainrule.ones(2)),
        AssertionError,
        "does not fit",
    ),
    (
        lambda p: p.global_unstructured(
            [(layer_of(chainrule.nn), "weight")], p.LnStructured, amount=1, n=1
        ),
        TypeError,
        'Only "unstructured"',
    ),
]


@pytest.mark.parametrize(("call", "error", "match"), PRUNING_ERRORS)
def test_errors_of_pruning(call: Callable[[Any], Any], error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        call(chainrule.nn.utils.prune)


def test_a_failed_pruning_leaves_the_module_as_it_was() -> None:
    layer = layer_of(chainrule.nn)
    with pytest.raises(ValueError, match="amount=25"):
        chainrule.nn.utils.prune.l1_unstructured(layer, "weight", 25)
    assert sorted(layer.state_dict()) == ["bias", "weight"]
    assert not chainrule.nn.utils.prune.is_pruned(layer)


# --- hooks of leaves ------------------------------------------------------------------------------


def test_a_step_in_the_backward_pass() -> None:
    """As in the tutorial: an optimizer for each parameter, called when its gradient is there."""
    found = []
    for library in (chainrule, torch):
        w = library.from_numpy(np.array([1.0, -2.0])).requires_grad_()
        seen: list[Any] = []
        optimizer = library.optim.SGD([w], lr=0.07, momentum=0.9)

        def step(p: Any, optimizer: Any = optimizer, seen: list[Any] = seen) -> None:
            seen.append(p.grad.numpy().copy())
            optimizer.step()
            optimizer.zero_grad()

        w.register_hook(lambda g: 2 * g)
        handle = w.register_post_accumulate_grad_hook(step)
        for _ in range(3):
            (w * w).sum().backward()
        assert w.grad is None
        handle.remove()
        (w * w).sum().backward()
        found.append([*seen, w.detach().numpy(), w.grad.numpy()])
    for mine, other in zip(*found, strict=True):
        assert_close(mine, other, rtol=1e-12, atol=0)


@pytest.mark.parametrize("library", [chainrule, torch], ids=["ours", "theirs"])
def test_who_may_have_a_hook_behind_the_sum(library: Any) -> None:
    x = library.ones(2)
    with pytest.raises(RuntimeError, match="doesn't require grad"):
        x.register_post_accumulate_grad_hook(print)
    with pytest.raises(RuntimeError, match="cannot be registered on non-leaf tensors"):
        (x.requires_grad_() * 2).register_post_accumulate_grad_hook(print)


# --- names ----------------------------------------------------------------------------------------


def test_older_names_give_what_the_newer_ones_do() -> None:
    nn = chainrule.nn
    layer = nn.utils.skip_init(nn.Linear, 3, 2, bias=False)
    assert nn.utils.convert_conv2d_weight_memory_format(layer, None) is layer
    assert nn.utils.convert_conv3d_weight_memory_format(layer, None) is layer
    ones = chainrule.ones(2, 3)
    out = nn.utils.stateless.functional_call(layer, {"weight": ones}, (chainrule.ones(3),))
    assert out.tolist() == [3.0, 3.0]
    layer.weight.grad = ones
    with pytest.warns(FutureWarning, match="clip_grad_norm_"):
        norm = nn.utils.clip_grad_norm(layer.parameters(), 1.0)
    assert_close(norm, np.sqrt(6.0), rtol=1e-6)
    assert_close(nn.utils.get_total_norm([layer.weight.grad]), 1.0, rtol=1e-5)

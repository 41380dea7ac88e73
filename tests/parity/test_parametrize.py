"""Parametrizations and lazy layers against PyTorch, where the records of layers do not reach."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from helpers import assert_close, weight
from nn.test_lazy import LAYERS

import chainrule

torch = pytest.importorskip("torch")


def gradient(lib: Any, layer: Any) -> Any:
    """The gradient of a weighted sum of the weight by the first original."""
    original = next(p for n, p in layer.named_parameters() if "original" in n)
    factors = lib.from_numpy(weight(tuple(layer.weight.shape)))
    (result,) = lib.autograd.grad((layer.weight * factors).sum(), original)
    return result


@pytest.mark.parametrize("way", ["matrix_exp", "cayley", "householder"])
@pytest.mark.parametrize("trivial", [True, False])
@pytest.mark.parametrize("shape", [(3, 3), (5, 3), (3, 5), (4, 1)], ids=str)
def test_orthogonal(way: str, trivial: bool, shape: tuple[int, int]) -> None:
    layers = []
    for lib in (torch, chainrule):
        layer = lib.nn.Linear(shape[1], shape[0]).double()
        lib.nn.utils.parametrizations.orthogonal(
            layer, orthogonal_map=way, use_trivialization=trivial
        )
        layers.append(layer)
    theirs, ours = layers
    with torch.no_grad():  # away from the start, below the diagonal
        original = theirs.parametrizations.weight.original
        lower = torch.ones_like(original).tril(-1)
        wide = torch.ones_like(original.mT).tril(-1).mT
        original += (lower if shape[0] >= shape[1] else wide) * 0.3
    ours.load_state_dict(theirs.state_dict())
    assert_close(ours.weight, theirs.weight, atol=1e-12)
    assert_close(gradient(chainrule, ours), gradient(torch, theirs), rtol=1e-9, atol=1e-11)
    assert repr(ours) == repr(theirs)


@pytest.mark.parametrize("way", ["matrix_exp", "householder"])
def test_assignment_reaches_the_same_originals(way: str) -> None:
    q = np.linalg.qr(np.random.default_rng(0).normal(size=(5, 3)))[0]
    trivial = way != "householder"
    originals = []
    for lib in (torch, chainrule):
        layer = lib.nn.Linear(3, 5).double()
        lib.nn.utils.parametrizations.orthogonal(
            layer, orthogonal_map=way, use_trivialization=trivial
        )
        layer.weight = lib.from_numpy(q.copy())
        assert_close(layer.weight, q, atol=1e-12)
        originals.append(layer.parametrizations.weight.original)
    assert_close(originals[1], originals[0], atol=1e-12)


@pytest.mark.parametrize("name", ["weight_norm", "spectral_norm"])
def test_states_of_the_hooks_of_old(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = getattr(torch.nn.utils, name)(torch.nn.Linear(3, 2)).eval()
        theirs(torch.ones(1, 3))
    ours = getattr(chainrule.nn.utils.parametrizations, name)(chainrule.nn.Linear(3, 2)).eval()
    ours.load_state_dict(theirs.state_dict())
    assert_close(ours.weight, theirs.weight, rtol=1e-6)


@pytest.mark.parametrize("name", LAYERS)
def test_lazy_layers(name: str) -> None:
    args, kwargs, shape = LAYERS[name]
    x = np.random.default_rng(0).normal(size=shape)
    ours, theirs = (getattr(lib.nn, name)(*args, **kwargs).double() for lib in (chainrule, torch))
    assert repr(ours) == repr(theirs)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs(torch.from_numpy(x))
        ours.load_state_dict(theirs.state_dict())
        expected = theirs.eval()(torch.from_numpy(x))
    assert_close(ours.eval()(chainrule.from_numpy(x)), expected, rtol=1e-9, atol=1e-12)

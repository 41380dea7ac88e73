"""Embeddings against PyTorch where a gradient is held back or the weight is written."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers import assert_close

import chainrule

torch = pytest.importorskip("torch")


def both(kind: str, *args: Any, **settings: Any) -> list[Any]:
    """The layer in both libraries, with the same weight."""
    layers = [getattr(library.nn, kind)(*args, **settings) for library in (chainrule, torch)]
    weight = 2 * np.random.default_rng(0).normal(size=args)
    for layer, library in zip(layers, (chainrule, torch), strict=True):
        layer.double()
        layer.load_state_dict({"weight": library.tensor(weight)})
    return layers


def assert_alike(layers: list[Any], *args: Any) -> None:
    """Output, gradient and the weight afterwards."""
    outputs = []
    for layer, library in zip(layers, (chainrule, torch), strict=True):
        out = layer(*[library.tensor(a) for a in args])
        g = np.random.default_rng(1).normal(size=tuple(out.shape))
        out.backward(library.tensor(g))
        outputs.append((out.detach(), layer.weight.grad, layer.weight.detach()))
    for ours, theirs in zip(*outputs, strict=True):
        assert_close(ours, theirs, rtol=1e-9, atol=1e-12)
    assert repr(layers[0]) == repr(layers[1])


X = np.random.default_rng(2).integers(0, 6, size=(4, 5))


@pytest.mark.parametrize(
    "settings",
    [
        {"padding_idx": 2},
        {"padding_idx": -1},
        {"max_norm": 1.0},
        {"max_norm": 1.5, "norm_type": 1.0},
        {"scale_grad_by_freq": True},
        {"padding_idx": 2, "max_norm": 1.0, "scale_grad_by_freq": True},
    ],
)
def test_embedding(settings: dict[str, Any]) -> None:
    assert_alike(both("Embedding", 6, 3, **settings), X)


# Not scale_grad_by_freq: in a bag, PyTorch 2.13 on the CPU divides by the counts of other rows.
@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("settings", [{}, {"padding_idx": 2}, {"max_norm": 1.0}])
def test_bags(mode: str, settings: dict[str, Any]) -> None:
    layers = both("EmbeddingBag", 6, 3, mode=mode, **settings)
    assert_alike(layers, X)
    for layer in layers:
        layer.weight.grad = None
    assert_alike(layers, X.reshape(-1), np.array([0, 3, 3, 9, 20]))


@pytest.mark.parametrize("index", [np.array([7]), np.array([-1]), np.array([0.5])])
def test_refused_alike(index: np.ndarray) -> None:
    ours, theirs = both("Embedding", 6, 3)
    with pytest.raises(Exception) as expected:  # noqa: PT011
        theirs(torch.tensor(index))
    with pytest.raises(expected.type):
        ours(chainrule.tensor(index))

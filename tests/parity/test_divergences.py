"""Divergences against PyTorch's: every pair of distributions that it has one for."""

from __future__ import annotations

from typing import Any

import pytest
from distributions.divergences import PAIRS, build
from helpers import assert_close

import chainrule
from chainrule import distributions

torch = pytest.importorskip("torch")


@pytest.mark.parametrize(("p", "q"), PAIRS, ids=lambda x: f"{x[0]}{x[1:]}"[:60])
def test_divergence(p: Any, q: Any) -> None:
    """Value, and gradients by all parameters."""
    results = []
    for library in (chainrule, torch):
        made = [build(library, spec) for spec in (p, q)]
        value = library.distributions.kl_divergence(*[d for d, _ in made])
        leaves = [leaf for _, own in made for leaf in own]
        finite = value[value.isfinite()]
        grads: list[Any] = []
        if finite.requires_grad and len(finite):
            grads = list(library.autograd.grad(finite.sum(), leaves, materialize_grads=True))
        results.append((value, grads))
    (ours, own), (theirs, other) = results
    if (p[0], q[0]) == ("ContinuousBernoulli", "Uniform"):
        assert bool(theirs.isinf().all())  # PyTorch takes the ends of the interval for outside
        return
    assert_close(ours, theirs, rtol=1e-8, atol=1e-9)
    for a, b in zip(own, other, strict=True):
        assert_close(a, b, rtol=1e-7, atol=1e-8)


def test_every_pair_of_pytorch_is_there() -> None:
    from torch.distributions.kl import _KL_REGISTRY

    ours = distributions.kl._REGISTRY
    for a, b in _KL_REGISTRY:
        pair = tuple(getattr(distributions, t.__name__, None) for t in (a, b))
        assert pair in ours, f"{a.__name__}, {b.__name__}"
    compared = {(p[0], q[0]) for p, q in PAIRS}
    compound = {"ExponentialFamily", "Independent", "TransformedDistribution"}
    wanted = {(a.__name__, b.__name__) for a, b in _KL_REGISTRY}
    assert {w for w in wanted if not compound & set(w)} <= compared


def test_nothing_is_known_of_the_pair() -> None:
    for library in (distributions, torch.distributions):
        with pytest.raises(NotImplementedError):
            library.kl_divergence(library.Cauchy(0.0, 1.0), library.Normal(0.0, 1.0))

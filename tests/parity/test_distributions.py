"""The families of distributions against PyTorch's, by the same records."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
from distributions.families import ALL
from distributions.record import Family, draws, make, tensors
from helpers import assert_close

import chainrule
from chainrule import distributions

torch = pytest.importorskip("torch")

IN_TORCH = [f for f in ALL if f.torch]
each = pytest.mark.parametrize("family", IN_TORCH, ids=[f.label for f in IN_TORCH])


def theirs(family: Family, **changed: Any) -> Any:
    params = tensors(family.params, torch) | changed
    return getattr(torch.distributions, family.name)(**params)


def known(function: Any) -> Any:
    """What a method of PyTorch's returns; skips the test if it has none."""
    try:
        return function()
    except NotImplementedError:
        pytest.skip("PyTorch has none")


@each
@pytest.mark.parametrize("name", ["mean", "mode", "variance", "stddev"])
def test_moments(family: Family, name: str) -> None:
    expected = known(lambda: getattr(theirs(family), name))
    assert_close(getattr(make(family), name), expected, rtol=1e-8, atol=1e-10)


@each
@pytest.mark.parametrize("name", ["entropy", "perplexity"])
def test_entropy(family: Family, name: str) -> None:
    expected = known(lambda: getattr(theirs(family), name)())
    assert_close(getattr(make(family), name)(), expected, rtol=1e-8, atol=1e-8)


@each
@pytest.mark.parametrize("name", ["log_prob", "cdf", "icdf"])
def test_probabilities(family: Family, name: str) -> None:
    """Value and gradients."""
    ours, other = (
        {
            k: v.requires_grad_(k in family.variables) if hasattr(v, "grad") else v
            for k, v in p.items()
        }
        for p in (tensors(family.params), tensors(family.params, torch))
    )
    x = draws(family, 4)
    if name == "icdf":
        shape = tuple(x.shape)
        x = chainrule.tensor(np.random.default_rng(0).uniform(0.05, 0.95, size=shape))
    expected = known(
        lambda: getattr(theirs(family, **other), name)(torch.from_numpy(x.numpy().copy()))
    )
    got = getattr(make(family, **ours), name)(x)
    assert_close(got, expected, rtol=1e-7, atol=1e-8)
    if not expected.requires_grad:
        return
    got.sum().backward()
    expected.sum().backward()
    for k in family.variables:
        if other[k].grad is not None and ours[k].grad is not None:
            assert_close(ours[k].grad, other[k].grad, rtol=1e-6, atol=1e-7)


@each
def test_shapes_and_regions(family: Family) -> None:
    a, b = make(family), theirs(family)
    assert tuple(a.batch_shape) == tuple(b.batch_shape)
    assert tuple(a.event_shape) == tuple(b.event_shape)
    assert a.has_rsample == b.has_rsample
    assert a.has_enumerate_support == b.has_enumerate_support
    assert a.support.is_discrete == b.support.is_discrete
    assert a.support.event_dim == b.support.event_dim
    assert set(a.arg_constraints) == set(b.arg_constraints)


@each
def test_enumerated_support(family: Family) -> None:
    for expand in (True, False):
        expected = known(lambda: theirs(family).enumerate_support(expand=expand))  # noqa: B023
        assert_close(make(family).enumerate_support(expand=expand), expected)


@each
def test_signatures(family: Family) -> None:
    ours, other = (
        inspect.signature(getattr(library, family.name).__init__).parameters.values()
        for library in (distributions, torch.distributions)
    )
    assert [(p.name, p.default) for p in ours] == [(p.name, p.default) for p in other]


@each
def test_values_outside(family: Family) -> None:
    """Without checks, a value outside the support gives what PyTorch gives."""
    if family.outside is None:
        pytest.skip("every value lies inside")
    value = np.asarray(family.outside, np.float64)
    expected = theirs(family, validate_args=False).log_prob(torch.from_numpy(value))
    got = make(family, validate_args=False).log_prob(chainrule.Tensor(value))
    assert_close(got, expected, rtol=1e-7)

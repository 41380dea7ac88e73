"""The families of distributions against PyTorch's, by the same records."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
from distributions.families import ALL
from distributions.record import Family, draws, make, offers, tensors
from helpers import assert_close

import chainrule
from chainrule import distributions

torch = pytest.importorskip("torch")

IN_TORCH = [f for f in ALL if f.torch]
each = pytest.mark.parametrize("family", IN_TORCH, ids=[f.label for f in IN_TORCH])

# Where PyTorch 2.13 is wrong; that ours is right, the comparison with SciPy says.
MISTAKEN = {
    ("Beta", "mode"): "0 / 0 decides between the ends if both concentrations are below 1",
    ("GeneralizedPareto", "variance"): "NaN where it is infinite",
    ("GeneralizedPareto", "stddev"): "NaN where it is infinite",
    ("GeneralizedPareto", "log_prob"): "raises for float64",
    ("GeneralizedPareto", "cdf"): "raises for float64",
    ("GeneralizedPareto", "icdf"): "raises for float64",
    ("Kumaraswamy", "mode"): "NaN for all parameters",
}


def theirs(family: Family, **changed: Any) -> Any:
    params = tensors(family.params, torch) | changed
    return getattr(torch.distributions, family.name)(**params)


def each_of(*names: str) -> pytest.MarkDecorator:
    """What PyTorch offers, and is not mistaken in."""
    cases = [
        pytest.param(f, name, id=f"{name}-{f.label}")
        for name in names
        for f in IN_TORCH
        if (f.name, name) not in MISTAKEN and offers(theirs(f), name)
    ]
    return pytest.mark.parametrize(("family", "name"), cases)


@each_of("mean", "mode", "variance", "stddev")
def test_moments(family: Family, name: str) -> None:
    ours, other = (getattr(d, name) for d in (make(family), theirs(family)))
    assert_close(ours, other, family.torch_rtol, atol=1e-10)


@each_of("entropy", "perplexity")
def test_entropy(family: Family, name: str) -> None:
    ours, other = (getattr(d, name)() for d in (make(family), theirs(family)))
    assert_close(ours, other, family.torch_rtol, atol=1e-8)


@each_of("log_prob", "cdf", "icdf")
def test_probabilities(family: Family, name: str) -> None:
    """Value and gradients."""
    ours, other = tensors(family.params), tensors(family.params, torch)
    for k in family.variables:
        ours[k].requires_grad_()
        other[k].requires_grad_()
    x = draws(family, 4)
    if name == "icdf":
        x = chainrule.tensor(np.random.default_rng(0).uniform(0.05, 0.95, size=tuple(x.shape)))
    got = getattr(make(family, **ours), name)(x)
    expected = getattr(theirs(family, **other), name)(torch.from_numpy(x.numpy().copy()))
    assert_close(got, expected, family.torch_rtol, atol=1e-8)
    if not expected.requires_grad:
        return
    got.sum().backward()
    try:
        expected.sum().backward()
    except NotImplementedError:  # of the incomplete gamma function by its shape
        return
    for k in family.variables:
        if k == "scale_tril":  # PyTorch hands some of it to the upper triangle
            other[k].grad = other[k].grad.tril()
        if other[k].grad is not None:
            assert_close(ours[k].grad, other[k].grad, 10 * family.torch_rtol, atol=1e-7)


@each_of("enumerate_support")
def test_enumerated_support(family: Family, name: str) -> None:
    for expand in (True, False):
        ours, other = (getattr(d, name)(expand=expand) for d in (make(family), theirs(family)))
        assert_close(ours, other)


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
def test_signatures(family: Family) -> None:
    ours, other = (
        inspect.signature(getattr(library, family.name).__init__).parameters.values()
        for library in (distributions, torch.distributions)
    )
    assert [(p.name, p.default) for p in ours] == [(p.name, p.default) for p in other]


@each
def test_values_outside(family: Family) -> None:
    """Without checks, a value outside the support gives what PyTorch gives."""
    if family.outside is None or not family.total:
        return
    value = np.asarray(family.outside, np.float64)
    expected = theirs(family, validate_args=False).log_prob(torch.from_numpy(value))
    got = make(family, validate_args=False).log_prob(chainrule.as_tensor(value))
    assert_close(got, expected, rtol=1e-7)


def test_generalized_pareto_in_float32() -> None:
    """PyTorch's fails for float64."""
    params = [[0.0, 1.0, -1.0], [1.0, 2.0, 0.5], [0.0, 0.3, -0.4]]
    a = distributions.GeneralizedPareto(*map(chainrule.tensor, params))
    b = torch.distributions.GeneralizedPareto(*map(torch.tensor, params))
    x, u = [0.5, 1.5, -0.5], [0.1, 0.5, 0.9]
    names = ("log_prob", "cdf", "log_cdf", "log_survival_function")
    for name, value in [*[(n, x) for n in names], ("icdf", u)]:
        ours = getattr(a, name)(chainrule.tensor(value))
        other = getattr(b, name)(torch.tensor(value))
        assert_close(ours, other, rtol=1e-5, atol=1e-6)


def test_public_names() -> None:
    """All of PyTorch's, here and in the modules that programs import."""
    for module in ("", ".constraints", ".transforms", ".constraint_registry", ".utils", ".kl"):
        ours = __import__(f"chainrule.distributions{module}", fromlist=["x"])
        other = __import__(f"torch.distributions{module}", fromlist=["x"])
        assert set(other.__all__) <= set(ours.__all__), module


def test_modules() -> None:
    """A family is found in the module in which PyTorch has it."""
    for name in torch.distributions.__all__:
        cls = getattr(torch.distributions, name)
        if inspect.isclass(cls):
            home = cls.__module__.replace("torch", "chainrule", 1)
            assert hasattr(__import__(home, fromlist=["x"]), name), home

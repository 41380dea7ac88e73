"""Every family by its records: values against SciPy, derivatives, samples, shapes, refusals."""

from __future__ import annotations

import inspect
import math
from typing import Any

import numpy as np
import pytest
from distributions.families import ALL
from distributions.record import Family, draws, make, offers, tensors
from helpers import assert_close
from scipy import stats

import chainrule
from chainrule import distributions
from chainrule.autograd import gradcheck
from chainrule.distributions import Distribution

# Distributions that are made of others, tested in a file of their own.
COMPOUND = {
    "Distribution",
    "ExponentialFamily",
    "Independent",
    "MixtureSameFamily",
    "TransformedDistribution",
}


def each(families: list[Family]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("family", families, ids=[f.label for f in families])


def is_scalar(family: Family) -> bool:
    return not make(family).event_shape


def is_discrete(family: Family) -> bool:
    return make(family).support.is_discrete


IN_SCIPY = [f for f in ALL if f.scipy is not None]
SCALAR = [f for f in IN_SCIPY if is_scalar(f)]
VARIABLE = [f for f in ALL if f.variables]
REPARAMETERIZED = [f for f in VARIABLE if make(f).has_rsample and f.exact]


def peers(family: Family, params: Any = None) -> np.ndarray:
    """SciPy's laws, one for each element of the batch."""
    assert family.scipy is not None
    d = make(family)
    out = np.empty(tuple(d.batch_shape), object)
    for place in np.ndindex(out.shape):
        own = {}
        for name, value in (params or family.params).items():
            if isinstance(value, np.ndarray):
                batch = value.ndim - event_dim(family, name)
                value = np.broadcast_to(value, (*out.shape, *value.shape[batch:]))[place]
            own[name] = value
        out[place] = family.scipy(**own)
    return out


def event_dim(family: Family, name: str) -> int:
    """How many dimensions one value of a parameter has."""
    known = make(family).arg_constraints
    return known[name].event_dim if name in known else 0


def offering(name: str, families: list[Family]) -> list[Family]:
    """The families that have a closed form for something."""
    return [f for f in families if offers(make(f), name)]


def test_every_family_has_a_record() -> None:
    public = {
        name
        for name in distributions.__all__
        if inspect.isclass(getattr(distributions, name))
        and issubclass(getattr(distributions, name), Distribution)
    }
    assert {f.name for f in ALL} == public - COMPOUND


# --- against SciPy --------------------------------------------------------------------------------


def is_mass(peer: Any) -> bool:
    return hasattr(getattr(peer, "dist", peer), "pmf") and not hasattr(
        getattr(peer, "dist", peer), "pdf"
    )


@each(IN_SCIPY)
def test_log_prob(family: Family) -> None:
    d, x = make(family), draws(family, 5)
    ours = d.log_prob(x)
    theirs = np.empty(ours.shape)
    for place in np.ndindex(tuple(d.batch_shape)):
        peer = peers(family)[place]
        values = x.numpy()[(slice(None), *place)]
        call = peer.logpmf if is_mass(peer) else peer.logpdf
        theirs[(slice(None), *place)] = [call(v) for v in values]
    assert_close(ours, theirs, rtol=1e-9, atol=1e-9)


@each(offering("cdf", SCALAR))
def test_cdf(family: Family) -> None:
    x = draws(family, 7)
    assert_close(make(family).cdf(x), each_peer(family, "cdf", x), rtol=1e-8, atol=1e-9)


@each(offering("icdf", SCALAR))
def test_icdf(family: Family) -> None:
    d = make(family)
    u = chainrule.tensor(np.linspace(0.01, 0.99, 7)).reshape(7, 1).expand(7, *d.batch_shape)
    x = d.icdf(u)
    assert_close(x, each_peer(family, "ppf", u), rtol=1e-8, atol=1e-9)
    assert_close(d.cdf(x), u, rtol=1e-8)


def each_peer(family: Family, name: str, x: Any) -> np.ndarray:
    """A function of SciPy's laws at values (n, ...), each law at its own."""
    out = np.empty(x.shape)
    laws = peers(family)
    for place in np.ndindex(laws.shape):
        at = (slice(None), *place)
        out[at] = getattr(laws[place], name)(x.numpy()[at])
    return out


MOMENTS = [
    pytest.param(f, name, id=f"{name}-{f.label}")
    for name in ("mean", "variance", "stddev", "entropy")
    for f in offering(name, IN_SCIPY)
    if f.name != "Categorical" or name == "entropy"  # whose numbers stand for names
]


@pytest.mark.parametrize(("family", "name"), MOMENTS)
def test_moments(family: Family, name: str) -> None:
    d = make(family)
    ours = d.entropy() if name == "entropy" else getattr(d, name)
    theirs = np.empty(ours.shape)
    for place in np.ndindex(tuple(d.batch_shape)):
        theirs[place] = moment(peers(family)[place], name)
    theirs = np.where(np.isfinite(theirs), theirs, ours.numpy())  # infinite or none: SciPy's NaN
    assert_close(ours, theirs, rtol=1e-7, atol=1e-8)


def moment(peer: Any, name: str) -> Any:
    if name == "entropy":
        return peer.entropy()
    if name == "mean":
        return peer.mean() if callable(peer.mean) else peer.mean
    if hasattr(peer, "var"):
        variance = peer.var()
    else:
        variance = np.diagonal(peer.cov() if callable(peer.cov) else peer.cov)
    return np.sqrt(variance) if name == "stddev" else variance


# --- without it -----------------------------------------------------------------------------------


@each(offering("entropy", ALL))
def test_entropy_is_the_mean_surprise(family: Family) -> None:
    d = make(family)
    expected = d.entropy()
    chainrule.manual_seed(1)
    surprise = -d.log_prob(d.sample((20_000,))).numpy()
    error = surprise.std(0) / math.sqrt(20_000)
    assert (np.abs(surprise.mean(0) - expected.numpy()) < 5 * error + 1e-9).all()


@each(offering("mode", [f for f in ALL if is_scalar(f)]))
def test_mode_is_the_likeliest(family: Family) -> None:
    d = make(family)
    mode = d.mode
    at = make(family, validate_args=False).log_prob(mode).numpy()
    none = mode.isnan().numpy()
    best = d.log_prob(draws(family, 200)).numpy()
    assert (none | (best <= at + 1e-9)).all()


# --- derivatives ----------------------------------------------------------------------------------


@each(VARIABLE)
def test_log_prob_is_differentiable(family: Family) -> None:
    """By the parameters and, where it is continuous, by the value."""
    x = draws(family, 2)
    names = family.variables
    by_value = family.by_value and not is_discrete(family)

    def f(*inputs: Any) -> Any:
        params = dict(zip(names, inputs, strict=False))
        value = inputs[-1] if by_value else x
        return make(family, validate_args=False, **params).log_prob(value)

    inputs = [v.requires_grad_() for k, v in tensors(family.params).items() if k in names]
    gradcheck(f, [*inputs, x.clone().requires_grad_()] if by_value else inputs)


@each(VARIABLE)
def test_moments_are_differentiable(family: Family) -> None:
    names = family.variables
    for name in ("mean", "variance", "entropy"):
        if not offers(make(family), name):
            continue

        def f(*inputs: Any, name: str = name) -> Any:
            d = make(family, validate_args=False, **dict(zip(names, inputs, strict=True)))
            return d.entropy() if name == "entropy" else getattr(d, name)

        inputs = [v.requires_grad_() for k, v in tensors(family.params).items() if k in names]
        out = f(*inputs)
        if out.requires_grad and bool(out.isfinite().all()):
            gradcheck(f, inputs)


# --- samples --------------------------------------------------------------------------------------


@each(SCALAR)
def test_samples_follow_the_law(family: Family) -> None:
    """By Kolmogorov and Smirnov, or by the frequencies of values."""
    chainrule.manual_seed(2)
    samples = make(family).sample((4000,)).numpy()
    for place in np.ndindex(samples.shape[1:]):
        own, peer = samples[(slice(None), *place)], peers(family)[place]
        if is_mass(peer):
            assert frequencies(own, peer) > 1e-4
        else:
            assert stats.kstest(own, peer.cdf).pvalue > 1e-4


def frequencies(samples: np.ndarray, peer: Any) -> float:
    """The p-value of the counts, rare values taken together."""
    values = np.arange(samples.min(), samples.max() + 1)
    expected = peer.pmf(values) * len(samples)
    counts = np.array([(samples == v).sum() for v in values])
    common = expected >= 5
    observed = np.append(counts[common], counts[~common].sum())
    expected = np.append(expected[common], len(samples) - expected[common].sum())
    keep = expected > 1e-9
    return stats.chisquare(observed[keep], expected[keep] * observed.sum() / expected.sum()).pvalue


@each(ALL)
def test_samples_lie_in_the_support(family: Family) -> None:
    d = make(family)
    x = d.sample((50,))
    assert not x.requires_grad
    assert bool(d.support.check(x).all())
    assert x.dtype == (chainrule.int64 if family.name == "Categorical" else chainrule.float64)


@each(ALL)
def test_a_seed_repeats_samples(family: Family) -> None:
    d = make(family)
    first, second = [(chainrule.manual_seed(3), d.sample((4,)))[1] for _ in range(2)]
    assert bool((first == second).all())
    assert not bool((first == d.sample((4,))).all())


GROUPS, EACH = 50, 400


def paths(family: Family) -> tuple[Any, dict[str, Any], Any, np.ndarray, np.ndarray]:
    """Distributions with parameters of their own for each group of samples, those parameters,
    differentiable samples (EACH, GROUPS, ...), and their middle and width."""
    chainrule.manual_seed(4)
    inputs = tensors(family.params)
    for name in family.variables:
        repeated = inputs[name].expand(GROUPS, *inputs[name].shape)
        inputs[name] = repeated.clone().requires_grad_()
    d = getattr(distributions, family.name)(**inputs)
    x = d.rsample((EACH,))
    assert x.requires_grad
    low, middle, high = np.quantile(x.detach().numpy(), [0.25, 0.5, 0.75], axis=(0, 1))
    return d, inputs, x, middle, high - low + 1e-3


def gradients(y: Any, parameter: Any) -> tuple[np.ndarray, np.ndarray]:
    """The mean of dy/dparameter over the samples and its standard error."""
    means = chainrule.autograd.grad(y.sum(), parameter, retain_graph=True)[0].numpy() / EACH
    return means.mean(0), means.std(0) / math.sqrt(GROUPS)


@each([f for f in REPARAMETERIZED if f in SCALAR])
def test_derivatives_of_samples(family: Family) -> None:
    """The mean derivative of f(x) is the derivative of the mean, an integral over quantiles.

    f is bounded, so that heavy tails have a mean.
    """
    _, inputs, x, middle, width = paths(family)
    f = chainrule.tanh((x - chainrule.tensor(middle)) / chainrule.tensor(width))
    u = (np.arange(2000) + 0.5) / 2000

    def mean(name: str, change: float) -> np.ndarray:
        params = dict(family.params) | {name: family.params[name] + change}
        laws = zip(peers(family, params).ravel(), middle.ravel(), width.ravel(), strict=True)
        return np.reshape([np.tanh((p.ppf(u) - m) / w).mean() for p, m, w in laws], middle.shape)

    for name in family.variables:
        expected = (mean(name, 1e-4) - mean(name, -1e-4)) / 2e-4
        got, error = gradients(f, inputs[name])
        assert (np.abs(got - expected) < 5 * error + 2e-3 * np.abs(expected)).all(), name


@each([f for f in REPARAMETERIZED if f not in SCALAR])
def test_derivatives_of_samples_and_scores(family: Family) -> None:
    """The mean derivative of f(x) is the mean of f(x) times the derivative of log_prob(x)."""
    d, inputs, x, middle, width = paths(family)
    f = chainrule.tanh((x - chainrule.tensor(middle)) / chainrule.tensor(width))
    weight = np.random.default_rng(0).normal(size=middle.shape)
    f = (f * chainrule.tensor(weight)).sum(tuple(range(-len(d.event_shape), 0)))
    score = d.log_prob(x.detach()) * (f.detach() - f.detach().mean((0, 1)))
    for name in family.variables:
        (path, path_error), (other, error) = (gradients(y, inputs[name]) for y in (f, score))
        assert (np.abs(path - other) <= 5 * np.hypot(path_error, error) + 1e-9).all(), name


# --- shapes ---------------------------------------------------------------------------------------


@each(ALL)
def test_shapes(family: Family) -> None:
    d = make(family)
    batch, event = tuple(d.batch_shape), tuple(d.event_shape)
    for shape in ((), (2,), (4, 3)):
        x = d.sample(shape)
        assert tuple(x.shape) == (*shape, *batch, *event)
        assert tuple(d.log_prob(x).shape) == (*shape, *batch)
    for name in ("mean", "variance", "mode"):
        if offers(d, name):
            assert tuple(getattr(d, name).shape) == (*batch, *event), name


@each(ALL)
def test_expand(family: Family) -> None:
    d = make(family)
    wide = d.expand((2, *d.batch_shape))
    assert type(wide) is type(d)
    assert tuple(wide.batch_shape) == (2, *d.batch_shape)
    assert wide.event_shape == d.event_shape
    x = draws(family, 2)
    assert_close(wide.log_prob(x), d.log_prob(x), rtol=1e-12)
    assert wide.sample((3,)).shape == (3, 2, *d.batch_shape, *d.event_shape)
    assert bool(wide.support.check(wide.sample()).all())


@each(ALL)
def test_float32(family: Family) -> None:
    params = {
        k: v.float() if isinstance(v, chainrule.Tensor) else v
        for k, v in tensors(family.params).items()
    }
    d, x = getattr(distributions, family.name)(**params), draws(family, 3)
    assert d.sample().dtype in (chainrule.float32, chainrule.int64)
    if x.dtype is chainrule.float64:
        x = x.float()
    ours = make(family, validate_args=False, **params).log_prob(x)
    assert ours.dtype is chainrule.float32
    assert_close(ours, make(family).log_prob(draws(family, 3)).float(), rtol=2e-3, atol=2e-3)


# --- refusals -------------------------------------------------------------------------------------


@each([f for f in ALL if f.bad])
def test_bad_parameters_are_refused(family: Family) -> None:
    for params, message in family.bad:
        given = tensors(params)
        with pytest.raises(ValueError, match=message):
            getattr(distributions, family.name)(**given)


@each([f for f in ALL if f.outside is not None])
def test_values_outside_are_refused(family: Family) -> None:
    d = make(family)
    value = chainrule.tensor(family.outside, dtype=chainrule.float64)
    with pytest.raises(ValueError, match=f"{family.name}: the value must satisfy .*, got"):
        d.log_prob(value)
    if family.total:
        make(family, validate_args=False).log_prob(value)


@each([f for f in ALL if make(f).batch_shape])
def test_wrong_shapes_are_refused(family: Family) -> None:
    d = make(family)
    x = d.sample()
    with pytest.raises(ValueError, match=r"do not broadcast with the batch shape|event shape"):
        d.log_prob(x[:1].expand(7, *x.shape[1:]))

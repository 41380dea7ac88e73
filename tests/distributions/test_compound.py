"""Distributions made of others: shapes, densities, samples, derivatives, vmap, refusals."""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from distributions.compounds import COMPOUNDS, INDEPENDENT, MIXTURES, Compound, build, draws, leaves
from distributions.record import offers
from helpers import assert_close
from scipy import special, stats

import chainrule
from chainrule.autograd import gradcheck
from chainrule.distributions import (
    AbsTransform,
    AffineTransform,
    Bernoulli,
    Categorical,
    CorrCholeskyTransform,
    Distribution,
    Exponential,
    ExponentialFamily,
    ExpTransform,
    Independent,
    MixtureSameFamily,
    Normal,
    StickBreakingTransform,
    TransformedDistribution,
    kl_divergence,
)

F64 = chainrule.float64


def each(records: list[Compound]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("record", records, ids=[r.label for r in records])


NUMBERS = [r for r in COMPOUNDS if not r.event]
CONTINUOUS = [r for r in NUMBERS if offers(build(r), "cdf")]
WITH_ICDF = [r for r in CONTINUOUS if offers(build(r), "icdf")]
PATHS = [r for r in COMPOUNDS if build(r).has_rsample]


def test_the_lists_are_not_empty() -> None:
    counts = [len(r) for r in (NUMBERS, CONTINUOUS, WITH_ICDF, PATHS)]
    assert counts == [15, 12, 7, 16]


# --- shapes ---------------------------------------------------------------------------------------


@each(COMPOUNDS)
def test_shapes(record: Compound) -> None:
    d = build(record)
    assert (tuple(d.batch_shape), tuple(d.event_shape)) == (record.batch, record.event)
    for shape in ((), (2,), (4, 1)):
        x = d.sample(shape)
        assert not x.requires_grad
        assert tuple(x.shape) == (*shape, *record.batch, *record.event)
        assert tuple(d.log_prob(x).shape) == (*shape, *record.batch)
        assert tuple(d.support.check(x).shape) == (*shape, *record.batch)
        assert bool(d.support.check(x).all())
    for name in ("mean", "variance", "mode", "entropy"):
        if offers(d, name):
            value = getattr(d, name)
            event = () if name == "entropy" else record.event
            got = value() if name == "entropy" else value
            assert tuple(got.shape) == (*record.batch, *event), name


@each(COMPOUNDS)
def test_expand(record: Compound) -> None:
    d = build(record)
    wide = d.expand((4, *record.batch))
    assert type(wide) is type(d)
    assert (wide.batch_shape, wide.event_shape) == ((4, *record.batch), record.event)
    assert wide.has_rsample == d.has_rsample
    assert wide.has_enumerate_support == d.has_enumerate_support
    x = draws(record, 4)
    assert_close(wide.log_prob(x), d.log_prob(x), rtol=1e-12)
    assert wide.sample((3,)).shape == (3, 4, *record.batch, *record.event)
    assert len(np.unique(wide.sample().numpy())) > 1
    assert wide.expand(wide.batch_shape).batch_shape == wide.batch_shape


@each(COMPOUNDS)
def test_copies(record: Compound) -> None:
    d, x = build(record), draws(record, 2)
    expected = d.log_prob(x)
    for other in (copy.deepcopy(d), pickle.loads(pickle.dumps(d))):
        assert_close(other.log_prob(x), expected, rtol=1e-13)
        assert repr(other) == repr(d)


# --- densities ------------------------------------------------------------------------------------


@each(INDEPENDENT)
def test_independent_adds_up(record: Compound) -> None:
    d, x = build(record), draws(record, 5)
    axes = tuple(range(-d.reinterpreted_batch_ndims, 0))
    assert_close(d.log_prob(x), d.base_dist.log_prob(x).numpy().sum(axes), rtol=1e-12)
    assert_close(d.entropy(), d.base_dist.entropy().numpy().sum(axes), rtol=1e-12)
    for name in ("mean", "variance", "mode"):
        assert_close(getattr(d, name), getattr(d.base_dist, name))


@each(MIXTURES)
def test_mixtures_are_weighted_sums(record: Compound) -> None:
    d, x = build(record), draws(record, 5)
    axis = -1 - len(record.event)
    parts = d.component_distribution
    weights = np.broadcast_to(
        d.mixture_distribution.probs.numpy(), (*record.batch, parts.batch_shape[-1])
    )
    each_part = parts.log_prob(x.unsqueeze(axis)).numpy()
    assert_close(d.log_prob(x), special.logsumexp(each_part, -1, b=weights), rtol=1e-12)
    weights = weights.reshape(*weights.shape, *[1] * len(record.event))
    mean, spread = parts.mean.numpy(), parts.variance.numpy()
    first = (weights * mean).sum(axis)
    assert_close(d.mean, first, rtol=1e-12)
    assert_close(d.variance, (weights * (spread + mean**2)).sum(axis) - first**2, rtol=1e-10)
    assert_close(d.stddev, np.sqrt(d.variance.numpy()), rtol=1e-12)


def test_a_mixture_by_scipy() -> None:
    d = build(MIXTURES[0])
    weights, loc, scale = map(np.array, MIXTURES[0].params)
    x = np.linspace(-4, 4, 9)
    laws = stats.norm(loc, scale)
    value = chainrule.tensor(x)
    assert_close(d.log_prob(value).exp(), (weights * laws.pdf(x[:, None])).sum(-1), rtol=1e-12)
    assert_close(d.cdf(value), (weights * laws.cdf(x[:, None])).sum(-1), rtol=1e-12)


@each(CONTINUOUS)
def test_the_density_is_the_slope_of_the_distribution_function(record: Compound) -> None:
    d, x = build(record), draws(record, 6).requires_grad_()
    cdf = d.cdf(x)
    assert bool(((cdf > 0) & (cdf < 1)).all())
    (slope,) = chainrule.autograd.grad(cdf.sum(), [x])
    assert_close(slope, d.log_prob(x).exp(), rtol=1e-9, atol=1e-12)


@each(WITH_ICDF)
def test_quantiles(record: Compound) -> None:
    d = build(record)
    u = chainrule.tensor([0.01, 0.3, 0.5, 0.99], dtype=F64)
    u = u.reshape(4, *[1] * len(record.batch)).expand(4, *record.batch)
    x = d.icdf(u)
    assert bool((x[1:] > x[:-1]).all())
    assert_close(d.cdf(x), u, rtol=1e-9)


def test_small_probabilities_keep_their_digits() -> None:
    """Also where a tensor says which way the function goes."""
    x = chainrule.tensor([-10.0, 10.0], dtype=F64)
    d = TransformedDistribution(
        Normal(chainrule.zeros(2, dtype=F64), 1.0), AffineTransform(0.0, x / 10)
    )
    assert_close(d.cdf(-x.abs() * 1.0)[1], stats.norm.cdf(-10.0), rtol=1e-9)


@each([r for r in COMPOUNDS if r.event and "count" not in r.label][:6] + COMPOUNDS[-1:])
def test_what_has_no_distribution_function(record: Compound) -> None:
    with pytest.raises(NotImplementedError, match="cdf is not known|neither increasing nor"):
        build(record).cdf(draws(record))


# --- samples --------------------------------------------------------------------------------------


@each(CONTINUOUS)
def test_samples_follow_the_law(record: Compound) -> None:
    d = build(record)
    u = d.cdf(draws(record, 2000)).numpy().reshape(2000, -1)
    assert min(stats.kstest(column, "uniform").pvalue for column in u.T) > 1e-4


@each(MIXTURES)
def test_samples_have_the_moments(record: Compound) -> None:
    d, x = build(record), draws(record, 20_000).numpy()
    error = np.sqrt(d.variance.numpy() / len(x))
    assert (np.abs(x.mean(0) - d.mean.numpy()) < 5 * error).all()
    assert_close(x.var(0), d.variance.numpy(), rtol=0.2)


@pytest.fixture
def unchecked() -> Iterator[None]:
    """No checks, so that numbers above the diagonal of a factor may be changed."""
    Distribution.set_default_validate_args(False)
    yield
    Distribution.set_default_validate_args(True)


@each(PATHS)
@pytest.mark.usefixtures("unchecked")
def test_derivatives_of_samples(record: Compound) -> None:
    """With the same random numbers, a sample is a function of the parameters."""

    def f(*params: Any) -> Any:
        chainrule.manual_seed(1)
        return record.make(chainrule.distributions, *params).rsample((2,))

    assert f(*leaves(record, grad=True)).requires_grad
    gradcheck(f, leaves(record, grad=True))


@each([r for r in COMPOUNDS if r not in PATHS])
def test_no_derivatives_of_samples(record: Compound) -> None:
    d = build(record)
    with pytest.raises(NotImplementedError, match=r"no differentiable samples \(has_rsample is"):
        d.rsample()
    assert not d.sample().requires_grad


@each(COMPOUNDS)
@pytest.mark.usefixtures("unchecked")
def test_derivatives_of_log_prob(record: Compound) -> None:
    x = draws(record, 2)

    def f(*params: Any) -> Any:
        return record.make(chainrule.distributions, *params).log_prob(x)

    gradcheck(f, leaves(record, grad=True))


def test_a_remembered_sample_is_not_inverted() -> None:
    """tanh(20) rounds to 1, which has no inverse."""
    loc = chainrule.tensor(20.0, requires_grad=True)
    for size in (0, 1):
        f = chainrule.distributions.TanhTransform(cache_size=size)
        d = TransformedDistribution(Normal(loc, 0.1), f)
        x = d.rsample()
        value = d.log_prob(x)
        assert math.isfinite(value.item()) is bool(size)


def test_enumeration() -> None:
    base = Bernoulli(chainrule.tensor([0.2, 0.7]))
    d = Independent(base, 0)
    assert d.has_enumerate_support
    assert d.enumerate_support(expand=False).shape == (2, 1)
    assert not Independent(base, 1).has_enumerate_support
    with pytest.raises(NotImplementedError, match="all combinations of values are too many"):
        Independent(base, 1).enumerate_support()


# --- divergences ----------------------------------------------------------------------------------


def test_divergences_have_the_shape_of_the_batch() -> None:
    p, q = (Normal(chainrule.full((4, 3), m), 1.0) for m in (0.0, 1.0))
    expected = np.full(4, 1.5, np.float32)
    for f in (StickBreakingTransform(), CorrCholeskyTransform()):
        a, b = (TransformedDistribution(base, f) for base in (p, q))
        assert_close(kl_divergence(a, b), expected, rtol=1e-6)
    with pytest.raises(NotImplementedError, match=r"AbsTransform\(\) is not one to one"):
        kl_divergence(*[TransformedDistribution(base, AbsTransform()) for base in (p, q)])


class Bell(ExponentialFamily):
    """Normal by its natural parameters, of vectors of independent numbers."""

    def __init__(self, loc: Any, scale: Any):
        self.loc, self.scale = loc, scale
        super().__init__(loc.shape[:-1], loc.shape[-1:])

    @property
    def _natural_params(self) -> Any:
        return self.loc / self.scale**2, -0.5 / self.scale**2

    def _log_normalizer(self, *natural_params: Any) -> Any:
        a, b = natural_params
        return (-0.25 * a**2 / b - 0.5 * (-2 * b).log()).sum(-1)

    @property
    def _mean_carrier_measure(self) -> float:
        return -0.5 * math.log(2 * math.pi) * self.event_shape[0]


def test_exponential_families() -> None:
    """Entropy and divergence follow from the normalizer, differentiable by the parameters."""
    leaves = [chainrule.tensor(v, dtype=F64, requires_grad=True) for v in MIXTURES[1].params[1:]]
    other = Bell(leaves[0].detach() + 1, leaves[1].detach() * 2)
    p, q = (Independent(Normal(d.loc, d.scale), 1) for d in (Bell(*leaves), other))
    assert_close(Bell(*leaves).entropy(), p.entropy(), rtol=1e-12)
    assert_close(kl_divergence(Bell(*leaves), other), kl_divergence(p, q), rtol=1e-12)
    gradcheck(lambda m, s: Bell(m, s).entropy(), leaves)
    gradcheck(lambda m, s: kl_divergence(Bell(m, s), other), leaves)
    gradcheck(lambda m, s: kl_divergence(other, Bell(m, s)), leaves)


# --- refusals -------------------------------------------------------------------------------------

ONES = chainrule.ones(2)
REFUSED = [
    (lambda: Independent(Normal(0.0, 1.0), 1), r"must lie between 0 and 0, .* \(\), got 1"),
    (lambda: Independent(Normal(ONES, 1.0), -1), "must lie between 0 and 1, .* got -1"),
    (lambda: Independent(3, 1), "Independent: base_distribution must be a Distribution, got int"),
    (
        lambda: Independent(Exponential(ONES), 1).log_prob(-ONES),
        r"Exponential: the value must satisfy greater_than_eq\(lower_bound=0.0\), got -1.0",
    ),
    (
        lambda: Independent(Normal(ONES, 1.0), 1).log_prob(chainrule.ones(3)),
        r"values of shape \(3,\) do not broadcast with the batch shape \(2,\)",
    ),
    (
        lambda: MixtureSameFamily(Normal(0.0, 1.0), Normal(ONES, 1.0)),
        "must be a Categorical, got N",
    ),
    (lambda: MixtureSameFamily(Categorical(ONES), 3), "must be a Distribution, got int"),
    (
        lambda: MixtureSameFamily(Categorical(chainrule.ones(3)), Normal(ONES, 1.0)),
        r"3 weights, but the components have the batch shape \(2,\), whose last dimension counts",
    ),
    (
        lambda: MixtureSameFamily(Categorical(ONES), Normal(0.0, 1.0)),
        r"2 weights, but the components have the batch shape \(\)",
    ),
    (
        lambda: MixtureSameFamily(
            Categorical(chainrule.ones(4, 2)), Normal(chainrule.ones(3, 2), 1.0)
        ),
        r"weights \(4, 2\) do not fit the components \(3, 2\)",
    ),
    (
        lambda: MixtureSameFamily(Categorical(ONES), Exponential(ONES)).log_prob(-ONES),
        r"must satisfy MixtureSameFamilyConstraint\(.*\), got -1.0 at index \(0,\)",
    ),
    (
        lambda: TransformedDistribution(3, ExpTransform()),
        "TransformedDistribution: base_distribution must be a Distribution, got int",
    ),
    (
        lambda: TransformedDistribution(Normal(0.0, 1.0), 3),
        "transforms must be a Transform or a list of them, got int",
    ),
    (
        lambda: TransformedDistribution(Normal(0.0, 1.0), [ExpTransform(), 3]),
        "TransformedDistribution: expected transforms, got int",
    ),
    (
        lambda: TransformedDistribution(Normal(0.0, 1.0), StickBreakingTransform()),
        r"\[StickBreakingTransform\(\)\] need values of 1 dimensions, but Normal.* has shape \(\)",
    ),
    (
        lambda: TransformedDistribution(Normal(0.0, 1.0), ExpTransform()).log_prob(-ONES),
        r"the value must satisfy greater_than\(lower_bound=0.0\), got -1.0 at index \(0,\)",
    ),
    (
        lambda: TransformedDistribution(Normal(0.0, 1.0), ExpTransform()).log_prob(2.0),
        "TransformedDistribution: the value must be a tensor, got float",
    ),
    (lambda: Distribution.set_default_validate_args(3), "expected True or False, got 3"),
]


@pytest.mark.parametrize(("call", "message"), REFUSED, ids=[m[:45] for _, m in REFUSED])
def test_refusals(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


@each(COMPOUNDS)
def test_the_shape_of_samples_is_a_tuple(record: Compound) -> None:
    with pytest.raises(TypeError, match=r"sample_shape must be a tuple, such as \(3,\), got 3"):
        build(record).sample(3)


def test_checks_can_be_left_out() -> None:
    base = Normal(0.0, 1.0, validate_args=False)
    d = TransformedDistribution(base, ExpTransform(), validate_args=False)
    assert math.isnan(d.log_prob(-chainrule.ones(1)).item())
    wide = d.expand((2,))
    assert math.isnan(wide.log_prob(-ONES)[0].item())
    checked = TransformedDistribution(base, ExpTransform(), validate_args=True)
    with pytest.raises(ValueError, match="the value must satisfy"):
        checked.expand((2,)).log_prob(-ONES)


def test_printing() -> None:
    normal = "Normal(loc: chainrule.Size([2]), scale: chainrule.Size([2]))"
    base = Normal(chainrule.zeros(2), 1.0)
    assert repr(Independent(base, 1)) == f"Independent({normal}, 1)"
    weights = "Categorical(probs: chainrule.Size([2]))"
    mixture = MixtureSameFamily(Categorical(ONES), base)
    assert repr(mixture) == f"MixtureSameFamily(\n  {weights},\n  {normal})"
    assert repr(TransformedDistribution(base, ExpTransform())) == "TransformedDistribution()"
    assert repr(Normal(chainrule.ones(1), 2.0)) == "Normal(loc: tensor([1.]), scale: tensor([2.]))"
    assert repr(Normal(1.0, 2.0)) == "Normal(loc: 1.0, scale: 2.0)"

"""Divergences of two distributions of the same family."""

from __future__ import annotations

import math
from typing import TypeAlias

from chainrule.distributions.counts.bernoulli import Bernoulli
from chainrule.distributions.numbers.beta import Beta
from chainrule.distributions.counts.binomial import Binomial
from chainrule.distributions.counts.categorical import Categorical
from chainrule.distributions.numbers.cauchy import Cauchy
from chainrule.distributions.numbers.continuous_bernoulli import ContinuousBernoulli
from chainrule.distributions.vectors.dirichlet import Dirichlet
from chainrule.distributions.exp_family import ExponentialFamily
from chainrule.distributions.numbers.exponential import Exponential
from chainrule.distributions.numbers.gamma import Gamma
from chainrule.distributions.counts.geometric import Geometric
from chainrule.distributions.numbers.gumbel import Gumbel
from chainrule.distributions.numbers.half_normal import HalfNormal
from chainrule.distributions.compound.independent import Independent
from chainrule.distributions.kl import kl_divergence, register_kl
from chainrule.distributions.numbers.laplace import Laplace
from chainrule.distributions.vectors.lowrank_multivariate_normal import LowRankMultivariateNormal
from chainrule.distributions.vectors.multivariate_normal import MultivariateNormal
from chainrule.distributions.numbers.normal import Normal
from chainrule.distributions.counts.one_hot_categorical import OneHotCategorical
from chainrule.distributions.numbers.pareto import Pareto
from chainrule.distributions.counts.poisson import Poisson
from chainrule.distributions.vectors.spread import log_diagonal
from chainrule.distributions.compound.transformed_distribution import TransformedDistribution
from chainrule.distributions.numbers.uniform import Uniform
from chainrule.distributions.utils import EULER, sum_rightmost
from chainrule.ops.elementwise.functions import softplus
from chainrule.ops.elementwise.logic import where
from chainrule.tensor import Tensor

__all__: list[str] = []  # all of them are found by kl_divergence

Gaussian: TypeAlias = MultivariateNormal | LowRankMultivariateNormal


def excess(ratio: Tensor) -> Tensor:
    """r - 1 - log(r), the divergence by a factor r; never negative."""
    return ratio - 1 - ratio.log()


# --- numbers --------------------------------------------------------------------------------------


@register_kl(Normal, Normal)
def _normal(p: Normal, q: Normal) -> Tensor:
    shift = ((p.loc - q.loc) / q.scale).square()
    return 0.5 * (excess((p.scale / q.scale).square()) + shift)


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p: HalfNormal, q: HalfNormal) -> Tensor:
    return _normal(p.base_dist, q.base_dist)


@register_kl(Laplace, Laplace)
def _laplace(p: Laplace, q: Laplace) -> Tensor:
    ratio, shift = p.scale / q.scale, (p.loc - q.loc).abs()
    return ratio * (-shift / p.scale).exp() + shift / q.scale - 1 - ratio.log()


@register_kl(Cauchy, Cauchy)
def _cauchy(p: Cauchy, q: Cauchy) -> Tensor:
    apart = (p.scale + q.scale).square() + (p.loc - q.loc).square()
    return (apart / (4 * p.scale * q.scale)).log()


@register_kl(Gumbel, Gumbel)
def _gumbel(p: Gumbel, q: Gumbel) -> Tensor:
    ratio, shift = p.scale / q.scale, (p.loc - q.loc) / q.scale
    tail = ((1 + ratio).lgamma() - shift).exp()
    return shift + tail - 1 - ratio.log() + EULER * (ratio - 1)


@register_kl(Exponential, Exponential)
def _exponential(p: Exponential, q: Exponential) -> Tensor:
    return excess(q.rate / p.rate)


@register_kl(Gamma, Gamma)
def _gamma(p: Gamma, q: Gamma) -> Tensor:
    a, c = p.concentration, q.concentration
    shape = c.lgamma() - a.lgamma() + (a - c) * a.digamma()
    return shape + (c - a) * (p.rate / q.rate).log() + a * excess(q.rate / p.rate)


@register_kl(Pareto, Pareto)
def _pareto(p: Pareto, q: Pareto) -> Tensor:
    finite = q.alpha * (p.scale / q.scale).log() + excess(q.alpha / p.alpha)
    return where(p.scale < q.scale, math.inf, finite)


@register_kl(Uniform, Uniform)
def _uniform(p: Uniform, q: Uniform) -> Tensor:
    finite = ((q.high - q.low) / (p.high - p.low)).log()
    return where((q.low > p.low) | (q.high < p.high), math.inf, finite)


@register_kl(Beta, Beta)
def _beta(p: Beta, q: Beta) -> Tensor:
    a, b = p.concentration1, p.concentration0
    c, d = q.concentration1, q.concentration0
    normalizers = q._log_normalizer(c, d) - p._log_normalizer(a, b)
    means = (a - c) * a.digamma() + (b - d) * b.digamma()
    return normalizers + means + (c + d - a - b) * (a + b).digamma()


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _continuous_bernoulli(p: ContinuousBernoulli, q: ContinuousBernoulli) -> Tensor:
    normalizers = q._log_normalizer(q.logits) - p._log_normalizer(p.logits)
    return normalizers + p.mean * (p.logits - q.logits)


# --- integers -------------------------------------------------------------------------------------


def _share(p: Tensor, q: Tensor, log_ratio: Tensor) -> Tensor:
    """p log(p / q), 0 where p is 0, infinite where only q is."""
    return where(p == 0, 0.0, where(q == 0, math.inf, p * log_ratio))


def _yes_and_no(p: Bernoulli | Binomial, q: Bernoulli | Binomial) -> Tensor:
    """The divergence of one trial."""
    yes = _share(p.probs, q.probs, softplus(-q.logits) - softplus(-p.logits))
    return yes + _share(1 - p.probs, 1 - q.probs, softplus(q.logits) - softplus(p.logits))


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Bernoulli, q: Bernoulli) -> Tensor:
    return _yes_and_no(p, q)


@register_kl(Binomial, Binomial)
def _binomial(p: Binomial, q: Binomial) -> Tensor:
    if bool((p.total_count < q.total_count).any()):
        raise NotImplementedError(
            "kl_divergence: no closed form for a Binomial with a smaller total_count than the other"
        )
    finite = p.total_count * _yes_and_no(p, q)
    return where(p.total_count > q.total_count, math.inf, finite)


@register_kl(Geometric, Geometric)
def _geometric(p: Geometric, q: Geometric) -> Tensor:
    failures = (1 / p.probs - 1) * (softplus(q.logits) - softplus(p.logits))
    return softplus(-q.logits) - softplus(-p.logits) + failures


@register_kl(Poisson, Poisson)
def _poisson(p: Poisson, q: Poisson) -> Tensor:
    return p.rate.xlogy(p.rate) - p.rate.xlogy(q.rate) - (p.rate - q.rate)


@register_kl(Categorical, Categorical)
def _categorical(p: Categorical, q: Categorical) -> Tensor:
    return _share(p.probs, q.probs, p.logits - q.logits).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot(p: OneHotCategorical, q: OneHotCategorical) -> Tensor:
    return _categorical(p._categorical, q._categorical)


# --- vectors --------------------------------------------------------------------------------------


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p: Dirichlet, q: Dirichlet) -> Tensor:
    a, c = p.concentration, q.concentration
    mean_logs = a.digamma() - a.sum(-1, True).digamma()
    return q._log_normalizer(c) - p._log_normalizer(a) + ((a - c) * mean_logs).sum(-1)


def _half_log_det(d: Gaussian) -> Tensor:
    return d._log_det() if isinstance(d, LowRankMultivariateNormal) else log_diagonal(d._factor)


@register_kl(MultivariateNormal, MultivariateNormal)
@register_kl(MultivariateNormal, LowRankMultivariateNormal)
@register_kl(LowRankMultivariateNormal, MultivariateNormal)
@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _gaussian(p: Gaussian, q: Gaussian) -> Tensor:
    if p.event_shape != q.event_shape:
        raise ValueError(
            f"kl_divergence: vectors of {p.event_shape[0]} and of {q.event_shape[0]} numbers"
        )
    inverse, shift = q.precision_matrix, (p.loc - q.loc).unsqueeze(-1)
    spread = (inverse * p.covariance_matrix).sum((-2, -1))
    distance = (shift.mT @ inverse @ shift).squeeze(-1).squeeze(-1)
    volumes = _half_log_det(q) - _half_log_det(p)
    return volumes + 0.5 * (spread + distance - p.event_shape[0])


# --- of others ------------------------------------------------------------------------------------


@register_kl(ExponentialFamily, ExponentialFamily)
def _exponential_family(p: ExponentialFamily, q: ExponentialFamily) -> Tensor:
    """A(theta_q) - A(theta_p) - (theta_q - theta_p) . A'(theta_p)"""
    if type(p) is not type(q):
        raise NotImplementedError(
            f"kl_divergence: no divergence of {type(p).__name__} from {type(q).__name__}"
        )
    theta, other = p._natural_params, q._natural_params
    normalizer, means = p._with_means(theta)
    total = q._log_normalizer(*other) - normalizer
    for own, its, mean in zip(theta, other, means, strict=True):
        total = total - sum_rightmost((its - own) * mean, own.ndim - len(p.batch_shape))
    return total


@register_kl(Independent, Independent)
def _independent(p: Independent, q: Independent) -> Tensor:
    dims = p.reinterpreted_batch_ndims
    if dims != q.reinterpreted_batch_ndims:
        raise NotImplementedError(
            f"kl_divergence: Independent over {dims} and over {q.reinterpreted_batch_ndims} "
            "dimensions"
        )
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), dims)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: TransformedDistribution, q: TransformedDistribution) -> Tensor:
    """The same function of both changes nothing, if it is one to one."""
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError(
            f"kl_divergence: {p} and {q} are different functions of their bases"
        )
    for t in p.transforms:
        if not t.bijective:
            raise NotImplementedError(f"kl_divergence: {t} is not one to one")
    return kl_divergence(p.base_dist, q.base_dist)

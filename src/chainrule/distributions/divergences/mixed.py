"""Divergences of distributions of different families.

KL(p || q) = -H(p) - E_p[log q(x)], and log q is linear in few functions of x, whose means are known
for many p: x, x^2, log(x), log(1 - x), exp(t x). It is infinite where p has values that q has not.
"""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any

from chainrule.distributions.counts.bernoulli import Bernoulli
from chainrule.distributions.numbers.beta import Beta
from chainrule.distributions.counts.binomial import Binomial
from chainrule.distributions.numbers.continuous_bernoulli import ContinuousBernoulli
from chainrule.distributions.distribution import Distribution
from chainrule.distributions.numbers.exponential import Exponential
from chainrule.distributions.numbers.gamma import Gamma
from chainrule.distributions.numbers.gumbel import Gumbel
from chainrule.distributions.kl import register_kl
from chainrule.distributions.numbers.laplace import Laplace
from chainrule.distributions.numbers.normal import Normal
from chainrule.distributions.numbers.pareto import Pareto
from chainrule.distributions.counts.poisson import Poisson
from chainrule.distributions.numbers.uniform import Uniform
from chainrule.distributions.utils import EULER, HALF_LOG_2PI
from chainrule.ops.core.promotion import broadcast_shapes
from chainrule.ops.creation.patterns import full
from chainrule.ops.elementwise.logic import where
from chainrule.tensor import Tensor

__all__: list[str] = []  # all of them are found by kl_divergence

# --- means over p ---------------------------------------------------------------------------------


@functools.singledispatch
def mean_log(p: Any) -> Tensor:
    """E[log(x)]"""
    raise NotImplementedError(f"kl_divergence: the mean of log(x) is not known for {p}")


@mean_log.register
def _(p: Beta) -> Tensor:
    return p.concentration1.digamma() - (p.concentration1 + p.concentration0).digamma()


@mean_log.register
def _(p: Exponential) -> Tensor:
    return -EULER - p.rate.log()


@mean_log.register
def _(p: Gamma) -> Tensor:
    return p.concentration.digamma() - p.rate.log()


@mean_log.register
def _(p: Pareto) -> Tensor:
    return p.scale.log() + p.alpha.reciprocal()


@mean_log.register
def _(p: Uniform) -> Tensor:
    return (p.high.xlogy(p.high) - p.low.xlogy(p.low)) / (p.high - p.low) - 1


@functools.singledispatch
def mean_log_rest(p: Any) -> Tensor:
    """E[log(1 - x)]"""
    raise NotImplementedError(f"kl_divergence: the mean of log(1 - x) is not known for {p}")


@mean_log_rest.register
def _(p: Uniform) -> Tensor:
    return mean_log(Uniform(1 - p.high, 1 - p.low, validate_args=False))


@functools.singledispatch
def mean_exp(p: Any, t: Tensor) -> Tensor:
    """E[exp(t x)] for t < 0"""
    raise NotImplementedError(f"kl_divergence: the mean of exp(x) is not known for {p}")


@mean_exp.register
def _(p: Normal, t: Tensor) -> Tensor:
    return (t * p.loc + 0.5 * (t * p.scale).square()).exp()


@mean_exp.register
def _(p: Exponential, t: Tensor) -> Tensor:
    return p.rate / (p.rate - t)


@mean_exp.register
def _(p: Gamma, t: Tensor) -> Tensor:
    return (p.concentration * -(-t / p.rate).log1p()).exp()


@mean_exp.register
def _(p: Uniform, t: Tensor) -> Tensor:
    return ((t * p.high).exp() - (t * p.low).exp()) / (t * (p.high - p.low))


def _mean_distance(p: Distribution, center: Tensor) -> Tensor:
    """E[|x - center|]"""
    if not isinstance(p, Normal):
        raise NotImplementedError(f"kl_divergence: the mean of |x| is not known for {p}")
    shift, root = p.loc - center, math.sqrt(2) * p.scale
    near = root / math.sqrt(math.pi) * (-(shift / root).square()).exp()
    return near + shift * (shift / root).erf()


# --- -E_p[log q(x)] -------------------------------------------------------------------------------


@functools.singledispatch
def surprise(q: Any, p: Distribution) -> Tensor:
    """-E_p[log q(x)]"""
    raise NotImplementedError(f"kl_divergence: log_prob of {q} is no function of known means")


@surprise.register
def _(q: Normal, p: Distribution) -> Tensor:
    squared = p.variance + (p.mean - q.loc).square()
    return HALF_LOG_2PI + q.scale.log() + squared / (2 * q.scale.square())


@surprise.register
def _(q: Laplace, p: Distribution) -> Tensor:
    return (2 * q.scale).log() + _mean_distance(p, q.loc) / q.scale


@surprise.register
def _(q: Gumbel, p: Distribution) -> Tensor:
    tail = (q.loc / q.scale).exp() * mean_exp(p, -q.scale.reciprocal())
    return q.scale.log() + (p.mean - q.loc) / q.scale + tail


@surprise.register
def _(q: Exponential, p: Distribution) -> Tensor:
    return q.rate * p.mean - q.rate.log()


@surprise.register
def _(q: Gamma, p: Distribution) -> Tensor:
    a, b = q.concentration, q.rate
    return a.lgamma() - a * b.log() - (a - 1) * mean_log(p) + b * p.mean


@surprise.register
def _(q: Pareto, p: Distribution) -> Tensor:
    return (q.alpha + 1) * mean_log(p) - q.alpha.log() - q.alpha * q.scale.log()


@surprise.register
def _(q: Uniform, p: Distribution) -> Tensor:
    return (q.high - q.low).log()


@surprise.register
def _(q: Beta, p: Distribution) -> Tensor:
    a, b = q.concentration1, q.concentration0
    return q._log_normalizer(a, b) - (a - 1) * mean_log(p) - (b - 1) * mean_log_rest(p)


@surprise.register
def _(q: ContinuousBernoulli, p: Distribution) -> Tensor:
    return q._log_normalizer(q.logits) - q.logits * p.mean


# --- the divergence -------------------------------------------------------------------------------


def _ends(d: Any) -> tuple[Tensor | float, Tensor | float]:
    """The least and the largest value."""
    if isinstance(d, Uniform):
        return d.low, d.high
    if isinstance(d, Pareto):
        return d.scale, math.inf
    if isinstance(d, (Beta, ContinuousBernoulli)):
        return 0.0, 1.0
    return (0.0 if isinstance(d, (Exponential, Gamma)) else -math.inf), math.inf


def _mixed(p: Distribution, q: Distribution) -> Tensor:
    shape = broadcast_shapes(p.batch_shape, q.batch_shape)
    (low, high), (least, largest) = _ends(p), _ends(q)
    # What is so for all parameters needs no means.
    if (
        (_is(low, -math.inf) and not _is(least, -math.inf))
        or (_is(high, math.inf) and not _is(largest, math.inf))
        or (_is(low, 0.0) and isinstance(q, Pareto))
    ):
        return _infinite(p, shape)
    found = surprise(q, p) - p.entropy()
    beyond = (least > low) | (largest < high)
    if isinstance(beyond, Tensor):
        return where(beyond, math.inf, found).expand(shape)
    return _infinite(p, shape) if beyond else found.expand(shape)


def _is(end: Tensor | float, value: float) -> bool:
    return isinstance(end, float) and end == value


def _infinite(p: Distribution, shape: tuple[int, ...]) -> Tensor:
    return full(shape, math.inf, dtype=p.mean.dtype, device=p.mean.device)


_HALF_LINE, _INTERVAL = (Exponential, Gamma, Pareto), (Beta, ContinuousBernoulli, Uniform)
for _p, _q in itertools.permutations((Gumbel, Laplace, Normal, *_HALF_LINE, *_INTERVAL), 2):
    register_kl(_p, _q)(_mixed)


@register_kl(Bernoulli, Poisson)
def _bernoulli_poisson(p: Bernoulli, q: Poisson) -> Tensor:
    return q.rate - p.probs.xlogy(q.rate) - p.entropy()


@register_kl(Poisson, Bernoulli)
@register_kl(Poisson, Binomial)
def _poisson_bounded(p: Poisson, q: Bernoulli | Binomial) -> Tensor:
    """Above any bound there are values of p."""
    return _infinite(p, broadcast_shapes(p.batch_shape, q.batch_shape))

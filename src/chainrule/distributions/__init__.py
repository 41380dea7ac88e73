"""Probability distributions, under PyTorch's names.

Every family gives ``log_prob``, samples, and what of entropy, moments, cdf and icdf has a closed
form; ``rsample`` is differentiable by the parameters. ``transforms`` turn one distribution into
another, ``constraints`` are the regions of parameters and values.
"""

from __future__ import annotations

import sys

from chainrule.distributions import constraints, divergences, transforms
from chainrule.distributions.compound import (
    independent,
    mixture_same_family,
    transformed_distribution,
)
from chainrule.distributions.counts import (
    bernoulli,
    binomial,
    categorical,
    geometric,
    multinomial,
    negative_binomial,
    one_hot_categorical,
    poisson,
)
from chainrule.distributions.numbers import (
    beta,
    cauchy,
    chi2,
    continuous_bernoulli,
    exponential,
    fishersnedecor,
    gamma,
    generalized_pareto,
    gumbel,
    half_cauchy,
    half_normal,
    inverse_gamma,
    kumaraswamy,
    laplace,
    log_normal,
    normal,
    pareto,
    relaxed_bernoulli,
    studentT,
    uniform,
    von_mises,
    weibull,
)
from chainrule.distributions.vectors import (
    dirichlet,
    lkj_cholesky,
    logistic_normal,
    lowrank_multivariate_normal,
    multivariate_normal,
    relaxed_categorical,
    wishart,
)
from chainrule.distributions.counts.bernoulli import Bernoulli
from chainrule.distributions.numbers.beta import Beta
from chainrule.distributions.counts.binomial import Binomial
from chainrule.distributions.counts.categorical import Categorical
from chainrule.distributions.numbers.cauchy import Cauchy
from chainrule.distributions.numbers.chi2 import Chi2
from chainrule.distributions.constraint_registry import biject_to, transform_to
from chainrule.distributions.numbers.continuous_bernoulli import ContinuousBernoulli
from chainrule.distributions.vectors.dirichlet import Dirichlet
from chainrule.distributions.distribution import Distribution
from chainrule.distributions.exp_family import ExponentialFamily
from chainrule.distributions.numbers.exponential import Exponential
from chainrule.distributions.numbers.fishersnedecor import FisherSnedecor
from chainrule.distributions.numbers.gamma import Gamma
from chainrule.distributions.numbers.generalized_pareto import GeneralizedPareto
from chainrule.distributions.counts.geometric import Geometric
from chainrule.distributions.numbers.gumbel import Gumbel
from chainrule.distributions.numbers.half_cauchy import HalfCauchy
from chainrule.distributions.numbers.half_normal import HalfNormal
from chainrule.distributions.compound.independent import Independent
from chainrule.distributions.numbers.inverse_gamma import InverseGamma
from chainrule.distributions.kl import kl_divergence, register_kl
from chainrule.distributions.numbers.kumaraswamy import Kumaraswamy
from chainrule.distributions.numbers.laplace import Laplace
from chainrule.distributions.vectors.lkj_cholesky import LKJCholesky
from chainrule.distributions.numbers.log_normal import LogNormal
from chainrule.distributions.vectors.logistic_normal import LogisticNormal
from chainrule.distributions.vectors.lowrank_multivariate_normal import LowRankMultivariateNormal
from chainrule.distributions.compound.mixture_same_family import MixtureSameFamily
from chainrule.distributions.counts.multinomial import Multinomial
from chainrule.distributions.vectors.multivariate_normal import MultivariateNormal
from chainrule.distributions.counts.negative_binomial import NegativeBinomial
from chainrule.distributions.numbers.normal import Normal
from chainrule.distributions.counts.one_hot_categorical import (
    OneHotCategorical,
    OneHotCategoricalStraightThrough,
)
from chainrule.distributions.numbers.pareto import Pareto
from chainrule.distributions.counts.poisson import Poisson
from chainrule.distributions.numbers.relaxed_bernoulli import RelaxedBernoulli
from chainrule.distributions.vectors.relaxed_categorical import RelaxedOneHotCategorical
from chainrule.distributions.numbers.studentT import StudentT
from chainrule.distributions.compound.transformed_distribution import TransformedDistribution
from chainrule.distributions.transforms import (
    AbsTransform,
    AffineTransform,
    CatTransform,
    ComposeTransform,
    CorrCholeskyTransform,
    CumulativeDistributionTransform,
    ExpTransform,
    IndependentTransform,
    LowerCholeskyTransform,
    PositiveDefiniteTransform,
    PowerTransform,
    ReshapeTransform,
    SigmoidTransform,
    SoftmaxTransform,
    SoftplusTransform,
    StackTransform,
    StickBreakingTransform,
    TanhTransform,
    Transform,
    identity_transform,
)
from chainrule.distributions.numbers.uniform import Uniform
from chainrule.distributions.numbers.von_mises import VonMises
from chainrule.distributions.numbers.weibull import Weibull
from chainrule.distributions.vectors.wishart import Wishart

# PyTorch has all families side by side: ``from torch.distributions.normal import Normal``.
_FLAT = (
    bernoulli,
    beta,
    binomial,
    categorical,
    cauchy,
    chi2,
    continuous_bernoulli,
    dirichlet,
    exponential,
    fishersnedecor,
    gamma,
    generalized_pareto,
    geometric,
    gumbel,
    half_cauchy,
    half_normal,
    independent,
    inverse_gamma,
    kumaraswamy,
    laplace,
    lkj_cholesky,
    log_normal,
    logistic_normal,
    lowrank_multivariate_normal,
    mixture_same_family,
    multinomial,
    multivariate_normal,
    negative_binomial,
    normal,
    one_hot_categorical,
    pareto,
    poisson,
    relaxed_bernoulli,
    relaxed_categorical,
    studentT,
    transformed_distribution,
    uniform,
    von_mises,
    weibull,
    wishart,
)
for _module in _FLAT:
    sys.modules[f"{__name__}.{_module.__name__.rpartition('.')[2]}"] = _module

__all__ = [
    "AbsTransform",
    "AffineTransform",
    "Bernoulli",
    "Beta",
    "Binomial",
    "CatTransform",
    "Categorical",
    "Cauchy",
    "Chi2",
    "ComposeTransform",
    "ContinuousBernoulli",
    "CorrCholeskyTransform",
    "CumulativeDistributionTransform",
    "Dirichlet",
    "Distribution",
    "ExpTransform",
    "Exponential",
    "ExponentialFamily",
    "FisherSnedecor",
    "Gamma",
    "GeneralizedPareto",
    "Geometric",
    "Gumbel",
    "HalfCauchy",
    "HalfNormal",
    "Independent",
    "IndependentTransform",
    "InverseGamma",
    "Kumaraswamy",
    "LKJCholesky",
    "Laplace",
    "LogNormal",
    "LogisticNormal",
    "LowRankMultivariateNormal",
    "LowerCholeskyTransform",
    "MixtureSameFamily",
    "Multinomial",
    "MultivariateNormal",
    "NegativeBinomial",
    "Normal",
    "OneHotCategorical",
    "OneHotCategoricalStraightThrough",
    "Pareto",
    "Poisson",
    "PositiveDefiniteTransform",
    "PowerTransform",
    "RelaxedBernoulli",
    "RelaxedOneHotCategorical",
    "ReshapeTransform",
    "SigmoidTransform",
    "SoftmaxTransform",
    "SoftplusTransform",
    "StackTransform",
    "StickBreakingTransform",
    "StudentT",
    "TanhTransform",
    "Transform",
    "TransformedDistribution",
    "Uniform",
    "VonMises",
    "Weibull",
    "Wishart",
    "biject_to",
    "constraints",
    "divergences",
    "identity_transform",
    "kl_divergence",
    "register_kl",
    "transform_to",
    "transforms",
]

"""Probability distributions, under PyTorch's names.

Every family gives ``log_prob``, samples, and what of entropy, moments, cdf and icdf has a closed
form; ``rsample`` is differentiable by the parameters. ``transforms`` turn one distribution into
another, ``constraints`` are the regions of parameters and values.
"""

from __future__ import annotations

# kl_mixed and kl_same say what divergences there are.
from chainrule.distributions import constraints, kl_mixed, kl_same, transforms  # noqa: F401
from chainrule.distributions.bernoulli import Bernoulli
from chainrule.distributions.beta import Beta
from chainrule.distributions.binomial import Binomial
from chainrule.distributions.categorical import Categorical
from chainrule.distributions.cauchy import Cauchy
from chainrule.distributions.chi2 import Chi2
from chainrule.distributions.constraint_registry import biject_to, transform_to
from chainrule.distributions.continuous_bernoulli import ContinuousBernoulli
from chainrule.distributions.dirichlet import Dirichlet
from chainrule.distributions.distribution import Distribution
from chainrule.distributions.exp_family import ExponentialFamily
from chainrule.distributions.exponential import Exponential
from chainrule.distributions.fishersnedecor import FisherSnedecor
from chainrule.distributions.gamma import Gamma
from chainrule.distributions.generalized_pareto import GeneralizedPareto
from chainrule.distributions.geometric import Geometric
from chainrule.distributions.gumbel import Gumbel
from chainrule.distributions.half_cauchy import HalfCauchy
from chainrule.distributions.half_normal import HalfNormal
from chainrule.distributions.independent import Independent
from chainrule.distributions.inverse_gamma import InverseGamma
from chainrule.distributions.kl import kl_divergence, register_kl
from chainrule.distributions.kumaraswamy import Kumaraswamy
from chainrule.distributions.laplace import Laplace
from chainrule.distributions.lkj_cholesky import LKJCholesky
from chainrule.distributions.log_normal import LogNormal
from chainrule.distributions.logistic_normal import LogisticNormal
from chainrule.distributions.lowrank_multivariate_normal import LowRankMultivariateNormal
from chainrule.distributions.mixture_same_family import MixtureSameFamily
from chainrule.distributions.multinomial import Multinomial
from chainrule.distributions.multivariate_normal import MultivariateNormal
from chainrule.distributions.negative_binomial import NegativeBinomial
from chainrule.distributions.normal import Normal
from chainrule.distributions.one_hot_categorical import (
    OneHotCategorical,
    OneHotCategoricalStraightThrough,
)
from chainrule.distributions.pareto import Pareto
from chainrule.distributions.poisson import Poisson
from chainrule.distributions.relaxed_bernoulli import RelaxedBernoulli
from chainrule.distributions.relaxed_categorical import RelaxedOneHotCategorical
from chainrule.distributions.studentT import StudentT
from chainrule.distributions.transformed_distribution import TransformedDistribution
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
from chainrule.distributions.uniform import Uniform
from chainrule.distributions.von_mises import VonMises
from chainrule.distributions.weibull import Weibull
from chainrule.distributions.wishart import Wishart

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
    "identity_transform",
    "kl_divergence",
    "register_kl",
    "transform_to",
    "transforms",
]

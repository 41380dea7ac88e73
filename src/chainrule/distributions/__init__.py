"""Probability distributions, under PyTorch's names.

Every family gives ``log_prob``, samples, and what of entropy, moments, cdf and icdf has a closed
form; ``rsample`` is differentiable by the parameters.
"""

from __future__ import annotations

from chainrule.distributions import constraints
from chainrule.distributions.distribution import Distribution
from chainrule.distributions.cauchy import Cauchy
from chainrule.distributions.exponential import Exponential
from chainrule.distributions.laplace import Laplace
from chainrule.distributions.normal import Normal
from chainrule.distributions.uniform import Uniform

__all__ = ["Distribution", "Cauchy", "Exponential", "Laplace", "Normal", "Uniform", "constraints"]

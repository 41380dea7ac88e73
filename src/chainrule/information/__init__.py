"""Information and statistics: entropies, maximum entropy, how well parameters can be known."""

from __future__ import annotations

from chainrule.information.continuous import (
    differential_entropy,
    gaussian_entropy,
    gaussian_kl,
    integrate,
)
from chainrule.information.counting import (
    arrangements,
    composition_log_probability,
    configurations,
    multiplicity_entropy,
)
from chainrule.information.description import description_length
from chainrule.information.discrete import (
    conditional_entropy,
    cross_entropy,
    entropy,
    joint_entropy,
    kl_divergence,
    mutual_information,
    self_information,
)
from chainrule.information.estimation import (
    EstimatorStudy,
    Normality,
    asymptotic_normality,
    cramer_rao_bound,
    fisher_information,
    simulate_estimator,
    unidentifiable,
)
from chainrule.information.limits import (
    CentralLimit,
    LargeNumbers,
    berry_esseen_bound,
    central_limit,
    kolmogorov_distance,
    law_of_large_numbers,
)
from chainrule.information.maximum_entropy import MaximumEntropy, maximum_entropy
from chainrule.information.risk import NoisyRisk, bias_variance, noisy_target_risk

__all__ = [
    "CentralLimit",
    "EstimatorStudy",
    "LargeNumbers",
    "MaximumEntropy",
    "NoisyRisk",
    "Normality",
    "arrangements",
    "asymptotic_normality",
    "berry_esseen_bound",
    "bias_variance",
    "central_limit",
    "composition_log_probability",
    "conditional_entropy",
    "configurations",
    "cramer_rao_bound",
    "cross_entropy",
    "description_length",
    "differential_entropy",
    "entropy",
    "fisher_information",
    "gaussian_entropy",
    "gaussian_kl",
    "integrate",
    "joint_entropy",
    "kl_divergence",
    "kolmogorov_distance",
    "law_of_large_numbers",
    "maximum_entropy",
    "multiplicity_entropy",
    "mutual_information",
    "noisy_target_risk",
    "self_information",
    "simulate_estimator",
    "unidentifiable",
]

"""The records of the families of numbers."""

from __future__ import annotations

import numpy as np
from scipy import special, stats

from distributions import laws
from distributions.record import Family
from distributions.vectors import VECTORS

__all__ = ["ALL", "BY_LABEL"]

A = np.array
NAN = float("nan")
POSITIVE = r"must satisfy greater_than\(lower_bound=0.0\)"
UNIT = r"must satisfy interval\(lower_bound=0.0, upper_bound=1.0\)"
PLACE = {"loc": A([0.0, -1.5, 3.0]), "scale": A([1.0, 0.3, 2.0])}
BOTH = (
    {"probs": 0.5, "logits": 0.0},
    "expected exactly one of probs, logits, got probs and logits",
)
NEITHER = ({}, "expected exactly one of probs, logits, got none of them")

# --- on the line ----------------------------------------------------------------------------------

LINE = [
    Family(
        "Normal",
        PLACE,
        lambda loc, scale: stats.norm(loc, scale),
        bad=[
            ({"loc": 0.0, "scale": -1.0}, f"Normal: the parameter scale {POSITIVE}, got -1.0"),
            ({"loc": NAN, "scale": 1.0}, "parameter loc must satisfy real, got nan"),
            (
                {"loc": 0.0, "scale": A([1.0, -2.0])},
                r"got -2.0 at index \(1,\) of shape \(2,\)",
            ),
            ({"loc": "0", "scale": 1.0}, "parameters must be tensors or numbers, got str"),
        ],
        outside=NAN,
    ),
    Family(
        "Laplace",
        PLACE,
        lambda loc, scale: stats.laplace(loc, scale),
        bad=[({"loc": 0.0, "scale": 0.0}, f"Laplace: the parameter scale {POSITIVE}, got 0.0")],
        outside=NAN,
    ),
    Family(
        "Cauchy",
        PLACE,
        lambda loc, scale: stats.cauchy(loc, scale),
        bad=[({"loc": 0.0, "scale": 0.0}, f"Cauchy: the parameter scale {POSITIVE}, got 0.0")],
        outside=NAN,
    ),
    Family(
        "Gumbel",
        PLACE,
        lambda loc, scale: stats.gumbel_r(loc, scale),
        bad=[({"loc": 0.0, "scale": -3.0}, f"Gumbel: the parameter scale {POSITIVE}, got -3.0")],
        outside=NAN,
    ),
    Family(
        "StudentT",
        {"df": A([1.5, 3.0, 30.0]), "loc": A([0.0, -1.0, 2.0]), "scale": A([1.0, 2.0, 0.5])},
        lambda df, loc, scale: stats.t(df, loc, scale),
        bad=[({"df": -1.0}, f"StudentT: the parameter df {POSITIVE}, got -1.0")],
        outside=NAN,
    ),
    Family(
        "VonMises",
        {"loc": A([0.0, 1.0, -2.0]), "concentration": A([0.5, 2.0, 40.0])},
        laws.von_mises,
        bad=[({"loc": 0.0, "concentration": 0.0}, f"parameter concentration {POSITIVE}, got 0.0")],
        outside=NAN,
        torch_rtol=1e-4,
    ),
]

# --- on the half line -----------------------------------------------------------------------------

SHAPE = {"concentration": A([0.4, 1.0, 5.0, 80.0]), "rate": A([1.0, 0.5, 3.0, 2.0])}
HALF_LINE = [
    Family(
        "Exponential",
        {"rate": A([0.5, 1.0, 4.0])},
        lambda rate: stats.expon(scale=1 / rate),
        bad=[({"rate": -2.0}, f"Exponential: the parameter rate {POSITIVE}, got -2.0")],
        outside=-1.0,
    ),
    Family(
        "Gamma",
        SHAPE,
        lambda concentration, rate: stats.gamma(concentration, scale=1 / rate),
        bad=[({"concentration": 0.0, "rate": 1.0}, f"parameter concentration {POSITIVE}, got 0.0")],
        outside=-1.0,
    ),
    Family(
        "InverseGamma",
        {"concentration": A([0.9, 1.5, 5.0]), "rate": A([1.0, 0.5, 3.0])},
        lambda concentration, rate: stats.invgamma(concentration, scale=rate),
        bad=[({"concentration": 1.0, "rate": -1.0}, f"InverseGamma: .* rate {POSITIVE}, got -1.0")],
        outside=-1.0,
    ),
    Family(
        "Chi2",
        {"df": A([0.7, 3.0, 20.0])},
        lambda df: stats.chi2(df),
        bad=[({"df": 0.0}, f"Chi2: the parameter df {POSITIVE}, got 0.0")],
        outside=-1.0,
    ),
    Family(
        "FisherSnedecor",
        {"df1": A([1.5, 4.0, 10.0]), "df2": A([2.5, 6.0, 30.0])},
        lambda df1, df2: stats.f(df1, df2),
        bad=[({"df1": 0.0, "df2": 1.0}, f"FisherSnedecor: the parameter df1 {POSITIVE}, got 0.0")],
        outside=-1.0,
    ),
    Family(
        "LogNormal",
        {"loc": A([0.0, -1.5, 1.0]), "scale": A([1.0, 0.3, 0.5])},
        lambda loc, scale: stats.lognorm(scale, scale=np.exp(loc)),
        bad=[({"loc": 0.0, "scale": -1.0}, f"LogNormal: the parameter scale {POSITIVE}, got -1.0")],
        outside=-1.0,
    ),
    Family(
        "HalfNormal",
        {"scale": A([1.0, 0.3, 2.0])},
        lambda scale: stats.halfnorm(scale=scale),
        bad=[({"scale": -1.0}, f"HalfNormal: the parameter scale {POSITIVE}, got -1.0")],
        outside=-1.0,
    ),
    Family(
        "HalfCauchy",
        {"scale": A([1.0, 0.3, 2.0])},
        lambda scale: stats.halfcauchy(scale=scale),
        bad=[({"scale": -1.0}, f"HalfCauchy: the parameter scale {POSITIVE}, got -1.0")],
        outside=-1.0,
    ),
    Family(
        "Pareto",
        {"scale": A([1.0, 0.5, 3.0]), "alpha": A([0.8, 1.5, 4.0])},
        lambda scale, alpha: stats.pareto(alpha, scale=scale),
        bad=[({"scale": 1.0, "alpha": -1.0}, f"Pareto: the parameter alpha {POSITIVE}, got -1.0")],
        outside=0.1,
    ),
    Family(
        "Weibull",
        {"scale": A([1.0, 0.5, 3.0]), "concentration": A([1.0, 1.5, 4.0])},
        lambda scale, concentration: stats.weibull_min(concentration, scale=scale),
        bad=[({"scale": 0.0, "concentration": 1.0}, f"Weibull: .* scale {POSITIVE}, got 0.0")],
        outside=-1.0,
        total=False,
    ),
    Family(
        "GeneralizedPareto",
        {
            "loc": A([0.0, 1.0, -1.0, 0.5]),
            "scale": A([1.0, 2.0, 0.5, 1.0]),
            "concentration": A([0.0, 0.3, -0.4, 0.7]),
        },
        lambda loc, scale, concentration: stats.genpareto(concentration, loc, scale),
        bad=[({"loc": 0.0, "scale": 0.0, "concentration": 1.0}, f"scale {POSITIVE}, got 0.0")],
        outside=-5.0,
        total=False,
    ),
]

# --- between two limits ---------------------------------------------------------------------------

INTERVAL = [
    Family(
        "Uniform",
        {"low": A([0.0, -1.0, 2.0]), "high": A([1.0, 3.0, 2.5])},
        lambda low, high: stats.uniform(low, high - low),
        bad=[({"low": 1.0, "high": 0.5}, r"high must satisfy greater_than\(lower_bound=1.0\)")],
        outside=7.0,
    ),
    Family(
        "Beta",
        {"concentration1": A([0.5, 2.0, 30.0]), "concentration0": A([0.7, 1.0, 8.0])},
        lambda concentration1, concentration0: stats.beta(concentration1, concentration0),
        bad=[({"concentration1": 0.0, "concentration0": 1.0}, f"concentration1 {POSITIVE}")],
        outside=1.5,
    ),
    Family(
        "Kumaraswamy",
        {"concentration1": A([1.2, 2.0, 5.0]), "concentration0": A([1.1, 3.0, 8.0])},
        laws.kumaraswamy,
        bad=[({"concentration1": 1.0, "concentration0": -1.0}, f"concentration0 {POSITIVE}")],
        outside=1.5,
        total=False,
    ),
    Family(
        "ContinuousBernoulli",
        {"probs": A([0.1, 0.45, 0.9, 0.99])},
        lambda probs: laws.continuous_bernoulli(special.logit(probs)),
        bad=[({"probs": 1.5}, f"ContinuousBernoulli: the parameter probs {UNIT}"), BOTH, NEITHER],
        outside=1.5,
    ),
    Family(
        "ContinuousBernoulli",
        {"logits": A([-3.0, -0.2, 0.25, 8.0])},
        lambda logits: laws.continuous_bernoulli(logits),
        note="logits",
    ),
    Family(
        "ContinuousBernoulli",
        {"logits": A([-300.0, -0.0051, 1e-3, 0.29, 40.0])},
        lambda logits: laws.continuous_bernoulli(logits),
        note="extreme",
        torch=False,
    ),
    Family(
        "RelaxedBernoulli",
        {"temperature": A([0.5, 1.0, 2.0]), "probs": A([0.1, 0.5, 0.8])},
        laws.relaxed_bernoulli,
        bad=[
            ({"temperature": A(1.0), "probs": 1.5}, f"the parameter probs {UNIT}"),
            ({"temperature": A(-1.0), "probs": 0.5}, f"the parameter temperature {POSITIVE}"),
        ],
        outside=1.5,
    ),
]

# --- integers -------------------------------------------------------------------------------------

COUNTS = [
    Family(
        "Bernoulli",
        {"probs": A([0.1, 0.4, 0.9])},
        lambda probs: stats.bernoulli(probs),
        bad=[({"probs": 1.5}, f"Bernoulli: the parameter probs {UNIT}, got 1.5"), BOTH, NEITHER],
        outside=0.5,
    ),
    Family(
        "Bernoulli",
        {"logits": A([-2.0, 0.5, 3.0])},
        lambda logits: stats.bernoulli(special.expit(logits)),
        bad=[({"logits": NAN}, "Bernoulli: the parameter logits must satisfy real, got nan")],
        note="logits",
    ),
    Family(
        "Geometric",
        {"probs": A([0.1, 0.4, 0.9])},
        lambda probs: stats.geom(probs, loc=-1),
        bad=[({"probs": 0.0}, f"Geometric: the parameter probs {POSITIVE}, got 0.0"), BOTH],
        outside=-1.0,
    ),
    Family(
        "Binomial",
        {"total_count": 6, "probs": A([0.1, 0.4, 0.9])},
        lambda total_count, probs: stats.binom(total_count, probs),
        bad=[
            ({"total_count": A(1.5), "probs": A(0.5)}, r"integer_from\(lower_bound=0\), got 1.5"),
            ({"total_count": 1, "probs": A(-0.5)}, f"Binomial: the parameter probs {UNIT}"),
        ],
        outside=7.0,
    ),
    Family(
        "Binomial",
        {"total_count": A([2.0, 9.0, 30.0]), "logits": A([-2.0, 0.5, 3.0])},
        lambda total_count, logits: stats.binom(total_count, special.expit(logits)),
        fixed=("total_count",),
        note="logits",
    ),
    Family(
        "NegativeBinomial",
        {"total_count": A([0.7, 3.0, 20.0]), "probs": A([0.1, 0.4, 0.8])},
        lambda total_count, probs: stats.nbinom(total_count, 1 - probs),
        bad=[
            ({"total_count": -1.0, "probs": A(0.5)}, "total_count must satisfy greater_than_eq"),
            ({"total_count": 1.0, "probs": A(1.0)}, "probs must satisfy half_open_interval"),
        ],
        outside=-1.0,
    ),
    Family(
        "Poisson",
        {"rate": A([0.3, 4.0, 50.0])},
        lambda rate: stats.poisson(rate),
        bad=[({"rate": -1.0}, r"rate must satisfy greater_than_eq\(lower_bound=0.0\), got -1.0")],
        outside=1.5,
    ),
    Family(
        "Categorical",
        {"probs": A([[0.1, 0.2, 0.7], [0.5, 0.4, 0.1]])},
        laws.categorical,
        bad=[
            ({"probs": A([-0.5, 1.5])}, r"probs must satisfy simplex, got \[-0.5, 1.5\]"),
            ({"probs": A(0.5)}, "probs must be a tensor with a dimension"),
            NEITHER,
        ],
        outside=3.0,
        total=False,
    ),
    Family(
        "Categorical",
        {"logits": A([[0.1, 0.2, 0.7], [-5.0, 4.0, 0.1]])},
        lambda logits: laws.categorical(special.softmax(logits)),
        note="logits",
    ),
]

ALL = [*LINE, *HALF_LINE, *INTERVAL, *COUNTS, *VECTORS]
BY_LABEL = {family.label: family for family in ALL}

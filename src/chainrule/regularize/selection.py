"""How complex a model should be: a bound of its risk, and the simplest one that is good enough."""

from __future__ import annotations

import math
from collections.abc import Sequence

__all__ = ["risk_bound", "simplest_adequate"]


def risk_bound(empirical_risk: float, dimension: float, n: int, confidence: float = 0.95) -> float:
    """R <= R_emp + sqrt((h (ln(2 n / h) + 1) + ln(4 / (1 - confidence))) / n), of Vapnik.

    The risk (the rate of errors) of a classifier that makes ``empirical_risk`` errors on ``n``
    samples, for one chosen from a class of VC dimension h. It holds with the given probability.
    A richer class lowers the first term and raises the second: the complexity.

    >>> from chainrule import regularize
    >>> [round(regularize.risk_bound(0.05, h, n=10000), 3) for h in (10, 100)]
    [0.145, 0.302]
    """
    if not 0 <= empirical_risk <= 1 or not 0 <= confidence < 1:
        raise ValueError(
            "risk_bound: the risk and the confidence must lie between 0 and 1 (the confidence "
            f"below 1), got {empirical_risk} and {confidence}"
        )
    if not 0 < dimension <= n:
        raise ValueError(
            f"risk_bound: the bound holds for a dimension between 0 and the number of samples, got "
            f"dimension={dimension}, n={n}"
        )
    spread = dimension * (math.log(2 * n / dimension) + 1) + math.log(4 / (1 - confidence))
    return empirical_risk + math.sqrt(spread / n)


def simplest_adequate(
    complexities: Sequence[float],
    risks: Sequence[float],
    errors: Sequence[float] | float = 0.0,
) -> int:
    """The index of the simplest model whose risk is that of the best one, within its error.

    Occam's razor as the rule of one standard error: of all models with a risk up to
    min(risks) + its error, the one of least complexity, and among equals of least risk.

    Args:
        complexities: numbers of weights, of units, strengths with a minus sign, ...
        risks: for instance the mean validation loss over folds.
        errors: the standard error of each risk, or of all.

    >>> from chainrule import regularize
    >>> regularize.simplest_adequate([1, 5, 20, 80], [0.9, 0.41, 0.40, 0.55], errors=0.02)
    1
    """
    if not len(risks) or len(complexities) != len(risks):
        raise ValueError(
            "simplest_adequate: expected as many complexities as risks and at least one, got "
            f"{len(complexities)} and {len(risks)}"
        )
    listed = [errors] * len(risks) if isinstance(errors, (int, float)) else list(errors)
    if len(listed) != len(risks) or not all(e >= 0 for e in listed):
        raise ValueError(f"simplest_adequate: expected {len(risks)} errors >= 0, got {errors}")
    if not all(math.isfinite(c) for c in complexities) or all(math.isnan(r) for r in risks):
        raise ValueError("simplest_adequate: complexities and risks must be numbers")
    known = [i for i, r in enumerate(risks) if not math.isnan(r)]
    best = min(known, key=lambda i: risks[i])
    adequate = [i for i in known if risks[i] <= risks[best] + listed[best]]
    return min(adequate, key=lambda i: (complexities[i], risks[i]))

"""Counting: in how many ways N things can take b values, and what entropy has to do with it."""

from __future__ import annotations

import math
from collections.abc import Sequence

__all__ = [
    "arrangements",
    "composition_log_probability",
    "configurations",
    "multiplicity_entropy",
]


def _whole(op: str, least: int, **values: int) -> None:
    for name, value in values.items():
        if int(value) != value or value < least:
            raise ValueError(f"{op}: {name} must be an integer of at least {least}, got {value}")


def configurations(channels: int, values: int) -> int:
    """How often each value occurs in N channels can be chosen in (N + b - 1)! / (N! (b - 1)!) ways.

    >>> configurations(2, 3)
    6
    """
    _whole("configurations", 0, channels=channels)
    _whole("configurations", 1, values=values)
    return math.comb(channels + values - 1, channels)


def arrangements(counts: Sequence[int], approximate: bool = False) -> float:
    """ln (N! / prod_i b_i!): in how many ways channels can be given values that occur b_i times.

    ``approximate`` is Stirling's formula, ln of e^{N H} / sqrt((2 pi N)^(b - 1) prod_i f_i) with
    the frequencies f_i = b_i / N and their entropy H in nats.

    >>> round(math.exp(arrangements([2, 1, 1])))
    12
    """
    n = math.fsum(counts)
    if not len(counts) or any(int(c) != c or c < 0 for c in counts) or n == 0:
        raise ValueError(f"arrangements: counts must be integers, not all 0, got {list(counts)}")
    if not approximate:
        return math.lgamma(n + 1) - math.fsum(math.lgamma(c + 1) for c in counts)
    f = [c / n for c in counts if c]
    entropy = -math.fsum(p * math.log(p) for p in f)
    return n * entropy - 0.5 * (
        (len(f) - 1) * math.log(2 * math.pi * n) + math.fsum(map(math.log, f))
    )


def multiplicity_entropy(counts: Sequence[int]) -> float:
    """ln N_Q / (N ln b), N_Q the number of arrangements: tends to the entropy of f to base b.

    >>> round(multiplicity_entropy([120, 180, 300]), 4)  # the entropy is 0.9372
    0.9274
    """
    if len(counts) < 2:
        raise ValueError(f"multiplicity_entropy: expected two values or more, got {list(counts)}")
    return arrangements(counts) / (math.fsum(counts) * math.log(len(counts)))


def composition_log_probability(counts: Sequence[int], probabilities: Sequence[float]) -> float:
    """ln of the probability that N independent draws give these counts: multinomial.

    It is largest where the frequencies are the probabilities, and even there it tends to 0 as
    N^(-(b - 1) / 2): only ln p / N tends to 0, elsewhere to minus the divergence.

    >>> round(math.exp(composition_log_probability([1, 1], [0.5, 0.5])), 12)
    0.5
    """
    if len(counts) != len(probabilities):
        raise ValueError(
            f"composition_log_probability: got {len(counts)} counts and {len(probabilities)} "
            "probabilities"
        )
    if any(p < 0 for p in probabilities) or abs(math.fsum(probabilities) - 1) > 1e-6:
        raise ValueError(
            "composition_log_probability: expected probabilities that add up to 1, got "
            f"{list(probabilities)}"
        )
    if any(p == 0 and c for c, p in zip(counts, probabilities, strict=True)):
        return -math.inf
    terms = [c * math.log(p) for c, p in zip(counts, probabilities, strict=True) if c]
    return arrangements(counts) + math.fsum(terms)

"""Water through parallel channels: Darcy's law, and how many ways there are to carry it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from chainrule.information.counting import arrangements, configurations
from chainrule.ops.creation.patterns import full, zeros
from chainrule.ops.creation.from_data import tensor
from chainrule.ops.linalg.matmul import matmul
from chainrule.ops.reduce.reductions import sum
from chainrule.ops.creation.sampling import randint
from chainrule.problems.problem import Problem, floating, positive, squared_error, whole
from chainrule.tensor import Tensor
from chainrule.typing import DType, Random

__all__ = ["arrangements", "configurations", "darcy", "discharge"]


def discharge(conductivity: Tensor, head: float, area: float, length: float) -> Tensor:
    """Q = (sum_i K_i) head area / length for channels along the last dimension.

    >>> from chainrule import problems, tensor
    >>> problems.discharge(tensor([[1.0, 2.0, 3.0]]), head=2.0, area=0.5, length=10.0)
    tensor([0.6000])
    """
    positive("discharge", area=area, length=length)
    return sum(conductivity, -1) * (head * area / length)


def darcy(
    n: int = 100,
    channels: int = 5,
    conductivities: Sequence[float] = (1e-4, 1e-3, 1e-2),
    head: float = 2.0,
    area: float = 0.5,
    length: float = 10.0,
    generator: Random = None,
    dtype: DType | None = None,
) -> Problem:
    """Conductivities (n, channels), each one of a few values with equal probability, and Q (n,).

    The function is the mean squared error of Q = w . K by the weights w, all of which are
    head area / length at the minimum. ``known["entropy"]`` is that of the conductivities of all
    channels, N ln b; to base b it is the number of channels N.

    >>> from chainrule import problems
    >>> p = problems.darcy(channels=3)
    >>> p.minimizer
    tensor([0.1000, 0.1000, 0.1000])
    """
    whole("darcy", n=n, channels=channels)
    positive("darcy", area=area, length=length)
    if not len(conductivities) or not all(0 < k < math.inf for k in conductivities):
        raise ValueError(f"darcy: conductivities must be positive, got {list(conductivities)}")
    dtype = floating("darcy", dtype)
    values = tensor([float(k) for k in conductivities], dtype=dtype)
    k = values[randint(len(conductivities), (n, channels), generator=generator)]

    def rule(k: Tensor) -> Tensor:
        return discharge(k, head, area, length)

    answer = full((channels,), head * area / length, dtype=dtype)
    return Problem(
        "darcy",
        "document 003, the example of Shannon's entropy",
        squared_error(lambda w, k: matmul(k, w), k, rule(k)),
        zeros(channels, dtype=dtype),
        answer,
        0.0,
        k,
        rule(k),
        rule,
        answer,
        {
            "entropy": channels * math.log(len(conductivities)),
            "configurations": configurations(channels, len(conductivities)),
        },
    )

"""The radial function that two hidden layers learn and one does not."""

from __future__ import annotations

import math

from chainrule.ops.elementwise.bessel import hyp0f1
from chainrule.ops.reduce.reductions import sum
from chainrule.problems.problem import Problem, floating, positive, uniform, whole
from chainrule.tensor import Tensor
from chainrule.typing import DType, Random

__all__ = ["radial_bessel", "radial_function"]


def radial_function(x: Tensor, radius: float = 0.2) -> Tensor:
    """(R / |x|)^{d/2} J_{d/2}(2 pi R |x|) of each point (..., d).

    It is the Fourier transform of the ball of radius R. Written as
    (pi R^2)^{d/2} / Gamma(d/2 + 1) * 0F1(d/2 + 1; -(pi R |x|)^2) it is smooth, also at 0, where it
    is the volume of the ball.

    >>> from chainrule import problems, tensor
    >>> problems.radial_function(tensor([[0.0, 0.0], [3.0, 4.0]]))
    tensor([ 0.1257, -0.0085])
    """
    if x.ndim < 1 or x.shape[-1] < 1 or not x.is_floating_point():
        raise ValueError(
            f"radial_function: expected floating points (..., d), got shape {tuple(x.shape)} of "
            f"{x.dtype}"
        )
    positive("radial_function", radius=radius)
    half = x.shape[-1] / 2
    volume = (math.pi * radius**2) ** half / math.gamma(half + 1)
    return volume * hyp0f1(half + 1, -((math.pi * radius) ** 2) * sum(x * x, -1))


def radial_bessel(
    n: int = 4000,
    dim: int = 2,
    radius: float = 0.2,
    generator: Random = None,
    dtype: DType | None = None,
) -> Problem:
    """``n`` points uniform in [-10, 10)^dim with the value of :func:`radial_function`.

    The course trains with 70 % of them.

    >>> from chainrule import problems
    >>> p = problems.radial_bessel()
    >>> p.targets.shape, round(p.known["peak"], 5)
    (chainrule.Size([4000, 1]), 0.12566)
    """
    whole("radial_bessel", n=n, dim=dim)
    positive("radial_bessel", radius=radius)
    dtype = floating("radial_bessel", dtype)
    x = uniform(-10.0, 10.0, n, dim, generator=generator, dtype=dtype)

    def rule(x: Tensor) -> Tensor:
        return radial_function(x, radius)[..., None]

    peak = (math.pi * radius**2) ** (dim / 2) / math.gamma(dim / 2 + 1)
    return Problem(
        "radial_bessel",
        "document 000, equation 19 (R. Eldan, O. Shamir, 2016)",
        inputs=x,
        targets=rule(x),
        rule=rule,
        known={"peak": peak, "radius": radius},
    )

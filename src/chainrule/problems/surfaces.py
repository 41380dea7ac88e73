"""Functions whose minimum is known."""

from __future__ import annotations

import math

from chainrule.linalg import qr
from chainrule.ops.creation.patterns import logspace, ones, zeros
from chainrule.ops.shape.diagonal import diag
from chainrule.ops.elementwise.functions import cos, sin
from chainrule.ops.creation.from_data import tensor
from chainrule.ops.linalg.matmul import matmul
from chainrule.ops.core.promotion import cast
from chainrule.ops.reduce.reductions import sum
from chainrule.problems.problem import Problem, floating, normal, whole
from chainrule.backend import dtypes
from chainrule.tensor import Tensor
from chainrule.typing import DType, Random

__all__ = ["bowl", "quadratic", "rosenbrock", "vialle"]


def bowl(dtype: DType | None = None) -> Problem:
    """w1^2 + 5 w2^2: gradient descent is stable for rates below 2 / 10 = 0.2.

    >>> from chainrule import problems, tensor
    >>> problems.bowl().function(tensor([1.0, 2.0]))
    tensor(21.)
    """
    dtype = floating("bowl", dtype)

    def function(w: Tensor) -> Tensor:
        return w[0] * w[0] + 5 * w[1] * w[1]

    return Problem(
        "bowl",
        "document 004, section 7.4",
        function,
        ones(2, dtype=dtype),
        zeros(2, dtype=dtype),
        0.0,
        known={"hessian": tensor([[2.0, 0], [0, 10]], dtype=dtype), "largest_rate": 0.2},
    )


def vialle(start: tuple[float, float] = (45.0, 35.0), dtype: DType | None = None) -> Problem:
    """A surface with many valleys, periodic in both directions on top of a paraboloid.

    8 sin^2(1.5 t1 / 10 - 3) + 8 cos^2(t2 / 10 - 2) + 0.3 ((t1 / 5 - 12)^2 + (t2 / 10 - 8)^2) + 10

    The course starts at (135, 135), at a distance of 99.53 from the lowest point, and at (45, 35),
    at 36.65.

    >>> from chainrule import problems
    >>> p = problems.vialle()
    >>> p.function(p.minimizer)
    tensor(10.5195)
    """
    dtype = floating("vialle", dtype)

    def function(t: Tensor) -> Tensor:
        s, c = sin(0.15 * t[0] - 3), cos(t[1] / 10 - 2)
        a, b = t[0] / 5 - 12, t[1] / 10 - 8
        return 8 * s * s + 8 * c * c + 0.3 * (a * a + b * b) + 10

    return Problem(
        "vialle",
        "document 000, equation 78 (S. Vialle, 2022)",
        function,
        tensor(list(start), dtype=dtype),
        tensor([61.769885056200984, 67.5899415584118], dtype=dtype),
        10.519489110862429,
        known={"starts": ((135.0, 135.0), (45.0, 35.0))},
    )


def rosenbrock(n: int = 2, dtype: DType | None = None) -> Problem:
    """sum_i 100 (x_{i+1} - x_i^2)^2 + (1 - x_i)^2: a curved valley with a flat floor.

    From 4 dimensions on there is a second, local minimum near (-1, 1, ..., 1).

    >>> from chainrule import problems, tensor
    >>> problems.rosenbrock().function(tensor([-1.2, 1.0]))
    tensor(24.2000)
    """
    whole("rosenbrock", 2, n=n)
    dtype = floating("rosenbrock", dtype)

    def function(x: Tensor) -> Tensor:
        a, b = x[1:] - x[:-1] ** 2, 1 - x[:-1]
        return sum(100 * a * a + b * b)

    start = tensor([-1.2 if i % 2 == 0 else 1.0 for i in range(n)], dtype=dtype)
    source = "H. H. Rosenbrock, The Computer Journal 3 (1960) 175-184; chained to n dimensions"
    return Problem("rosenbrock", source, function, start, ones(n, dtype=dtype), 0.0)


def quadratic(
    n: int = 10, condition: float = 1e3, generator: Random = None, dtype: DType | None = None
) -> Problem:
    """(x - x*)^T A (x - x*) / 2 with eigenvalues of A from 1 to ``condition``, evenly in logarithm.

    The axes (eigenvectors) and the solution x* are random; the start is 0.

    >>> from chainrule import problems
    >>> p = problems.quadratic(5, condition=100.0)
    >>> p.known["eigenvalues"]
    tensor([  1.0000,   3.1623,  10.0000,  31.6228, 100.0000])
    """
    whole("quadratic", n=n)
    if not 1 <= condition < math.inf:
        raise ValueError(f"quadratic: condition must be at least 1 and finite, got {condition}")
    if n == 1 and condition != 1:
        raise ValueError(f"quadratic: one dimension has the condition number 1, got {condition}")
    dtype = floating("quadratic", dtype)
    exact = dtypes.float64
    axes = qr(normal(1.0, n, n, generator=generator, dtype=exact))[0]
    eigenvalues = logspace(0, math.log10(condition), n, dtype=exact)
    a = matmul(matmul(axes, diag(eigenvalues)), axes.mT)
    a = cast((a + a.mT) / 2, dtype)
    solution = normal(1.0, n, generator=generator, dtype=dtype)

    def function(x: Tensor) -> Tensor:
        d = x - solution
        return 0.5 * sum(d * matmul(a, d))

    return Problem(
        "quadratic",
        "the standard model of a minimum",
        function,
        zeros(n, dtype=dtype),
        solution,
        0.0,
        known={"hessian": a, "eigenvalues": cast(eigenvalues, dtype), "condition": condition},
    )

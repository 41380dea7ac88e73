"""Curves through noisy points."""

from __future__ import annotations


from chainrule.backend import dtypes
from chainrule.linalg import lstsq
from chainrule.ops.creation.patterns import ones_like
from chainrule.ops.elementwise.functions import exp
from chainrule.ops.creation.from_data import tensor
from chainrule.ops.core.promotion import cast
from chainrule.ops.shape.stacking import cat
from chainrule.problems.problem import Problem, floating, normal, squared_error, uniform, whole
from chainrule.tensor import Tensor
from chainrule.typing import DType, Random

__all__ = ["exponential", "exponential_line", "line"]


def _line(theta: Tensor, x: Tensor) -> Tensor:
    return theta[0] + theta[1] * x


def _best_line(x: Tensor, y: Tensor) -> Tensor:
    """(b, w) of the line b + w x with the least squared error, in float64."""
    x, y = cast(x, dtypes.float64), cast(y, dtypes.float64)
    return lstsq(cat([ones_like(x), x], 1), y[:, 0]).solution


def line(
    n: int = 30,
    low: float = -1.0,
    high: float = 1.0,
    noise: float = 0.1,
    generator: Random = None,
    dtype: DType | None = None,
) -> Problem:
    """y = 3 x + 2 + U(-noise, noise) for x uniform in [low, high).

    The parameters are (2, 3): first the offset, as in the course, which starts at (10, 5). The
    minimizer is the least-squares line through the noisy points.

    >>> from chainrule import problems
    >>> problems.line(noise=0.0).minimizer.round(decimals=5)
    tensor([2., 3.])
    """
    whole("line", 2, n=n)
    dtype = floating("line", dtype)
    x = uniform(low, high, n, 1, generator=generator, dtype=dtype)
    y = 3 * x + 2 + uniform(-noise, noise, n, 1, generator=generator, dtype=dtype)
    best, truth = _best_line(x, y), tensor([2.0, 3.0], dtype=dtype)
    error = squared_error(_line, x, y)
    return Problem(
        "line",
        "document 001, the example of stochastic gradient descent",
        error,
        tensor([10.0, 5.0], dtype=dtype),
        cast(best, dtype),
        float(error(best)),
        x,
        y,
        lambda x: _line(truth, x),
        truth,
    )


def _exponential(theta: Tensor, x: Tensor) -> Tensor:
    return theta[0] + theta[1] * exp(theta[2] * x)


def _best_exponential(x: Tensor, y: Tensor, truth: Tensor) -> Tensor:
    """(b, A, c) with the least squared error: Gauss-Newton steps from the truth, which is near."""
    x, y, theta = (cast(t, dtypes.float64) for t in (x, y, truth))
    for _ in range(50):
        e = exp(theta[2] * x)
        jacobian = cat([ones_like(x), e, theta[1] * x * e], 1)
        step = lstsq(jacobian, (y - theta[0] - theta[1] * e)[:, 0]).solution
        theta = theta + step
        if float(step.abs().max()) <= 1e-13 * float(theta.abs().max()):
            break
    return theta


def exponential(
    n: int = 200, noise: float = 10.154988, generator: Random = None, dtype: DType | None = None
) -> Problem:
    """y = b + A e^{c x} + noise N(0, 1), x uniform in [0, 1), (b, A, c) = (14.735, 10.154, 2.34).

    The course draws with NumPy's generator and seed 42; the numbers here come from the same
    distribution, by this library's generator. Its model is one neuron; the function here is the
    mean squared error of b + A e^{c x}, with the parameters in this order.

    >>> from chainrule import problems
    >>> problems.exponential().truth
    tensor([14.7351, 10.1543,  2.3400])
    """
    whole("exponential", 3, n=n)
    dtype = floating("exponential", dtype)
    truth = tensor([14.7351129, 10.1542550, 2.34], dtype=dtype)
    x = uniform(0.0, 1.0, n, 1, generator=generator, dtype=dtype)
    y = _exponential(truth, x) + normal(noise, n, 1, generator=generator, dtype=dtype)
    best, error = _best_exponential(x, y, truth), squared_error(_exponential, x, y)
    return Problem(
        "exponential",
        "document 000, example 9",
        error,
        tensor([0.0, 1.0, 1.0], dtype=dtype),
        cast(best, dtype),
        float(error(best)),
        x,
        y,
        lambda x: _exponential(truth, x),
        truth,
        {"noise": noise},
    )


def exponential_line(
    n: int = 200, noise: float = 0.1, generator: Random = None, dtype: DType | None = None
) -> Problem:
    """A line b + w x through points of y = 14.735 + 10.184 e^x + noise N(0, 1), x in [0, 1).

    No line fits; the minimizer is the least-squares line. For many points it tends to
    ``known["limit"]`` = (23.6273, 17.2145). (The course, with NumPy's seed 42 and four fifths of
    the points, gets (23.7502, 17.1042).)

    >>> from chainrule import problems
    >>> problems.exponential_line().known["limit"]
    tensor([23.6273, 17.2145])
    """
    whole("exponential_line", 2, n=n)
    dtype = floating("exponential_line", dtype)
    truth = tensor([14.7351129, 10.1842550, 1.0], dtype=dtype)
    x = uniform(0.0, 1.0, n, 1, generator=generator, dtype=dtype)
    y = _exponential(truth, x) + normal(noise, n, 1, generator=generator, dtype=dtype)
    best, error = _best_line(x, y), squared_error(_line, x, y)
    # Slope: the covariance of x and e^x for uniform x, 1 - (e - 1) / 2, over the variance 1 / 12.
    e = 2.718281828459045
    slope = 12 * 10.1842550 * (1 - (e - 1) / 2)
    limit = [14.7351129 + 10.1842550 * (e - 1) - slope / 2, slope]
    return Problem(
        "exponential_line",
        "document 000, example 17",
        error,
        tensor([0.0, 0.0], dtype=dtype),
        cast(best, dtype),
        float(error(best)),
        x,
        y,
        lambda x: _exponential(truth, x),
        truth,
        {"limit": tensor(limit, dtype=dtype), "noise": noise},
    )

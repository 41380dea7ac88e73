"""Filling: tensors that get random numbers in place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from chainrule.backend import K, dtypes
from chainrule.ops.core.arguments import number
from chainrule.ops.core.inplace import assign
from chainrule.ops.core.synonyms import also_named
from chainrule.ops.creation.sampling import (
    bits,
    draw,
    draw_integers,
    nonnegative,
    real_type,
    stream,
)
from chainrule.random import Generator
from chainrule.tensor import Tensor
from chainrule.typing import Random

__all__: list[str] = []
METHODS = (
    "bernoulli_",
    "cauchy_",
    "exponential_",
    "geometric_",
    "log_normal_",
    "normal_",
    "random_",
    "uniform_",
)
INPLACE: tuple[str, ...] = ()


def normal_(
    input: Tensor, mean: float = 0, std: float = 1, *, generator: Generator | None = None
) -> Tensor:
    """Fills the tensor with normal numbers."""
    m, s = number("normal_", "mean", mean), nonnegative("normal_", std)
    return _fill(input, "normal_", generator, K.random_normal, m, s)


@also_named(**{"from": "from_"})
def uniform_(
    input: Tensor, from_: float = 0, to: float = 1, *, generator: Generator | None = None
) -> Tensor:
    """Fills the tensor with numbers uniform in [from_, to)."""
    low, high = number("uniform_", "from", from_), number("uniform_", "to", to)
    if not low <= high:
        raise RuntimeError(
            f"uniform_: expects to return a [from, to) range, but found from={low} > to={high}"
        )
    return _fill(input, "uniform_", generator, K.random_uniform, low, high)


def exponential_(input: Tensor, lambd: float = 1, *, generator: Generator | None = None) -> Tensor:
    """Fills the tensor with exponential numbers of rate ``lambd``."""
    rate = _positive("exponential_", "lambd", lambd)
    return _fill(input, "exponential_", generator, K.random_exponential, rate)


def log_normal_(
    input: Tensor, mean: float = 1, std: float = 2, *, generator: Generator | None = None
) -> Tensor:
    """Fills the tensor with exp of normal numbers of this mean and standard deviation."""
    m, s = number("log_normal_", "mean", mean), _positive("log_normal_", "std", std)
    return _fill(input, "log_normal_", generator, K.random_log_normal, m, s)


def cauchy_(
    input: Tensor, median: float = 0, sigma: float = 1, *, generator: Generator | None = None
) -> Tensor:
    """Fills the tensor with numbers from the Cauchy distribution."""
    m, s = number("cauchy_", "median", median), _positive("cauchy_", "sigma", sigma)
    return _fill(input, "cauchy_", generator, K.random_cauchy, m, s)


def _positive(op: str, name: str, value: float) -> float:
    out = number(op, name, value)
    if not out > 0:
        raise RuntimeError(f"{op}: expects {name} > 0.0, but found {name}={out}")
    return out


def _fill(
    input: Tensor, op: str, generator: Random, kernel: Callable[..., Any], *params: Any
) -> Tensor:
    """Fills a floating-point tensor from a continuous distribution."""
    if op in ("normal_", "uniform_"):
        target = real_type(op, input.dtype)
    elif input.is_floating_point():
        target = input.array.dtype
    else:
        raise RuntimeError(
            f"{op}: a continuous distribution needs a floating-point dtype, but the tensor is "
            f"{input.dtype}"
        )
    g = stream(op, generator)
    value = draw(tuple(input.shape), lambda shape: kernel(g, shape, target, *params))
    return assign(input, value, op, fresh=True)


def geometric_(input: Tensor, p: float, *, generator: Generator | None = None) -> Tensor:
    """Fills the tensor with the number of trials of probability p up to the first success."""
    value, g, d = number("geometric_", "p", p), stream("geometric_", generator), input.array.dtype
    if not 0 < value < 1:
        raise RuntimeError(f"geometric_: expects p to be in (0, 1), but got p={value}")
    out = draw(tuple(input.shape), lambda shape: K.random_geometric(g, shape, d, value))
    return assign(input, out, "geometric_", fresh=True)


def bernoulli_(
    input: Tensor, p: float | Tensor = 0.5, *, generator: Generator | None = None
) -> Tensor:
    """Fills the tensor with ones (with probability p, a number or a tensor) and zeros."""
    out = bits("bernoulli_", tuple(input.shape), p, input.dtype, generator)
    return assign(input, out, "bernoulli_")


@also_named(**{"from": "from_"})
def random_(
    input: Tensor,
    from_: int | None = None,
    to: int | None = None,
    *,
    generator: Generator | None = None,
) -> Tensor:
    """Fills the tensor with integers from ``from_`` (0) up to, without, ``to``.

    ``x.random_(to)`` starts at 0; without limits, all that the type holds exactly from 0 upwards.
    """
    if to is None:
        from_, to = None, from_
    d = input.dtype
    if to is None:
        to = K.integer_limits(d.array_dtype)[1] + (1 if d.category <= dtypes.INTEGER else 0)
    out = draw_integers("random_", tuple(input.shape), from_ or 0, to, d, generator)
    return assign(input, out, "random_")

"""Orthogonal polynomials: one primitive, whose derivative is itself of the next order.

``hermite_polynomial_h(input, n)`` is the polynomial of degree n at each element; n is a number or
a tensor of degrees, of which fractions are dropped, and the polynomial is 0 where n is negative.
"""

from __future__ import annotations

from typing import Any, Protocol

from chainrule.ops.core.pointwise import named
from chainrule.ops.core.primitive import Elementwise
from chainrule.ops.core.promotion import NUMBERS, check_broadcast, check_kind, promote, to_floating
from chainrule.tensor import Tensor
from chainrule.typing import Number, Value

__all__ = [
    "chebyshev_polynomial_t",
    "chebyshev_polynomial_u",
    "chebyshev_polynomial_v",
    "chebyshev_polynomial_w",
    "hermite_polynomial_h",
    "hermite_polynomial_he",
    "laguerre_polynomial_l",
    "legendre_polynomial_p",
    "shifted_chebyshev_polynomial_t",
    "shifted_chebyshev_polynomial_u",
    "shifted_chebyshev_polynomial_v",
    "shifted_chebyshev_polynomial_w",
]
METHODS: tuple[str, ...] = ()
INPLACE: tuple[str, ...] = ()


def _slope(d: Value, x: Value, y: Value, family: str, order: int) -> Value:
    """The recurrence of a family can be differentiated as often as one likes."""
    return d * _polynomial(x, y, family=family, order=order + 1)


_polynomial = Elementwise("orthogonal_polynomial", [_slope, None])


class Polynomial(Protocol):
    """A family of polynomials: that of degree n at each element of a tensor."""

    __name__: str

    def __call__(self, input: Tensor | Number, n: Tensor | Number) -> Tensor: ...


def _family(name: str, family: str, doc: str, shifted: bool = False) -> Polynomial:
    """Declares the polynomials of a family, at 2 x - 1 if they are the shifted ones."""

    def function(input: Any, n: Any) -> Any:
        if not isinstance(input, Tensor) and not isinstance(n, Tensor):
            raise TypeError(
                f"{name}(): argument 'input' or 'n' must be Tensor, not {type(input).__name__} and "
                f"{type(n).__name__}; convert it with chainrule.tensor(...)"
            )
        # A number does not change the type of a tensor; two tensors have a type in common.
        x, degree = promote(input, float(n) if isinstance(n, NUMBERS[:3]) else n)
        check_kind(name, "biuf", x.array.dtype)
        x, degree = to_floating(x), to_floating(degree)
        check_broadcast(name, x.array.shape, degree.array.shape)
        return _polynomial(2 * x - 1 if shifted else x, degree, family=family, order=0)

    types = {"input": "Tensor | Number", "n": "Tensor | Number", "return": "Tensor"}
    polynomial: Polynomial = named(function, name, doc, types)
    return polynomial


chebyshev_polynomial_t = _family(
    "chebyshev_polynomial_t", "chebyshev_t", "cos(n t) at x = cos(t): Chebyshev, first kind."
)
chebyshev_polynomial_u = _family(
    "chebyshev_polynomial_u",
    "chebyshev_u",
    "sin((n + 1) t) / sin(t) at x = cos(t): Chebyshev, second kind.",
)
chebyshev_polynomial_v = _family(
    "chebyshev_polynomial_v",
    "chebyshev_v",
    "cos((n + 1/2) t) / cos(t / 2) at x = cos(t): Chebyshev, third kind.",
)
chebyshev_polynomial_w = _family(
    "chebyshev_polynomial_w",
    "chebyshev_w",
    "sin((n + 1/2) t) / sin(t / 2) at x = cos(t): Chebyshev, fourth kind.",
)
hermite_polynomial_h = _family(
    "hermite_polynomial_h", "hermite_h", "(-1)^n exp(x^2) (d/dx)^n exp(-x^2): Hermite, physicists'."
)
hermite_polynomial_he = _family(
    "hermite_polynomial_he",
    "hermite_he",
    "(-1)^n exp(x^2/2) (d/dx)^n exp(-x^2/2): Hermite, of probabilities.",
)
laguerre_polynomial_l = _family(
    "laguerre_polynomial_l", "laguerre_l", "exp(x) / n! (d/dx)^n (x^n exp(-x)): Laguerre."
)
legendre_polynomial_p = _family(
    "legendre_polynomial_p", "legendre_p", "(d/dx)^n (x^2 - 1)^n / (2^n n!): Legendre."
)
shifted_chebyshev_polynomial_t = _family(
    "shifted_chebyshev_polynomial_t", "chebyshev_t", "The first kind at 2 x - 1.", shifted=True
)
shifted_chebyshev_polynomial_u = _family(
    "shifted_chebyshev_polynomial_u", "chebyshev_u", "The second kind at 2 x - 1.", shifted=True
)
shifted_chebyshev_polynomial_v = _family(
    "shifted_chebyshev_polynomial_v", "chebyshev_v", "The third kind at 2 x - 1.", shifted=True
)
shifted_chebyshev_polynomial_w = _family(
    "shifted_chebyshev_polynomial_w", "chebyshev_w", "The fourth kind at 2 x - 1.", shifted=True
)

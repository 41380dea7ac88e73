"""Records of special functions."""

from __future__ import annotations

import functools
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from samples.record import Args, Sample, normal, positive, uniform
from scipy import special

from chainrule import problems
from chainrule.ops.elementwise import gamma

# --- of the test problems -------------------------------------------------------------------------


def radial(x: np.ndarray) -> np.ndarray:
    r, half = np.linalg.norm(x, axis=-1), x.shape[-1] / 2
    return (0.2 / r) ** half * special.jv(half, 2 * np.pi * 0.2 * r)


NAME = f"problems.{problems.radial_function.__name__}"

# --- of the gamma law -----------------------------------------------------------------------------

GAMMA = gamma.__name__.removeprefix("chainrule.")


def shape_and(quantiles: Callable[..., Any]) -> Args:
    """Shapes, small and large, and a function of a probability."""
    a = np.array([0.3, 1.0, 2.5, 7.0, 40.0, 2.0])
    return lambda r: (a * r.uniform(0.8, 1.2), quantiles(a, r.uniform(0.05, 0.95, size=6)))


def slope(a: np.ndarray, y: np.ndarray) -> np.ndarray:
    """How log gammaincinv moves with a: a central difference of the fourth order."""
    u, h = special.gammainc(a, np.exp(y)), 1e-3 * a
    f = [np.log(special.gammaincinv(a + k * h, u)) for k in (-2, -1, 1, 2)]
    return (f[0] - 8 * f[1] + 8 * f[2] - f[3]) / (12 * h)


# --- PyTorch's ------------------------------------------------------------------------------------


def of_shape(low: float, high: float) -> Args:
    """A shape that is not differentiated (float32), and an input."""
    return lambda r: (
        r.uniform(low, high, size=(3, 4)).astype(np.float32),
        r.uniform(0.5, 3.0, size=(3, 4)),
    )


def wide(function: np.ufunc) -> Callable[..., Any]:
    """In float64, as our tensors are promoted."""
    return lambda a, x: function(a.astype(np.float64), x)


def alike(name: str) -> Callable[..., Any]:
    """PyTorch's function with both arguments of one type: it computes slopes in the narrower."""
    return lambda torch, a, x: resolve(torch, name)(a.to(x.dtype), x)


def resolve(module: Any, name: str) -> Any:
    return functools.reduce(getattr, name.split("."), module)


def both(r: np.random.Generator) -> tuple[Any, ...]:
    return r.normal(size=(3, 4)), r.uniform(-0.5, 2.0, size=(3, 4))


value_only = partial(Sample, differentiable=False)
WITHOUT_DERIVATIVE_IN_TORCH = {
    "bessel_j0": (special.j0, normal(3, 4)),
    "bessel_j1": (special.j1, normal(3, 4)),
    "bessel_y0": (special.y0, positive(3, 4)),
    "bessel_y1": (special.y1, positive(3, 4)),
    "modified_bessel_k0": (special.k0, positive(3, 4)),
    "modified_bessel_k1": (special.k1, positive(3, 4)),
    "scaled_modified_bessel_k0": (special.k0e, positive(3, 4)),
    "scaled_modified_bessel_k1": (special.k1e, positive(3, 4)),
    "airy_ai": (lambda x: special.airy(x)[0], normal(3, 4)),
    "spherical_bessel_j0": (lambda x: np.sin(x) / x, positive(3, 4)),
}


def third(n: np.ndarray, x: np.ndarray) -> np.ndarray:
    """cos((n + 1/2) t) / cos(t / 2) at x = cos(t)."""
    t = np.arccos(x)
    return np.cos((n + 0.5) * t) / np.cos(t / 2)


def fourth(n: np.ndarray, x: np.ndarray) -> np.ndarray:
    """sin((n + 1/2) t) / sin(t / 2) at x = cos(t)."""
    t = np.arccos(x)
    return np.sin((n + 0.5) * t) / np.sin(t / 2)


def shifted(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda n, x: f(n, 2 * x - 1)


# Functions of the degree and the place, and where to try them.
POLYNOMIALS: dict[str, tuple[Callable[..., Any], float, float]] = {
    "chebyshev_polynomial_t": (special.eval_chebyt, -0.9, 0.9),
    "chebyshev_polynomial_u": (special.eval_chebyu, -0.9, 0.9),
    "chebyshev_polynomial_v": (third, -0.9, 0.9),
    "chebyshev_polynomial_w": (fourth, -0.9, 0.9),
    "hermite_polynomial_h": (special.eval_hermite, -2.0, 2.0),
    "hermite_polynomial_he": (special.eval_hermitenorm, -2.0, 2.0),
    "laguerre_polynomial_l": (special.eval_laguerre, -2.0, 2.0),
    "legendre_polynomial_p": (special.eval_legendre, -0.9, 0.9),
    "shifted_chebyshev_polynomial_t": (shifted(special.eval_chebyt), 0.1, 0.9),
    "shifted_chebyshev_polynomial_u": (shifted(special.eval_chebyu), 0.1, 0.9),
    "shifted_chebyshev_polynomial_v": (shifted(third), 0.1, 0.9),
    "shifted_chebyshev_polynomial_w": (shifted(fourth), 0.1, 0.9),
}


def of_degrees(low: float, high: float) -> Args:
    """Places, and a degree for each row."""
    return lambda r: (r.uniform(low, high, size=(5, 3)), np.arange(5)[:, None])


def at_degree(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, n: f(np.asarray(n, np.int64), x)


SAMPLES = [
    *[
        Sample(f"special.{name}", of_degrees(*ends), reference=at_degree(f), torch="")
        for name, (f, *ends) in POLYNOMIALS.items()
    ],
    *[
        value_only(
            f"special.{name}",
            uniform(*ends, 3, 4),
            {"n": 11},
            reference=at_degree(f),
            note="degree 11",
        )
        for name, (f, *ends) in POLYNOMIALS.items()
    ],
    Sample(
        "special.spherical_bessel_j0",
        lambda r: (np.array([0.0, 1e-9, -1e-4, 9e-3, 0.011, 40.0]),),
        reference=lambda x: np.where(x == 0, 1.0, np.sin(x) / np.where(x == 0, 1.0, x)),
        torch="",
        note="near zero",
    ),
    *[
        Sample(NAME, uniform(0.5, 5.0, 4, d), reference=radial, torch="", note=f"{d}d")
        for d in (2, 3)
    ],
    Sample("special.i0", normal(3, 4), reference=special.i0),
    Sample("special.i0e", uniform(0.2, 3.0, 3, 4), reference=special.i0e),
    Sample("special.i1", uniform(0.2, 3.0, 3, 4), reference=special.i1),
    Sample("special.i1e", uniform(-3.0, -0.2, 3, 4), reference=special.i1e),
    *[
        Sample(f"special.{name}", args, reference=reference, torch="")
        for name, (reference, args) in WITHOUT_DERIVATIVE_IN_TORCH.items()
    ],
    *[
        value_only(f"special.{name}", args, reference=reference, note="value")
        for name, (reference, args) in WITHOUT_DERIVATIVE_IN_TORCH.items()
    ],
    Sample("special.erfcx", normal(3, 4), reference=special.erfcx),
    Sample("special.ndtr", normal(3, 4), reference=special.ndtr),
    Sample("special.log_ndtr", normal(3, 4), reference=special.log_ndtr),
    Sample("special.log_ndtr", uniform(-30, -5, 3, 4), reference=special.log_ndtr, note="far"),
    Sample("special.ndtri", uniform(0.1, 0.9, 3, 4), reference=special.ndtri),
    Sample("special.entr", positive(3, 4), reference=special.entr),
    Sample("special.xlog1py", both, reference=special.xlog1py),
    *[
        Sample(name, of_shape(low, 4), reference=wide(function), torch_call=alike(name))
        for name, function, low in (
            ("igamma", special.gammainc, 0.5),
            ("igammac", special.gammaincc, 0.5),
            ("special.zeta", special.zeta, 1.5),
        )
    ],
    Sample(
        "mvlgamma",
        uniform(2.0, 5.0, 3, 4),
        {"p": 3},
        reference=lambda x, p: np.vectorize(lambda v: special.multigammaln(v, p))(x),
    ),
    Sample(
        "special.gammainc", shape_and(special.gammaincinv), reference=special.gammainc, torch=""
    ),
    Sample(
        "igammac",
        shape_and(special.gammaincinv),
        reference=special.gammaincc,
        torch="",
        note="shape",
    ),
    Sample(
        f"{GAMMA}.gammaincinv", shape_and(lambda a, u: u), reference=special.gammaincinv, torch=""
    ),
    Sample(
        f"{GAMMA}.log_gamma_slope",
        shape_and(lambda a, u: np.log(special.gammaincinv(a, u))),
        reference=slope,
        torch="",
    ),
]

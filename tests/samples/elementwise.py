"""Records of the elementwise functions.

Inputs stay away from kinks, poles and the borders of domains, where differences say nothing; what
happens there is compared with PyTorch in ``parity/test_ops.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.special as special
from samples.record import Sample, ints, normal, positive, uniform

__all__ = ["SAMPLES"]

Args = Callable[[np.random.Generator], tuple[Any, ...]]

constant = partial(Sample, differentiable=False)
linear = partial(Sample, second_order=False)  # in pieces

# --- inputs ---------------------------------------------------------------------------------------


def values(*numbers: float) -> Args:
    """These numbers."""
    return lambda r: (np.array(numbers),)


def apart(*shape: int) -> Args:
    """Numbers between -3 and 3 that are at least 0.1 away from every multiple of a half."""
    return lambda r: (r.integers(-6, 6, size=shape) * 0.5 + r.uniform(0.1, 0.4, size=shape),)


def complexes(*shape: int) -> Args:
    return lambda r: (r.normal(size=shape) + 1j * r.normal(size=shape),)


def booleans(*shape: int) -> Args:
    return lambda r: (r.integers(0, 2, size=shape).astype(bool),)


def both(first: Args, second: Args) -> Args:
    """Two inputs."""
    return lambda r: (*first(r), *second(r))


def then(args: Args, *numbers: complex) -> Args:
    """An input, then Python numbers."""
    return lambda r: (*args(r), *numbers)


def after(number: complex, args: Args) -> Args:
    """A Python number, then an input."""
    return lambda r: (number, *args(r))


def spaced(r: np.random.Generator) -> tuple[Any, ...]:
    """Two inputs whose elements differ by more than 0.1."""
    x = r.normal(size=(3, 4))
    return x, x + r.choice([-1, 1], size=(3, 4)) * r.uniform(0.2, 1, size=(3, 4))


def quotients(r: np.random.Generator) -> tuple[Any, ...]:
    """Two inputs whose quotient is far from an integer."""
    y = r.uniform(0.5, 2, size=(3, 4)) * r.choice([-1, 1], size=(3, 4))
    return (r.integers(-3, 3, size=(3, 4)) + r.uniform(0.2, 0.8, size=(3, 4))) * y, y


def equal_in_part(r: np.random.Generator) -> tuple[Any, ...]:
    """Two inputs of which some elements are equal."""
    x = r.integers(-2, 3, size=(3, 4)).astype(float)
    return x, np.where(r.integers(0, 2, size=(3, 4)) == 0, x, r.normal(size=(3, 4)))


# --- one input ------------------------------------------------------------------------------------

SMOOTH: list[tuple[str, Args, Callable[..., Any]]] = [
    ("neg", normal(3, 4), np.negative),
    ("square", normal(3, 4), np.square),
    ("exp", normal(3, 4), np.exp),
    ("exp2", normal(3, 4), np.exp2),
    ("expm1", normal(3, 4), np.expm1),
    ("log", positive(3, 4), np.log),
    ("log2", positive(3, 4), np.log2),
    ("log10", positive(3, 4), np.log10),
    ("log1p", uniform(-0.5, 2, 3, 4), np.log1p),
    ("sqrt", positive(3, 4), np.sqrt),
    ("rsqrt", positive(3, 4), lambda x: 1 / np.sqrt(x)),
    ("reciprocal", positive(3, 4), np.reciprocal),
    ("sin", normal(3, 4), np.sin),
    ("cos", normal(3, 4), np.cos),
    ("tan", uniform(-1.2, 1.2, 3, 4), np.tan),
    ("asin", uniform(-0.9, 0.9, 3, 4), np.arcsin),
    ("acos", uniform(-0.9, 0.9, 3, 4), np.arccos),
    ("atan", normal(3, 4), np.arctan),
    ("sinh", normal(3, 4), np.sinh),
    ("cosh", normal(3, 4), np.cosh),
    ("tanh", normal(3, 4), np.tanh),
    ("asinh", normal(3, 4), np.arcsinh),
    ("acosh", uniform(1.2, 3, 3, 4), np.arccosh),
    ("atanh", uniform(-0.9, 0.9, 3, 4), np.arctanh),
    ("sigmoid", normal(3, 4), special.expit),
    ("erf", normal(3, 4), special.erf),
    ("erfc", normal(3, 4), special.erfc),
    ("erfinv", uniform(-0.9, 0.9, 3, 4), special.erfinv),
    ("lgamma", positive(3, 4), special.gammaln),
    ("digamma", positive(3, 4), special.digamma),
    ("sinc", normal(3, 4), np.sinc),
    ("logit", uniform(0.1, 0.9, 3, 4), special.logit),
    ("deg2rad", normal(3, 4), np.deg2rad),
    ("rad2deg", normal(3, 4), np.rad2deg),
    ("positive", normal(3, 4), np.positive),
]

STEPS = {
    "abs": np.abs,
    "sign": np.sign,
    "sgn": np.sign,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "frac": lambda x: x - np.trunc(x),
    "round": np.round,
}
PROPERTIES = {
    "isnan": np.isnan,
    "isinf": np.isinf,
    "isfinite": np.isfinite,
    "isposinf": np.isposinf,
    "isneginf": np.isneginf,
    "signbit": np.signbit,
    "logical_not": np.logical_not,
}
OF_INTEGERS = {
    "neg": np.negative,
    "abs": np.abs,
    "square": np.square,
    "sign": np.sign,
    "floor": np.floor,
    "bitwise_not": np.invert,
    "isnan": np.isnan,
}
# These make integers and booleans floating first.
FLOATING = {
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "sin": np.sin,
    "sigmoid": special.expit,
    "erf": special.erf,
    "reciprocal": lambda x: 1 / x,
    "deg2rad": np.deg2rad,
    "lgamma": special.gammaln,
}


def softplus(x: np.ndarray) -> np.ndarray:
    return np.logaddexp(x, 0)


UNARY = [
    *(Sample(name, args, reference=f) for name, args, f in SMOOTH),
    *(linear(name, apart(3, 4), reference=f) for name, f in STEPS.items()),
    *(
        constant(name, values(0.0, -0.0, 1.5, -2.0, np.nan, np.inf, -np.inf), reference=f)
        for name, f in PROPERTIES.items()
    ),
    *(
        constant(name, ints(1, 5, 4), reference=f, note="integers")
        for name, f in (OF_INTEGERS | FLOATING).items()
    ),
    constant("cos", booleans(4), reference=lambda x: np.cos(x * 1.0), note="bool"),
    constant("bitwise_not", booleans(4), reference=np.invert, note="bool"),
    constant("logical_not", booleans(4), reference=np.logical_not, note="bool"),
    Sample("softplus", uniform(-5, 5, 3, 4), reference=softplus, torch="nn.functional.softplus"),
    Sample(
        "softplus",
        values(-800.0, -40.0, 40.0, 800.0),
        reference=softplus,
        note="far out",
        torch_call=lambda torch, x: torch.logaddexp(x, torch.zeros_like(x)),
    ),
    Sample("sigmoid", values(-800.0, -40.0, 40.0, 800.0), reference=special.expit, note="far out"),
    Sample("tanh", values(-400.0, -20.0, 20.0, 400.0), reference=np.tanh, note="far out"),
    Sample("expm1", values(1e-12, -1e-9), reference=np.expm1, note="near zero"),
    Sample("log1p", values(1e-12, -1e-9), reference=np.log1p, note="near zero"),
    Sample(
        "sinc", values(0.0, 1e-5, -1e-4, 0.3), reference=np.sinc, float32=False, note="near zero"
    ),
    Sample("lgamma", uniform(-2.9, -2.1, 4), reference=special.gammaln, note="negative"),
    Sample("digamma", uniform(-2.8, -2.2, 4), reference=special.digamma, note="negative"),
    *(
        Sample("polygamma", after(n, positive(4)), reference=special.polygamma, note=str(n))
        for n in (0, 1, 3)
    ),
    linear(
        "round",
        lambda r: (r.integers(-30, 30, size=4) * 0.1 + r.uniform(0.01, 0.04, size=4),),
        {"decimals": 1},
        reference=np.round,
        note="decimals",
    ),
    Sample(
        "logit",
        values(0.1, 0.3, 0.7, 0.9),
        {"eps": 0.2},
        note="eps",
        reference=lambda x, eps: special.logit(np.clip(x, eps, 1 - eps)),
    ),
    linear("nan_to_num", normal(4), reference=np.nan_to_num),
    linear("relu", apart(3, 4), reference=lambda x: np.maximum(x, 0)),
    constant(
        "nan_to_num",
        values(1.0, np.nan, np.inf, -np.inf),
        {"nan": 0.5, "posinf": 9.0, "neginf": -9.0},
        reference=np.nan_to_num,
        note="numbers",
    ),
    constant("nan_to_num", ints(0, 5, 3), reference=np.nan_to_num, note="integers"),
    constant("conj", complexes(4), reference=np.conj, torch="conj_physical"),
    linear("conj", normal(4), reference=np.conj, note="real"),
    constant("real", complexes(4), reference=np.real),
    linear("real", normal(4), reference=np.real, note="real"),
    constant("imag", complexes(4), reference=np.imag),
    constant("angle", complexes(4), reference=np.angle),
    constant("angle", apart(4), reference=np.angle, note="real"),
    constant("exp", complexes(4), reference=np.exp, note="complex"),
    constant("abs", complexes(4), reference=np.abs, note="complex"),
    constant("sgn", complexes(4), reference=lambda x: x / np.abs(x), note="complex"),
]

# --- two inputs -----------------------------------------------------------------------------------

SMOOTH_PAIRS: list[tuple[str, Args, Callable[..., Any]]] = [
    ("add", both(normal(3, 4), normal(3, 4)), np.add),
    ("sub", both(normal(3, 4), normal(3, 4)), np.subtract),
    ("mul", both(normal(3, 4), normal(3, 4)), np.multiply),
    ("true_divide", both(normal(3, 4), positive(3, 4)), np.divide),
    ("div", both(normal(3, 4), positive(3, 4)), np.divide),
    ("pow", both(positive(3, 4), normal(3, 4)), np.power),
    ("atan2", both(positive(3, 4), normal(3, 4)), np.arctan2),
    ("hypot", both(positive(3, 4), normal(3, 4)), np.hypot),
    ("logaddexp", both(normal(3, 4), normal(3, 4)), np.logaddexp),
    ("logaddexp2", both(normal(3, 4), normal(3, 4)), np.logaddexp2),
    ("xlogy", both(normal(3, 4), positive(3, 4)), special.xlogy),
]

STEP_PAIRS: list[tuple[str, Args, Callable[..., Any]]] = [
    ("maximum", spaced, np.maximum),
    ("minimum", spaced, np.minimum),
    ("fmax", spaced, np.fmax),
    ("fmin", spaced, np.fmin),
    ("fmod", quotients, np.fmod),
    ("remainder", quotients, np.remainder),
    ("copysign", both(apart(3, 4), apart(3, 4)), np.copysign),
]

COMPARISONS = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
LOGIC = {
    "logical_and": np.logical_and,
    "logical_or": np.logical_or,
    "logical_xor": np.logical_xor,
}
BITS = {
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
}
SHIFTS = {"bitwise_left_shift": np.left_shift, "bitwise_right_shift": np.right_shift}

whole = both(ints(-9, 9, 8), ints(1, 5, 8))

BINARY = [
    *(Sample(name, args, reference=f) for name, args, f in SMOOTH_PAIRS),
    *(linear(name, args, reference=f) for name, args, f in STEP_PAIRS),
    *(constant(name, equal_in_part, reference=f) for name, f in (COMPARISONS | LOGIC).items()),
    *(constant(name, whole, reference=f) for name, f in (BITS | SHIFTS).items()),
    *(
        constant(name, both(booleans(6), booleans(6)), reference=f, note="bool")
        for name, f in (BITS | LOGIC | {"add": np.logical_or, "mul": np.logical_and}).items()
    ),
    constant("floor_divide", quotients, reference=np.floor_divide),
    constant("floor_divide", whole, reference=np.floor_divide, note="integers"),
    constant("heaviside", both(values(-1.0, 0.0, 2.0), normal(3)), reference=np.heaviside),
    constant(
        "div",
        quotients,
        {"rounding_mode": "floor"},
        note="floor",
        reference=lambda x, y: np.floor(x / y),
    ),
    constant(
        "div",
        quotients,
        {"rounding_mode": "trunc"},
        note="trunc",
        reference=lambda x, y: np.trunc(x / y),
    ),
    constant(
        "div",
        whole,
        {"rounding_mode": "trunc"},
        note="trunc integers",
        reference=lambda x, y: np.trunc(x / y).astype(int),
    ),
    constant(
        "isclose",
        both(values(1.0, 1.0, np.inf), values(1.000001, 1.1, np.inf)),
        reference=np.isclose,
    ),
    constant(
        "isclose",
        both(values(1.0, np.nan, 2.0), values(1.05, np.nan, 3.0)),
        {"rtol": 0.1, "equal_nan": True},
        reference=np.isclose,
        note="equal_nan",
    ),
    constant("isclose", both(ints(0, 3, 6), ints(0, 3, 6)), reference=np.isclose, note="integers"),
    Sample(
        "add",
        both(normal(3, 1), normal(4)),
        {"alpha": 2.5},
        note="alpha",
        reference=lambda x, y, alpha: x + alpha * y,
    ),
    Sample(
        "sub",
        both(normal(3, 1), normal(4)),
        {"alpha": 2},
        note="alpha",
        reference=lambda x, y, alpha: x - alpha * y,
    ),
    constant("maximum", both(normal(2), values(0.3, np.nan)), reference=np.maximum, note="nan"),
    constant("fmin", both(normal(2), values(0.3, np.nan)), reference=np.fmin, note="nan"),
    Sample(
        "logaddexp",
        both(values(1e3, -1e3), values(1000.5, -1001.0)),
        reference=np.logaddexp,
        note="far out",
    ),
    constant(
        "xlogy",
        both(values(0.0, 0.0, 2.0), values(0.0, 1.0, 1.0)),
        reference=special.xlogy,
        note="zero",
    ),
]

# --- Python numbers and mixed types ---------------------------------------------------------------

NUMBER_LAST: list[tuple[str, Args, float, Callable[..., Any]]] = [
    ("add", normal(3), 2, np.add),
    ("add", normal(3), 0.5, np.add),
    ("sub", normal(3), 2, np.subtract),
    ("mul", normal(3), 3, np.multiply),
    ("mul", normal(3), -0.5, np.multiply),
    ("div", normal(3), 4, np.divide),
    ("pow", normal(3), 0, np.power),
    ("pow", normal(3), 1, np.power),
    ("pow", normal(3), 2, np.power),
    ("pow", normal(3), 2.0, np.power),
    ("pow", normal(3), 3, np.power),
    ("pow", positive(3), 0.5, np.power),
    ("pow", positive(3), -1.5, np.power),
    ("xlogy", normal(3), 2.0, special.xlogy),
    ("fmod", apart(3), 0.5, np.fmod),
    ("remainder", apart(3), -0.5, np.remainder),
]

# PyTorch's functions want the tensor first, its operators do not.
NUMBER_FIRST: list[tuple[str, Args, float, Callable[..., Any], Callable[..., Any] | None]] = [
    ("add", normal(3), 2, np.add, lambda torch, a, x: a + x),
    ("sub", normal(3), 2.5, np.subtract, lambda torch, a, x: a - x),
    ("mul", normal(3), 3, np.multiply, lambda torch, a, x: a * x),
    ("div", positive(3), 4, np.divide, lambda torch, a, x: a / x),
    ("pow", normal(3), 2, np.power, None),
    ("pow", normal(3), 2.5, np.power, None),
    ("xlogy", positive(3), 2.0, special.xlogy, None),
    (
        "remainder",
        uniform(0.6, 0.9, 3),
        1.0,
        np.remainder,
        lambda torch, a, x: torch.full_like(x, a).remainder(x),
    ),
]

NUMBERS = [
    *(
        Sample(name, then(args, number), reference=f, note=f"number {number}")
        for name, args, number, f in NUMBER_LAST
    ),
    *(
        Sample(name, after(number, args), reference=f, torch_call=call, note=f"{number} first")
        for name, args, number, f, call in NUMBER_FIRST
    ),
    *(
        constant(name, then(normal(3, 4), 0.3), reference=f, note="number")
        for name, f in COMPARISONS.items()
    ),
    *(
        constant(name, then(ints(0, 9, 5), 3), reference=f, note="number")
        for name, f in (BITS | SHIFTS).items()
    ),
    *(
        Sample(name, both(ints(1, 9, 3, 1), normal(4)), reference=f, note="integer and float")
        for name, f in [("add", np.add), ("mul", np.multiply), ("sub", np.subtract)]
    ),
    constant("div", whole, reference=np.divide, note="integers"),
    constant("add", whole, reference=np.add, note="integers"),
    constant("pow", both(ints(-3, 4, 6), ints(0, 5, 6)), reference=np.power, note="integers"),
    Sample(
        "pow",
        both(uniform(-2, -0.5, 4), lambda r: (np.array([2, 3, -1, 0]),)),
        reference=lambda x, y: x ** y.astype(float),
        note="negative base",
    ),
    constant("add", both(complexes(3), complexes(3)), reference=np.add, note="complex"),
    constant("mul", then(complexes(3), 2j), reference=np.multiply, note="complex"),
    constant("complex", both(normal(3), normal(3)), reference=lambda x, y: x + 1j * y),
]

# --- three inputs and limits ----------------------------------------------------------------------


def clip(x: Any, min: Any, max: Any) -> Any:
    return np.clip(x, min, max)


def lerp(x: Any, y: Any, weight: Any) -> Any:
    return x + weight * (y - x)


SEVERAL = [
    linear("where", both(booleans(3, 4), both(normal(3, 4), normal(4))), reference=np.where),
    linear("where", both(booleans(3, 1), then(normal(4), 0.5)), reference=np.where, note="number"),
    linear(
        "where",
        both(booleans(3), after(-1.0, normal(2, 1))),
        reference=np.where,
        note="number first",
    ),
    linear("clamp", apart(3, 4), {"min": -1.0, "max": 1.5}, reference=clip),
    linear("clamp", then(apart(3, 4), 0.5), reference=np.maximum, note="min only"),
    linear(
        "clamp",
        both(apart(3, 4), both(uniform(-0.5, -0.4, 4), uniform(1.0, 1.1, 3, 1))),
        reference=np.clip,
        note="tensors",
    ),
    constant("clamp", ints(-5, 5, 6), {"min": -1, "max": 2}, reference=clip, note="integers"),
    linear("clamp_min", then(apart(3, 4), 0.5), reference=np.maximum),
    linear("clamp_max", then(apart(3, 4), 0.5), reference=np.minimum),
    Sample("lerp", then(both(normal(3, 4), normal(3, 4)), 0.3), reference=lerp),
    Sample(
        "lerp",
        both(normal(3, 4), both(normal(4), uniform(0, 1, 3, 1))),
        reference=lerp,
        note="tensor",
    ),
    Sample(
        "addcmul",
        both(normal(3, 4), both(normal(3, 1), normal(4))),
        {"value": 0.5},
        reference=lambda x, a, b, value: x + value * a * b,
    ),
    Sample(
        "addcdiv",
        both(normal(3, 4), both(normal(3, 1), positive(4))),
        {"value": 0.5},
        reference=lambda x, a, b, value: x + value * a / b,
    ),
]

SAMPLES: list[Sample] = [*UNARY, *BINARY, *NUMBERS, *SEVERAL]
